// judges of an extension, by earlier runs
#pragma once

#include "api/slo.hpp"
#include "core/base/fields.hpp"

#include <memory>  // shared_ptr
#include <optional>
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

struct arithmetic;
struct decision;
struct measurements;
struct gate_report;
struct judging_parameters;

/// The noise of repeats from earlier runs; `sd` is 0 if unknown.
struct history_noise {
    double sd = 0, df = 0;
};

/// An extension's judge of objectives relative to its baseline. It is constant while it judges.
class past_judge {
public:
    virtual ~past_judge() = default;
    /// Decides one objective by the method `predictive_t`. `estimate` adds the estimate, the
    /// baseline ("27 runs") and the arithmetic.
    virtual decision judged(const measurements& e, const judging_parameters& t, const slo& s,
                            bool to_the_end) const = 0;
    virtual void estimate(decision& d) const = 0;
    virtual std::string against(const decision& d) const = 0;
    virtual void explain(arithmetic& a, const decision& d) const = 0;
    /// The baseline's logarithm and the spread between days. Nothing: unknown.
    struct level {
        double log = 0, day_sd = 0;
    };
    virtual std::optional<level> level_of(const slo& s) const = 0;
    /// For an absolute limit.
    virtual history_noise noise_of(const slo& s) const = 0;
    /// For reports.
    virtual std::vector<std::string> lines(const gate_report& g) const = 0;
    /// The fields of result.json, enough to judge again.
    virtual void fields(field_visitor& v) = 0;
};
using past_judge_maker = std::shared_ptr<past_judge> (*)();  // named: g++ 12 refuses constinit else
/// Makes an empty one to read fields into; null without an extension.
inline constinit past_judge_maker new_past_judge = nullptr;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
