// gates inside doctest
#pragma once

#include "api/doctest.hpp"
#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/described/verdict_text.hpp"
#include "effects/gates/session.hpp"

#include <atomic>
#include <cstddef>  // size_t
#include <iostream>  // cerr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
inline bool inside_test_case() { return doctest::is_running_in_test; }
inline thread_local bool asserts_a_gate = false;
/// One assertion with our own text, which holds if it is a pass. A failed REQUIRE throws.
inline void assertion(doctest::assertType::Enum severity, const char* file, int line,
                      const std::string& expression, verdict of_it, const std::string& text) {
    doctest::detail::ResultBuilder builder(severity, file, line, expression.c_str());
    builder.m_failed = of_it != verdict::pass;
    builder.m_decomp = text.c_str();
    asserts_a_gate = true;
    const bool breaks = builder.log();
    asserts_a_gate = false;
    if (breaks) DOCTEST_BREAK_INTO_DEBUGGER();
    builder.react();
}
/// Asserts a verdict with a severity, by the table of outcomes.
inline void assert_verdict(doctest::assertType::Enum severity, const char* file, int line,
                           const std::string& expression, const slo_verdict& v,
                           inconclusive_means undecided_is) {
    const bool undecided_fails =
        v.outcome == verdict::inconclusive && undecided_is == inconclusive_means::fail;
    // Missing data is never green: our main says so by its exit code, another main by this
    // assertion.
    const bool no_data = v.outcome == verdict::inconclusive && v.repeats == 0 &&
                         !session::of_this_program().returns_exit_code;
    const bool failed = v.outcome == verdict::fail || v.outcome == verdict::invalid ||
                        (!v.objective.is_advisory && (undecided_fails || no_data));
    assertion(severity, file, line, expression, failed ? verdict::fail : verdict::pass,
              verdict_in_short(v));
}
inline void refuse_in_test(const char* file, int line, const char* verb, const std::string& why) {
    // The gate's own block has the full text.
    const std::string in_short = printable(why.substr(0, why.find('\n')), 120);
    assertion(doctest::assertType::DT_CHECK, file, line, std::string(verb) + "({...})",
              verdict::fail, in_short);
}
/// Notes events of doctest outside gates: queries that run nothing, test cases that failed and why,
/// and the end of the run. Assertions may come from any thread.
class host_listener : public doctest::IReporter {
public:
    explicit host_listener(const doctest::ContextOptions&) {}
    void report_query(const doctest::QueryData&) override { all_.host_did = host_run::query; }
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats& s) override {
        if (is_reported_by_host()) all_.host().end();
        const bool ran_some = s.numTestCasesPassingFilters > 0 || left_out_.empty();
        if (ran_some || !all_.returns_exit_code) return;
        all_.host_did = host_run::matched_none;
        std::cerr << "llmbench: no gate was run: no test case matches the filter; there are "
                  << enumerated(left_out_) << "\n";
        // Otherwise doctest would print a success after this.
        auto& counts = const_cast<doctest::TestRunStats&>(s);
        counts.numTestCasesPassingFilters = counts.numTestCasesFailed = 1;
    }
    void test_case_start(const doctest::TestCaseData& t) override {
        if (is_reported_by_host())
            all_.host().begin({t.m_name, t.m_name, t.m_file.c_str(), static_cast<int>(t.m_line)},
                              all_.number_of_gates());
    }
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats& s) override {
        if (is_reported_by_host() && !s.testCaseSuccess) all_.fail_test_case();
    }
    void test_case_exception(const doctest::TestCaseException& e) override {
        if (e.is_crash) crashed_ = true;
        else note("an exception ended it: " + printable(e.error_string.c_str()));
    }
    void subcase_start(const doctest::SubcaseSignature& s) override {
        if (is_reported_by_host()) all_.host().enter(s.m_name.c_str());
    }
    void subcase_end() override {
        if (is_reported_by_host()) all_.host().leave();
    }
    void log_assert(const doctest::AssertData& a) override {
        if (a.m_failed && !asserts_a_gate && !(a.m_at & doctest::assertType::is_warn))
            note(printed("%s:%d: %s( %s ) does not hold", file_name(a.m_file).c_str(), a.m_line,
                         doctest::assertString(a.m_at), printable(a.m_expr).c_str()));
    }
    void log_message(const doctest::MessageData& m) override {
        if (!(m.m_severity & doctest::assertType::is_warn))
            note(printed("%s:%d: %s", file_name(m.m_file).c_str(), m.m_line,
                         printable(m.m_string.c_str()).c_str()));
    }
    void test_case_skipped(const doctest::TestCaseData& t) override {
        constexpr std::size_t most = 12;
        const std::string name = "\"" + printable(t.m_name, 60) + "\"";
        if (left_out_.size() == most) left_out_.push_back("more");
        else if (left_out_.size() < most) left_out_.push_back(name);
    }

private:
    /// Not in a signal handler, which may interrupt any state.
    bool is_reported_by_host() const { return !crashed_; }
    void note(const std::string& why) {
        if (is_reported_by_host()) all_.host().note(why);
    }
    session& all_ = session::of_this_program();
    vector<std::string> left_out_{};  // test cases; only the first ones
    std::atomic<bool> crashed_{false};
};
inline const int host_listener_registered =
    doctest::registerReporter<host_listener>("llmbench", 0, false);
#else
inline bool inside_test_case() { return false; }
inline void refuse_in_test(const char*, int, const char*, const std::string&) {}
#endif

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
