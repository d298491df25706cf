// the fields of a verdict
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "api/text.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/judging/decision.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The side of the limit on which values meet it.
enum class good_side : unsigned char { at_most, at_least };
inline const char* to_string(good_side s) {
    return name_at({"at_most", "at_least"}, s);
}

inline void number_list(field_visitor& v, const field& f, const types::list<double>& all) {
    std::vector<double> numbers(all.begin(), all.end());
    v.numbers(f, numbers, any_number);
}
/// They are read as a `past_slo`: an objective is more than its text.
inline void fields_of(field_visitor& v, verdict_cause& c) {
    v.text({"name", "one of core/described/sentences.hpp; it does not change"}, c.name);
    v.text({"whose", "fault it is: client, plan, server, baseline_server or baseline; empty of "
                     "nobody's"}, c.whose);
    number_list(v, {"numbers"}, c.numbers);
}
inline void fields_of(field_visitor& v, slo_verdict& of) {
    std::string text = str(of.what.text()), metric = metric_name(of.what.what.metric);
    std::string which = is_of_all(of.what.what) ? "" : selection_text(of.what.what.which);
    std::string file = of.what.at.file, until = str(of.what.advisory_until);
    bool relative = of.what.factor > 0;
    double distance = headroom(of);
    good_side side = of.what.at_most ? good_side::at_most : good_side::at_least;
    v.text({"slo", "as its author wrote it"}, text);
    v.choice({"verdict"}, of.outcome, verdict::skipped);
    v.flag({"advisory", "never fails the gate"}, of.what.is_advisory);
    v.text_if_any("advisory_until", "the day of UTC from which it fails the gate again", until);
    v.text({"metric"}, metric);
    v.text_if_any("of", "the requests that it is of, where those are not all", which);
    v.number({"measured", "of the requests of all repeats together, in seconds, per second, as a "
                          "fraction; of a relative SLO the ratio", at_times},
             of.measured, any_number);
    v.number({"estimate", "what the verdict rests on: the typical repeat, the geometric mean of "
                          "the repeats; of fractions the requests counted"},
             of.estimate.value, any_number);
    v.interval({"interval", "of the estimate, as the verdict used it"}, of.estimate.low,
               of.estimate.high);
    if (v.has("numerator", of.denominator > 0)) {
        v.number({"numerator", "of a ratio, in its unit: what was measured", at_times},
                 of.numerator, any_number);
        v.number({"denominator", "and what that is compared with", at_times}, of.denominator,
                 any_number);
    }
    v.number({"limit"}, of.limit, any_number);
    v.flag({"relative_to_baseline"}, relative);
    v.number({"headroom", "distance to the limit as a fraction of it, negative outside"}, distance,
             any_number);
    v.number({"detectable", "what this sample shows four times in five"}, of.detectable,
             any_number);
    v.whole({"repeats"}, of.repeats);
    v.whole({"requests"}, of.requests);
    v.choice({"side", "which side of the limit is the good one"}, side, good_side::at_least);
    v.choice({"decided_by"}, of.decided_by, verdict_method::predictive_t);
    v.choice({"unit", "what repeats counts"}, of.counted_in, verdict_unit::probe);
    std::vector<verdict_cause> causes(of.causes.begin(), of.causes.end());
    v.list({"causes", "of the reason, in its order"}, causes,
           [&](verdict_cause& c) { fields_of(v, c); });
    v.text({"method"}, of.method);
    v.text({"reason"}, of.reason);
    v.text({"advice"}, of.advice);
    v.text({"arithmetic"}, of.arithmetic);
    v.begin({"inputs", "every number of the verdict's arithmetic"});
    std::vector<std::string> names;
    for (const named_values& n : of.inputs) names.push_back(str(n.name));
    names = v.names(names);
    for (std::size_t i = 0; i < names.size(); ++i)
        number_list(v, {names[i].c_str(), "", at_times},
                    i < of.inputs.size() ? of.inputs[i].values : types::list<double>());
    v.end();
    v.text({"file"}, file);
    v.whole({"line"}, of.what.at.line);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
