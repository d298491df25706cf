// a workload's part of the plan
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/files/datasets.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/sources.hpp"

#include <algorithm>  // max
#include <cstdint>  // uint64_t
#include <string>
#include <tuple>  // fields that are checked alike
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline void check_think(const time_distribution& d) {
    if (!is_sound(d))
        refuse({"workload.think is ", distribution_text(d), ": it runs from 0 to 86400 s, with an "
                "ordered range and a sigma from 0 to 5"});
}
inline void check_dataset(const dataset& d) {
    if (d.path.empty()) refuse({"workload.path is empty: a dataset must name a file"});
    check_numbers({{"workload.max_items", d.max_items ? *d.max_items : 1.0, 1, 1e6},
                   {"workload.max_turns", static_cast<double>(d.max_turns), 1, 1000}});
    for (const auto& [name, least, most] :
         {std::tuple{"prompt", d.min_prompt_tokens, d.max_prompt_tokens},
          std::tuple{"output", d.min_output_tokens, d.max_output_tokens}})
        if (!(least >= 0 && most >= 0 && (most == 0 || least <= most)))
            refuse({printed("workload.min_%s_tokens is %lld and max_%s_tokens is %lld: they cannot "
                            "be negative, and the first is at most the second", name,
                            static_cast<long long>(least), name, static_cast<long long>(most))});
    check_think(d.think);
}

/// A workload of an extension, read from its files.
class read_workload {
public:
    virtual ~read_workload() = default;
    /// Fills in defaults that this workload knows.
    virtual scenario completed(scenario s, const api_traits&) const { return s; }
    virtual plan_part planned(const scenario& s, const arrival_data& a,
                              std::uint64_t seed) const = 0;
    /// Returns the starts of its conversations, if arrivals replay them instead of a trace.
    virtual maybe<recorded_trace> starts(const arrival_data&) const { return {}; }
};

inline std::string think_text(const time_distribution& d) {
    return d.a + d.b > 0 ? ", think " + distribution_text(d) : "";
}

inline plan_part workload_of(const prompt_list& list, const request_options& o) {
    if (list.items.size() == 0) refuse({"workload is prompts({}): it needs at least one prompt"});
    vector<std::string> given;
    for (const text& t : list.items) given.push_back(str(t));
    return {.workload_text = printed("%zu prompts", list.items.size()),
            .sent_as_given = "prompts",
            .source = new_shared<const given_prompts>(std::move(given)),
            .forces_length = o.ignore_eos};
}

/// Refuses a function that gives two prompts for one request: its repeats would differ.
inline plan_part workload_of(const generated_prompts& g, const request_options& o,
                                    std::uint64_t seed) {
    if (!g.of) refuse({"workload is generated(nullptr): it needs a function"});
    const auto source = new_shared<const user_prompts>(g);
    constexpr std::size_t tried = 100;
    double tokens = 0;
    for (std::size_t i = 0; i < tried; ++i) {
        const prompt once = source->at(i, seed), again = source->at(i, seed);
        if (!(once.text == again.text && once.output_tokens == again.output_tokens))
            refuse({printed("workload is generated: asked twice for request %zu, its function "
                            "gives two prompts: what is left to chance is drawn from its draw&",
                            i)});
        tokens += estimated_tokens(str(once.text));
    }
    return {.workload_text = joined({printed("generated prompts, about %.0f tokens each",
                                             tokens / static_cast<double>(tried)),
                                     g.force_output ? "" : ", answers as long as they get",
                                     g.salted ? "" : ", not salted"}),
            .sent_as_given = g.salted ? "" : "prompts",
            .source = source,
            .forces_length = g.force_output || o.ignore_eos};
}

