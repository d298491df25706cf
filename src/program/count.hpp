// llmbench count: what a load costs a server, and the gate to paste
#pragma once

#include "api/scenario.hpp"
#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/judging/cross_check.hpp"
#include "core/measured/server_values.hpp"
#include "core/planning/planning.hpp"
#include "core/server_metrics/server_names.hpp"
#include "core/wire/url.hpp"
#include "effects/gates/gate_servers.hpp"
#include "effects/gates/slot.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/server_pages.hpp"
#include "extensions/work/api.hpp"
#include "extensions/work/core/judged.hpp"
#include "extensions/work/core/objective.hpp"
#include "extensions/work/foresee.hpp"
#include "program/arguments.hpp"
#include "program/count_text.hpp"
#include "program/run_options.hpp"
#include "program/values.hpp"

#include <algorithm>  // max
#include <optional>
#include <stdexcept>  // invalid_argument, runtime_error
#include <string>
#include <utility>  // move

namespace llmbench_program {

/// Finds the path by which a server forgets what its prefix cache has.
inline void find_reset(counted_work& w, const live_target& target) {
    constexpr double within_s = 10;
    const load_target& to = target.load();
    for (const char* path : {"/reset_prefix_cache", "/flush_cache"}) {
        const http_answer a =
            blocking_post(to, inquiry_path(to, path), to.fields, "{}", within_s);
        const std::string fault = fault_of_post(a, to);
        if (fault.empty()) w.reset = path;
        if (fault.empty()) return;
        const bool is_no_path = a.status == 404 || a.status == 405 || a.status == 501;
        if (!is_no_path && w.reset_fault.empty())
            w.reset_fault = joined({"POST ", path, " ", fault});
    }
}
inline scenario load_of(const counted_work& w, const any_target& server, const slo& objective) {
    scenario s{.target = server,
               .workload = conversations{.turns = fixed(w.turns),
                                         .user_tokens = fixed(w.prompt_tokens),
                                         .output_tokens = fixed(w.answer_tokens)},
               .arrivals = closed_loop(w.users),
               .requests = w.requests(),
               .slos = {objective}};
    if (!w.reset.empty()) s.prepare.push_back(post(w.reset));
    if (w.is_primed()) s.prepare.push_back(prime());
    return s;
}
/// Why nothing is expected of prompts on this server, "" if it is.
inline std::string why_no_model(const counted_work& w, const any_target& server,
                                const live_target& target) {
    if (!w.is_reset())
        return w.reset_fault.empty() ? "nothing empties the server's prefix cache before a load"
                                     : "the server's prefix cache was not emptied: " +
                                           w.reset_fault;
    try {
        const scenario s = load_of(w, server, cached_tokens == expected);
        detail::check_counters(target, planned(s, 1));
    } catch (const std::invalid_argument& e) {
        const std::string why = e.what(), mark = " is refused: ";
        const std::size_t at = why.find(mark);
        return at == std::string::npos ? why : why.substr(at + mark.size());
    }
    return {};
}
inline repeat_data counted_load(const plan& p, live_target& target, int number) {
    const slot_host host{.what = p, .candidate = target};
    const slot load{.number = number, .is_kept = false};
    variant_repeats variants = orders_of(host, load);
    make_ready(load, variants);
    page_watch watch(target.pages(), {}, page_use::work);
    slot_seen seen = run_slot(load, variants);
    repeat_data d = std::move(seen.repeats.at(0));
    d.server = watch.metrics(cross_check_of(d).finished);
    detail::foresee(p, target, d);
    return d;
}
/// Adds a load to the rows. Returns why it cannot be counted, "" if it can.
inline std::string add_load(counted_work& w, const repeat_data& d) {
    const auto statistic_of = [](const char* name) { return slo_of({.what = name}).statistic; };
    if (std::string fault = fault_of_count(d, statistic_of("generated_tokens")); !fault.empty())
        return fault;
    for (std::size_t i = 0; i < std::size(count_names); ++i) {
        const std::string name = count_names[i].name;
        const statistic_data what = statistic_of(count_names[i].name);
        if (w.rows.size() <= i) w.rows.push_back({.name = name});
        w.rows[i].seen.push_back(work_of(what, d));
        const bool is_known = name == "server_requests" || name == "generated_tokens" ||
                              (detail::is_of_prompts(name) && w.no_model.empty());
        w.rows[i].expected.push_back(is_known ? expected_in(d, name) : not_a_number);
    }
    if (w.no_model.empty()) w.no_model = d.foreseen.unknown;
    return {};
}
/// Which options of the server would show more.
inline vector<std::string> advice_of(const counted_work& w, const repeat_data& d) {
    vector<std::string> all;
    const bool has_no_path = !w.is_reset() && w.reset_fault.empty();
    if (has_no_path && w.server == "vLLM")
        all.push_back("Start vLLM with VLLM_SERVER_DEV_MODE=1: then POST /reset_prefix_cache "
                      "empties its prefix cache, and what is cached can be counted.");
    else if (has_no_path)
        all.push_back("This server has no path that empties its prefix cache: give its --command "
                      "in place of --url, and it is started anew before each load.");
    const bool says_cached =
        any_of(d.records, [](const record& r) { return r.cached_tokens >= 0; });
    const char* const option = w.server == "vLLM"     ? "--enable-prompt-tokens-details"
                               : w.server == "SGLang" ? "--enable-cache-report"
                                                      : nullptr;
    if (!says_cached && option)
        all.push_back("Start " + w.server + " with " + option +
                      ": then its answers say what was cached of each prompt, and a failure names "
                      "the request.");
    return all;
}

/// Sends the load twice. Returns why nothing can be counted, "" if it can.
inline std::string fault_of_loads(counted_work& w, const plan& p, live_target& target) {
    std::optional<repeat_data> last;
    for (int number = 0; number < 2; ++number) {
        say(printed("load %d of 2 ...\n", number + 1));
        try {
            last = counted_load(p, target, number);
        } catch (const std::runtime_error& e) { return e.what(); }
        if (stop_asked.load()) return "it was interrupted";
        if (std::string fault = add_load(w, *last); !fault.empty()) return fault;
    }
    w.advice = advice_of(w, *last);
    return {};
}

inline int count_work(const given_options& o) {
    if (server_is_missing(o))
        refuse({"no server is named: give --url http://127.0.0.1:8000, or --command 'llama-server "
                "-m MODEL --port {port} --metrics' for one that is to be started"});
    const interrupt_guard signals;
    given_options asked = o;
    if (o.has("--command")) asked.texts["--restart"] = {""};
    const any_target server = target_of(asked);
    counted_work w;
    w.ready = o["--ready"];
    w.api = o.has("--api") ? o["--api"] : environment("LLMBENCH_API");
    w.model = o["--model"];
    w.metrics_url = shown_url(o["--metrics-url"]);
    if (o.has("--users")) w.users = whole_of(o.one("--users"), 1, 1000);
    if (o.has("--prompt-tokens")) w.prompt_tokens = whole_of(o.one("--prompt-tokens"), 1, 1000000);
    live_target target(server, run_variant::candidate);
    target.bring_up();
    if (!target.pages().first_is_servers)
        refuse({"work is counted on the server's page of metrics, and it has none (",
                target.pages().problem, "): ", how_to_switch_on});
    w.url = target.facts().url;
    w.command = masked_command(o["--command"], target.load().secrets);
    w.server = target.pages().of;
    if (w.command.empty()) find_reset(w, target);
    w.no_model = why_no_model(w, server, target);
    const plan p = planned(load_of(w, server, server_requests == expected), 1);
    learn_of(target, *p.sent, infinity);
    target.note_load();  // what was asked is in its cache: it rests, or is started anew
    if (const std::string fault = fault_of_loads(w, p, target); !fault.empty()) {
        say("nothing can be counted: " + fault + "\n");
        return exit_code_of(gate_outcome::invalid);
    }
    erase_if(w.rows, [](const work_row& r) {
        const bool is_of_drafts = r.name == "drafted_tokens" || r.name == "accepted_tokens";
        return !r.is_reported() || (is_of_drafts && r.is_equal() && r.seen.front() == 0);
    });
    say("\n" + counted_text(w));
    return 0;
}
inline verb count_verb() {
    return {"count",
            "What a load costs a server, in tokens and steps, and the gate to paste",
            {{"Options",
              {{"--url", "URL", "the server; default: LLMBENCH_URL"},
               {"--command", "TEXT",
                "starts one before each load; {port} in it becomes a free port"},
               {"--ready", "PATH", "answers 200 once it is ready"},
               {"--model", "NAME", "default: the only one that the server lists"},
               {"--api", "NAME", "openai_chat (default) or openai_completions"},
               {"--metrics-url", "URL", "the server's Prometheus page"},
               {"--users", "N", "at a time; default: 4"},
               {"--prompt-tokens", "N", "of each message; default: 128"}}}},
            "Example:\n"
            "  llmbench count --url http://127.0.0.1:8000\n"
            "It sends 24 requests twice, after the server has emptied its prefix cache, where it\n"
            "can. Nobody else may use the server meanwhile.\n"
            "Exit codes: 0 counted, 2 refused, 3 nothing can be counted.",
            count_work};
}

}  // namespace llmbench_program
