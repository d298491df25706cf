// public functions
#pragma once

#include "api/doctest.hpp"
#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/verbs.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/described.hpp"
#include "core/traffic/shard.hpp"
#include "core/planning/load_search.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/console.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/doctest_host.hpp"
#include "effects/gates/execution.hpp"
#include "effects/gates/session.hpp"
#include "effects/gates/stored_run.hpp"

#include <algorithm>  // find
#include <optional>
#include <stdexcept>  // invalid_argument, exception
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
#ifndef LLMBENCH_NO_BODIES
void assert_slo(doctest::assertType::Enum severity, const char* file, int line,
                const char* expression, const result& r, const slo& s) {
    const auto g = result_access::gate_of(r);
    const std::optional<long long> end = days_of_date(str(s.advisory_until));
    const bool advises = s.is_advisory && (!end || utc_day() < *end);
    const auto real = advises ? doctest::assertType::DT_WARN : severity;
    if (!g || !g->refusal.empty()) {
        if (g && g->outcome == gate_outcome::skipped) return;
        return assertion(real, file, line, expression, verdict::invalid,
                         "INVALID: " + (g ? g->refusal : std::string("the result is empty")));
    }
    session& all = session::of_this_program();
    const bool is_advisory = real == doctest::assertType::DT_WARN;
    slo_verdict v;
    try {
        v = judge(r, s);
    } catch (const std::invalid_argument& e) {
        if (!is_advisory) all.worsen(g->number, gate_outcome::refused);
        return assertion(real, file, line, expression, verdict::invalid, e.what());
    }
    v.objective.is_advisory = is_advisory;
    if (const std::string note = end_text(s, utc_day()); !note.empty())
        say("  note: " + note + "\n");
    all.worsen(g->number, outcome_of(vector{v}, g->undecided_is));
    all.with_reports([&](program_reports& reports) {
        gate_report& of_gate = reports.gates[g->number];
        of_gate.verdicts.push_back(v);
        add_objective(of_gate.figures, g->seen, v.objective);
    });
    say(verdict_block(v, {}, surroundings_of_program().style()));
    assert_verdict(real, file, line, expression, v, g->undecided_is);
}
#endif
/// Each verdict of a gate is an assertion of its test case.
inline result asserted(const result& r, const char* file, int line) {
    const auto g = result_access::gate_of(r);
    if (!inside_test_case() || !g->refusal.empty()) return r;
    for (const slo_verdict& v : r.verdicts())
        assert_verdict(
            v.objective.is_advisory ? doctest::assertType::DT_WARN : doctest::assertType::DT_CHECK,
            file, line, str(v.objective.text()), v, g->undecided_is);
    return r;
}
#else
inline const result& asserted(const result& r, const char*, int) { return r; }
#endif

// Both files with inline code must be compiled with the same options, else a linker names these.
#ifdef LLMBENCH_WITH_TLS
#define LLMBENCH_INLINE_TLS_ "_with_LLMBENCH_WITH_TLS"
#else
#define LLMBENCH_INLINE_TLS_ "_without_LLMBENCH_WITH_TLS"
#endif
#ifdef DOCTEST_CONFIG_DISABLE
#define LLMBENCH_INLINE_TESTS_ "_with_DOCTEST_CONFIG_DISABLE"
#else
#define LLMBENCH_INLINE_TESTS_ ""
#endif
#ifdef _GLIBCXX_DEBUG
#define LLMBENCH_INLINE_STD_ "_with_GLIBCXX_DEBUG"
#else
#define LLMBENCH_INLINE_STD_ ""
#endif
bool inline_code() asm("LLMBENCH_MAIN_belongs_beside_LLMBENCH_IMPLEMENT_EXTENSIONS_in_a_file"
                       LLMBENCH_INLINE_TLS_ LLMBENCH_INLINE_TESTS_ LLMBENCH_INLINE_STD_);
#ifdef LLMBENCH_NO_BODIES
[[gnu::used]] static bool need_inline_code() { return !inline_code(); }
#else
bool inline_code() { return true; }
#endif
}  // namespace detail

#ifndef LLMBENCH_NO_BODIES
types::list<slo_verdict> judge(const types::text& records_file, const slo_list& asked,
                               const types::text& gate, const types::text& against) {
    using namespace detail;
    const slo_list slos = on_day(asked, utc_day());
    stored_run run = read_stored_pairs(str(records_file), str(gate), str(against));
    stored_gate& g = run.gate;
    check_is_whole(g, str(records_file));
    for (const slo& s : slos) g.judged_by.slos.push_back(s);
    const plan what =
        with_judging(g.described, [&](planned_judging& j) { j.slos = g.judged_by.slos; });
    const auto is_probe = [](const repeat_data& d) { return d.load > 0; };
    if (any_of(g.seen.candidate, is_probe) || any_of(g.judged_by.slos, is_of_capacity))
        the_search().divide(g.name, g.seen, g.judged_by);
    check_stored_objectives(run, what, slos);
    return described(analyse_gate(g.seen, g.judged_by).verdicts);
}
past_result read_result(const types::text& file) {
    const std::string name = detail::str(file);
    return detail::read_past_result(detail::file_content(name, "read_result"), name);
}

bool on_report(void (*report)(const report_view&)) {
    detail::vector<detail::user_report>& all = detail::user_reports();
    if (std::find(all.begin(), all.end(), report) == all.end()) all.push_back(report);
    return true;
}

int exit_code() { return detail::session::of_this_program().exit_code(); }
result run(const scenario& s, const char* file, int line) {
    return detail::executed(detail::gate_execution(s, file, line, "run"));
}
result gate(const scenario& s, const char* file, int line) {
    return detail::asserted(detail::executed(detail::gate_execution(s, file, line, "gate")), file,
                            line);
}
#endif

}  // inline namespace v1
}  // namespace llmbench
