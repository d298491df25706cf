// the repeats of a gate on its servers
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/client.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/checks.hpp"
#include "core/judging/values.hpp"
#include "core/judging/measurements.hpp"
#include "core/described/described.hpp"
#include "core/traffic/answer_keeping.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/planning.hpp"
#include "core/planning/past_extension.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/load_faults.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/gate_servers.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/slot.hpp"
#include "effects/gates/slots.hpp"

#include <algorithm>  // any_of, max
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <functional>
#include <memory>  // make_shared
#include <optional>
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

class gate_run;
/// Probes loads until the capacity is known, or probes run out: an extension does it.
using probe_search = void(gate_run&);
inline constinit probe_search* search_by_probes = nullptr;

/// Measures a gate: brings its servers up, and repeats the load on them.
class gate_run : not_copied {
public:
    /// `servers` and `mode` must outlive this.
    gate_run(plan p, gate_servers& servers, const run_mode& mode, progress_mode progress)
        : all_{{.what = std::move(p)}},
          mode_(mode),
          servers_(servers),
          meter_(p_, progress, surroundings_of_program().style()) {
        if (mode.kind == run_kind::write_baseline) {
            const std::string file = str(judged_.stored.file);
            check_writable(file);
            check_own_baseline(file, p_.name,
                               session::of_this_program().with_reports(
                                   [&](program_reports& r) { return r.baseline_in(file); }));
        }
        static_cast<load_conditions&>(all_.seen) = load_conditions_of(p_);
        all_.seen.pairs_are_fresh = servers_.pairs_are_fresh();
        all_.seen.known = std::make_shared<known_results>();
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
        const bool judges = rank_of_program() == 0;
        if (const past_extension* const by = mode_.past_of(p_); by && judges) {
            all_.past = by->of_gate(p_, servers_.candidate(), all_.target, mode_);
            all_.judged_by.past = all_.past->judge();
        }
        if (!judged_.has_stored_baseline) return true;
        all_.baseline.kind = target_kind::stored;
        all_.baseline.url = str(judged_.stored.file);
        if (mode_.kind == run_kind::write_baseline) return true;
        const stored_gate& old = mode_.stored;
        if (!mode_.model) check_comparable(old, str(judged_.stored.file), p_, all_.target);
        all_.judged_by.stored = {str(judged_.stored.file), judged_.stored.day_to_day.value,
                                 old.statistics};
        return true;
    }
    void announce() { meter_.say(announcement(p_, all_.target, all_.baseline)); }
    /// Repeats the load until every SLO is decided, repeats or time are used up, or no verdict is
    /// possible. A repeat with too large a client error is measured again.
    void repeat_until_decided() {
        if (p_.searches()) return search_by_probes(*this);
        while (count() < max_repeats_) {
            if (is_out_of_time() || !next_repeat()) {
                note_end_of_time();
                return;
            }
            if (count() == 1 && expected_seconds(p_) == 0) {  // the plan cannot tell, as with users
                const auto [least, most] = expected_span(
                    p_, static_cast<double>(slowest_ns_) * 1e-9 / judged_.loads_of_pair());
                meter_.say("  the gate takes " + span_text(least, most) + "\n");
            }
            // The other programs continue, too.
            if (mode_.kind == run_kind::send_shard && !stop_asked.load()) continue;
            if (!mode_.judges() || !is_analysed_after(count())) {
                if (fault_of_gate(all_.seen)) return;
                if (mode_.kind == run_kind::write_baseline)
                    repeats_again(error_of_baseline(all_.seen, all_.judged_by));
                continue;
            }
            const analysis& found = analysis_so_far();
            if (found.on.invalid) return;
            if (repeats_again(found.by_client)) continue;
            // A miss shown under saturation is reported as such; most take a third repeat.
            if (count() < first_fail && found.on.saturated && !shows_a_miss(found.verdicts))
                continue;
            if (!mode_.appends() && !found.by_client &&  // all baseline runs have the same number
                is_enough(found.verdicts, {.advisory = judged_.repeats_are_asked}))
                return;
            if (count() == judged_.max_repeats && is_noisy(found))
                max_repeats_ = std::max(max_repeats_, judged_.max_if_noisy);
            meter_.decided(found.verdicts);
        }
    }
    /// Ranks other than the first do this instead.
    std::string follow() {
        return load_sharing_of_program->follow([&](const slot& s) { run_ready(host_, s); });
    }
    /// Returns all measurements, once.
    measured_gate finished() {
        const analysis& found = analysis_so_far();
        if (judged_.on_fail && mode_.judges() && shows_a_miss(found.verdicts))
            all_.profile = the_faults().profiled({p_, servers_.candidate(), meter_,
                                                  all_.seen.notes, gate_, positions_.begin(),
                                                  mode_.deadline_ns});
        if (mode_.kind == run_kind::write_baseline)
            all_.found.by_client = error_of_baseline(all_.seen, all_.judged_by);
        meter_.end();
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
        is_analysed_ = false;  // the reason of undecided verdicts changes
        all_.seen.stopped = budget_text(mode_.time_budget_s, seconds_until(mode_.deadline_ns),
                                        static_cast<double>(needed_ns()) * 1e-9, count(),
                                        max_repeats_, counted_text(p_));
    }
    /// Measures the next repeat, or pair.
    bool next_repeat() {
        const int position = positions_.next(count());
        slot each{.name = positions_.is_again() ? ", again" : ""};
        each.parts_twins = servers_.twins_may_meet();
        each.tries_alone = each.parts_twins && is_tried_alone();
        return measure(slots_at(position, p_, servers_.has_baseline(), each), position);
    }
    /// Measures slots that count together. Returns false if the time ended in between: then they do
    /// not count.
    bool measure(vector<slot> slots, int position = repeat_positions::of_probe) {
        const long long began = now_ns();
        const int number = positions_.begin();
        is_analysed_ = false;
        bool whole = true, all = true;
        for (slot& s : slots) {
            s.number = number;
            s.deadline_ns = mode_.deadline_ns;
            whole = keep(run_slot(host_, s, decides_for(number)));
            // Without the candidate's server no objective is left; some need no baseline.
            const bool is_last = &s == &slots.back();
            all = whole && (is_last || slots.back().variants[0] == run_variant::candidate ||
                            fault_of_gate(all_.seen).what != because::server_gone);
            if (!all) break;
        }
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
        is_analysed_ = false;
        return true;
    }
    /// The probe stays in the list, but counts as no result.
    void leave_out(std::size_t repeat, const std::string& why) {
        all_.seen.candidate.change(repeat, [&](repeat_data& d) { d.disturbed = why; });
    }

private:
    // ---- the repeats

