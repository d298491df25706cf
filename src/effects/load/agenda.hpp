// what one client thread has to send, and when
// Uses no clock and no sockets: callers pass the time.
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/shard.hpp"
#include "effects/system/clock.hpp"
#include "effects/load/load_target.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // max, min
#include <atomic>  // memory_order_relaxed
#include <cstdint>  // uint8_t, uint32_t, uint64_t
#include <deque>
#include <functional>  // greater
#include <map>
#include <optional>
#include <queue>  // users by the time they are ready
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A request to be sent now.
struct due_request {
    planned_request what{};
    // the earliest time at which it could have been sent, as far as is known
    long long possible_ns = 0;
};

/// One thread's share of the load: planned times of an open loop, users of a closed one, requests
/// that wait for max_in_flight, and conversations. Times are steady-clock ns.
class agenda {
public:
    /// The agenda of thread `index` of `count`.
    agenda(const load_order& order, load_state& shared, std::size_t index, std::size_t count)
        : order_(order),
          sent_(*order.what->sent),
          shared_(shared),
          shard_(shard_of_thread(order.what->shard, index, count)),
          next_open_(shard_.index) {
        const auto cap = static_cast<std::size_t>(sent_.arrivals.max_in_flight);
        cap_ = cap > 0 ? std::max(1ll, static_cast<long long>(shard_.of(cap))) : 0;
    }

    /// Called when the start of the load is known.
    void begin() {
        for (std::size_t u = shard_.index; u < users_of(sent_); u += shard_.count)
            users_.push({.at_ns = shared_.start_ns + ns_of(user_begins_s(sent_, u)),
                         .user = static_cast<int>(u)});
    }

    // ---- what is due

    /// Returns the next planned time, 0 if there is none.
    long long next_due() const {
        if (is_over_) return 0;
        const long long turn = users_.empty() ? 0 : users_.top().at_ns;
        const long long planned = next_planned();
        return turn == 0 || planned == 0 ? std::max(turn, planned) : std::min(turn, planned);
    }
    bool is_due(long long now_ns) const {
        const long long due = next_due();
        return due != 0 && due <= now_ns && !stopped_;
    }
    /// Returns the next request that is due and need not wait for another to end.
    std::optional<due_request> take_due(long long now_ns) {
        while (is_due(now_ns)) {
            const long long due = next_due();
            planned_request next{0, due, -1};
            const bool is_start = due == next_planned();
            if (is_start) {
                next.index = place_of_send(next_open_);
                next_open_ += shard_.count;
            } else {
                const ready_user u = users_.top();
                users_.pop();
                next = {u.user < 0 ? u.turn : place_for(u, now_ns), due, u.user, u.warms_caches};
                if (next.index >= order_.last) continue;  // this user is done
                if (u.turn != new_conversation) {
                    if (u.user >= 0) return due_request{next, due};
                } else if (begin_session(next)) {
                    return due_request{next, due};
                } else {
                    continue;
                }
            }
            if (is_start && !begin_session(next)) continue;
            if (cap_ == 0 || in_flight_ + promised_ < cap_) return due_request{next, due};
            waiting_.push_back(next);
        }
        return std::nullopt;
    }
    /// Returns the next waiting request that another's end has released.
    std::optional<due_request> take_promised(long long now_ns) {
        if (promised_ == 0 || stopped_ || is_over_) return std::nullopt;
        --promised_;
        const planned_request next = waiting_.front();
        waiting_.pop_front();
        return due_request{next, std::max(next.scheduled_ns, now_ns)};
    }
    /// Upper bound for the requests due at one time, which are built before.
    std::size_t due_together() const {
        if (const std::size_t users = shard_.of(users_of(sent_)); users > 0)
            return users;
        const bool as_batch = sent_.arrivals.kind == arrival_kind::all_at_once;
        return as_batch ? shard_.of(order_.send_at.size()) : 1;
    }
    /// Returns the trace index of the next conversation it begins (or of the one `later` further
    /// on), `order.last` if there is none. In a closed loop it reserves the index, unless so few
    /// are left that threads take them as their users come.
    std::size_t place_ahead(std::size_t later) {
        if (!order_.send_at.empty()) {
            pass_what_is_left_out();
            const std::size_t open = next_open_ + later * shard_.count;
            return open < order_.send_at.size() ? place_of_send(open) : order_.last;
        }
        // Users that begin in the middle of a session do not send its first requests.
        if (plays_sessions(sent_) && sent_.requests == 0) return order_.last;
        while (taken_.size() <= later) {
            const std::size_t next = shared_.next.load();
            if (next >= order_.last || (order_.last - next) / order_.step() < 2 * order_.users())
                return order_.last;
            taken_.push_back(shared_.next.fetch_add(order_.step()));
        }
        return std::min(taken_[later], order_.last);
    }
    /// A next send exists, and needs no other request to end.
    bool expects_to_send() const { return next_due() != 0 && (cap_ == 0 || in_flight_ < cap_); }

