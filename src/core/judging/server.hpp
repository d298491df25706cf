// validity checks of the server: its answers, and whether it keeps up
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"

#include <algorithm>  // any_of, max, min, nth_element, sort, upper_bound
#include <array>
#include <cmath>  // isnan, pow, sqrt
#include <cstddef>  // ptrdiff_t, size_t
#include <iterator>  // size
#include <map>
#include <set>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Over 5 % of the completed requests is too much.
inline bool is_too_much(std::size_t some, std::size_t completed) { return some * 20 > completed; }

/// The requests of a metric, and completed ones without a value.
struct value_count {
    std::size_t of = 0, completed = 0, missing = 0;
};
/// Prompt tokens in the server's prefix cache, of how many, and how many the workload repeats; -1:
/// unknown.
struct cache_counts {
    long long requests = 0, prompt = 0, cached = 0, shared = 0;
};
/// The completed requests of one variant by what makes them invalid.
struct answer_counts {
    std::size_t requests = 0;  // all, with failed ones
    std::size_t completed = 0;
    std::size_t too_short = 0, too_long = 0;  // fewer or more tokens than forced
    // Finish reasons, and the most tokens of a prompt and its answer together.
    std::size_t ended_by_themselves = 0, ended_at_length = 0, ended_without_reason = 0;
    long long most_tokens = 0;
    std::size_t of_choices = 0;               // with several choices
    std::size_t over_content = 0;             // more tokens in usage than in the text
    std::size_t without_usage = 0;            // though the API reports it, and events are no tokens
    std::size_t over_length = 0;              // more tokens than the maximum asked for
    std::size_t under_events = 0;             // fewer tokens in usage than events
    std::size_t may_hide = 0;                 // the number of streamed tokens is unknown
    std::size_t over_prompt = 0;              // more prompt tokens than possible
    std::size_t filtered = 0;                 // cut off by a content filter
    // Of answers that the client read without delay, with tokens after the first event:
    std::size_t paced = 0;
    std::size_t in_one_piece = 0, in_a_burst = 0;
    // Begin in a burst as well, which a delayed client may have made: not counted above.
    std::size_t perhaps_in_a_burst = 0;
    std::size_t most_in_a_burst() const { return in_a_burst + perhaps_in_a_burst; }
    std::size_t streamed() const { return paced + perhaps_in_a_burst; }
    std::set<long long> moments{},
        coalesced_at{};  // starts of all answers, and of coalesced ones
    double events = 0, read_together = 0;
    cache_counts cache{};
    std::array<value_count, max_metrics> values{};
    const value_count& of(metric_id m) const { return values[static_cast<std::size_t>(m)]; }
    cause of_completed(because what, std::size_t n) const {
        return {what, {as_number(n), as_number(completed)}};
    }
};
/// Answers coalesce by a proxy if over 5 % do, at over 5 % of the start times and at three or more.
/// Those at one moment may have one cause.
inline bool is_coalesced_by_proxy(const answer_counts& c) {
    const std::size_t coalesced = c.coalesced_at.size();
    return is_too_much(c.in_a_burst, c.paced) &&
           (c.in_one_piece > 0 || (coalesced > 2 && is_too_much(coalesced, c.moments.size())));
}
/// Events of an answer that a delayed client may have merged, up to the length of its delay.
struct gathered_by_client {
    bool piece = false, one_burst = false;
    double events = 0;
};
inline gathered_by_client gathered_by(const record& r) {
    const double early = static_cast<double>(r.first_early_ns) * 1e-9;
    return {early > 0 && early * 10 >= wait_s(r), early > 0 && early * 2 >= hidden_s(r),
            static_cast<double>(r.unknown_gaps)};
}
/// Seconds between events of a server as fast as the client's event loop: at most 1 ms in the
/// typical answer of several reads, and three quarters have several. 0 otherwise. Events that the
/// client merges then hide next to nothing.
inline double fast_gap_of(const repeat_list& variant) {
    vector<double> gaps;
    std::size_t several = 0;
    for (const repeat_data& d : variant)
        for (const record& r : d.records) {
            if (!is_pooled(r) || r.events < 2) continue;
            ++several;
            if (!is_in_one_piece(r)) gaps.push_back(spread_s(r) / (r.events - 1));
        }
    if (gaps.empty() || gaps.size() * 4 < several * 3) return 0;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    return *middle <= 0.001 ? *middle : 0;
}
inline void add_stream(answer_counts& c, const record& r, double fast_gap) {
    const bool masks = fast_gap == 0 || fast_gap * paced_tokens(r) > 0.010;
    const bool in_one_piece = is_in_one_piece(r) && masks;
    const gathered_by_client client = gathered_by(r);
    if ((in_one_piece && client.piece) || (begins_in_a_burst(r) && client.one_burst)) {
        ++c.perhaps_in_a_burst;
        return;
    }
    c.paced += paced_tokens(r) > 0;
    c.in_one_piece += in_one_piece;
    c.in_a_burst += in_one_piece || begins_in_a_burst(r);
    if (paced_tokens(r) > 0) c.moments.insert(r.first_token_ns / moment_ns);
    if (begins_in_a_burst(r)) c.coalesced_at.insert(r.first_token_ns / moment_ns);
    c.events += r.events;
    if (fast_gap == 0 || in_one_piece)
        c.read_together += std::max(events_read_together(r) - client.events, 0.0);
}
inline void add_completed(answer_counts& c, const record& r, double fast_gap) {
    ++c.completed;
    const bool at_length = stream_event::is_at_length(str(r.finish_reason));
    c.ended_at_length += at_length;
    c.ended_without_reason += r.finish_reason.empty();
    c.ended_by_themselves += !at_length && !r.finish_reason.empty();
    c.most_tokens = std::max(c.most_tokens, 0ll + r.prompt_tokens + r.output_tokens);
    c.of_choices += r.choices > 1;
    c.over_content += usage_is_over_content(r);
    c.without_usage += r.token_source == token_origin::no_usage;
    c.over_length += is_over_length(r);
    c.under_events += usage_is_under_events(r);
    c.may_hide += r.hidden_tokens < 0;
    c.over_prompt += usage_is_over_prompt(r);
    c.filtered += stream_event::is_filtered(str(r.finish_reason));
    add_stream(c, r, fast_gap);
    if (r.cached_tokens < 0 || r.prompt_tokens <= 0) return;
    ++c.cache.requests;
    c.cache.prompt += r.prompt_tokens;
    c.cache.cached += r.cached_tokens;
}
/// A user's metric is asked for its values only if it is one of `asked`.
inline answer_counts answer_counts_of(const repeat_list& variant, const selection& which = {},
                                      const statistic_data& asked = {}) {
    answer_counts c;
    const double fast_gap = fast_gap_of(variant);
    vector<metric_id> may_miss = all_metrics();
    erase_if(may_miss, [&](metric_id m) {
        const auto is_it = [&](metric_id x) { return x == m; };
        if (is_own(m) && !concerns_a_metric(asked, is_it)) return true;
        return facts_of(m).needs == value_needs::nothing && !is_of_turns(m);
    });
    for (const repeat_data& d : variant) {
        c.too_short += static_cast<std::size_t>(d.short_outputs);
        c.too_long += static_cast<std::size_t>(d.long_outputs);
        const long long reported = c.cache.requests;
        const selects selected(which, d);
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            const record& r = d.records[i];
            const bool ok = r.status == request_status::ok;
            if (!selected(r)) continue;
            ++c.requests;
            if (ok) add_completed(c, r, fast_gap);
            for (const metric_id m : may_miss) {
                if (!is_in_turns_of(m, r.turn)) continue;
                value_count& n = c.values[static_cast<std::size_t>(m)];
                ++n.of;
                n.completed += ok;
                n.missing += ok && !has_value(m, d, i);
            }
        }
        if (c.cache.requests > reported && d.shared_tokens < 0) c.cache.shared = -1;
        if (c.cache.shared >= 0 && d.shared_tokens > 0) c.cache.shared += d.shared_tokens;
    }
    return c;
}

