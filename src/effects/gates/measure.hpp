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
#include "core/judging/words.hpp"
#include "core/capacity/found.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/planning.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/searched.hpp"
#include "core/traffic/skew.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/others/definitions.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/stored.hpp"
#include "core/figures/held_gate.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/workload_files.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/held_result.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/shards.hpp"
#include "effects/gates/turn.hpp"

#include <algorithm>  // max
#include <cmath>  // fabs
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr
#include <optional>
#include <random>  // what no other run has sent
#include <stdexcept>  // invalid_argument, exception
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Another one for every execution of a gate, in this program and in all others.
inline std::uint64_t fresh_nonce() {
    std::random_device entropy;
    return mixed((static_cast<std::uint64_t>(entropy()) << 32 | entropy()) ^
                 mixed(static_cast<std::uint64_t>(now_ns()) + ++gates_executed));
}

inline scenario_use use_of(std::string_view verb) {
    return verb == "gate"            ? scenario_use::gate
           : verb == "find_capacity" ? scenario_use::find_capacity
                                     : scenario_use::measure;
}
/// The scenario's plan, with the name and the place of its gate.
inline plan plan_of(const scenario& s, const gate_report& who, std::uint64_t seed,
                    scenario_use use, const api_traits& api) {
    plan p = planned(s, seed, read_workload_files(s, seed), use, api);
    p.hash = trace_hash(p);
    p.nonce = fresh_nonce();
    p.name = who.what.name;
    p.test_case = who.what.test_case;
    p.file = who.what.file;
    p.line = who.what.line;
    return p;
}

/// What one shard of a load does of a plan.
inline plan as_shard(plan p, const scenario& s, const settings& asked, std::size_t gate) {
    check_shard(p, s, asked);
    const long long repeats = s.repeats;
    p.share = asked.shard;
    p.most_skew_s = most_skew_of_shards_s;
    p.nonce = shard_clock::nonce(asked, gate);
    p.most_repeats = p.first_repeats =
        repeats > 0 ? static_cast<int>(repeats) : repeats_of_shards;
    p.rule = rule_of(s.judging, s.traffic, p.first_repeats, p.most_repeats, false);
    shard_clock::of_this_program().begin_gate(asked.start_at_s);
    const double ahead_s = shard_clock::of_this_program().start_s() - unix_s();
    require(ahead_s > 0 && ahead_s < 86400,
            printed("LLMBENCH_START_AT: the first repeat was to begin %.0f s %s: all shards must "
                    "be there before it, and within a day",
                    std::fabs(ahead_s), ahead_s < 0 ? "ago" : "from now"));
    return p;
}

#ifdef LLMBENCH_WITH_MPI
/// What one rank does of a plan, which must be the same at all of them.
inline plan as_rank(plan p, const scenario& s, const settings& asked) {
    rank_group& ranks = rank_group::of_this_program();
    p.share = {static_cast<std::size_t>(ranks.index()), static_cast<std::size_t>(ranks.count())};
    require(asked.shard.is_whole(), "LLMBENCH_SHARD is set, and MPI shares the load already");
    check_share(p, p.share);
    check_shared_target(s);
    p.most_skew_s = most_skew_of_ranks(p);
    std::string mine = printed("%d.%d.%d ", LLMBENCH_VERSION_MAJOR, LLMBENCH_VERSION_MINOR,
                               LLMBENCH_VERSION_PATCH) +
                       p.name + " " + trace_hash(p) + " " + options_text(p) + " " + limits_text(p);
    for (const slo& x : p.slos) mine += "; " + str(x.text());
    const std::string first = ranks.heard(mine, 10 * ranks.wait_s());
    p.nonce = static_cast<std::uint64_t>(
        ranks.heard(static_cast<long long>(p.nonce), ranks.wait_s()));
    ranks.all_or_none(
        [&] {
            require(mine == first, "its gate is another one than rank 0's: \"" + printable(mine) +
                                       "\" is not \"" + printable(first) +
                                       "\"; all ranks need the same program, arguments and "
                                       "LLMBENCH_ variables");
            return true;
        },
        ranks.wait_s());
    return p;
}
#endif

/// With the load that an earlier run was shown to carry, times what is asked of it.
inline plan against_stored(plan p) {
    const std::string file = str(p.stored.file);
    const stored_gate old = read_stored_gate(file_content(file, stored_field(file)), file, p.name);
    return asking_for(std::move(p), old.carried);
}

/// What is left where nothing was to be judged.
inline void mark_skipped(std::vector<slo_verdict>& verdicts, bool relative_only,
                         const std::string& why) {
    for (slo_verdict& v : verdicts) {
        const bool concerned = relative_only ? v.what.factor > 0 : v.outcome != verdict::invalid;
        if (concerned) v = without_advice(v, verdict::skipped, why);
    }
}

/// What is left of a part, of which nothing can be said by itself.
inline void mark_all_skipped(std::vector<slo_verdict>& verdicts, const std::string& why) {
    for (slo_verdict& v : verdicts) v = without_advice(v, verdict::skipped, why);
}

