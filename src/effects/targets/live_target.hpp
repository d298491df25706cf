// running targets
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "core/planning/target_facts.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/known_secrets.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/server_variables.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/net/exchange.hpp"
#include "effects/net/tls.hpp"
#include "effects/load/load_target.hpp"
#include "effects/targets/credentials.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/program_server.hpp"
#include "effects/targets/extension_server.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/targets/server_switch.hpp"

#include <algorithm>  // find, max, min
#include <memory>  // make_unique, unique_ptr
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // exchange, move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Throws std::invalid_argument if a gate cannot send requests to this path.
inline void check_path(const std::string& path) {
    if (!path.empty() && path.front() != '/')
        refuse({"endpoint.path is \"", printable(path, 80), "\": it must begin with a slash"});
    if (const char* const why = why_no_path(path); *why)
        refuse({"endpoint.path is \"", printable(shown_url(path), 80), "\": ", why});
}
/// Uses a path of the gate for all requests.
inline void take_path(load_target& to, const std::string& path) {
    check_path(path);
    add_query_secrets(to.secrets, path);
    to.own_path = path;
}

/// A running target, and all that is needed to send it requests.
class live_target {
public:
    /// Of no gate: it reads its variables itself.
    live_target(const any_target& t, run_variant variant)
        : live_target(t, variant, variables_of_server(variant, environment)) {}
    /// `stand_in`: a model that replaces it, with its API; a target of an extension.
    live_target(const any_target& t, run_variant variant, const server_variables& variables,
                const any_target& stand_in = {})
        : given_(variables), is_baseline_(variant == run_variant::baseline) {
        const box& what = t.what();
        if (const auto* model = stand_in.what().get<extension_value>()) take(*model, what);
        else if (const auto* p = what.get<process>()) take(*p, variant);
        else if (const auto* of_extension = what.get<extension_value>()) take(*of_extension);
        else if (const auto* e = what.get<endpoint>()) take(*e);
        else take(endpoint{});
        if (t.is_switched() && stand_in.what().empty())
            switch_ = t.switched_by().by->new_switch(t.switched_by().what);
        given_.named_key = environment(str(at_.api_key_env).c_str());
        load_.api = &api_of(at_, given_);
        facts_.api = load_.api->name;
        load_.transport = at_.transport;
        if (!at_.transport) return;
        const std::unique_ptr<own_transport> carrier(at_.transport(load_.api->name));
        if (!carrier)
            refuse({"endpoint.transport does not carry ", load_.api->name,
                    ": websocket() is for .api = openai_responses"});
        facts_.transport = str(carrier->name());
    }

    /// Refuses an address, authorities, headers, a key or a path that no request can be sent with.
    /// Asks nobody and starts nothing.
    void check() const {
        check_path(str(at_.path));
        if (process_ || own_) return;
        const http_url url = url_of();
        if (url.tls) tls_client(at_.tls, url);
        credentials_of(at_, *load_.api, given_.key_in(key_variable(at_)));
    }
    /// Makes this the baseline of `target`, which outlives it.
    void is_compared_with(const live_target& target) { compared_with_ = &target; }
    /// The URL of an endpoint, "" for others.
    std::string url_of_endpoint() const { return process_ || own_ ? "" : str(at_.url); }
    /// One of several settings. LLMBENCH_API_KEY belongs to the host of this URL, and is sent to no
    /// other.
    void takes_key_of(const std::string& url) { key_is_for_ = url; }

