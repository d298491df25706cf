// the server's metrics page beside our requests: the cross-check, and explanations
// Compares the counts of its page during a repeat with our requests and tokens.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/server_values.hpp"
#include "core/judging/cause.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"

#include <algorithm>  // count_if, max, sort, upper_bound
#include <cmath>  // fabs, isnan, round
#include <cstddef>  // size_t
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>  // move, pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline bool is_comparable(const repeat_facts& d) {
    return d.server.has_both_ends && d.server.readings.size() >= 2 &&
           history_of(d.server) == page_history::one_process;
}
inline double sent_requests(const repeat_data& d) {
    double n = 0;
    for (const record& r : d.records)
        if (r.sent_ns > 0) n += 1 + r.resends;
    return n;
}
/// A rank's part alone cannot be compared with a page.
inline bool is_a_part(const repeat_data& d) {
    return d.ranks.size() == 1 && d.ranks.front().count > 1;
}
/// The most requests of ours in flight at once. The server may continue those that failed.
inline double most_in_flight(const repeat_data& d, const repeat_data* twin) {
    vector<std::pair<long long, int>> changes;
    const auto add = [&](const repeat_data& of) {
        for (const record& r : of.records) {
            if (!(r.sent_ns > 0)) continue;
            changes.emplace_back(r.sent_ns, 1);
            if (r.status == request_status::ok) changes.emplace_back(r.end_ns, -1);
        }
    };
    add(d);
    if (twin) add(*twin);
    std::sort(changes.begin(), changes.end());
    double now = 0, most = 0;
    for (const auto& [at_ns, by] : changes) most = std::max(most, now += by);
    return most;
}
/// Returns the requests in flight by the server's page, the median over the steady window.
inline double typically_in_flight(const repeat_facts& d) {
    vector<double> read = read_in_window(d, [](const page_reading& r) {
        const double waiting = r.value(server_quantity::waiting);
        return r.value(server_quantity::running) + (waiting > 0 ? waiting : 0);
    }).values;
    std::sort(read.begin(), read.end());
    return read.size() < least_readings ? not_a_number : nearest_rank(read, 0.5);
}
/// Our requests in flight when the page was read, the median over the steady window. Unknown if the
/// page does not tell of a queue.
inline double typically_ours(const repeat_facts& d, const repeat_data* ours,
                             const repeat_data* twin) {
    vector<double> sent, ended;
    for (const repeat_data* of : {ours, twin})
        for (std::size_t i = 0; of && i < of->records.size(); ++i)
            if (const record& r = of->records[i]; r.sent_ns > 0 && r.end_ns > 0) {
                sent.push_back(static_cast<double>(r.sent_ns));
                ended.push_back(static_cast<double>(r.end_ns));
            }
    std::sort(sent.begin(), sent.end());
    std::sort(ended.begin(), ended.end());
    vector<double> read = read_in_window(d, [&](const page_reading& r) {
        if (std::isnan(r.value(server_quantity::waiting))) return not_a_number;
        const auto until = [&](const vector<double>& times) {
            return std::upper_bound(times.begin(), times.end(), static_cast<double>(r.at_ns)) -
                   times.begin();
        };
        return static_cast<double>(until(sent) - until(ended));
    }).values;
    std::sort(read.begin(), read.end());
    return read.size() < least_readings ? not_a_number : nearest_rank(read, 0.5);
}
/// A server that reports more requests than ours counts some twice, or serves others. An answered
/// request may still be reported.
inline bool reports_too_many(const cross_check& c) {
    return c.at_once > 0 && c.at_once_reported > 1.2 * (c.at_once + c.unfinished_before) + 1;
}
/// A server that has all our requests and reports less than half of those in flight: the others
/// wait where its page does not say, as in front of it or in a queue of another name.
inline bool reports_too_few(const cross_check& c) {
    return !(c.requests_reported < 0.9 * c.finished) &&
           c.typically_at_once >= 2 * c.at_once_reported + 4;
}
inline void add_requests(cross_check& c, const repeat_data& d) {
    c.sent += sent_requests(d);
    for (const record& r : d.records) {
        if (has_left(r)) c.prompt_tokens = c.tokens = not_a_number;  // it finishes a part
        if (r.status != request_status::ok) continue;
        ++c.finished;
        c.prompt_tokens += r.prompt_tokens > 0 ? r.prompt_tokens : not_a_number;
        c.prompt_tokens_known += std::max(r.prompt_tokens, 0);
        c.cached_tokens += r.cached_tokens >= 0 ? r.cached_tokens : not_a_number;
        c.tokens += r.token_source == token_origin::usage ? r.output_tokens : not_a_number;
    }
}
/// Whether the counts are of both loads at once: one server has both behind a gateway, or with two
/// ways to ask.
inline bool served_both(const reading_span& s, const cross_check& own, const cross_check& both) {
    const double requests = s.change(server_quantity::requests_done);
    return std::isnan(requests)
               ? s.change(server_quantity::generation_tokens) >= 0.95 * both.tokens
               : requests > own.sent && requests >= 0.95 * both.finished;
}
/// Whether the other variant's page has its own load and no more: then this page's others are not
/// that load, as where a second gate has the same baseline.
inline bool has_its_load_alone(const repeat_data& twin, const cross_check& both) {
    if (!is_comparable(twin) || is_a_part(twin)) return false;
    const double requests = whole_span(twin.server)->change(server_quantity::requests_done);
    return requests < 0.95 * both.finished;
}
/// `twin`: the other variant's repeat at the same time, null if there is none. Where the server had
/// both, ours are the requests of both.
inline cross_check cross_check_of(const repeat_data& d, const repeat_data* twin = nullptr) {
    cross_check c;
    for (const side_task_seen& t : d.side_tasks)  // which may send requests, too
        c.unfinished_before += as_number(t.steps.size());
    add_requests(c, d);
    if (!is_comparable(d) || is_a_part(d)) return c;
    const reading_span s = *whole_span(d.server);
    if (twin) {
        cross_check both = c;
        add_requests(both, *twin);
        if (served_both(s, c, both) && !has_its_load_alone(*twin, both)) c = both;
        else twin = nullptr;
    }
    if (c.tokens != 0) {  // without tokens each text may be a request
        c.at_once = most_in_flight(d, twin);
        c.at_once_reported = typically_in_flight(d);
        c.typically_at_once = typically_ours(d, &d, twin);
    }
    c.requests_reported = s.change(server_quantity::requests_done);
    c.prompt_tokens_reported = s.change(server_quantity::prompt_tokens);
    c.tokens_reported = s.change(server_quantity::generation_tokens);
    c.cached_reported = s.change(server_quantity::prefix_hits);
    c.is_made = !std::isnan(c.requests_reported) || !std::isnan(c.tokens_reported);
    return c;
}
/// The other variant's repeat at the same time, null if there is none.
inline const repeat_data* twin_of(const repeat_list* others, const repeat_data& d) {
    if (others)
        for (const repeat_data& other : *others)
            if (other.index == d.index) return &other;
    return nullptr;
}
inline const repeat_data* twin_of(const measurements& e, const repeat_data& d) {
    if (!e.is_at_once) return nullptr;
    return twin_of(d.variant == run_variant::baseline ? &e.candidate : &e.baseline, d);
}

