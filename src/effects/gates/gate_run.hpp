// a gate, from its servers to all that its repeats show
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/judging/client.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/validity.hpp"
#include "core/judging/values.hpp"
#include "core/judging/measurements.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/tokens.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/planning.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/past_extension.hpp"
#include "core/planning/side_tasks.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/console.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/capacity_search.hpp"
#include "effects/gates/gate_repeats.hpp"
#include "effects/gates/profiler.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // any_of, min
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline const char* of_virtual_time() { return current_environment ? " of virtual time" : ""; }

/// Returns the text that a gate prints before its load: plan, servers and limits.
inline std::string announcement(const plan& p, const target_facts& target,
                                const target_facts& baseline) {
    const double seconds = seconds_of_one(p);
    std::string t = "\n" + p.name + "\n  " + plan_text(p) + "\n  " + target_text(target);
    t += compared_text(baseline);
    t += "; " + repeats_text(p);
    const api_traits* api = api_named(target.api);
    if (p.sent->forces_length && api && !api->forces_lengths)
        t += printed("; %s cannot be forced to a length, so answers end where the model ends them",
                     api->name);
    const double held = static_cast<double>(p.sent->arrivals.users) * bytes_held_by_a_user(*p.sent);
    if (held > 64e6)
        t += printed("; its conversations hold about %.0f MB of answers", held / 1e6);
    if (seconds > 0) {
        const auto [least, most] = expected_span(p, seconds);
        t += ", " + span_text(least, most) + of_virtual_time();
        if (p.sent->is_open_loop())
            t += " if the server keeps up, else up to " + time_text(drain_s(*p.sent)) +
                 " more a " + counted_text(p);
    }
    for (const std::string& note : load_notes(*p.sent)) t += "\n  note: " + note;
    for (const target_facts* f : {&target, &baseline})
        for (const std::string& note : f->notes)
            if (session::of_this_program().is_news(note)) t += "\n  note: " + note;
    const bool is_one_server =
        baseline.kind == target_kind::same || baseline.kind == target_kind::otherwise;
    const double shortest = shortest_prompt(p);
    if (makes_up_prompts(p)) t += "\n  " + fit_text(target.tokens, shortest);
    if (makes_up_prompts(p) && p.judged->has_baseline && !is_one_server)
        t += "; baseline: " + fit_text(baseline.tokens, shortest);
    return t + "\n";
}

/// The servers of a gate, and the measurements on them.
class gate_run {
public:
    /// bring_up() fits `p` to the room that the servers report.
    gate_run(plan& p, const scenario& s, const run_mode& mode, progress_mode progress)
        : p_(p),
          mode_(mode),
          servers_(p, s, mode),
          meter_(p, progress, surroundings_of_program().style()),
          repeats_(p, mode, servers_, all_, meter_) {
        if (mode.kind == run_kind::write_baseline) {
            const std::string file = str(judged_.stored.file);
            check_writable(file);
            check_own_baseline(file, p_.name, session::of_this_program().baseline_in(file));
        }
        static_cast<load_conditions&>(all_.seen) = load_conditions_of(p);
        all_.judged_by = parameters_asked(p, mode);
        if (!mode.no_noise.empty()) all_.seen.notes.push_back(mode.no_noise);
    }
    gate_run(const gate_run&) = delete;
    gate_run& operator=(const gate_run&) = delete;

