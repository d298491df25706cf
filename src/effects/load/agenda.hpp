// what one client thread has to send, and when
// No clock and no sockets: whoever asks says what time it is.
#pragma once

#include "api/result.hpp"
#include "core/base/random.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/shard.hpp"
#include "effects/system/clock.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // max, min
#include <atomic>  // memory_order_relaxed
#include <cstdint>  // uint8_t, uint32_t, uint64_t
#include <deque>
#include <functional>  // greater
#include <map>
#include <optional>
#include <queue>  // users by the time they are ready
#include <set>
#include <string>
#include <utility>  // exchange, move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A request to be sent now.
struct due_request {
    planned_request what{};
    long long possible_ns = 0;  // when it could have been sent at the earliest, for all we know
};

/// One thread's share of the load: the planned times of an open loop, the users of a closed one,
/// what waits because of max_in_flight, and conversations that go on. Times are steady-clock ns.
class agenda {
public:
    /// Of thread `index` of `count`.
    agenda(const load_order& order, load_state& shared, std::size_t index, std::size_t count)
        : order_(order),
          sent_(*order.what->sent),
          shared_(shared),
          shard_(shard_of_thread(order.what->shard, index, count)),
          next_open_(shard_.index),
          lines_(order.lines()) {
        for (std::size_t u = shard_.index; u < users_of(sent_); u += shard_.count)
            ++lines_[user_of(sent_, u).which].users;
        const auto cap = static_cast<std::size_t>(sent_.arrivals.max_in_flight);
        cap_ = cap > 0 ? std::max(1ll, static_cast<long long>(shard_.of(cap))) : 0;
    }

    /// The start of the load is known by now.
    void begin() {
        if (sent_.own_arrivals && order_.measured_by_time)  // of all parts at one time
            shared_.measured_from = shared_.start_ns + order_.measured_from_ns;
        for (std::size_t u = shard_.index; u < users_of(sent_); u += shard_.count)
            users_.push({.at_ns = shared_.start_ns + ns_of(user_of(sent_, u).begins_s()),
                         .user = static_cast<int>(u)});
    }

    // ---- what is due