/// Some servers count each request once per process, so by an exact multiple. Another client with
/// the same load would also add tokens.
inline bool counts_each_again(const cross_check& c) {
    const double output = c.tokens_reported / c.tokens,
                 prompt = c.prompt_tokens_reported / c.prompt_tokens;
    const bool is_known = !std::isnan(output) || !std::isnan(prompt);
    const double times = c.requests_reported / c.finished;  // NaN: not reported
    return c.finished >= 10 && times >= 2 && times == std::round(times) && is_known &&
           !(output > 1.02) && !(prompt > 1.02);
}
inline bool differs(double reported, double ours) {
    return !std::isnan(reported) && ours > 0 && std::fabs(reported / ours - 1) > 0.02;
}
/// Some servers, such as vLLM, count each text of embeddings and scores as a request. Requests of
/// another client would add prompt or output tokens.
inline bool counts_texts(const cross_check& c) {
    return c.tokens == 0 && !(c.tokens_reported > 0) &&
           c.prompt_tokens_reported <= 1.02 * c.prompt_tokens_known;
}
/// Requests of other clients. Ours are counted generously: the server may have finished failed
/// ones, and those that an earlier repeat gave up.
inline double foreign_requests(const cross_check& c) {
    if (!(c.requests_reported > c.sent + c.unfinished_before)) return 0;
    if (counts_each_again(c) || counts_texts(c)) return 0;
    return c.requests_reported - c.sent - c.unfinished_before;
}
/// One or two short requests, such as health probes, do not change the load.
inline bool is_another_load(const cross_check& c) {
    const double foreign = foreign_requests(c);
    const bool some = foreign > 0;
    return foreign > std::max(1.0, 0.01 * c.sent) ||
           (some && ((c.tokens > 0 && c.tokens_reported > 1.02 * c.tokens) ||
                     c.prompt_tokens_reported > 1.02 * c.prompt_tokens));
}

