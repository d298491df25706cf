// the options of `llmbench run`, and their scenario
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/judging/samples.hpp"
#include "program/slo_text.hpp"
#include "program/values.hpp"

#include <algorithm>  // max
#include <string>
#include <vector>

namespace llmbench_program {

struct run_options {
    // server
    std::string url{}, command{}, api{}, model{}, path{}, key_variable{}, metrics_url{};
    std::string ready_path{}, ready_within{}, ca_file{}, directory{};
    std::vector<std::string> headers{}, environment{};
    bool insecure = false;
    // baseline
    std::string baseline_url{}, baseline_file{}, day_to_day{};
    // load
    std::string users{}, rate{}, arrivals{}, think{}, ramp{}, max_in_flight{};
    std::string speed{}, time_unit{};
    // requests
    std::string prompt_tokens{}, output_tokens{}, prefix_tokens{}, prefix_groups{}, prefix_share{};
    std::string dataset{}, format{}, turns{}, max_tokens{}, temperature{}, system_prompt{};
    std::string extra_body{};
    std::vector<std::string> prompts{};
    bool no_stream = false, own_length = false, unsalted = false;
    // length
    std::string requests{}, duration{}, warmup{}, repeats{}, timeout{}, seed{}, time_budget{};
    // objectives and reports
    std::vector<std::string> slos{};
    std::string name{}, report{}, inconclusive{};
};

/// Sets a value if its option is given.
template <class Read, class To>
void set(To& to, const char* option, const std::string& value, Read&& read) {
    if (!value.empty()) to = read(given{option, value});
}
inline auto whole_up_to(long long most, long long least = 1) {
    return [=](const given& g) { return whole_of(g, least, most); };
}

inline std::string format_names() { return "sharegpt, dolly, openai_jsonl, coco_captions, text_lines"; }
inline dataset_format format_of(const given& g) {
    if (g.text == "sharegpt") return sharegpt;
    if (g.text == "dolly") return dolly;
    if (g.text == "openai_jsonl") return openai_jsonl;
    if (g.text == "coco_captions") return coco_captions;
    if (g.text == "text_lines") return text_lines;
    g.refuse_as("one of " + format_names());
}

inline slo_list slos_of(const std::vector<std::string>& texts) {
    slo_list all;
    for (const std::string& t : texts)
        try {
            all.push_back(parse_slo(t));
        } catch (const std::invalid_argument& e) {
            refuse({"--slo: ", e.what()});
        }
    return all;
}

inline any_target target_of(const run_options& o) {
    if (!o.command.empty() && !o.url.empty())
        refuse({"--url and --command are both given: name a server that runs, or the command that "
                "starts one"});
    const auto headers_apply = [&](const char* option, bool is_given) {
        if (is_given && !o.command.empty())
            refuse({option, " is of a server that runs already: with --command leave it out"});
    };
    if (!o.command.empty()) {
        headers_apply("--header", !o.headers.empty());
        headers_apply("--key-variable", !o.key_variable.empty());
        headers_apply("--ca-file", !o.ca_file.empty());
        headers_apply("--insecure", o.insecure);
        process p{.command = o.command, .ready = o.ready_path};
        for (const std::string& e : o.environment)
            p.env.push_back(pair_of({"--env", e}, '=', "such as NAME=value"));
        p.working_directory = o.directory;
        set(p.ready_within, "--ready-within", o.ready_within, time_of);
        p.path = o.path;
        p.model = o.model;
        p.metrics_url = o.metrics_url;
        return p;
    }
    const auto needs_command = [&](const char* option, bool is_given) {
        if (is_given) refuse({option, " is of a server that is started: it needs --command"});
    };
    needs_command("--ready", !o.ready_path.empty());
    needs_command("--env", !o.environment.empty());
    needs_command("--directory", !o.directory.empty());
    endpoint e{.url = o.url, .model = o.model};
    e.path = o.path;
    e.api_key_env = o.key_variable;
    for (const std::string& h : o.headers)
        e.headers.push_back(pair_of({"--header", h}, ':', "such as 'X-Tenant: blue'"));
    e.metrics_url = o.metrics_url;
    e.tls.verify = !o.insecure;
    e.tls.ca_file = o.ca_file;
    set(e.ready_within, "--ready-within", o.ready_within, time_of);
    return e;
}

/// As in C++: "constant(8rps)", "steps(2rps 30s, 8rps 30s)", "replay(trace.csv)".
inline arrival_pattern pattern_of(const given& g) {
    static constexpr const char* allowed =
        "poisson(RATE), constant(RATE), gamma(RATE, BURSTINESS), ramp(FROM, TO, TIME), "
        "steps(RATE TIME, ...), replay(FILE), closed_loop(USERS) or all_at_once()";
    const auto c = call_in(g.text);
    if (!c) g.refuse_as(allowed);
    const std::vector<std::string>& a = c->arguments;
    const auto open = [&](auto&& make) -> arrival_pattern {
        const auto r = load_in(a[0], false);
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

inline arrival_pattern arrivals_of(const run_options& o) {
    const int given_loads = !o.users.empty() + !o.rate.empty() + !o.arrivals.empty();
    if (given_loads > 1)
        refuse({"two of --users, --rate and --arrivals are given: each says when requests are "
                "sent, give one"});
    arrival_data d;
    if (!o.rate.empty()) d = rate_of({"--rate", o.rate}).data();
    else if (!o.arrivals.empty()) d = pattern_of({"--arrivals", o.arrivals}).data();
    else d = users_of({"--users", o.users.empty() ? "1" : o.users}).data();
    const auto needs = [&](const char* option, const std::string& value, bool holds,
                           const char* what) {
        if (!value.empty() && !holds) refuse({option, " needs ", what});
    };
    const bool closed = d.kind == arrival_kind::closed_loop;
    const bool replays = d.kind == arrival_kind::replay;
    needs("--think", o.think, closed, "--users");
    needs("--ramp", o.ramp, closed, "--users; a rate that rises is --arrivals 'ramp(1rps, 8rps, 2min)'");
    needs("--max-in-flight", o.max_in_flight, !closed, "--rate or --arrivals");
    needs("--speed", o.speed, replays, "--arrivals 'replay(FILE)'");
    needs("--time-unit", o.time_unit, replays, "--arrivals 'replay(FILE)'");
    set(d.think, "--think", o.think, pause_of);
    set(d.users_ramp_s, "--ramp", o.ramp, [](const given& g) { return time_of(g).seconds(); });
    set(d.max_in_flight, "--max-in-flight", o.max_in_flight, whole_up_to(1000000));
    if (closed) {
        closed_loop_users users = d.is_searched ? closed_loop(up_to(d.users)) : closed_loop(d.users);
        return users.think(d.think).ramp(time_span::from_seconds(d.users_ramp_s));
    }
    if (!replays) return open_loop(d);
    trace_replay r = replay(d.file).max_in_flight(d.max_in_flight);
    if (!o.speed.empty()) r = r.speed(number_of({"--speed", o.speed}));
    if (!o.time_unit.empty()) r = r.unit(time_of({"--time-unit", o.time_unit}));
    return r;
}

inline any_workload workload_of(const run_options& o) {
    const int sources = !o.dataset.empty() + !o.prompts.empty();
    const bool is_synthetic = sources == 0;
    if (sources > 1) refuse({"--dataset and --prompt are both given: give one"});
    const auto only = [](const char* option, bool is_given, bool holds, const char* with) {
        if (is_given && !holds) refuse({option, " needs ", with});
    };
    only("--format", !o.format.empty(), !o.dataset.empty(), "--dataset");
    only("--unsalted", o.unsalted, !o.dataset.empty(), "--dataset");
    only("--turns", !o.turns.empty(), o.prompts.empty(), "a dataset, or made-up prompts");
    for (const auto& [option, value] : {std::pair("--prompt-tokens", &o.prompt_tokens),
                                        {"--prefix-tokens", &o.prefix_tokens}})
        only(option, !value->empty(), is_synthetic, "made-up prompts: leave --dataset and --prompt out");
    for (const auto& [option, value] : {std::pair("--prefix-groups", &o.prefix_groups),
                                        {"--prefix-share", &o.prefix_share}})
        only(option, !value->empty(), !o.prefix_tokens.empty() && o.turns.empty(),
             "--prefix-tokens, and no --turns");
    only("--output-tokens", !o.output_tokens.empty(), is_synthetic,
         "made-up prompts; elsewhere --max-tokens ends answers");
    if (!o.prompts.empty()) {
        list<text> items;
        for (const std::string& p : o.prompts) items.push_back(p);
        return prompts(items);
    }
    if (!o.dataset.empty()) {
        dataset d{.path = o.dataset};
        set(d.format, "--format", o.format, format_of);
        set(d.max_turns, "--turns", o.turns, whole_up_to(1000));
        d.force_output = !o.own_length;
        d.salted = !o.unsalted;
        return d;
    }
    if (!o.turns.empty()) {
        conversations c;
        set(c.turns, "--turns", o.turns, lengths_of);
        set(c.user_tokens, "--prompt-tokens", o.prompt_tokens, lengths_of);
        set(c.output_tokens, "--output-tokens", o.output_tokens, lengths_of);
        set(c.system_tokens, "--prefix-tokens", o.prefix_tokens, lengths_of);
        c.force_output = !o.own_length;
        return c;
    }
    synthetic s;
    set(s.prompt_tokens, "--prompt-tokens", o.prompt_tokens, lengths_of);
    set(s.output_tokens, "--output-tokens", o.output_tokens, lengths_of);
    set(s.shared_prefix, "--prefix-tokens", o.prefix_tokens, lengths_of);
    set(s.prefix_groups, "--prefix-groups", o.prefix_groups, whole_up_to(1000000));
    set(s.prefix_fraction, "--prefix-share", o.prefix_share, fraction_of);
    s.force_output = !o.own_length;
    return s;
}

/// The default: as many as the objectives need, four turns of every user, at least 100.
inline long long usual_requests(const scenario& s) {
    long long n = 100;
    const arrival_data& d = s.arrivals.data();
    if (d.kind == arrival_kind::closed_loop) n = std::max(n, 4 * d.users);
    for (const slo& x : s.slos)  // three values beyond each percentile
        if (x.what.kind == statistic_kind::percentile)
            n = std::max(n, static_cast<long long>(rounded_up(3 / tail_of(x.what))));
    return n;
}

inline scenario scenario_of(const run_options& o) {
    scenario s;
    s.name = o.name.empty() ? "llmbench run" : o.name;
    s.target = target_of(o);
    if (!o.baseline_url.empty() && !o.baseline_file.empty())
        refuse({"--baseline-url and --baseline-file are both given: give one"});
    if (!o.day_to_day.empty() && o.baseline_file.empty())
        refuse({"--day-to-day needs --baseline-file"});
    if (!o.baseline_url.empty()) s.baseline = endpoint{.url = o.baseline_url, .model = o.model};
    if (!o.baseline_file.empty())
        s.baseline = o.day_to_day.empty()
                         ? stored(o.baseline_file)
                         : stored(o.baseline_file, fraction_of({"--day-to-day", o.day_to_day}));
    s.arrivals = arrivals_of(o);
    const bool replays = s.arrivals.data().kind == arrival_kind::replay;
    const bool says_what = !o.dataset.empty() || !o.prompts.empty() || !o.prompt_tokens.empty() ||
                           !o.output_tokens.empty() || !o.turns.empty();
    if (!replays || says_what) s.workload = workload_of(o);
    s.slos = slos_of(o.slos);
    set(s.warmup, "--warmup", o.warmup, warmup_of);
    set(s.requests, "--requests", o.requests, whole_up_to(100000000));
    set(s.duration, "--duration", o.duration, time_of);
    set(s.repeats, "--repeats", o.repeats, whole_up_to(100));
    set(s.seed, "--seed", o.seed, whole_up_to(1000000000000000000));
    set(s.limits.total, "--timeout", o.timeout, time_of);
    const bool ends_itself = replays || s.arrivals.data().kind == arrival_kind::steps;
    if (o.requests.empty() && o.duration.empty() && !ends_itself) s.requests = usual_requests(s);
    if (!o.max_tokens.empty())
        s.options.max_tokens = static_cast<int>(whole_of({"--max-tokens", o.max_tokens}, 1, 10000000));
    if (!o.temperature.empty()) s.options.temperature = number_of({"--temperature", o.temperature});
    s.options.system_prompt = o.system_prompt;
    s.options.stream = !o.no_stream;
    s.options.extra_body = o.extra_body;
    return s;
}

}  // namespace llmbench_program