    /// The next planned time, 0 where nothing is planned any more.
    long long next_due() const {
        const long long turn = users_.empty() ? 0 : users_.top().at_ns;
        const long long planned = next_planned();
        return turn == 0 || planned == 0 ? std::max(turn, planned) : std::min(turn, planned);
    }
    bool is_due(long long now_ns) const {
        const long long due = next_due();
        return due != 0 && due <= now_ns && !stopped_;
    }
    /// The next request whose time has come and that need not wait for another to end.
    std::optional<due_request> take_due(long long now_ns) {
        while (is_due(now_ns)) {
            const long long due = next_due();
            planned_request next{0, due, -1};
            const bool is_start = due == next_planned();
            if (is_start) {
                next.index = place_of_send(next_open_);
                next_open_ += shard_.count;
                if (open_built_ > 0) --open_built_;
            } else {
                const ready_user u = users_.top();
                users_.pop();
                next = {u.user < 0 ? u.turn : place_for(u, now_ns), due, u.user, u.primes};
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
    /// The next one that had to wait, where another has ended for it.
    std::optional<due_request> take_promised(long long now_ns) {
        if (promised_ == 0 || stopped_) return std::nullopt;
        --promised_;
        const planned_request next = waiting_.front();
        waiting_.pop_front();
        return due_request{next, std::max(next.scheduled_ns, now_ns)};
    }
    /// How many requests it may have to send at one time: worth being built before.
    std::size_t due_together() const {
        if (const std::size_t users = shard_.of(users_of(sent_)); users > 0)
            return users + !order_.send_at.empty();
        const bool at_once = sent_.arrivals.kind == arrival_kind::all_at_once;
        return at_once ? shard_.of(order_.send_at.size()) : 1;
    }
    /// The place in the trace of the next conversation that it begins, or of one so many later;
    /// `order.last` where there is none. In a closed loop that place is its own from then on,
    /// unless so few are left that threads take them as their users come.
    std::size_t place_ahead(std::size_t later) {
        if (sent_.own_arrivals) return place_of_parts_ahead();
        if (!order_.send_at.empty()) {
            pass_what_is_left_out();
            const std::size_t open = next_open_ + later * shard_.count;
            return open < order_.send_at.size() ? place_of_send(open) : order_.last;
        }
        std::deque<std::size_t>& taken = lines_[0].taken;
        // Users that begin in the middle of a session do not send what it begins with.
        if (plays_sessions(sent_) && sent_.requests == 0) return order_.last;
        while (taken.size() <= later) {
            const std::size_t next = shared_.next[0].load();
            if (next >= order_.last || (order_.last - next) / order_.step() < 2 * order_.users())
                return order_.last;
            taken.push_back(shared_.next[0].fetch_add(order_.step()));
        }
        return std::min(taken[later], order_.last);
    }
    /// There is a next send, and no other request must end for it.
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
    /// Of each one that was dispatched. `words`: the answer, where goes_on().
    void on_ended(const planned_request& w, request_status status, long long end_ns,
                  const std::string& words) {
        keep_answer(w.index, status, words);
        --in_flight_;
        if (stopped_) return;
        // A failed answer that comes at once must not turn a user into a flood.
        const double least_s = w.user >= 0 && status != request_status::ok ? 0.01 : 0;
        const bool is_over = released_by(w, end_ns, least_s);
        if (w.user >= 0) {
            if (is_over) users_.push({end_ns + ns_of(std::max(pause_s(w.index), least_s)), w.user});
            return;
        }
        if (static_cast<long long>(waiting_.size()) > promised_)
            ++promised_;  // not sent here and now: this connection is not free yet
    }
    /// Nothing is due from now on. Returns what had to wait until now, and the steps to come of
    /// sessions that were to be played out: none of them is whole without them.
    std::deque<planned_request> stop() {
        stopped_ = true;
        std::deque<planned_request> left = std::exchange(waiting_, {});
        if (!sent_.plays_out) return left;
        long long none = 0;
        if (sent_.duration_s > 0)  // users that are all within a session have not come to an end
            shared_.exhausted_at.compare_exchange_strong(
                none, shared_.measured_from.load() + ns_of(sent_.duration_s));
        for (; !users_.empty(); users_.pop()) {
            const ready_user& u = users_.top();
            if (u.turn != new_conversation) left.push_back({u.turn, u.at_ns, u.user, u.primes});
        }
        return left;
    }

    // ---- conversations

    /// There is a turn behind this one, which takes the answer to it along.
    bool goes_on(std::size_t index) const {
        const trace_place at = place_of(sent_, index);
        return sent_.stride > 1 && !plays_sessions(sent_) &&
               at.turn + 1 < turns_of(sent_, at.conversation) && index + 1 < order_.last;
    }
    /// To the earlier turns of this one's conversation.
    const std::vector<std::string>& answers_before(std::size_t index) const {
        static const std::vector<std::string> none;
        const auto found = answers_.find(index / sent_.stride);
        return found == answers_.end() ? none : found->second;
    }

    // ---- the end

    bool stopped() const { return stopped_; }
    bool nothing_left() const {
        return next_due() == 0 && in_flight_ == 0 && waiting_.empty() && promised_ == 0;
    }
    /// The last send is behind us, or the start of the last session: limits.drain counts from here.
    bool sending_is_over(long long now_ns) const {
        const bool users_are_over =
            shared_.exhausted_at.load() != 0 || (sent_.plays_out && is_out_of_time(now_ns));
        if (users_of(sent_) > 0 && !users_are_over) return false;
        if (order_.send_at.empty()) return true;
        return (sent_.plays_out ? next_planned() : next_due()) == 0 && waiting_.empty();
    }

private:
    /// A user to whom a new conversation is due, or whoever has a later turn of one.
    static constexpr std::size_t new_conversation = static_cast<std::size_t>(-1);
    struct ready_user {
        long long at_ns = 0;
        int user = -1;
        std::size_t turn = new_conversation;  // its place in the trace
        bool primes = false;                  // the caches: it was before the load began
        bool operator>(const ready_user& o) const {
            if (at_ns != o.at_ns) return at_ns > o.at_ns;
            return user != o.user ? user > o.user : turn > o.turn;
        }
    };

    /// A warm-up that has ended early leaves the rest of it out, and what follows comes forward.
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
        return order_.first + (order_.begins.empty() ? open : order_.begins[open]) * sent_.stride;
    }
    /// Of parts with arrivals of their own: one of the places that may be due together, each once.
    std::size_t place_of_parts_ahead() {
        if (open_built_ == 0 && next_open_ < order_.send_at.size()) {
            ++open_built_;
            return place_of_send(next_open_);
        }
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            line& of = lines_[i];
            if (of.built >= of.users) continue;
            if (of.taken.size() <= of.built)
                of.taken.push_back(shared_.next[i].fetch_add(order_.step()));
            return of.taken[of.built++];
        }
        return order_.last;
    }
    /// What a user of a closed loop sends next: `order.last` where time or trace have run out.
    std::size_t place_for(const ready_user& u, long long now_ns) {
        if (sent_.plays_out && u.turn != new_conversation) return u.turn;
        const long long from = shared_.measured_from.load();
        const bool out_of_time = is_out_of_time(u.at_ns);
        const std::size_t place = out_of_time                  ? order_.last
                                  : u.turn != new_conversation ? u.turn
                                                               : take_place(u.user);
        const bool enough = order_.most_measured > 0 && place < order_.last &&
                            phase_of(order_, shared_, {place, u.at_ns}) == run_phase::measure &&
                            shared_.measured.fetch_add(1) >= order_.most_measured;
        if (place < order_.last && !enough) return place;
        long long none = 0;
        shared_.exhausted_at.compare_exchange_strong(
            none, out_of_time ? from + ns_of(sent_.duration_s) : now_ns);
        return order_.last;
    }
    bool is_out_of_time(long long at_ns) const {
        const long long from = shared_.measured_from.load();
        return sent_.duration_s > 0 && from > 0 && at_ns - from >= ns_of(sent_.duration_s);
    }
    std::size_t take_place(int user) {
        const std::size_t which = user_of(sent_, static_cast<std::size_t>(user)).which;
        line& of = lines_[which];
        if (of.taken.empty()) return shared_.next[which].fetch_add(order_.step());
        const std::size_t first = of.taken.front();
        of.taken.pop_front();
        if (of.built > 0) --of.built;
        return first;
    }

    /// Of a user, behind the answer on a place.
    double pause_s(std::size_t index) const {
        const arrival_data& a =
            sent_.own_arrivals ? own_place_of(sent_, index).part.arrivals : sent_.arrivals;
        return drawn_seconds(a.think, sent_.seed, streams::pauses + index);
    }

    // ---- sessions

    /// A session that was begun: what its steps still wait for.
    struct live_session {
        std::vector<std::uint8_t> waits_for{};      // by step: so many others
        std::map<std::size_t, long long> latest{};  // of steps that still wait: an end before them
        std::size_t left = 0;                       // steps that have not ended
        long long start_ns = 0;
    };
    std::size_t steps_from(std::size_t first) const {
        return std::min(turns_of(sent_, first / sent_.stride), order_.last - first);
    }
    /// Of the request that begins it. False where that is due later itself.
    bool begin_session(planned_request& w) {
        if (sent_.stride == 1) return true;
        const std::size_t first = w.index, steps = steps_from(first);
        live_session s{std::vector<std::uint8_t>(steps), {}, steps, w.scheduled_ns};
        std::vector<std::size_t> free;
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
            const double wait_s = begun > 0 ? 0 : step_of(sent_, first + i).wait_s;
            if (i == 0 && wait_s <= 0) is_due = true;
            else users_.push({w.scheduled_ns + ns_of(wait_s), w.user, first + i, begun > 0});
        }
        return is_due;
    }
    /// Steps that a user was through when the load began: users begin in the middle of a session,
    /// so that the first minutes are not those of young ones. Where requests are counted, all are
    /// sent.
    std::size_t steps_before(const planned_request& w, std::size_t steps) {
        if (!plays_sessions(sent_) || w.user < 0 || sent_.requests > 0) return 0;
        if (!has_begun_.insert(w.user).second) return 0;
        generator random(sent_.seed, streams::turns + 1 + static_cast<std::uint64_t>(w.user));
        return random.below(steps);
    }
    /// Puts what a step has held back alone in line. Whether its session is over.
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
            users_.push({std::max(latest->second + ns_of(std::max(wait_s, least_s)),
                                  s.start_ns + ns_of(step.at_s)),
                         w.user, first + next});
            s.latest.erase(latest);
        }
        if (--s.left > 0) return false;
        live_.erase(found);
        return true;
    }
    /// What came of a failed request is not fed back: the conversation goes on without it.
    void keep_answer(std::size_t index, request_status status, const std::string& words) {
        if (sent_.stride == 1 || plays_sessions(sent_)) return;
        const std::size_t conversation = index / sent_.stride;
        if (!goes_on(index)) {
            answers_.erase(conversation);
            return;
        }
        std::vector<std::string>& answers = answers_[conversation];
        answers.resize(index % sent_.stride + 1);
        if (status == request_status::ok) answers.back() = words;
    }

    const load_order& order_;
    const planned_traffic& sent_;
    load_state& shared_;
    const load_shard shard_;
    mutable std::size_t next_open_;  // of order.send_at; moves past what is left out
    std::size_t open_built_ = 0;     // of those to come, where parts have their own arrivals
    /// Places of conversations to come, in a closed loop: of one part, where parts have their own
    /// arrivals.
    struct line {
        std::size_t users = 0;  // of this thread
        std::deque<std::size_t> taken{};
        std::size_t built = 0;  // of those, the first ones
    };
    std::vector<line> lines_;
    std::priority_queue<ready_user, std::vector<ready_user>, std::greater<>> users_{};
    std::map<std::size_t, std::vector<std::string>> answers_{};  // of conversations that go on
    std::map<std::size_t, live_session> live_{};  // by their first places
    std::set<int> has_begun_{};                   // users
    std::deque<planned_request> waiting_{};
    long long in_flight_ = 0, cap_ = 0;
    long long promised_ = 0;  // of those that wait: others have ended for them
    bool stopped_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
