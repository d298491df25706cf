// from a workload to its part of the plan
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"
#include "core/base/text.hpp"
#include "core/files/datasets.hpp"
#include "core/files/questions.hpp"
#include "core/files/session_graph.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/schedule.hpp"
#include "core/traffic/traffic_source.hpp"

#include <algorithm>  // find, max
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <tuple>  // fields that are checked alike
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* format_name(dataset_format f) {
    return name_at({"sharegpt", "dolly", "openai_jsonl", "coco_captions", "vqa", "text_lines",
                    "csv"}, f);
}

inline void check_think(const time_distribution& d) {
    if (!is_sound(d))
        refuse({"workload.think is ", distribution_text(d), ": it runs from 0 to 86400 s, with an "
                "ordered range and a sigma from 0 to 5"});
}
/// What can be refused before the file is read.
inline void check_dataset(const dataset& d) {
    if (d.path.empty()) refuse({"workload.path is empty: a dataset must name a file"});
    if (!d.answers.empty() && d.format != vqa)
        refuse({"workload.answers is set: format ", format_name(d.format),
                " has its answers in its own file, only vqa has another one for them"});
    if (d.max_items && !(*d.max_items >= 1 && *d.max_items <= 1000000))
        refuse({printed("workload.max_items is %d: it runs from 1 to 1000000", *d.max_items)});
    for (const auto& [name, least, most] :
         {std::tuple{"prompt", d.min_prompt_tokens, d.max_prompt_tokens},
          std::tuple{"output", d.min_output_tokens, d.max_output_tokens}})
        if (!(least >= 0 && most >= 0 && (most == 0 || least <= most)))
            refuse({printed("workload.min_%s_tokens is %lld and max_%s_tokens is %lld: they cannot "
                            "be negative, and the first is at most the second", name,
                            static_cast<long long>(least), name, static_cast<long long>(most))});
    if (!(d.max_turns >= 1 && d.max_turns <= 1000))
        refuse({printed("workload.max_turns is %lld: it runs from 1 to 1000",
                        static_cast<long long>(d.max_turns))});
    check_think(d.think);
}

/// What of a plan its workload says.
struct planned_workload {
    traffic_source source{};
    std::string text{};
    bool forces_length = true;
    time_distribution think{};
    std::string sent_as_given{};
};

inline const char* at_most(bool is_forced) { return is_forced ? "" : "at most "; }
inline std::string think_text(const time_distribution& d) {
    return d.a + d.b > 0 ? ", think " + distribution_text(d) : "";
}

inline planned_workload workload_of(const prompt_list& list, const request_options& o) {
    if (list.items.size() == 0) refuse({"workload is prompts({}): it needs at least one prompt"});
    given_prompts given;
    for (const text& t : list.items) given.prompts.push_back(str(t));
    return {.source = given,
            .text = printed("%zu prompts", list.items.size()),
            .forces_length = o.ignore_eos,
            .sent_as_given = "prompts"};
}

inline planned_workload workload_of(const dataset& d, const request_options& o,
                                    const std::vector<dialogue>& sample) {
    check_dataset(d);
    if (sample.empty()) refuse({str(d.path), " was not read"});
    double prompt_tokens = 0;
    std::size_t turns = 0, most_turns = 1;
    for (const dialogue& x : sample) {
        most_turns = std::max(most_turns, x.turns.size());
        turns += x.turns.size();
        prompt_tokens += estimated_prompt_tokens(x);
    }
    const double n = static_cast<double>(sample.size());
    const bool has_images = d.format == coco_captions || d.format == vqa;
    return {.source = recorded_dialogues{.most_turns = most_turns, .salted = d.salted},
            .text = printed("%.0f prompts of ", n) + file_name(str(d.path)) + " (" +
                    format_name(d.format) + "), about " +
                    printed("%.0f tokens each", prompt_tokens / n) +
                    (most_turns > 1 ? printed(", %.1f turns each", static_cast<double>(turns) / n)
                                    : "") +
                    think_text(d.think) +
                    (d.force_output ? "" : ", answers as long as they get") +
                    (d.salted ? "" : ", not salted"),
            .forces_length = d.force_output || o.ignore_eos,
            .think = d.think,
            .sent_as_given = !d.salted ? "prompts" : has_images ? "images" : ""};
}

