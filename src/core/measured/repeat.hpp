// what one repeat measured
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/client_stalls.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/settling.hpp"

#include <algorithm>  // count_if, max, partition_point
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t, uint32_t
#include <string>
#include <string_view>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline void add_handshakes(handshakes_t& to, const handshakes_t& more) {
    const auto total = [](const handshakes_t& h) { return h.mean * static_cast<double>(h.count); };
    const double both = total(to) + total(more);
    to.count += more.count;
    to.mean = to.count > 0 ? both / static_cast<double>(to.count) : 0;
    to.max = std::max(to.max, more.max);
}

inline constexpr std::uint64_t not_listed = ~0ull;

/// Why a load was tried: what led to a capacity, what is to show one of its ends, what an objective
/// asks for, what is held against a baseline.
enum class probe_of : unsigned char { bracket, refine, low, high, asked, compared };
inline const char* to_string(probe_of p) {
    switch (p) {
    case probe_of::bracket: return "bracket";
    case probe_of::refine: return "refine";
    case probe_of::low: return "low end";
    case probe_of::high: return "high end";
    case probe_of::compared: return "compared";
    case probe_of::asked: break;
    }
    return "asked";
}

/// One time that something else was done to the server under the load.
struct side_step {
    std::string what{};
    long long due_ns = 0, from_ns = 0, to_ns = 0;
    std::string failed{};  // why, "" where it did not
};
/// All that one task did in a repeat, one after the other.
struct side_task_seen {
    std::string name{};
    bool may_fail = false;
    double excuses_s = 0;  // who fails within so long of a step
    double recovery_s = not_a_number;  // from its first step, where that was asked for
    std::vector<side_step> steps{};
};

/// Where the candidate's answers differ from the baseline's in a pair.
struct answer_differences {
    std::vector<double> places{};  // characters before each first difference
    double tokens = 0;             // before those, and of the answers that do not differ
    long long without_place = 0;   // answers that differ, whose texts were too many to keep
    void add(const answer_differences& o) {
        places.insert(places.end(), o.places.begin(), o.places.end());
        tokens += o.tokens;
        without_place += o.without_place;
    }
};
inline constexpr std::size_t most_shown_bytes = 2000;
/// What the answer to a request said; where it differs from the baseline's, also what that said,
/// and how many characters are the same before.
struct kept_text {
    std::size_t index = 0;
    std::string said{}, expected{};
    double same_characters = not_a_number;
};

/// One repeat of one arm as a whole: all that was seen beside its requests.
struct repeat_facts {
    run_arm arm = run_arm::candidate;
    int index = 0;
    double load = 0;  // of a probe: requests/s, or users; 0: there is one load for all repeats
    probe_of part = probe_of::asked;  // of a probe
    std::string disturbed{};  // why a probe is no evidence: the client had too great a part in it
    std::vector<std::string> labels{};  // of the parts of the workload
    std::vector<side_task_seen> beside{};  // the load
    time_interval window{};  // the steady part; nothing has a rate where it is empty
    double startup_s = not_a_number, first_answer_s = not_a_number;
    long long short_outputs = 0;  // completed requests with fewer tokens than forced
    long long long_outputs = 0;   // and with more
    long long resends = 0;        // of requests whose kept connection was closed without an answer
    long long hang_ups = 0;  // connections that the server closed right after their first answer
    bool used_once = false;  // it did so again and again: none was used twice from then on
    // Prompt tokens of the completed requests that tell how many were cached, as far as the
    // workload lets others have sent them before; -1 where no request tells.
    long long shared_tokens = -1;
    double asked_rate = 0, achieved_rate = 0;
    long long connections_opened = 0, content_events = 0, coalesced_events = 0;
    double cpu_utilization = 0;
    std::string target_gone{};  // why, where the server went away
    bool interrupted = false;
    bool cut_short = false;     // by the time budget; then it is no evidence
    bool gaps_counted = false;  // there were too many gaps to keep each one
    std::vector<double> thread_cpu_utilization{};
    double loop_lag_p99 = 0, loop_lag_max = 0, stamp_lag_p99 = 0, stamp_lag_max = 0;  // seconds
    handshakes_t handshakes_full{}, handshakes_resumed{};
    client_stalls stalls{};   // of all threads
    server_metrics server{};  // what the server reported meanwhile
    std::vector<rank_part> ranks{};  // of a load that several programs sent
    double usd_per_hour = 0;  // of its server, 0: nobody says
    bool plays_out = false;   // sessions that were under way at its end were played to theirs
    warmup_seen warmup{};     // where it was to end when the server is stable
    answer_differences differences{};  // of a candidate's answers, where they are compared
};