    /// The analysis of all repeats so far.
    const analysis& analysis_so_far() {
        if (!is_analysed_) all_.found = analyse_gate(all_.seen, all_.judged_by);
        is_analysed_ = true;
        return all_.found;
    }
    /// Beyond the usual repeats or pairs there is one analysis, after the last additional one.
    bool is_analysed_after(int repeats) const {
        return repeats >= judged_.first_repeats &&
               (repeats <= judged_.max_repeats || repeats == max_repeats_);
    }
    bool is_noisy(const analysis& found) const {
        return std::any_of(found.verdicts.begin(), found.verdicts.end(), [&](const decision& v) {
            return is_waited_for(v, {.advisory = judged_.repeats_are_asked}) &&
                   asks_for_more(all_.seen, all_.judged_by, v);
        });
    }
    /// Whether another repeat would end after the deadline.
    bool is_out_of_time() const { return ends_late(needed_ns()); }
    long long needed_ns() const {
        return std::max(slowest_ns_, ns_of(judged_.loads_of_pair() * expected_seconds(p_)));
    }
    bool ends_at_first_miss() const {
        return judged_.ends_at_first_miss || mode_.ends_at_first_miss;
    }
    /// Whether all that is waited for is decided, or one is missed and that ends the gate.
    bool is_enough(const vector<decision>& verdicts, awaited which) const {
        return (ends_at_first_miss() && shows_a_miss(verdicts)) || all_decided(verdicts, which);
    }
    /// Whether the load may end here. The verdicts are found again when it has ended, with all that
    /// is known of client and servers by then.
    bool is_decided_by(load_so_far&& so_far, int number) const {
        measurements e = all_.seen;
        e.known.reset();
        e.decided_after = so_far.quarters / 4.0;
        for (repeat_data* d : {&so_far.candidate, &so_far.baseline}) {
            d->index = number;
            d->labels = p_.sent->labels;
            e.variant(d->variant).push_back(std::move(*d));
        }
        const analysis found = analyse_gate(e, all_.judged_by);
        const bool only_advises = all_of(judged_.slos, [](const slo& s) { return s.is_advisory; });
        return !found.on.invalid &&
               is_enough(found.verdicts, {.advisory = only_advises, .invalid = true});
    }
    std::function<bool(load_so_far&&)> decides_for(int number) const {
        if (mode_.kind != run_kind::judge) return {};
        return [this, number](load_so_far&& s) { return is_decided_by(std::move(s), number); };
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
        if (!s.repeats.empty()) all_.seen.decided_after = s.part;
        for (repeat_data& d : s.repeats) {
            texts_[d.variant == run_variant::baseline ? 1 : 0] = std::exchange(d.texts, {});
            all_.seen.variant(d.variant).push_back(std::move(d));
        }
        return s.is_whole;
    }
    /// Compares the answers of the last pair, if answers are compared.
    void hold_answers_together() {
        const repeat_data& theirs = all_.seen.baseline.back();
        if (!has_hashes(theirs)) return;
        vector<std::string> secrets = servers_.candidate().load().secrets;
        for (const std::string& s : servers_.baseline()->load().secrets)
            secrets.push_back(s);
        all_.seen.candidate.change_last([&](repeat_data& mine) {
            the_answers().compare(mine, theirs, texts_[0], texts_[1],
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
    repeat_positions positions_{judged_.max_repeats};
    int max_repeats_ = judged_.max_repeats;
    long long slowest_ns_ = 0;  // of the repeats so far
    bool is_analysed_ = false;  // the analysis is that of the repeats so far
    vector<kept_text> texts_[2]{};  // of the variants of the current pair
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
