// the cross-check of our numbers with the server's
// What its page counts in the time of a repeat is compared with what we sent and received.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/server_metrics/server_names.hpp"
#include "core/metric/table.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_values.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/evidence.hpp"

#include <algorithm>  // max
#include <cmath>  // fabs, isnan, round
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
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
/// Others have sent the rest of the load: only all together can be compared with a page.
inline bool is_a_part(const repeat_data& d) {
    return d.ranks.size() == 1 && d.ranks.front().count > 1;
}
inline cross_check cross_check_of(const repeat_data& d, double unfinished_before = 0) {
    cross_check c;
    c.unfinished_before = unfinished_before;
    for (const side_task_seen& t : d.beside)  // which may be requests to its model, too
        c.unfinished_before += as_number(t.steps.size());
    c.sent = sent_requests(d);
    for (const record& r : d.records) {
        if (has_left(r)) c.prompt_tokens = c.tokens = not_a_number;  // the server's share of it
        if (r.status != request_status::ok) continue;
        ++c.finished;
        c.prompt_tokens += r.prompt_tokens > 0 ? r.prompt_tokens : not_a_number;
        c.prompt_tokens_known += std::max(r.prompt_tokens, 0);
        c.tokens += r.token_source == token_origin::usage ? r.output_tokens : not_a_number;
    }
    if (!is_comparable(d) || is_a_part(d)) return c;
    const reading_span s = *whole_span(d.server);
    c.requests_reported = s.change(server_quantity::requests_done);
    c.prompt_tokens_reported = s.change(server_quantity::prompt_tokens);
    c.tokens_reported = s.change(server_quantity::generation_tokens);
    c.is_made = !std::isnan(c.requests_reported) || !std::isnan(c.tokens_reported);
    return c;
}

/// Some servers count each request once for each of several processes: so often exactly, which
/// somebody else's requests would not be.
inline bool is_multiple(double reported, double ours) {
    const double times = ours > 0 ? reported / ours : 0;
    return ours >= 10 && times >= 2 && times == std::round(times);
}
inline bool differs(double reported, double ours) {
    return !std::isnan(reported) && ours > 0 && std::fabs(reported / ours - 1) > 0.02;
}
/// Embeddings and scores are requests for each of their texts to some servers, vLLM's among them.
/// Somebody else's would have had a server read more tokens, or write some.
inline bool counts_texts(const cross_check& c) {
    return c.tokens == 0 && !(c.tokens_reported > 0) &&
           c.prompt_tokens_reported <= 1.02 * c.prompt_tokens_known;
}
/// Requests that were somebody else's. Our own are counted on the safe side: what failed may have
/// been finished by the server all the same, and what an earlier repeat gave up as well.
inline double foreign_requests(const cross_check& c) {
    if (!(c.requests_reported > c.sent + c.unfinished_before)) return 0;
    if (is_multiple(c.requests_reported, c.finished) || counts_texts(c)) return 0;
    return c.requests_reported - c.sent - c.unfinished_before;
}
/// One or two short ones, as a probe of somebody's liveness, do not make it another load.
inline bool is_another_load(const cross_check& c) {
    const double foreign = foreign_requests(c);
    const bool some = foreign > 0;
    return foreign > std::max(1.0, 0.01 * c.sent) ||
           (some && ((c.tokens > 0 && c.tokens_reported > 1.02 * c.tokens) ||
                     c.prompt_tokens_reported > 1.02 * c.prompt_tokens));
}

/// Requests of ours that ended badly in repeats before this one, on the same server or another.
inline double unfinished_before(const evidence& e, const repeat_data& d) {
    double n = 0;
    for_each_repeat(e, [&](const repeat_data& other) {
        if (other.index > d.index || &other == &d) return;
        for (const record& r : other.records) n += r.status != request_status::ok && r.sent_ns > 0;
    });
    return n;
}

/// Whether a server began anew since the repeat before, and was not asked to.
inline bool began_anew(const evidence& e, const repeat_data& d) {
    const auto& arm = d.arm == run_arm::baseline ? e.baseline : e.candidate;
    const repeat_data* before = nullptr;
    for (const repeat_data& other : arm)
        if (other.index < d.index && (!before || other.index > before->index)) before = &other;
    const bool was_started = !std::isnan(d.startup_s) || !std::isnan(d.first_answer_s);
    if (!before || was_started || before->server.readings.empty() || d.server.readings.empty())
        return false;
    const double was = before->server.readings.back().began;
    const double is = d.server.readings.front().began;
    const bool is_one = history_of(d.server) == page_history::one_process &&
                        history_of(before->server) == page_history::one_process;
    return is_one && !std::isnan(was) && !std::isnan(is) && was != is &&
           may_have_begun_in(before->server, is);
}

/// Why a repeat is no evidence by the cross-check, nothing where it is.
inline cause cross_check_fault(const evidence& e, const repeat_data& d) {
    const double number = d.index + 1;
    if (is_hurt(d)) return {};  // it may begin anew, and others may have been asked for it
    if (began_anew(e, d)) return {because::restarted_before, {number}};
    if (history_of(d.server) == page_history::restarted) return {because::restarted_in, {number}};
    if (!is_comparable(d) || is_a_part(d)) return {};
    const cross_check c = cross_check_of(d, unfinished_before(e, d));
    if (!is_another_load(c)) return {};
    return {because::served_others, {number, c.requests_reported, c.sent}};
}

/// A page on which most of what we sent is not is another server's, or one of several.
inline cause fault_of_page(const repeat_data& d) {
    const cross_check c = cross_check_of(d);
    const double number = d.index + 1;
    if (c.requests_reported < 0.9 * c.finished)
        return {because::others_requests, {c.requests_reported, c.finished, number}};
    if (c.tokens_reported < 0.9 * c.tokens)
        return {because::others_tokens, {c.tokens_reported, c.tokens, number}};
    return {};
}
/// Why the server metrics do not support an objective, nothing where they do.
inline cause server_metrics_fault(const evidence& e, const verdict_numbers& v) {
    const slo& s = v.what;
    // What was read of a largest value is its least: what is beyond the limit is so for certain.
    const verdict certain = s.at_most ? verdict::fail : verdict::pass;
    const bool needs_all = s.what.kind == statistic_kind::max &&
                           !(s.factor == 0 && v.outcome == certain);
    const auto reported = [](const std::string& text, const repeat_data& d) {
        cause c = with_text(because::metrics_reported, text);
        c.numbers = {static_cast<double>(d.index + 1)};
        return c;
    };
    for (const auto* arm : arms_of(e, s))
        for (const repeat_data& d : *arm) {
            cause why = reported(why_no_server_value(s.what, d), d);
            if (!why) why = fault_of_page(d);
            if (!why && needs_all) why = reported(what_is_unknown(s.what, d), d);
            if (why) return of_server(std::move(why), arm == &e.baseline);
        }
    return {};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