    /// Returns false if there is no time for a single repeat.
    bool bring_up() {
        if (repeats_.is_out_of_time()) { repeats_.announce_stop(); return false; }
        const auto left_s = [&] { return seconds_until(mode_.deadline_ns); };
        const bool asks_first = std::any_of(
            judged_.slos.begin(), judged_.slos.end(),
            [](const slo& s) { return s.what.metric == metric_id::first_answer_time; });
        servers_.candidate().ask_first_answer(asks_first, p_.sent->common,
                                              p_.sent->limits.total.seconds());
        servers_.each([&](live_target& t) { t.bring_up(left_s()); });
        servers_.each([&](const live_target& t) { end_profiles_on(t); });
        servers_.check_two_servers();
        p_ = without_long_sessions(
            p_, [&](const std::string& model) { return servers_.room_of(model); });
        servers_.each([&](live_target& t) {
            t.check_answers(*p_.sent);
            t.learn_tokens(p_, left_s());
        });
        servers_.report(all_.target, all_.baseline);
        servers_.check_objectives();
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
    /// Prints nothing.
    void measure_silently() {
        if (p_.searches()) capacity_search(p_, all_, repeats_, meter_).measure();
        else measure_repeats();
    }
    /// Repeats the load until every SLO is decided, repeats or time are used up, or no verdict is
    /// possible. A repeat with too large a client error is measured again.
    void measure() {
        meter_.say(announcement(p_, all_.target, all_.baseline));
        measure_silently();
    }
    /// Ranks other than the first do this instead.
    std::string follow() { return load_sharing_of_program->follow(p_, servers_, meter_); }
    /// Returns all measurements, once.
    measured_gate finished() {
        const analysis& found = repeats_.analysed();
        if (judged_.on_fail && mode_.judges() && shows_a_miss(found.verdicts)) profile_failure();
        if (mode_.kind == run_kind::write_baseline)
            all_.found.by_client = error_of_baseline(all_.seen, all_.judged_by);
        meter_.end();
        return std::move(all_);
    }

private:
    /// The same load again, with other words; its measurements are not used.
    void profile_failure() {
        const double lasts_s = (*judged_.on_fail).duration.seconds();
        const int gate = session::of_this_program().running_gate();
        live_target& failed = servers_.on(run_variant::candidate);
        meter_.say("  failed: its server is asked for a profile of " + time_text(lasts_s) +
                   " of the same load\n");
        meter_.stage("profile");
        profiler by(*judged_.on_fail, failed, gate);
        plan again = profiled(p_);
        again.shard = {};  // rank 0 sends all of it
        const int number = repeats_.next_number();
        try {
            prepare_server(again, failed, number, p_.sent->limits.total.seconds());
        } catch (const std::runtime_error& e) {
            all_.seen.notes.push_back(std::string("the profile is of a server as it was left: ") +
                                      reason_in(e));
        }
        all_.profile = profile_under_load(by, lasts_s, mode_.deadline_ns, [&](long long until_ns) {
            return run_repeat(again, failed, run_variant::candidate, number, gate,
                              {until_ns, max_gaps_kept, nullptr, &meter_, {}, answers_shown::none})
                .records.size();
        });
        if (all_.profile.goes_on && !failed.is_process())
            unended_profiles().push_back({failed.facts().url, p_.name, *judged_.on_fail});
    }
    /// Ends profiles that earlier gates left running on a server, or reports them.
    void end_profiles_on(const live_target& server) {
        const int gate = session::of_this_program().running_gate();
        for (const std::string& note : end_profiles(server, gate)) {
            meter_.say("  note: " + note + "\n");
            all_.seen.notes.push_back(note);
        }
    }
    void measure_repeats() {
        while (repeats_.count() < repeats_.max_repeats()) {
            if (repeats_.is_out_of_time() || !repeats_.measure())
                return repeats_.announce_stop();
            // The other programs continue, too.
            if (mode_.kind == run_kind::send_shard && !stop_asked.load()) continue;
            const int count = repeats_.count();
            if (!mode_.judges() || !is_analysed_after(count)) {
                if (fault_of_gate(all_.seen)) return;
                if (mode_.kind == run_kind::write_baseline)
                    repeats_.measure_again(error_of_baseline(all_.seen, all_.judged_by));
                continue;
            }
            const analysis& found = repeats_.analysed();
            if (found.on.invalid) return;
            if (repeats_.measure_again(found.by_client)) continue;
            // A miss shown under saturation is reported as such; a fail takes a third repeat.
            if (count < first_fail && found.on.saturated) continue;
            if (!mode_.appends() && !found.by_client &&  // all baseline runs have the same number
                all_decided(found.verdicts, judged_.repeats_are_asked)) return;
            if (count == judged_.max_repeats && is_noisy(found))
                repeats_.allow(judged_.max_if_noisy);
            meter_.decided(found.verdicts);
        }
    }
    /// Beyond the usual repeats or pairs there is one analysis, after the last additional one.
    bool is_analysed_after(int repeats) const {
        return repeats >= judged_.first_repeats &&
               (repeats <= judged_.max_repeats || repeats == repeats_.max_repeats());
    }
    bool is_noisy(const analysis& found) const {
        return std::any_of(found.verdicts.begin(), found.verdicts.end(), [&](const decision& v) {
            return is_waited_for(v, judged_.repeats_are_asked) &&
                   asks_for_more(all_.seen, all_.judged_by, v);
        });
    }

    plan& p_;
    const planned_judging& judged_ = *p_.judged;
    const run_mode& mode_;
    measured_gate all_{};
    gate_servers servers_;
    progress_meter meter_;
    gate_repeats repeats_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