/// What can be refused before the file is read.
inline void check_questions(const questions& q, const request_options& o) {
    if (q.path.empty()) refuse({"workload.path is empty: questions must name a file"});
    if (q.max_items && !(*q.max_items >= 1 && *q.max_items <= 1000000))
        refuse({printed("workload.max_items is %d: it runs from 1 to 1000000", *q.max_items)});
    if (o.ignore_eos)
        refuse({"options.ignore_eos is set, and workload is questions: an answer that may not end "
                "cannot be graded"});
    picojson::value extra;
    if (parse_json(str(o.extra_body), extra) && count_member(extra, "n") > 1)
        refuse({"options.extra_body asks for several choices (n), and workload is questions: one "
                "answer is graded"});
}
inline planned_workload workload_of(const questions& q, const request_options& o,
                                    const std::vector<dialogue>& sample) {
    check_questions(q, o);
    if (sample.empty()) refuse({str(q.path), " was not read"});
    return {.source = recorded_dialogues{},
            .text = printed("%zu questions of ", sample.size()) + file_name(str(q.path)) + " (" +
                    format_name(q.format) + ", graded by " +
                    grade_name(sample.front().wanted->by) + ")",
            .forces_length = false,
            .sent_as_given = "prompts"};
}

inline void check_conversations(const conversations& c) {
    using shape = length_distribution::shape;
    for (const auto& [d, field, least] :
         {std::tuple{&c.turns, "workload.turns", 1.0},
          std::tuple{&c.user_tokens, "workload.user_tokens", 1.0},
          std::tuple{&c.output_tokens, "workload.output_tokens", 1.0},
          std::tuple{&c.system_tokens, "workload.system_tokens", 0.0}}) {
        check_length(*d, field, least);
        if (d->kind == shape::trace ||
            (d->kind == shape::empirical && d != &c.user_tokens && d != &c.output_tokens))
            refuse({field, " is ", length_text(*d),
                    ": files are read for user_tokens and output_tokens only"});
    }
}
/// Turns of the longest conversation that can be drawn.
inline std::size_t most_turns_of(const conversations& c) {
    using shape = length_distribution::shape;
    constexpr double limit = 1000;
    const bool is_open = c.turns.kind == shape::normal || c.turns.kind == shape::lognormal;
    const double most = is_open ? c.turns.a : std::max(c.turns.a, c.turns.b);
    if (most > limit)
        refuse({"workload.turns is ", length_text(c.turns),
                ": a conversation has 1 to 1000 turns"});
    return static_cast<std::size_t>(is_open ? limit : most);
}

/// Steps of the longest conversation that can be drawn, its helpers' turns among them.
inline std::size_t most_steps_of(const conversations& c, std::size_t most_turns) {
    const double helped = c.helped.value;
    if (!(helped >= 0 && helped <= 1))
        refuse({printed("workload.helped is %g %%: it runs from 0 to 100 %%", helped * 100)});
    double most_each = 1;
    for (const auto& [d, field, most] :
         {std::tuple{&c.helpers, "workload.helpers", 64.0},
          std::tuple{&c.helper_turns, "workload.helper_turns", 1000.0}}) {
        const bool is_given = d->kind != length_distribution::shape::fixed || d->a != 0;
        if (is_given != (helped > 0))
            refuse({field, is_given ? " is given, and helped is 0 %: no turn starts any"
                                    : " is not given, and helped says that turns start some"});
        if (!is_given) continue;
        const bool has_end = d->kind == length_distribution::shape::fixed ||
                             d->kind == length_distribution::shape::uniform;
        const double end = std::max(d->a, d->b);
        if (!has_end || !(d->a >= 1 && end <= most))
            refuse({field, " is ", length_text(*d),
                    printed(": give a number, or uniform(low, high), from 1 to %g", most)});
        check_length(*d, field, 1);
        most_each *= end;
    }
    if (helped == 0) return most_turns;
    if (most_turns == 1)
        refuse({"workload.helped is given, and conversations have one turn: a turn that another "
                "follows starts helpers"});
    const double steps = static_cast<double>(most_turns) +
                         static_cast<double>(most_turns - 1) * most_each;
    if (steps > most_session_steps)
        refuse({printed("a conversation may have %.0f steps, its helpers' among them: at most %zu "
                        "are allowed", steps, most_session_steps)});
    return static_cast<std::size_t>(steps);
}
inline std::string helpers_text(const conversations& c) {
    if (c.helped.value == 0) return "";
    return printed(", %.9g %% of the turns helped by ", c.helped.value * 100) +
           length_text(c.helpers) + " of " + length_text(c.helper_turns) + " turns each";
}

