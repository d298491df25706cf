// causes, and their numbers by name
#pragma once

#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The causes of decisions. core/described has a sentence for each.
enum class because : unsigned char {
    nothing,
    reported,   // a text from outside
    stopped, ended_early, all_ended_early,
    unsupported, server_gone, interrupted, no_requests, none_succeeded, no_baseline,
    task_failed, task_idle, undisturbed,  // side tasks
    // the numbers
    too_close, too_few_to_fail, all_together, cut_off, sessions_cut_off, cached, cached_in_both,
    untold_history,
    failed, failed_over, failed_in_burst, failed_within, failed_or_beyond, failed_in_tail,
    wrong_answers, answers_differ, below_client,
    no_size, no_finite_value, pairs_spread, lasting_luck, repeats_spread, over_calibration, thirds,
    // missing values
    nothing_measured, no_value, no_value_in, over_failures, over_nothing, not_played_out,
    stored_lacks,
    start_unknown, too_few_values,
    no_finite_part, small_sample, small_for_drift, few_slices, window_ends,
    // baseline runs
    no_runs, few_runs, lone_repeats, lone_levels, runs_lack, one_repeat, main_moved,
    outlying_runs, given_spread, unknown_card,
    // the client
    client_without, client_is_busy, client_off_rate, read_together, starts_read_together,
    sent_late, client_lost, client_in_probes,
    // the server's answers
    over_saturated, over_saturated_by_sessions, no_such_turns, none_selected, label_failed,
    gaps_of_all, lacks_values, other_tokens, context_full, stops_early, stops_by_itself,
    too_long, filtered, several_choices, short_prompts, equal_prompts, no_history,
    known_prompts, cached_over_prompt, no_usage,
    usage_over_length, usage_under_events, usage_over_content, usage_may_hide, usage_over_prompt,
    in_one_piece, in_a_burst, comes_in_bursts, baseline_fails,
    baseline_may_fail,
    // the server's page
    metrics_reported, restarted_before, restarted_in, served_others, others_requests, others_tokens,
    more_at_once,
    queue_stood, cache_full, cache_preempts, preempted, clocks_lower,
    // loads
    carries, not_monotone, gave_up, several_loads, first_probe_failed, probe_too_short,
    // what would be decided more often
    headroom_in_noise, headroom_in_modes, longer_run, longer_load, more_requests, limit_that_passes,
};
/// The names of a cause's numbers, in their order.
constexpr std::string_view numbers_of(because what) {
    using enum because;
    struct named { because of; const char* numbers; };
    constexpr named all[] = {
        {ended_early, "repeats,sent,planned,least,at_most,is_open"}, {none_succeeded, "requests"},
        {task_failed, "repeat"}, {task_idle, "repeat"}, {undisturbed, "undisturbed,repeats"},
        {all_together, "all,other,first"}, {cut_off, "with,without"},
        {sessions_cut_off, "requests,with,without"}, {cached, "cached"},
        {cached_in_both, "cached,baseline"}, {failed, "failed,of"},
        {failed_over, "failed,of,is_one_burst"},
        {failed_in_burst, "failed,of,burst,burst_of,repeat"}, {failed_within, "failed,of"},
        {failed_or_beyond, "failed,of,allowed"}, {failed_in_tail, "failed,of,most,allowed"},
        {wrong_answers, "wrong,cut_off,unreadable,failed"},
        {answers_differ, "differ,of,failed,own,with_place,place,per_1000,without_place"},
        {below_client, "least"}, {no_size, "unbounded,repeats,at_most"},
        {no_finite_value, "unbounded,repeats,at_most"}, {pairs_spread, "spread,believed"},
        {lasting_luck, "spread"}, {repeats_spread, "spread,quiet"},
        {over_calibration, "spread,calibrated"}, {thirds, "first,last,repeats,seconds"},
        {no_value_in, "repeat,is_ratio"}, {over_failures, "repeat,is_infinite,failed,of"},
        {over_nothing, "repeat,is_infinite"}, {no_finite_part, "repeat"},
        {small_sample, "repeat,is_baseline,measured,needed,is_tail,mostly_failed"},
        {small_for_drift, "measured,needed"}, {few_slices, "window,needed"},
        {window_ends, "ended,more"}, {few_runs, "runs"}, {lone_repeats, "runs"},
        {lone_levels, "runs"}, {main_moved, "moved,is_slower,in_two"},
        {outlying_runs, "outlying,runs"}, {given_spread, "spread"},
        {client_without, "lacking,requests"}, {client_is_busy, "cpu"},
        {client_off_rate, "sent,asked"}, {read_together, "events"},
        {starts_read_together, "starts,answers"}, {sent_late, "late,after"},
        {client_lost, "lost,disturbed,requests"}, {over_saturated, "is_baseline,grown,sent,slower"},
        {over_saturated_by_sessions, "is_baseline,grown,sent,slower"}, {no_such_turns, "metric"},
        {label_failed, "requests"}, {lacks_values, "requests,completed,metric,needs"},
        {other_tokens, "tokens,is_prompt,baseline"},
        {context_full, "requests,completed,at_length,most"},
        {stops_early, "requests,completed,without_reason"},
        {stops_by_itself, "requests,completed,by_themselves"}, {too_long, "requests,completed"},
        {filtered, "requests,completed"}, {several_choices, "requests,completed"},
        {short_prompts, "requests,completed"}, {equal_prompts, "requests,completed,tokens"},
        {no_history, "turns,of"}, {known_prompts, "cached,shared"},
        {cached_over_prompt, "cached,prompt"}, {no_usage, "requests,completed"},
        {usage_over_length, "requests,completed"}, {usage_under_events, "requests,completed"},
        {usage_over_content, "requests,completed"}, {usage_may_hide, "requests,completed"},
        {usage_over_prompt, "requests,completed"}, {in_one_piece, "answers,of"},
        {in_a_burst, "answers,of"}, {comes_in_bursts, "events"},
        {baseline_fails, "failed,of,allowed"}, {baseline_may_fail, "failed,of,allowed"},
        {metrics_reported, "repeat"}, {restarted_before, "repeat"}, {restarted_in, "repeat"},
        {served_others, "repeat,reported,ours"}, {others_requests, "reported,ours,repeat"},
        {others_tokens, "reported,ours,repeat"}, {more_at_once, "reported,ours,repeat"},
        {queue_stood, "from,most"}, {cache_full, "usage"}, {cache_preempts, "usage,preemptions"},
        {preempted, "preemptions"}, {clocks_lower, "lower,repeat"}, {carries, "low,high"},
        {not_monotone, "low,high"}, {probe_too_short, "answer,load,needed,starts,of_sessions"},
        {headroom_in_noise, "headroom,noise,better"}, {headroom_in_modes, "headroom,better"},
        {longer_run, "times,better"}, {longer_load, "seconds,starts,of_sessions"},
        {more_requests, "requests"}, {limit_that_passes, "better"},
    };
    for (const named& n : all)
        if (n.of == what) return n.numbers;
    return {};
}
/// Returns the place of a word in a list with commas, or how many there are.
constexpr std::size_t place_of_word(std::string_view words, std::string_view word) {
    std::size_t place = 0;
    for (; !words.empty(); ++place) {
        const std::size_t n = std::min(words.find(','), words.size());
        if (words.substr(0, n) == word) break;
        words.remove_prefix(std::min(n + 1, words.size()));
    }
    return place;
}
constexpr std::size_t numbers_in(because what) { return place_of_word(numbers_of(what), ""); }

