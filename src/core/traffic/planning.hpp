// from a scenario to its plan
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/judging/rule.hpp"
#include "core/files/datasets.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/check_slo.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/plan.hpp"

#include <algorithm>  // max
#include <cstdint>  // uint64_t
#include <memory>  // make_shared
#include <string>
#include <string_view>
#include <tuple>  // fields that are checked alike
#include <utility>  // move, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Where APIs keep their own fields: TGI, Ollama, SGLang.
inline bool holds_options(std::string_view name, const picojson::value& value) {
    return value.is<picojson::object>() &&
           (name == "parameters" || name == "options" || name == "sampling_params");
}
inline std::string checked_fields(const picojson::object& fields, bool with_objects) {
    std::string out;
    for (const auto& [name, value] : fields) {
        for (const char* ours : {"model", "messages", "prompt", "stream", "stream_options",
                                 "inputs", "text", "text_input", "system"})
            require(name != ours,
                    "options.extra_body sets \"" + name + "\": that field belongs to llmbench");
        for (const char* option : {"max_tokens", "temperature", "ignore_eos"})
            require(name != option, "options.extra_body sets \"" + name + "\": use options." +
                                        name + ", a field must not stand twice");
        for (const char* option : {"max_new_tokens", "num_predict", "n_predict"})
            require(name != option, "options.extra_body sets \"" + name +
                                        "\": use options.max_tokens, a field must not stand twice");
        if (with_objects || !holds_options(name, value))
            out += "," + json_quoted(name) + ":" + value.serialize();
    }
    return out;
}
inline picojson::object extra_body_of(const request_options& o) {
    picojson::value v;
    require(parse_json(str(o.extra_body), v) && v.is<picojson::object>(),
            "options.extra_body is \"" + printable(str(o.extra_body), 80) +
                "\": it must be a JSON object");
    return v.get<picojson::object>();
}
inline std::string shared_fields(const request_options& o) {
    return o.extra_body.empty() ? std::string() : checked_fields(extra_body_of(o), false);
}
inline std::vector<extra_object> shared_objects(const request_options& o) {
    std::vector<extra_object> objects;
    if (o.extra_body.empty()) return objects;
    for (const auto& [name, value] : extra_body_of(o))
        if (holds_options(name, value))
            objects.push_back({name, checked_fields(value.get<picojson::object>(), true)});
    return objects;
}

inline const char* format_name(dataset_format f) {
    switch (f) {
    case sharegpt: return "sharegpt";
    case dolly: return "dolly";
    case openai_jsonl: return "openai_jsonl";
    case coco_captions: return "coco_captions";
    case text_lines: return "text_lines";
    case csv: return "csv";
    }
    return "";
}

/// What can be refused before the file is read.
inline void check_dataset(const dataset& d) {
    require(!d.path.empty(), "workload.path is empty: a dataset must name a file");
    require(!d.max_items || (*d.max_items >= 1 && *d.max_items <= 1000000),
            printed("workload.max_items is %d: it runs from 1 to 1000000", *d.max_items));
    for (const auto& [name, least, most] :
         {std::tuple{"prompt", d.min_prompt_tokens, d.max_prompt_tokens},
          std::tuple{"output", d.min_output_tokens, d.max_output_tokens}})
        require(least >= 0 && most >= 0 && (most == 0 || least <= most),
                printed("workload.min_%s_tokens is %lld and max_%s_tokens is %lld: they cannot be "
                        "negative, and the first is at most the second",
                        name, static_cast<long long>(least), name, static_cast<long long>(most)));
    require(d.max_turns >= 1 && d.max_turns <= 1000,
            printed("workload.max_turns is %lld: it runs from 1 to 1000",
                    static_cast<long long>(d.max_turns)));
    require(d.think.seconds() >= 0 && d.think.seconds() <= 86400,
            printed("workload.think is %g s: it runs from 0 to 86400 s", d.think.seconds()));
}

inline void plan_dataset(plan& p, const dataset& d, const request_options& o) {
    check_dataset(d);
    require(p.files && !p.files->dialogues.empty(), str(d.path) + " was not read");
    p.salted = d.salted;
    p.forces_length = d.force_output || o.ignore_eos;
    p.think_s = d.think.seconds();
    double prompt_tokens = 0;
    std::size_t turns = 0;
    for (const dialogue& x : p.files->dialogues) {
        p.stride = std::max(p.stride, x.turns.size());
        turns += x.turns.size();
        prompt_tokens += estimated_prompt_tokens(x);
    }
    const double n = static_cast<double>(p.files->dialogues.size());
    p.workload_text = printed("%.0f prompts of ", n) + file_name(str(d.path)) + " (" +
                      format_name(d.format) + "), about " +
                      printed("%.0f tokens each", prompt_tokens / n) +
                      (p.stride > 1 ? printed(", %.1f turns each", static_cast<double>(turns) / n)
                                    : "") +
                      (p.think_s > 0 ? printed(", think %.9g s", p.think_s) : "") +
                      (d.force_output ? "" : ", answers as long as they get") +
                      (d.salted ? "" : ", not salted");
}

