// this program's role in a shared load
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/planning/load_search.hpp"
#include "core/judging/rule.hpp"
#include "core/measured/repeat.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/trace_hash.hpp"
#include "effects/gates/execution.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/slot.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/verbs.hpp"
#include "extensions/machines/api.hpp"
#include "extensions/machines/core/reports.hpp"
#include "extensions/machines/core/together.hpp"
#include "extensions/machines/ranks.hpp"
#include "extensions/machines/shards.hpp"

#include <cmath>  // fabs
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline plan as_shard(plan p, const scenario& s, const settings& asked, std::size_t gate) {
    const shard_settings own = shard_settings_of(environment);
    check_shard(p, own.shard, asked);
    const long long repeats = s.repeats;
    p.shard = own.shard;
    p.max_skew_s = max_skew_of_shards_s;
    p.nonce = shard_clock::nonce(own.start_at_s, asked.seed, gate);
    p = with_judging(std::move(p), [&](planned_judging& j) {
        j.max_repeats = j.first_repeats = repeats > 0    ? static_cast<int>(repeats)
                                          : j.is_at_once ? 1
                                                         : repeats_of_shards;
        j.rule = rule_of(s.judging, j.first_repeats, j.max_repeats, 0, j.is_at_once ? 1 : 5);
    });
    shard_clock::of_this_program().begin_gate(own.start_at_s, p.judged->has_baseline ? 2 : 1);
    const double ahead_s = shard_clock::of_this_program().start_s() - unix_s();
    if (!(ahead_s > 0 && ahead_s < 86400))
        refuse({printed("LLMBENCH_START_AT: the first repeat was to begin %.0f s %s: all shards "
                        "must be there before it, and within a day", std::fabs(ahead_s),
                        ahead_s < 0 ? "ago" : "from now")});
    return p;
}

/// Seconds: 5 ms, or 1 % of the tightest limit on ttft if that is more. Each latency is measured on
/// one clock; only the arrival pattern depends on the skew.
inline double max_skew_of_ranks(const plan& p) {
    double tightest = infinity;
    const auto take = [&](metric_id m, double bound) {
        if (m == metric_id::ttft && bound > 0) tightest = std::min(tightest, bound);
    };
    for (const auto* objectives : {&p.judged->slos, &p.judged->search.objectives_held})
        for (const slo& s : *objectives) {
            if (is_absolute(s)) take(s.statistic.metric, s.bound);
            for (const predicate_step& step : s.statistic.where)
                if (step.op == predicate_step::op_kind::compare) take(step.metric, step.bound);
        }
    return std::max(0.005, tightest < infinity ? 0.01 * tightest : 0);
}

#ifdef LLMBENCH_WITH_MPI
/// One rank's part of a plan, which must be the same at all ranks.
inline plan as_rank(plan p, const load_shard& part) {
    rank_group& ranks = rank_group::of_this_program();
    p.shard = part;
    check_shard(*p.sent, p.shard);
    p.max_skew_s = max_skew_of_ranks(p);
    std::string mine = version_text() + " " + p.name + " " + trace_hash(p) + " " +
                       options_text(p) + " " + limits_text(p) +
                       (p.judged->is_at_once ? " at once" : "");
    for (const slo& x : p.judged->slos) mine += "; " + str(x.text());
    const std::string first = ranks.heard(mine, 10 * ranks.wait_s());
    p.nonce = static_cast<std::uint64_t>(
        ranks.heard(static_cast<long long>(p.nonce), ranks.wait_s()));
    ranks.all_or_none(
        [&] {
            if (mine != first)
                refuse({"its gate is another one than rank 0's: \"", printable(mine),
                        "\" is not \"", printable(first),
                        "\"; all ranks need the same program, arguments and LLMBENCH_ variables"});
        },
        ranks.wait_s());
    return p;
}
#endif

/// Shards, which do not communicate.
class shards_of_load : public load_sharing {
public:
    void check(const scenario& s, const settings& asked) override {
        if (asked.is_shard) check_shared_target(s);
    }
    void take_part(plan& p, const scenario& s, const settings& asked, std::size_t gate) override {
        if (asked.is_shard) p = as_shard(std::move(p), s, asked, gate);
    }
    void send(const slot&, variant_repeats& variants,
              const std::function<void()>& load) override {
        if (variants[0].what.shard.is_whole()) load();
        else send_of_shard(variants, load);
    }
};