    // ---- what becomes of it

    void on_dispatched(const planned_request& w, long long now_ns) {
        if (phase_of(order_, shared_, w) == run_phase::measure) {
            long long none = 0;
            shared_.measured_from.compare_exchange_strong(none, now_ns);
        } else if (shared_.settling.is_on()) {
            shared_.settling.on_sent(w.index, w.scheduled_ns);
        }
        ++in_flight_;
        shared_.sent.fetch_add(1, std::memory_order_relaxed);
    }
    /// Called for each dispatched request. `words`: the answer, if goes_on().
    void on_ended(const planned_request& w, request_status status, long long end_ns,
                  const std::string& words) {
        keep_answer(w.index, status, words);
        --in_flight_;
        if (stopped_ || is_over_) return;
        // A failed answer that comes at once must not make a user send a flood.
        const double least_s = w.user >= 0 && status != request_status::ok ? 0.01 : 0;
        const bool is_over = released_by(w, end_ns, least_s);
        if (w.user >= 0) {
            if (is_over) users_.push({end_ns + ns_of(std::max(pause_s(w.index), least_s)), w.user});
            return;
        }
        if (static_cast<long long>(waiting_.size()) > promised_)
            ++promised_;  // not sent now: this connection is not free yet
    }
    /// Nothing more is sent; what is in flight ends by itself.
    void send_no_more(long long now_ns) {
        if (std::exchange(is_over_, true)) return;
        exhaust(now_ns);
        users_ = {};
        waiting_.clear();
        promised_ = 0;
    }
    /// Ends all sending. Returns the waiting requests and the coming steps of sessions that were to
    /// be completed, which are incomplete without them.
    std::deque<planned_request> stop() {
        stopped_ = true;
        std::deque<planned_request> left = std::exchange(waiting_, {});
        if (!sent_.plays_out) return left;
        if (sent_.duration_s > 0)  // users within a session have not ended
            exhaust(shared_.measured_from.load() + ns_of(sent_.duration_s));
        for (; !users_.empty(); users_.pop()) {
            const ready_user& u = users_.top();
            if (u.turn != new_conversation)
                left.push_back({u.turn, u.at_ns, u.user, u.warms_caches});
        }
        return left;
    }

    // ---- conversations

    /// Whether a later turn follows, which needs this one's answer, or its id.
    bool goes_on(std::size_t index) const {
        const trace_position at = place_of(sent_, index);
        return sent_.stride > 1 && (!plays_sessions(sent_) || sent_.common.server_history) &&
               at.turn + 1 < turns_of(sent_, at.conversation) && index + 1 < order_.last;
    }
    /// Answers to the earlier turns of this conversation.
    const vector<std::string>& answers_before(std::size_t index) const {
        static const vector<std::string> none;
        const auto found = answers_.find(index / sent_.stride);
        return found == answers_.end() ? none : found->second;
    }

    // ---- the end

