// this program's role in a shared load
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "core/capacity/searched.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/gate_servers.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/recorded_repeat.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/session.hpp"
#include "extensions/machines/ranked_repeat.hpp"
#include "extensions/machines/ranks.hpp"
#include "extensions/machines/shared_plan.hpp"
#include "extensions/machines/shared_repeat.hpp"
#include "extensions/machines/shards.hpp"

#include <cstddef>  // size_t
#include <exception>
#include <functional>
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Shards, which do not communicate.
class shards_of_load : public load_sharing {
public:
    int rank() override { return 0; }
    void when_lost(std::function<void(const std::string&)>) override {}
    bool is_shard(const variable_lookup& look_up) const override {
        return !shard_settings_of(look_up).shard.is_whole();
    }
    void check(const scenario& s, const settings& asked) override {
        if (asked.is_shard) check_shared_target(s);
    }
    void all_or_none(const std::function<void()>& act) override { act(); }
    void take_part(plan& p, const scenario& s, const settings& asked, std::size_t gate) override {
        if (asked.is_shard) p = as_shard(std::move(p), s, asked, gate);
    }
    repeat_data sent(const plan& p, live_target& target, run_arm variant, int number, int gate,
                     const repeat_parameters& parameters) override {
        return repeat_of_shard(p, target, variant, number, gate, parameters);
    }
    void ask(const shared_repeat_order&) override {}
    void end_gate() override {}
    std::string follow(const plan&, gate_servers&, progress_meter&) override { return {}; }
};

#ifdef LLMBENCH_WITH_MPI
/// Ranks of MPI, if it has started several programs.
class ranks_of_load final : public shards_of_load {
public:
    int rank() override { return ranks().index(); }
    void when_lost(std::function<void(const std::string&)> act) override {
        ranks().when_lost(std::move(act));
    }
    void check(const scenario& s, const settings& asked) override {
        if (ranks().is_alone()) return shards_of_load::check(s, asked);
        if (!asked.rehearse.empty())
            refuse({"LLMBENCH_REHEARSE is set, and the load is shared by ranks of MPI: start one "
                    "program, the model answers no others"});
        if (asked.is_shard)
            refuse({"LLMBENCH_SHARD is set, and MPI shares the load already"});
        check_shared_target(s);
    }
    void all_or_none(const std::function<void()>& act) override {
        if (ranks().is_alone()) act();
        else ranks().all_or_none(act, 10 * ranks().wait_s());
    }
    void take_part(plan& p, const scenario& s, const settings& asked, std::size_t gate) override {
        if (ranks().is_alone()) shards_of_load::take_part(p, s, asked, gate);
        else p = as_rank(std::move(p));
    }
    repeat_data sent(const plan& p, live_target& target, run_arm variant, int number, int gate,
                     const repeat_parameters& parameters) override {
        if (ranks().is_alone())
            return shards_of_load::sent(p, target, variant, number, gate, parameters);
        return repeat_of_ranks(p, target, variant, number, gate, parameters);
    }
    void ask(const shared_repeat_order& next) override { tell({false, next}); }
    void end_gate() override { tell({.is_over = true}); }
    /// Rank 0 reports the failure of a repeat.
    std::string follow(const plan& p, gate_servers& servers, progress_meter& meter) override {
        for (;;) {
            const rank_command c = command_of(ranks().heard(std::string(), 10 * ranks().wait_s()));
            const shared_repeat_order& next = c.next;
            if (c.is_over) break;
            const plan what = next.load > 0 ? at_load(p, next.load, next.answer_s) : p;
            const long long deadline_ns = next.left_s > 0 ? now_ns() + ns_of(next.left_s) : 0;
            try {
                recorded_repeat(plan_of_variant(what, next.variant), servers.on(next.variant),
                                next.variant, next.number,
                                session::of_this_program().running_gate(), deadline_ns, meter);
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

/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void make_others_known() {
    load_sharing_of_program = &sharing_with_others;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
