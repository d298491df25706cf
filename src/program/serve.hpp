// llmbench serve: a server that knows the truth
#pragma once

#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/traffic/lengths.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/signals.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "program/arguments.hpp"
#include "program/run_options.hpp"
#include "program/serve_host.hpp"
#include "program/serve_log.hpp"
#include "program/serve_service.hpp"
#include "program/values.hpp"

#include <cstring>  // memcpy
#include <iostream>  // cerr
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>  // move

namespace llmbench_program {

inline constexpr const char* engine_options[] = {
    "--slots",       "--decode-step",   "--step-per-sequence", "--prefill", "--prefill-budget",
    "--queue-limit", "--max-model-len", "--block-size",        "--jitter"};

inline time_distribution pace_of(const given& g) {
    const time_distribution d = pause_of(g);
    if (!is_sound(d)) g.refuse_as("a time from 0 to a day, with the lower end first");
    return d;
}
inline engine engine_of(const given_options& o) {
    engine e;
    set(e.slots, o, "--slots", whole_up_to(1000000000));
    set(e.decode_step, o, "--decode-step", time_of);
    set(e.step_per_sequence, o, "--step-per-sequence", time_of);
    set(e.prefill_per_token, o, "--prefill", time_of);
    set(e.prefill_budget, o, "--prefill-budget", whole_up_to(1000000000));
    set(e.queue_limit, o, "--queue-limit", whole_up_to(1000000000));
    set(e.max_model_len, o, "--max-model-len", whole_up_to(1000000000));
    set(e.kv.block_tokens, o, "--block-size", whole_up_to(1000000));
    set(e.tokens_per_event, o, "--tokens-per-event", whole_up_to(1000));
    set(e.seed, o, "--seed", whole_up_to(1000000000));
    if (o.has("--jitter")) e.jitter = fraction_of(o.one("--jitter")).value;
    set(e.reasoning, o, "--reasoning", fraction_of);
    set(e.faults.error_rate, o, "--fail", fraction_of);
    set(e.faults.reset_rate, o, "--drop", fraction_of);
    set(e.faults.stall_rate, o, "--stall", fraction_of);
    check_engine(e);
    return e;
}
inline serving serving_of(const given_options& o) {
    serving s{.model = engine_of(o)};
    const char* named = nullptr;
    for (const char* option : engine_options)
        if (o.has(option)) named = option;
    if (!named) {
        s.model.prefix_cache = false;
        s.paced.emplace();
        set(s.paced->first, o, "--first", pace_of);
        set(s.paced->every, o, "--every", pace_of);
    }
    for (const char* option : {"--first", "--every"})
        if (named) one_of(o, {option, named}, "a server answers at a pace, or as an engine does");
    set(s.tokens, o, "--tokens", lengths_of);
    if (s.tokens && s.tokens->kind == length_distribution::shape::empirical)
        o.one("--tokens").refuse_as("a number of tokens, uniform, normal or lognormal");
    const std::string usage = o["--usage"];
    if (usage == "always") s.usage = usage_sent::always;
    else if (usage == "never") s.usage = usage_sent::never;
    else if (!usage.empty() && usage != "asked")
        o.one("--usage").refuse_as("asked, always or never");
    check_fit(o, {{o.has("--fail"), " is of the requests that are refused: it needs --fail P%",
                   {"--status"}}});
    if (o.has("--status")) s.error_status = static_cast<int>(whole_of(o.one("--status"), 400, 599));
    return s;
}
inline std::string serving_text(const serving& s) {
    if (!s.paced) return engine_text(s.model);
    return "paced: the first event after " + distribution_text(s.paced->first) +
           ", the others every " + distribution_text(s.paced->every) +
           printed(", %lld tokens an event", static_cast<long long>(s.model.tokens_per_event));
}

inline address listening_address(const given& host, int port) {
    const looked_up found = look_up(host.text.c_str(), std::to_string(port).c_str(),
                                    AI_NUMERICHOST | AI_PASSIVE);
    if (found.error != 0 || found.found.empty())
        host.refuse_as("an IP address of this machine, such as 127.0.0.1 or 0.0.0.0");
    return found.found[0];
}
inline std::string lateness_text(const lateness& l) {
    std::string s = printed("%llu hand-overs, late: p99 %s, max %s",
                            static_cast<unsigned long long>(l.late.count()),
                            time_text(l.late.quantile(0.99)).c_str(),
                            time_text(l.late.max()).c_str());
    if (l.is_late())
        s += "\nthe server was late: its pace was not what was asked for, and this machine holds "
             "fewer streams; the log has the true times";
    if (l.waited > 0)
        s += printed("\n%llu writes waited for a client that does not read fast enough; their "
                     "times are those of the attempt", static_cast<unsigned long long>(l.waited));
    return s;
}

inline int serve(const given_options& o) {
    const serving what = serving_of(o);
    const int port = o.has("--port") ? static_cast<int>(whole_of(o.one("--port"), 0, 65535)) : 8000;
    const given host{"--host", o.has("--host") ? o["--host"] : "127.0.0.1"};
    const address at = listening_address(host, port);
    std::optional<tls_identity> tls;
    check_fit(o, {{o.has("--key"), " is of https://: it needs --key FILE", {"--cert"}},
                  {o.has("--cert"), " is of https://: it needs --cert FILE", {"--key"}}});
    if (o.has("--cert")) tls.emplace(o["--cert"], o["--key"]);
    const interrupt_guard signals;
    std::optional<serving_host> server;
    try {
        server.emplace(what, at, std::move(tls));
    } catch (const std::runtime_error& e) {
        std::cerr << "llmbench: cannot serve on port " << port << ": " << e.what() << "\n";
        return 1;
    }
    truth_log log;  // when the port is ours: a second server must not empty the log of the first
    if (o.has("--log")) log = truth_log(o["--log"], serving_text(what));
    say("listening on " + std::string(o.has("--cert") ? "https://" : "http://") +
        (host.text.find(':') == std::string::npos ? host.text : "[" + host.text + "]") + ":" +
        std::to_string(server->port()) + "\n");
    bool has_told = false;
    const auto write = [&] {
        for (const served_request& r : server->take().requests) log.add(r);
        log.flush();
        if (!log.error().empty() && !std::exchange(has_told, true))
            std::cerr << "llmbench: --log: " << log.error() << "\n";
    };
    while (!stop_asked.load() && server->error().empty()) {
        sleep_s(0.02);
        write();
    }
    server->stop();
    write();
    const lateness late = server->take().late;
    log.end(late);
    say(plural(log.requests(), "request") + ", " + lateness_text(late) + "\n");
    if (const std::string why = server->error(); !why.empty()) {
        std::cerr << "llmbench: the server ended: " << why << "\n";
        return 1;
    }
    return log.error().empty() ? 0 : 1;
}

inline verb serve_verb() {
    return {
        "serve",
        "A server whose times are known, to try a client or a gate",
        {{"Where",
          {{"--port", "N", "default: 8000; 0: a free one"},
           {"--host", "ADDRESS", "to listen at; default: 127.0.0.1"},
           {"--cert", "FILE", "https://, with this certificate in PEM, and its --key"},
           {"--key", "FILE", "of the certificate, in PEM"},
           {"--log", "FILE", "the truth: a line for each request"}}},
         {"At a pace",
          {{"--first", "TIME",
            "of the first event after the request; default: 50ms; also\n"
            "uniform(40ms, 60ms), lognormal(50ms, 0.5)"},
           {"--every", "TIME", "between events; default: 10ms; 0: as fast as it goes"}}},
         {"As an engine, which one of these asks for",
          {{"--slots", "N", "running sequences at most; default: 32"},
           {"--decode-step", "TIME", "of a step; default: 12ms"},
           {"--step-per-sequence", "TIME", "more for each running one; default: 0.1ms"},
           {"--prefill", "TIME", "more for each prompt token; default: 0.06ms"},
           {"--prefill-budget", "N", "tokens of a step; default: 2048"},
           {"--queue-limit", "N", "waiting requests, 429 beyond; default: no limit"},
           {"--max-model-len", "N", "tokens of prompt and answer; default: 32768"},
           {"--block-size", "N", "tokens of a block of the prefix cache; default: 16"},
           {"--jitter", "P%", "of a step's time; default: 2%"}}},
         {"Answers",
          {{"--tokens", "LENGTHS",
            "where a request forces none: 100, uniform(64, 900), lognormal(128, 0.6);\n"
            "default: as many as it allows, 100 if it does not say"},
           {"--tokens-per-event", "N", "default: 1"},
           {"--reasoning", "P%", "of an answer's tokens, at its start"},
           {"--usage", "WHEN", "asked (default), always, never"},
           {"--seed", "N", "of what is drawn; default: 1"}}},
         {"Faults",
          {{"--fail", "P%", "of the requests, refused with --status"},
           {"--status", "N", "default: 500"},
           {"--drop", "P%", "of the answers, reset after the first content"},
           {"--stall", "P%", "of the answers, nothing follows the first content"}}}},
        "Examples:\n"
        "  llmbench serve --port 8000 --first 50ms --every 10ms --log truth.jsonl\n"
        "  llmbench serve --slots 32 --decode-step 12ms --fail 2%\n"
        "It speaks all APIs of llmbench, lists its model, and has /health, /tokenize and\n"
        "/metrics (of vLLM). Ctrl-C ends it with its log complete.\n"
        "Exit codes: 0 ended, 1 the port or the log cannot be used, 2 refused.",
        serve};
}

}  // namespace llmbench_program
