// comparisons and curves in the program's files
#pragma once

#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/program_section.hpp"
#include "core/reports/page/load_curves.hpp"
#include "core/reports/page/verdicts.hpp"
#include "extensions/compare/core/comparison_json.hpp"
#include "extensions/compare/core/comparison_md.hpp"
#include "extensions/compare/core/comparison_report.hpp"
#include "extensions/compare/core/curve_report.hpp"
#include "extensions/compare/core/settings_page.hpp"

#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

class comparisons_and_curves : public program_section {
public:
    explicit comparisons_and_curves(std::vector<comparison_report> some = {},
                                    std::vector<curve_report> more = {})
        : comparisons(std::move(some)), curves(std::move(more)) {}
    /// Changed only through the session.
    static comparisons_and_curves& of_this_program() {
        static comparisons_and_curves* const all = new comparisons_and_curves;  // outlives statics
        return *all;
    }
    std::vector<comparison_report> comparisons;
    std::vector<curve_report> curves;

    void fields(field_visitor& v) override {
        if (v.has("comparisons", !comparisons.empty()))
            v.list({"comparisons", "several settings of a server, measured in turns on one trace; "
                                   "of compare()", at_times},
                   comparisons, [&](comparison_report& c) { fields_of(v, c); });
        if (v.has("curves", !curves.empty()))
            v.list({"curves", "one load after the other, of curve()", at_times}, curves,
                   [&](curve_report& c) { fields_of(v, c); });
    }
    std::vector<std::string> tables(const std::vector<gate_report>& gates) const override {
        std::vector<std::string> all;
        for (const comparison_report& r : comparisons) all.push_back(comparison_md(r));
        for (const curve_report& c : curves) all.push_back(curve_md(c, gates));
        return all;
    }
    std::string html(const std::vector<gate_report>& gates) const override {
        std::string h = comparisons_html(comparisons);
        for (const curve_report& c : curves)
            h += curve_html(c.name,
                            "<p class=\"why\">" + xml_escaped(curve_line(c)) +
                                ".</p>\n<p class=\"note\">Up and to the left is better. A dot is a "
                                "load: green where it was shown to hold all objectives, red where "
                                "it was shown to miss one; the grey stretch is the capacity.</p>\n",
                            c.unit == metric_id::capacity_in_users, ends_of(c), rows_of(c, gates));
        return h;
    }
    bool draws(const gate_report& g) const override {
        for (const curve_report& c : curves)
            for (const judged_load& p : c.loads)
                if (p.gate == g.what.name) return true;
        return false;
    }
    std::vector<std::pair<std::string, std::string>> files(
        const std::vector<gate_report>& gates) const override {
        if (curves.empty()) return {};
        return {{"curves.csv", curves_csv(curves, gates)}};
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
