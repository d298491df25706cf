// Reports in a program that called setlocale() with a locale of decimal commas.
#include "llmbench.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/console.hpp"
#include "core/reports/page/page.hpp"
#include "core/reports/result_json.hpp"
#include "effects/system/errors.hpp"
#include "support/sample_gates.hpp"
#include "support/scratch.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;

namespace {

/// A decimal-comma locale, one of the system's or else one made for this test, and then the old one.
class decimal_commas {
public:
    decimal_commas() {
        if (set()) return;
        const std::string made = "localedef -i de_DE -f UTF-8 " + at_.file("de_DE.UTF-8") +
                                 " >/dev/null 2>&1";
        if (std::system(made.c_str()) != 0) return;
        ::setenv("LOCPATH", at_.file("").c_str(), 1);
        set();
        ::unsetenv("LOCPATH");
    }
    ~decimal_commas() { std::setlocale(LC_ALL, "C"); }
    explicit operator bool() const { return std::string(std::localeconv()->decimal_point) == ","; }

private:
    bool set() {
        for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"})
            if (std::setlocale(LC_ALL, name) && *this) return true;
        return false;
    }
    files::scratch at_{};
};

vector<std::string> all_reports() {
    test_gate g = sampled_gate("0,5", {mean(ttft) <= 99.5_ms, p50(e2e) <= 50.25_ms,
                                        goodput(ttft <= 80.5_ms) >= 95.5_pct});
    judge(g);
    calibrated row;
    row.objective = mean(ttft) <= 99.5_ms;
    row.estimate = 0.0805;
    row.sd = 0.0123;
    g.calibration = {row};
    const vector<gate_report> gates = {g};
    return {console_text(g),         summary_md(gates),
            junit_xml(gates),        open_metrics(gates),
            calibration_json(gates), github_annotations(gates, ""),
            report_html(gates, quiet_machine()),
            result_json(gates, quiet_machine(), {}, 1),
            record_json(g.measured.candidate[0].records[0], "g"),
            str(g.verdicts[0].explain())};
}

}  // namespace

TEST_CASE("every file and line is written as in the C locale") {
    const vector<std::string> as_in_c = all_reports();
    const std::string refused = error_text(ECONNREFUSED);
    const decimal_commas commas;
    if (!commas) {
        MESSAGE("not tested: no locale with decimal commas is here, and none could be made");
        return;
    }
    char as_the_program_has_it[16];
    std::snprintf(as_the_program_has_it, sizeof as_the_program_has_it, "%.1f", 0.5);
    CHECK(std::string(as_the_program_has_it) == "0,5");
    const vector<std::string> now = all_reports();
    for (std::size_t i = 0; i < now.size(); ++i) CHECK(now[i] == as_in_c[i]);
    CHECK(printed("%.2f %g %s", 1234.5, 1e-5, "1,5") == "1234.50 1e-05 1,5");
    CHECK(error_text(ECONNREFUSED) == refused);
    // What is read back are the same numbers.
    CHECK(parsed_number<double>("0.5") == 0.5);
    CHECK_FALSE(parsed_number<double>("0,5"));
    const past_result past = read_past_result(now[7], "result.json");
    CHECK(past.gates[0].slos[0].limit == 0.0995);
    // The program keeps its own way to write.
    std::snprintf(as_the_program_has_it, sizeof as_the_program_has_it, "%.1f", 0.5);
    CHECK(std::string(as_the_program_has_it) == "0,5");
}
