// a sentence for each cause
// Numbers stand in braces, in the order in which a cause has them:
//   {.3g} printf's, {.3g%} of a fraction in percent, {0} a count, {s} the plural of the last one
//   {c} "3 of 40 completed requests", {t} a time, {v} a value of the objective's metric, {d} of the
//   one that drifts, {l} its limit, {b} a better one
//   {m} a metric by its number, {x} the needs of that metric, {o} a verdict
//   {a|b} "a" where it is not 0, else "b"
// {w} are a cause's words, {n} is the objective's statistic.
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/decision.hpp"

#include <algorithm>  // min
#include <cmath>  // ceil, floor, isfinite, isnan, log10, pow
#include <cstddef>  // size_t
#include <iterator>  // size
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct cause_sentence {
    because id;
    const char* name;  // in result.json
    const char* says;
};
inline constexpr cause_sentence cause_sentences[] = {
    {because::nothing, "nothing", ""},
    {because::reported, "reported", "{w}"},
    {because::stopped, "stopped", "{w}"},
    {because::unsupported, "unsupported", "{w}"},
    {because::server_gone, "server_gone", "{w}"},
    {because::interrupted, "interrupted", "the run was interrupted"},
    {because::no_requests, "no_requests", "no request was measured"},
    {because::none_succeeded, "none_succeeded", "none of {0} requests succeeded ({w})"},
    {because::no_baseline, "no_baseline", "there is no baseline"},
    {because::task_failed, "task_failed", "its load was another one, as a side task failed in "
     "repeat {0}: {w}"},
    {because::task_idle, "task_idle", "its load was another one, as the side task \"{w}\" did "
     "nothing in repeat {0}: let it begin earlier, or measure for longer"},
    {because::undisturbed, "undisturbed", "nothing was disturbed in {0} of {0} repeats, so that "
     "there was nothing to recover from: does the side task do what it is to do?"},

    {because::too_close, "too_close", "too close to call"},
    {because::too_few_to_fail, "too_few_to_fail", "two repeats are too few to fail"},
    {because::all_together, "all_together", nullptr},
    {because::cut_off, "cut_off", "requests were cut off as their run ended: with these as "
     "failures the verdict is {o}, without them {o}; let a run end by a number of requests"},
    {because::sessions_cut_off, "sessions_cut_off", "{0} request{s} of sessions had not ended when "
     "the client gave them up ({w}): with these as failures the verdict is {o}, without them {o}; "
     "give limits.drain the time that a session takes"},
    {because::cached, "cached", "{.3g%} % of the prompt tokens came from the server's prefix "
     "cache"},
    {because::cached_in_both, "cached_in_both", "{.3g%} % of the prompt tokens came from the "
     "server's prefix cache, with the baseline {.3g%} %"},
    {because::failed, "failed", "{0} of {0} failed, limit {l}"},
    {because::failed_over, "failed_over", "{0} of {0} failed, over the limit of {l}, not shown to "
     "be more than {one burst|chance}"},
    {because::failed_in_burst, "failed_in_burst", "{0} of {0} failed, within the limit of {l}, but "
     "{0} of {0} failed in repeat {0}: more than chance"},
    {because::failed_within, "failed_within", "{0} of {0} failed, limit {l}: within it as "
     "observed, not shown"},
    {because::failed_or_beyond, "failed_or_beyond", "{0} of {0} requests failed or lie beyond the "
     "limit, {.3g%} % may"},
    {because::failed_in_tail, "failed_in_tail", "{0} of {0} failed, up to {.2g%} % may, and {w} "
     "leaves {.3g%} % beyond it"},
    {because::wrong_answers, "wrong_answers", nullptr},
    {because::answers_differ, "answers_differ", nullptr},
    {because::no_size, "no_size", "{0} of {0} repeats have {so many failures that the statistic is "
     "infinite|too few good answers in the steady window, so that the statistic is zero}"},
    {because::no_finite_value, "no_finite_value",
     "in {0} of {0} repeats the server reported no finite "
     "value"},
    {because::pairs_spread, "pairs_spread", "the pairs spread by {.2g%} %, more than the {.2g%} % "
     "believed of them"},
    {because::repeats_spread, "repeats_spread", "the repeats spread by {.3g%} %, far more than a "
     "quiet machine's {.3g%} %"},
    {because::over_calibration, "over_calibration", "the repeats spread by {.3g%} %, more than the "
     "calibration explains (at most {.3g%} %), so it does not count"},
    {because::thirds, "thirds", "in the first third {d}, in the last one {d} ({a run|runs} of "
     "{t})"},

    {because::nothing_measured, "nothing_measured", "nothing was measured"},
    {because::no_value, "no_value", "no measured request has a value of {n}"},
    {because::no_value_in, "no_value_in", "repeat {0} has no {ratio|value} of {n}"},
    {because::over_failures, "over_failures", "repeat {0}: {w} is {infinite|zero}, as {0} of {0} "
     "requests failed, so nothing is compared with it"},
    {because::over_nothing, "over_nothing", "repeat {0}: {w} is {infinite|zero}, so nothing is "
     "compared with it"},
    {because::not_played_out, "not_played_out", "sessions that were under way at its end were cut "
     "there: they are played out where the gate itself has an objective on session_time"},
    {because::stored_lacks, "stored_lacks", "the stored baseline has no finite value of "
     "{n} in each of its repeats"},
    {because::start_unknown, "start_unknown", "{n} is only known of a process that the gate "
     "starts"},
    {because::too_few_values, "too_few_values", "fewer than 40 requests have a value"},
    {because::no_finite_part, "no_finite_part", "{n} has no finite value in every part of repeat "
     "{0}"},
    {because::small_sample, "small_sample", "repeat {0}{ of the baseline|} measured {0} "
     "{w}{s}, {n} needs {0}{ so that three lie beyond it|}: {most requests failed, which is "
     "why|let it run longer}"},
    {because::small_for_drift, "small_for_drift", "a repeat measured {0} requests, {n} needs {0}: "
     "let it run longer"},
    {because::window_ends, "window_ends", "{.3g} answers ended in the steady window of a repeat, "
     "and {.3g} more were under way at its end than at its beginning, with which {n} may reach its "
     "limit: measure more requests, or warm up with as many as there are users"},

    {because::no_runs, "no_runs", "{w}"},
    {because::few_runs, "few_runs", "{0} run{s} of main; 3 make a baseline, 10 a good one"},
    {because::lone_repeats, "lone_repeats", "{0} run{s} of main with one repeat each do not say "
     "what repeats differ by: runs of two or more are needed, three are the default"},
    {because::lone_levels, "lone_levels", "each of {0} run{s} of main is a level of its own, and "
     "what runs differ by is not known: 3 of one level make a baseline"},
    {because::runs_lack, "runs_lack", "no run of the history has {n}"},
    {because::one_repeat, "one_repeat", "a verdict against runs takes two repeats"},
    {because::main_moved, "main_moved", "main itself was {.1f%} % {slower|faster} in its last "
     "{two runs|run} ({w})"},
    {because::outlying_runs, "outlying_runs", "{0} of {0} runs were as far off without a "
     "change: leave them out if that is mended, or compare live"},
    {because::given_spread, "given_spread", "under twice the {.2g%} % that runs were said to "
     "differ by"},
    {because::unknown_card, "unknown_card", "no run was measured on this card"},

    {because::client_without, "client_without", "{w} ({0} of {0} requests)"},
    {because::client_is_busy, "client_is_busy", "its busiest thread used {.0f%} % of a core; give "
     "it client.threads or a core of its own"},
    {because::client_off_rate, "client_off_rate", "sent {.4g} requests/s instead of {.4g}"},
    {because::read_together, "read_together", "it was late and read {.1f%} % of the events "
     "together"},
    {because::starts_read_together, "starts_read_together", "it was late and read the first "
     "tokens of {0} of {0} answers together"},
    {because::sent_late, "sent_late", "{.1f%} % of the requests of a repeat were sent over {t} "
     "late, so its load was not the one asked for"},
    {because::client_lost, "client_lost", "it lost {.1f%} % of the time of a repeat, and over 20 "
     "ms in that of {0} of {0} requests: where the kernel tells no times of arrival, they may be "
     "that late"},
    {because::client_in_probes, "client_in_probes", "it was late, and without that its probes "
     "could show otherwise"},

    {because::over_saturated, "over_saturated", "{baseline |}{w}over-saturated: requests in flight "
     "grew by {0} while {0} were sent, and ttft by {t}: the load is over the server's capacity"},
    {because::over_saturated_by_sessions, "over_saturated_by_sessions", "{baseline |}{w}"
     "over-saturated: sessions in flight grew by {0} while {0} were started, and the ttft of their "
     "steps by {t}: the load is over the server's capacity"},
    {because::no_such_turns, "no_such_turns", "no request was one that {m} is of"},
    {because::none_selected, "none_selected", "no measured request is one of {w}"},
    {because::label_failed, "label_failed", "none of the {0} requests of {w} succeeded"},
    {because::gaps_of_all, "gaps_of_all", "the gaps between events were too many to keep each one, "
     "so whose they are is not known: measure fewer requests"},
    {because::lacks_values, "lacks_values", "{c} have no {x}, which {m} needs"},
    {because::other_tokens, "other_tokens", "the arms' requests differ by over 5 % in their "
     "tokens, {.4g} of {a prompt|an answer} and with the baseline {.4g}: tokens per second are not "
     "compared"},
    {because::context_full, "context_full", "{c} brought fewer tokens than forced: {0} of these at "
     "least with the finish reason \"length\", and none had more than {0} tokens with its prompt: "
     "its context is full, or it has a limit of its own"},
    {because::stops_early, "stops_early", "{c} brought fewer tokens than forced: it does not heed "
     "ignore_eos, or stops by itself{ (no finish reason tells which)|}"},
    {because::stops_by_itself, "stops_by_itself", "{c} brought fewer tokens than forced: it does "
     "not heed ignore_eos, or stops by itself ({0} finish reasons are another than \"length\")"},
    {because::too_long, "too_long", "{c} report more tokens than forced: it does not heed the "
     "length, or its usage is wrong"},
    {because::filtered, "filtered", "{c} were cut off by a content filter: they are not the "
     "answers that were asked for"},
    {because::several_choices, "several_choices", "{c} brought several choices, one was asked for: "
     "their tokens share one stream"},
    {because::short_prompts, "short_prompts", "{c} report under 80 % of the prompt tokens that "
     "were asked for: it reads only a part of its prompts"},
    {because::equal_prompts, "equal_prompts", "{c} report {0} prompt tokens each, though what was "
     "sent has other lengths: it reads no more of a prompt"},
    {because::known_prompts, "known_prompts", "{.3g%} % of the prompt tokens came from its prefix "
     "cache, the workload shares at most {.3g%} %: the prompts were seen before"},
    {because::cached_over_prompt, "cached_over_prompt", "its usage has {0} cached tokens of {0} "
     "prompt tokens, which cannot be: it counts wrongly"},
    {because::no_usage, "no_usage", "{c} have no usage, and an event may bring several tokens or a "
     "part of one, so how many there were is not known; if each event is one token, say "
     "options.events_are_tokens"},
    {because::usage_over_length, "usage_over_length", "{c} have more tokens than were asked for at "
     "most: it counts wrongly, or does not heed max_tokens"},
    {because::usage_under_events, "usage_under_events", "{c} have fewer tokens in usage than their "
     "reasoning and their answer have events: it leaves some out"},
    {because::usage_over_content, "usage_over_content", "{c} have more tokens in usage than their "
     "text can be: it counts what it did not send, or wrongly"},
    {because::usage_may_hide, "usage_may_hide", "{c} have several tokens in usage for each event, "
     "of less than two bytes, or more reasoning than was streamed: some were never sent, and usage "
     "does not say how many; running usage would (stream_options.continuous_usage_stats in "
     "options.extra_body)"},
    {because::usage_over_prompt, "usage_over_prompt", "{c} have more prompt tokens in usage than "
     "what was sent can be: it counts wrongly"},
    {because::in_one_piece, "in_one_piece", "the stream does not stream: {0} of {0} answers came "
     "in one piece, 5 % may: the server or a proxy buffers them"},
    {because::in_a_burst, "in_a_lump", "the stream does not stream: {0} of {0} answers began with "
     "over 5 % of their tokens at once, 5 % may: the server or a proxy buffers them"},
    {because::comes_in_bursts, "comes_in_lumps", "the stream comes in lumps: {.1f%} % of the "
     "content events were read together with an earlier one, 5 % may: the server or a proxy "
     "buffers them"},
    {because::baseline_fails, "baseline_fails", "{0} of {0} requests failed ({w}), where {.3g%} % "
     "may"},
    {because::baseline_may_fail, "baseline_may_fail", "{0} of {0} requests failed ({w}), where "
     "{.3g%} % may, which so few do not show"},

    {because::metrics_reported, "metrics_reported", "{w} (repeat {0})"},
    {because::restarted_before, "restarted_before", "it restarted before repeat {0}, or another "
     "one answers at its address: the counters on its page began anew"},
    {because::restarted_in, "restarted_in", "it restarted in repeat {0}, or another one answers at "
     "its address: the counters on its page began anew"},
    {because::served_others, "served_others", "it served others too: in repeat {0} its page counts "
     "{0} finished requests, ours were {0}"},
    {because::others_requests, "others_requests", "its page counts {0} finished requests, ours "
     "were {0}: it is another server's, or that of one of several (repeat {0})"},
    {because::others_tokens, "others_tokens", "its page counts {0} generated tokens, ours were "
     "{0}: it is another server's, or that of one of several (repeat {0})"},
    {because::more_at_once, "more_at_once", "its page tells of {0} requests at once, of ours at "
     "most {0} were in flight: it counts some several times, or serves others (repeat {0})"},
    {because::queue_stood, "queue_stood", "the queue was never empty from {.0f} s on, with up to "
     "{0} waiting"},
    {because::cache_full, "cache_full", "KV cache at {.0f%} %"},
    {because::cache_preempts, "cache_preempts", "KV cache at {.0f%} %, {0} preemption{s}"},
    {because::preempted, "preempted", "{0} preemption{s}"},
    {because::clocks_lower, "clocks_lower", "the accelerators' clocks were {.0f%} % lower in "
     "repeat {0}"},

    {because::carries, "carries", nullptr},
    {because::not_monotone, "not_monotone", "not monotone: {v} is shown to be carried, and {v} to "
     "be too much"},
    {because::gave_up, "gave_up", "the client could not keep up twice in a row"},
    {because::several_loads, "several_loads", "the result is of several loads: only their capacity "
     "is judged"},
    {because::first_probe_failed, "first_probe_failed", "no request of the first probe succeeded"},
    {because::probe_too_short, "probe_too_short", "an answer took {t}, and {t} of load were too "
     "short for that"},

    {because::headroom_in_noise, "headroom_in_noise", "headroom of {.1f%} % under noise of {.1f%} "
     "% will often be inconclusive; {b} would seldom be"},
    {because::headroom_in_modes, "headroom_in_modes", "headroom of {.2g%} % is less than repeats "
     "that agree can show, and will often be inconclusive; {b} would seldom be"},
    {because::longer_run, "longer_run", "a run {.2g} times as long would mostly decide, and {b} "
     "would mostly pass as it is"},
    {because::longer_load, "longer_load", "let the load last {t} at least, with {0} {sessions|"
     "requests} at its rate, so that it can show whether the server keeps up"},
    {because::more_requests, "more_requests", "about {0} {w} in each repeat would mostly decide"},
    {because::limit_that_passes, "limit_that_passes", "{b} would pass"},
};
constexpr bool is_in_order(const cause_sentence* all, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        if (all[i].id != static_cast<because>(i)) return false;
    return all[n - 1].id == because::limit_that_passes;  // the last
}
static_assert(is_in_order(cause_sentences, std::size(cause_sentences)));

