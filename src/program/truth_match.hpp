// which request of a file is which request of the log
#pragma once

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/wire/http.hpp"
#include "program/others/imported_run.hpp"
#include "program/truth_log.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>      // fabs
#include <cstddef>
#include <map>
#include <set>
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
/// An id without the number at its end: "bench-7437f32d-" of a row of ids of one run. "" if it has
/// none.
inline std::string row_of(const std::string& id) {
    const std::size_t at = id.find_last_not_of("0123456789") + 1;
    return at < id.size() ? id.substr(0, at) : "";
}
/// Times of pairs that one run cannot have, as of the log of another run with the same ids.
inline void check_times(const vector<matched_pair>& pairs, const true_requests& truth) {
    constexpr double most_s = 60;  // from a send until the server had it, and of two clocks
    double least = infinity, most = -infinity;
    for (const matched_pair& p : pairs) {
        if (!p.measured || !p.truth || p.measured->order_ns == 0) continue;
        const double s = 1e-9 * static_cast<double>(p.truth->order_ns - p.measured->order_ns);
        least = std::min(least, s);
        most = std::max(most, s);
    }
    if (most - least > most_s)
        refuse({printed("the ids of the files are in %s, and the times are not: requests arrived "
                        "%s to %s after their sends; is it the log of another run?",
                        truth.file.c_str(), time_text(least).c_str(), time_text(most).c_str())});
}
/// The requests of the log that the files have not: those of a row of ids of which they have some,
/// and those between the first and the last that they have. Where ids have no numbers, those behind
/// the last one belong to the run, too, until a pause that is twice as long as any within it. The
/// rest is of other runs.
inline void add_absent(matched_requests& m, const true_requests& truth,
                       const std::set<const timed_request*>& paired) {
    std::map<std::string, std::size_t> rows;  // of ids that the files have
    long long first = 0, last = 0, pause = 0;
    for (const timed_request& t : truth.requests) {
        if (!paired.contains(&t)) continue;
        if (const std::string row = row_of(str(t.what.id)); !row.empty()) ++rows[row];
        if (first == 0) first = t.order_ns;
        else pause = std::max(pause, t.order_ns - last);
        last = t.order_ns;
    }
    // Random ids may end in a digit, so rows have several.
    const bool are_numbered = detail::any_of(rows, [](const auto& row) { return row.second > 1; });
    for (const timed_request& t : truth.requests) {
        if (paired.contains(&t)) continue;
        const std::string id = str(t.what.id);
        const auto row = rows.find(row_of(id));
        const bool is_of_row = row != rows.end() && row->second > 1;
        const bool is_inside = t.order_ns > first && t.order_ns < last;
        const bool follows = !are_numbered && !id.empty() && t.order_ns >= last &&
                             t.order_ns - last <= 2 * pause;
        if (follows) last = t.order_ns;
        // What llmbench asks before a load is in no file.
        const bool is_check = is_id_of_check(id);
        if (!is_check && (is_of_row || is_inside || follows)) m.pairs.push_back({nullptr, &t});
        else ++m.others;
    }
}
/// Pairs of equal ids.
inline matched_requests matched_by_id(const vector<timed_request>& measured,
                                      const true_requests& truth) {
    std::unordered_map<std::string, const timed_request*> known;
    std::unordered_map<std::string, bool> twice;
    for (const timed_request& t : truth.requests)
        if (!t.what.id.empty() && !known.emplace(str(t.what.id), &t).second)
            twice[str(t.what.id)] = true;
    matched_requests m;
    std::set<const timed_request*> paired;
    for (const timed_request& r : measured) {
        const std::string id = str(r.what.id);
        if (twice.contains(id))
            refuse({truth.file, ": it has the id ", printable(id, 80),
                    " twice, so requests cannot be matched by id: start a new log for each run, "
                    "or give --match order"});
        matched_pair p{&r};
        if (const auto found = known.find(id); found != known.end()) {
            p.truth = found->second;
            if (!paired.insert(p.truth).second)
                refuse({"the files have the id ", printable(id, 80),
                        " twice: name each file once"});
        }
        m.pairs.push_back(p);
    }
    add_absent(m, truth, paired);
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
/// Rows of a table without starts may stand in the order in which the requests ended, which is that
/// of their sends only if it is that of the log.
inline void check_order_of_rows(const request_pointers& sent, const request_pointers& arrived,
                                const std::string& file) {
    const bool has_starts = detail::all_of(sent, [](const timed_request* t) {
        return !t->is_row || t->start_s.has_value();
    });
    for (std::size_t i = 1; !has_starts && i < arrived.size(); ++i)
        if (arrived[i]->what.end_ns < arrived[i - 1]->what.end_ns)
            refuse({"the rows may stand in the order in which their requests ended, which in ", file,
                    " is another one than that of their sends: add a column start, or id "
                    "(X-Request-Id), or compare sorted values by --match ranks"});
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
    check_order_of_rows(sent, arrived, truth.file);
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
    if (how == "order" || !has_known) return matched_by_order(measured, truth, skipped);
    matched_requests m = matched_by_id(measured, truth);
    check_times(m.pairs, truth);
    return m;
}

}  // namespace llmbench_program
