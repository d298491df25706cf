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
#include "core/judging/evidence.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judge.hpp"
#include "core/described/described.hpp"
#include "core/described/verdict_text.hpp"
#include "core/capacity/found.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/load_conditions.hpp"
#include "core/capacity/searched.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/planning/planning.hpp"
#include "core/figures/definitions.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/rehearsal.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/workload_files.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/bisected.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/held_result.hpp"
#include "effects/gates/night.hpp"
#include "effects/gates/rehearsed.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/shared_plan.hpp"
#include "effects/gates/turn.hpp"
#include "effects/gates/virtual_gate.hpp"

#include <algorithm>  // max
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr
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
/// With the name and the place of its gate.
inline plan named_as(const gate_identity& who, plan p) {
    static_cast<gate_identity&>(p) = who;
    return p;
}
/// The scenario's plan.
inline plan plan_of(const scenario& s, const gate_report& who, std::uint64_t seed,
                    scenario_use use, const api_traits& api) {
    plan p = named_as(who.what, planned(s, seed, read_workload_files(s, seed), use, api));
    p = with_traffic(std::move(p), [](planned_traffic& t) { t.hash = trace_hash(t); });
    p.nonce = fresh_nonce(seed, p.name);
    return p;
}

/// What is left where nothing was to be judged.
inline void mark_skipped(std::vector<slo_verdict>& verdicts, bool relative_only,
                         const std::string& why) {
    for (slo_verdict& v : verdicts) {
        const bool concerned = relative_only ? v.what.factor > 0 : v.outcome != verdict::invalid;
        if (concerned) v = without_advice(v, verdict::skipped, why);
    }
}

/// Why what was measured is no baseline, "" where it is one.
inline std::string fault_of(const measured_gate& m) {
    for (const std::string& why : {described(m.found.on.invalid),
                                   described(m.found.on.self_check.why),
                                   m.found.bias ? described(m.found.bias->why) : "",
                                   m.seen.stopped,
                                   described(m.found.on.saturated)})
        if (!why.empty()) return why;
    if (!m.judged_by.objectives_held.empty()) {
        const found_capacity found = capacity_of(m.seen, m.judged_by);
        const std::string why = fault_of_search(m.seen, m.judged_by, found);
        if (!why.empty()) return why;
        if (!(found.state.low > 0)) return "no load was shown to be carried";
    }
    for (const decision& v : m.found.verdicts) {
        const bool is_judged = v.what.factor == 0 && !v.what.is_advisory;
        if (is_judged && v.outcome == verdict::invalid) return described(v.why, v);
        if (is_judged && v.what.what.metric == metric_id::error_rate &&
            v.estimate.value > v.limit)
            return flat_line(described(v));
    }
    return {};
}

/// A gate as reports tell it, with all of its figures.
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
    if (!asked.shard.is_whole() && !m.found.on.invalid)  // of a part nothing can be said by itself
        for (slo_verdict& v : g.verdicts)
            v = without_advice(v, verdict::skipped, shard_text(asked.shard));
    g.figures = p.searches() ? figures_of_search(p, m.seen, m.judged_by)
                             : figures_of(p, m.seen, p.judged->slos);
    if (!p.sent->is_read && !p.searches())
        g.figures.others =
            shown_as_all(asked.show_as, m.seen.candidate, p.sent->common.stream);
    g.answers = shown_answers_of(p, m.seen.candidate, g.verdicts, asked.answers);
    g.undecided_fails = asked.inconclusive == inconclusive_means::fail;
    g.outcome = outcome_of(g.verdicts, asked.inconclusive);
    if (!g.figures.search.fault.empty()) g.outcome = worse_of(g.outcome, gate_outcome::invalid);
    // Missing data is never green.
    if (m.seen.candidate.empty() && g.outcome == gate_outcome::passed)
        g.outcome = gate_outcome::skipped;
    return g;
}

/// Writes a gate's result where its stored baseline is to be, and says so in its verdicts.
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