inline const cause_sentence& sentence_of(because b) {
    return cause_sentences[static_cast<std::size_t>(b)];
}

/// Returns a limit that the objective would meet in most runs.
inline std::string limit_to_write(const slo& s, double value) {
    const std::string side = s.at_most ? "<= " : ">= ";
    if (facts_of(s.statistic.metric).is_whole && s.factor == 0)
        return side +
               limit_text(s.statistic.metric, s.at_most ? std::ceil(value) : std::floor(value));
    // Two digits, three from 10 to 20, rounded to the side that is easier to meet.
    const double power = std::pow(10, std::floor(std::log10(value)));
    const double step = power / (value < 2 * power ? 100 : 10);
    const auto rounded = [&](double unit) {
        return (s.at_most ? std::ceil(value / unit) : std::floor(value / unit)) * unit;
    };
    return side + (s.factor > 0 ? filled("{.2f} * baseline", {rounded(0.01)})
                                : limit_text(s.statistic.metric, rounded(step)));
}

/// Fills the numbers of a cause into its sentence.
class sentence_places {
public:
    sentence_places(const cause& c, const verdict_numbers& of) : cause_(c), of_(of) {}
    std::string shown(std::string_view place) {
        const std::size_t bar = place.find('|');
        if (bar != place.npos)
            return std::string(next() != 0 ? place.substr(0, bar) : place.substr(bar + 1));
        const statistic_data& what = of_.objective.statistic;
        switch (place.front()) {
        case 'w': return cause_.text;
        case 'n': return str(what.name);
        case 'l': return limit_text(what.metric, of_.limit);
        case 's': return reported_ == 1 ? "" : "s";
        case 't': return time_text(next());
        case 'v': return value_text(what.metric, next());
        case 'd': return value_text(what.of, next());
        case 'm': return facts_of(static_cast<metric_id>(next())).name;
        case 'x': return needs_text(facts_of(static_cast<metric_id>(next())).needs);
        case 'o': return to_string(static_cast<verdict>(next()));
        case 'b': return limit_to_write(of_.objective, next());
        case '0': return printed("%.0f", reported_ = next());
        case 'c': {
            const double n = next();
            return filled("{.0f} of {.0f} completed requests", {n, next()});
        }
        default: break;
        }
        return digits_of(place.substr(1), next());
    }

private:
    double next() { return at_ < cause_.numbers.size() ? cause_.numbers[at_++] : not_a_number; }
    const cause& cause_;
    const verdict_numbers& of_;
    std::size_t at_ = 0;
    double reported_ = 0;
};

