// the repeats of a gate on its servers
#pragma once

#include "api/result.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/client.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/checks.hpp"
#include "core/judging/measurements.hpp"
#include "core/described/described.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/load_faults.hpp"
#include "core/reports/text.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/accelerators.hpp"
#include "effects/gates/gate_servers.hpp"
#include "effects/gates/gate_verdicts.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/slot.hpp"

#include <algorithm>  // max
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Refuses a stored baseline of another gate, also of one of this program.
inline void check_may_write(const plan& p) {
    check_own_baseline(p, session::of_this_program().with_reports([&](auto& reports) {
        return reports.baseline_in(str(p.judged->stored.file));
    }));
}
/// Measures a gate: brings its servers up, and repeats the load on them.
class gate_run : not_copied {
public:
    /// `servers` and `mode` must outlive this.
    gate_run(plan p, gate_servers& servers, const run_mode& mode, progress_mode progress)
        : all_{{.what = std::move(p)}},
          mode_(mode),
          servers_(servers),
          meter_(work_of(p_), progress, surroundings_of_program().style()) {
        if (mode.kind == run_kind::write_baseline) check_may_write(p_);
        static_cast<load_conditions&>(all_.seen) = load_conditions_of(p_);
        all_.seen.pairs_are_fresh = servers_.pairs_are_fresh();
        all_.seen.known = new_shared<known_results>();
        all_.judged_by = parameters_asked(p_, mode);
        if (!mode.no_noise.empty()) all_.seen.notes.push_back(mode.no_noise);
    }

    /// Returns false if there is no time for a single repeat.
    bool bring_up() {
        if (is_out_of_time()) {
            note_end_of_time();
            return false;
        }
        all_.what = servers_.bring_up(p_, mode_.deadline_ns);
        servers_.each([&](const live_target& t) {
            for (const std::string& note : notes_on_profiles(t, gate_)) {
                meter_.say("  note: " + note + "\n");
                all_.seen.notes.push_back(note);
            }
        });
        servers_.report(p_, all_.target, all_.baseline);
        add_earlier_runs(all_, servers_.candidate(), mode_);
        return true;
    }
    void announce() { meter_.say(announcement(p_, all_.target, all_.baseline)); }
    /// Repeats the load until every SLO is decided, repeats or time are used up, or no verdict is
    /// possible. A repeat with too large a client error is measured again.
    void repeat_until_decided() {
        if (p_.searches()) return each(&extension::probe, *this);
        while (count() < verdicts_.most_repeats()) {
            if (is_out_of_time() || !measure(next_slots())) return note_end_of_time();
            if (count() == 1 && expected_seconds(p_) == 0) {  // the plan cannot tell, as with users
                const auto [least, most] = expected_span(
                    p_, static_cast<double>(slowest_ns_) * 1e-9 / judged_.loads_of_pair());
                meter_.say("  the gate takes " + span_text(least, most) + "\n");
            }
            if (!goes_on()) return;
        }
    }
    /// What another program that shares the load measures.
    void send_part(const slot& s) { run_slot(host_, s); }
    /// Returns all measurements, once.
    measured_gate finished() {
        const analysis& found = verdicts_.so_far();
        if (judged_.profiled && mode_.judges() && !mode_.model && shows_a_miss(found.verdicts))
            all_.profile = judged_.profiled(
                host_, {.number = positions_.begin(), .deadline_ns = mode_.deadline_ns},
                all_.seen.notes);
        if (mode_.kind == run_kind::write_baseline)
            all_.found.by_client = error_of_baseline(all_.seen, all_.judged_by);
        meter_.end();
        all_.accelerators = accelerators_of(host_.candidate);
        all_.seen.known.reset();  // threads may share a result
        return std::move(all_);
    }

    // ---- for a search

    const plan& planned() const { return p_; }
    const measurements& seen() const { return all_.seen; }
    const judging_parameters& judged_by() const { return all_.judged_by; }
    void say(const std::string& words) { meter_.say(words); }
    /// The number of repeats that count.
    int count() const { return static_cast<int>(all_.seen.candidate.size()); }
    bool ends_late(long long needed_ns) const {
        return mode_.deadline_ns > 0 && now_ns() + needed_ns > mode_.deadline_ns;
    }
    void note_end_of_time() {
        verdicts_.forget();
        all_.seen.stopped = budget_text(mode_.time_budget_s, seconds_until(mode_.deadline_ns),
                                        static_cast<double>(needed_ns()) * 1e-9, count(),
                                        verdicts_.most_repeats(), counted_text(p_));
    }
    /// Measures slots that count together. Returns false if the time ended in between: then they do
    /// not count.
    bool measure(vector<slot> slots) {
        const long long began = now_ns();
        const int position = slots[0].position;
        const int number = positions_.begin();
        verdicts_.forget();
        bool whole = true, all = true;
        for (slot& s : slots) {
            s.number = number;
            s.deadline_ns = mode_.deadline_ns;
            variant_repeats variants = orders_of(host_, s);
            whole = make_ready(s, variants) &&
                    keep(run_slot(s, variants, verdicts_.within_repeat(number)));
            // Without the candidate's server no objective is left; some need no baseline.
            const bool is_last = &s == &slots.back();
            all = whole && (is_last || slots.back().variants[0] == run_variant::candidate ||
                            fault_of_gate(all_.seen).what != because::server_gone);
            if (!all) break;
        }
        whole = whole || is_lost_without_pair(number);
        if (all && servers_.has_baseline()) hold_answers_together();
        for (vector<kept_text>& texts : texts_) texts.clear();
        positions_.end({&all_.seen}, whole ? position : repeat_positions::dropped, number);
        if (whole && position >= 0) slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
        return whole;
    }
    /// Sets a repeat or pair aside and measures another, if one is left. The choice does not depend
    /// on the result: a repeat is set aside only for an error of the client, and only while a
    /// verdict depends on that error. Passes without forgiveness and misses that remain with it
    /// stay. There are at most as many replacements as repeats, so a client that always stalls
    /// ends.
    bool repeats_again(const std::optional<client_error>& error) {
        if (!error || error->repeat >= all_.seen.candidate.size()) return false;
        const int position = static_cast<int>(error->repeat);
        if (!positions_.has_another(count()) || (!p_.searches() && is_out_of_time())) return false;
        positions_.set_aside({&all_.seen}, error->repeat, described(error->why));
        meter_.say(printed("  %s %d is measured again: ", counted_text(p_), position + 1) +
                   described(error->why) + "\n");
        if (p_.searches()) positions_.leave_empty();  // the next probe follows from those left
        verdicts_.forget();
        return true;
    }
    /// The probe stays in the list, but counts as no result.
    void leave_out(std::size_t repeat, const std::string& why) {
        all_.seen.candidate.change(repeat, [&](repeat_data& d) { d.disturbed = why; });
    }

private:
    // ---- the repeats