inline cause values_missing(const answer_counts& c, metric_id m) {
    const value_count& n = c.of(m);
    const auto id = static_cast<double>(m);
    return {because::lacks_values, {as_number(n.missing), as_number(n.completed), id, id}};
}
/// Why a metric lacks values of completed requests. Answers of one token have no pace; if those
/// were requested, the others are judged, if any.
inline cause missing_values(const answer_counts& c, metric_id m, bool short_ones_expected) {
    const metric_facts& f = facts_of(m);
    const value_count& n = c.of(m);
    const bool allowed = short_ones_expected && (f.needs == value_needs::second_token ||
                                                 f.needs == value_needs::second_event ||
                                                 f.needs == value_needs::second_read);
    if (n.of == 0 && is_of_turns(m)) return {because::no_such_turns, {static_cast<double>(m)}};
    const bool some_left = n.missing < n.completed;
    const bool is_too_many = is_own(m) ? n.missing * 100 > n.completed  // the function's own lack
                                       : is_too_much(n.missing, n.completed);
    if (n.missing == 0 || (some_left && (allowed || !is_too_many))) return {};
    return values_missing(c, m);
}

/// Why answers are short, by their finish reasons.
inline cause why_too_short(const answer_counts& c) {
    const double n = as_number(c.too_short), of = as_number(c.completed);
    const std::size_t otherwise = c.ended_by_themselves + c.ended_without_reason;
    if (c.ended_at_length > 0 && c.too_short > otherwise)
        return {because::context_full, {n, of, as_number(c.too_short - otherwise),
                                        static_cast<double>(c.most_tokens)}};
    if (c.ended_by_themselves == 0)
        return {because::stops_early, {n, of, as_number(c.ended_without_reason)}};
    return {because::stops_by_itself, {n, of, as_number(c.ended_by_themselves)}};
}
/// Why the answers are of another length than asked for.
inline cause other_load(const answer_counts& c) {
    if (is_too_much(c.too_short, c.completed)) return why_too_short(c);
    if (is_too_much(c.too_long, c.completed)) return c.of_completed(because::too_long, c.too_long);
    if (is_too_much(c.filtered, c.completed)) return c.of_completed(because::filtered, c.filtered);
    if (is_too_much(c.of_choices, c.completed))
        return c.of_completed(because::several_choices, c.of_choices);
    return {};
}