inline planned_workload workload_of(const conversations& c, const request_options& o) {
    check_conversations(c);
    const std::size_t most_turns = most_turns_of(c);
    check_think(c.think);
    const std::size_t most_steps = most_steps_of(c, most_turns);
    const std::string system =
        c.system_tokens.a > 0 ? ", a system prompt of " + length_text(c.system_tokens) +
                                    (c.shared_system_prompt ? " shared by all" : " of their own")
                              : "";
    const bool is_forced = c.force_output || o.ignore_eos;
    planned_workload w{.text = "conversations, " + length_text(c.turns) +
                               " turns, messages of " + length_text(c.user_tokens) +
                               " tokens, answers of " + at_most(is_forced) +
                               length_text(c.output_tokens) + system + helpers_text(c) +
                               think_text(c.think),
                       .forces_length = is_forced,
                       .think = c.think};
    // Of one turn each they are prompts, and what would be the system prompt starts all of them.
    if (most_turns == 1)
        w.source = made_up_prompts{.prompt_tokens = c.user_tokens,
                                   .output_tokens = c.output_tokens,
                                   .shared_prefix = c.system_tokens};
    else
        w.source = made_up_conversations{.most_turns = most_steps,
                                         .turns_each = c.turns,
                                         .user_tokens = c.user_tokens,
                                         .output_tokens = c.output_tokens,
                                         .system_tokens = c.system_tokens,
                                         .shared_system_prompt = c.shared_system_prompt,
                                         .helped = c.helped.value,
                                         .helpers = c.helpers,
                                         .helper_turns = c.helper_turns,
                                         .most_own_turns = most_turns};
    return w;
}

/// What can be refused before the files are read.
inline void check_sessions(const sessions& w) {
    if (w.path.empty()) refuse({"workload.path is empty: sessions must name a file or a folder"});
    if (!(w.most_wait.seconds() >= 0 && w.most_wait.seconds() <= 86400))
        refuse({printed("workload.most_wait is %g s: it runs from 0 to 86400 s",
                        w.most_wait.seconds())});
    if (!(w.max_context >= 0 && w.max_context <= 10000000))
        refuse({printed("workload.max_context is %lld: it runs from 1 to 10000000, or is 0 for no "
                        "limit", static_cast<long long>(w.max_context))});
    if (w.max_items && !(*w.max_items >= 1 && *w.max_items <= 1000000))
        refuse({printed("workload.max_items is %d: it runs from 1 to 1000000", *w.max_items)});
}
/// What is said of them behind how many and how large they are.
inline std::string rest_of_sessions(bool is_forced) {
    return std::string(is_forced ? "" : ", answers as long as they get") +
           "; answers of the server are not fed back, so none of their tokens is found cached";
}
inline planned_workload workload_of(const sessions& w, const scenario& s, const arrival_data& a,
                                    std::uint64_t seed, const session_corpus& corpus) {
    check_sessions(w);
    if (corpus.sessions.empty()) refuse({str(w.path), " was not read"});
    const auto most = static_cast<std::size_t>(w.max_items ? *w.max_items : 0);
    const bool as_recorded = a.kind == arrival_kind::replay;
    recorded_sessions source{
        .most_turns = corpus.most_steps,
        .most_wait_s = w.most_wait.seconds(),
        .order = as_recorded ? recorded_order(corpus, most)
                             : drawn_order(corpus.sessions.size(), most, seed),
        .models = std::vector<std::string>(corpus.models.size()),
        .name = file_name(str(w.path))};
    for (const model_name& m : w.models) {
        const auto at = std::find(corpus.models.begin(), corpus.models.end(), str(m.recorded));
        if (at == corpus.models.end())
            refuse({"workload.models names ", str(m.recorded), ", and no step of the recording "
                    "is of such a model"});
        source.models[static_cast<std::size_t>(at - corpus.models.begin())] = str(m.asked);
    }
    // What warms up are the last ones, so that each of the others begins when it did.
    if (as_recorded) {
        if (s.warmup.requests() > 0)
            refuse({printed("workload is sessions and arrivals is a replay of them, with a warm-up "
                            "of %lld requests: they begin when they did, so give a time, or 0",
                            static_cast<long long>(s.warmup.requests()))});
        const std::size_t n = source.order->size();
        source.begin = (n - warmup_sends(a, 0, s.warmup.seconds()) % n) % n;
    }
    return {.source = source,
            .text = source.text(corpus) + rest_of_sessions(w.force_output),
            .forces_length = w.force_output || s.options.ignore_eos};
}

