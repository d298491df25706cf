// a sentence for each cause
// It has places (core/metric/filled.hpp) for the cause's numbers (core/judging/cause.hpp) and for
// `derived_values`. A name that neither has does not compile.
#pragma once

#include "core/judging/cause.hpp"

#include <cstddef>  // size_t
#include <iterator>  // size

namespace llmbench {
inline namespace v1 {
namespace detail {

struct cause_sentence {
    because id;
    const char* name;     // in result.json
    const char* says;
};
inline constexpr cause_sentence cause_sentences[] = {
    {because::nothing, "nothing", ""},
    {because::reported, "reported", "{words}"},
    {because::stopped, "stopped", "{words}"},
    {because::ended_early, "ended_early", "{repeats:0} repeat{repeats:s} ended early, the last one "
     "after {sent:0} of {planned:0} requests: {statistic} could not come back "
     "{at_most?under|over} {least_value}[{is_open?}, which rules out a pass]"},
    {because::all_ended_early, "all_ended_early", "all repeats ended early, by another objective"},
    {because::unsupported, "unsupported", "{words}"},
    {because::server_gone, "server_gone", "{words}"},
    {because::interrupted, "interrupted", "the run was interrupted"},
    {because::no_requests, "no_requests", "no request was measured"},
    {because::none_succeeded, "none_succeeded", "none of {requests:0} requests succeeded "
     "({words})"},
    {because::no_baseline, "no_baseline", "there is no baseline"},
    {because::task_failed, "task_failed", "its load was another one, as a side task failed in "
     "repeat {repeat:0}: {words}"},
    {because::task_idle, "task_idle", "its load was another one, as the side task \"{words}\" did "
     "nothing in repeat {repeat:0}: let it begin earlier, or measure for longer"},
    {because::undisturbed, "undisturbed", "nothing was disturbed in {undisturbed:0} of {repeats:0} "
     "repeats, so that there was nothing to recover from: does the side task do what it is to do?"},

    {because::too_close, "too_close", "too close to call"},
    {because::too_few_to_fail, "too_few_to_fail", "two repeats are too few to fail"},
    {because::all_together, "all_together", "all repeats together: {all_side}; {before}"},
    {because::cut_off, "cut_off", "requests were cut off as their run ended: with these as "
     "failures the verdict is {with_them}, without them {without_them}; let a run end by a number "
     "of requests"},
    {because::sessions_cut_off, "sessions_cut_off", "{requests:0} request{requests:s} of sessions "
     "had not ended when the client gave them up ({words}): with these as failures the verdict is "
     "{with_them}, without them {without_them}; give limits.drain the time that a session takes"},
    {because::cached, "cached", "{cached:.3g%} % of the prompt tokens came from the server's "
     "prefix cache"},
    {because::cached_in_both, "cached_in_both", "{cached:.3g%} % of the prompt tokens came from "
     "the server's prefix cache, with the baseline {baseline:.3g%} %"},
    {because::untold_history, "untold_history", "the server reports no prompt tokens, which would "
     "show whether it kept the history"},
    {because::failed, "failed", "{failed:0} of {of:0} failed, limit {limit}"},
    {because::failed_over, "failed_over", "{failed:0} of {of:0} failed, over the limit of {limit}, "
     "not shown to be more than {is_one_burst?one burst|chance}"},
    {because::failed_in_burst, "failed_in_burst", "{failed:0} of {of:0} failed, within the limit "
     "of {limit}, but {burst:0} of {burst_of:0} failed in repeat {repeat:0}: more than chance"},
    {because::failed_within, "failed_within", "{failed:0} of {of:0} failed, limit {limit}: within "
     "it as observed, not shown"},
    {because::failed_or_beyond, "failed_or_beyond", "{failed:0} of {of:0} requests failed or lie "
     "beyond the limit, {allowed:.3g%} % may"},
    {because::failed_in_tail, "failed_in_tail", "{failed:0} of {of:0} failed, up to {most:.2g%} % "
     "may, and {words} leaves {allowed:.3g%} % beyond it"},
    {because::wrong_answers, "wrong_answers", "{wrong:0} wrong[: {kinds}]"},
    {because::answers_differ, "answers_differ", "{differ:0} of {of:0} answers differ[ ({failed:0} "
     "failed)][{with_place?}, the first difference after {place:0} characters (median), "
     "{per_1000:.3g} differences per 1000 tokens][, of {without_place:0} the place is not known: "
     "their texts were too many to keep][{own_is_known?}; the server's own repeats agree on "
     "{own:.3g%} %]{no_limit}"},
    {because::below_client, "below_client", "the client can tell differences from {least:t} on in "
     "this run, and the limit is smaller"},
    {because::no_size, "no_size", "{unbounded:0} of {repeats:0} repeats have {at_most?so many "
     "failures that the statistic is infinite|too few good answers in the steady window, so that "
     "the statistic is zero}"},
    {because::no_finite_value, "no_finite_value", "in {unbounded:0} of {repeats:0} repeats the "
     "server reported no finite value"},
    {because::pairs_spread, "pairs_spread", "the pairs spread by {spread:.2g%} %, more than the "
     "{believed:.2g%} % believed of them"},
    {because::lasting_luck, "lasting_luck", "the pairs agree within {spread:.2g%} %, but two "
     "processes of one build may differ by luck while they run: let the gate start them again for "
     "each pair (.restart_between_repeats)"},
    {because::repeats_spread, "repeats_spread", "the repeats spread by {spread:.3g%} %, far more "
     "than a quiet machine's {quiet:.3g%} %"},
    {because::over_calibration, "over_calibration", "the repeats spread by {spread:.3g%} %, more "
     "than the calibration explains (at most {calibrated:.3g%} %), so it does not count"},
    {because::thirds, "thirds", "in the first third {first_third}, in the last one {last_third} "
     "({a_run} of {seconds:t})"},

    {because::nothing_measured, "nothing_measured", "nothing was measured"},
    {because::no_value, "no_value", "no measured request has a value of {statistic}"},
    {because::no_value_in, "no_value_in", "repeat {repeat:0} has no {is_ratio?ratio|value} of "
     "{statistic}"},
    {because::over_failures, "over_failures", "repeat {repeat:0}: {words} is "
     "{is_infinite?infinite|zero}, as {failed:0} of {of:0} requests failed, so nothing is compared "
     "with it"},
    {because::over_nothing, "over_nothing", "repeat {repeat:0}: {words} is "
     "{is_infinite?infinite|zero}, so nothing is compared with it"},
    {because::not_played_out, "not_played_out", "sessions that were under way at its end were cut "
     "there: they are played out where the gate itself has an objective on session_time"},
    {because::stored_lacks, "stored_lacks", "the stored baseline has no finite value of "
     "{statistic} in each of its repeats"},
    {because::start_unknown, "start_unknown", "{statistic} is only known of a process that the "
     "gate starts"},
    {because::too_few_values, "too_few_values", "fewer than 40 requests have a value"},
    {because::no_finite_part, "no_finite_part", "{statistic} has no finite value in every part of "
     "repeat {repeat:0}"},
    {because::small_sample, "small_sample", "repeat {repeat:0}{is_baseline? of the baseline} "
     "measured {measured:0} {words}{measured:s}, {statistic} needs {needed:0}{is_tail? so that "
     "three lie beyond it}: {mostly_failed?most requests failed, which is why|let it run longer}"},
    {because::small_for_drift, "small_for_drift", "a repeat measured {measured:0} requests, "
     "{statistic} needs {needed:0}: let it run longer"},
    {because::few_slices, "few_slices", "both servers were measured at once for {window:t}: with "
     "answers of this length their slices need {needed:t}, let it run longer"},
    {because::window_ends, "window_ends", "{ended:.3g} answers ended in the steady window of a "
     "repeat, and {more:.3g} more were under way at its end than at its beginning, with which "
     "{statistic} may reach its limit: measure more requests, or warm up with as many as there are "
     "users"},

    {because::no_runs, "no_runs", "{words}"},
    {because::few_runs, "few_runs", "{runs:0} run{runs:s} of main; 3 make a baseline, 10 a good "
     "one"},
    {because::lone_repeats, "lone_repeats", "{runs:0} run{runs:s} of main with one repeat each do "
     "not say what repeats differ by: runs of two or more are needed, three are the default"},
    {because::lone_levels, "lone_levels", "each of {runs:0} run{runs:s} of main is a level of its "
     "own, and what runs differ by is not known: 3 of one level make a baseline"},
    {because::runs_lack, "runs_lack", "no run of the history has {statistic}"},
    {because::one_repeat, "one_repeat", "a verdict against runs takes two repeats"},
    {because::main_moved, "main_moved", "main itself was {moved:.1f%} % {is_slower?slower|faster} "
     "in its last {in_two?two runs|run} ({words})"},
    {because::outlying_runs, "outlying_runs", "{outlying:0} of {runs:0} runs were as far off "
     "without a change: leave them out if that is mended, or compare live"},
    {because::given_spread, "given_spread", "under twice the {spread:.2g%} % that runs were said "
     "to differ by"},
    {because::unknown_card, "unknown_card", "no run was measured on this card"},

    {because::client_without, "client_without", "{words} ({lacking:0} of {requests:0} requests)"},
    {because::client_is_busy, "client_is_busy", "its busiest thread used {cpu:.0f%} % of a core; "
     "give it client.threads or a core of its own"},
    {because::client_off_rate, "client_off_rate", "sent {sent:.4g} requests/s instead of "
     "{asked:.4g}"},
    {because::read_together, "read_together", "it was late and read {events:.1f%} % of the events "
     "together"},
    {because::starts_read_together, "starts_read_together", "it was late and read the first tokens "
     "of {starts:0} of {answers:0} answers together"},
    {because::sent_late, "sent_late", "{late:.1f%} % of the requests of a repeat were sent over "
     "{after:t} late, so its load was not the one asked for"},
    {because::client_lost, "client_lost", "it lost {lost:.1f%} % of the time of a repeat, and over "
     "20 ms in that of {disturbed:0} of {requests:0} requests: where the kernel tells no times of "
     "arrival, they may be that late"},
    {because::client_in_probes, "client_in_probes", "it was late, and without that its probes "
     "could show otherwise"},

    {because::over_saturated, "over_saturated", "{is_baseline?baseline }{words}over-saturated: "
     "requests in flight grew by {grown:0} while {sent:0} were sent, and ttft by {slower:t}: the "
     "load is over the server's capacity"},
    {because::over_saturated_by_sessions, "over_saturated_by_sessions", "{is_baseline?baseline "
     "}{words}over-saturated: sessions in flight grew by {grown:0} while {sent:0} were started, "
     "and the ttft of their steps by {slower:t}: the load is over the server's capacity"},
    {because::no_such_turns, "no_such_turns", "no request was one that {metric_name} is of"},
    {because::none_selected, "none_selected", "no measured request is one of {words}"},
    {because::label_failed, "label_failed", "none of the {requests:0} requests of {words} "
     "succeeded"},
    {because::gaps_of_all, "gaps_of_all", "the gaps between events were too many to keep each one, "
     "so whose they are is not known: measure fewer requests"},
    {because::lacks_values, "lacks_values", "{some_completed} have no {needed_values}, which "
     "{metric_name} needs"},
    {because::other_tokens, "other_tokens", "the arms' requests differ by over 5 % in their "
     "tokens, {tokens:.4g} of {is_prompt?a prompt|an answer} and with the baseline {baseline:.4g}: "
     "tokens per second are not compared"},
    {because::context_full, "context_full", "{some_completed} brought fewer tokens than forced: "
     "{at_length:0} of these at least with the finish reason \"length\", and none had more than "
     "{most:0} tokens with its prompt: its context is full, or it has a limit of its own"},
    {because::stops_early, "stops_early", "{some_completed} brought fewer tokens than forced: it "
     "does not heed ignore_eos, or stops by itself{without_reason? (no finish reason tells "
     "which)}"},
    {because::stops_by_itself, "stops_by_itself", "{some_completed} brought fewer tokens than "
     "forced: it does not heed ignore_eos, or stops by itself ({by_themselves:0} finish reasons "
     "are another than \"length\")"},
    {because::too_long, "too_long", "{some_completed} report more tokens than forced: it does not "
     "heed the length, or its usage is wrong"},
    {because::filtered, "filtered", "{some_completed} were cut off by a content filter: they are "
     "not the answers that were asked for"},
    {because::several_choices, "several_choices", "{some_completed} brought several choices, one "
     "was asked for: their tokens share one stream"},
    {because::short_prompts, "short_prompts", "{some_completed} report under 80 % of the prompt "
     "tokens that were asked for: it reads only a part of its prompts"},
    {because::equal_prompts, "equal_prompts", "{some_completed} report {tokens:0} prompt tokens "
     "each, though what was sent has other lengths: it reads no more of a prompt"},
    {because::no_history, "no_history", "{turns:0} of {of:0} turns that go on from a response have "
     "no more prompt tokens than the turn before: it ignores the history, loses or cuts it, or its "
     "usage leaves it out"},
    {because::known_prompts, "known_prompts", "{cached:.3g%} % of the prompt tokens came from its "
     "prefix cache, the workload shares at most {shared:.3g%} %: the prompts were seen before"},
    {because::cached_over_prompt, "cached_over_prompt", "its usage has {cached:0} cached tokens of "
     "{prompt:0} prompt tokens, which cannot be: it counts wrongly"},
    {because::no_usage, "no_usage", "{some_completed} have no usage, and an event may bring "
     "several tokens or a part of one, so how many there were is not known; if each event is one "
     "token, say options.events_are_tokens"},
    {because::usage_over_length, "usage_over_length", "{some_completed} have more tokens than were "
     "asked for at most: it counts wrongly, or does not heed max_tokens"},
    {because::usage_under_events, "usage_under_events", "{some_completed} have fewer tokens in "
     "usage than their reasoning and their answer have events: it leaves some out"},
    {because::usage_over_content, "usage_over_content", "{some_completed} have more tokens in "
     "usage than their text can be: it counts what it did not send, or wrongly"},
    {because::usage_may_hide, "usage_may_hide", "{some_completed} have several tokens in usage for "
     "each event, of less than two bytes, or more reasoning than was streamed: some were never "
     "sent, and usage does not say how many; running usage would "
     "(stream_options.continuous_usage_stats in options.extra_body)"},
    {because::usage_over_prompt, "usage_over_prompt", "{some_completed} have more prompt tokens in "
     "usage than what was sent can be: it counts wrongly"},
    {because::in_one_piece, "in_one_piece", "the stream does not stream: {answers:0} of {of:0} "
     "answers came in one piece, 5 % may: the server or a proxy buffers them"},
    {because::in_a_burst, "in_a_lump", "the stream does not stream: {answers:0} of {of:0} answers "
     "began with over 5 % of their tokens at once, 5 % may: the server or a proxy buffers them"},
    {because::comes_in_bursts, "comes_in_lumps", "the stream comes in lumps: {events:.1f%} % of "
     "the content events were read together with an earlier one, 5 % may: the server or a proxy "
     "buffers them"},
    {because::baseline_fails, "baseline_fails", "{failed:0} of {of:0} requests failed ({words}), "
     "where {allowed:.3g%} % may"},
    {because::baseline_may_fail, "baseline_may_fail", "{failed:0} of {of:0} requests failed "
     "({words}), where {allowed:.3g%} % may, which so few do not show"},

    {because::metrics_reported, "metrics_reported", "{words} (repeat {repeat:0})"},
    {because::restarted_before, "restarted_before", "it restarted before repeat {repeat:0}, or "
     "another one answers at its address: the counters on its page began anew"},
    {because::restarted_in, "restarted_in", "it restarted in repeat {repeat:0}, or another one "
     "answers at its address: the counters on its page began anew"},
    {because::served_others, "served_others", "it served others too: in repeat {repeat:0} its page "
     "counts {reported:0} finished requests, ours were {ours:0}"},
    {because::others_requests, "others_requests", "its page counts {reported:0} finished requests, "
     "ours were {ours:0}: it is another server's, or that of one of several (repeat {repeat:0})"},
    {because::others_tokens, "others_tokens", "its page counts {reported:0} generated tokens, ours "
     "were {ours:0}: it is another server's, or that of one of several (repeat {repeat:0})"},
    {because::more_at_once, "more_at_once", "its page tells of {reported:0} requests at once, of "
     "ours at most {ours:0} were in flight: it counts some several times, or serves others (repeat "
     "{repeat:0})"},
    {because::queue_stood, "queue_stood", "the queue was never empty from {from:.0f} s on, with up "
     "to {most:0} waiting"},
    {because::cache_full, "cache_full", "KV cache at {usage:.0f%} %"},
    {because::cache_preempts, "cache_preempts", "KV cache at {usage:.0f%} %, {preemptions:0} "
     "preemption{preemptions:s}"},
    {because::preempted, "preempted", "{preemptions:0} preemption{preemptions:s}"},
    {because::clocks_lower, "clocks_lower", "the accelerators' clocks were {lower:.0f%} % lower in "
     "repeat {repeat:0}"},

    {because::carries, "carries", "{carried}"},
    {because::not_monotone, "not_monotone", "not monotone: {carried_load} is shown to be carried, "
     "and {too_much} to be too much"},
    {because::gave_up, "gave_up", "the client could not keep up twice in a row"},
    {because::several_loads, "several_loads", "the result is of several loads: only their capacity "
     "is judged"},
    {because::first_probe_failed, "first_probe_failed", "no request of the first probe succeeded"},
    {because::probe_too_short, "probe_too_short", "an answer took {answer:t}, and {load:t} of load "
     "were too short for that"},

    {because::headroom_in_noise, "headroom_in_noise", "headroom of {headroom:.1f%} % under noise "
     "of {noise:.1f%} % will often be inconclusive; {better_limit} would seldom be"},
    {because::headroom_in_modes, "headroom_in_modes", "headroom of {headroom:.2g%} % is less than "
     "repeats that agree can show, and will often be inconclusive; {better_limit} would seldom be"},
    {because::longer_run, "longer_run", "a run {times:.2g} times as long would mostly decide, and "
     "{better_limit} would mostly pass as it is"},
    {because::longer_load, "longer_load", "let the load last {seconds:t} at least, with {starts:0} "
     "{of_sessions?sessions|requests} at its rate, so that it can show whether the server keeps "
     "up"},
    {because::more_requests, "more_requests", "about {requests:0} {words} in each repeat would "
     "mostly decide"},
    {because::limit_that_passes, "limit_that_passes", "{better_limit} would pass"},
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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