/// Why prompts were known to the server. Beyond what the workload shares, 5 % of the tokens and a
/// block of 16 per request are allowed: caches also find equal first words, and templates differ.
inline cause known_prompts(const cache_counts& c) {
    if (c.shared < 0 || c.cached <= c.shared + c.prompt / 20 + 16 * c.requests) return {};
    const auto prompt = static_cast<double>(c.prompt), cached = static_cast<double>(c.cached);
    if (cached > prompt) return {because::cached_over_prompt, {cached, prompt}};
    return {because::known_prompts, {cached / prompt, static_cast<double>(c.shared) / prompt}};
}

/// Why the server's token counts are unusable.
inline cause usage_fault(const answer_counts& c, const statistic_data& what) {
    const bool counts_output = concerns(what, &metric_facts::counts_output);
    for (const auto& [why, n] : {std::pair{because::no_usage, c.without_usage},
                                 {because::usage_over_length, c.over_length},
                                 {because::usage_under_events, c.under_events},
                                 {because::usage_over_content, c.over_content},
                                 {because::usage_may_hide, c.may_hide}})
        if (counts_output && is_too_much(n, c.completed)) return c.of_completed(why, n);
    if (is_of_prompts(what.metric) && c.cache.cached > c.cache.prompt)
        return {because::cached_over_prompt,
                {static_cast<double>(c.cache.cached), static_cast<double>(c.cache.prompt)}};
    const bool counts_input = concerns_a_metric(
        what, [](metric_id m) { return facts_of(m).needs == value_needs::prompt_tokens; });
    if (counts_input && is_too_much(c.over_prompt, c.completed))
        return c.of_completed(because::usage_over_prompt, c.over_prompt);
    return {};
}