/// Why what was measured is no baseline, "" where it is one.
inline std::string fault_of(const measured_gate& m) {
    for (const std::string& why : {m.found.on.invalid, str(m.found.on.self_check.reason),
                                   m.found.doubt ? m.found.doubt->why : "", m.seen.stopped,
                                   m.found.on.saturated})
        if (!why.empty()) return why;
    if (!m.held.keeps.empty()) {
        const found_capacity found = capacity_of(m.seen, m.held);
        const std::string why = fault_of_search(m.seen, m.held, found);
        if (!why.empty()) return why;
        if (!(found.state.low > 0)) return "no load was shown to be carried";
    }
    for (const slo_verdict& v : m.found.verdicts) {
        const bool is_judged = v.what.factor == 0 && !v.what.is_advisory;
        if (is_judged && v.outcome == verdict::invalid) return str(v.reason);
        if (is_judged && v.what.what.metric == metric_id::error_rate &&
            v.estimate.value > v.limit)
            return flat_line(v);
    }
    return {};
}

/// A gate as reports tell it, with all of its figures.
inline gate_report report_of(const plan& p, const measured_gate& m, const settings& asked) {
    gate_report g;
    g.what = p;
    g.target = m.target;
    g.baseline = m.baseline;
    g.held = m.held;
    g.under = m.seen;
    g.self_check = m.found.on.self_check;
    g.verdicts = m.found.verdicts;
    g.profile = m.profile;
    if (asked.calibrate > 0) {
        g.calibration = calibration_of(m.seen, m.held);
        mark_skipped(g.verdicts, false, "a calibration run judges nothing");
    }
    if (!asked.shard.is_whole() && m.found.on.invalid.empty())
        mark_all_skipped(g.verdicts,
                         shard_words(asked.shard));
    g.figures = p.searches() ? figures_of_search(p, m.seen, m.held) : figures_of(p, m.seen, p.slos);
    if (!p.is_read && !p.searches())
        g.figures.others =
            shown_as_all(asked.show_as, m.seen.candidate, m.target.api, p.common.stream);
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
    const std::string file = str(g.what.stored.file), fault = fault_of(m);
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
        g.verdicts.push_back(without_advice(undecided(x), verdict_like(outcome), why));
    return g;
}

/// In the reports. A run() in a test case fails nothing by its own SLOs, and reports of a green
/// build must not be red. The guard on errors, which is last, counts: what is asserted of a run
/// stands on its requests.
inline gate_report only_noted(gate_report g, inconclusive_means policy) {
    for (std::size_t i = 0; i < g.what.slos.size(); ++i) g.verdicts[i].what.is_advisory = true;
    if (g.outcome != gate_outcome::skipped) g.outcome = outcome_of(g.verdicts, policy);
    if (!g.figures.search.fault.empty()) g.outcome = worse_of(g.outcome, gate_outcome::invalid);
    return g;
}

/// What is known of a gate before it has begun.
inline gate_report opened_gate(const scenario& s, const char* file, int line, const char* verb) {
    require(session::of_this_program().is_ours(),
            "a gate in a forked child: its parent has the reports and the exit code; start a "
            "program of its own instead");
    gate_report who;
    who.what.test_case = test_case_name();
    session& all = session::of_this_program();
    std::string name = s.name.empty() ? all.usual_name() : str(s.name);
    if (name.empty()) name = printed("%s at %s:%d", verb, file, line);
    who.what.name = all.name_of_its_own(name);
    who.what.file = file;
    who.what.line = line;
    return who;
}

/// What every execution has: a gate that stands for it until it is known how it ended, its turn
/// among those of other threads, and what the environment asks of it.
class execution {
public:
    bool may_be_skipped() const { return asked_.skip_without_server && !interrupted.load(); }

protected:
    execution(const scenario& s, const char* file, int line, const char* verb)
        : who_(opened_gate(s, file, line, verb)), number_(all_.open_gate(gate_report(who_))) {}
    void begin() {
        turn_.emplace();
        all_.give_turn(number_);
        signals_.emplace();
        began_ns_ = now_ns();
        all_.records().open();
        asked_ = settings_of(environment);
        for (const std::string& note : misspelt_variables(whole_environment()))
            if (all_.is_news(note)) say("note: " + note + "\n");
    }

    session& all_ = session::of_this_program();
    const bool in_test_case_ = inside_test_case();
    const gate_report who_;
    const std::size_t number_;
    settings asked_{};
    long long began_ns_ = now_ns();

private:
    std::optional<gate_turn> turn_{};           // both until the reports are written
    std::optional<interrupt_guard> signals_{};
};

/// One that reads what others have measured, and judges it as a gate.
class reading_execution : public execution {
public:
    /// Without evidence.
    result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, as_, outcome, why);
        const result r = result_of(g, {}, number_, asked_);
        close(std::move(g));
        return r;
    }