inline void check_own_lengths(const arrival_data& a, const length_distribution& d,
                              const char* field) {
    if (d.kind == length_distribution::shape::trace && a.kind != arrival_kind::replay)
        refuse({field, " is from_trace(): arrivals must be replay(...), they are ",
                arrival_text(a)});
}
/// By its name, or by the one that it had in the version before.
inline double prefix_fraction_of(const synthetic& w) {
    return w.prefix_share.value == -1 ? w.prefix_fraction.value : w.prefix_share.value;
}
inline void check_synthetic(const synthetic& w, const arrival_data& a) {
    using shape = length_distribution::shape;
    check_length(w.prompt_tokens, "workload.prompt_tokens", 1);
    check_length(w.output_tokens, "workload.output_tokens", 1);
    check_length(w.shared_prefix, "workload.shared_prefix", 0);
    check_own_lengths(a, w.prompt_tokens, "workload.prompt_tokens");
    check_own_lengths(a, w.output_tokens, "workload.output_tokens");
    if (w.shared_prefix.kind == shape::empirical || w.shared_prefix.kind == shape::trace)
        refuse({"workload.shared_prefix is ", length_text(w.shared_prefix),
                ": files are read for prompt_tokens and output_tokens only"});
    if (!(w.prefix_groups >= 1 && w.prefix_groups <= 1000000))
        refuse({printed("workload.prefix_groups is %lld: it runs from 1 to 1000000",
                        static_cast<long long>(w.prefix_groups))});
    const double part = prefix_fraction_of(w);
    if (!(part >= 0 && part <= 1))
        refuse({printed("workload.prefix_fraction is %g %%: it runs from 0 to 100 %%",
                        part * 100)});
}
inline planned_workload workload_of(const synthetic& w, const arrival_data& a,
                                    const warmup_amount& warmup, const request_options& o,
                                    bool generates) {
    check_synthetic(w, a);
    const bool is_forced = w.force_output || o.ignore_eos;
    const made_up_prompts made{
        .prompt_tokens = w.prompt_tokens,
        .output_tokens = w.output_tokens,
        .shared_prefix = w.shared_prefix,
        .prefix_groups = w.prefix_groups,
        .prefix_fraction = prefix_fraction_of(w),
        .warmup = warmup_sends(a, static_cast<std::size_t>(warmup.requests()), warmup.seconds())};
    std::string prefix;
    if (made.shared_prefix.a > 0) {
        prefix = ", shared prefix " + length_text(made.shared_prefix) + " tokens";
        if (made.prefix_groups > 1) prefix += printed(" in %lld groups", made.prefix_groups);
        if (made.prefix_fraction < 1)
            prefix += printed(" for %.9g %% of the prompts", made.prefix_fraction * 100);
    }
    return {.source = made,
            .text = "synthetic, prompt " + length_text(made.prompt_tokens) + " tokens" +
                    (generates ? std::string(", output ") + at_most(is_forced) +
                                     length_text(made.output_tokens) + " tokens"
                               : "") +
                    prefix,
            .forces_length = is_forced};
}

inline planned_workload workload_of(const scenario& s, const arrival_data& arrivals,
                                    const workload_files& files, bool generates = true,
                                    std::uint64_t default_seed = 1) {
    const box& w = s.workload.what();
    if (const auto* d = w.get<dataset>()) return workload_of(*d, s.options, files.dialogues);
    if (const auto* q = w.get<questions>()) return workload_of(*q, s.options, files.dialogues);
    if (const auto* list = w.get<prompt_list>()) return workload_of(*list, s.options);
    if (s.options.max_tokens)
        refuse({printed("options.max_tokens is %d: a synthetic workload says its own output_tokens",
                        *s.options.max_tokens)});
    if (const auto* talk = w.get<conversations>()) return workload_of(*talk, s.options);
    if (const auto* graphs = w.get<sessions>()) {
        const long long seed = s.seed;
        return workload_of(*graphs, s, arrivals,
                           seed > 0 ? static_cast<std::uint64_t>(seed) : default_seed,
                           files.sessions);
    }
    if (const auto* made = w.get<synthetic>())
        return workload_of(*made, arrivals, s.warmup, s.options, generates);
    synthetic as_recorded;
    if (arrivals.kind == arrival_kind::replay)
        as_recorded.prompt_tokens = as_recorded.output_tokens = from_trace();
    return workload_of(as_recorded, arrivals, s.warmup, s.options, generates);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
