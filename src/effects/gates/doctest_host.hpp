// gates inside doctest
#pragma once

#include "api/doctest.hpp"
#include "api/result.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/words.hpp"
#include "effects/gates/session.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

#if !defined(LLMBENCH_NO_DOCTEST) && !defined(DOCTEST_CONFIG_DISABLE)
inline bool inside_test_case() { return doctest::is_running_in_test; }
inline std::string test_case_name() {
    const auto* options = doctest::getContextOptions();
    return options && options->currentTest ? options->currentTest->m_name : "";
}
/// One assertion with our own text. REQUIRE throws where it fails.
inline void assertion(doctest::assertType::Enum severity, const char* file, int line,
                      const std::string& expression, bool failed, const std::string& text) {
    doctest::detail::ResultBuilder builder(severity, file, line, expression.c_str());
    builder.m_failed = failed;
    builder.m_decomp = text.c_str();
    if (builder.log()) DOCTEST_BREAK_INTO_DEBUGGER();
    builder.react();
}
/// A verdict under a severity, by the table of outcomes.
inline void assert_verdict(doctest::assertType::Enum severity, const char* file, int line,
                           const std::string& expression, const slo_verdict& v,
                           inconclusive_means undecided_is) {
    const bool undecided_fails =
        v.outcome == verdict::inconclusive && undecided_is == inconclusive_means::fail;
    // Missing data is never green: our own main says so by its exit code, others hear it here.
    const bool no_data = v.outcome == verdict::inconclusive && v.repeats == 0 &&
                         !session::of_this_program().tells_exit_code;
    const bool failed = v.outcome == verdict::fail || v.outcome == verdict::invalid ||
                        undecided_fails || no_data;
    assertion(severity, file, line, expression, failed, verdict_line(v));
}
inline void refuse_in_test(const char* file, int line, const char* verb, const std::string& why) {
    assertion(doctest::assertType::DT_CHECK, file, line, std::string(verb) + "({...})", true, why);
}
/// Only to learn whether doctest was asked a question instead of being run.
struct question_listener : doctest::IReporter {
    explicit question_listener(const doctest::ContextOptions&) {}
    void report_query(const doctest::QueryData&) override {
        session::of_this_program().only_asked = true;
    }
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};
inline const int question_listener_registered =
    doctest::registerReporter<question_listener>("llmbench", 0, false);
#else
inline bool inside_test_case() { return false; }
inline std::string test_case_name() { return {}; }
inline void refuse_in_test(const char*, int, const char*, const std::string&) {}
#endif

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
