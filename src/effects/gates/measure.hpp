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
#include "core/judging/saturation.hpp"
#include "core/judging/validity.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/planning.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/trace_hash.hpp"
#include "core/reports/console.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/words.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/workload_files.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // max, find_if
#include <atomic>
#include <cstdint>  // uint64_t
#include <memory>  // shared_ptr
#include <random>  // what no other run has sent
#include <stdexcept>  // invalid_argument, exception
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What is left where nothing was to be judged.
inline void mark_skipped(gate_report& g, bool relative_only, const std::string& why) {
    for (slo_verdict& v : g.verdicts) {
        const bool concerned = relative_only ? v.what.factor > 0 : v.outcome != verdict::invalid;
        if (!concerned) continue;
        v.outcome = verdict::skipped;
        v.reason = why;
        v.advice = text();
    }
}

/// Another one for every execution of a gate, in this program and in all others.
inline std::uint64_t fresh_nonce() {
    std::random_device entropy;
    static std::atomic<std::uint64_t> executions{0};
    return mixed((static_cast<std::uint64_t>(entropy()) << 32 | entropy()) ^
                 mixed(static_cast<std::uint64_t>(now_ns()) + ++executions));
}

/// Measures and judges one gate.
inline void measure(gate_report& g, const scenario& s) {
    plan p = planned(s, default_seed(), read_workload_files(s, default_seed()));
    p.hash = trace_hash(p);
    p.nonce = fresh_nonce();
    p.name = g.what.name;
    p.test_case = g.what.test_case;
    p.file = g.what.file;
    p.line = g.what.line;
    const run_mode mode = mode_of(p);
    if (mode.calibrate > 0) p.most_repeats = std::max(mode.calibrate, p.first_repeats);
    if (!mode.judges()) p.first_repeats = p.most_repeats;
    g.what = p;
    measurement& m = g.measured;
    m.slos = p.slos;
    m.rule = p.rule;
    m.noise = mode.noise;
    m.spins = p.client.spin;
    m.arrival_cv2 = p.arrivals.max_in_flight > 0 || p.stride > 1 ? not_a_number
                                                                 : arrival_cv2_of(p.arrivals);
    m.short_outputs_expected = expects_short_outputs(p);
    if (interrupted.load()) throw no_server("the run was interrupted before this gate began");
    gate_run run(g, s, mode);
    if (run.bring_up()) run.measure();
    g.self_check = self_check_of(m);
    if (!p.slos.empty()) g.verdicts = judge_all(m);
    if (mode.calibrate > 0) {
        g.calibration = calibration_of(m);
        mark_skipped(g, false, "a calibration run judges nothing");
    } else if (mode.write_baseline) {
        const std::string file = str(p.stored.file), faults[] = {
            gate_invalid_reason(m), str(g.self_check.reason), m.stopped, over_saturation_reason(m)};
        const auto fault = std::find_if(std::begin(faults), std::end(faults),
                                        [](const std::string& why) { return !why.empty(); });
        if (fault == std::end(faults)) {
            mark_skipped(g, true, "written to " + file + " as a baseline, not compared");
            session::of_this_program().write_baseline(g, file);
        } else {
            for (slo_verdict& v : g.verdicts)
                if (v.what.factor > 0) v.reason = file + " was not written: " + *fault;
        }
    }
    g.undecided_fails = inconclusive_policy() == inconclusive_means::fail;
    g.outcome = outcome_of(g.verdicts, inconclusive_policy());
    // Missing data is never green.
    if (m.candidate.empty() && g.outcome == gate_outcome::passed) g.outcome = gate_outcome::skipped;
}

/// In the reports. A run() in a test case fails nothing, whatever its own SLOs say, and reports of
/// a green build must not be red.
inline void only_note(gate_report& g) {
    for (slo_verdict& v : g.verdicts) v.what.is_advisory = true;
    if (g.outcome != gate_outcome::skipped) g.outcome = gate_outcome::passed;
}

/// Marks every SLO of a gate that never ran.
inline void mark_unmeasured(gate_report& g, const scenario& s, gate_outcome outcome,
                            const std::string& why) {
    g.refusal = why;
    g.outcome = outcome;
    g.verdicts.clear();
    for (const slo& x : s.slos) {
        slo_verdict v;
        v.what = x;
        v.outcome = verdict_like(outcome);
        v.estimate = {not_a_number, not_a_number, not_a_number};
        v.reason = why;
        g.verdicts.push_back(v);
    }
}

inline result measured_result(const scenario& s, const char* file, int line, const char* verb) {
    session& all = session::of_this_program();
    const std::shared_ptr<gate_report> g = all.open_gate();
    g->what.test_case = test_case_name();
    g->what.name = s.name.empty() ? g->what.test_case : str(s.name);
    if (g->what.name.empty()) g->what.name = printed("%s at %s:%d", verb, file, line);
    g->what.file = file;
    g->what.line = line;
    const long long began = now_ns();
    const auto finish = [&] {
        g->took_s = static_cast<double>(now_ns() - began) * 1e-9;
        say(console_text(*g, style_of_console()));
        if (all.can_report()) say(reports_text(report_directory()));
        all.note_change();
        all.write_reports();
    };
    const interrupt_guard signals;  // until the reports are written
    try {
        all.open_files();
        measure(*g, s);
        const result measured = result_access::make(g);
        if (verb == std::string_view("run") && inside_test_case()) only_note(*g);
        finish();
        return measured;
    } catch (const std::invalid_argument& e) {
        mark_unmeasured(*g, s, gate_outcome::refused, e.what());
        finish();
        if (!inside_test_case()) throw;
        refuse_in_test(file, line, verb, e.what());
    } catch (const no_server& e) {
        const bool skip =
            environment_says_yes("LLMBENCH_SKIP_WITHOUT_SERVER") && !interrupted.load();
        mark_unmeasured(*g, s, skip ? gate_outcome::skipped : gate_outcome::invalid, e.what());
        finish();
        if (skip) return result_access::make(g);
        if (!inside_test_case()) throw;
        refuse_in_test(file, line, verb, e.what());
    } catch (const std::exception& e) {
        // Nobody expected it: of this machine, or a mistake of ours.
        mark_unmeasured(*g, s, gate_outcome::invalid, e.what());
        finish();
        if (!inside_test_case()) throw;
        refuse_in_test(file, line, verb, e.what());
    } catch (...) {
        mark_unmeasured(*g, s, gate_outcome::invalid, "it was ended by an exception");
        finish();
        throw;  // a thread that is cancelled comes by here, too
    }
    return result_access::make(g);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
