// public functions
#pragma once

#include "api/doctest.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/verbs.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/verdict_text.hpp"
#include "core/reports/console.hpp"
#include "core/bodies/result_data.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/simulated/host.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/gates/judged_files.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/measure_curve.hpp"
#include "effects/gates/measure_settings.hpp"
#include "effects/gates/session.hpp"

#include <iostream>  // cerr
#include <stdexcept>  // invalid_argument, exception
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
void assert_slo(doctest::assertType::Enum severity, const char* file, int line,
                const char* expression, const result& r, const slo& s) {
    const auto g = result_access::gate_of(r);
    const auto real = s.is_advisory ? doctest::assertType::DT_WARN : severity;
    if (!g || !g->refusal.empty()) {
        if (g && g->outcome == gate_outcome::skipped) return;
        return assertion(real, file, line, expression, true,
                         "INVALID: " + (g ? g->refusal : std::string("the result is empty")));
    }
    session& all = session::of_this_program();
    const bool is_advisory = real == doctest::assertType::DT_WARN;
    slo_verdict v;
    try {
        v = judge(r, s);
    } catch (const std::invalid_argument& e) {
        if (!is_advisory) all.worsen(g->number, gate_outcome::refused, inside_test_case());
        return assertion(real, file, line, expression, true, e.what());
    }
    v.what.is_advisory = is_advisory;
    all.add_verdict(g->number, v, outcome_of(std::vector{v}, g->undecided_is), g->seen,
                    inside_test_case());
    say(verdict_block(v, 0, surroundings_of_program().style()));
    assert_verdict(real, file, line, expression, v, g->undecided_is);
}
/// Each verdict of a gate is an assertion of its test case.
inline result asserted(const result& r, const char* file, int line) {
    const auto g = result_access::gate_of(r);
    if (!inside_test_case() || !g->refusal.empty()) return r;
    for (const slo_verdict& v : r.verdicts())
        assert_verdict(
            v.what.is_advisory ? doctest::assertType::DT_WARN : doctest::assertType::DT_CHECK, file,
            line, str(v.what.text()), v, g->undecided_is);
    return r;
}
#else
inline const result& asserted(const result& r, const char*, int) { return r; }
#endif
}  // namespace detail

past_result read_result(const types::text& file) {
    const std::string name = detail::str(file);
    return detail::read_past_result(detail::file_content(name, "read_result"), name);
}

int serve_simulated(const engine& e, int port) {
    const detail::interrupt_guard signals;
    try {
        const detail::simulated_host host(e, port);
        detail::say("listening on " + host.url() + "\n");
        while (!detail::stop_asked.load()) detail::sleep_s(0.05);
    } catch (const std::exception& error) {
        std::cerr << "llmbench: cannot serve on port " << std::to_string(port) << ": "
                  << error.what() << "\n";
        return 1;
    }
    return 0;
}

int exit_code() {
    if (!detail::rank_group::of_this_program().is_first()) {
        detail::session::of_this_program().final_outcome();
        return 0;  // rank 0 tells
    }
    detail::session& all = detail::session::of_this_program();
    return all.code_of(all.final_outcome());
}
result run(const scenario& s, const char* file, int line) {
    return detail::measured_result(s, file, line, "run");
}
capacity_result find_capacity(const scenario& s, const char* file, int line) {
    return detail::result_access::capacity_in(
        detail::measured_result(s, file, line, "find_capacity"));
}
comparison_result compare(const scenario& s, const types::list<setting>& settings,
                          const char* file, int line) {
    return detail::compared_settings(s, settings, file, line);
}
curve_result curve(const scenario& s, const types::list<offered_load>& loads, const char* file,
                   int line) {
    return detail::measured_curve(s, loads, file, line);
}
result gate(const scenario& s, const char* file, int line) {
    return detail::asserted(detail::measured_result(s, file, line, "gate"), file, line);
}
result judge_files(const types::list<types::text>& files, const slo_list& slos,
                   const types::text& name, const char* file, int line) {
    return detail::asserted(detail::judged_files(files, slos, name, file, line), file, line);
}
result judge_shards(const types::list<types::text>& directories, const slo_list& slos,
                    const types::text& gate, const char* file, int line) {
    return detail::asserted(detail::judged_shards(directories, slos, gate, file, line), file, line);
}

}  // inline namespace v0
}  // namespace llmbench
