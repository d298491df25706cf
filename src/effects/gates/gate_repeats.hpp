// the repeats of a gate, on its servers
#pragma once

#include "api/result.hpp"
#include "core/base/random.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/settling.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/client_bias.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"
#include "core/traffic/plan.hpp"
#include "core/described/described.hpp"
#include "core/capacity/relative.hpp"
#include "core/capacity/search.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/targets/fingerprint.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/page_watch.hpp"
#include "effects/gates/gate_servers.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/ranked_repeat.hpp"
#include "effects/gates/recorded_repeat.hpp"
#include "effects/gates/repeat_slots.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <optional>
#include <string>
#include <utility>  // exchange, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Blocks of two pairs, ABBA or BAAB by the seed: a drift of the machine hits both arms alike.
inline bool baseline_goes_first(std::uint64_t seed, int pair) {
    const bool flipped = mixed(seed + 7919 * static_cast<std::uint64_t>(pair / 2)) & 1;
    return flipped != (pair % 2 == 1);
}

/// What came of a gate's repeats.
struct measured_gate {
    target_facts target{}, baseline{};
    evidence seen{};
    terms judged_by{};
    findings found{};
    taken_profile profile{};  // of the candidate, where it failed
    fingerprint print{};      // of the candidate, where a history asks for it
};

/// A probe of a search, where answers take so long.
struct probe_order {
    probe_of part = probe_of::asked;
    double load = 0, answer_s = 0;
};

/// Measures repeats, pairs, stages or probes, and keeps what is evidence. What it is given must
/// outlive it.
class gate_repeats {
public:
    gate_repeats(const plan& p, const run_mode& mode, gate_servers& servers, measured_gate& all,
                 progress_meter& meter)
        : p_(p),
          mode_(mode),
          servers_(servers),
          all_(all),
          slots_(p.judged->most_repeats),
          most_(p.judged->most_repeats),
          meter_(meter) {}

    /// Those that are evidence.
    int count() const { return static_cast<int>(all_.seen.candidate.size()); }
    /// There are no more than these of them.
    int most() const { return most_; }
    void allow(int most) { most_ = std::max(most_, most); }
    /// What comes next: the one that was set aside, where there is one.
    int next_slot() const { return slots_.next(count()); }
    /// For what is measured beside them.
    int next_number() { return slots_.begin(); }
    /// All that there is to know of them so far.
    const findings& assessed() {
        if (!is_assessed_) all_.found = assess_loads(all_.seen, all_.judged_by);
        is_assessed_ = true;
        return all_.found;
    }

    /// Whether the one in this slot would not be over in time.
    bool is_out_of_time(int slot) const {
        const bool doubled = p_.judged->rule.traffic == fresh && slot + 1 == last_stage;
        const double arms = servers_.has_baseline() ? 2 : 1;
        const long long needed = std::max(slowest_ns_, ns_of(arms * expected_seconds(p_)));
        return is_past_deadline(needed * (doubled ? 2 : 1));
    }
    bool is_past_deadline(long long needed_ns) const {
        return mode_.deadline_ns > 0 && now_ns() + needed_ns > mode_.deadline_ns;
    }
    void announce_stop() {
        is_assessed_ = false;  // what is undecided has another reason now
        all_.seen.stopped =
            printed("LLMBENCH_TIME_BUDGET of %g s is spent after %d of %d %ss", mode_.time_budget_s,
                    count(), most_, counted_text(p_));
    }

