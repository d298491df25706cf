// What must hold of the records of a repeat, whatever was drawn: there is one of each request, its
// stamps are the server's own times but for what the network and the client add, and nothing waits
// for ever.
#pragma once

#include "simulated/drawn.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

namespace virtual_world {
using llmbench::detail::vector;

inline std::string ms(long long ns) { return printed("%.3f ms", static_cast<double>(ns) * 1e-6); }

inline void check_records(const drawn& d, const repeat& r, checked& c) {
    std::set<std::string> ids;
    for (const record& x : r.seen.records) ids.insert(str(x.id));
    const auto planned = static_cast<std::size_t>(static_cast<long long>(d.what.requests));
    c.must(ids.size() == r.seen.records.size(), "two records have one id");
    // Users who are interrupted have asked for no more; an open loop knows what it did not send.
    const bool has_all = d.interrupted_after_s == 0;
    c.must(has_all ? ids.size() == planned : ids.size() <= planned,
           printed("%zu of %zu requests have a record", ids.size(), planned));
    long long resends = 0;
    for (const record& x : r.seen.records) {
        const bool is_ok = x.status == request_status::ok;
        const std::string id = str(x.id);
        resends += x.resends;
        c.must(!is_ok || (x.http_status == 200 && x.output_tokens > 0), id + " is ok, and empty");
        c.must(is_ok || !x.error.empty(), id + " failed and does not say why");
        c.must(!is_ok || (x.scheduled_ns <= x.sent_ns && x.sent_ns <= x.first_token_ns &&
                          x.first_token_ns <= x.last_token_ns && x.last_token_ns <= x.end_ns),
               id + ": its times are out of order");
    }
    c.must(resends == r.seen.resends, "a repeat's resends are not those of its records");
}

/// What a client that did not run may not know of: what is every machine's, and a sleep that lasted as
/// long as it might have.
inline long long unseen_ns(const drawn& d) {
    if (d.of.pauses == 0) return 0;
    return alertness::noticed_ns + alertness::tick_ns;
}

/// Where the kernel says when bytes came, a client that did not run knows all but what it read
/// together. Else it knows what it can.
inline bool is_stamped(const repeat_data& d) {
    return is_mostly_stamped(d.stamped_reads, d.reads);
}
/// How much later than it came each event of an answer may be stamped, but for the way: what was
/// read together may have come since what was read before, if that is told, and within what nobody
/// notices if not.
inline vector<long long> lateness_of(const repeat_data& d, std::size_t i,
                                     const vector<long long>& events, bool are_cut) {
    const record& x = d.records[i];
    vector<long long> late;
    for (std::size_t k = 0, first = 0; k < events.size(); ++k) {
        if (k > 0 && events[k] != events[k - 1]) first = k;
        const bool is_last = !are_cut && (k + 1 == events.size() || events[k + 1] != events[k]);
        const long long since = first > 0             ? events[k] - events[first - 1]
                                : x.first_early_ns > 0 ? x.first_early_ns
                                                       : alertness::noticed_ns;
        late.push_back(is_last              ? 0
                       : x.unknown_gaps > 0 ? since + alertness::noticed_ns
                                            : alertness::noticed_ns);
    }
    return late;
}

/// When the client says that each event of content came, to the microsecond.
inline vector<long long> events_of(const repeat_data& d, std::size_t i) {
    const record& x = d.records[i];
    vector<long long> all{x.first_token_ns};
    for (std::size_t k = 0; k < gap_count(x); ++k)
        all.push_back(all.back() + d.gaps[d.gap_offsets[i] + k] * 1000ll);
    return all;
}
inline vector<double> gaps_between(const vector<long long>& times) {
    vector<double> gaps;
    for (std::size_t k = 1; k < times.size(); ++k)
        gaps.push_back(static_cast<double>(times[k] - times[k - 1]));
    std::sort(gaps.begin(), gaps.end(), std::greater<>());
    return gaps;
}
inline vector<double> gaps_read(const repeat_data& d, std::size_t i, timing_bound how) {
    vector<double> gaps;
    for_each_gap(d, i, how, [&](std::uint32_t us) { gaps.push_back(us * 1e3); });
    std::sort(gaps.begin(), gaps.end(), std::greater<>());
    return gaps;
}

/// Each stamp of each event, and so each gap between two, is the server's but for what was added
/// on the way; and what verdicts take for the worst and for the best reading of it are so.
inline void check_stamps_of(const drawn& d, const repeat& r, std::size_t i, checked& c) {
    const record& x = r.seen.records[i];
    const std::string id = str(x.id);
    const auto* const e = r.served_as(id);
    c.must(e, id + " was answered, and the server does not know of it");
    if (!e) return;
    constexpr long long rounded = 1000;
    const bool stamped = is_stamped(r.seen);
    const long long added = r.met.longest_way_ns + (stamped ? 0 : unseen_ns(d));
    const auto within = [&](const std::string& what, long long stamp, long long truth,
                            long long leeway, long long late = 0) {
        const long long delay =
            stamped ? late : static_cast<long long>(r.seen.lost_fraction * r.took_s * 1e9);
        const long long most = added + delay + leeway;
        c.must(stamp - truth >= -leeway && stamp - truth <= most,
               id + ": its " + what + " was stamped " + ms(stamp - truth) +
                   " after it was written, and may be late by " + ms(most));
    };
    within("end", x.end_ns, e->done_ns, 0);
    c.must(x.output_tokens == e->output_tokens, id + ": its tokens are not the server's");
    const vector<long long> events = events_of(r.seen, i);
    c.must(events.size() == e->writes.size(), id + ": its events are not the server's");
    if (events.size() != e->writes.size()) return;
    const vector<long long> late = lateness_of(r.seen, i, events, d.of.cut + d.of.bytewise > 0);
    within("first token", x.first_token_ns, e->first_write_ns, 0, late.front());
    within("last token", x.last_token_ns, e->last_write_ns, 0, late.back());
    for (std::size_t k = 0; k < events.size(); ++k)
        within(printed("event %zu", k + 1), events[k], e->writes[k], rounded, late[k]);
    if (!stamped && r.seen.lost_fraction > 0) return;  // what is lost is told of the whole repeat alone
    const bool all_known = x.unknown_gaps == 0 || !stamped;

    const auto slack =
        static_cast<double>(added + 2 * rounded + (stamped ? alertness::noticed_ns : 0));
    const vector<double> truth = gaps_between(e->writes);
    const vector<double> worst = gaps_read(r.seen, i, timing_bound::pessimistic);
    const vector<double> best = gaps_read(r.seen, i, timing_bound::optimistic);
    for (std::size_t k = 0; all_known && k < truth.size(); ++k)
        c.must(best[k] <= truth[k] + slack && worst[k] >= truth[k] - slack,
               id + printed(": its gap %zu by length was %g ms; read at best it is %g, at worst %g",
                            k + 1, truth[k] * 1e-6, best[k] * 1e-6, worst[k] * 1e-6));
    const auto to_first = static_cast<double>(e->first_write_ns - x.scheduled_ns);
    const auto pace = static_cast<double>(e->last_write_ns - e->first_write_ns);
    const request_times low = times_of(r.seen, x, timing_bound::optimistic);
    const request_times high = times_of(r.seen, x, timing_bound::pessimistic);
    c.must(static_cast<double>(low.to_first) <= to_first + slack &&
               static_cast<double>(high.to_first) >= to_first - slack,
           id + ": its first token came outside of what the best and the worst reading say");
    c.must(static_cast<double>(low.first_to_last) <= pace + slack &&
               static_cast<double>(high.first_to_last) >= pace - slack,
           id + ": its pace was outside of what the best and the worst reading say");
}
inline void check_stamps(const drawn& d, const repeat& r, checked& c) {
    for (std::size_t i = 0; i < r.seen.records.size(); ++i)
        if (r.seen.records[i].status == request_status::ok) check_stamps_of(d, r, i, c);
}

/// Limits hold for the time in which the client ran.
inline void check_time(const drawn& d, const repeat& r, checked& c) {
    const double n = static_cast<double>(static_cast<long long>(d.what.requests));
    const double total_s = d.what.limits.total.seconds();
    const double sends_s =
        r.what.sent->is_open_loop() ? 10 + 3 * n / r.what.sent->arrivals.rate : n * (total_s + 1);
    const double max_s = sends_s + (*d.what.limits.drain).seconds() + total_s +
                          static_cast<double>(r.met.paused_ns) * 1e-9;
    c.must(r.took_s <= max_s, printed("it took %g s of %g s", r.took_s, max_s));
}

}  // namespace virtual_world
