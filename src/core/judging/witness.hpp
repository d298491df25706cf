// the server as a witness of our own numbers
// What its page counts in the time of a repeat is held against what we sent and received.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/dialects/server_names.hpp"
#include "core/metric/table.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_values.hpp"
#include "core/measured/server_word.hpp"
#include "core/judging/evidence.hpp"

#include <algorithm>  // max
#include <cmath>  // fabs, round
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What we did in a repeat, and what the server says that it did meanwhile; NaN: it does not say.
struct cross_check {
    double sent = 0, finished = 0;         // our requests: all, and those that came to their end
    double prompt_tokens = 0, tokens = 0;  // of these, where all of them tell
    double requests_told = not_a_number, prompt_tokens_told = not_a_number,
           tokens_told = not_a_number;
    double unfinished_before = 0;  // ours of earlier repeats, which it may have finished since
    bool is_made = false;
};

inline bool may_be_held_against(const repeat_facts& d) {
    return d.server.has_both_ends && d.server.readings.size() >= 2 &&
           history_of(d.server) == page_history::one_process;
}
inline double sent_requests(const repeat_data& d) {
    double n = 0;
    for (const record& r : d.records)
        if (r.sent_ns > 0) n += 1 + r.resends;
    return n;
}
/// Others have sent the rest of the load: only all together can be held against a page.
inline bool is_a_part(const repeat_data& d) {
    return d.ranks.size() == 1 && d.ranks.front().count > 1;
}
inline cross_check cross_check_of(const repeat_data& d, double unfinished_before = 0) {
    cross_check c;
    c.unfinished_before = unfinished_before;
    c.sent = sent_requests(d);
    for (const record& r : d.records) {
        if (r.status != request_status::ok) continue;
        ++c.finished;
        c.prompt_tokens += r.prompt_tokens > 0 ? r.prompt_tokens : not_a_number;
        c.tokens += r.token_source == token_origin::usage ? r.output_tokens : not_a_number;
    }
    if (!may_be_held_against(d) || is_a_part(d)) return c;
    const reading_span s = *whole_span(d.server);
    c.requests_told = s.change(server_quantity::requests_done);
    c.prompt_tokens_told = s.change(server_quantity::prompt_tokens);
    c.tokens_told = s.change(server_quantity::generation_tokens);
    c.is_made = c.requests_told == c.requests_told || c.tokens_told == c.tokens_told;
    return c;
}