/// Why the answers of one variant invalidate an objective.
inline cause fault_of_answers(const answer_counts& c, const statistic_data& what,
                              bool short_ones_expected) {
    if (c.requests == 0 && !is_of_all(what))
        return with_text(because::none_selected, selection_text(what.which));
    if (cause why = other_load(c)) return why;
    if (cause why = known_prompts(c.cache)) return why;
    cause why = usage_fault(c, what);
    if (why) return why;
    concerns_a_metric(what, [&](metric_id m) {
        why = missing_values(c, m, short_ones_expected);
        return static_cast<bool>(why);
    });
    return why;
}

/// Why the stream of one variant invalidates an objective. Buffering by a server or by a proxy
/// looks the same here.
inline cause fault_of_stream(const answer_counts& c, const statistic_data& what) {
    if (!concerns(what, &metric_facts::is_of_decoding)) return {};
    if (is_too_much(c.in_one_piece, c.paced))
        return {because::in_one_piece, {as_number(c.in_one_piece), as_number(c.paced)}};
    if (is_coalesced_by_proxy(c))
        return {because::in_a_burst, {as_number(c.in_a_burst), as_number(c.paced)}};
    if (c.perhaps_in_a_burst > 0 && is_too_much(c.most_in_a_burst(), c.streamed()))
        return {because::starts_read_together,
                {as_number(c.perhaps_in_a_burst), as_number(c.streamed())}, whose::client};
    if (concerns(what, &metric_facts::is_of_gaps) && c.read_together * 20 > c.events)
        return {because::comes_in_bursts, {c.read_together / c.events}};
    return {};
}

/// Slope of the means of ten batches, and its t value (8 degrees of freedom).
struct trend {
    double per_batch = 0, t = 0;
};
inline trend trend_of(const vector<double>& values) {
    constexpr std::size_t batches = 10;
    vector<double> means;
    for (std::size_t b = 0; b < batches; ++b)
        means.push_back(mean_of({values.begin() + static_cast<long>(b * values.size() / batches),
                                 values.begin() +
                                     static_cast<long>((b + 1) * values.size() / batches)}));
    const double center = mean_of(means), middle = (batches - 1) / 2.0;
    double xy = 0, xx = 0, residual = 0;
    for (std::size_t b = 0; b < batches; ++b) {
        xy += (static_cast<double>(b) - middle) * (means[b] - center);
        xx += (static_cast<double>(b) - middle) * (static_cast<double>(b) - middle);
    }
    trend r;
    r.per_batch = xy / xx;
    for (std::size_t b = 0; b < batches; ++b) {
        const double fitted = center + r.per_batch * (static_cast<double>(b) - middle);
        residual += (means[b] - fitted) * (means[b] - fitted);
    }
    const double error = std::sqrt(residual / (batches - 2) / xx);
    r.t = error > 0 ? r.per_batch / error : r.per_batch > 0 ? infinity : 0;
    return r;
}

