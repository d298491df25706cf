// the history in a result
// All that the rule needs: judging again needs no folder and gives the same bits.
#pragma once

#include "core/base/fields.hpp"
#include "extensions/history/core/history_parameters.hpp"
#include "extensions/history/core/learned.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void fields_of(field_visitor& v, main_moved& m) {
    v.number({"level"}, m.now.mean, any_number);
    v.number({"nights"}, m.now.nights, {1, most_of_few});
    v.number({"by", "logarithm"}, m.by, any_number);
}
inline void fields_of(field_visitor& v, learned_history& h) {
    constexpr number_range count{0, most_of_few};
    v.whole({"nights", "the newest ones, of which all of this is"}, h.nights, {0, most_of_few});
    v.number({"repeats_variance", "of logarithms, within nights"}, h.repeats.variance, any_number);
    v.number({"repeats_df"}, h.repeats.df, count);
    v.number({"repeats_a_night", "harmonic mean"}, h.repeats.repeats, count);
    v.number({"nights_sd", "of logarithms"}, h.spread.sd, any_number);
    v.number({"nights_df"}, h.spread.df, count);
    v.whole({"trouble_nights"}, h.spread.trouble, {0, most_of_few});
    v.number({"farthest", "of the trouble nights, from its level"}, h.spread.farthest, any_number);
    v.number({"level", "mean of the newest nights' logarithms; less is better"}, h.level.mean,
             any_number);
    v.number({"level_nights"}, h.level.nights, count);
    v.number({"given_sd", "what nights differ by as the user says; 0: it does not count"},
             h.given_sd, any_number);
    v.list({"main_moved"}, h.moved, [&](main_moved& m) { fields_of(v, m); });
}
inline void fields_of(field_visitor& v, objective_history& o) {
    v.text({"statistic"}, o.statistic);
    v.flag({"at_most"}, o.at_most);
    fields_of(v, o.learned);
    v.text({"newest", "commit of the newest night, or its date"}, o.newest);
    v.text({"segment_from", "the date of the step that the level began with, \"\": none"},
           o.step_at);
    v.number({"segment_step", "as a share"}, o.step, any_number);
    v.text({"segment_text"}, o.step_text);
    v.flag({"open_step", "main became worse, and nobody accepted it"}, o.is_open_step);
    v.number({"drift", "as a share, 0: none is shown"}, o.drift, any_number);
    v.number({"drift_low"}, o.drift_low, any_number);
    v.number({"drift_high"}, o.drift_high, any_number);
    v.text({"drift_since"}, o.drift_since);
    v.whole({"drift_steps"}, o.drift_steps, {0, most_of_few});
}
inline void fields_of(field_visitor& v, history_parameters& h) {
    v.text({"folder"}, h.folder);
    v.text({"machine"}, h.machine);
    v.text({"none", "why there is nothing to be held against"}, h.none);
    v.flag({"appends", "the run becomes a night"}, h.appends);
    v.flag({"knows_card", "some night was measured on the card"}, h.knows_card);
    v.list({"objectives"}, h.objectives, [&](objective_history& o) { fields_of(v, o); });
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