/// Who is at fault.
enum class whose : unsigned char { nobody, client, plan, server, baseline_server, baseline };

void it_has_numbers();  // not constexpr, so that its call is refused
void it_has_no_such_number();

/// A cause without numbers: one with them does not compile.
struct bare_cause {
    because what;
    consteval bare_cause(because b) : what(b) {
        if (numbers_in(b) > 0) it_has_numbers();
    }
};
struct cause {
    because what = because::nothing;
    vector<double> numbers{};
    whose of = whose::nobody;
    std::string text{};   // from outside: an error, a name
    cause() = default;
    cause(bare_cause b, whose fault = whose::nobody, std::string words = {})
        : what(b.what), of(fault), text(std::move(words)) {}
    explicit operator bool() const { return what != because::nothing; }
    /// NaN if the cause has none of the name.
    double operator[](std::string_view name) const {
        const std::size_t place = place_of_word(numbers_of(what), name);
        return place < numbers.size() ? numbers[place] : not_a_number;
    }
    void set(std::string_view name, double value) {
        numbers[place_of_word(numbers_of(what), name)] = value;
    }
};
/// A number of a cause. A name that the cause does not have does not compile.
template <because what>
struct number_name {
    std::size_t place;
    consteval number_name(const char* name) : place(place_of_word(numbers_of(what), name)) {
        if (place == numbers_in(what)) it_has_no_such_number();
    }
};
template <because what>
struct cause_number {
    std::size_t place;
    double value;
    template <class N>
    cause_number(number_name<what> name, N v) : place(name.place), value(static_cast<double>(v)) {}
};
/// Returns a cause with all its numbers. Fewer do not compile.
template <because what, std::size_t n>
cause cause_with(const cause_number<what> (&numbers)[n], whose of = whose::nobody,
                 std::string text = {}) {
    static_assert(n == numbers_in(what));  // else one is missing
    cause c;
    c.what = what;
    c.numbers.resize(n);
    for (const cause_number<what>& x : numbers) c.numbers[x.place] = x.value;
    c.of = of;
    c.text = std::move(text);
    return c;
}
inline cause of_server(cause c, bool is_baseline) {
    c.of = is_baseline ? whose::baseline_server : whose::server;
    return c;
}
inline cause with_text(bare_cause what, std::string text) {
    if (text.empty()) return {};
    return {what, whose::nobody, std::move(text)};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
