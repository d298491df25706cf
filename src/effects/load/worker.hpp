// one load on one client thread
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/alertness.hpp"
#include "core/traffic/places.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/load/agenda.hpp"
#include "effects/load/client_io.hpp"
#include "effects/load/connection.hpp"
#include "effects/load/load_target.hpp"
#include "effects/load/order.hpp"
#include "effects/load/pool.hpp"
#include "effects/load/request_book.hpp"

#include <algorithm>  // find_if, max, min
#include <atomic>
#include <cmath>  // ceil
#include <deque>
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The bytes of one request of the trace, and limits on its answer.
struct built_request {
    std::string bytes{};
    asked_answer asked{};
    double cancel_after_s = 0;
};
inline built_request built(const load_order& o, const agenda& a, std::size_t index) {
    const load_target& t = *o.target;
    const request_spec r =
        request_of(*o.what, o.variant, o.number, index, a.answers_before(index), o.tokens);
    const bool events = r.stream && t.api->framed == framing::events;
    const auto line_id = [&] {
        const std::size_t first = index - index % o.what->sent->stride;
        return request_id(o.id_prefix, first + step_of(*o.what, index).line);
    };
    const std::string shared = t.session_fields.empty()
                                   ? t.fields
                                   : filled_in(t.session_fields, session_placeholder, line_id());
    const std::string fields =
        shared +
        (t.says_accept ? "" : events ? "Accept: text/event-stream\r\n" : "Accept: */*\r\n") +
        "X-Request-Id: " + request_id(o.id_prefix, index) + "\r\n" +
        (t.transport && !a.goes_on(index) ? "Connection: close\r\n" : "");
    const std::string body = request_body(*t.api, t.model, r);
    return {request_text(http_method::post, path_of(t, r), t.url.authority(), fields, body),
            asked_by(*t.api, r, body.size()), r.cancel_after_s};
}

/// One thread's share of the load: sends due requests of its agenda on its own connections, and
/// keeps the results.
class load_worker final : private request_sink {
public:
    /// Share `index` of `count`.
    load_worker(const load_order& order, load_state& shared, std::size_t index, std::size_t count,
                network& sockets)
        : order_(order),
          sent_(*order.what->sent),
          shared_(shared),
          agenda_(order, shared, index, count),
          book_(order, shared),
          answers_(order, shared),
          io_(*order.target, sent_.limits, sent_.common.stream, sent_.client.from, sockets),
          pool_(io_, *this),
          max_ready_bytes_(max_ready_bytes_of_all / count),
          settled_ns_(order.decided ? &order.decided->add_worker() : nullptr),
          is_alone_(count == 1) {}

    /// Builds requests that may be due at once, before the load. Those that exceed the memory for
    /// it are built when due, which counts as delay of the client.
    void prepare_first() {
        while (!stop_asked.load() && prepare()) {}
    }
    std::size_t ready() const { return ready_.size(); }

    /// Opens the connections of the first sends before the load, so that requests do not pay for
    /// them: at most `at_a_time` at once, and a second is waited for each batch. Missing ones are
    /// opened with their request.
    void open_connections(std::size_t wanted, std::size_t at_a_time) {
        const double batches =
            std::ceil(static_cast<double>(wanted) / static_cast<double>(at_a_time));
        const long long until =
            now_ns() + ns_of(std::min(sent_.limits.connect.seconds(), batches));
        std::size_t begun = 0;
        for (long long now = now_ns(); now < until && !stop_asked.load(); now = now_ns()) {
            const bool none_failed = pool_.idle() + pool_.opening() == begun;
            while (none_failed && begun < wanted && pool_.opening() < at_a_time) {
                pool_.open_ahead();
                ++begun;
            }
            if (pool_.opening() == 0) return;
            io_.sockets->wait(std::min(until, now + check_interval_ns));
            io_.woke_ns = now_ns();
            io_.sockets->each();
            pool_.for_each_opening([](connection& c) { c.check_opening(now_ns()); });
            pool_.drop_retired();
        }
    }

    // ---- the load, as its thread runs it

