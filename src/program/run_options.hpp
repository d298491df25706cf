// the options of `llmbench run`, and their scenario
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "api/units.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/files/datasets.hpp"
#include "core/judging/samples.hpp"
#include "core/planning/planning.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/settings.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/capacity/api.hpp"
#include "extensions/faults/api.hpp"
#include "extensions/history/api.hpp"
#include "extensions/sessions/api.hpp"
#include "extensions/websocket/api.hpp"
#include "program/slo_text.hpp"
#include "program/values.hpp"

#include <algorithm>  // max
#include <initializer_list>
#include <iterator>  // begin
#include <stdexcept>  // invalid_argument
#include <string>

namespace llmbench_program {

/// Sets a value if its option is given.
template <class Read, class To>
void set(To& to, const given_options& o, const char* option, Read&& read) {
    if (o.has(option)) to = read(o.one(option));
}
inline auto whole_up_to(long long most) {
    return [=](const given& g) { return whole_of(g, 1, most); };
}
/// Whether these options fit the others, and why they do not.
struct fitting_options {
    bool fit;
    const char* why;
    vector<const char*> options;
};
/// Refuses the first option that is given and does not fit.
inline void check_fit(const given_options& o, std::initializer_list<fitting_options> all) {
    for (const fitting_options& f : all)
        for (const char* option : f.options)
            if (!f.fit && o.has(option)) refuse({option, f.why});
}
/// The one of these options that is given; null without any. Refuses two.
inline const char* one_of(const given_options& o, std::initializer_list<const char*> options,
                          const char* advice = "give one") {
    const char* given = nullptr;
    for (const char* option : options) {
        if (!o.has(option)) continue;
        if (given) refuse({given, " and ", option, " are both given: ", advice});
        given = option;
    }
    return given;
}

/// The one of these that has the given name.
template <class T, class Name>
T named(const given& g, std::initializer_list<T> all, const Name& name) {
    std::string names;
    for (const T x : all) {
        if (g.text == name(x)) return x;
        names += (names.empty() ? "" : ", ") + std::string(name(x));
    }
    g.refuse_as("one of " + names);
}
inline dataset_format format_of(const given& g) {
    return named(g, {sharegpt, dolly, openai_jsonl, coco_captions, text_lines},
                 [](dataset_format f) { return format_name(f); });
}
inline question_format question_format_of(const given& g) {
    return named(g, {gsm8k, qa_jsonl}, [](question_format f) {
        return f == gsm8k ? "gsm8k" : "qa_jsonl";
    });
}
inline answer_grader grader_of(const given& g) {
    return named(g, {exact, last_number, choice}, [](answer_grade x) {
        return x == exact ? "exact" : x == choice ? "choice" : "last_number";
    });
}
/// An option has precedence over LLMBENCH_API, which is read here alone.
inline api_format api_of(const given_options& o) {
    const given option = o.has("--api") ? o.one("--api")
                                        : given{"LLMBENCH_API", environment("LLMBENCH_API")};
    if (option.text.empty()) return openai_chat;
    const api_traits* const api = api_named(option.text);
    if (api == nullptr) option.refuse_as("one of " + api_names());
    return static_cast<api_format>(api - std::begin(apis));
}

inline slo_list slos_of(const vector<std::string>& texts) {
    slo_list all;
    for (const std::string& t : texts) try {
            all.push_back(parse_slo(t));
        } catch (const std::invalid_argument& e) { refuse({"--slo: ", e.what()}); }
    return all;
}

/// How requests are sent: over HTTP without it.
inline new_transport transport_of(const given_options& o) {
    check_fit(o, {{api_of(o) == openai_responses, " needs --api openai_responses",
                   {"--websocket", "--server-history"}}});
    return o.has("--websocket") ? websocket() : nullptr;
}
/// Sets what servers that run and those that are started have alike.
template <class Server>
void set_server(Server& s, const given_options& o) {
    s.model = o["--model"];
    s.api = api_of(o);
    s.path = o["--path"];
    s.transport = transport_of(o);
    s.metrics_url = o["--metrics-url"];
    for (const std::string& page : o.all("--telemetry-url")) s.telemetry.push_back(page);
    set(s.ready_within, o, "--ready-within", time_of);
}
/// The server that this option names. Target and baseline are made here alone, so that both are
/// sent the same requests.
inline endpoint endpoint_of(const given_options& o, const char* url) {
    endpoint e{.url = o[url]};
    set_server(e, o);
    e.api_key_env = o["--key-variable"];
    for (const std::string& h : o.all("--header"))
        e.headers.push_back(pair_of({"--header", h}, ':', "such as 'X-Tenant: blue'"));
    e.tls.verify = !o.has("--insecure");
    e.tls.ca_file = o["--ca-file"];
    e.cold = o["--cold"];
    e.tls.cert_file = o["--cert"];
    e.tls.key_file = o["--key"];
    return e;
}

/// A rehearsal needs no server.
inline bool server_is_missing(const given_options& o) {
    return !o.has("--url") && !o.has("--command") && environment("LLMBENCH_URL").empty() &&
           rehearsal_asked(environment).empty();
}
inline any_target target_of(const given_options& o) {
    one_of(o, {"--url", "--command"},
           "name a server that runs, or the command that starts one");
    const bool starts = o.has("--command");
    check_fit(o, {{!starts, " is of a server that runs already: with --command leave it out",
                   {"--header", "--key-variable", "--ca-file", "--cert", "--key", "--insecure",
                    "--cold"}},
                  {starts, " is of a server that is started: it needs --command",
                   {"--ready", "--env", "--directory", "--restart"}}});
    if (starts) {
        process p{.command = o["--command"], .ready = o["--ready"]};
        for (const std::string& e : o.all("--env"))
            p.env.push_back(pair_of({"--env", e}, '=', "such as NAME=value"));
        p.working_directory = o["--directory"];
        p.restart_between_repeats = o.has("--restart");
        set_server(p, o);
        return p;
    }
    return endpoint_of(o, "--url");
}

/// As in C++: "constant(8rps)", "steps(2rps 30s, 8rps 30s)", "replay(trace.csv)".
inline arrival_pattern pattern_of(const given& g) {
    static constexpr const char* allowed =
        "poisson(RATE), constant(RATE), gamma(RATE, BURSTINESS), ramp(FROM, TO, TIME), "
        "steps(RATE TIME, ...), replay(FILE), closed_loop(USERS) or all_at_once()";
    const auto c = call_in(g.text);
    if (!c) g.refuse_as(allowed);
    const vector<std::string>& a = c->arguments;
    const auto open = [&](auto&& make) -> arrival_pattern {
        const auto r = load_in(a[0], rate_in);
        if (!r) g.refuse_as(allowed);
        return r->is_searched ? arrival_pattern(make(up_to(request_rate(r->value))))
                              : arrival_pattern(make(request_rate(r->value)));
    };
    if (c->name == "all_at_once" && a.empty()) return all_at_once();
    if (c->name == "closed_loop" && a.size() == 1) return users_of({g.option, a[0]});
    if (c->name == "replay" && a.size() == 1) return replay(a[0]);
    if (c->name == "poisson" && a.size() == 1) return open([](auto r) { return poisson(r); });
    if (c->name == "constant" && a.size() == 1) return open([](auto r) { return constant(r); });
    if (c->name == "gamma" && a.size() == 2)
        if (const auto b = parsed_number<double>(a[1]))
            return open([&](auto r) { return gamma(r, *b); });
    if (c->name == "ramp" && a.size() == 3) {
        const auto from = rate_in(a[0]), to = rate_in(a[1]);
        const auto over = time_in(a[2]);
        if (from && to && over)
            return ramp(request_rate(*from), request_rate(*to), time_span::from_seconds(*over));
    }
    if (c->name == "steps" && !a.empty()) {
        list<load_step> stages;
        for (const std::string& stage : a) {
            const std::size_t blank = stage.rfind(' ');
            const auto rate = rate_in(std::string_view(stage).substr(0, blank));
            const auto lasts =
                blank == std::string::npos ? std::nullopt : time_in(stage.substr(blank + 1));
            if (!rate || !lasts) g.refuse_as(allowed);
            stages.push_back({request_rate(*rate), time_span::from_seconds(*lasts)});
        }
        arrival_data d;
        d.kind = arrival_kind::steps;
        d.rate = stages[0].rate.per_second;
        d.stages = stages;
        return open_loop(d);
    }
    g.refuse_as(allowed);
}

inline arrival_pattern arrivals_of(const given_options& o) {
    if (o.has("--users") + o.has("--rate") + o.has("--arrivals") > 1)
        refuse(
            {"two of --users, --rate and --arrivals are given: each says when requests are "
             "sent, give one"});
    arrival_data d = closed_loop(1).data();
    set(d, o, "--users", [](const given& g) { return users_of(g).data(); });
    set(d, o, "--rate", [](const given& g) { return rate_of(g).data(); });
    set(d, o, "--arrivals", [](const given& g) { return pattern_of(g).data(); });
    const bool closed = d.kind == arrival_kind::closed_loop;
    const bool replays = d.kind == arrival_kind::replay;
    const bool is_burst = d.kind == arrival_kind::all_at_once;
    check_fit(o, {{closed, " needs --users", {"--think"}},
                  {closed,
                   " needs --users; a rate that rises is --arrivals 'ramp(1rps, 8rps, 2min)'",
                   {"--ramp"}},
                  {!closed, " needs --rate or --arrivals", {"--max-in-flight"}},
                  {replays, " needs --arrivals 'replay(FILE)'", {"--speed", "--time-unit"}},
                  {is_burst, " needs --arrivals 'all_at_once()'", {"--hold", "--release"}},
                  {o.has("--release"), " needs --release", {"--hold"}},
                  {o.has("--hold"), " needs --hold", {"--release"}}});
    if (o.has("--hold")) d.held = {post(o["--hold"]), post(o["--release"])};
    set(d.think, o, "--think", pause_of);
    set(d.users_ramp_s, o, "--ramp", [](const given& g) { return time_of(g).seconds(); });
    set(d.max_in_flight, o, "--max-in-flight", whole_up_to(1000000));
    if (closed) {
        closed_loop_users users =
            d.is_searched ? closed_loop(up_to(d.users)) : closed_loop(d.users);
        return users.think(d.think).ramp(time_span::from_seconds(d.users_ramp_s));
    }
    if (!replays) return open_loop(d);
    trace_replay r = replay(d.file).max_in_flight(d.max_in_flight);
    if (o.has("--speed")) r = r.speed(number_of(o.one("--speed")));
    if (o.has("--time-unit")) r = r.unit(time_of(o.one("--time-unit")));
    return r;
}

/// The option that names what prompts are read from; null: they are made up.
inline const char* source_of(const given_options& o) {
    return one_of(o, {"--dataset", "--prompt", "--questions", "--sessions"});
}
inline void check_workload(const given_options& o) {
    const char* const source = source_of(o);
    const std::string from = source ? source : "";
    const bool is_dataset = from == "--dataset", is_questions = from == "--questions";
    const bool is_prompt = from == "--prompt";
    check_fit(
        o,
        {{is_dataset || is_questions, " needs --dataset or --questions", {"--format"}},
         {is_dataset, " needs --dataset",
          {"--unsalted", "--images", "--min-prompt-tokens", "--max-prompt-tokens",
           "--min-output-tokens", "--max-output-tokens"}},
         {is_questions, " needs --questions", {"--grade", "--before", "--after"}},
         {from == "--sessions", " needs --sessions", {"--max-wait", "--max-context", "--session-model"}},
         {source && !is_prompt, " needs --dataset, --questions or --sessions", {"--max-items"}},
         {!source || is_dataset, " needs a dataset, or made-up prompts", {"--turns"}},
         {o.has("--turns"), " needs --turns", {"--turn-pause"}},
         {o.has("--turns") && !source, " needs --turns, and made-up prompts",
          {"--own-prefix", "--subagents"}},
         {o.has("--subagents"), " needs --subagents", {"--helpers", "--helper-turns"}},
         {!source,
          " needs made-up prompts: leave --dataset, --prompt, --questions and --sessions out",
          {"--prompt-tokens", "--prefix-tokens"}},
         {o.has("--prefix-tokens") && !o.has("--turns"),
          " needs --prefix-tokens, and no --turns", {"--prefix-groups", "--prefix-share"}},
         {!source, " needs made-up prompts; elsewhere --max-tokens ends answers",
          {"--output-tokens"}},
         {!is_prompt && !is_questions,
          " needs answers of a given length, which --prompt and --questions have not",
          {"--own-length"}}});
}
inline any_workload workload_of(const given_options& o) {
    check_workload(o);
    const bool is_forced = !o.has("--own-length");
    const auto most_items = [&](types::maybe<int>& to) {
        if (o.has("--max-items"))
            to = static_cast<int>(whole_of(o.one("--max-items"), 1, 1000000000));
    };
    if (o.has("--prompt")) {
        list<text> items;
        for (const std::string& p : o.all("--prompt")) items.push_back(p);
        return prompts(items);
    }
    if (o.has("--questions")) {
        questions q{.path = o["--questions"], .before = o["--before"], .after = o["--after"]};
        set(q.format, o, "--format", question_format_of);
        set(q.grade, o, "--grade", grader_of);
        most_items(q.max_items);
        return q;
    }
    if (o.has("--sessions")) {
        sessions s{.path = o["--sessions"], .force_output = is_forced};
        set(s.max_wait, o, "--max-wait", time_of);
        set(s.max_context, o, "--max-context", whole_up_to(100000000));
        for (const std::string& m : o.all("--session-model")) {
            const name_value names =
                pair_of({"--session-model", m}, '=', "such as claude-opus-4=my-model");
            s.models.push_back({names.name, names.value});
        }
        most_items(s.max_items);
        return s;
    }
    if (o.has("--dataset")) {
        dataset d{.path = o["--dataset"]};
        set(d.format, o, "--format", format_of);
        set(d.max_turns, o, "--turns", whole_up_to(1000));
        set(d.think, o, "--turn-pause", pause_of);
        set(d.min_prompt_tokens, o, "--min-prompt-tokens", whole_up_to(100000000));
        set(d.max_prompt_tokens, o, "--max-prompt-tokens", whole_up_to(100000000));
        set(d.min_output_tokens, o, "--min-output-tokens", whole_up_to(100000000));
        set(d.max_output_tokens, o, "--max-output-tokens", whole_up_to(100000000));
        d.images = o["--images"];
        d.force_output = is_forced;
        d.salted = !o.has("--unsalted");
        most_items(d.max_items);
        return d;
    }
    if (o.has("--turns")) {
        conversations c;
        set(c.turns, o, "--turns", lengths_of);
        set(c.user_tokens, o, "--prompt-tokens", lengths_of);
        set(c.output_tokens, o, "--output-tokens", lengths_of);
        set(c.system_tokens, o, "--prefix-tokens", lengths_of);
        set(c.think, o, "--turn-pause", pause_of);
        c.shared_system_prompt = !o.has("--own-prefix");
        set(c.subagents, o, "--subagents", fraction_of);
        set(c.helpers, o, "--helpers", lengths_of);
        set(c.helper_turns, o, "--helper-turns", lengths_of);
        c.force_output = is_forced;
        return c;
    }
    synthetic s;
    set(s.prompt_tokens, o, "--prompt-tokens", lengths_of);
    set(s.output_tokens, o, "--output-tokens", lengths_of);
    set(s.shared_prefix, o, "--prefix-tokens", lengths_of);
    set(s.prefix_groups, o, "--prefix-groups", whole_up_to(1000000));
    set(s.prefix_fraction, o, "--prefix-share", fraction_of);
    s.force_output = is_forced;
    return s;
}
inline request_options options_of(const given_options& o) {
    request_options r;
    set(r.max_tokens, o, "--max-tokens",
        [](const given& g) { return static_cast<int>(whole_of(g, 1, 10000000)); });
    set(r.temperature, o, "--temperature", number_of);
    r.system_prompt = o["--system-prompt"];
    r.ignore_eos = o.has("--ignore-eos");
    r.stream = !o.has("--no-stream");
    r.events_are_tokens = o.has("--events-are-tokens");
    r.include_usage = !o.has("--no-usage");
    r.continuous_usage = o.has("--continuous-usage");
    r.server_history = o.has("--server-history");
    r.max_tokens_field = o["--max-tokens-field"];
    set(r.documents, o, "--documents", whole_up_to(1000000));
    r.extra_body = o["--extra-body"];
    set(r.cancel_after, o, "--cancel-after", time_of);
    return r;
}

inline stop_when stop_of(const given& g) {
    if (g.text == "first_miss") return at_first_miss;
    if (g.text != "all_decided") g.refuse_as("first_miss or all_decided");
    return stop_when::all_decided;
}

inline bool asks_for_capacity(const scenario& s) {
    return detail::any_of(s.slos, [](const slo& x) { return is_capacity(x.statistic.metric); });
}
/// Whether a gate is judged, or the most load that holds its objectives is searched.
inline scenario_use use_of(const scenario& s) {
    return s.arrivals.data().is_searched && !asks_for_capacity(s) ? scenario_use::find_capacity
                                                                  : scenario_use::gate;
}
/// The default: as many as the objectives need, four turns of every user, at least 100.
inline long long usual_requests(const scenario& s) {
    long long n = 100;
    const arrival_data& d = s.arrivals.data();
    if (d.kind == arrival_kind::closed_loop) n = std::max(n, 4 * d.users);
    for (const slo& x : s.slos)  // three values beyond each percentile
        if (x.statistic.kind == statistic_kind::percentile)
            n = std::max(n, static_cast<long long>(rounded_up(3 / tail_of(x.statistic))));
    return n;
}

inline any_baseline baseline_of(const given_options& o) {
    one_of(o, {"--baseline-url", "--baseline-file", "--baseline-history"});
    check_fit(o, {{o.has("--baseline-file"), " needs --baseline-file", {"--day-to-day"}},
                  {o.has("--baseline-url"), " needs --baseline-url",
                   {"--at-once", "--baseline-model"}}});
    if (o.has("--baseline-history")) return history(o["--baseline-history"]);
    if (o.has("--baseline-url")) {
        endpoint b = endpoint_of(o, "--baseline-url");
        if (o.has("--baseline-model")) b.model = o["--baseline-model"];
        // A key of its own is for its host; a page with a host of its own is the target's, and so
        // are the exporters and the command that makes it cold.
        if (!environment("LLMBENCH_BASELINE_API_KEY").empty()) b.api_key_env = {};
        if (str(b.metrics_url).find("://") != std::string::npos) b.metrics_url = {};
        b.telemetry = {};
        b.cold = {};
        return b;
    }
    if (!o.has("--baseline-file")) return {};
    return o.has("--day-to-day")
               ? stored(o["--baseline-file"], fraction_of(o.one("--day-to-day")))
               : stored(o["--baseline-file"]);
}

inline scenario scenario_of(const given_options& o) {
    scenario s;
    s.name = o.has("--name") ? o["--name"] : "llmbench run";
    s.target = target_of(o);
    s.baseline = baseline_of(o);
    if (o.has("--at-once")) s.pairs = at_once;
    s.arrivals = arrivals_of(o);
    const bool replays = s.arrivals.data().kind == arrival_kind::replay;
    const bool says_what = source_of(o) || o.has("--prompt-tokens") || o.has("--output-tokens") ||
                           o.has("--turns");
    if (!replays || says_what) s.workload = workload_of(o);
    s.slos = slos_of(o.all("--slo"));
    set(s.warmup, o, "--warmup", warmup_of);
    set(s.requests, o, "--requests", whole_up_to(100000000));
    set(s.duration, o, "--duration", time_of);
    set(s.repeats, o, "--repeats", whole_up_to(100));
    set(s.stop, o, "--stop", stop_of);
    set(s.seed, o, "--seed", whole_up_to(1000000000000000000));
    set(s.limits.total, o, "--timeout", time_of);
    set(s.limits.connect, o, "--connect-timeout", time_of);
    set(s.limits.first_event, o, "--first-event-timeout", time_of);
    set(s.limits.between_events, o, "--event-timeout", time_of);
    set(s.limits.drain, o, "--drain", time_of);
    set(s.judging.false_pass, o, "--false-pass", fraction_of);
    set(s.judging.false_fail, o, "--false-fail", fraction_of);
    s.judging.holm = o.has("--holm");
    set(s.client.threads, o, "--client-threads", whole_up_to(1024));
    if (o.has("--profile")) s.on_fail = profile{};
    s.client.spin = o.has("--spin");
    for (const std::string& address : o.all("--from")) s.client.from.push_back(address);
    set(s.cost, o, "--cost", [](const given& g) { return usd_per_hour(number_of(g)); });
    const bool ends_itself =
        replays || s.arrivals.data().kind == arrival_kind::steps || o.has("--questions");
    if (!o.has("--requests") && !o.has("--duration") && !ends_itself) {
        if (s.pairs == at_once) s.duration = 60_s;
        else s.requests = usual_requests(s);
    }
    s.options = options_of(o);
    return s;
}

}  // namespace llmbench_program