/// A request, or a session of several steps.
struct load_unit {
    long long scheduled_ns = 0, end_ns = 0;
    double waited_ns = 0;  // for first tokens of its steps, beyond the usual wait
    double tokens = 0;
    bool is_measured = true, all_ok = true;
};
/// Whether a load consists of sessions. The probes of a search have few sessions, so that its
/// requests count.
inline bool starts_sessions(const repeat_data& d) {
    return d.load == 0 && std::any_of(d.records.begin(), d.records.end(), [](const record& r) {
        return r.conversation >= 0 && (r.turn > 0 || r.depth > 0);
    });
}
/// The 90th percentile of the wait for first tokens among the first tenth of the requests.
inline double usual_wait_ns(const repeat_data& d) {
    vector<std::pair<long long, double>> waits;
    for (const record& r : d.records)
        if (r.status == request_status::ok)
            waits.emplace_back(r.scheduled_ns,
                               static_cast<double>(r.first_token_ns - r.scheduled_ns));
    std::sort(waits.begin(), waits.end());
    vector<double> early;
    for (std::size_t i = 0; i < (waits.size() + 9) / 10; ++i) early.push_back(waits[i].second);
    std::sort(early.begin(), early.end());
    return early.empty() ? 0 : nearest_rank(early, 0.9);
}
inline vector<load_unit> started_by(const repeat_data& d, bool sessions) {
    vector<load_unit> units;
    const double usual_ns = sessions ? usual_wait_ns(d) : infinity;
    std::map<long long, std::size_t> of_session;
    for (const record& r : d.records) {
        std::size_t at = units.size();
        if (sessions && r.conversation >= 0)
            at = of_session.emplace(r.conversation, at).first->second;
        if (at == units.size()) units.push_back({r.scheduled_ns, r.end_ns});
        load_unit& u = units[at];
        u.scheduled_ns = std::min(u.scheduled_ns, r.scheduled_ns);
        u.end_ns = std::max(u.end_ns, r.end_ns);
        u.tokens += r.output_tokens;
        if (r.status == request_status::ok)
            u.waited_ns += std::max(
                0.0, static_cast<double>(r.first_token_ns - r.scheduled_ns) - usual_ns);
        u.is_measured = u.is_measured && is_measured(r);
        u.all_ok = u.all_ok && r.status == request_status::ok;
    }
    sort_by(units, [](const load_unit& u) { return u.scheduled_ns; });
    return units;
}

/// The typical time of an answer, 0 without answers.
inline double usual_answer_s(const repeat_data& d) {
    vector<double> took;
    for (const record& r : d.records)
        if (is_measured(r) && !has_failed(r))
            took.push_back(static_cast<double>(r.end_ns - r.scheduled_ns) * 1e-9);
    if (took.empty()) return 0;
    const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
    std::nth_element(took.begin(), middle, took.end());
    return *middle;
}
/// A load that lasts for less than four answers is mostly its own start: too few of its requests
/// meet the others that its rate adds up to.
inline double least_load_s(double answer_s) { return 4 * answer_s; }
inline bool is_too_short(double load_s, double needed_s) { return needed_s > 1.25 * load_s; }
/// Why a load with a rate ended too early to show whether the server keeps up with it. It lasts as
/// long as requests or sessions start, warm-up included. A search makes its probes long enough.
inline cause too_short_repeat(const repeat_data& d) {
    if (d.load != 0) return {};
    long long first = 0, last = 0;
    double starts = 0, sessions = 0;
    for (const record& r : d.records) {
        sessions += r.turn > 0 || r.depth > 0;
        if (r.turn > 0 || r.depth > 0) continue;
        first = starts++ == 0 ? r.scheduled_ns : std::min(first, r.scheduled_ns);
        last = std::max(last, r.scheduled_ns);
    }
    if (starts < 2) return {};
    const double load_s = static_cast<double>(last - first) * 1e-9 * starts / (starts - 1);
    const double answer_s = usual_answer_s(d), needed_s = least_load_s(answer_s);
    if (!is_too_short(load_s, needed_s)) return {};
    return {because::probe_too_short,
            {answer_s, load_s, needed_s, rounded_up(starts * needed_s / load_s), sessions},
            whose::plan};
}

