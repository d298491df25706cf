// the measurements of one repeat, and lists of repeats
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/client_counts.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/settling.hpp"

#include <algorithm>  // max, partition_point
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint32_t, uint64_t
#include <initializer_list>
#include <map>
#include <memory>  // shared_ptr
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The source of arrival times.
enum class arrival_stamps : unsigned char { read, kernel };
inline const char* to_string(arrival_stamps s) {
    return s == arrival_stamps::kernel ? "kernel" : "read";
}

inline constexpr std::uint64_t not_listed = ~0ull;

/// Requests planned within so many seconds have no rate: 2 % of it are the 10 ms that a send may be
/// late.
inline constexpr double batch_s = 0.5;

/// Why a load was tried: by a search, or for an objective.
enum class probe_of : unsigned char { search, asked };
inline const char* to_string(probe_of p) { return p == probe_of::search ? "search" : "asked"; }

/// One step of a side task.
struct side_step {
    std::string what{};
    long long due_ns = 0, from_ns = 0, to_ns = 0;
    std::string failed{};  // why, "" if it did not fail
};
/// All steps of one task in a repeat, in order.
struct side_task_seen {
    std::string name{};
    bool may_fail = false;
    double excuses_s = 0;  // failures so long after a step are exempt
    double recovery_s = not_a_number;  // from its first step, if asked for
    vector<side_step> steps{};
};

/// Where the candidate's answers differ from the baseline's in a pair.
struct answer_differences {
    vector<double> places{};  // characters before each first difference
    double tokens = 0;             // before differences, and of equal answers
    long long without_place = 0;   // differing answers whose texts were not kept
    void add(const answer_differences& o) {
        places.insert(places.end(), o.places.begin(), o.places.end());
        tokens += o.tokens;
        without_place += o.without_place;
    }
};
inline constexpr std::size_t max_shown_bytes = 2000;
/// An answer's text; if it differs from the baseline's, also that text and the characters before.
struct kept_text {
    std::size_t index = 0;
    std::string said{}, expected{};
    double same_characters = not_a_number;
};

/// What requests should cost, in order of planned sends.
struct foreseen_work {
    vector<double> prompt{}, cached{};  // tokens
    std::string unknown{};  // why it is not known, "" if it is or nobody asks
};

/// Of a probe.
struct probe_facts {
    double load = 0;  // requests/s or users; 0: not a search
    probe_of part = probe_of::asked;
    std::string disturbed{};  // why it does not count: the client affected it
};
/// At once: how fast a server answered the same requests as alone.
struct speed_facts {
    double speed_at_once = not_a_number;  // as a part of that alone; NaN: not tried
    double speed_error = not_a_number;    // the standard error of its logarithm
};
/// For readers of result.json: of the completed requests of a repeat, those that are not as asked
/// for. Verdicts count them among the requests of their own.
struct odd_counts {
    long long short_outputs = 0, long_outputs = 0, short_prompts = 0, equal_openings = 0;
    long long shared_tokens = -1;  // -1: no cache hits reported
};
/// One repeat of one variant, without its requests.
struct repeat_facts : client_counts, probe_facts, speed_facts {
    run_variant variant = run_variant::candidate;
    int index = 0;
    vector<std::string> labels{};  // of the parts of the workload
    vector<side_task_seen> side_tasks{};
    time_interval window{};  // the steady part; without it there are no rates
    double startup_s = not_a_number, first_answer_s = not_a_number;
    long long resends = 0;        // of requests whose kept connection closed without an answer
    double asked_rate = 0, achieved_rate = 0;
    double cpu_utilization = 0;
    std::string target_gone{};  // why the server went away
    bool interrupted = false;
    bool decided_early = false;  // so that the load ended, and its window with it
    bool cut_short = false;     // by the time budget, so it does not count
    bool gaps_counted = false;  // as histograms, because there were too many
    vector<double> thread_cpu_utilization{};
    double loop_lag_p99 = 0, loop_lag_max = 0, stamp_lag_p99 = 0, stamp_lag_max = 0;  // seconds
    long long unknown_gaps = 0;  // of completed measured requests read late
    double lost_fraction = 0;    // of time, by the worst thread without kernel stamps
    server_metrics server{};  // during the repeat
    vector<rank_part> ranks{};  // where several programs sent the load
    double usd_per_hour = 0;  // of the server, 0: unknown
    bool plays_out = false;   // unfinished sessions were played to their ends
    bool ends_open = false;   // of files: what had not ended with the run is no failure
    warmup_seen warmup{};     // if it ends when the server is stable
    answer_differences differences{};  // of compared answers of a candidate
    foreseen_work foreseen{};  // where work is counted
};

