// one gate from its scenario to its result
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/judging/calibration.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judge.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/capacity/found.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/capacity/searched.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/check_slo.hpp"
#include "core/planning/planning.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/workload_files.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/held_result.hpp"
#include "effects/gates/rehearsed.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/turn.hpp"
#include "effects/gates/virtual_gate.hpp"

#include <algorithm>  // max
#include <cstdint>  // uint64_t
#include <functional>  // what all do or none
#include <memory>  // shared_ptr, unique_ptr
#include <optional>
#include <stdexcept>  // invalid_argument, exception
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline scenario_use use_of(std::string_view verb) {
    return verb == "gate"            ? scenario_use::gate
           : verb == "find_capacity" ? scenario_use::find_capacity
                                     : scenario_use::measure;
}
/// Returns the plan with the name and the place of its gate.
inline plan named_as(const gate_identity& who, plan p) {
    static_cast<gate_identity&>(p) = who;
    return p;
}
inline plan plan_of(const scenario& s, const gate_report& who, std::uint64_t seed,
                    scenario_use use, const api_traits& api) {
    plan p = named_as(who.what, planned(s, seed, read_workload_files(s, seed), use, api));
    p = with_traffic(std::move(p), [](planned_traffic& t) { t.hash = trace_hash(t); });
    p.nonce = fresh_nonce(seed, p.name);
    return p;
}

/// Marks verdicts that need no judgement as skipped.
inline void mark_skipped(std::vector<slo_verdict>& verdicts, bool relative_only,
                         const std::string& why) {
    for (slo_verdict& v : verdicts) {
        const bool concerned = relative_only ? v.what.factor > 0 : v.outcome != verdict::invalid;
        if (concerned) v = without_advice(v, verdict::skipped, why);
    }
}

/// Returns why measurements cannot be a baseline, "" if they can.
inline std::string fault_of(const measured_gate& m) {
    for (const std::string& why : {described(m.found.on.invalid),
                                   described(m.found.on.self_check.why),
                                   m.found.bias ? described(m.found.bias->why) : "",
                                   m.seen.stopped,
                                   described(m.found.on.saturated)})
        if (!why.empty()) return why;
    for (const decision& v : m.found.verdicts) {
        const bool is_judged = v.what.factor == 0 && !v.what.is_advisory;
        if (is_judged && v.outcome == verdict::invalid) return described(v.why, v);
        if (is_judged && v.what.what.metric == metric_id::error_rate &&
            v.estimate.value > v.limit)
            return flat_line(described(v));
    }
    return {};
}

/// Returns the gate as reports show it, with all figures.
inline gate_report report_of(const plan& p, const measured_gate& m, const settings& asked) {
    gate_report g;
    g.what = p;
    g.target = m.target;
    g.baseline = m.baseline;
    g.judged_by = m.judged_by;
    g.under = m.seen;
    g.self_check = described(m.found.on.self_check);
    g.verdicts = described(m.found.verdicts);
    g.profile = m.profile;
    if (asked.calibrate > 0) {
        g.calibration = calibration_of(m.seen, m.judged_by);
        mark_skipped(g.verdicts, false, "a calibration run judges nothing");
    }
    if (asked.is_shard && !m.found.on.invalid)  // a shard alone has no verdict
        for (slo_verdict& v : g.verdicts)
            v = without_advice(v, verdict::skipped, shard_text(p.shard));
    g.figures = p.searches() ? figures_of_search(p, m.seen, m.judged_by)
                             : figures_of(p, m.seen, p.judged->slos);
    g.answers = shown_answers_of(p, m.seen.candidate, g.verdicts, asked.answers);
    g.undecided_fails = asked.inconclusive == inconclusive_means::fail;
    g.outcome = outcome_of(g.verdicts, asked.inconclusive);
    if (!g.figures.search.fault.empty()) g.outcome = worse_of(g.outcome, gate_outcome::invalid);
    // Missing data is never green.
    if (m.seen.candidate.empty() && g.outcome == gate_outcome::passed)
        g.outcome = gate_outcome::skipped;
    return g;
}