    void begin(long long now, const run_queue_wait& waits) {
        io_.waits = &waits;
        io_.alert.begin(now);
        agenda_.begin();
        next_tick_ns_ = now + alertness::tick_ns;
        next_check_ns_ = now + check_interval_ns;
        if (stop_asked.load()) cut_off("interrupted");
    }
    bool goes_on() const { return !agenda_.stopped() && !agenda_.nothing_left(); }
    /// Returns when it has something to do, if nothing comes.
    long long sleeps_until(long long now) {
        const long long due = agenda_.next_due();
        const long long ahead = sent_.client.spin && !current_environment ? spin_ns : 0;
        const long long step = tick_ns();
        while (next_tick_ns_ <= now && next_tick_ns_ < looks_at_ns_) next_tick_ns_ += step;
        next_tick_ns_ =
            is_idle(due, now) ? now + idle_tick_ns : std::min(next_tick_ns_, now + step);
        looks_at_ns_ = point_to_look_at(next_tick_ns_, step, now, shows_nothing_before(now));
        asks_ = std::exchange(io_.asks_again, false);
        const long long again = asks_ ? now + client_io::between_asks_ns : 0;
        const long long next = again > 0 ? std::min(again, looks_at_ns_) : looks_at_ns_;
        io_.alert.on_sleep(now);
        return due == 0 ? next : std::min(due - ahead, next);
    }
    /// `sockets`: those of the thread.
    void on_wake(long long now, long long slept_ns, long long until, std::size_t sockets) {
        io_.on_wake(now, slept_ns, until);
        send_until_ns_ = now + check_interval_ns;
        io_.alert.on_wake(now, until, io_.sockets->full_turns(sockets));
    }
    /// Another load's event was handled.
    void on_step(long long now) {
        io_.seen_ns = std::max(io_.seen_ns, now);
        io_.alert.on_step(now);
    }
    void end_turn() {
        if (asks_) ask_again();
        if (io_.woke_ns >= looks_at_ns_) tick(io_.woke_ns);
    }
    void prepare_next() {
        prepare();
        pool_.drop_retired();
    }
    void end() {
        io_.alert.on_sleep(now_ns());
        book_.hand_over();
        pool_.close_all();
    }
    long long seen_ns() const { return io_.seen_ns; }
    std::size_t sockets() const { return pool_.size(); }

    // ---- sends

    void send_promised(long long now) {
        while (const auto next = agenda_.take_promised(now)) dispatch(*next);
    }
    bool is_due(long long now) const { return agenda_.is_due(now); }
    /// A client that is slower than its load must still read, and hear a signal.
    bool may_send() const { return now_ns() < send_until_ns_; }
    bool send_next() {
        const auto next = agenda_.take_due(now_ns());
        if (next) dispatch(*next);
        return next.has_value();
    }
    /// Opens a connection for the next request, which then need not wait.
    void open_for_next() {
        if (pool_.idle() == 0 && pool_.opening() == 0 && agenda_.expects_to_send())
            pool_.open_ahead();
    }

    request_log& finished() { return book_.finished(); }
    answer_keeper& answers() { return answers_; }
    const client_io& io() const { return io_; }
    const lag_counts& loop_lag() const { return loop_lag_; }

private:
    static constexpr long long check_interval_ns = 20000000, spin_ns = 200000;
    static constexpr long long disturbing_ns = 20000000;
    static constexpr long long idle_tick_ns = 100000000;  // for ends of the load from outside

    // ---- one turn