    /// Those of the next repeat, or pair.
    vector<slot> next_slots() const {
        slot each{.position = positions_.next(count()),
                  .name = positions_.is_again() ? ", again" : ""};
        each.parts_twins = servers_.twins_may_meet();
        each.tries_alone = each.parts_twins && is_tried_alone();
        return slots_of(p_, servers_.has_baseline(), each);
    }
    /// Whether another repeat is wanted.
    bool goes_on() {
        // The other programs continue, too.
        if (mode_.kind == run_kind::send_shard && !stop_asked.load()) return true;
        if (!verdicts_.are_due(count())) {
            if (fault_of_gate(all_.seen)) return false;
            if (mode_.kind == run_kind::write_baseline)
                repeats_again(error_of_baseline(all_.seen, all_.judged_by));
            return true;
        }
        const analysis& found = verdicts_.so_far();
        if (found.on.invalid) return false;
        if (repeats_again(found.by_client)) return true;
        if (verdicts_.are_enough(count())) return false;
        meter_.decided(found.verdicts);
        return true;
    }
    /// Whether another repeat would end after the deadline.
    bool is_out_of_time() const { return ends_late(needed_ns()); }
    long long needed_ns() const {
        return std::max(slowest_ns_, ns_of(judged_.loads_of_pair() * expected_seconds(p_)));
    }
    /// Once, users of two servers have each of them alone before both at once.
    bool is_tried_alone() const {
        const auto is_tried = [](const repeat_data& d) { return !std::isnan(d.speed_at_once); };
        return users_of(*p_.sent) > 0 && p_.shard.is_whole() &&
               !any_of(all_.seen.candidate, is_tried);
    }
    /// Returns whether the slot is whole.
    bool keep(slot_seen s) {
        for (std::string& note : s.notes) all_.seen.notes.push_back(std::move(note));
        all_.seen.decided_after = s.part;
        for (repeat_data& d : s.repeats) {
            texts_[d.variant == run_variant::baseline ? 1 : 0] = std::exchange(d.texts, {});
            all_.seen.variant(d.variant).push_back(std::move(d));
        }
        return s.is_whole;
    }
    /// Where the candidate failed throughout in the first pair, no objective needs the half of its
    /// baseline that the time cut off: it is dropped.
    bool is_lost_without_pair(int number) {
        const repeat_list& mine = all_.seen.candidate;
        repeat_list& other = all_.seen.baseline;
        const bool is_lost = mine.size() == 1 && mine.back().index == number &&
                             has_failed_throughout(mine.back());
        if (is_lost && !other.empty() && other.back().index == number) {
            note_dropped(other.back(), all_.seen.notes);
            other.pop_back();
        }
        return is_lost;
    }
    /// Compares the answers of the last pair, if answers are compared.
    void hold_answers_together() {
        const repeat_data& theirs = all_.seen.baseline.back();
        if (!has_hashes(theirs)) return;
        vector<std::string> secrets = servers_.candidate().load().secrets;
        for (const std::string& s : servers_.baseline()->load().secrets)
            secrets.push_back(s);
        all_.seen.candidate.change_last([&](repeat_data& mine) {
            the_answers().compare_answers(mine, theirs, texts_[0], texts_[1],
                            mode_.answers == answers_shown::none ? 0 : max_answers_shown,
                            [&](std::string s) { return without_secrets(std::move(s), secrets); });
        });
    }
    measured_gate all_;
    const plan& p_ = all_.what;
    const planned_judging& judged_ = *p_.judged;
    const run_mode& mode_;
    const int gate_ = session::of_this_program().running_gate();
    gate_servers& servers_;
    progress_meter meter_;
    const slot_host host_{p_,     servers_.candidate(), servers_.baseline(), gate_,
                          &meter_, mode_.answers,        mode_.model != nullptr};
    gate_verdicts verdicts_{all_, mode_};
    repeat_positions positions_{judged_.max_repeats};
    long long slowest_ns_ = 0;  // of the repeats so far
    vector<kept_text> texts_[2]{};  // of the variants of the current pair
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