/// The cross-check of a repeat, as if nothing had been sent before it.
inline cross_check cross_check_in(const measurements& e, const repeat_data& d) {
    return *known_in(e, d, "cross-check", [&] { return cross_check_of(d, twin_of(e, d)); });
}
/// Our requests that failed, which a server may finish later; each repeat is counted once.
class unfinished_requests {
public:
    explicit unfinished_requests(const measurements& e) : e_(e) {
        for (const repeat_data& d : repeats_of(e)) up_to_[d.index] += failed_in(d);
        double sum = 0;
        for (auto& [index, n] : up_to_) sum = n += sum;
    }
    /// Of earlier repeats, on any server.
    double before(const repeat_data& d) const {
        const auto at = up_to_.find(d.index);
        return at == up_to_.end() ? 0 : at->second - failed_in(d);
    }
    /// The cross-check of a repeat after those.
    cross_check of(const repeat_data& d) const {
        cross_check c = cross_check_in(e_, d);
        c.unfinished_before += before(d);
        return c;
    }

private:
    double failed_in(const repeat_data& d) const {
        return *known_in(e_, d, "unfinished", [&] {
            return static_cast<double>(
                std::count_if(d.records.begin(), d.records.end(), [](const record& r) {
                    return r.status != request_status::ok && r.sent_ns > 0;
                }));
        });
    }
    const measurements& e_;
    std::map<int, double> up_to_{};  // by the index of a repeat
};

/// The cross-check without the times in which a side task may have restarted the server or sent
/// requests itself. Of ours, all that were in flight in the rest may count there.
inline cross_check without_excused(cross_check c, const repeat_data& d) {
    if (!is_excused(d, 0, std::numeric_limits<long long>::max())) return c;
    const vector<page_reading>& read = d.server.readings;
    vector<std::size_t> rest;  // the readings that end such a time
    c.sent = c.requests_reported = 0;
    c.prompt_tokens_reported = c.tokens_reported = not_a_number;
    for (std::size_t i = 1; i < read.size(); ++i) {
        if (is_excused(d, read[i - 1].at_ns, read[i].at_ns)) continue;
        rest.push_back(i);
        c.requests_reported +=
            reading_span{&read[i - 1], &read[i]}.change(server_quantity::requests_done);
    }
    for (const record& r : d.records)
        if (r.sent_ns > 0 && any_of(rest, [&](std::size_t i) {
                return r.sent_ns <= read[i].at_ns && r.end_ns >= read[i - 1].at_ns;
            }))
            c.sent += 1 + r.resends;
    return c;
}

