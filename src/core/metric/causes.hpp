// the table of causes: why a verdict is as it is, in numbers and in words
#pragma once

#include "core/base/text.hpp"

#include <array>
#include <cstddef>  // size_t
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The causes of decisions.
enum class because : unsigned char {
    nothing,
    reported,   // a text from outside
    work,       // a text of the extension of that name
    stopped,
    unsupported, server_gone, interrupted, no_requests, none_succeeded, no_baseline,
    task_failed, task_idle, undisturbed,  // side tasks
    // the numbers
    too_close, too_few_to_fail, all_together, cut_off, holds_anyway, cached, some_from_cache,
    answers_alike, untold_history, failed, failed_over, failed_in_burst, failed_or_beyond,
    failed_in_tail, failed_too_often, few_pairs, wrong_answers, answers_differ, below_client,
    no_size, no_finite_value, pairs_spread, lasting_luck, repeats_spread, not_as_calibrated,
    thirds,
    // missing values
    nothing_measured, no_value, no_value_in, over_nothing, not_played_out, stored_lacks,
    start_unknown, too_few_values, no_finite_part, small_sample, few_slices, window_ends,
    // baseline runs
    no_runs, few_runs, lone_repeats, lone_levels, runs_lack, one_repeat, main_moved,
    outlying_runs, given_spread, unknown_card, other_machine, machine_explains,
    // the client
    client_without, client_is_busy, client_off_rate, read_together, starts_read_together,
    sent_late, client_lost, client_in_probes,
    // the server's answers
    over_saturated, none_selected, label_failed, gaps_of_all, lacks_values, other_tokens,
    several_models, from_cache, context_full, stops_early, cut_short, too_long, filtered,
    short_prompts, equal_prompts, no_history, known_prompts, cached_over_prompt, cached_on_page,
    no_usage, alike_alone, share_machine, wrong_usage, usage_may_hide, usage_over_prompt,
    in_a_burst, in_large_events, comes_in_bursts, untold_end, baseline_fails, baseline_may_fail,
    // the server's page
    metrics_reported, restarted, served_others, others_requests, more_at_once,
    queue_stood, cache_full, clocks_lower,
    // loads
    carries, not_monotone, gave_up, several_loads, first_probe_failed, probe_too_short,
    // what would be decided more often
    headroom_in_noise, longer_load, more_requests, limit_that_passes,
};

