// sections of reports that a verb over several gates adds
#pragma once

#include "core/base/fields.hpp"
#include "core/reports/gate_report.hpp"

#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A verb's part of the program's files, beside the gates. All its texts are escaped already.
class program_section {
public:
    program_section() = default;
    program_section(const program_section&) = delete;
    program_section& operator=(const program_section&) = delete;
    virtual ~program_section() = default;
    /// The lists in result.json.
    virtual void fields(field_visitor& v) = 0;
    /// The tables in summary.md, each as a whole or not at all.
    virtual std::vector<std::string> tables(const std::vector<gate_report>& gates) const = 0;
    /// The HTML above the gates.
    virtual std::string html(const std::vector<gate_report>& gates) const = 0;
    /// Whether it draws this gate over its load, so that the page does not.
    virtual bool draws(const gate_report& g) const = 0;
    /// Names and contents of more files.
    virtual std::vector<std::pair<std::string, std::string>> files(
        const std::vector<gate_report>& gates) const = 0;
};
using all_sections = std::vector<program_section*>;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