/// A stretch of a load before which the server had nothing to do, and the delay of its latest send.
struct late_stretch {
    long long from_ns = 0, latest_ns = 0;
};
/// A repeat with its requests, before any verdict.
struct repeat_data : repeat_facts {
    vector<record> records{};              // in order of planned sends
    gap_list gaps{};                            // of all records, unless counted
    vector<std::uint64_t> gap_offsets{};   // of each record into gaps, or `not_listed`
    gap_counts pooled_gaps{};                   // if counted: completed measured requests
    vector<std::uint32_t> longest_gaps{};  // if counted: per record, microseconds
    vector<late_stretch> late_stretches{};  // in order, if many sends were late
    double late_part = 0;          // the client's delay, as a fraction of request times
    lag_counts loop_lag{};   // delay of the ticks of the client's threads
    lag_counts stamp_lag{};  // of each read: from wake-up to stamp
    vector<kept_text> texts{};  // whole, until compared with the other variant
    vector<kept_text> shown{};  // masked excerpts that reports may show
    vector<kept_text> bodies{};  // of requests, until their work is foreseen
};

inline std::size_t gap_count(const record& r) {
    return r.events > 1 ? static_cast<std::size_t>(r.events - 1) : 0;
}

inline bool is_measured(const record& r) { return r.phase == run_phase::measure; }
/// A cancelled request neither failed nor measures the server.
inline bool has_left(const record& r) { return r.status == request_status::left; }
inline bool has_failed(const record& r) {
    return r.status != request_status::ok && !has_left(r);
}

/// Selects the requests of a statistic, or only those planned in a part of the time.
class selects {
public:
    selects(const selection& s, const repeat_facts& d, const time_interval* when = nullptr)
        : when_(when), first_turn_(s.first_turn - 1), last_turn_(s.last_turn), depth_(s.depth),
          by_label_(!s.label.empty()), by_time_(!s.during.empty()) {
        for (std::size_t i = 0; by_label_ && i < d.labels.size(); ++i)
            if (d.labels[i] == s.label.c_str()) part_ = static_cast<int>(i);
        for (const side_task_seen& task : d.side_tasks)
            if (by_time_ && task.name == s.during.c_str()) steps_ = task.steps;
    }
    selects(const statistic_data& what, const repeat_facts& d, const time_interval* when = nullptr)
        : selects(what.which, d, when) {}
    /// Includes the warm-up.
    bool has(const record& r) const {
        return r.turn >= first_turn_ && (last_turn_ == 0 || r.turn < last_turn_) &&
               (depth_ == -1 || r.depth == depth_) && (!by_label_ || r.part == part_) &&
               (!by_time_ || is_during(r)) && (!when_ || when_->holds(r.scheduled_ns));
    }
    bool operator()(const record& r) const {
        return is_measured(r) && !r.exempt && !has_left(r) && has(r);
    }
    bool completed(const record& r) const {
        return r.status == request_status::ok && (*this)(r);
    }

private:
    /// Steps of a task follow each other, so only the last one begun before the end can match.
    bool is_during(const record& r) const {
        const auto after = std::partition_point(
            steps_.begin(), steps_.end(),
            [&](const side_step& s) { return s.from_ns <= r.end_ns; });
        return after != steps_.begin() && (after - 1)->to_ns >= r.scheduled_ns;
    }

    const time_interval* when_;
    int first_turn_, last_turn_, depth_, part_ = -1;
    bool by_label_, by_time_;
    vector<side_step> steps_{};
};

/// Requests planned after the end of a load that was decided early do not count.
inline void leave_out_later(repeat_data& d) {
    if (!d.decided_early) return;
    for (record& r : d.records)
        if (is_measured(r) && r.scheduled_ns >= d.window.to_ns()) r.phase = run_phase::after;
}

/// What was asked, by its number: repeats and variants ask the same. Files of earlier versions tell
/// its place in the trace alone.
inline long long question_of(const record& r) {
    return r.question >= 0 ? r.question : r.conversation;
}

/// Whether it was unfinished, or not sent yet, at the end of its run, for which no server is to
/// blame: it is no error, and the worst of all times.
inline bool is_cut_off(const repeat_facts& d, const record& r) {
    if (!is_measured(r) || d.interrupted) return false;
    return (r.status == request_status::cancelled && (d.plays_out || d.ends_open)) ||
           (r.status == request_status::unsent && d.plays_out);
}
inline bool is_pooled(const record& r) { return is_measured(r) && r.status == request_status::ok; }

inline void note_unknown_gaps(repeat_data& d) {
    d.unknown_gaps = 0;
    for (const record& r : d.records)
        if (is_pooled(r)) d.unknown_gaps += r.unknown_gaps;
}