inline void check_own_lengths(const plan& p, const length_distribution& d, const char* field) {
    require(d.kind != length_distribution::shape::trace ||
                p.arrivals.kind == arrival_kind::replay,
            std::string(field) + " is from_trace(): arrivals must be replay(...), they are " +
                arrival_text(p.arrivals));
}

inline void plan_conversations(plan& p, const conversations& c) {
    using shape = length_distribution::shape;
    for (const auto& [d, field, least] :
         {std::tuple{&c.turns, "workload.turns", 1.0},
          std::tuple{&c.user_tokens, "workload.user_tokens", 1.0},
          std::tuple{&c.output_tokens, "workload.output_tokens", 1.0},
          std::tuple{&c.system_tokens, "workload.system_tokens", 0.0}}) {
        check_length(*d, field, least);
        require(d->kind != shape::trace && (d->kind != shape::empirical || d == &c.user_tokens ||
                                            d == &c.output_tokens),
                std::string(field) + " is " + length_text(*d) +
                    ": files are read for user_tokens and output_tokens only");
    }
    const bool drawn = c.turns.kind == shape::normal || c.turns.kind == shape::lognormal;
    const double most = drawn ? c.turns.a : std::max(c.turns.a, c.turns.b);
    require(most <= 1000, "workload.turns is " + length_text(c.turns) +
                              ": a conversation has 1 to 1000 turns");
    require(c.think.seconds() >= 0 && c.think.seconds() <= 86400,
            printed("workload.think is %g s: it runs from 0 to 86400 s", c.think.seconds()));
    p.stride = drawn ? 1000 : static_cast<std::size_t>(most);
    p.turns = c.turns;
    p.prompt_tokens = c.user_tokens;
    p.output_tokens = c.output_tokens;
    p.shared_prefix = c.system_tokens;
    p.shared_system_prompt = c.shared_system_prompt;
    p.think_s = c.think.seconds();
    p.forces_length = true;
    p.workload_text = "conversations, " + length_text(c.turns) + " turns, messages of " +
                      length_text(c.user_tokens) + " tokens, answers of " +
                      length_text(c.output_tokens) +
                      (c.system_tokens.a > 0 ? ", a system prompt of " +
                                                   length_text(c.system_tokens) +
                                                   (c.shared_system_prompt ? " shared by all"
                                                                           : " of their own")
                                             : "") +
                      (p.think_s > 0 ? printed(", think %.9g s", p.think_s) : "");
}

inline void plan_workload(plan& p, const scenario& s) {
    const box& w = s.workload.what();
    p.common.max_tokens = s.options.max_tokens ? *s.options.max_tokens : 0;
    if (const auto* d = w.get<dataset>()) return plan_dataset(p, *d, s.options);
    if (const auto* list = w.get<prompt_list>()) {
        require(list->items.size() > 0, "workload is prompts({}): it needs at least one prompt");
        for (const text& t : list->items) p.prompts.push_back(str(t));
        p.workload_text = printed("%zu prompts", p.prompts.size());
        p.forces_length = s.options.ignore_eos;
        return;
    }
    require(p.common.max_tokens == 0,
            printed("options.max_tokens is %d: a synthetic workload says its own output_tokens",
                    p.common.max_tokens));
    if (const auto* talk = w.get<conversations>()) return plan_conversations(p, *talk);
    const auto* given = w.get<synthetic>();
    synthetic made = given ? *given : synthetic{};
    if (!given && p.arrivals.kind == arrival_kind::replay)
        made.prompt_tokens = made.output_tokens = from_trace();
    check_length(made.prompt_tokens, "workload.prompt_tokens", 1);
    check_length(made.output_tokens, "workload.output_tokens", 1);
    check_length(made.shared_prefix, "workload.shared_prefix", 0);
    check_own_lengths(p, made.prompt_tokens, "workload.prompt_tokens");
    check_own_lengths(p, made.output_tokens, "workload.output_tokens");
    require(made.shared_prefix.kind != length_distribution::shape::empirical &&
                made.shared_prefix.kind != length_distribution::shape::trace,
            "workload.shared_prefix is " + length_text(made.shared_prefix) +
                ": files are read for prompt_tokens and output_tokens only");
    require(made.prefix_groups >= 1 && made.prefix_groups <= 1000000,
            printed("workload.prefix_groups is %lld: it runs from 1 to 1000000",
                    static_cast<long long>(made.prefix_groups)));
    require(made.prefix_share.fraction >= 0 && made.prefix_share.fraction <= 1,
            printed("workload.prefix_share is %g %%: it runs from 0 to 100 %%",
                    made.prefix_share.fraction * 100));
    p.prompt_tokens = made.prompt_tokens;
    p.output_tokens = made.output_tokens;
    p.shared_prefix = made.shared_prefix;
    p.prefix_groups = made.prefix_groups;
    p.prefix_share = made.prefix_share.fraction;
    p.forces_length = true;
    std::string prefix;
    if (p.shared_prefix.a > 0)
        prefix = ", shared prefix " + length_text(p.shared_prefix) + " tokens";
    if (!prefix.empty() && p.prefix_groups > 1)
        prefix += printed(" in %lld groups", p.prefix_groups);
    if (!prefix.empty() && p.prefix_share < 1)
        prefix += printed(" for %.9g %% of the prompts", p.prefix_share * 100);
    p.workload_text = "synthetic, prompt " + length_text(p.prompt_tokens) + " tokens, output " +
                      length_text(p.output_tokens) + " tokens" + prefix;
}

