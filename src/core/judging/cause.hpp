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
    switch (what) {
    using enum because;
    case none_succeeded: case label_failed: case more_requests: return "requests";
    case task_failed: case task_idle: case no_finite_part: case metrics_reported:
    case restarted_before: case restarted_in: return "repeat";
    case ended_early: return "repeats sent planned least at_most is_open";
    case undisturbed: return "undisturbed repeats";
    case all_together: return "all other first";
    case cut_off: return "with without";
    case sessions_cut_off: return "requests with without";
    case cached: return "cached";
    case cached_in_both: return "cached baseline";
    case failed: case failed_within: return "failed of";
    case failed_over: return "failed of is_one_burst";
    case failed_in_burst: return "failed of burst burst_of repeat";
    case failed_or_beyond: case baseline_fails: case baseline_may_fail: return "failed of allowed";
    case failed_in_tail: return "failed of most allowed";
    case wrong_answers: return "wrong cut_off unreadable failed";
    case answers_differ: return "differ of failed own with_place place per_1000 without_place";
    case below_client: return "least";
    case no_size: case no_finite_value: return "unbounded repeats at_most";
    case pairs_spread: return "spread believed";
    case lasting_luck: case given_spread: return "spread";
    case repeats_spread: return "spread quiet";
    case over_calibration: return "spread calibrated";
    case thirds: return "first last repeats seconds";
    case no_value_in: return "repeat is_ratio";
    case over_failures: return "repeat is_infinite failed of";
    case over_nothing: return "repeat is_infinite";
    case small_sample: return "repeat is_baseline measured needed is_tail mostly_failed";
    case small_for_drift: return "measured needed";
    case few_slices: return "window needed";
    case window_ends: return "ended more";
    case few_runs: case lone_repeats: case lone_levels: return "runs";
    case main_moved: return "moved is_slower in_two";
    case outlying_runs: return "outlying runs";
    case client_without: return "lacking requests";
    case client_is_busy: return "cpu";
    case client_off_rate: return "sent asked";
    case read_together: case comes_in_bursts: return "events";
    case starts_read_together: return "starts answers";
    case sent_late: return "late after";
    case client_lost: return "lost disturbed requests";
    case over_saturated: case over_saturated_by_sessions: return "is_baseline grown sent slower";
    case no_such_turns: return "metric";
    case lacks_values: return "requests completed metric needs";
    case other_tokens: return "tokens is_prompt baseline";
    case context_full: return "requests completed at_length most";
    case stops_early: return "requests completed without_reason";
    case stops_by_itself: return "requests completed by_themselves";
    case too_long: case filtered: case several_choices: case short_prompts: case no_usage:
    case usage_over_length: case usage_under_events: case usage_over_content: case usage_may_hide:
    case usage_over_prompt: return "requests completed";
    case equal_prompts: return "requests completed tokens";
    case no_history: return "turns of";
    case known_prompts: return "cached shared";
    case cached_over_prompt: return "cached prompt";
    case in_one_piece: case in_a_burst: return "answers of";
    case served_others: return "repeat reported ours";
    case others_requests: case others_tokens: case more_at_once: return "reported ours repeat";
    case queue_stood: return "from most";
    case cache_full: return "usage";
    case cache_preempts: return "usage preemptions";
    case preempted: return "preemptions";
    case clocks_lower: return "lower repeat";
    case carries: case not_monotone: return "low high";
    case probe_too_short: return "answer load needed starts of_sessions";
    case headroom_in_noise: return "headroom noise better";
    case headroom_in_modes: return "headroom better";
    case longer_run: return "times better";
    case longer_load: return "seconds starts of_sessions";
    case limit_that_passes: return "better";
    default: return {};
    }
}
/// Returns the place of a word in a list with spaces, or how many there are.
constexpr std::size_t place_of_word(std::string_view words, std::string_view word) {
    std::size_t place = 0;
    for (; !words.empty(); ++place) {
        const std::size_t n = std::min(words.find(' '), words.size());
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
    static_assert(n == numbers_in(what), "the cause has more numbers");
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