/// Writes a gate's result to its stored baseline, and says so in its verdicts.
inline void write_as_baseline(gate_report& g, const measured_gate& m, const settings& asked) {
    const std::string file = str(g.what.judged->stored.file), fault = fault_of(m);
    if (!fault.empty()) {
        for (slo_verdict& v : g.verdicts)
            if (v.what.factor > 0) v.reason = file + " was not written: " + fault;
        return;
    }
    mark_skipped(g.verdicts, true, "written to " + file + " as a baseline, not compared");
    g.outcome = outcome_of(g.verdicts, asked.inconclusive);
    session::of_this_program().write_baseline(g, file);
}

/// The report of a gate that never ran, or ended by an unexpected error; it has every SLO.
inline gate_report unmeasured(gate_report g, const scenario& s, gate_outcome outcome,
                              const std::string& why) {
    // without a text it would count as measured
    g.refusal = why.empty() ? "no reason was given" : why;
    g.outcome = outcome;
    for (const slo& x : s.slos)
        g.verdicts.push_back(said_of(x, verdict_like(outcome), g.refusal));
    return g;
}

/// A run() in a test case fails nothing by its SLOs, and reports of a green build must not be red.
/// The error guard (the last verdict) counts, because assertions on a run rest on its requests.
inline gate_report only_noted(gate_report g, inconclusive_means policy) {
    for (std::size_t i = 0; i < g.what.judged->slos.size(); ++i)
        g.verdicts[i].what.is_advisory = true;
    if (g.outcome != gate_outcome::skipped) g.outcome = outcome_of(g.verdicts, policy);
    if (!g.figures.search.fault.empty()) g.outcome = worse_of(g.outcome, gate_outcome::invalid);
    return g;
}

/// The report of a gate before it begins.
inline gate_report opened_gate(const scenario& s, const char* file, int line, const char* verb) {
    if (!session::of_this_program().is_ours())
        refuse({"a gate in a forked child: its parent has the reports and the exit code; start a "
                "program of its own instead"});
    gate_report who;
    who.what.test_case = test_case_name();
    session& all = session::of_this_program();
    std::string name = s.name.empty() ? all.host().usual_name() : str(s.name);
    if (name.empty()) name = printed("%s at %s:%d", verb, file, line);
    who.what.name = all.host().name_of_its_own(name);
    who.what.file = file;
    who.what.line = line;
    return who;
}

/// Parts of every execution: a gate that stands for it until its end is known, its turn among other
/// threads' gates, and the environment's settings.
class execution {
public:
    bool may_be_skipped() const { return asked_.skip_without_server && !stop_asked.load(); }

    /// Returns a result without measurements.
    result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, scenario_, outcome, why);
        if (model_) g.rehearsal.model = model_->model();
        if (asked_.keeps && asserts_) g.not_kept = why;
        const result r = result_of(g, {}, number_, asked_);
        close(std::move(g));
        return r;
    }

