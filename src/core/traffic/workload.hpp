// from a workload to its part of the plan
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"
#include "core/base/text.hpp"
#include "core/files/datasets.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/plan.hpp"

#include <algorithm>  // max
#include <string>
#include <tuple>  // fields that are checked alike

namespace llmbench {
inline namespace v0 {
namespace detail {

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
    require(!p.files->dialogues.empty(), str(d.path) + " was not read");
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

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