inline const char* to_string(whose w) {
    return name_at({"", "client", "plan", "server", "baseline_server", "baseline"}, w);
}
inline std::string prefix_of(whose w) {
    return filled("[{}: ]", {name_at({"", "client", "the plan", "server", "baseline server",
                                      "baseline"}, w)});
}
inline std::string name_of(verdict_unit u) {
    return u == verdict_unit::none ? "repeat" : to_string(u);
}
/// Returns a value in an objective's unit, a ratio if the limit is relative to a baseline.
inline std::string verdict_value_text(const verdict_numbers& v, double x) {
    return v.objective.factor > 0 && std::isfinite(x) ? printed("%.3f x", x)
                                                 : value_text(v.objective.statistic.metric, x);
}

/// "all repeats together: 305 ms, over the limit; the typical repeat: 292 ms".
inline std::string all_together_text(const cause& c, const verdict_numbers& of) {
    const double all = c.numbers[0], other = c.numbers[1], first = c.numbers[2];
    const bool is_over = all > of.limit, is_met = of.objective.at_most ? !is_over : all >= of.limit;
    const char* side = is_met ? "within" : is_over ? "over" : "under";
    if (std::isnan(first))
        return filled("all repeats together: {}, {} the limit; before: {}",
                      {verdict_value_text(of, all), side, verdict_value_text(of, other)});
    return filled(
        "all repeats together: {}, {} the limit; the [{?}typical ][{?}first ][{?}{.0f} ]{}"
        "{s|}: {}",
        {verdict_value_text(of, all), side, first == 0, first > 0, first > 1, first,
         name_of(of.counted_in), first > 1, verdict_value_text(of, other)});
}

