// the repeats of a gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/random.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/measured/settling.hpp"
#include "core/judging/client_bias.hpp"
#include "core/judging/evidence.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/terms.hpp"
#include "core/judging/validity.hpp"
#include "core/judging/values.hpp"
#include "core/traffic/load_conditions.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/tokens.hpp"
#include "core/described/described.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/relative.hpp"
#include "core/capacity/probes.hpp"
#include "core/capacity/search.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/profiled.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/profile.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/page_watch.hpp"
#include "effects/targets/same_server.hpp"
#include "effects/gates/announcement.hpp"
#include "effects/gates/profiler.hpp"
#include "effects/gates/ranked_repeat.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/shared_repeat.hpp"
#include "effects/gates/record_files.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/unended_profiles.hpp"

#include <algorithm>  // any_of, count_if, max
#include <cstdint>  // uint64_t
#include <map>
#include <memory>  // make_unique, unique_ptr
#include <optional>
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Blocks of two pairs, ABBA or BAAB by the seed: a drift of the machine hits both arms alike.
inline bool baseline_goes_first(std::uint64_t seed, int pair) {
    const bool flipped = mixed(seed + 7919 * static_cast<std::uint64_t>(pair / 2)) & 1;
    return flipped != (pair % 2 == 1);
}

/// One repeat: alone, as a shard, or as a rank among others.
inline repeat_data sent_with_others(const plan& what, live_target& target, run_arm arm, int number,
                                    int gate, const repeat_terms& terms) {
    if (what.shard.is_whole()) return watched_repeat(what, target, arm, number, gate, terms);
#ifdef LLMBENCH_WITH_MPI
    if (!rank_group::of_this_program().is_alone())
        return repeat_of_ranks(what, target, arm, number, gate, terms);
#endif
    return repeat_of_shard(what, target, arm, number, gate, terms);
}

/// One repeat, which leaves its records and what the server tells of itself meanwhile.
inline repeat_data recorded_repeat(const plan& what, live_target& target, run_arm arm, int number,
                                   int gate, long long deadline_ns, progress_meter& meter) {
    session& program = session::of_this_program();
    record_writer writer(program.records(), what.name);
    const repeat_terms terms{deadline_ns, program.room_for_gaps(), &writer.box(), &meter, {}};
    repeat_data d = sent_with_others(what, target, arm, number, gate, terms);
    program.note_gaps(d.gaps.size());
    return d;
}

/// What came of a gate's repeats.
struct measured_gate {
    target_facts target{}, baseline{};
    evidence seen{};
    terms judged_by{};
    findings found{};
    taken_profile profile{};  // of the candidate, where it failed
};