protected:
    execution(const scenario& s, const char* file, int line, const char* verb, bool asserts)
        : scenario_(s),
          asserts_(asserts),
          who_(opened_gate(s, file, line, verb)),
          number_(all_.open_gate(gate_report(who_))) {}
    void begin() {
        turn_.emplace();
        all_.give_turn(number_);
        signals_.emplace();
        began_ns_ = now_ns();
        today_ = utc_day();
        scenario_.slos = of_today(scenario_.slos);
        if (const std::string rehearse = environment("LLMBENCH_REHEARSE"); !means_off(rehearse))
            known_rehearsals().check_asked(rehearse);
        all_.records().open();
        asked_ = settings_of(environment);
        if (!asked_.rehearse.empty()) all_.note_rehearsal();
        for (const std::string& note : misspelt_variables(whole_environment()))
            if (all_.is_news(note)) say("note: " + note + "\n");
    }
    /// Exceptions that ended block again; their notes are kept for reports.
    slo_list of_today(const slo_list& slos) {
        ends_.clear();
        for (const slo& s : slos)
            if (std::string end = end_text(s, today_); !end.empty()) ends_.push_back(end);
        return on_day(slos, today_);
    }
    void tell_ends(gate_report& g) const {
        g.under.notes.insert(g.under.notes.end(), ends_.begin(), ends_.end());
    }
    void close(gate_report&& g) {
        tell_ends(g);
        g.took_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        say(console_text(g, surroundings_of_program().style()));
        if (!g.not_kept.empty()) say(not_added_text(g.not_kept));
        if (surroundings_of_program().verbose && all_.records().are_open())
            say(reports_text(report_directory()));
        all_.close_gate(number_, std::move(g), asserts_, in_test_case_);
    }

    bool rehearses() const { return !asked_.rehearse.empty(); }
    /// Enters the environment, unless it is null. The same seed then gives the same bytes.
    void enter(std::unique_ptr<execution_environment> made_up) {
        if (!made_up) return;
        virtual_.enter(std::move(made_up));
        began_ns_ = now_ns();
    }
    /// The start of the time budget. In virtual time the budget is used up only by the virtual time
    /// of all gates of the program.
    long long budget_began_ns() const {
        return current_environment ? began_ns_ - all_.virtual_time_spent() : program_began_ns;
    }

    /// A gate in virtual time shows no progress.
    progress_mode shown_progress() const {
        return current_environment ? progress_mode::off
                             : surroundings_of_program().shown(asked_.progress);
    }

    session& all_ = session::of_this_program();
    scenario scenario_;
    const bool asserts_;
    const bool in_test_case_ = inside_test_case();
    const gate_report who_;
    const std::size_t number_;
    settings asked_{};
    std::shared_ptr<const rehearsal> model_{};  // replaces its server, in a rehearsal
    long long began_ns_ = now_ns();
    long long today_ = 0;  // days since 1970-01-01 UTC
    std::vector<std::string> ends_{};  // notes on exceptions, one sentence each

private:
    std::optional<gate_turn> turn_{};           // both last until the reports are written
    std::optional<interrupt_guard> signals_{};
    virtual_time virtual_{};
};

/// Measurements of other programs, with their judging parameters.
struct read_gate {
    plan what{};
    measured_gate seen{};
};
/// Judges measurements that `read` returns as a gate.
template <class Read>
class reading_execution : public execution {
public:
    reading_execution(const Read& read, const scenario& as, const char* file, int line,
                      const char* verb)
        : execution(as, file, line, verb, true), read_(read) {}
    result measured() {
        begin();
        asked_.calibrate = 0;  // the runs are over; the load is that of the files
        asked_.is_shard = false;
        asked_.rehearse.clear();
        read_gate g = read_(who_.what);
        for (slo& s : g.seen.judged_by.slos) s = on_day(s, today_);
        g.seen.found = analyse(g.seen.seen, g.seen.judged_by);
        gate_report report = report_of(g.what, g.seen, asked_);
        const result r = result_of(report, std::move(g.seen), number_, asked_);
        close(std::move(report));
        return r;
    }

private:
    const Read& read_;
};