/// "41 wrong: 9 cut off, 6 unreadable, 2 failed".
inline std::string wrong_answers_text(const cause& c) {
    std::string kinds;
    const char* const names[] = {"cut off", "unreadable", "failed"};
    for (std::size_t i = 0; i < 3; ++i)
        if (c.numbers[i + 1] > 0) fill(kinds, "{,}{.0f} {}", {c.numbers[i + 1], names[i]});
    return filled("{.0f} wrong[: {}]", {c.numbers[0], kinds});
}

/// "14 of 180 answers differ, the first difference after 37 characters (median), 3.1 differences
/// per 1000 tokens; the server's own repeats agree on 96.1 %".
inline std::string answers_differ_text(const cause& c, const verdict_numbers& of) {
    const auto& n = c.numbers;
    const double failed = n[2], own = n[3], with_place = n[4], without_place = n[7];
    const bool is_open = of.outcome == verdict::fail || of.outcome == verdict::inconclusive;
    return filled("{.0f} of {.0f} answers differ[ ({.0f} failed)][{?}, the first difference after "
                  "{.0f} characters (median), {.3g} differences per 1000 tokens][, of {.0f} the "
                  "place is not known: their texts were too many to keep][{?}; the server's own "
                  "repeats agree on {.3g%} %]{, and no limit above that can be met|}",
                  {n[0], n[1], failed, with_place, n[5], n[6], without_place, !std::isnan(own), own,
                   is_open && of.limit > own});
}