    void ask_again() {
        pool_.for_each_busy([](connection& c) { c.ask_again(); });
        pool_.for_each_opening([](connection& c) { c.ask_again(); });
    }
    /// No answer can come unnoticed and no send is due before the next check, so this thread misses
    /// nothing in its sleep. A warm-up that ends early, also in another thread, moves sends
    /// forward.
    bool is_idle(long long due, long long now) const {
        return pool_.busy() == 0 && pool_.opening() == 0 && !shared_.settling.is_on() &&
               (due == 0 || due - now > check_interval_ns);
    }
    void dispatch(const due_request& next) {
        const std::size_t index = next.what.index;
        built_request r = request_at(index);
        const long long now = now_ns();
        io_.alert.on_step(now);
        some_leave_ = some_leave_ || r.cancel_after_s > 0;
        agenda_.on_dispatched(next.what, now);
        answers_.on_sent(index, r.bytes);
        r.asked.is_kept = agenda_.goes_on(index) || answer_use_at(sent_, index).is_read();
        const std::size_t conversation =
            order_.target->transport ? index / sent_.stride : connection::nobody;
        pool_.take(conversation)
            .start({next.what, std::move(r.bytes), now, now - next.possible_ns, r.asked,
                    r.cancel_after_s});
    }
    /// Building a long prompt takes longer than sending it, so one request is built in each turn,
    /// before it is due. Returns false if none is left.
    bool prepare() {
        if (shared_.settling.is_on())  // requests skipped after a short warm-up are not sent
            while (!ready_.empty() && ready_.front().index < agenda_.place_ahead(0))
                request_at(ready_.front().index);
        const bool is_enough = ready_.size() >= agenda_.due_together();
        if (is_enough || ready_bytes_ >= max_ready_bytes_) return false;
        const std::size_t index = agenda_.place_ahead(ready_.size());
        if (index == order_.last) return false;
        ready_.push_back({index, built(order_, agenda_, index)});
        ready_bytes_ += ready_.back().what.bytes.size();
        return true;
    }
    built_request request_at(std::size_t index) {
        const auto at = std::find_if(ready_.begin(), ready_.end(),
                                     [&](const ready_request& r) { return r.index == index; });
        if (at == ready_.end()) return built(order_, agenda_, index);
        built_request r = std::move(at->what);
        ready_bytes_ -= r.bytes.size();
        ready_.erase(at);
        return r;
    }

    // ---- what becomes of requests

    void on_delivered(const planned_request& w, record&& r, const answer_reader& a) override {
        const bool by_id = agenda_.goes_on(w.index) && server_has_history(w.index);
        if (by_id && r.status == request_status::ok)
            if (const char* const why = fault_of_id(a.said().id)) {
                r.status = request_status::protocol;
                r.error = why;
            }
        const request_status status = r.status;
        const long long end = r.end_ns;
        answers_.on_answer(w, r, a);
        io_.disturbed_requests += io_.alert.lost_since(r.dispatched_ns) > disturbing_ns;
        if (shared_.settling.is_on() && phase_of(order_, shared_, w) == run_phase::warmup)
            shared_.settling.on_ended(w.index, r, shared_.start_ns);
        book_.add(w, std::move(r), a.timeline().gaps_us());
        agenda_.on_ended(w, status, end, by_id ? a.said().id : a.words());
    }
    bool server_has_history(std::size_t index) const {
        return own_place_of(sent_, index).part.common.server_history;
    }
    /// Why the next turn cannot go on from this response, null if it can. Two conversations that go
    /// on from one id would get each other's history.
    const char* fault_of_id(const std::string& id) {
        if (id.empty())
            return "the response has no id that its next turn could name (server_history)";
        return shared_.ids.add(id) ? nullptr : "the response has the id of an earlier one";
    }
    void on_idle(connection& c) override { pool_.set_idle(c); }
    void on_retired(connection& c) override { pool_.retire(c); }

    // ---- limits