/// How the load exceeded the server in one repeat, nothing where that is not shown. Requests or
/// sessions in flight must grow by a tenth of the arrivals, and by more than the random walk of
/// this traffic at exactly the server's capacity (level 0.1 %), and ttft with them. The time of the
/// first answers is left out, since every load fills up first. Sessions differ more: theirs is the
/// 90th percentile, without the growth of waits for first tokens, which is the server's.
inline cause over_saturated_repeat(const repeat_data& d, double arrival_cv2) {
    const bool sessions = starts_sessions(d);
    const vector<load_unit> units = started_by(d, sessions);
    // Of a load far over the capacity a quarter waits for longer than the load lasts.
    const std::size_t early_units =
        sessions ? units.size() / 4 : std::min<std::size_t>(units.size() / 4, 50);
    vector<long long> ends;
    vector<double> early;
    for (const load_unit& u : units) {
        ends.push_back(u.end_ns);
        if (ends.size() <= early_units && u.all_ok)
            early.push_back(static_cast<double>(u.end_ns - u.scheduled_ns) - u.waited_ns);
    }
    if (early.empty()) return {};
    std::sort(ends.begin(), ends.end());
    std::sort(early.begin(), early.end());
    const long long filled = units[0].scheduled_ns +
                             static_cast<long long>(nearest_rank(early, sessions ? 0.9 : 0.5));
    vector<double> in_flight, ttft_s, tokens;
    for (std::size_t k = 0; k < units.size(); ++k) {
        const load_unit& u = units[k];
        if (!u.is_measured || u.scheduled_ns < filled) continue;
        const auto ended = std::upper_bound(ends.begin(), ends.end(), u.scheduled_ns);
        in_flight.push_back(static_cast<double>(k + 1) -
                            static_cast<double>(ended - ends.begin()));
        if (u.all_ok) tokens.push_back(u.tokens);
    }
    vector<std::pair<long long, double>> first_tokens;  // of requests sent while units started
    for (const record& r : d.records)
        if (is_pooled(r) && r.scheduled_ns >= filled &&
            r.scheduled_ns <= units.back().scheduled_ns)
            first_tokens.emplace_back(
                r.scheduled_ns, static_cast<double>(r.first_token_ns - r.scheduled_ns) * 1e-9);
    std::sort(first_tokens.begin(), first_tokens.end());
    for (const auto& [at, seconds] : first_tokens) ttft_s.push_back(seconds);
    const double n = static_cast<double>(in_flight.size());
    if (n < (sessions ? 100 : 40) || ttft_s.size() < 20 || tokens.size() < 20) return {};
    const double work_cv2 = sample_variance(tokens) / std::pow(std::max(1.0, mean_of(tokens)), 2);
    // The slope over a random walk has a variance of 6/5 n, over planned arrivals and ends 1/5 n.
    const double wandering = std::sqrt(n * (0.2 * arrival_cv2 + 1.2 * work_cv2));
    const trend grown = trend_of(in_flight), slower = trend_of(ttft_s);
    const double growth = 10 * grown.per_batch;
    const double t_limit = 4.501;  // Student t, 8 degrees of freedom, 0.1 %
    if (growth <= std::max(0.1 * n, 3.09 * wandering) || grown.t < t_limit || slower.t < t_limit)
        return {};
    return {sessions ? because::over_saturated_by_sessions : because::over_saturated,
            {0, growth, n, 10 * slower.per_batch}};
}

/// Why the load exceeds the server, or is too short to show that it does not; nothing unless most
/// repeats of a variant show it. NaN: the load has no rate.
inline cause over_saturation_of(const measurements& e, const variant_list& variants,
                                double arrival_cv2) {
    if (std::isnan(arrival_cv2)) return {};
    const auto in_most = [](const repeat_list& variant, auto&& shown_in) {
        std::size_t shown = 0;
        cause example;
        for (const repeat_data& d : variant)
            if (cause why = shown_in(d)) {
                ++shown;
                example = std::move(why);
            }
        return 2 * shown > variant.size() ? example : cause{};
    };
    for (const auto* variant : variants) {
        cause over = in_most(*variant, [&](const repeat_data& d) {
            return over_saturated_repeat(d, arrival_cv2);
        });
        if (over) over.numbers[0] = variant == &e.baseline;
        else over = in_most(*variant, too_short_repeat);
        if (over.of == whose::plan && variant == &e.baseline) over.of = whose::baseline;
        if (over) return over;
    }
    return {};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
