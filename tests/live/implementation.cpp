// llmbench's implementation as libllmbench.a has it, for every program of the tests; and what live and virtual
// tests need of its inside. It is asked for when the header was included already and a user's using-directives
// are in force: a late request must not silently do nothing.
#define LLMBENCH_ARCHIVE
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <algorithm>
#include <chrono>
#include <string>

using namespace std;
using namespace std::chrono;
using namespace llmbench;

#include "../../ci/packaging/archive/implementation.cpp"

#include "support/effects.hpp"
#include "support/served_log.hpp"
#include "support/texts.hpp"
#include "virtual/implementation.hpp"
#include "simulated/seeds.hpp"

namespace live {
using namespace llmbench::detail;

/// In the world of the test, where it has one: as long as that, for what happens in it speaks of it.
struct logging_server::host {
    std::shared_ptr<served_log> log = std::make_shared<served_log>();
    std::unique_ptr<simulated_host> real{};
    std::shared_ptr<virtual_server> in_world{};

    explicit host(const llmbench::engine& e) {
        if (current_environment) {
            virtual_world::small_world& w = virtual_world::small_world::around();
            in_world = std::make_shared<virtual_server>(w, e, log.get());
            w.keep(log);
            w.keep(in_world);
        } else real = std::make_unique<simulated_host>(e, 0, log.get());
    }
    int port() const {
        return real ? real->port() : virtual_world::small_world::port_at(in_world->url());
    }
};
logging_server::logging_server(const llmbench::engine& e) : host_(std::make_unique<host>(e)) {}
logging_server::~logging_server() = default;
int logging_server::port() const { return host_->port(); }
std::string logging_server::url() const { return "http://127.0.0.1:" + std::to_string(port()); }
std::vector<server_log_entry> logging_server::log(bool with_check) const {
    std::vector<server_log_entry> out;
    for (const auto& e : host_->log->answers()) {
        if (is_id_of_check(e.request_id) && !with_check) continue;
        out.push_back({e.request_id, e.received_ns, e.first_write_ns, e.last_write_ns,
                       e.prompt_tokens, e.output_tokens, e.engine.admitted - e.engine.arrived,
                       e.engine.first_token - e.engine.admitted,
                       e.engine.last_token - e.engine.first_token});
    }
    return out;
}
std::vector<profiler_log_entry> logging_server::profiler_log() const {
    std::vector<profiler_log_entry> out;
    for (const auto& e : host_->log->of_profiler()) out.push_back({e.path, e.received_ns, e.status});
    return out;
}
std::string logging_server::page_of_metrics(double within_s) const {
    return blocking_get(server_at(parsed_url(url(), "url")), "/metrics", "", within_s).body;
}

std::string refusal_to_bring_up(const llmbench::any_target& target) {
    try {
        live_target t(target, llmbench::run_variant::candidate);
        t.bring_up();
    } catch (const std::exception& e) {
        return e.what();
    }
    return {};
}
std::string refusal_to_plan(const llmbench::scenario& s) {
    return texts::refusal_of([&] { planned(s, 1, read_workload_files(s, 1)); });
}
int free_port() { return llmbench::detail::free_port(); }
interruption::~interruption() { stop_asked = false; }
void interruption::come() { stop_asked = true; }

std::vector<llmbench::record>
records_over(const std::vector<std::pair<std::string, int>>& addresses,
             const llmbench::scenario& s) {
    live_target t(s.target, llmbench::run_variant::candidate);
    t.bring_up();
    load_target several = t.load();
    llmbench::detail::vector<address> all;
    for (const auto& [host, port] : addresses) {
        http_url u;
        u.host = host;
        u.port = std::to_string(port);
        all.push_back(resolved(u).front());
    }
    several.addresses = known_addresses(all);
    const plan p = planned(s, 1);
    load_order order;
    order.what = &p;
    order.target = &several;
    order.last = static_cast<std::size_t>(p.sent->requests);
    load_state state;
    repeat_data into;
    std::vector<llmbench::record> records;
    request_log log;
    run_load({{&order, &state, &into, &log}});
    for (const finished_request& f : log.requests()) records.push_back(f.what);
    return records;
}

std::vector<double> open_loop_times(const llmbench::open_loop& o, long long requests) {
    const auto at = open_loop_schedule(o.data(), 0, 0, requests, 0, 1).at;
    return {at.begin(), at.end()};
}
std::string path_asked_for(llmbench::api_format api, const std::string& model) {
    const api_traits& a = traits_of(api);
    return request_path(a, a.path, "", model);
}
std::vector<spoken_api> spoken_apis() {
    std::vector<spoken_api> all;
    for (std::size_t i = 0; i < std::size(apis); ++i)
        if (const api_traits& a = apis[i]; a.generates)
            all.push_back({static_cast<llmbench::api_format>(i), a.name, a.forces_lengths,
                           a.reports_usage, !a.ends_with_body, a.framed == framing::pieces,
                           a.takes_images});
    return all;
}
std::string name_of(llmbench::api_format api) { return std::string(traits_of(api).name); }
std::string fnv1a_64(const std::string& bytes) {
    fnv1a hash;
    hash.add(bytes.data(), bytes.size());
    return hash.text();
}
llmbench::endpoint endpoint_of(const llmbench::engine& e) {
    static std::vector<std::unique_ptr<logging_server>> of_the_program;
    auto server = std::make_unique<logging_server>(e);
    const llmbench::endpoint at{.url = server->url()};
    if (!current_environment) of_the_program.push_back(std::move(server));
    return at;
}
double budget_spent_s() {
    const long long ns = current_environment
                             ? detail::session::of_this_program().virtual_time_spent()
                             : now_ns() - program_began_ns;
    return static_cast<double>(ns) * 1e-9;
}
std::string accepted_key_of(const std::string& key) { return accepted_key(key); }
std::string escaped(const std::string& text) { return xml_escaped(text); }

gaps_used_up::gaps_used_up() { detail::session::of_this_program().note_gaps(max_gaps_kept); }
gaps_used_up::~gaps_used_up() { detail::session::of_this_program().note_gaps(0 - max_gaps_kept); }

std::vector<llmbench::record> unreported_records_of(const llmbench::scenario& s) {
    live_target t(s.target, llmbench::run_variant::candidate);
    t.bring_up();
    const plan p = planned(s, 1);
    const auto all = run_slot({.what = p, .candidate = t}, {.is_kept = false}).repeats[0].records;
    return {all.begin(), all.end()};
}

std::string refusal_to_run(const llmbench::scenario& s) {
    live_target t(s.target, llmbench::run_variant::candidate);
    t.bring_up();
    return texts::refusal_of([&] {
        const plan p = planned(s, 1, read_workload_files(s, 1));
        run_slot({.what = p, .candidate = t}, {.is_kept = false});
    });
}
}  // namespace live