/// One gate, from its scenario to its result and to the reports.
class gate_execution : public execution {
public:
    gate_execution(const scenario& s, const char* file, int line, const char* verb)
        : execution(s, file, line, verb, use_of(verb) == scenario_use::gate),
          use_(use_of(verb)) {}
    /// Throws if nothing could be measured; ended_by() then makes the result.
    result measured() {
        begin();
        if (searches() && asked_.calibrate > 0)
            return ended_by(gate_outcome::skipped, "a calibration run searches no capacity");
        load_sharing* const others = load_sharing_of_program;
        if (others) others->check(scenario_, asked_);
        if (rehearses()) model_ = known_rehearsals().of_gate(asked_, who_.what.name, scenario_);
        enter(model_ ? new_environment_for(*model_) : new_environment_for(scenario_));
        const auto all_or_none = [&](const std::function<void()>& act) {
            if (others) others->all_or_none(act);
            else act();
        };
        gate_to_run what;
        std::optional<gate_run> run;
        bool is_up = false;
        all_or_none([&] { what = prepared(); });
        if (others) others->take_part(what.asked, scenario_, asked_, number_);
        const bool is_first = rank_of_program() == 0;
        if (!is_first) what.mode.deadline_ns = 0;  // the first variant decides on the deadline
        all_or_none([&] {
            if (stop_asked.load())
                throw no_server("the run was interrupted before this gate began");
            run.emplace(what.asked, scenario_, what.mode,
                        is_first ? shown_progress() : progress_mode::off);
            is_up = run->bring_up();
        });
        if (!is_first) return ended_by(gate_outcome::skipped, run->follow());
        const auto end = [&] {
            if (others) others->end_gate();
        };
        try {
            if (is_up) run->measure();
        } catch (...) {
            end();
            throw;
        }
        end();
        return reported(what, run->finished());
    }

private:
    /// A valid plan, and how its measurements are used.
    struct gate_to_run {
        plan asked{};
        run_mode mode{};
    };
    bool searches() const { return scenario_.arrivals.data().is_searched; }
    gate_to_run prepared() {
        const scenario s = keeps() ? known_past->as_kept(scenario_) : scenario_;
        const bool writes = asked_.write_baseline && s.baseline.is_stored();
        plan p = plan_of(s, who_, asked_.seed, use_, api_of(scenario_.target));
        run_mode mode = mode_of(p, asked_, budget_began_ns());
        mode.keeps = keeps();
        mode.model = model_;
        if (model_) p = with_judging(std::move(p), [](planned_judging& j) { j.on_fail = {}; });
        if (p.judged->has_stored_baseline && !writes)
            mode.stored = model_ ? model_->stored_baseline(scenario_, who_, asked_, use_)
                                 : stored_gate_of(p);
        if (mode.judges() || mode.is_shard || searches()) return {std::move(p), mode};
        return {with_judging(std::move(p), [&](planned_judging& j) {
            if (mode.calibrate > 0) j.max_repeats = std::max(mode.calibrate, j.first_repeats);
            j.first_repeats = j.max_repeats;
            j.max_if_noisy = 0;
        }), mode};
    }
    bool keeps() const {
        return asked_.keeps && use_ == scenario_use::gate && !searches();
    }
    /// Returns the result of the measurements, after the reports are written.
    result reported(const gate_to_run& what, measured_gate m) {
        gate_report g = report_of(what.asked, m, asked_);
        if (what.mode.write_baseline) write_as_baseline(g, m, asked_);
        if (asked_.keeps)
            g.not_kept = use_ == scenario_use::gate
                             ? known_past->keep(g, m.past.get(), m.seen.stopped)
                             : why_not_added(searches() ? "find_capacity()" : "run()");
        if (model_) model_->mark(g, m.seen);
        const result r = result_of(g, std::move(m), number_, asked_);
        const bool only_notes = !asserts_ && in_test_case_;
        close(only_notes ? only_noted(std::move(g), asked_.inconclusive) : std::move(g));
        return r;
    }
    const scenario_use use_;
};

/// Returns the result of an execution, or of its end if it throws.
template <class Execution>
auto executed(Execution&& gate, const char* file, int line, const char* verb) {
    // A test case gets a failed assertion with the same text, not an exception.
    const auto refused = [&](gate_outcome outcome, const std::exception& e) {
        const auto r = gate.ended_by(outcome, reason_in(e));
        if (outcome == gate_outcome::skipped) return r;
        if (!inside_test_case()) throw;
        refuse_in_test(file, line, verb, reason_in(e));
        return r;
    };
    try {
        return gate.measured();
    } catch (const std::invalid_argument& e) {
        return refused(gate_outcome::refused, e);
    } catch (const no_server& e) {
        return refused(gate.may_be_skipped() ? gate_outcome::skipped : gate_outcome::invalid, e);
    } catch (const std::exception& e) {
        return refused(gate_outcome::invalid, e);  // a fault of this machine, or a bug of ours
    } catch (...) {
        gate.ended_by(gate_outcome::invalid, "it was ended by an exception");
        throw;  // a cancelled thread passes here, too
    }
}
/// `read` makes a read_gate for the plan of the given gate.
template <class Read>
result read_result(const types::text& name, const slo_list& slos, const char* file, int line,
                   const char* verb, const Read& read) {
    scenario as;
    as.name = name;
    as.slos = slos;
    return executed(reading_execution<Read>(read, as, file, line, verb), file, line, verb);
}
inline result measured_result(const scenario& s, const char* file, int line, const char* verb) {
    return executed(gate_execution(s, file, line, verb), file, line, verb);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
