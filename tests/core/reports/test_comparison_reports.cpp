// What reports tell of several settings, held against tests/golden/.
#include "llmbench.hpp"
#include "extensions/compare/core/text.hpp"
#include "core/reports/ci_files.hpp"
#include "core/reports/result_json.hpp"
#include "extensions/compare/core/reports.hpp"
#include "support/golden.hpp"
#include "support/sample_comparison.hpp"
#include "support/sample_gates.hpp"
#include "support/texts.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace texts;

TEST_CASE("what reports of several settings look like") {
    comparisons_and_curves both({sample_comparison(), cut_comparison()});
    golden::check("comparison.txt",
                  comparison_text(sample_comparison()) + comparison_text(cut_comparison()));
    golden::check("comparison.md", summary_md({}, {&both}));
    comparison_report brief = sample_comparison();
    brief.found.statistics.resize(2);
    comparisons_and_curves fewer({brief, cut_comparison()});
    golden::check("comparison.json",
                  golden::folded(golden::rounded(
                      result_json({}, quiet_machine(), {}, 0, {&fewer}))));
    golden::check("comparison-explained.txt", comparison_explained(sample_comparison().found));
}

TEST_CASE("a wide comparison is told in tables that fit beside the first setting") {
    comparison_report r = sample_comparison();
    const settings_comparison& three = r.found;
    for (int i = 4; i <= 8; ++i) {
        r.found.settings.push_back(three.settings[1]);
        r.found.settings.back().name = "setting " + std::to_string(i);
    }
    r.found.statistics = {detail::compared(
        mean(ttft).data, rounds_of({0.2, 0.21, 0.22, 0.23, 0.24, 0.25, 0.26, 0.27}), prior_sd)};
    r.found.asked = 0;
    const std::string text = comparison_text(r);
    int tables = 0;
    for (std::size_t at = text.find("mean(ttft)  "); at != std::string::npos;
         at = text.find("mean(ttft)  ", at + 1))
        ++tables;
    CHECK(tables == 3);
    CHECK(text.find("setting 8") != std::string::npos);
}

TEST_CASE("what a server says of itself is code in the summary, in a comparison too") {
    comparison_report r = cut_comparison();
    r.found.settings[1].excluded = "log ends: @team <img src=x> | [link](http://x)";
    comparisons_and_curves one({r});
    const std::string md = summary_md({}, {&one});
    CHECK(md.find("`budget 1024 is not compared: log ends: @team <img src=x>") !=
          std::string::npos);
}