/// The previous repeat on its server, null if there is none.
inline const repeat_data* repeat_before(const measurements& e, const repeat_data& d) {
    const repeat_data* before = nullptr;
    for (const repeat_data& other : d.variant == run_variant::baseline ? e.baseline : e.candidate)
        if (other.index < d.index && (!before || other.index > before->index)) before = &other;
    return before;
}
/// A server that restarted unasked since the previous repeat.
inline cause restarted_before(const measurements& e, const repeat_data& d) {
    const repeat_data* const before = repeat_before(e, d);
    const bool was_started = !std::isnan(d.startup_s) || !std::isnan(d.first_answer_s);
    if (!before || was_started || before->server.readings.empty() || d.server.readings.empty())
        return {};
    const double was = before->server.readings.back().began;
    const double is = d.server.readings.front().began;
    const bool is_one = history_of(d.server) == page_history::one_process &&
                        history_of(before->server) == page_history::one_process;
    const long long last_ns = before->server.readings.back().at_ns;
    const bool began_anew = is_one && !std::isnan(was) && !std::isnan(is) &&
                            !is_one_start(was, is) &&
                            may_have_begun_in(before->server, is) &&
                            !is_excused(*before, last_ns, std::numeric_limits<long long>::max());
    return began_anew ? cause_with<because::restarted>({{"repeat", d.index + 1}, {"is_in", false}})
                       : cause{};
}
/// A server that restarted in the repeat where no side task may have done it.
inline cause restarted_in(const repeat_data& d) {
    if (history_of(d.server) != page_history::restarted) return {};
    const vector<page_reading>& read = d.server.readings;
    for (std::size_t i = 1; i < read.size(); ++i)
        if ((have_fallen(read[i - 1], read[i]) ||
             (!std::isnan(read[i].began) && !is_one_start(read[i - 1].began, read[i].began))) &&
            is_excused(d, read[i - 1].at_ns, read[i].at_ns))
            return {};
    return cause_with<because::restarted>({{"repeat", d.index + 1}, {"is_in", true}});
}
inline cause restarted(const measurements& e, const repeat_data& d) {
    if (cause why = restarted_before(e, d)) return why;
    return restarted_in(d);
}
/// A server that served others in the repeat.
inline cause served_others(const unfinished_requests& unfinished, const repeat_data& d) {
    if (!is_comparable(d) || is_a_part(d)) return {};
    const cross_check c = without_excused(unfinished.of(d), d);
    if (!is_another_load(c)) return {};
    return cause_with<because::served_others>(
        {{"repeat", d.index + 1}, {"reported", c.requests_reported}, {"ours", c.sent}});
}

/// A page that lacks most of our requests is another server's, or one of several. For metrics of
/// the requests in flight it must not report too many, either.
inline cause fault_of_page(const cross_check& c, int repeat, metric_id m) {
    const auto of_others = [&](double reported, double ours, bool of_tokens) {
        return cause_with<because::others_requests>({{"reported", reported},
                                                     {"ours", ours},
                                                     {"repeat", repeat},
                                                     {"of_tokens", of_tokens}});
    };
    if (c.requests_reported < 0.9 * c.finished)
        return of_others(c.requests_reported, c.finished, false);
    if (c.tokens_reported < 0.9 * c.tokens) return of_others(c.tokens_reported, c.tokens, true);
    const bool is_of_those = m == metric_id::running_requests || m == metric_id::queued_requests;
    if (!is_of_those || !reports_too_many(c)) return {};
    return cause_with<because::more_at_once>(
        {{"reported", c.at_once_reported}, {"ours", c.at_once}, {"repeat", repeat}});
}
/// Cached tokens of usage that its page does not have, or the reverse, by over 5 % of the prompts:
/// both workers of a pair may count them.
inline cause cached_on_page(const measurements& e, const slo& s) {
    const unfinished_requests unfinished(e);
    return first_of_repeats(e, s, [&](const repeat_data& d) {
        const cross_check c = unfinished.of(d);
        const double off = std::fabs(c.cached_tokens - c.cached_reported);
        return off > 0.05 * c.prompt_tokens
                   ? cause_with<because::cached_on_page>({{"cached", c.cached_tokens},
                                                          {"reported", c.cached_reported},
                                                          {"repeat", d.index + 1}})
                   : cause{};
    });
}
/// Why the server metrics do not support an objective.
inline cause server_metrics_fault(const measurements& e, const verdict_numbers& v) {
    const slo& s = v.objective;
    // The largest value read is a lower bound: if it is over the limit, the true one is too.
    const verdict certain = s.at_most ? verdict::fail : verdict::pass;
    const bool needs_all = s.statistic.kind == statistic_kind::max &&
                           !(is_absolute(s) && v.outcome == certain);
    const auto reported = [](const std::string& text, const repeat_data& d) {
        return text.empty() ? cause{}
                            : cause_with<because::metrics_reported>({{"repeat", d.index + 1}},
                                                                    whose::nobody, text);
    };
    const unfinished_requests unfinished(e);
    return first_of_repeats(e, s, [&](const repeat_data& d) {
        cause why = reported(why_no_server_value(s.statistic, d), d);
        if (!why) why = fault_of_page(unfinished.of(d), d.index + 1, s.statistic.metric);
        if (!why && needs_all) why = reported(what_is_unknown(s.statistic, d), d);
        return why;
    });
}