/// Whether two targets are what LLMBENCH_URL names, with nothing to tell them apart: as when a
/// variable that was to name one of them is not set.
inline bool is_the_same_from_outside(const any_target& a, const any_target& b) {
    const endpoint nothing_named;
    const auto named = [&](const any_target& t) {
        const bool is_other = t.what().get<process>() || t.what().get<simulated_server>();
        const auto* e = t.what().get<endpoint>();
        return is_other ? nullptr : e ? e : &nothing_named;
    };
    const endpoint *x = named(a), *y = named(b);
    return x && y && x->url.empty() && y->url.empty() && x->model == y->model && x->api == y->api;
}

/// Throws std::invalid_argument with one sentence for the first thing that is unsound.
/// `files` holds what was read for it.
inline plan planned(const scenario& s, std::uint64_t default_seed, workload_files files = {}) {
    plan p;
    p.files = std::make_shared<const workload_files>(std::move(files));
    p.arrivals = s.arrivals.data();
    check_arrivals(p.arrivals);
    if (p.arrivals.kind == arrival_kind::replay) {
        require(!p.files->trace.rows.empty(), str(p.arrivals.file) + " was not read");
        // The warm-up has the load of the trace on the average.
        p.arrivals.rate = static_cast<double>(p.files->trace.rows.size()) / own_length(p);
    }
    p.warmup_requests = s.warmup.requests();
    p.warmup_s = s.warmup.seconds();
    p.requests = s.requests;
    p.duration_s = s.duration.seconds();
    p.has_baseline = s.baseline.is_live();
    require(!p.has_baseline || !is_the_same_from_outside(s.target, s.baseline.live()),
            "target and baseline are endpoints without a URL: LLMBENCH_URL is one server, which "
            "would be compared with itself");
    p.has_stored_baseline = s.baseline.is_stored();
    p.stored = s.baseline.stored();
    p.limits = s.limits;
    p.client = s.client;
    for (const slo& x : s.slos) p.slos.push_back(x);

    require(p.warmup_requests >= 0 && p.warmup_requests <= 1000000,
            printed("warmup is %lld requests: it runs from 0 to 1000000", p.warmup_requests));
    require(p.warmup_s >= 0 && p.warmup_s <= 86400,
            printed("warmup is %g s: it runs from 0 to 86400 s", p.warmup_s));
    require(p.requests >= 0 && p.requests <= 100000000,
            printed("requests is %lld: it runs from 1 to 100000000", p.requests));
    require(p.duration_s >= 0 && p.duration_s <= 86400,
            printed("duration is %g s: it runs from 0 to 86400 s", p.duration_s));
    const bool has_own_length = own_length(p) > 0;
    require(p.requests > 0 || p.duration_s > 0 || has_own_length,
            "neither requests nor duration is set: the scenario would never end");
    require(p.arrivals.kind != arrival_kind::all_at_once || (p.requests > 0 && p.duration_s == 0),
            "arrivals is all_at_once: it needs requests, and no duration");
    require(p.arrivals.kind != arrival_kind::all_at_once || p.warmup_s == 0,
            "arrivals is all_at_once: its warm-up is a number of requests");
    const double by_time = p.duration_s > 0 ? p.duration_s : own_length(p);
    if (p.is_open_loop() && by_time > 0) {
        const double n = arrivals_within(p, by_time);
        const std::string sends = printed("in %.9g s ", by_time) + arrival_text(p.arrivals) +
                                  printed(" sends about %.0f requests: ", n);
        require(n >= 0.5, sends + "that is none, let it run longer");
        require(n <= 1e8 || p.requests > 0, sends + "at most 100000000 can be planned");
    }
    const double start_rate = p.arrivals.kind == arrival_kind::steps
                                  ? p.arrivals.stages[0].rate.per_second
                                  : p.arrivals.rate;
    require(!p.is_open_loop() || p.warmup_s * start_rate <= 1e6,
            printed("warmup is %g s: at %.9g requests/s that is over 1000000 requests", p.warmup_s,
                    start_rate));
    require(s.repeats >= 0 && s.repeats <= 100,
            printed("repeats is %lld: it runs from 2 to 100, or is 0 for as many as it takes",
                    static_cast<long long>(s.repeats)));
    require(s.seed >= 0,
            printed("seed is %lld: it cannot be negative", static_cast<long long>(s.seed)));
    require(s.client.threads >= 0 && s.client.threads <= 64,
            printed("client.threads is %lld: it runs from 1 to 64, or is 0 for the default",
                    static_cast<long long>(s.client.threads)));
    const bool is_fresh = s.traffic == fresh;
    require(!is_fresh || !(p.has_baseline || p.has_stored_baseline),
            "traffic is fresh: a baseline is compared on replayed traffic");
    require(!is_fresh || p.arrivals.kind != arrival_kind::replay,
            "traffic is fresh: " + arrival_text(p.arrivals) +
                " is one recording, and there is no other traffic to be drawn from it");
    const double day_sd = p.stored.day_to_day.fraction;
    require(!p.has_stored_baseline || !p.stored.file.empty(),
            "baseline is stored(\"\"): it must name a file");
    require(day_sd >= 0 && day_sd <= 0.5,
            printed("baseline: the day-to-day standard deviation is %g %%, it runs from 0 to 50 %%",
                    day_sd * 100));
    for (const auto& [name, level] : {std::pair{"false_pass", s.judging.false_pass},
                                      std::pair{"false_fail", s.judging.false_fail}})
        require(level.fraction >= 0.0001 && level.fraction <= 0.2,
                printed("judging.%s is %g %%: it runs from 0.01 %% to 20 %%", name,
                        level.fraction * 100));
    require(!s.options.max_tokens || *s.options.max_tokens >= 1,
            printed("options.max_tokens is %d: it must be at least 1", *s.options.max_tokens));
    require(!s.options.temperature || (*s.options.temperature >= 0 && *s.options.temperature <= 10),
            printed("options.temperature is %g: it runs from 0 to 10", *s.options.temperature));
    const std::pair<const char*, time_span> waits[] = {{"connect", s.limits.connect},
                                                       {"first_event", s.limits.first_event},
                                                       {"between_events", s.limits.between_events},
                                                       {"total", s.limits.total},
                                                       {"drain", s.limits.drain}};
    for (const auto& [name, t] : waits)
        require(t.seconds() > 0 && t.seconds() <= 86400,
                printed("limits.%s is %g s: it must be above 0 and at most 86400 s", name,
                        t.seconds()));

    p.seed = s.seed > 0 ? static_cast<std::uint64_t>(static_cast<long long>(s.seed)) : default_seed;
    p.common.temperature = s.options.temperature ? *s.options.temperature : not_a_number;
    p.common.system_prompt = str(s.options.system_prompt);
    p.common.stream = s.options.stream;
    p.common.extra_fields = shared_fields(s.options);
    p.common.extra_objects = shared_objects(s.options);
    plan_workload(p, s);

    p.first_repeats = is_fresh ? 1 : p.has_baseline ? first_pair_look : first_look;
    p.most_repeats = is_fresh ? last_stage : p.has_baseline ? last_pair_look : last_look;
    if (is_fresh)
        require(s.repeats <= last_stage,
                printed("repeats is %lld: fresh traffic comes in at most 3 stages, of n, n and 2n "
                        "requests",
                        static_cast<long long>(s.repeats)));
    if (s.repeats > 0) {
        p.most_repeats = static_cast<int>(s.repeats);
        require(
            p.slos.empty() || p.most_repeats >= p.first_repeats,
            printed("repeats is %d: a verdict needs at least %d", p.most_repeats, p.first_repeats));
    } else if (p.slos.empty()) {
        p.most_repeats = 3;
    }
    p.rule = rule_of(s.judging, s.traffic, p.first_repeats, p.most_repeats);
    const slo_context context = slo_context_of(p);
    for (const slo& x : p.slos) check_slo(x, context);
    return p;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