    /// Waits for an endpoint at the variable's URL, which the environment's command starts here, or
    /// somebody has just started. `ready`: the path, or the URL (it gets no key), that answers 200
    /// then; "": the API's path. `within_s`: 0 if the environment has no limit.
    void await_start(double within_s, const std::string& ready) {
        if (process_ || own_ || !is_at(given_.url)) return;
        if (given_.command.empty() && !(within_s > 0)) return;
        take_address(infinity);
        if (given_.command.empty()) return await_answer(within_s, ready);
        started_here_ = &program_server::of(given_.command_name);
        started_here_->start(given_.command, load_);
        try {
            await_answer(within_s > 0 ? within_s : start_limit_s, ready);
        } catch (const no_server& e) {
            refuse_to_skip(e);
        }
        const std::string how = started_here_->how_it_went();
        if (how.empty()) return;
        // A runner that cancels a job tells each of its processes, and this one may be the last.
        const auto is_told = [] { return stop_asked.load(); };
        if (comes_by(is_told, now_ns() + ns_of(0.5), 0.02)) return;
        throw std::runtime_error(how + started_here_->last_words());
    }
    /// `at_most_s`: limit on the server's time to get ready.
    void bring_up(double at_most_s = infinity) try {
        if (switch_) switch_->make_room(at_most_s);
        take_address(at_most_s);
        await_ready(std::min(at_.ready_within.seconds(), at_most_s));
        find_model();
        if (switch_) switch_->found(*this, is_process());
        if (!page_.empty()) at_.metrics_url = filled_in(page_, "{port}", load_.url.port);
        if (is_process()) await_first_answer();
        pages_ = pages_of(at_, load_, facts_.url);
    } catch (const no_server& e) {
        refuse_to_skip(e);
    }
    /// Measures the time to a cold server's first answer to requests like these, within so many
    /// seconds. Refuses a target that is never cold, or an unused command.
    void ask_first_answer(bool is_asked, const request_spec& like, double within_s) {
        const bool is_cold = is_process() || !at_.cold.empty();
        if (is_asked && !is_cold)
            refuse({"an objective on first_answer_time is refused: the target is no process, and "
                    "no endpoint with a command that leaves it cold, endpoint{.cold = \"...\"}"});
        if (!is_asked && !at_.cold.empty())
            refuse({"endpoint.cold is a command, and no objective is on first_answer_time"});
        if (is_asked) first_like_ = like;
        first_within_s_ = within_s;
    }
    /// Before a repeat: makes an endpoint cold, and waits for an answer.
    void start_cold(const std::string& log) {
        if (!first_like_ || at_.cold.empty()) return;
        carried_command c = carried_out(str(at_.cold), load_, log,
                                        now_ns() + ns_of(first_within_s_));
        const std::string fault = c.fault(first_within_s_);
        if (c.process) commands_->keep(std::move(c.process));
        if (!fault.empty()) throw std::runtime_error("endpoint.cold " + fault);
        await_first_answer();
    }
    double take_first_answer_s() { return std::exchange(first_answer_s_, not_a_number); }
    /// Before it is asked: it has its GPU for itself, if it shares one.
    void wake(const request_spec& like, double at_most_s) {
        begin_turn(run_variant::baseline, like, at_most_s);
    }
    /// The same before it is loaded.
    void begin_turn(run_variant v, const request_spec& like, double at_most_s) {
        if (!switch_) return;
        if (std::string note = switch_->begin_turn(v, like, at_most_s); !note.empty())
            facts_.notes.push_back(std::move(note));
    }
    /// Whether the scenario wants a new process for this repeat.
    bool restarts() const {
        const bool is_due = switch_ && switch_->is_due();
        return process_ && (process_->what.restart_between_repeats || is_due);
    }
    /// A server that was there and does not come back is lost, which nobody may skip.
    void restart(double at_most_s) {
        end();
        try {
            bring_up(at_most_s);
        } catch (const no_server& e) {
            throw std::runtime_error(reason_in(e));
        }
    }
    /// Whether we start it, so that it can run only in its repeats.
    bool is_process() const { return process_ != nullptr; }
    /// Whether it runs only in its turns: two may not fit side by side.
    bool ends_after_turn() const { return process_ && !switch_; }
    /// Ends a process; it can be started again.
    void end() {
        if (!process_) return;
        if (switch_) switch_->ended();
        process_->end();
        was_loaded_ = has_told_ = false;
    }
    /// Whether it had a load since it was started.
    bool was_loaded() const { return was_loaded_; }
    void note_load() { was_loaded_ = true; }
    /// After a load. Returns why it does not count, "" if it does.
    std::string end_turn() { return switch_ ? switch_->end_turn() : std::string(); }
    /// Returns why it ended, "" while it runs.
    std::string how_it_went() {
        if (process_) return process_->how_it_went();
        return started_here_ ? started_here_->how_it_went() : std::string();
    }
    /// The last lines of the log of a server of ours that ended, once, as notes.
    vector<std::string> take_last_words() {
        if (how_it_went().empty() || std::exchange(has_told_, true)) return {};
        return last_lines(process_ ? process_->log_tail() : started_here_->log_tail());
    }
    /// Refuses a server that cannot take requests like these; our own accept every request.
    void check_answers(const vector<request_spec>& like) {
        if (own_) return;
        load_.connection_resets = 0;
        for (const request_spec& first : like) {
            const load_check seen = checked_load(load_, first, facts_.url);
            load_.connection_resets = std::max(load_.connection_resets, seen.resets);
            auto& all = facts_.notes;
            if (!seen.note.empty() && std::find(all.begin(), all.end(), seen.note) == all.end())
                all.push_back(seen.note);
        }
    }
    /// Finds the word lengths of synthetic prompts once for all repeats.
    void learn_tokens(const request_spec& common, bool may_be_ids, double within_s) {
        facts_.tokens = learned_tokens(common, may_be_ids, load_, within_s);
    }
    /// Seconds until a process was ready; once per start.
    double take_startup_s() {
        return process_ ? std::exchange(process_->startup_s, not_a_number) : not_a_number;
    }
    kept_commands& commands() { return *commands_; }
    const server_pages& pages() const { return pages_; }
    /// Refuses an objective on metrics that its pages lack. A fresh server may not list all its
    /// metrics yet, so it is asked for one token first.
    void check_reports_metrics(vector<slo> slos, const request_spec& common) const {
        erase_if(slos, [](const slo& s) {
            return !is_of_server(s.statistic.metric) && !is_of_work(s.statistic.metric);
        });
        if (slos.empty()) return;
        std::string why = why_any_unreported(pages_, slos);
        if (why.empty()) return;
        ask_for_one_token(load_, common);
        why = why_any_unreported(pages_, slos);
        if (!why.empty())
            refuse({facts_.is_rehearsal ? "LLMBENCH_REHEARSE: the model has no such page; " : "",
                    why});
    }
    /// A variable of its process's environment, and its command; "" for an endpoint.
    std::string environment_value(const char* variable) const {
        return process_ ? process_->environment_value(variable) : "";
    }
    std::string command() const { return process_ ? str(process_->what.command) : ""; }
    /// Null if it has no extension.
    const extension_server* of_extension() const { return own_.get(); }
    /// The maximum of prompt and answer tokens of a model by its name in requests ("": the
    /// target's); 0: not listed.
    int room_of(const std::string& model) const {
        const std::string& asked = model.empty() ? load_.model : model;
        for (const listed_model& m : models_)
            if (m.name == asked) return m.room;
        return 0;
    }
    const load_target& load() const { return load_; }
    const target_facts& facts() const { return facts_; }

private:
    void take(const process& p, run_variant variant) {
        process_ = std::make_unique<started_process>(p, variant);
        facts_.kind = target_kind::process;
        at_.api = p.api;
        at_.path = p.path;
        page_ = str(p.metrics_url);
        at_.telemetry = p.telemetry;
        at_.transport = p.transport;
        at_.model = p.model.empty() ? text(given_.model) : p.model;
    }
    void take(const extension_value& t) {
        own_ = t.by->server(t.what);
        facts_.kind = target_kind::simulated;
    }
    void take(const extension_value& model, const box& instead_of) {
        take(model);
        if (const auto* e = instead_of.get<endpoint>()) at_.api = e->api;
        if (const auto* p = instead_of.get<process>()) at_.api = p->api;
        if (!at_.api.own().empty())
            refuse({"the API \"", traits_of(at_.api).name,
                    "\" is your own, and the model that answers in a rehearsal does not speak it"});
        at_.model = "simulated";
        facts_.is_rehearsal = true;
    }
    void take(const endpoint& e) {
        facts_.kind = target_kind::endpoint;
        at_ = e;
        if (!(e.ready_within.seconds() >= 0)) refuse({"endpoint.ready_within must not be below 0"});
        if (e.url.empty()) at_.url = given_.url;
        if (e.model.empty()) at_.model = given_.model;
        if (at_.url.empty() && is_baseline_)
            refuse({"no baseline: set LLMBENCH_BASELINE_URL, which a baseline without a URL takes, "
                    "or give the scenario .baseline = endpoint{.url = \"http://...\"}; .baseline = "
                    "otherwise{.same = true} is an A/A run"});
        if (at_.url.empty())
            refuse({"no target: set LLMBENCH_URL, or give the scenario .target = endpoint{.url = "
                    "\"http://...\"}, or .target = simulated()"});
    }
    /// Whether it is an endpoint on another host than the target that it is compared with, and must
    /// not get that one's key.
    bool is_apart_from_target() const {
        const std::string other = compared_with_ ? str(compared_with_->at_.url) : key_is_for_;
        if (other.empty() || process_ || own_) return false;
        const http_url its = parsed_url(other, "target"),
                       own = parsed_url(str(at_.url), is_baseline_ ? "baseline" : "endpoint.url");
        return !are_on_one_host(its, own);
    }
    /// Starts a process, and finds the server's address and secrets.
    void take_address(double at_most_s) {
        const bool is_elsewhere = is_apart_from_target();
        const bool is_apart = is_elsewhere || (is_baseline_ && !given_.baseline_key.empty());
        const bool has_key = is_baseline_ || !is_elsewhere || !at_.api_key_env.empty();
        const char* const usual = is_apart ? "LLMBENCH_BASELINE_API_KEY" : "LLMBENCH_API_KEY";
        const std::string secret = has_key ? given_.key_in(key_variable(at_, usual)) : "";
        credentials own = credentials_of(at_, *load_.api, secret, usual);
        own.keep_secrets_of(whole_environment());
        if (process_) process_->keep_secrets(own);
        known_secrets& known = known_secrets::of_this_program();
        known.add_sent(own.secrets);
        credentials key;
        key.keep_secret(secret);
        known.add(key.secrets);
        for (const std::string& s : known.all()) add_form(own.secrets, s);
        if (process_) {
            at_.url = process_->start(*load_.api, own.secrets, at_most_s);
        } else if (own_) {
            at_.url = own_->start();
            facts_.is_virtual = current_environment != nullptr;
        }
        load_.fields = filled_in(own.fields, session_placeholder, id_of_check());
        load_.says_accept = sets_header(at_, "Accept");
        load_.session_fields = own.fields == load_.fields ? "" : std::move(own.fields);
        load_.secrets = std::move(own.secrets);
        load_.whole_url = str(at_.url);
        facts_.url = shown_url(load_.whole_url);
        add_query_secrets(load_.secrets, load_.whole_url);
        take_path(load_, str(at_.path));
        program_server::mask_in_logs(load_.secrets);
        find_server();
        if (!has_key && !given_.key.empty())
            facts_.notes.push_back("LLMBENCH_API_KEY is not sent to " + load_.url.host +
                                   ", as it belongs to another host: name the key of this one by "
                                   "endpoint.api_key_env");
    }
    /// Whether it is an endpoint at this URL, by whatever name of this host.
    bool is_at(const std::string& url) const {
        if (url == str(at_.url)) return true;
        if (url.empty()) return false;
        const http_url asked = parsed_url(url, given_.url_name), its = url_of();
        return asked.port == its.port && asked.socket == its.socket && are_on_one_host(asked, its);
    }
    /// In a handler. A server that this program started and that is not there is no reason to skip.
    [[noreturn]] void refuse_to_skip(const no_server& e) const {
        if (!started_here_) throw;
        throw std::runtime_error(reason_in(e) + started_here_->last_words());
    }
    /// The wait of `await_start`.
    void await_answer(double within_s, const std::string& ready) {
        if (ready.empty()) return await_ready(std::max(at_.ready_within.seconds(), within_s));
        const auto is_200 = [](const http_answer& a) { return a.status == 200; };
        const long long until_ns = now_ns() + ns_of(within_s);
        if (ready.front() == '/')
            return await_at(load_, ready, load_.fields, within_s, until_ns, is_200);
        const http_url url = parsed_url(ready, "LLMBENCH_READY_PATH");
        await_at(server_at(url, url.tls ? new_shared<tls_client>(at_.tls, url) : nullptr),
                 url.path + url.query, login_line(url), within_s, until_ns, is_200);
        await_ready(std::max(seconds_until(until_ns), 0.1));  // it may be the other server's URL
    }
    /// Waits for an endpoint that may be starting or loading its model.
    void await_ready(double within_s) {
        const auto has_come = [](const http_answer& a) { return !is_on_its_way(a); };
        const long long until_ns = now_ns() + ns_of(within_s);
        for (const std::string& path : {inquiry_path(load_, load_.api->ready), first_path(load_)})
            if (within_s > 0) await_at(load_, path, load_.fields, within_s, until_ns, has_come);
    }
    void await_at(const http_server& at, const std::string& path, const std::string& fields,
                  double within_s, long long until_ns,
                  bool (*has_come)(const http_answer&)) {
        http_answer a;
        const auto is_over = [&] {
            const double left_s = std::max(seconds_until(until_ns), 0.1);
            a = blocking_get(at, path, fields, std::min(left_s, 10.0));
            return a.distrusted || has_come(a) || stop_asked.load() || !how_it_went().empty();
        };
        if (!comes_by(is_over, until_ns, 0.25))
            throw no_server(facts_.url + " was not ready within " + time_text(within_s) + ": " +
                            (a.status == 0 ? masked_words_of(a.error, load_)
                                           : quoted_answer(load_, "GET", path, a)));
    }
    /// Waits for the answer to a request of one token; counted from the spawn or from now.
    void await_first_answer() {
        if (!first_like_) return;
        const long long from_ns = process_ ? process_->began_ns : now_ns();
        const long long until_ns = now_ns() + ns_of(first_within_s_);
        std::string why;
        const auto is_over = [&] {
            const http_answer a = ask_for_one_token(load_, *first_like_, seconds_until(until_ns));
            first_answer_s_ = static_cast<double>(now_ns() - from_ns) * 1e-9;
            why = why_no_answer(load_, *first_like_, a);
            return why.empty() || stop_asked.load();
        };
        comes_by(is_over, until_ns, 0.05);
        if (!why.empty())
            throw std::runtime_error(facts_.url + " had not answered its first request within " +
                                     time_text(first_within_s_) + ": " + why);
    }
    http_url url_of() const {
        const bool is_set = given_.url == str(at_.url);
        return parsed_url(str(at_.url), is_set ? given_.url_name : "endpoint.url");
    }
    void find_server() {
        const http_url url = url_of();
        static_cast<http_server&>(load_) = server_at(url);
        facts_.tls = tls_trust::no_tls;
        if (url.tls) {
            load_.tls = new_shared<tls_client>(at_.tls, url);
            facts_.tls = at_.tls.verify ? tls_trust::verified : tls_trust::not_verified;
        }
        proxy_ = ignored_proxy(load_.url, environment);
        facts_.notes.clear();
        if (!proxy_.empty()) facts_.notes.push_back(proxy_);
        try {
            load_.addresses.in_order();
        } catch (const std::runtime_error& e) {
            throw no_server(facts_.url + ": " + reason_in(e) +
                            (proxy_.empty() ? "" : "; " + proxy_));
        }
    }
    /// Uses the named model, else the only one listed. Either way a silent server is found here.
    void find_model() {
        const http_answer first = first_answer(load_, facts_.url, proxy_);
        if (process_) facts_.command = command_for_reports(command(), load_.secrets);
        const std::string one = one_of_addresses(load_.url, load_.addresses.in_order());
        if (!one.empty()) facts_.notes.push_back(one);
        models_ = listed_models(*load_.api, first);
        load_.model = at_.model.empty() ? only_model(load_, first, facts_.url) : str(at_.model);
        if (const std::string note = unlisted_text(load_, first); !note.empty())
            facts_.notes.push_back(facts_.url + ": " + note);
        facts_.model = excerpt_without_secrets(load_.model, load_.secrets);
        for (const auto& [path, to] : {std::pair{load_.api->path, &load_.path},
                                       std::pair{load_.api->whole_path, &load_.whole_path}})
            *to = !load_.own_path.empty()
                      ? load_.own_path
                      : request_path(*load_.api, path, load_.url.path, load_.model) +
                            load_.url.query;
    }

    static constexpr double start_limit_s = 600;

    server_variables given_{};
    program_server* started_here_ = nullptr;  // of an endpoint, by the environment
    bool is_baseline_ = false, was_loaded_ = false;
    bool has_told_ = false;  // the end of its log
    const live_target* compared_with_ = nullptr;  // the target of a baseline
    std::string key_is_for_{};                    // URL of a setting's key, "" for any
    std::unique_ptr<started_process> process_{};  // of process{...}
    std::unique_ptr<extension_server> own_{};     // of an extension; endpoints have neither
    endpoint at_{};  // the server once it is running
    load_target load_{};
    target_facts facts_{};
    vector<listed_model> models_{};
    std::string proxy_{};  // a note on an unused proxy
    std::string page_{};  // of a process whose port is not known yet
    server_pages pages_{};
    std::optional<request_spec> first_like_{};  // set if its first answer is timed
    double first_within_s_ = 0, first_answer_s_ = not_a_number;
    std::unique_ptr<kept_commands> commands_ = std::make_unique<kept_commands>();
    std::unique_ptr<server_switch> switch_{};  // null: its GPU is its own; asks it at its end
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