/// A sentence has places (core/metric/filled.hpp) for the cause's numbers and for `derived_values`
/// (core/described/causes.hpp). It does not compile with a name that neither has. Numbers have
/// their order in result.json.
struct cause_row {
    because id;
    const char* name;  // in result.json
    std::string_view numbers, says;
    /// Returns the place of a number, or how many there are.
    constexpr std::size_t place_of(std::string_view number) const {
        std::size_t place = 0;
        for (std::string_view left = numbers; !left.empty(); ++place)
            if (taken_part(left, ",") == number) break;
        return place;
    }
    constexpr std::size_t count() const { return place_of(""); }
};
inline constexpr auto cause_table = [] {
    using enum because;
    return std::to_array<cause_row>({
        {nothing, "nothing", "", ""},
        {reported, "reported", "", "{words}"},
        {work, "work", "", "{words}"},
        {stopped, "stopped", "", "{words}"},
        {unsupported, "unsupported", "", "{words}"},
        {server_gone, "server_gone", "", "{words}"},
        {interrupted, "interrupted", "", "the run was interrupted"},
        {no_requests, "no_requests", "", "no request was measured"},
        {none_succeeded, "none_succeeded", "requests", "none of {requests:0} requests succeeded "
         "({words})"},
        {no_baseline, "no_baseline", "", "there is no baseline"},
        {task_failed, "task_failed", "repeat", "its load was another one, as a side task failed "
         "in repeat {repeat:0}: {words}"},
        {task_idle, "task_idle", "repeat", "its load was another one, as the side task "
         "\"{words}\" did nothing in repeat {repeat:0}: let it begin earlier, or measure for "
         "longer"},
        {undisturbed, "undisturbed", "undisturbed,repeats", "nothing was disturbed in "
         "{undisturbed:0} of {repeats:0} repeats, so that there was nothing to recover from: "
         "does the side task do what it is to do?"},

        {too_close, "too_close", "", "too close to call"},
        {too_few_to_fail, "too_few_to_fail", "", "two repeats are too few to fail"},
        {all_together, "all_together", "all,other,first", "all repeats together: {all_side}; "
         "{before}"},
        {cut_off, "cut_off", "requests", "{requests:0} request{requests:s} had not ended when "
         "their run did ({words}), and the verdict depends on them: let a run end by a number of "
         "requests; give limits.drain the time that a session takes"},
        {holds_anyway, "holds_anyway", "answers,of,is_pass,is_counted", "{answers:0} of {of:0} "
         "answers brought tokens together: it {is_pass?passes even if these took all the time "
         "since the send|fails even if the last ones came a pause earlier}"
         "{is_counted?, which is counted here}"},
        {cached, "cached", "cached,compares,baseline", "{cached:.3g%} % of the prompt tokens "
         "came from the server's prefix cache[{compares?}, with the baseline {baseline:.3g%} %]"},
        {some_from_cache, "some_from_cache", "requests,completed", "{some_completed} came from a "
         "cache of answers, by their headers"},
        {answers_alike, "answers_alike", "requests,completed", "{some_completed} begin with one "
         "text, whatever was asked: a broken model can be fast, which accuracy or same_answers "
         "shows"},
        {untold_history, "untold_history", "", "the server reports no prompt tokens, which would "
         "show whether it kept the history"},
        {failed, "failed", "failed,of,is_open", "{failed:0} of {of:0} failed, limit {limit}"
         "{is_open?: within it as observed, not shown}"},
        {failed_over, "failed_over", "failed,of,is_one_burst", "{failed:0} of {of:0} failed, "
         "over the limit of {limit}, not shown to be more than {is_one_burst?one burst|chance}"},
        {failed_in_burst, "failed_in_burst", "failed,of,burst,burst_of,repeat", "{failed:0} of "
         "{of:0} failed, within the limit of {limit}, but {burst:0} of {burst_of:0} failed in "
         "repeat {repeat:0}: more than chance"},
        {failed_or_beyond, "failed_or_beyond", "failed,of,allowed", "{failed:0} of {of:0} "
         "requests failed or lie beyond the limit, {allowed:.3g%} % may"},
        {failed_in_tail, "failed_in_tail", "failed,of,most,allowed", "{failed:0} of {of:0} "
         "failed, up to {most:.2g%} % may, and {words} leaves {allowed:.3g%} % beyond it"},
        {failed_too_often, "failed_too_often", "failed,of", "{failed:0} of {of:0} failed, in too "
         "few bursts to tell at which rate, and too many for a verdict without it: measure for "
         "longer, or more repeats"},
        {few_pairs, "few_pairs", "pairs,needed", "{pairs:0} pair{pairs:s} hardly know their own "
         "spread, {needed:0} do"},
        {wrong_answers, "wrong_answers", "wrong,cut_off,unreadable,failed", "{wrong:0} wrong[: "
         "{kinds}]"},
        {answers_differ, "answers_differ", "differ,of,failed,own,with_place,place,"
         "per_1000,without_place",
         "{differ:0} of {of:0} answers differ[ ({failed:0} failed)][{with_place?}, the first "
         "difference after {place:0} characters (median), {per_1000:.3g} differences per 1000 "
         "tokens][, of {without_place:0} the place is not known: their texts were too many to "
         "keep][{own_is_known?}; the server's own repeats agree on {own:.3g%} %]{no_limit}"},
        {below_client, "below_client", "least", "the client can tell differences from {least:t} "
         "on in this run, and the limit is smaller"},
        {no_size, "no_size", "unbounded,repeats,at_most", "{unbounded:0} of {repeats:0} repeats "
         "have {at_most?so many failures that the statistic is infinite|too few good answers in "
         "the steady window, so that the statistic is zero}"},
        {no_finite_value, "no_finite_value", "unbounded,repeats,at_most", "in {unbounded:0} of "
         "{repeats:0} repeats the server reported no finite value"},
        {pairs_spread, "pairs_spread", "spread,believed", "the pairs spread by {spread:.2g%} %, "
         "more than the {believed:.2g%} % believed of them"},
        {lasting_luck, "lasting_luck", "spread", "the pairs agree within {spread:.2g%} %, but "
         "two processes of one build may differ by luck while they run: let the gate start them "
         "again for each pair (.restart_between_repeats)"},
        {repeats_spread, "repeats_spread", "spread,quiet", "the repeats spread by {spread:.3g%} "
         "%, far more than a quiet machine's {quiet:.3g%} %"},
        {not_as_calibrated, "not_as_calibrated", "spread,calibrated,is_more", "the repeats spread "
         "by {spread:.3g%} %, {is_more?more than the calibration explains (at most|far less than "
         "the calibration says (up to} {calibrated:.3g%} %), so it does not count"},
        {thirds, "thirds", "first,last,repeats,seconds", "in the first third {first_third}, in "
         "the last one {last_third} ({a_run} of {seconds:t})"},

        {nothing_measured, "nothing_measured", "", "nothing was measured"},
        {no_value, "no_value", "", "no measured request has a value of {statistic}"},
        {no_value_in, "no_value_in", "repeat,is_ratio", "repeat {repeat:0} has no "
         "{is_ratio?ratio|value} of {statistic}"},
        {over_nothing, "over_nothing", "repeat,is_infinite,failed,of", "repeat {repeat:0}: "
         "{words} is {is_infinite?infinite|zero}[{failed?}, as {failed:0} of {of:0} requests "
         "failed], so nothing is compared with it"},
        {not_played_out, "not_played_out", "", "sessions that were under way at its end were cut "
         "there: they are played out where the gate itself has an objective on session_time"},
        {stored_lacks, "stored_lacks", "", "the stored baseline has no finite value of "
         "{statistic} in each of its repeats"},
        {start_unknown, "start_unknown", "", "{statistic} is only known of a process that the "
         "gate starts"},
        {too_few_values, "too_few_values", "", "fewer than 40 requests have a value"},
        {no_finite_part, "no_finite_part", "repeat", "{statistic} has no finite value in every "
         "part of repeat {repeat:0}"},
        {small_sample, "small_sample", "repeat,is_baseline,measured,needed,is_tail,mostly_failed",
         "repeat {repeat:0}{is_baseline? of the baseline} measured {measured:0} "
         "{words}{measured:s}, {statistic} needs {needed:0}{is_tail? so that three lie beyond "
         "it}: {mostly_failed?most requests failed, which is why|let it run longer}"},
        {few_slices, "few_slices", "window,needed", "both servers were measured at once for "
         "{window:t}: with answers of this length their slices need {needed:t}, let it run longer"},
        {window_ends, "window_ends", "ended,more", "{ended:.3g} answers ended in the steady "
         "window of a repeat, and {more:.3g} more were under way at its end than at its "
         "beginning, with which {statistic} may reach its limit: measure more requests, or warm "
         "up with as many as there are users"},

        {no_runs, "no_runs", "", "{words}"},
        {few_runs, "few_runs", "runs", "{runs:0} run{runs:s} of main; 3 make a baseline, 10 a "
         "good one"},
        {lone_repeats, "lone_repeats", "runs", "{runs:0} run{runs:s} of main with one repeat "
         "each do not say what repeats differ by: runs of two or more are needed, three are the "
         "default"},
        {lone_levels, "lone_levels", "runs", "each of {runs:0} run{runs:s} of main is a level of "
         "its own, and what runs differ by is not known: 3 of one level make a baseline"},
        {runs_lack, "runs_lack", "", "no run of the history has {statistic}"},
        {one_repeat, "one_repeat", "", "a verdict against runs takes two repeats"},
        {main_moved, "main_moved", "moved,is_slower,in_two", "main itself was {moved:.1f%} % "
         "{is_slower?slower|faster} in its last {in_two?two runs|run} ({words})"},
        {outlying_runs, "outlying_runs", "outlying,runs", "{outlying:0} of {runs:0} runs were as "
         "far off without a change: leave them out if that is mended, or compare live"},
        {given_spread, "given_spread", "spread", "under twice the {spread:.2g%} % that runs were "
         "said to differ by"},
        {unknown_card, "unknown_card", "", "no run was measured on this card"},
        {other_machine, "other_machine", "", "every run of the level was on {words}: nothing "
         "compares the two machines, 3 runs of main on both do"},
        {machine_explains, "machine_explains", "on_it,slow,runs,chance,others", "{on_it:0} of "
         "{slow:0} slow runs of {runs:0} were on {words} (chance: {chance:.2g})[; on the other "
         "{others:0} machine{others:s} nothing changed]: measure on another machine"},

        {client_without, "client_without", "lacking,requests", "{words} ({lacking:0} of "
         "{requests:0} requests)"},
        {client_is_busy, "client_is_busy", "cpu", "its busiest thread used {cpu:.0f%} % of a "
         "core; give it client.threads or a core of its own"},
        {client_off_rate, "client_off_rate", "sent,asked", "sent {sent:.4g} requests/s instead "
         "of {asked:.4g}"},
        {read_together, "read_together", "events", "it was late and read {events:.1f%} % of the "
         "events together"},
        {starts_read_together, "starts_read_together", "starts,answers", "it was late and read "
         "the first tokens of {starts:0} of {answers:0} answers together"},
        {sent_late, "sent_late", "late,after", "{late:.1f%} % of the requests of a repeat were "
         "sent over {after:t} late, so its load was not the one asked for"},
        {client_lost, "client_lost", "lost,disturbed,requests", "it lost {lost:.1f%} % of the "
         "time of a repeat, and over 20 ms in that of {disturbed:0} of {requests:0} requests: "
         "where the kernel tells no times of arrival, they may be that late"},
        {client_in_probes, "client_in_probes", "", "it was late, and without that its probes "
         "could show otherwise"},

        {over_saturated, "over_saturated", "is_baseline,grown,sent,slower,of_sessions",
         "{is_baseline?baseline }{words}over-saturated: {of_sessions?sessions|requests} in flight "
         "grew by {grown:0} while {sent:0} were {of_sessions?started|sent}, and "
         "{of_sessions?the ttft of their steps|ttft} by {slower:t}: the load is over the "
         "server's capacity"},
        {none_selected, "none_selected", "", "no measured request is one of {words}"},
        {label_failed, "label_failed", "requests", "none of the {requests:0} requests of {words} "
         "succeeded"},
        {gaps_of_all, "gaps_of_all", "", "the gaps between events were too many to keep each "
         "one, so whose they are is not known: measure fewer requests"},
        {lacks_values, "lacks_values", "requests,completed,metric,needs", "{some_completed} have "
         "no {needed_values}, which {metric_name} needs"},
        {other_tokens, "other_tokens", "tokens,is_prompt,baseline,of_totals",
         "the arms' requests differ by over 5 % in their tokens, {tokens:.4g} of "
         "{is_prompt?a prompt|an answer} and with the baseline {baseline:.4g}: "
         "{of_totals?whole answers|tokens per second} are not compared"},
        {several_models, "several_models",
         "requests,completed,first,second,are_few", "{some_completed} name another model than "
         "the others ({model_shares}){are_few?|: a gateway falls back, or routes between several}"},
        {from_cache, "from_cache", "requests,completed", "{some_completed} came from a cache of "
         "answers, by their headers, and 5 % may: nothing was generated for them"},
        {context_full, "context_full", "requests,completed,at_length,most", "{some_completed} "
         "brought fewer tokens than forced: {at_length:0} of these at least with the finish "
         "reason \"length\", and none had more than {most:0} tokens with its prompt: its context "
         "is full, or it has a limit of its own"},
        {stops_early, "stops_early", "requests,completed,by_themselves,is_untold",
         "{some_completed} brought fewer tokens than forced: it does not heed ignore_eos, or "
         "stops by itself[ ({by_themselves:0} finish reasons are another than \"length\")]"
         "{is_untold? (no finish reason tells which)}"},
        {cut_short, "cut_short", "requests,completed,most", "{some_completed} ended with the "
         "finish reason \"length\" before the length that was asked for, and none had more than "
         "{most:0} tokens with its prompt: its context is full, or it has a limit of its own"},
        {too_long, "too_long", "requests,completed", "{some_completed} report more tokens than "
         "forced: it does not heed the length, or its usage is wrong"},
        {filtered, "filtered", "requests,completed", "{some_completed} were cut off by a content "
         "filter: they are not the answers that were asked for"},
        {short_prompts, "short_prompts", "requests,completed", "{some_completed} report under 80 "
         "% of the prompt tokens that were asked for: it reads only a part of its prompts"},
        {equal_prompts, "equal_prompts", "requests,completed,tokens", "{some_completed} report "
         "{tokens:0} prompt tokens each, though what was sent has other lengths: it reads no "
         "more of a prompt"},
        {no_history, "no_history", "turns,of", "{turns:0} of {of:0} turns that go on from a "
         "response have no more prompt tokens than the turn before: it ignores the history, "
         "loses or cuts it, or its usage leaves it out"},
        {known_prompts, "known_prompts", "cached,shared", "{cached:.3g%} % of the prompt tokens "
         "came from its prefix cache, the workload shares at most {shared:.3g%} %: the prompts "
         "were seen before"},
        {cached_over_prompt, "cached_over_prompt", "cached,prompt", "its usage has {cached:0} "
         "cached tokens of {prompt:0} prompt tokens, which cannot be: it counts wrongly"},
        {cached_on_page, "cached_on_page", "cached,reported,repeat", "its usage has {cached:0} "
         "cached tokens, its page {reported:0} found in its prefix cache (repeat {repeat:0}): "
         "several workers count them, or another cache has a part"},
        {no_usage, "no_usage", "requests,completed", "{some_completed} have no usage, and an "
         "event may bring several tokens or a part of one, so how many there were is not known; "
         "if each event is one token, say options.events_are_tokens"},
        {alike_alone, "alike_alone", "requests,completed", "{some_completed} begin with one text, "
         "whatever was asked, and far fewer of the baseline's do: a broken model can be fast, "
         "which accuracy or same_answers shows"},
        {share_machine, "share_machine", "lost", "at once both servers answer {lost:.3g%} % slower "
         "than alone, and 10 % may be: they share a machine, where each takes the other's time; "
         "compare them in turns (.pairs = in_turns) or with compare()"},
        {wrong_usage, "wrong_usage", "requests,completed", "{some_completed} have a number of "
         "tokens in usage that cannot be: more than were asked for or than their text can be, or "
         "fewer than they have events; it counts wrongly, leaves some out, or does not heed "
         "max_tokens"},
        {usage_may_hide, "usage_may_hide", "requests,completed", "{some_completed} have several "
         "tokens in usage for each event, of less than two bytes, or more reasoning than was "
         "streamed: some were never sent, and usage does not say how many; running usage would "
         "(options.continuous_usage)"},
        {usage_over_prompt, "usage_over_prompt", "requests,completed", "{some_completed} have "
         "more prompt tokens in usage than what was sent can be: it counts wrongly"},
        {in_a_burst, "in_a_lump", "answers,of,are_whole", "the stream does not stream: "
         "{answers:0} of {of:0} answers "
         "{are_whole?came in one piece|began with over 5 % of their tokens at once}, 5 % may: "
         "the server, a proxy or a busy machine holds them back"},
        {in_large_events, "in_large_events", "answers,of,tokens", "{answers:0} of {of:0} answers "
         "came in events of {tokens:.3g} tokens each, so when those of the first one were "
         "generated is not known, and it matters here: have the server send fewer tokens at once, "
         "or set a limit that holds either way"},
        {comes_in_bursts, "comes_in_lumps", "events", "the stream comes in lumps: {events:.1f%} "
         "% of the content events were read together with an earlier one, 5 % may: the server, "
         "a proxy or a busy machine holds them back"},
        {untold_end, "untold_end", "requests,completed", "{some_completed} end long after their "
         "last text, so tokens without text may have come meanwhile, or none: running usage would "
         "tell (options.continuous_usage)"},
        {baseline_fails, "baseline_fails", "failed,of,allowed", "{failed:0} of {of:0} requests "
         "failed ({words}), where {allowed:.3g%} % may"},
        {baseline_may_fail, "baseline_may_fail", "failed,of,allowed", "{failed:0} of {of:0} "
         "requests failed ({words}), where {allowed:.3g%} % may, which so few do not show"},

        {metrics_reported, "metrics_reported", "repeat", "{words} (repeat {repeat:0})"},
        {restarted, "restarted", "repeat,is_in", "it restarted {is_in?in|before} repeat "
         "{repeat:0}, or another one answers at its address: the counters on its page began anew"},
        {served_others, "served_others", "repeat,reported,ours", "it served others too: in "
         "repeat {repeat:0} its page counts {reported:0} finished requests, ours were {ours:0}"},
        {others_requests, "others_requests", "reported,ours,repeat,of_tokens", "its page counts "
         "{reported:0} {of_tokens?generated tokens|finished requests}, ours were {ours:0}: it is "
         "another server's, or that of one of several (repeat {repeat:0})"},
        {more_at_once, "more_at_once", "reported,ours,repeat", "its page tells of {reported:0} "
         "requests at once, of ours at most {ours:0} were in flight: it counts some several "
         "times, or serves others (repeat {repeat:0})"},
        {queue_stood, "queue_stood", "from,most", "the queue was never empty from {from:.0f} s "
         "on, with up to {most:0} waiting"},
        {cache_full, "cache_full", "usage,preemptions", "[KV cache at {usage:.0f%} %]"
         "[{preemptions?}{usage?, }{preemptions:0} preemption{preemptions:s}]"},
        {clocks_lower, "clocks_lower", "lower,repeat", "the accelerators' clocks were "
         "{lower:.0f%} % lower in repeat {repeat:0}"},

        {carries, "carries", "low,high", "{carried}"},
        {not_monotone, "not_monotone", "low,high", "not monotone: {carried_load} is shown to be "
         "carried, and {too_much} to be too much"},
        {gave_up, "gave_up", "", "the client could not keep up twice in a row"},
        {several_loads, "several_loads", "", "the result is of several loads: only their "
         "capacity is judged"},
        {first_probe_failed, "first_probe_failed", "", "no request of the first probe succeeded"},
        {probe_too_short, "probe_too_short", "answer,load,needed,starts,of_sessions", "an answer "
         "took {answer:t}, and {load:t} of load were too short for that"},

        {headroom_in_noise, "headroom_in_noise", "headroom,noise,better", "headroom of "
         "{headroom:.1f%} %[ under noise of {noise:.1f%} %] will often be inconclusive; "
         "{better_limit} would seldom be"},
        {longer_load, "longer_load", "seconds,starts,of_sessions", "let the load last "
         "{seconds:t} at least, with {starts:0} {of_sessions?sessions|requests} at its rate, so "
         "that it can show whether the server keeps up"},
        {more_requests, "more_requests", "requests", "about {requests:0} {words} in each repeat "
         "would mostly decide"},
        {limit_that_passes, "limit_that_passes", "better,longer", "[{longer?}a run "
         "{longer:.2g} times as long would mostly decide, and ]{better_limit} would "
         "{longer?mostly pass as it is|pass}"},
    });
}();
constexpr const cause_row& row_of(because b) { return cause_table[static_cast<std::size_t>(b)]; }
constexpr bool is_in_order() {
    for (const cause_row& r : cause_table)
        if (&r != &row_of(r.id)) return false;
    return cause_table.back().id == because::limit_that_passes;  // the last
}
static_assert(is_in_order());

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