    /// The one in the next slot, on both arms where there are two. False where the time ended in
    /// the middle: then neither is evidence.
    bool measure() {
        const int slot = next_slot();
        const long long began = now_ns();
        std::vector<run_arm> arms{run_arm::candidate};
        if (servers_.has_baseline())
            arms.insert(baseline_goes_first(p_.sent->seed, slot) ? arms.begin() : arms.end(),
                        run_arm::baseline);
        if (!measure_on(arms, slot, plan_of_repeat(p_, slot), nullptr)) return false;
        slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
        return true;
    }
    /// A probe on each of the arms in turn; the same where the time ended.
    bool measure(const std::vector<run_arm>& arms, const plan& what, const probe_order& probe) {
        return measure_on(arms, 0, what, &probe);
    }
    /// Sets a repeat or pair aside for another, where there may be another. Whether it goes does
    /// not depend on how good it was: only what the client had a part in goes, and only while a
    /// verdict hangs on that part; a pass that needs no forgiveness and a miss that remains with
    /// all of it never do. There are as many others as the gate has repeats at most, so one whose
    /// client is always stalled ends.
    bool measure_again(const std::optional<client_bias>& bias) {
        if (!bias || bias->repeat >= all_.seen.candidate.size()) return false;
        const int slot = static_cast<int>(bias->repeat);
        if (!slots_.has_another(count()) || (!p_.searches() && is_out_of_time(slot))) return false;
        slots_.set_aside({&all_.seen}, bias->repeat, described(bias->why));
        meter_.say(printed("  %s %d is measured again: ", counted_text(p_), slot + 1) +
                   described(bias->why) + "\n");
        if (p_.searches()) slots_.leave_empty();  // what comes next follows from those left
        is_assessed_ = false;
        return true;
    }

private:
    bool measure_on(const std::vector<run_arm>& arms, int slot, const plan& what,
                    const probe_order* probe) {
        is_assessed_ = false;
        const int number = slots_.begin();
        const std::size_t before =
            std::max(all_.seen.candidate.size(), all_.seen.baseline.size());
        bool whole = true;
        for (const run_arm arm : arms) {
            if (!whole) break;
            if (probe)
                meter_.stage(probe_name(p_, before) + " at " +
                             value_text(load_metric(p_), probe->load) +
                             (p_.judged->has_baseline ? std::string(", ") + to_string(arm) : ""));
            whole = repeat_on(arm, slot, number, what, probe);
        }
        if (whole && arms.size() > 1) hold_answers_together();
        for (std::vector<kept_text>& texts : texts_) texts.clear();
        slots_.end({&all_.seen}, probe ? -1 : slot, number, whole);
        return whole;
    }
    /// Of the pair that stands last. Without answers that are compared nothing is done.
    void hold_answers_together() {
        const repeat_data& theirs = all_.seen.baseline.back();
        if (!has_hashes(theirs)) return;
        std::vector<std::string> secrets = servers_.on(run_arm::candidate).load().secrets;
        for (const std::string& s : servers_.on(run_arm::baseline).load().secrets)
            secrets.push_back(s);
        const answers_shown show = answers_shown_of(environment("LLMBENCH_ANSWERS"));
        all_.seen.candidate.change_last([&](repeat_data& mine) {
            compare_answers(mine, theirs, texts_[0], texts_[1],
                            show == answers_shown::none ? 0 : most_answers_shown,
                            [&](std::string s) { return without_secrets(std::move(s), secrets); });
        });
    }
    /// False where the time ended in its middle.
    bool repeat_on(run_arm arm, int slot, int number, const plan& what, const probe_order* probe) {
        live_target& target = servers_.on(arm);
        if (number > 0) {
            if (target.restarts()) target.restart();
            else rest(target.pages());
        }
        if (!probe)
            meter_.stage(stage_text(p_, slot, arm) + (slots_.is_again() ? ", again" : ""));
        const int gate = session::of_this_program().running_gate();
        target.start_cold(report_directory() + printed("/cold-%d.log", gate));
#ifdef LLMBENCH_WITH_MPI
        const double left_s = seconds_until(mode_.deadline_ns);
        ask_other_ranks({.arm = arm, .slot = slot, .number = number,
                         .load = probe ? probe->load : 0,
                         .answer_s = probe ? probe->answer_s : 0,
                         .left_s = mode_.deadline_ns > 0 ? std::max(0.001, left_s) : 0});
#endif
        repeat_data d = recorded_repeat(plan_of_arm(what, arm), target, arm, number, gate,
                                        mode_.deadline_ns, meter_);
        if (probe) {
            d.load = probe->load;
            d.part = probe->part;
        }
        note_warmup(d);
        const bool whole = !d.cut_short;
        texts_[arm == run_arm::baseline ? 1 : 0] = std::exchange(d.texts, {});
        all_.seen.arm(arm).push_back(std::move(d));
        return whole;
    }
    /// What a warm-up saw is in every report, of a repeat that is set aside later, too: a cold
    /// first wave as well as one that never ended.
    void note_warmup(const repeat_data& d) {
        if (!d.warmup.asked) return;
        const std::string whose = d.arm == run_arm::baseline ? "baseline, " : "";
        all_.seen.notes.push_back(
            warmup_sentence(d.warmup, whose + printed("repeat %d", d.index + 1)));
    }

    const plan& p_;
    const run_mode& mode_;
    gate_servers& servers_;
    measured_gate& all_;
    repeat_slots slots_;
    int most_;
    long long slowest_ns_ = 0;  // of the repeats so far
    bool is_assessed_ = false;  // the findings are those of the repeats so far
    progress_meter& meter_;
    std::vector<kept_text> texts_[2]{};  // of the arms of the pair that is being measured
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