/// The same with its requests. Nothing is judged yet.
struct repeat_data : repeat_facts {
    std::vector<record> records{};              // in the order of their planned sends
    gap_list gaps{};                            // of all records, unless counted
    std::vector<std::uint64_t> gap_offsets{};   // of each record into gaps, or `not_listed`
    gap_counts pooled_gaps{};                   // if counted: of the completed measured requests
    std::vector<std::uint32_t> longest_gaps{};  // if counted: of each record, microseconds
    client_stalls bunched{};    // when the server had what the client had missed to send
    lag_counts loop_lag{};   // how late a client thread came to what it does every 20 ms
    lag_counts stamp_lag{};  // of each read: from the wake-up that told of its bytes to its stamp
    std::vector<kept_text> texts{};  // whole, until they are held against the other arm's
    std::vector<kept_text> shown{};  // excerpts, masked, of those that reports may show
};

inline std::size_t gap_count(const record& r) {
    return r.events > 1 ? static_cast<std::size_t>(r.events - 1) : 0;
}

inline bool is_measured(const record& r) { return r.phase == run_phase::measure; }
/// Who left is nobody whom the server failed, and nobody whose answer says how fast it is.
inline bool has_left(const record& r) { return r.status == request_status::left; }
inline bool has_failed(const record& r) {
    return r.status != request_status::ok && !has_left(r);
}

/// Which requests of a repeat a statistic is of.
class selects {
public:
    selects(const selection& s, const repeat_facts& d)
        : first_turn_(s.first_turn - 1), last_turn_(s.last_turn), depth_(s.depth),
          by_label_(!s.label.empty()), by_time_(!s.during.empty()) {
        for (std::size_t i = 0; by_label_ && i < d.labels.size(); ++i)
            if (d.labels[i] == s.label.c_str()) part_ = static_cast<int>(i);
        for (const side_task_seen& task : d.beside)
            if (by_time_ && task.name == s.during.c_str()) steps_ = task.steps;
    }
    selects(const statistic_data& what, const repeat_facts& d) : selects(what.which, d) {
        with_left_ = what.metric == metric_id::error_rate;
    }
    /// Warming up too.
    bool has(const record& r) const {
        return r.turn >= first_turn_ && (last_turn_ == 0 || r.turn < last_turn_) &&
               (depth_ == -1 || r.depth == depth_) && (!by_label_ || r.part == part_) &&
               (!by_time_ || is_during(r));
    }
    bool operator()(const record& r) const {
        return is_measured(r) && !r.excused && (with_left_ || !has_left(r)) && has(r);
    }
    bool completed(const record& r) const {
        return r.status == request_status::ok && (*this)(r);
    }

private:
    /// A task's steps follow each other: if any, the last one begun before the end is in it.
    bool is_during(const record& r) const {
        const auto after = std::partition_point(
            steps_.begin(), steps_.end(),
            [&](const side_step& s) { return s.from_ns <= r.end_ns; });
        return after != steps_.begin() && (after - 1)->to_ns >= r.scheduled_ns;
    }

    int first_turn_, last_turn_, depth_, part_ = -1;
    bool by_label_, by_time_, with_left_ = false;
    std::vector<side_step> steps_{};
};

inline bool is_pooled(const record& r) { return is_measured(r) && r.status == request_status::ok; }

inline long long selected_requests(const statistic_data& what, const repeat_data& d) {
    return std::count_if(d.records.begin(), d.records.end(), selects(what, d));
}

/// How many gaps there are of completed measured requests.
inline std::uint64_t pooled_gap_count(const repeat_data& d, const selection& which = {}) {
    if (d.gaps_counted) return d.pooled_gaps.size();
    const selects selected(which, d);
    std::uint64_t n = 0;
    for (const record& r : d.records)
        if (selected.completed(r)) n += gap_count(r);
    return n;
}

/// How the error of a request begins that the client itself had no means for.
inline constexpr std::string_view client_lacks = "client: ";
inline bool failed_for_want(const record& r) {
    return r.status == request_status::connect &&
           std::string_view(r.error.c_str()).substr(0, client_lacks.size()) == client_lacks;
}

/// A request with content before this time and from then on.
inline bool spans(const record& r, long long time_ns) {
    return r.first_token_ns < time_ns && time_ns <= r.last_token_ns;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