    /// The planned time of the first request that is not sent yet, or `now_ns` if that is earlier.
    long long all_sent_until(long long now_ns) const {
        long long until = now_ns;
        if (const long long due = next_due(); due != 0) until = std::min(until, due);
        for (const planned_request& w : waiting_) until = std::min(until, w.scheduled_ns);
        return until;
    }
    bool stopped() const { return stopped_; }
    bool nothing_left() const {
        return next_due() == 0 && in_flight_ == 0 && waiting_.empty() && promised_ == 0;
    }
    /// The last send, or the start of the last session, has passed: limits.drain counts from here.
    bool sending_is_over(long long now_ns) const {
        if (is_over_) return true;
        const bool users_are_over =
            shared_.exhausted_at.load() != 0 || (sent_.plays_out && is_out_of_time(now_ns));
        if (users_of(sent_) > 0 && !users_are_over) return false;
        if (order_.send_at.empty()) return true;
        return (sent_.plays_out ? next_planned() : next_due()) == 0 && waiting_.empty();
    }

private:
    /// A user who begins a new conversation, or continues one.
    static constexpr std::size_t new_conversation = static_cast<std::size_t>(-1);
    struct ready_user {
        long long at_ns = 0;
        int user = -1;
        std::size_t turn = new_conversation;  // its trace index
        bool warms_caches = false;                  // caches: it belongs before the load
        bool operator>(const ready_user& o) const {
            if (at_ns != o.at_ns) return at_ns > o.at_ns;
            return user != o.user ? user > o.user : turn > o.turn;
        }
    };

    /// After a warm-up that ended early its rest is skipped, and later requests are sent earlier.
    void pass_what_is_left_out() const {
        while (shared_.settling.is_on() && is_warming(next_open_) &&
               order_.send_at[next_open_] >= shared_.settling.ends_at())
            next_open_ += shard_.count;
    }
    long long next_planned() const {
        pass_what_is_left_out();
        if (next_open_ >= order_.send_at.size()) return 0;
        const bool comes_forward = shared_.settling.is_on() && !is_warming(next_open_);
        return shared_.start_ns + order_.send_at[next_open_] -
               (comes_forward ? shared_.settling.earlier_by() : 0);
    }
    bool is_warming(std::size_t open) const {
        return open < order_.send_at.size() && place_of_send(open) < order_.warmup;
    }
    std::size_t place_of_send(std::size_t open) const {
        return order_.first + open * sent_.stride;
    }
    /// The next trace index of a closed-loop user: `order.last` if time or trace are used up.
    std::size_t place_for(const ready_user& u, long long now_ns) {
        if (sent_.plays_out && u.turn != new_conversation) return u.turn;
        const long long from = shared_.measured_from.load();
        const bool out_of_time = is_out_of_time(u.at_ns);
        const std::size_t place = out_of_time                  ? order_.last
                                  : u.turn != new_conversation ? u.turn
                                                               : take_place();
        const bool enough = order_.max_measured > 0 && place < order_.last &&
                            phase_of(order_, shared_, {place, u.at_ns}) == run_phase::measure &&
                            shared_.measured.fetch_add(1) >= order_.max_measured;
        if (place < order_.last && !enough) return place;
        exhaust(out_of_time ? from + ns_of(sent_.duration_s) : now_ns);
        return order_.last;
    }
    /// A user has no next request, the first one at this time.
    void exhaust(long long at_ns) {
        long long none = 0;
        shared_.exhausted_at.compare_exchange_strong(none, at_ns);
    }
    bool is_out_of_time(long long at_ns) const {
        const long long from = shared_.measured_from.load();
        return sent_.duration_s > 0 && from > 0 && at_ns - from >= ns_of(sent_.duration_s);
    }
    std::size_t take_place() {
        if (taken_.empty()) return shared_.next.fetch_add(order_.step());
        const std::size_t first = taken_.front();
        taken_.pop_front();
        return first;
    }

    /// The pause of a user after the answer to a request.
    double pause_s(std::size_t index) const {
        return drawn_seconds(sent_.arrivals.think, sent_.seed, streams::pauses + index);
    }

    // ---- sessions