/// "carries at least 11.4 req/s and less than 12.6 req/s".
inline std::string carries_text(const cause& c, const verdict_numbers& of) {
    const double low = c.numbers[0], high = c.numbers[1];
    const metric_id unit = of.objective.statistic.metric;
    const bool has_low = low > 0, has_high = high < infinity;
    if (!has_low && !has_high) return "no load is shown to be carried, and none to be too much";
    return filled("carries [{?}at least {}][{?} and ][{?}less than {}]",
                  {has_low, {unit, low}, has_low && has_high, has_high, {unit, high}});
}

/// Returns a sentence without its full stop, "" without a cause. `of` is the verdict it explains.
inline std::string described(const cause& c, const verdict_numbers& of = {}) {
    std::string out = prefix_of(c.of);
    if (c.what == because::all_together) return out + all_together_text(c, of);
    if (c.what == because::wrong_answers) return out + wrong_answers_text(c);
    if (c.what == because::answers_differ) return out + answers_differ_text(c, of);
    if (c.what == because::carries) return out + carries_text(c, of);
    sentence_places places(c, of);
    std::string_view says = sentence_of(c.what).says;
    while (!says.empty()) {
        const std::size_t open = std::min(says.find('{'), says.size());
        out += says.substr(0, open);
        says.remove_prefix(open);
        if (says.empty()) break;
        const std::size_t close = says.find('}');
        out += places.shown(says.substr(1, close - 1));
        says.remove_prefix(close + 1);
    }
    return out;
}
inline std::string described(const vector<cause>& why, const verdict_numbers& of) {
    std::string out;
    for (const cause& c : why) fill(out, "{;}{}", {described(c, of)});
    return out;
}
/// The same for an objective that may have no verdict yet.
inline std::string described(const cause& c, const slo& s) {
    verdict_numbers of;
    of.objective = s;
    return described(c, of);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
