// which request of a file is which request of the log
#pragma once

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "program/others/imported_run.hpp"
#include "program/truth_log.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>      // fabs
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>  // move

namespace llmbench_program {

enum class matching : unsigned char { by_id, by_order, by_rank };
inline constexpr const char* matching_names[] = {"id", "order", "ranks"};

/// One request; null: that side lacks it.
struct matched_pair {
    const timed_request* measured = nullptr;
    const timed_request* truth = nullptr;
    bool is_complete() const {
        return measured && truth && measured->is_complete() && truth->is_complete();
    }
};
struct matched_requests {
    matching by = matching::by_id;
    vector<matched_pair> pairs{};
    std::size_t others = 0;  // of the log, before and after those of the files
};

/// vLLM's clients number the ids that they send ("bench-7437f32d-0"), and list the requests of their
/// file in this order. Gives the requests of a file these ids, if the log has one such row of them.
inline void number_ids(vector<imported_request>& of_file, const true_requests& truth) {
    std::map<std::string, std::size_t> rows;  // by what stands before the number
    for (const timed_request& t : truth.requests) {
        const std::string id = str(t.what.id);
        const std::size_t at = id.find_last_not_of("0123456789") + 1;
        const auto n = parsed_number<std::size_t>(std::string_view(id).substr(at));
        if (n && *n < of_file.size()) ++rows[id.substr(0, at)];
    }
    const std::string* prefix = nullptr;
    for (const auto& [before, n] : rows) {
        if (n != of_file.size()) continue;
        if (prefix) return;
        prefix = &before;
    }
    if (!prefix || detail::any_of(of_file, [](const auto& r) { return !r.id.empty(); }))
        return;
    for (std::size_t i = 0; i < of_file.size(); ++i)
        of_file[i].id = *prefix + std::to_string(i);
}
/// Pairs of equal ids. What the log has between the first and the last of them and the files have
/// not is missing there; the rest is of other runs.
inline matched_requests matched_by_id(const vector<timed_request>& measured,
                                      const true_requests& truth) {
    std::unordered_map<std::string, const timed_request*> known;
    for (const timed_request& t : truth.requests) {
        if (t.what.id.empty()) continue;
        if (!known.emplace(str(t.what.id), &t).second)
            refuse({truth.file, ": it has the id ", printable(str(t.what.id), 80),
                    " twice, so requests cannot be matched by id: start a new log for each run, "
                    "or give --match order"});
    }
    matched_requests m;
    long long first = 0, last = 0;
    for (const timed_request& r : measured) {
        const auto found = known.find(str(r.what.id));
        matched_pair p{&r};
        if (found != known.end()) {
            p.truth = found->second;
            if (!p.truth)
                refuse({"the files have the id ", printable(str(r.what.id), 80),
                        " twice: name each file once"});
            found->second = nullptr;
            first = first == 0 ? p.truth->order_ns : std::min(first, p.truth->order_ns);
            last = std::max(last, p.truth->order_ns);
        }
        m.pairs.push_back(p);
    }
    for (const timed_request& t : truth.requests) {
        const auto left = known.find(str(t.what.id));
        if (!t.what.id.empty() && (left == known.end() || left->second == nullptr)) continue;
        if (t.order_ns > first && t.order_ns < last) m.pairs.push_back({nullptr, &t});
        else ++m.others;
    }
    return m;
}

using request_pointers = vector<const timed_request*>;
inline request_pointers complete_ones(const request_pointers& all) {
    request_pointers some;
    for (const timed_request* t : all)
        if (t->is_complete()) some.push_back(t);
    return some;
}
/// The requests of the log since the first send of the files, if their clock is known: that of the
/// log, or the time of day.
inline request_pointers since_first_send(request_pointers& measured, const true_requests& truth,
                                         long long skipped) {
    constexpr long long time_of_day_ns =
        1000000000000000000;                 // since 2001; no machine is up so long
    constexpr long long apart_ns = 2000000;  // of two clocks, at most
    long long first = 0;
    bool has_clock = true;
    for (const timed_request* t : measured) {
        has_clock = has_clock && t->order_ns != 0;
        first = first == 0 ? t->order_ns : std::min(first, t->order_ns);
    }
    if (has_clock) {
        if (first > time_of_day_ns) first -= truth.day_ahead_ns;
        sort_by(measured, [](const timed_request* t) { return t->order_ns; });
    }
    request_pointers all;
    for (const timed_request& t : truth.requests)
        if (skipped-- <= 0 && (!has_clock || t.order_ns >= first - apart_ns)) all.push_back(&t);
    return all;
}
/// By how much the true ttft of requests differ that may have arrived in another order than they
/// were sent in, in seconds: of 99 in 100 requests not more.
inline double doubt_of_order_s(const vector<matched_pair>& pairs) {
    constexpr long long near_ns = 20000000;
    const auto ttft = [](const matched_pair& p) {
        return 1e-9 * static_cast<double>(p.truth->what.first_token_ns - p.truth->what.sent_ns);
    };
    vector<double> doubts;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        double doubt = 0;
        for (std::size_t k = i + 1; k < pairs.size() && k < i + 1000 &&
                                    pairs[k].truth->order_ns - pairs[i].truth->order_ns < near_ns;
             ++k)
            doubt = std::max(doubt, std::fabs(ttft(pairs[k]) - ttft(pairs[i])));
        doubts.push_back(doubt);
    }
    std::sort(doubts.begin(), doubts.end());
    return doubts.empty() ? 0 : doubts[(99 * (doubts.size() - 1)) / 100];
}
/// Pairs in the order of sends and of arrivals.
inline matched_requests matched_by_order(const vector<timed_request>& measured,
                                         const true_requests& truth, long long skipped) {
    request_pointers sent;
    for (const timed_request& r : measured) sent.push_back(&r);
    request_pointers arrived = since_first_send(sent, truth, skipped);
    matched_requests m{.by = matching::by_order};
    m.others = truth.requests.size() - arrived.size();
    if (sent.size() != arrived.size()) {
        const request_pointers a = complete_ones(sent), b = complete_ones(arrived);
        if (a.size() != b.size() || a.empty())
            refuse(
                {printed("the files have %zu requests and %s has %zu, and no id tells which is "
                         "which: log one run alone, leave out its first ones by --skip N, or "
                         "compare sorted values by --match ranks",
                         sent.size(), truth.file.c_str(), arrived.size())});
        m.others += arrived.size() - b.size();
        sent = a;
        arrived = b;
    }
    for (std::size_t i = 0; i < sent.size(); ++i) m.pairs.push_back({sent[i], arrived[i]});
    vector<matched_pair> complete;
    for (const matched_pair& p : m.pairs)
        if (p.is_complete() && p.truth->what.first_token_ns != 0) complete.push_back(p);
    constexpr double allowed_s = 0.0002;
    if (const double doubt = doubt_of_order_s(complete); doubt > allowed_s)
        refuse(
            {printed("the order of requests is ambiguous: those that arrived within 20 ms of "
                     "each other have true ttft that differ by %s: let the client send "
                     "X-Request-Id, or compare sorted values by --match ranks",
                     time_text(doubt).c_str())});
    return m;
}
/// All complete requests of each side, without pairs.
inline matched_requests unmatched(const vector<timed_request>& measured, const true_requests& truth,
                                  long long skipped) {
    matched_requests m{.by = matching::by_rank};
    request_pointers sent;
    for (const timed_request& r : measured) sent.push_back(&r);
    const request_pointers arrived = since_first_send(sent, truth, skipped);
    m.others = truth.requests.size() - arrived.size();
    for (const timed_request* r : sent) m.pairs.push_back({r, nullptr});
    for (const timed_request* t : arrived) m.pairs.push_back({nullptr, t});
    return m;
}
/// `how`: "" tries ids, then the order.
inline matched_requests matched(const vector<timed_request>& measured, const true_requests& truth,
                                const std::string& how, long long skipped) {
    if (measured.empty()) refuse({"the files have no request"});
    if (truth.requests.empty()) refuse({truth.file, ": it has no request"});
    if (how == "ranks") return unmatched(measured, truth, skipped);
    std::unordered_map<std::string, bool> ids;
    for (const timed_request& t : truth.requests) ids[str(t.what.id)] = !t.what.id.empty();
    const bool has_known = detail::any_of(measured, [&](const timed_request& r) {
        return !r.what.id.empty() && ids.contains(str(r.what.id));
    });
    if (how == "id" && !has_known)
        refuse({"--match is \"id\", and no id of the files is in ", truth.file});
    return how == "id" || (how.empty() && has_known) ? matched_by_id(measured, truth)
                                                     : matched_by_order(measured, truth, skipped);
}

}  // namespace llmbench_program