/// Every SLO of a gate that never ran, or was ended by what nobody expected.
inline gate_report unmeasured(gate_report g, const scenario& s, gate_outcome outcome,
                              const std::string& why) {
    g.refusal = why;
    g.outcome = outcome;
    for (const slo& x : s.slos)
        g.verdicts.push_back(said_of(x, verdict_like(outcome), why));
    return g;
}

/// In the reports. A run() in a test case fails nothing by its own SLOs, and reports of a green
/// build must not be red. The guard on errors, which is last, counts: what is asserted of a run
/// stands on its requests.
inline gate_report only_noted(gate_report g, inconclusive_means policy) {
    for (std::size_t i = 0; i < g.what.judged->slos.size(); ++i)
        g.verdicts[i].what.is_advisory = true;
    if (g.outcome != gate_outcome::skipped) g.outcome = outcome_of(g.verdicts, policy);
    if (!g.figures.search.fault.empty()) g.outcome = worse_of(g.outcome, gate_outcome::invalid);
    return g;
}

/// What is known of a gate before it has begun.
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

/// What every execution has: a gate that stands for it until it is known how it ended, its turn
/// among those of other threads, and what the environment asks of it.
class execution {
public:
    bool may_be_skipped() const { return asked_.skip_without_server && !stop_asked.load(); }

    /// Without evidence.
    result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, scenario_, outcome, why);
        if (model_) g.rehearsal.model = model_->words;
        if (asked_.history.appends() && asserts_) g.night = history_entry{.why_not = why};
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
        if (!is_no(environment("LLMBENCH_BISECT"))) all_.note_bisection();
        check_stays(environment("LLMBENCH_REHEARSE"));
        all_.records().open();
        asked_ = settings_of(environment);
        if (!asked_.rehearse.empty()) all_.note_rehearsal();
        for (const std::string& note : misspelt_variables(whole_environment()))
            if (all_.is_news(note)) say("note: " + note + "\n");
    }
    void close(gate_report&& g) {
        g.took_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        say(console_text(g, surroundings_of_program().style()));
        if (g.night && !(*g.night).why_not.empty()) say(no_night_text((*g.night).why_not));
        if (all_.records().are_open()) say(reports_text(report_directory()));
        all_.close_gate(number_, std::move(g), asserts_, in_test_case_);
    }

    bool rehearses() const { return !asked_.rehearse.empty(); }
    /// From now on, where all that is asked is made up: the same seed gives the same to the byte.
    void enter_virtual_time() {
        virtual_.enter();
        began_ns_ = now_ns();
    }
    /// When the time budget began. In virtual time it is spent by the virtual time of all gates of
    /// the program, as if that were waited for, and by nothing else.
    long long budget_began_ns() const {
        return current_world ? began_ns_ - all_.virtual_time_spent() : program_began_ns;
    }

    /// What takes no time has none.
    progress_mode shown_progress() const {
        return current_world ? progress_mode::off
                             : surroundings_of_program().shown(asked_.progress);
    }

    session& all_ = session::of_this_program();
    const scenario& scenario_;
    const bool asserts_;
    const bool in_test_case_ = inside_test_case();
    const gate_report who_;
    const std::size_t number_;
    settings asked_{};
    std::optional<rehearsal_model> model_{};  // that stands in for its server, in a rehearsal
    long long began_ns_ = now_ns();

private:
    std::optional<gate_turn> turn_{};           // both until the reports are written
    std::optional<interrupt_guard> signals_{};
    virtual_time virtual_{};
};