/// The time from which a queue was never empty, for at least half of a window; its largest length.
struct standing_queue {
    double from_s = 0, most = 0;
};
inline std::optional<standing_queue> standing_queue_of(const repeat_facts& d) {
    std::optional<standing_queue> q;
    for (const page_reading& r : d.server.readings) {
        if (r.at_ns < d.window.from_ns() || r.at_ns > d.window.to_ns()) continue;
        const double waiting = r.value(server_quantity::waiting);
        if (!(waiting > 0)) q.reset();
        else if (!q) q = {static_cast<double>(r.at_ns - d.window.from_ns()) * 1e-9, waiting};
        else q->most = std::max(q->most, waiting);
    }
    const double window_s = d.window.seconds();
    if (!q || q->from_s > window_s / 2) return {};
    return q;
}
inline cause state_of_queue(const repeat_list& variant) {
    std::optional<standing_queue> first;
    double most = 0;
    std::size_t n = 0;
    for (const repeat_data& d : variant)
        if (const auto q = standing_queue_of(d)) {
            ++n;
            most = std::max(most, q->most);
            if (!first) first = q;
        }
    if (!first || 2 * n < variant.size()) return {};
    return cause_with<because::queue_stood>({{"from", first->from_s}, {"most", most}});
}
inline cause state_of_cache(const repeat_list& variant) {
    double fullest = 0, preempted = 0;
    for (const repeat_data& d : variant) {
        for (const double v : read_in_window(d, server_quantity::kv_usage).values)
            if (v <= 1) fullest = std::max(fullest, v);
        if (const auto s = span_of(d))
            if (const double n = s->change(server_quantity::preemptions); n > 0) preempted += n;
    }
    if (preempted == 0 && fullest < 0.95) return {};
    return cause_with<because::cache_full>({{"usage", fullest}, {"preemptions", preempted}});
}
/// The repeat whose mean clock is over a tenth below the highest.
inline cause state_of_clocks(const repeat_list& variant) {
    vector<double> means;
    for (const repeat_data& d : variant) {
        const auto read = read_in_window(d, server_quantity::clock).values;
        means.push_back(read.empty() ? not_a_number : mean_of(read));
    }
    double highest = 0;
    for (const double m : means) highest = std::max(highest, std::isnan(m) ? 0 : m);
    for (std::size_t i = 0; i < means.size(); ++i)
        if (means[i] < 0.9 * highest)
            return cause_with<because::clocks_lower>({{"lower", 1 - means[i] / highest},
                                                      {"repeat", i + 1}});
    return {};
}
/// How the server's state explains its speed.
inline vector<cause> server_state_of(const measurements& e) {
    vector<cause> all;
    for (cause (*state)(const repeat_list&) :
         {state_of_queue, state_of_cache, state_of_clocks})
        if (cause c = state(e.candidate)) {
            if (all.empty()) c.of = whose::server;
            all.push_back(std::move(c));
        }
    return all;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