protected:
    reading_execution(const scenario& as, const char* file, int line, const char* verb)
        : execution(as, file, line, verb), as_(as) {}
    /// What runs measured is settled; the load is that of the files.
    void begin_reading() {
        begin();
        asked_.calibrate = 0;
        asked_.shard = {};
    }
    /// The plan with the name and the place of this gate.
    plan named(plan p) const {
        p.name = who_.what.name;
        p.test_case = who_.what.test_case;
        p.file = who_.what.file;
        p.line = who_.what.line;
        return p;
    }
    result judged(const plan& what, measured_gate m) {
        m.found = assess(m.seen, m.held);
        gate_report g = report_of(what, m, asked_);
        const result r = result_of(g, std::move(m), number_, asked_);
        close(std::move(g));
        return r;
    }
    const scenario& as_;

private:
    void close(gate_report&& g) {
        g.took_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        say(console_text(g, surroundings_of_program().style()));
        if (all_.records().are_open()) say(reports_text(report_directory()));
        all_.close_gate(number_, std::move(g), true, in_test_case_);
    }
};

/// One gate, from its scenario to its result and to the reports.
class gate_execution : public execution {
public:
    gate_execution(const scenario& s, const char* file, int line, const char* verb)
        : execution(s, file, line, verb),
          scenario_(s),
          use_(use_of(verb)),
          asserts_(use_ == scenario_use::gate) {}
    /// Throws where nothing could be measured; ended_by() then says what is left.
    result measured() {
        begin();
        if (is_calibrated_search())
            return ended_by(gate_outcome::skipped, "a calibration run searches no capacity");
#ifdef LLMBENCH_WITH_MPI
        if (!rank_group::of_this_program().is_alone()) return measured_by_ranks();
#endif
        const gate_to_run what = prepared();
        if (interrupted.load()) throw no_server("the run was interrupted before this gate began");
        gate_run run(what.asked, scenario_, what.mode,
                     surroundings_of_program().shown(asked_.progress));
        if (run.bring_up()) run.measure();
        return told(what, run.finished());
    }
    /// Without evidence.
    result ended_by(gate_outcome outcome, const std::string& why) {
        gate_report g = unmeasured(who_, scenario_, outcome, why);
        const result r = result_of(g, {}, number_, asked_);
        close(std::move(g));
        return r;
    }

private:
    /// A plan that was found sound, and what becomes of its evidence.
    struct gate_to_run {
        plan asked{};
        run_mode mode{};
    };
    bool is_calibrated_search() const {
        return scenario_.arrivals.data().is_searched && asked_.calibrate > 0;
    }
    gate_to_run prepared() const {
        // What is written as a baseline is all of a capacity, not whether one load is carried.
        const bool writes = asked_.write_baseline && scenario_.baseline.is_stored();
        const bool searches = scenario_.arrivals.data().is_searched;
        plan p = plan_of(scenario_, who_, asked_.seed,
                         searches && writes ? scenario_use::find_capacity : use_,
                         api_of(scenario_.target));
        const run_mode mode = mode_of(p, asked_);
        if (mode.is_shard) p = as_shard(std::move(p), scenario_, asked_, number_);
        if (searches && p.has_stored_baseline && !writes) p = against_stored(std::move(p));
        if (mode.calibrate > 0) p.most_repeats = std::max(mode.calibrate, p.first_repeats);
        if (!mode.judges() && !mode.is_shard && !searches) {
            p.first_repeats = p.most_repeats;
            p.most_if_noisy = 0;
        }
        return {std::move(p), mode};
    }
    /// Reports and result of what was measured.
    result told(const gate_to_run& what, measured_gate m) {
        gate_report g = report_of(what.asked, m, asked_);
        if (what.mode.write_baseline) write_as_baseline(g, m, asked_);
        const result r = result_of(g, std::move(m), number_, asked_);
        const bool only_notes = !asserts_ && in_test_case_;
        close(only_notes ? only_noted(std::move(g), asked_.inconclusive) : std::move(g));
        return r;
    }
#ifdef LLMBENCH_WITH_MPI
    /// Each rank prepares the gate and its servers, or none goes on; then rank 0 decides.
    result measured_by_ranks() {
        rank_group& ranks = rank_group::of_this_program();
        const double patience_s = 10 * ranks.wait_s();
        gate_to_run what = ranks.all_or_none([&] { return prepared(); }, patience_s);
        what.asked = as_rank(std::move(what.asked), scenario_, asked_);
        if (!ranks.is_first()) what.mode.deadline_ns = 0;  // rank 0 says when time is up
        std::optional<gate_run> run;
        const bool is_up = ranks.all_or_none(
            [&] {
                if (interrupted.load())
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
            gate_run::end_other_ranks();
            throw;
        }
        gate_run::end_other_ranks();
        return told(what, run->finished());
    }
#endif
    void close(gate_report&& g) {
        g.took_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        say(console_text(g, surroundings_of_program().style()));
        if (all_.records().are_open()) say(reports_text(report_directory()));
        all_.close_gate(number_, std::move(g), asserts_, in_test_case_);
    }

    const scenario& scenario_;
    const scenario_use use_;
    const bool asserts_;
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
inline result measured_result(const scenario& s, const char* file, int line, const char* verb) {
    return executed(gate_execution(s, file, line, verb), file, line, verb);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