/// The servers of a gate, and its repeats on them.
class gate_run {
public:
    gate_run(const plan& p, const scenario& s, const run_mode& mode, progress_mode progress)
        : p_(p),
          mode_(mode),
          candidate_(s.target, run_arm::candidate, mode.stand_in(run_arm::candidate)),
          meter_(p, progress, surroundings_of_program().style()) {
        candidate_.also_serve(str(s.baseline.otherwise().model));
        if (s.baseline.is_same_server() || sent_.otherwise) baseline_ = &candidate_;
        else if (judged_.has_baseline) {
            other_ = std::make_unique<live_target>(s.baseline.live(), run_arm::baseline,
                                                   mode.stand_in(run_arm::baseline));
            baseline_ = other_.get();
        }
        if (mode.write_baseline) {
            const std::string file = str(judged_.stored.file);
            check_writable(file);
            check_own_baseline(file, p_.name, session::of_this_program().baseline_in(file));
        }
        static_cast<load_conditions&>(all_.seen) = load_conditions_of(p);
        all_.judged_by = terms_asked(p, mode);
    }
    /// False where there is no time for a single repeat.
    bool bring_up() {
        if (is_out_of_time(0)) { announce_stop(); return false; }
        const auto left_s = [&] { return seconds_until(mode_.deadline_ns); };
        candidate_.bring_up(left_s());
        if (other_) other_->bring_up(left_s());
        end_profiles_on(candidate_);
        if (other_) end_profiles_on(*other_);
        if (other_) check_two_servers();
        candidate_.check_answers(sent_.common);
        candidate_.learn_tokens(p_, left_s());
        all_.target = candidate_.facts();
        if (other_) {
            other_->check_answers(sent_.common);
            other_->learn_tokens(p_, left_s());
        }
        if (baseline_) all_.baseline = baseline_->facts();
        if (sent_.otherwise) note_other_requests();
        else if (baseline_ == &candidate_) all_.baseline.kind = target_kind::same;
        check_server_objectives();
        check_images(p_, *candidate_.load().api);
        if (baseline_) check_images(p_, *baseline_->load().api);
        if (!judged_.has_stored_baseline) return true;
        all_.baseline.kind = target_kind::stored;
        all_.baseline.url = str(judged_.stored.file);
        if (mode_.write_baseline) return true;
        const stored_gate& old = mode_.stored;
        if (!mode_.model) check_comparable(old, str(judged_.stored.file), p_, all_.target);
        all_.judged_by.stored = {str(judged_.stored.file), judged_.stored.day_to_day.value,
                                 old.statistics, old.carried};
        return true;
    }
    /// Without a word.
    void measure_silently() {
        if (p_.searches()) search();
        else measure_repeats();
    }
    /// Repeats the load until every SLO is decided, the repeats or the time are spent, or nothing
    /// can be said. A repeat that the client has too great a part in is measured again.
    void measure() {
        meter_.say(announcement(p_, all_.target, all_.baseline));
        measure_silently();
    }
#ifdef LLMBENCH_WITH_MPI
    /// What another rank than the first does instead: its part of each repeat, until the gate is
    /// over. What went wrong with one is rank 0's to tell.
    void follow() {
        rank_group& ranks = rank_group::of_this_program();
        for (;;) {
            const rank_command c = command_of(ranks.heard(std::string(), 10 * ranks.wait_s()));
            if (c.is_over) return;
            answer_s_ = c.answer_s;
            const plan what = c.load > 0 ? at_load(p_, c.load, c.answer_s)
                                         : plan_of_repeat(p_, c.slot);
            const long long deadline_ns = c.left_s > 0 ? now_ns() + ns_of(c.left_s) : 0;
            try {
                recorded_repeat(plan_of_arm(what, c.arm),
                                c.arm == run_arm::baseline ? *baseline_ : candidate_, c.arm,
                                c.number, session::of_this_program().running_gate(), deadline_ns,
                                meter_);
            } catch (const std::exception&) {
                // Rank 0 has heard of it.
            }
        }
    }
    /// Rank 0's last word, however its gate ended.
    static void end_other_ranks() {
        rank_group& ranks = rank_group::of_this_program();
        if (!ranks.is_alone() && ranks.is_first())
            ranks.heard(text_of({.is_over = true}), ranks.wait_s());
    }
#endif
    /// All that there is to know, once.
    measured_gate finished() {
        if (!is_assessed_) all_.found = assess_loads(all_.seen, all_.judged_by);
        if (judged_.on_fail && mode_.judges() && shows_a_miss(all_.found.verdicts))
            profile_failure();
        if (mode_.write_baseline && !p_.searches())
            all_.found.bias = bias_of_baseline(all_.seen, all_.judged_by);
        return std::move(all_);
    }

private:
    /// The same load once more, with other words, and nothing of it is evidence.
    void profile_failure() {
        const double lasts_s = (*judged_.on_fail).duration.seconds();
        const int gate = session::of_this_program().running_gate();
        meter_.say("  failed: its server is asked for a profile of " + time_text(lasts_s) +
                   " of the same load\n");
        meter_.stage("profile");
        profiler by(*judged_.on_fail, candidate_, gate);
        plan again = profiled(p_);
        again.shard = {};  // rank 0 sends all of it
        all_.profile = profile_under_load(by, lasts_s, mode_.deadline_ns, [&](long long until_ns) {
            return run_repeat(again, candidate_, run_arm::candidate, measured_++, gate,
                              {until_ns, most_gaps_kept, nullptr, &meter_, {}})
                .records.size();
        });
        if (all_.profile.goes_on && !candidate_.is_process())
            unended_profiles::of_this_program().add(candidate_.facts().url, p_.name,
                                                    *judged_.on_fail);
    }
    /// What earlier gates left running on a server is ended, or told.
    void end_profiles_on(const live_target& server) {
        const int gate = session::of_this_program().running_gate();
        for (const std::string& note : unended_profiles::of_this_program().ended_on(server, gate)) {
            meter_.say("  note: " + note + "\n");
            all_.seen.notes.push_back(note);
        }
    }
    void measure_repeats() {
        while (count() < most_repeats_) {
            const long long began = now_ns();
            if (is_out_of_time(next_slot())) return announce_stop();
            if (!measure_once(next_slot())) return announce_stop();
            slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
            if (mode_.is_shard && !interrupted.load()) continue;  // the others go on, too
            if (!mode_.judges() || !is_analysed_after(count())) {
                if (fault_of_gate(all_.seen)) return;
                if (mode_.write_baseline)
                    measure_again(bias_of_baseline(all_.seen, all_.judged_by));
                continue;
            }
            all_.found = assess(all_.seen, all_.judged_by);
            is_assessed_ = true;
            if (all_.found.on.invalid) return;
            if (measure_again(all_.found.bias)) continue;
            // Under too much load a shown miss is told as one, and red takes a third repeat.
            if (count() < first_fail && all_.found.on.saturated) continue;
            if (all_decided(all_.found.verdicts, judged_.repeats_are_asked) && !all_.found.bias)
                return;
            if (count() == judged_.most_repeats && is_noisy())
                most_repeats_ = std::max(most_repeats_, judged_.most_if_noisy);
            meter_.decided(all_.found.verdicts);
        }
    }
    /// Probes, until all that can be shown of the capacity is, or there are no more.
    void search() {
        for (;;) {
            if (count() > 0 ? fault_of_gate(all_.seen) : fault_of_lead(all_.seen)) return;
            const next_on_arms next = next_probes(p_, all_.seen, all_.judged_by);
            if (!next.done.empty()) return;
            const long long arms = static_cast<long long>(next.arms.size());
            if (is_past_deadline(arms * ns_of(expected_seconds(plan_at(next.load)))))
                return announce_stop();
            if (!probe_once(next)) return announce_stop();
            const repeat_list& last = all_.seen.arm(next.arms.back());
            if (next.arms.size() == 1 && lengthens(last.back())) continue;
            if (const auto bias = bias_of_probes(next)) {
                const int disturbed = all_.seen.candidate[bias->repeat].index;
                for (auto* arm : {&all_.seen.candidate, &all_.seen.baseline})
                    for (std::size_t i = 0; i < arm->size(); ++i)
                        if ((*arm)[i].index == disturbed)
                            arm->change(i, [&](repeat_data& d) {
                                d.disturbed = described(bias->why);
                            });
                meter_.say(printed("  probe %zu shows nothing: ", bias->repeat + 1) +
                           described(bias->why) + "\n");
            }
        }
    }
    std::optional<client_bias> bias_of_probes(const next_on_arms& last) const {
        if (last.part == probe_of::compared)
            return bias_of_ratio(all_.seen, all_.judged_by, judged_.slos[0]);
        return last.arms[0] == run_arm::candidate ? bias_at(all_.seen, all_.judged_by, last.load)
                                                  : std::nullopt;
    }
    /// On each of the arms in turn. False where the time ended before all were measured: then none
    /// of them is evidence.
    bool probe_once(const next_on_arms& next) {
        const int number = measured_++;
        const std::size_t before =
            std::max(all_.seen.candidate.size(), all_.seen.baseline.size());
        for (const run_arm arm : next.arms) {
            meter_.stage(probe_name(p_, before) + " at " +
                         value_text(load_metric(p_), next.load) +
                         (judged_.has_baseline ? std::string(", ") + to_string(arm) : ""));
            live_target& on = arm == run_arm::baseline ? *baseline_ : candidate_;
            if (repeat_on(on, arm, number, number, plan_at(next.load), &next)) continue;
            for (auto* measured : {&all_.seen.candidate, &all_.seen.baseline})
                if (!measured->empty() && measured->back().index == number) measured->pop_back();
            return false;
        }
        return true;
    }
    /// The same for all probes at a load.
    const plan& plan_at(double load) {
        const auto at = probe_plans_.find(load);
        if (at != probe_plans_.end()) return at->second;
        return probe_plans_.emplace(load, at_load(p_, load, answer_s_)).first->second;
    }
    /// Where answers take so long that it was the start of a load that was measured, not the load,
    /// its first probe is set aside and those to come are longer. A later one stays, however slow:
    /// what goes must not depend on how good it was.
    bool lengthens(const repeat_data& d) {
        const double now = usual_answer_s(d), was = answer_s_;
        if (is_over(d, all_.seen.arrival_cv2) || now <= was) return false;
        answer_s_ = now;
        const double measured_s = probe_seconds(p_, d.load, was);
        const auto at_this_load = [&](const repeat_data& x) { return x.load == d.load; };
        const repeat_list& all = all_.seen.arm(d.arm);
        const bool is_first = std::count_if(all.begin(), all.end(), at_this_load) == 1;
        if (!is_first || probe_seconds(p_, d.load, now) <= 1.25 * measured_s) return false;
        probe_plans_.erase(d.load);
        const client_bias short_of{{because::probe_too_short, {now, measured_s}},
                                   all_.seen.candidate.size() - 1};
        const bool goes = measure_again(short_of);
        again_ = -1;  // what comes next follows from the probes that are left
        return goes;
    }
    void check_two_servers() const {
        const std::string& mine = candidate_.facts().url;
        const std::string& its = other_->facts().url;
        std::string why = same_server_reason(candidate_.load(), mine, other_->load(), its);
        if (why.empty() && lead_to_one_process(candidate_.load(), candidate_.pages(),
                                               other_->load(), other_->pages(), sent_.common))
            why = one_process_text("target", mine, "baseline", its) +
                  " and would be compared with itself: forward another port, or say .baseline = "
                  "same_server()";
        if (!why.empty()) refuse({why});
    }
    /// Two arms of one server are told apart by what they ask.
    void note_other_requests() {
        all_.baseline.kind = target_kind::otherwise;
        const load_target& other = candidate_.load(run_arm::baseline);
        all_.baseline.model = printable(without_secrets(other.model, other.secrets));
        all_.target.options = options_text(p_, run_arm::candidate);
        all_.baseline.options = options_text(p_, run_arm::baseline);
        check_other_requests(p_, candidate_.load(), other);
    }
    void check_server_objectives() const {
        candidate_.check_reports_metrics(judged_.slos, sent_.common);
        std::vector<slo> compared = judged_.slos;
        std::erase_if(compared, [](const slo& s) { return s.factor == 0; });
        if (baseline_) baseline_->check_reports_metrics(compared, sent_.common);
    }
    /// Beyond the usual repeats or pairs there is one look, at the last of the additional ones.
    bool is_analysed_after(int repeats) const {
        return repeats >= judged_.first_repeats &&
               (repeats <= judged_.most_repeats || repeats == most_repeats_);
    }
    bool is_noisy() const {
        const std::vector<decision>& all = all_.found.verdicts;
        return std::any_of(all.begin(), all.end(), [&](const decision& v) {
            return is_waited_for(v, judged_.repeats_are_asked) &&
                   asks_for_more(all_.seen, all_.judged_by, v);
        });
    }
    /// Whether the next repeat would not be over in time.
    bool is_out_of_time(int repeat) const {
        const bool doubled = judged_.rule.traffic == fresh && repeat + 1 == last_stage;
        const double arms = baseline_ ? 2 : 1;
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
                    count(), most_repeats_, counted_text(p_));
    }
    /// Repeats, pairs or stages that are evidence.
    int count() const { return static_cast<int>(all_.seen.candidate.size()); }
    /// Which of them comes next: the one that was set aside, where there is one.
    int next_slot() const { return again_ >= 0 ? again_ : count(); }
    /// Sets a repeat or pair aside for another, where there may be another. Whether it goes does
    /// not depend on how good it was: only what the client had a part in goes, and only while a
    /// verdict hangs on that part; a pass that needs no forgiveness and a miss that remains with
    /// all of it never do. There are as many others as the gate has repeats at most, so one whose
    /// client is always stalled ends.
    bool measure_again(const std::optional<client_bias>& bias) {
        if (!bias || bias->repeat >= all_.seen.candidate.size()) return false;
        const int slot = static_cast<int>(bias->repeat);
        const bool in_time = p_.searches() || !is_out_of_time(slot);
        if (measured_ - count() >= judged_.most_repeats || !in_time) return false;
        for (auto* arm : {&all_.seen.candidate, &all_.seen.baseline}) {
            if (bias->repeat >= arm->size()) continue;
            const repeat_data& d = (*arm)[bias->repeat];
            all_.seen.set_aside.push_back({d.arm, d.index, described(bias->why)});
            arm->erase(bias->repeat);
        }
        meter_.say("  " + repeat_name(slot) + " is measured again: " + described(bias->why) +
                   "\n");
        again_ = slot;
        is_assessed_ = false;
        return true;
    }
    std::string repeat_name(int slot) const {
        return printed("%s %d", counted_text(p_), slot + 1);
    }
    /// Both arms, where there are two. False where the time ended in the middle: then neither is
    /// evidence.
    bool measure_once(int slot) {
        is_assessed_ = false;
        const int number = measured_++;
        const bool baseline_first = baseline_ && baseline_goes_first(sent_.seed, slot);
        const plan what = plan_of_repeat(p_, slot);
        bool whole = true;
        if (baseline_first) whole = repeat_on(*baseline_, run_arm::baseline, slot, number, what);
        if (whole) whole = repeat_on(candidate_, run_arm::candidate, slot, number, what);
        if (whole && baseline_ && !baseline_first)
            whole = repeat_on(*baseline_, run_arm::baseline, slot, number, what);
        for (auto* arm : {&all_.seen.candidate, &all_.seen.baseline}) {
            if (arm->empty() || arm->back().index != number) continue;
            if (!whole) arm->pop_back();
            else arm->move_last_to(static_cast<std::size_t>(slot));
        }
        again_ = -1;
        return whole;
    }
    /// `number`: of all that are measured, those set aside included. False where the time ended in
    /// its middle.
    bool repeat_on(live_target& target, run_arm arm, int slot, int number,
                   const plan& what, const search_step* probe = nullptr) {
        if (number > 0) {
            if (target.restarts()) target.restart();
            else rest(target.pages());
        }
        if (!probe)
            meter_.stage(stage_text(p_, slot, arm) + (again_ >= 0 ? ", again" : ""));
        ask_other_ranks(arm, slot, number, probe ? probe->load : 0);
        repeat_data d = recorded_repeat(plan_of_arm(what, arm), target, arm, number,
                                        session::of_this_program().running_gate(),
                                        mode_.deadline_ns, meter_);
        if (probe) {
            d.load = probe->load;
            d.part = probe->part;
        }
        note_warmup(d);
        const bool whole = !d.cut_short;
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

    /// For their part of the repeat that comes next.
    void ask_other_ranks([[maybe_unused]] run_arm arm, [[maybe_unused]] int slot,
                         [[maybe_unused]] int number, [[maybe_unused]] double load) const {
#ifdef LLMBENCH_WITH_MPI
        rank_group& ranks = rank_group::of_this_program();
        if (ranks.is_alone() || !ranks.is_first()) return;
        const bool in_time = mode_.deadline_ns > 0;
        ranks.heard(text_of({false, arm, slot, number, load, answer_s_,
                             in_time ? std::max(0.001, seconds_until(mode_.deadline_ns)) : 0}),
                    ranks.wait_s());
#endif
    }

    const plan& p_;
    const planned_traffic& sent_ = *p_.sent;
    const planned_judging& judged_ = *p_.judged;
    const run_mode& mode_;
    measured_gate all_{};
    int measured_ = 0;  // repeats or pairs so far, those set aside included
    int again_ = -1;    // the slot of the one to measure again
    bool is_assessed_ = false;  // the findings are those of the repeats so far
    double answer_s_ = 0;  // how long answers took, while they kept up with the load
    std::map<double, plan> probe_plans_{};  // by load
    live_target candidate_;
    std::unique_ptr<live_target> other_{};  // of the baseline, where it is a server of its own
    live_target* baseline_ = nullptr;       // none, that one, or the candidate's
    int most_repeats_ = judged_.most_repeats;
    long long slowest_ns_ = 0;  // of the repeats so far
    progress_meter meter_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