#ifdef LLMBENCH_WITH_MPI
/// Ranks of MPI, if it has started several programs.
class ranks_of_load final : public shards_of_load {
public:
    int rank() override { return ranks().index(); }
    load_shard part() override {
        return {static_cast<std::size_t>(ranks().index()),
                static_cast<std::size_t>(ranks().count())};
    }
    void when_lost(std::function<void(const std::string&)> act) override {
        ranks().when_lost(std::move(act));
    }
    void check(const scenario& s, const settings& asked) override {
        check_rank_wait();
        if (ranks().is_alone()) return shards_of_load::check(s, asked);
        if (!asked.rehearse.empty())
            refuse({"LLMBENCH_REHEARSE is set, and the load is shared by ranks of MPI: start one "
                    "program, the model answers no others"});
        if (asked.is_shard) refuse({"LLMBENCH_SHARD is set, and MPI shares the load already"});
        check_shared_target(s);
    }
    void all_or_none(const std::function<void()>& act) override {
        if (ranks().is_alone()) act();
        else ranks().all_or_none(act, 10 * ranks().wait_s());
    }
    void take_part(plan& p, const scenario& s, const settings& asked, std::size_t gate) override {
        if (ranks().is_alone()) shards_of_load::take_part(p, s, asked, gate);
        else p = as_rank(std::move(p), part());
    }
    void send(const slot& s, variant_repeats& variants,
              const std::function<void()>& load) override {
        // A profile after a red gate is of rank 0 alone: the others have left the gate.
        if (ranks().is_alone() || variants[0].what.shard.is_whole())
            return shards_of_load::send(s, variants, load);
        tell({false, s});
        send_of_ranks(variants, load);
    }
    void end_gate() override { tell({.is_over = true}); }
    /// Rank 0 reports the failure of a repeat.
    std::string follow(const std::function<void(const slot&)>& run) override {
        for (;;) {
            const rank_command c =
                command_of(ranks().heard(std::string(), 10 * ranks().wait_s()));
            if (c.is_over) break;
            try {
                run(c.next);
            } catch (const std::exception&) {
                // Rank 0 knows of it.
            }
        }
        return printed("rank %d of %d sends its part of the load: rank 0 judges and reports",
                       ranks().index(), ranks().count());
    }

private:
    static rank_group& ranks() { return rank_group::of_this_program(); }
    static void tell(const rank_command& c) {
        if (!ranks().is_alone() && ranks().is_first()) ranks().heard(text_of(c), ranks().wait_s());
    }
};
inline constinit ranks_of_load sharing_with_others{};
#else
inline constinit shards_of_load sharing_with_others{};
#endif

inline void read_shard_settings(const variable_lookup& look_up, settings& into) {
    into.is_shard = !shard_settings_of(look_up).shard.is_whole();
}
inline constinit const extension loads_shared{.name = "machines",
                                              .read_settings = read_shard_settings,
                                              .show = show_programs};
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_loads_shared() {
    add(loads_shared);
    sharing_of_program = &sharing_with_others;
}

inline stored_shard read_shard(const std::string& directory, const std::string& gate) {
    stored_run run = read_stored_run(std::filesystem::path(directory) / "records.jsonl", gate);
    if (!run.problem_of_events.empty()) refuse({directory, ": ", run.problem_of_events});
    return {directory, std::move(run.gate)};
}

inline result judged_shards(const types::list<types::text>& directories, const slo_list& slos,
                            const types::text& gate, const char* file, int line) {
    scenario as;
    as.name = gate;
    as.slos = slos;
    const gate_reader read = [&] {
        if (directories.size() == 0)
            refuse({"directories: none is named, one for each shard is needed"});
        vector<stored_shard> shards;
        for (const text& d : directories) shards.push_back(read_shard(str(d), str(gate)));
        measured_gate g = gathered(std::move(shards), slos);
        const slo_context context(g.what);
        for (const slo& s : g.what.judged->slos) check_slo(s, context);
        return g;
    };
    vector<std::string> all;
    for (const text& d : directories) all.push_back(str(d));
    return executed(gate_execution(as, file, line, "judge_shards", read, std::move(all)));
}

}  // namespace detail

result judge_shards(const types::list<types::text>& directories, const slo_list& slos,
                    const types::text& gate, const char* file, int line) {
    return detail::asserted(detail::judged_shards(directories, slos, gate, file, line), file, line);
}

}  // inline namespace v1
}  // namespace llmbench