    /// A session that has begun, and its waiting steps.
    struct live_session {
        vector<std::uint8_t> waits_for{};      // by step: how many others it waits for
        std::map<std::size_t, long long> latest{};  // of waiting steps: the latest end before them
        std::size_t left = 0;                       // steps that have not ended
        long long start_ns = 0;
    };
    std::size_t steps_from(std::size_t first) const {
        return std::min(turns_of(sent_, first / sent_.stride), order_.last - first);
    }
    /// Called for its first request. Returns false if the session is due later.
    bool begin_session(planned_request& w) {
        if (sent_.stride == 1) return true;
        const std::size_t first = w.index, steps = steps_from(first);
        live_session s{vector<std::uint8_t>(steps), {}, steps, w.scheduled_ns};
        vector<std::size_t> free;
        const std::size_t begun = steps_before(w, steps);
        s.left -= begun;
        for (std::size_t i = begun; i < steps; ++i) {
            for (const std::uint32_t a : step_of(sent_, first + i).after)
                s.waits_for[i] = static_cast<std::uint8_t>(s.waits_for[i] + (a >= begun));
            if (s.waits_for[i] == 0) free.push_back(i);
        }
        live_.insert_or_assign(first, std::move(s));
        bool is_due = false;
        for (const std::size_t i : free) {
            const graph_step step = step_of(sent_, first + i);
            const long long now_ns = w.scheduled_ns,
                            at_ns = begun > 0 ? now_ns : due_ns(step, now_ns, now_ns, step.wait_s);
            if (i == 0 && at_ns <= now_ns) is_due = true;
            else users_.push({at_ns, w.user, first + i, begun > 0});
        }
        return is_due;
    }
    /// `ready_ns`: the last end of the steps before, or the start of the session.
    static long long due_ns(const graph_step& step, long long start_ns, long long ready_ns,
                            double wait_s) {
        return std::min(std::max(ready_ns + ns_of(wait_s), start_ns + ns_of(step.at_s)),
                        ready_ns + ns_of(std::max(wait_s, step.max_wait_s)));
    }
    /// Steps that a user completed before the load: users begin in the middle of a session, so that
    /// the first minutes are not all young sessions. If requests are counted, all are sent.
    std::size_t steps_before(const planned_request& w, std::size_t steps) {
        if (!plays_sessions(sent_) || w.user < 0 || sent_.requests > 0) return 0;
        const auto user = static_cast<std::size_t>(w.user);
        if (has_begun_.size() <= user) has_begun_.resize(user + 1);
        if (std::exchange(has_begun_[user], 1) != 0) return 0;
        generator random(sent_.seed, streams::turns + 1 + static_cast<std::uint64_t>(w.user));
        return random.below(steps);
    }
    /// Queues the steps that waited only for this one. Returns whether the session is over.
    bool released_by(const planned_request& w, long long end_ns, double least_s) {
        if (sent_.stride == 1) return true;
        const std::size_t first = w.index - w.index % sent_.stride;
        const auto found = live_.find(first);
        if (found == live_.end()) return true;
        live_session& s = found->second;
        for (const std::uint32_t next : step_of(sent_, w.index).next) {
            if (next >= s.waits_for.size()) continue;
            const auto latest = s.latest.emplace(next, end_ns).first;
            latest->second = std::max(latest->second, end_ns);
            if (--s.waits_for[next] > 0) continue;
            const graph_step step = step_of(sent_, first + next);
            const bool has_own =
                plays_sessions(sent_) || step.wait_s > 0 || step.depth > 0 || w.user < 0;
            const double wait_s = has_own ? step.wait_s : pause_s(w.index);
            users_.push({due_ns(step, s.start_ns, latest->second, std::max(wait_s, least_s)),
                         w.user, first + next});
            s.latest.erase(latest);
        }
        if (--s.left > 0) return false;
        live_.erase(found);
        answers_.erase(first / sent_.stride);
        return true;
    }
    /// Answers of failed requests are not fed back: the conversation goes on without them. Those of
    /// subagents come in any order.
    void keep_answer(std::size_t index, request_status status, const std::string& words) {
        if (!goes_on(index)) return;
        vector<std::string>& answers = answers_[index / sent_.stride];
        const std::size_t turn = index % sent_.stride;
        if (answers.size() <= turn) answers.resize(turn + 1);
        if (status == request_status::ok) answers[turn] = words;
    }

    const load_order& order_;
    const planned_traffic& sent_;
    load_state& shared_;
    const load_shard shard_;
    mutable std::size_t next_open_;  // of order.send_at; skips what is left out
    std::deque<std::size_t> taken_{};  // trace indices of coming conversations, closed loop
    std::priority_queue<ready_user, vector<ready_user>, std::greater<>> users_{};
    std::map<std::size_t, vector<std::string>> answers_{};  // of unfinished conversations
    std::map<std::size_t, live_session> live_{};  // by their first indices
    vector<std::uint8_t> has_begun_{};       // by user: 1 after the first session began
    std::deque<planned_request> waiting_{};
    long long in_flight_ = 0, cap_ = 0;
    long long promised_ = 0;  // waiting requests that others' ends have released
    bool stopped_ = false, is_over_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