/// The number of gaps of completed measured requests.
inline std::uint64_t pooled_gap_count(const repeat_data& d, const selection& which = {}) {
    if (d.gaps_counted) return d.pooled_gaps.size();
    const selects selected(which, d);
    std::uint64_t n = 0;
    for (const record& r : d.records)
        if (selected.completed(r)) n += gap_count(r);
    return n;
}

inline bool failed_by_client(const record& r) {
    return r.status == request_status::connect &&
           std::string_view(r.error.c_str()).substr(0, client_lacks.size()) == client_lacks;
}

/// Connections refused in a row that show that a server went away, of so many requests.
inline std::size_t least_lost(std::size_t requests) {
    return std::max<std::size_t>(3, requests / 50);
}

/// Whether a request has content before this time and from then on.
inline bool spans(const record& r, long long time_ns) {
    return r.first_token_ns < time_ns && time_ns <= r.last_token_ns;
}

/// Repeats in order. They are constant once listed, so that copies and parts of a list share them
/// across threads.
class repeat_list {
public:
    using shared_repeat = std::shared_ptr<const repeat_data>;

    class iterator {
    public:
        explicit iterator(const shared_repeat* at) : at_(at) {}
        const repeat_data& operator*() const { return **at_; }
        iterator& operator++() { ++at_; return *this; }
        bool operator==(const iterator&) const = default;

    private:
        const shared_repeat* at_;
    };

    repeat_list() = default;
    repeat_list(vector<repeat_data> all) {
        for (repeat_data& d : all) push_back(std::move(d));
    }
    repeat_list(std::initializer_list<repeat_data> all)
        : repeat_list(vector<repeat_data>(all)) {}

    /// One repeat, which must outlive the list.
    static repeat_list of(const repeat_data& only) {
        repeat_list all;
        all.all_.emplace_back(shared_repeat(), &only);
        return all;
    }

    std::size_t size() const { return all_.size(); }
    bool empty() const { return all_.empty(); }
    const repeat_data& operator[](std::size_t i) const { return *all_[i]; }
    const repeat_data& front() const { return *all_.front(); }
    const repeat_data& back() const { return *all_.back(); }
    iterator begin() const { return iterator(all_.data()); }
    iterator end() const { return iterator(all_.data() + all_.size()); }

    const shared_repeat& shared(std::size_t i) const { return all_[i]; }
    /// Returns the repeats that satisfy `f`.
    template <class F>
    repeat_list those(F&& f) const {
        repeat_list part;
        for (const shared_repeat& d : all_)
            if (f(*d)) part.push_back(d);
        return part;
    }

    void push_back(repeat_data d) {
        all_.push_back(new_shared<const repeat_data>(std::move(d)));
    }
    void push_back(shared_repeat d) { all_.push_back(std::move(d)); }
    void pop_back() { all_.pop_back(); }
    void erase(std::size_t i) { all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i)); }
    void move_last_to(std::size_t i) {
        shared_repeat last = std::move(all_.back());
        all_.pop_back();
        all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(i), std::move(last));
    }
    /// Replaces a repeat by a copy that `f` has changed.
    template <class F>
    void change(std::size_t i, F&& f) {
        repeat_data d = *all_[i];
        f(d);
        all_[i] = new_shared<const repeat_data>(std::move(d));
    }

    template <class F>
    void change_last(F&& f) { change(size() - 1, f); }

private:
    vector<shared_repeat> all_{};
};

/// What was computed of repeats, once for each. One thread uses it at a time.
class known_results {
public:
    /// Keeps the results of these repeats and drops those of others.
    void keep(std::initializer_list<const repeat_list*> lists) {
        std::map<const repeat_data*, of_repeat> kept;
        for (const repeat_list* list : lists)
            for (std::size_t i = 0; i < list->size(); ++i) {
                of_repeat& one = kept[&(*list)[i]];
                one = std::move(all_[&(*list)[i]]);
                one.repeat = list->shared(i);
            }
        all_ = std::move(kept);
    }
    /// The result of this name, by `make()` at first. That of a repeat not kept is computed.
    template <class Make>
    auto get(const repeat_data& d, const std::string& name, Make&& make) {
        using shared = std::shared_ptr<const decltype(make())>;
        const auto at = all_.find(&d);
        if (at == all_.end()) return shared(new_shared<decltype(make())>(make()));
        if (const auto known = at->second.results.find(name); known != at->second.results.end())
            return std::static_pointer_cast<const decltype(make())>(known->second);
        const shared made = new_shared<decltype(make())>(make());
        at->second.results.emplace(name, made);
        return made;
    }

private:
    struct of_repeat {
        repeat_list::shared_repeat repeat{};  // so that no other gets its address
        std::map<std::string, std::shared_ptr<const void>> results{};
    };
    std::map<const repeat_data*, of_repeat> all_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