    /// With kernel stamps a thread wakes only for bytes, sends and limits. Otherwise it must notice
    /// itself when it did not run.
    long long tick_ns() const {
        const llmbench::limits& l = sent_.limits;
        const double shortest =
            std::min({l.connect.seconds(), l.total.seconds(), l.first_event.seconds(),
                      l.between_events.seconds(), drain_s(sent_)});
        const bool is_soon = some_leave_ || shared_.settling.is_on() || shortest < 2;
        return !io_.is_stamped() ? alertness::tick_ns : is_soon ? check_interval_ns : idle_tick_ns;
    }
    /// A tick before this time finds nothing. 0: it may find more than limits, as the end of all
    /// sends; or the events of many requests wake the thread anyway; or time is virtual, and free.
    long long shows_nothing_before(long long now) {
        const bool may_show_any =
            current_environment || !is_alone_ || tick_ns() < idle_tick_ns || settled_ns_ ||
            pool_.busy() == 0 || pool_.busy() > 8 || ready_.size() < agenda_.due_together() ||
            book_.has_unwritten() || stop_asked.load() ||
            io_.alert.is_behind() || over_since_ns_ > 0 || sent_.plays_out ||
            agenda_.sending_is_over(now);
        if (may_show_any) return 0;
        long long first = order_.deadline_ns > 0 ? order_.deadline_ns : now + ns_of(1);
        pool_.for_each_busy([&](connection& c) { first = std::min(first, c.next_limit_ns()); });
        return first;
    }
    /// At absolute times, if needed: its delay is the lag of this loop.
    void tick(long long now) {
        loop_lag_.add(now - looks_at_ns_);
        const long long step = tick_ns();
        while (next_tick_ns_ <= now) next_tick_ns_ += step;
        if (now >= next_check_ns_) check(now);
    }
    void check(long long now) {
        next_check_ns_ = now + check_interval_ns;
        book_.try_hand_over();
        if (settled_ns_) note_settled(now);
        if (stop_asked.load()) return cut_off("interrupted");
        if (shared_.is_called_off) return cut_off("the load was called off");
        if (order_.decided && order_.decided->ends_ns() != 0) return cut_off("all was decided");
        if (order_.deadline_ns > 0 && now > order_.deadline_ns) {
            if (goes_on()) shared_.is_cut_by_time = true;
            return cut_off("LLMBENCH_TIME_BUDGET is spent");
        }
        if (ends_early(order_, shared_, now)) agenda_.send_no_more(now);
        // Bytes are read before a request counts as too late. Nobody ever catches up with an
        // answer without end: lost time is forgiven for a second.
        if (io_.alert.is_behind() && ++checks_behind_ * check_interval_ns < ns_of(1)) return;
        checks_behind_ = 0;
        pool_.for_each_busy([now](connection& c) { c.check_limits(now); });
        if (!agenda_.sending_is_over(now)) over_since_ns_ = 0;
        else if (over_since_ns_ == 0) over_since_ns_ = now;
        else if (now - over_since_ns_ - io_.alert.lost_since(over_since_ns_) >
                 ns_of(drain_s(sent_)))
            cut_off(drained_text());
    }
    std::string drained_text() const {
        return "cut off " + time_text(drain_s(sent_)) + " after the last " +
               (sent_.plays_out ? "session began" : "send") + " (limits.drain)";
    }
    /// Tells until when all planned requests have ended, once they are handed over.
    void note_settled(long long now) {
        if (book_.has_unwritten()) return;
        long long until = agenda_.all_sent_until(now);
        pool_.for_each_busy([&](connection& c) {
            if (!c.is_delivered()) until = std::min(until, c.scheduled_ns());
        });
        settled_ns_->store(until);
    }
    void cut_off(const std::string& why) {
        const auto waiting = agenda_.stop();
        pool_.for_each_busy([&](connection& c) {
            if (!c.is_delivered()) c.abandon(request_status::cancelled, why);
        });
        for (const planned_request& w : waiting) {
            record r;
            r.scheduled_ns = w.scheduled_ns;
            r.status = request_status::unsent;
            r.error = why;
            if (const wanted_answer* wanted = wanted_at(sent_, w.index)) grade(r, *wanted, "");
            book_.add(w, std::move(r), {});
        }
    }

    struct ready_request {
        std::size_t index = 0;
        built_request what{};
    };
    static constexpr std::size_t max_ready_bytes_of_all = std::size_t{64} << 20;

    const load_order& order_;
    const planned_traffic& sent_;
    load_state& shared_;
    agenda agenda_;
    request_book book_;
    answer_keeper answers_;
    client_io io_;
    connection_pool pool_;
    std::deque<ready_request> ready_{};  // in order of their due times
    std::size_t ready_bytes_ = 0, max_ready_bytes_;
    std::atomic<long long>* settled_ns_;  // null: nobody asks
    const bool is_alone_;          // no other thread sends this load
    bool some_leave_ = false;      // before their answer is complete
    bool asks_ = false;            // again, for what could not connect
    long long over_since_ns_ = 0;  // since all sends are over
    long long next_tick_ns_ = 0, looks_at_ns_ = 0, next_check_ns_ = 0, checks_behind_ = 0;
    long long send_until_ns_ = 0;  // sends of one turn; an event may be followed by one more
    lag_counts loop_lag_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