inline plan_part workload_of(const dataset& d, const request_options& o,
                                    const vector<dialogue>& sample) {
    check_dataset(d);
    if (sample.empty()) refuse({str(d.path), " was not read"});
    const auto source = new_shared<recorded_dialogues>();
    source->salted = d.salted;
    double prompt_tokens = 0;
    std::size_t turns = 0;
    for (const dialogue& x : sample) {
        source->most_turns = std::max(source->most_turns, x.turns.size());
        turns += x.turns.size();
        prompt_tokens += estimated_prompt_tokens(x);
    }
    const double n = static_cast<double>(sample.size());
    return {.workload_text = joined({printed("%.0f prompts of ", n), file_name(str(d.path)), " (",
                                     format_name(d.format), "), about ",
                                     printed("%.0f tokens each", prompt_tokens / n),
                                     source->most_turns == 1
                                         ? ""
                                         : printed(", %.1f turns each",
                                                   static_cast<double>(turns) / n),
                                     think_text(d.think),
                                     d.force_output ? "" : ", answers as long as they get",
                                     d.salted ? "" : ", not salted"}),
            .sent_as_given = !d.salted ? "prompts" : have_images(sample) ? "images" : "",
            .source = source,
            .think = d.think,
            .forces_length = d.force_output || o.ignore_eos};
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
/// Returns the turns of the longest conversation that can be drawn.
inline std::size_t max_turns_of(const conversations& c) {
    using shape = length_distribution::shape;
    constexpr double limit = 1000;
    const bool is_open = c.turns.kind == shape::normal || c.turns.kind == shape::lognormal;
    const double most = is_open ? c.turns.a : std::max(c.turns.a, c.turns.b);
    if (most > limit)
        refuse({"workload.turns is ", length_text(c.turns),
                ": a conversation has 1 to 1000 turns"});
    return static_cast<std::size_t>(is_open ? limit : most);
}

/// Returns the steps of the longest conversation, with its subagents' turns.
inline std::size_t max_steps_of(const conversations& c, std::size_t most_turns) {
    const double subagents = c.subagents.value;
    check_numbers({{"workload.subagents", subagents * 100, 0, 100, " %"}});
    double max_each = 1;
    for (const auto& [d, field, most] :
         {std::tuple{&c.helpers, "workload.helpers", 64.0},
          std::tuple{&c.helper_turns, "workload.helper_turns", 1000.0}}) {
        const bool is_given = d->kind != length_distribution::shape::fixed || d->a != 0;
        if (is_given != (subagents > 0))
            refuse({field, is_given ? " is given, and subagents is 0 %: no turn starts any"
                                    : " is not given, and subagents says that turns start some"});
        if (!is_given) continue;
        const bool has_end = d->kind == length_distribution::shape::fixed ||
                             d->kind == length_distribution::shape::uniform;
        const double end = std::max(d->a, d->b);
        if (!has_end || !(d->a >= 1 && end <= most))
            refuse({field, " is ", length_text(*d),
                    printed(": give a number, or uniform(low, high), from 1 to %g", most)});
        check_length(*d, field, 1);
        max_each *= end;
    }
    if (subagents == 0) return most_turns;
    if (most_turns == 1)
        refuse({"workload.subagents is given, and conversations have one turn: a turn that another "
                "follows starts helpers"});
    const double steps = static_cast<double>(most_turns) +
                         static_cast<double>(most_turns - 1) * max_each;
    if (steps > max_session_steps)
        refuse({printed("a conversation may have %.0f steps, its helpers' among them: at most %zu "
                        "are allowed", steps, max_session_steps)});
    return static_cast<std::size_t>(steps);
}
inline std::string helpers_text(const conversations& c) {
    if (c.subagents.value == 0) return "";
    return joined({printed(", %.9g %% of the turns helped by ", c.subagents.value * 100),
                   length_text(c.helpers), " of ", length_text(c.helper_turns), " turns each"});
}

inline plan_part workload_of(const conversations& c, const request_options& o) {
    check_conversations(c);
    const std::size_t most_turns = max_turns_of(c);
    check_think(c.think);
    const std::size_t max_steps = max_steps_of(c, most_turns);
    const std::string system =
        c.system_tokens.a > 0 ? ", a system prompt of " + length_text(c.system_tokens) +
                                    (c.shared_system_prompt ? " shared by all" : " of their own")
                              : "";
    const bool is_forced = c.force_output || o.ignore_eos;
    plan_part w{.workload_text = joined({"conversations, ", length_text(c.turns),
                                         " turns, messages of ", length_text(c.user_tokens),
                                         " tokens, answers of ", is_forced ? "" : "at most ",
                                         length_text(c.output_tokens), system, helpers_text(c),
                                         think_text(c.think)}),
                .think = c.think,
                .forces_length = is_forced};
    // Conversations of one turn are prompts, and the system prompt is their shared prefix.
    if (most_turns == 1) {
        w.source = new_shared<const synthetic_prompts>(
            synthetic{.prompt_tokens = c.user_tokens,
                      .output_tokens = c.output_tokens,
                      .shared_prefix = c.system_tokens});
        return w;
    }
    const auto made = new_shared<synthetic_conversations>(c);
    made->most_turns = max_steps;
    made->max_own_turns = most_turns;
    w.source = made;
    return w;
}

inline void check_own_lengths(const arrival_data& a, const length_distribution& d,
                              const char* field) {
    if (d.kind == length_distribution::shape::trace && a.kind != arrival_kind::replay)
        refuse({field, " is from_trace(): arrivals must be replay(...), they are ",
                arrival_text(a)});
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
    check_numbers({{"workload.prefix_groups", static_cast<double>(w.prefix_groups), 1, 1e6},
                   {"workload.prefix_fraction", w.prefix_fraction.value * 100, 0, 100, " %"}});
}
inline plan_part workload_of(const synthetic& w, const arrival_data& a,
                                    const warmup_amount& warmup, const request_options& o,
                                    const api_traits& api) {
    check_synthetic(w, a);
    const bool is_forced = w.force_output || o.ignore_eos;
    const auto before =
        warmup_sends(a, static_cast<std::size_t>(warmup.requests()), warmup.seconds());
    std::string prefix;
    if (w.shared_prefix.a > 0) {
        prefix = ", shared prefix " + length_text(w.shared_prefix) + " tokens";
        if (w.prefix_groups > 1)
            prefix += printed(" in %lld groups", static_cast<long long>(w.prefix_groups));
        if (w.prefix_fraction.value < 1)
            prefix += printed(" for %.9g %% of the prompts", w.prefix_fraction.value * 100);
    }
    return {.workload_text = joined({"synthetic, prompt ", length_text(w.prompt_tokens), " tokens",
                                     api.generates ? ", output " : "",
                                     api.generates && !is_forced ? "at most " : "",
                                     api.generates ? length_text(w.output_tokens) + " tokens" : "",
                                     prefix}),
            .source = new_shared<const synthetic_prompts>(w, before),
            .forces_length = is_forced};
}

inline void check_no_max_tokens(const request_options& o) {
    if (o.max_tokens)
        refuse({printed("options.max_tokens is %d: a synthetic workload says its own output_tokens",
                        *o.max_tokens)});
}

inline plan_part workload_of(const scenario& s, const arrival_data& arrivals,
                                    const workload_files& files, const api_traits& api,
                                    std::uint64_t default_seed) {
    const box& w = s.workload.what();
    if (const auto* d = w.get<dataset>()) return workload_of(*d, s.options, files.dialogues);
    if (const auto* list = w.get<prompt_list>()) return workload_of(*list, s.options);
    const long long given_seed = s.seed;
    const std::uint64_t seed = given_seed > 0 ? static_cast<std::uint64_t>(given_seed)
                                              : default_seed;
    if (const auto* own = w.get<generated_prompts>()) return workload_of(*own, s.options, seed);
    if (w.get<extension_value>()) {
        if (!files.of_extension) refuse({"workload was not read"});
        return files.of_extension->planned(s, arrivals, seed);
    }
    check_no_max_tokens(s.options);
    if (const auto* talk = w.get<conversations>()) return workload_of(*talk, s.options);
    if (const auto* made = w.get<synthetic>())
        return workload_of(*made, arrivals, s.warmup, s.options, api);
    synthetic as_recorded;
    if (arrivals.kind == arrival_kind::replay)
        as_recorded.prompt_tokens = as_recorded.output_tokens = from_trace();
    return workload_of(as_recorded, arrivals, s.warmup, s.options, api);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