/// Some servers count each request once for each of several processes: so often exactly, which
/// somebody else's requests would not be.
inline bool is_multiple(double told, double ours) {
    const double times = ours > 0 ? told / ours : 0;
    return ours >= 10 && times >= 2 && times == std::round(times);
}
inline bool differs(double told, double ours) {
    return told == told && ours == ours && ours > 0 && std::fabs(told / ours - 1) > 0.02;
}
/// Requests that were somebody else's. Our own are counted on the safe side: what failed may have
/// been finished by the server all the same, and what an earlier repeat gave up as well.
inline double foreign_requests(const cross_check& c) {
    if (!(c.requests_told > c.sent + c.unfinished_before)) return 0;
    if (is_multiple(c.requests_told, c.finished)) return 0;
    return c.requests_told - c.sent - c.unfinished_before;
}
/// One or two short ones, as a probe of somebody's liveness, do not make it another load.
inline bool is_another_load(const cross_check& c) {
    const double foreign = foreign_requests(c);
    const bool some = foreign > 0;
    return foreign > std::max(1.0, 0.01 * c.sent) ||
           (some && ((c.tokens > 0 && c.tokens_told > 1.02 * c.tokens) ||
                     c.prompt_tokens_told > 1.02 * c.prompt_tokens));
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

/// Whether a server began anew since the repeat before, and was not told to.
inline bool began_anew(const evidence& e, const repeat_data& d) {
    const auto& arm = d.arm == run_arm::baseline ? e.baseline : e.candidate;
    const repeat_data* before = nullptr;
    for (const repeat_data& other : arm)
        if (other.index < d.index && (!before || other.index > before->index)) before = &other;
    const bool was_started = d.startup_s == d.startup_s;
    if (!before || was_started || before->server.readings.empty() || d.server.readings.empty())
        return false;
    const double was = before->server.readings.back().began;
    const double is = d.server.readings.front().began;
    const bool is_one = history_of(d.server) == page_history::one_process &&
                        history_of(before->server) == page_history::one_process;
    return is_one && was == was && is == is && was != is && may_have_begun_in(before->server, is);
}

/// Why a repeat is no evidence by the server's own word, "" where it is.
inline std::string witness_against(const evidence& e, const repeat_data& d) {
    if (began_anew(e, d))
        return printed("it restarted before repeat %d, or another one answers at its address: the "
                       "counters on its page began anew",
                       d.index + 1);
    if (history_of(d.server) == page_history::restarted)
        return printed("it restarted in repeat %d, or another one answers at its address: the "
                       "counters on its page began anew",
                       d.index + 1);
    if (!may_be_held_against(d) || is_a_part(d)) return {};
    const cross_check c = cross_check_of(d, unfinished_before(e, d));
    if (!is_another_load(c)) return {};
    return printed("it served others too: in repeat %d its page counts %.0f finished requests, "
                   "ours were %.0f",
                   d.index + 1, c.requests_told, c.sent);
}

/// What a page and we count differently and nobody is to blame for, "" where nothing.
inline std::string difference_text(const cross_check& c) {
    std::string t;
    const auto add = [&](const std::string& words) { t += (t.empty() ? "" : "; ") + words; };
    if (const double foreign = foreign_requests(c); foreign > 0)
        add(printed("%.0f request%s of somebody else", foreign, foreign == 1 ? "" : "s"));
    if (is_multiple(c.requests_told, c.finished))
        add(printed("it counts each request %.0f times", c.requests_told / c.finished));
    const bool all_finished = c.finished >= 0.99 * c.sent;
    if (all_finished && differs(c.tokens_told, c.tokens))
        add(printed("it counts %.0f generated tokens, the usage in its answers %.0f",
                    c.tokens_told, c.tokens));
    if (all_finished && differs(c.prompt_tokens_told, c.prompt_tokens))
        add(printed("it counts %.0f prompt tokens, the usage in its answers %.0f",
                    c.prompt_tokens_told, c.prompt_tokens));
    return t;
}

/// A page on which most of what we sent is not is another server's, or one of several.
inline std::string why_another_page(const repeat_data& d) {
    const cross_check c = cross_check_of(d);
    if (c.requests_told < 0.9 * c.finished)
        return printed("its page counts %.0f finished requests, ours were %.0f: it is another "
                       "server's, or that of one of several",
                       c.requests_told, c.finished);
    if (c.tokens_told < 0.9 * c.tokens)
        return printed("its page counts %.0f generated tokens, ours were %.0f: it is another "
                       "server's, or that of one of several",
                       c.tokens_told, c.tokens);
    return {};
}
/// Why the server's own word does not support an objective, "" where it does.
inline std::string server_word_fault(const evidence& e, const slo_verdict& v) {
    const slo& s = v.what;
    // What was read of a largest value is its least: what is beyond the limit is so for certain.
    const verdict certain = s.at_most ? verdict::fail : verdict::pass;
    const bool needs_all = s.what.kind == statistic_kind::max &&
                           !(s.factor == 0 && v.outcome == certain);
    for (const auto* arm : {&e.candidate, &e.baseline}) {
        const bool is_baseline = arm == &e.baseline;
        if (is_baseline && s.factor == 0) break;
        for (const repeat_data& d : *arm)
            for (const std::string& why :
                 {why_no_server_value(s.what, d), why_another_page(d),
                  needs_all ? what_is_unknown(s.what, d) : std::string()})
                if (!why.empty())
                    return std::string(is_baseline ? "baseline server: " : "server: ") + why +
                           printed(" (repeat %d)", d.index + 1);
    }
    return {};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
