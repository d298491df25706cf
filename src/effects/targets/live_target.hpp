// targets brought up
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/target_facts.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/net/http_server.hpp"
#include "effects/net/tls.hpp"
#include "effects/net/virtual_network.hpp"
#include "effects/load/order.hpp"
#include "effects/simulated/host.hpp"
#include "effects/simulated/virtual_server.hpp"
#include "effects/targets/credentials.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/commands.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/targets/started_process.hpp"

#include <algorithm>  // max, min
#include <memory>  // make_unique, make_shared, unique_ptr
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // exchange, move, pair
#include <variant>
#include <vector>  // erase_if

namespace llmbench {
inline namespace v0 {
namespace detail {

/// endpoint{...}: nothing is to be started.
struct running_already {};
/// simulated(): the built-in server, in the world of the gate where that is made up, else on a
/// thread of its own.
struct simulated_engine {
    engine settings{};
    std::unique_ptr<simulated_host> host{};
    std::unique_ptr<virtual_server> made_up{};

    std::string start() {
        if (auto* const world = dynamic_cast<virtual_world*>(current_world)) {
            sleep_s(0.1);  // no two of them begin at one time
            made_up = std::make_unique<virtual_server>(*world, settings);
            return made_up->url();
        }
        host = std::make_unique<simulated_host>(settings);
        return host->url();
    }
};

/// The API of a target, as the gate or else LLMBENCH_API names it.
inline const api_traits& api_of(const endpoint& e) {
    if (static_cast<std::size_t>(e.api) >= std::size(apis))
        refuse({"endpoint.api is no API: it is one of ", api_names()});
    const std::string name = environment("LLMBENCH_API");
    if (name.empty() || e.api != openai_chat) return traits_of(e.api);
    const api_traits* const api = api_named(name);
    if (api == nullptr)
        refuse({"LLMBENCH_API is \"", printable(name), "\": it is one of ", api_names()});
    return *api;
}

/// The same of any target, before it is brought up.
inline const api_traits& api_of(const any_target& t) {
    const box& what = t.what();
    if (const auto* e = what.get<endpoint>()) return api_of(*e);
    endpoint at;
    if (const auto* p = what.get<process>()) at.api = p->api;
    return api_of(at);
}

/// A target that answers, and what it takes to send requests to it.
class live_target {
public:
    /// `stand_in`: a model that answers instead of it, by its API.
    live_target(const any_target& t, run_arm arm, const std::optional<engine>& stand_in = {})
        : is_baseline_(arm == run_arm::baseline) {
        const box& what = t.what();
        if (stand_in) take(*stand_in, what);
        else if (const auto* p = what.get<process>()) take(*p, arm);
        else if (const auto* s = what.get<simulated_server>()) take(*s);
        else if (const auto* e = what.get<endpoint>()) take(*e);
        else take(endpoint{});
        load_.api = &api_of(at_);
        facts_.api = load_.api->name;
    }

    /// `at_most_s`: however long a process may take to be ready by its own account.
    void bring_up(double at_most_s = infinity) {
        credentials own = credentials_of(at_, *load_.api, environment(key_variable(at_).c_str()));
        if (auto* p = std::get_if<started_process>(&server_)) {
            p->keep_secrets(own);
            at_.url = p->start(*load_.api, own.secrets, at_most_s);
        } else if (auto* s = std::get_if<simulated_engine>(&server_)) {
            at_.url = s->start();
            facts_.is_virtual = current_world != nullptr;
        }
        load_.fields = filled_in(own.fields, session_placeholder, id_of_check());
        load_.session_fields = own.fields == load_.fields ? "" : std::move(own.fields);
        load_.secrets = std::move(own.secrets);
        facts_.url = str(at_.url);
        find_server();
        find_model();
        if (!page_.empty()) at_.metrics_url = filled_in(page_, "{port}", load_.url.port);
        if (std::holds_alternative<started_process>(server_)) await_first_answer();
        pages_ = pages_of(at_, load_, facts_.url);
    }
    /// That how long a cold server takes to its first answer is asked, within so many seconds, by
    /// requests of this kind. Refuses a target that is never cold, and one that is for nothing.
    void ask_first_answer(bool is_asked, const request_spec& like, double within_s) {
        const bool is_cold = std::holds_alternative<started_process>(server_) || !at_.cold.empty();
        if (is_asked && !is_cold)
            refuse({"an objective on first_answer_time is refused: the target is no process, and "
                    "no endpoint with a command that leaves it cold, endpoint{.cold = \"...\"}"});
        if (!is_asked && !at_.cold.empty())
            refuse({"endpoint.cold is a command, and no objective is on first_answer_time"});
        if (is_asked) first_like_ = like;
        first_within_s_ = within_s;
    }
    /// Before a repeat: an endpoint is left cold, and answers.
    void start_cold(const std::string& log) {
        if (!first_like_ || at_.cold.empty()) return;
        carried_command c = carried_out(str(at_.cold), load_, facts_.url, log,
                                        now_ns() + ns_of(first_within_s_));
        const bool done = c.done();
        const std::string how = !c.process ? "was not run: " + c.error
                                : c.how.empty() ? "had not ended after " +
                                                      time_text(first_within_s_)
                                                : c.how + (c.said.empty() ? "" : ": " + c.said);
        if (c.process) commands().keep(std::move(c.process));
        if (!done) throw std::runtime_error("endpoint.cold " + how);
        await_first_answer();
    }
    double take_first_answer_s() { return std::exchange(first_answer_s_, not_a_number); }
    /// A fresh process between repeats, where the scenario asks for it.
    bool restarts() const {
        const auto* p = std::get_if<started_process>(&server_);
        return p && p->restarts();
    }
    void restart() {
        end();
        bring_up();
    }
    /// Whether it is started by us, and so can be there for its turns alone.
    bool is_process() const { return std::holds_alternative<started_process>(server_); }
    /// Ends a process; it can be brought up again.
    void end() {
        if (auto* p = std::get_if<started_process>(&server_)) p->end();
    }
    /// Why it is not there any more, "" while it is.
    std::string how_it_went() {
        auto* p = std::get_if<started_process>(&server_);
        return p ? p->how_it_went(load_.secrets) : std::string();
    }
    /// Refuses a server that takes none of the requests to come. Our own one takes them all.
    void check_answers(const planned_traffic& p) {
        if (std::holds_alternative<simulated_engine>(server_)) return;
        load_.hang_ups = 0;
        for_each_part(p, [&](const plan_part& part) {
            const int seen = hang_ups_of_check(load_, part.common, facts_.url);
            load_.hang_ups = std::max(load_.hang_ups, seen);
        });
    }
    /// How long the words of made-up prompts are, once for all repeats, within 5 s.
    void learn_tokens(const plan& p, double at_most_s) {
        if (!makes_up_prompts(p)) return;
        facts_.tokens = learned_tokens(p, load_, std::min(5.0, at_most_s));
        load_.tokens = facts_.tokens;
    }
    /// Seconds that a process took to be ready, once for each start.
    double take_startup_s() {
        auto* p = std::get_if<started_process>(&server_);
        return p ? p->take_startup_s() : not_a_number;
    }
    kept_commands& commands() { return *commands_; }
    /// Where it tells of itself.
    const server_pages& pages() const { return pages_; }
    /// Refuses an objective of what its pages do not tell. A server that has served nothing yet may
    /// not name all that it counts, so it is asked for one token first.
    void check_reports_metrics(std::vector<slo> slos, const request_spec& common) const {
        std::erase_if(slos, [](const slo& s) { return !is_of_server(s.what.metric); });
        if (slos.empty()) return;
        std::string why = why_any_unreported(pages_, slos);
        if (why.empty()) return;
        ask_for_one_token(load_, common);
        why = why_any_unreported(pages_, slos);
        if (!why.empty())
            refuse({facts_.is_rehearsal ? "LLMBENCH_REHEARSE: the model has no such page; " : "",
                    why});
    }
    /// What a variable is in the environment of its process; "" of a server that runs already.
    std::string environment_value(const char* variable) const {
        const auto* p = std::get_if<started_process>(&server_);
        return p ? p->environment_value(variable) : std::string();
    }
    /// How its process is started; "" of a server that runs already.
    std::string command() const {
        const auto* p = std::get_if<started_process>(&server_);
        return p ? p->command() : std::string();
    }
    /// Of a simulated one, else null.
    const engine* model() const {
        const auto* s = std::get_if<simulated_engine>(&server_);
        return s ? &s->settings : nullptr;
    }
    /// Tokens that a prompt and its answer have at most, of a model by its name in requests, "" of
    /// those that name the target's; 0 where it is not listed with that.
    int room_of(const std::string& model) const {
        const std::string& asked = model.empty() ? load_.model : model;
        for (const listed_model& m : models_)
            if (m.name == asked) return m.room;
        return 0;
    }
    const load_target& load() const { return load_; }
    const target_facts& facts() const { return facts_; }

private:
    void take(const process& p, run_arm arm) {
        server_.emplace<started_process>(p, arm);
        facts_.kind = target_kind::process;
        at_.api = p.api;
        page_ = str(p.metrics_url);
        at_.telemetry = p.telemetry;
        at_.model = p.model.empty() ? text(environment("LLMBENCH_MODEL")) : p.model;
    }
    void take(const simulated_server& s) {
        server_.emplace<simulated_engine>(simulated_engine{.settings = s.settings});
        facts_.kind = target_kind::simulated;
    }
    void take(const engine& model, const box& instead_of) {
        take(simulated_server{model});
        if (const auto* e = instead_of.get<endpoint>()) at_.api = e->api;
        if (const auto* p = instead_of.get<process>()) at_.api = p->api;
        at_.model = "simulated";
        facts_.is_rehearsal = true;
    }
    void take(const endpoint& e) {
        facts_.kind = target_kind::endpoint;
        at_ = e;
        if (e.url.empty()) at_.url = environment(url_variable());
        if (e.model.empty()) at_.model = environment("LLMBENCH_MODEL");
        if (at_.url.empty() && is_baseline_)
            refuse({"no baseline: set LLMBENCH_BASELINE_URL, which a baseline without a URL takes, "
                    "or give the scenario .baseline = endpoint{.url = \"http://...\"}; .baseline = "
                    "same_server() is an A/A run"});
        if (at_.url.empty())
            refuse({"no target: set LLMBENCH_URL, or give the scenario .target = endpoint{.url = "
                    "\"http://...\"}, or .target = simulated()"});
    }
    const char* url_variable() const {
        return is_baseline_ ? "LLMBENCH_BASELINE_URL" : "LLMBENCH_URL";
    }
    /// From the spawn of a process, or from now on, until it has answered a request of one token.
    void await_first_answer() {
        if (!first_like_) return;
        const auto* p = std::get_if<started_process>(&server_);
        const long long from_ns = p ? p->began_ns() : now_ns();
        const long long until_ns = now_ns() + ns_of(first_within_s_);
        for (;;) {
            const http_answer a = ask_for_one_token(load_, *first_like_, seconds_until(until_ns));
            first_answer_s_ = static_cast<double>(now_ns() - from_ns) * 1e-9;
            if (a.status >= 200 && a.status < 300) return;
            if (now_ns() >= until_ns || stop_asked.load())
                throw no_server(facts_.url + " had not answered its first request within " +
                                time_text(first_within_s_) + ": " +
                                (a.status == 0 ? words_of_others(a.error, load_)
                                               : printed("HTTP %d", a.status)));
            sleep_s(0.05);
        }
    }
    void find_server() {
        const bool is_set = environment(url_variable()) == facts_.url;
        const http_url url = parsed_url(facts_.url, is_set ? url_variable() : "endpoint.url");
        static_cast<http_server&>(load_) = server_at(url);
        facts_.tls = tls_trust::no_tls;
        if (url.tls) {
            load_.tls = std::make_shared<tls_client>(at_.tls, url);
            facts_.tls = at_.tls.verify ? tls_trust::verified : tls_trust::not_verified;
        }
        proxy_ = ignored_proxy(load_.url, environment);
        facts_.notes.clear();
        if (!proxy_.empty()) facts_.notes.push_back(proxy_);
        try {
            load_.addresses.in_order();
        } catch (const std::runtime_error& e) {
            throw no_server(facts_.url + ": " + e.what() + (proxy_.empty() ? "" : "; " + proxy_));
        }
    }
    /// The model named, else the only one that the server lists. A server that does not answer is
    /// heard of here in either case.
    void find_model() {
        const http_answer first = first_answer(load_, facts_.url, proxy_);
        models_ = listed_models(*load_.api, first);
        load_.model = at_.model.empty() ? only_model(load_, first, facts_.url) : str(at_.model);
        if (const std::string note = unlisted_text(load_, first); !note.empty())
            facts_.notes.push_back(facts_.url + ": " + note);
        facts_.model = printable(without_secrets(load_.model, load_.secrets));
        for (const auto& [path, to] : {std::pair{load_.api->path, &load_.path},
                                       std::pair{load_.api->whole_path, &load_.whole_path}})
            *to = request_path(*load_.api, path, load_.url.path, load_.model);
    }

    bool is_baseline_ = false;
    std::variant<running_already, started_process, simulated_engine> server_{};
    endpoint at_{};  // what the server is once it is up
    load_target load_{};
    target_facts facts_{};
    std::vector<listed_model> models_{};
    std::string proxy_{};  // what is to be said of one that is not used
    std::string page_{};  // of a process, whose port is not known yet
    server_pages pages_{};
    std::optional<request_spec> first_like_{};  // where its first answer is waited for
    double first_within_s_ = 0, first_answer_s_ = not_a_number;
    std::unique_ptr<kept_commands> commands_ = std::make_unique<kept_commands>();
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