/// What others have measured, with what it is held against.
struct read_gate {
    plan what{};
    measured_gate seen{};
};
/// One that reads what others have measured, by `read`, and judges it as a gate.
template <class Read>
class reading_execution : public execution {
public:
    reading_execution(const Read& read, const scenario& as, const char* file, int line,
                      const char* verb)
        : execution(as, file, line, verb, true), read_(read) {}
    result measured() {
        begin();
        asked_.calibrate = 0;  // what runs measured is settled; the load is that of the files
        asked_.shard = {};
        asked_.rehearse.clear();
        read_gate g = read_(who_.what);
        g.seen.found = assess(g.seen.seen, g.seen.judged_by);
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
    /// Throws where nothing could be measured; ended_by() then says what is left.
    result measured() {
        begin();
        if (searches() && asked_.calibrate > 0)
            return ended_by(gate_outcome::skipped, "a calibration run searches no capacity");
#ifdef LLMBENCH_WITH_MPI
        if (!rank_group::of_this_program().is_alone()) return measured_by_ranks();
#endif
        if (rehearses()) {
            model_ = model_for(asked_, who_.what.name);
            check_rehearsal(scenario_);
        }
        if (model_ || is_made_up(scenario_)) enter_virtual_time();
        gate_to_run what = prepared();
        if (stop_asked.load()) throw no_server("the run was interrupted before this gate began");
        gate_run run(what.asked, scenario_, what.mode, shown_progress());
        if (run.bring_up()) run.measure();
        return reported(what, run.finished());
    }

private:
    /// A plan that was found sound, and what becomes of its evidence.
    struct gate_to_run {
        plan asked{};
        run_mode mode{};
    };
    bool searches() const { return scenario_.arrivals.data().is_searched; }
    gate_to_run prepared() {
        stored_gate good = bisects() ? good_of(asked_.bisect, who_.what.name) : stored_gate();
        const scenario s = appends()   ? as_a_night(scenario_)
                           : bisects() ? as_step(scenario_, asked_.bisect, good)
                                       : as_good(scenario_, asked_.bisect);
        const bool writes = asked_.write_baseline && s.baseline.is_stored();
        // What is written as a baseline is all of a capacity, not whether one load is carried.
        const scenario_use use = searches() && writes ? scenario_use::find_capacity : use_;
        plan p = plan_of(s, who_, asked_.seed, use, api_of(scenario_.target));
        run_mode mode = mode_of(p, asked_, budget_began_ns());
        mode.history = asked_.history;
        if (asked_.history.appends() && !appends()) mode.history.use = history_use::read;
        if (bisects()) p = planned_step(std::move(p), good, mode);
        mode.model = model_;
        if (model_) p = with_judging(std::move(p), [](planned_judging& j) { j.on_fail = {}; });
        if (mode.is_shard) p = as_shard(std::move(p), scenario_, asked_, number_);
        if (p.judged->has_stored_baseline && !writes) {
            mode.stored = model_      ? made_up_baseline()
                          : bisects() ? std::move(good)
                                      : stored_gate_of(p);
            // With the load that the earlier run was shown to carry, times what is asked of it.
            if (searches())
                p = with_judging(std::move(p), [&](planned_judging& j) {
                    j.search.asked = asked_loads(j.slos, mode.stored.carried);
                });
        }
        if (mode.judges() || mode.is_shard || searches()) return {std::move(p), mode};
        return {with_judging(std::move(p), [&](planned_judging& j) {
            if (mode.calibrate > 0) j.most_repeats = std::max(mode.calibrate, j.first_repeats);
            j.first_repeats = j.most_repeats;
            j.most_if_noisy = 0;
        }), mode};
    }
    bool bisects() const { return asked_.bisect.judges() && use_ == scenario_use::gate; }
    bool appends() const {
        return asked_.history.appends() && use_ == scenario_use::gate && !searches();
    }
    /// What another model of that kind would have left in the file of a stored baseline.
    stored_gate made_up_baseline() {
        virtual_world apart;
        const inside_world inside(&apart);
        plan p = plan_of(scenario_, who_, asked_.seed,
                         searches() ? scenario_use::find_capacity : use_, api_of(scenario_.target));
        p = with_judging(std::move(p), [&](planned_judging& j) {
            j.has_stored_baseline = false;
            j.on_fail = {};
            if (!searches()) j.first_repeats = j.most_repeats;
        });
        run_mode mode = mode_of(p, asked_, now_ns());
        mode.model = model_;
        mode.model->like.seed = 2000;
        mode.deadline_ns = 0;
        mode.calibrate = searches() ? 0 : p.judged->first_repeats;
        gate_run run(p, scenario_, mode, progress_mode::off);
        if (run.bring_up()) run.measure_silently();
        const measured_gate m = run.finished();
        const gate_figures f = searches() ? figures_of_search(p, m.seen, m.judged_by)
                                        : figures_of(p, m.seen, p.judged->slos);
        stored_gate reported;
        reported.carried = f.search.empty() ? 0 : std::max(0.0, f.search.state.low);
        for (const repeat_figures& d : f.candidate.repeats)
            for (std::size_t i = 0; i < f.kept.size(); ++i)
                reported.statistics[str(f.kept[i].name)].push_back(d.statistics[i]);
        return reported;
    }
    /// Reports and result of what was measured.
    result reported(const gate_to_run& what, measured_gate m) {
        gate_report g = report_of(what.asked, m, asked_);
        if (what.mode.write_baseline) write_as_baseline(g, m, asked_);
        if (asked_.history.appends())
            g.night = use_ == scenario_use::gate ? night_of(what.asked, m, g, asked_.history)
                      : no_night_of(searches() ? "find_capacity()" : "run()");
        if (model_) mark_rehearsed(g, m.seen, model_->words, model_->noise);
        const result r = result_of(g, std::move(m), number_, asked_);
        const bool only_notes = !asserts_ && in_test_case_;
        close(only_notes ? only_noted(std::move(g), asked_.inconclusive) : std::move(g));
        return r;
    }
#ifdef LLMBENCH_WITH_MPI
    /// Each rank prepares the gate and its servers, or none goes on; then rank 0 decides.
    result measured_by_ranks() {
        rank_group& ranks = rank_group::of_this_program();
        if (rehearses())
            refuse({"LLMBENCH_REHEARSE is set, and the load is shared by ranks of MPI: start one "
                    "program, the model answers no others"});
        const double patience_s = 10 * ranks.wait_s();
        gate_to_run what = ranks.all_or_none([&] { return prepared(); }, patience_s);
        what.asked = as_rank(std::move(what.asked), scenario_, asked_);
        if (!ranks.is_first()) what.mode.deadline_ns = 0;  // rank 0 says when time is up
        std::optional<gate_run> run;
        const bool is_up = ranks.all_or_none(
            [&] {
                if (stop_asked.load())
                    throw no_server("the run was interrupted before this gate began");
                run.emplace(what.asked, scenario_, what.mode,
                            ranks.is_first() ? surroundings_of_program().shown(asked_.progress)
                                             : progress_mode::off);
                return run->bring_up();
            },
            patience_s);
        if (!ranks.is_first()) {
            run->follow();
            return ended_by(gate_outcome::skipped,
                            printed("rank %d of %d sends its part of the load: rank 0 judges and "
                                    "reports", ranks.index(), ranks.count()));
        }
        try {
            if (is_up) run->measure();
        } catch (...) {
            ask_other_ranks({.is_over = true});
            throw;
        }
        ask_other_ranks({.is_over = true});
        return reported(what, run->finished());
    }
#endif
    const scenario_use use_;
};

/// What an execution measures, or what is left where it throws.
template <class Execution>
auto executed(Execution&& gate, const char* file, int line, const char* verb) {
    // Inside a test case nothing is thrown: the assertion fails there, with the same words.
    const auto refused = [&](gate_outcome outcome, const std::exception& e) {
        const auto r = gate.ended_by(outcome, e.what());
        if (outcome == gate_outcome::skipped) return r;
        if (!inside_test_case()) throw;
        refuse_in_test(file, line, verb, e.what());
        return r;
    };
    try {
        return gate.measured();
    } catch (const std::invalid_argument& e) {
        return refused(gate_outcome::refused, e);
    } catch (const no_server& e) {
        return refused(gate.may_be_skipped() ? gate_outcome::skipped : gate_outcome::invalid, e);
    } catch (const std::exception& e) {
        return refused(gate_outcome::invalid, e);  // of this machine, or a mistake of ours
    } catch (...) {
        gate.ended_by(gate_outcome::invalid, "it was ended by an exception");
        throw;  // a thread that is cancelled comes by here, too
    }
}
/// `read` makes a read_gate for the plan that it is given the name and the place of.
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
