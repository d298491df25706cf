// a client thread and its connections
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"
#include "effects/load/order.hpp"
#include "effects/load/poller.hpp"

#include <algorithm>  // max, min
#include <array>
#include <atomic>  // memory_order_relaxed
#include <cerrno>  // errno, EAGAIN, EWOULDBLOCK, EINTR
#include <cmath>  // ceil
#include <cstdint>  // uint32_t, uint64_t
#include <cstring>  // strerror
#include <ctime>  // clock_gettime
#include <deque>
#include <functional>  // greater
#include <map>
#include <memory>  // unique_ptr, make_unique
#include <queue>  // users by the time they are ready
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

#include <sys/epoll.h>  // EPOLLOUT, EPOLLIN
#include <sys/socket.h>  // MSG_NOSIGNAL, socklen_t, SOL_SOCKET
#include <sys/types.h>  // ssize_t

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One thread's share of the load: its own poller, connections, users and records.
class load_worker {
public:
    load_worker(const load_order& order, load_state& shared, std::size_t index, std::size_t count)
        : order_(order),
          plan_(*order.what),
          shared_(shared),
          index_(index),
          count_(count) {
        const long long cap = plan_.arrivals.max_in_flight;
        const auto threads = static_cast<long long>(count);
        cap_ = cap > 0
                   ? std::max(1ll, cap / threads + (static_cast<long long>(index) < cap % threads))
                   : 0;
        next_open_ = index;
    }

    void run() {
        timespec before{}, after{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        const long long began = now_ns();
        if (order_.send_at.empty()) start_users();
        prepare();
        next_check_ns_ = began + check_interval_ns;
        while (!stopping_ && !nothing_left()) turn();
        if (shared_.out) shared_.out->put(delivered_);
        for (auto* list : {&busy_, &idle_, &opening_})
            for (auto& c : *list) c->close();
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        const double cpu = static_cast<double>(after.tv_sec - before.tv_sec) +
                           static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
        cpu_share_ = cpu / std::max(1e-9, static_cast<double>(now_ns() - began) * 1e-9);
    }

    /// Before the first send is due, as many connections as are then sent at once, so that their
    /// cost is not in those requests. No more than 256 of all threads are on their way at a time,
    /// which is what a server's queue takes, and a second is waited for each 256 at most. What is
    /// missing then is opened for its request.
    void open_connections() {
        const std::size_t wanted = connections_at_first(order_, index_, count_);
        const std::size_t at_a_time = std::max<std::size_t>(1, 256 / count_);
        const double batches = std::ceil(static_cast<double>(wanted) /
                                         static_cast<double>(at_a_time));
        const long long until =
            now_ns() + ns_of(std::min(plan_.limits.connect.seconds(), batches));
        std::size_t begun = 0;
        for (long long now = now_ns(); now < until && !interrupted.load(); now = now_ns()) {
            ++turn_;
            const bool none_failed = idle_.size() + opening_.size() == begun;
            while (none_failed && begun < wanted && opening_.size() < at_a_time) {
                open_ahead();
                ++begun;
            }
            if (opening_.empty()) return;
            poller_.wait(std::min(until, now + check_interval_ns));
            ++turn_;
            woke_ns_ = now_ns();
            poller_.each([](void* who, unsigned events) {
                static_cast<connection*>(who)->on_ready(events);
            });
            for (std::size_t i = opening_.size(); i-- > 0;) opening_[i]->check_opening(now_ns());
            retired_.clear();
        }
    }

    static std::size_t connections_at_first(const load_order& o, std::size_t index,
                                            std::size_t count) {
        const arrival_data& a = o.what->arrivals;
        std::size_t at_once = std::min<std::size_t>(o.starts(), 1);
        if (a.kind == arrival_kind::all_at_once) at_once = o.starts();
        if (o.send_at.empty() && a.users_ramp_s == 0)
            at_once = std::min(o.starts(), static_cast<std::size_t>(a.users));
        if (a.max_in_flight > 0)
            at_once = std::min(at_once, static_cast<std::size_t>(a.max_in_flight));
        return at_once / count + (index < at_once % count);
    }

    request_log& finished() { return finished_; }
    const lag_counts& loop_lag() const { return loop_lag_; }
    const lag_counts& stamp_lag() const { return stamp_lag_; }
    long long connections_opened() const { return connections_opened_; }
    long long content_events() const { return content_events_; }
    long long coalesced_events() const { return coalesced_events_; }
    double cpu_share() const { return cpu_share_; }
    const handshakes_t& handshakes_full() const { return handshakes_full_; }
    const handshakes_t& handshakes_resumed() const { return handshakes_resumed_; }

private:
    struct prepared_request {
        std::size_t index = 0;
        std::string bytes{};
        bool ready = false;
    };
    struct waiting_request {
        std::size_t index = 0;
        long long scheduled_ns = 0;
        int user = -1;
    };
    /// A user to whom a new conversation is due, or whoever has a later turn of one.
    static constexpr std::size_t new_conversation = static_cast<std::size_t>(-1);
    struct ready_user {
        long long at_ns = 0;
        int user = -1;
        std::size_t turn = new_conversation;  // its place in the trace
        bool operator>(const ready_user& o) const {
            if (at_ns != o.at_ns) return at_ns > o.at_ns;
            return user != o.user ? user > o.user : turn > o.turn;
        }
    };

    /// One connection and, while it is busy, the request on it.
    class connection {
    public:
        explicit connection(load_worker& w) : worker_(w), opened_in_turn_(w.turn_) {}

        void start(const waiting_request& w, std::string bytes, long long dispatched_ns,
                   long long late_ns) {
            request_ = w;
            bytes_ = std::move(bytes);
            rec_ = record{};
            rec_.scheduled_ns = w.scheduled_ns;
            rec_.dispatched_ns = dispatched_ns;
            rec_.late_ns = late_ns;
            answer_.reset(*worker_.order_.target->api, worker_.plan_.common.stream,
                          worker_.next_turn(w.index) != new_conversation);
            retried_ = false;
            delivered_ = false;
            asked_ = true;
            connect_from_ns_ = dispatched_ns;
            // One that was opened ahead is as good as new, unless a server may have tired of it.
            reused_ = fd_.get() >= 0 && (used_ || dispatched_ns - opened_ns_ > 1000000000);
            if (connecting_) return;
            if (fd_.get() < 0) return connect(0);
            rec_.connected_ns = now_ns();
            send();
        }
        /// Without a request, for one to come.
        void open_ahead() { connect(0); }
        void on_ready(unsigned events) {
            // Closed earlier in this turn, and perhaps opened anew: not what was waited for.
            if (fd_.get() < 0 || opened_in_turn_ == worker_.turn_) return;
            if (connecting_ && !tls_) return on_connected();
            if (connecting_ && (events & EPOLLOUT)) flush();
            if (!asked_ && !connecting_) {
                if (is_usable()) return;
                close();
                return worker_.move(*this, worker_.retired_);
            }
            if (unsent_ > 0 && (events & EPOLLOUT) && !connecting_) return write_some();
            read_now();
        }
        /// False where the server closed an idle connection, or sent what nobody asked for. TLS may
        /// bring words of its own, such as sessions to go on with.
        bool is_usable() {
            if (fd_.get() < 0) return false;
            auto& buffer = worker_.buffer_;
            const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
            if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
            if (n == 0 || !tls_) return false;
            const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
            return tls_->received(bytes, worker_.plain_).empty() && !tls_->ended();
        }
        void close() {
            if (tls_ && fd_.get() >= 0 && unsent_ == 0) {
                tls_->say_goodbye();
                const std::string_view words = tls_->outgoing();
                if (!words.empty()) ::send(fd_.get(), words.data(), words.size(), MSG_NOSIGNAL);
            }
            tls_.reset();
            fd_ = descriptor();  // which ends the watching too
            connecting_ = false;
        }
        /// Ends the request with this outcome, and the connection with it.
        void abandon(request_status status, const std::string& why) {
            answer_.timeline().fail(status, why);
            close();
            deliver();
            worker_.move(*this, worker_.retired_);
        }
        void check_limits(long long now) {
            if (delivered_) {
                if (now - drain_from_ns_ > 1000000000) abandon(request_status::ok, "");
                return;
            }
            const llmbench::limits& l = worker_.plan_.limits;
            const auto over = [&](long long since, time_span limit) {
                return since > 0 && now - since > ns_of(limit.seconds());
            };
            const auto within = [](const char* what, const char* field, time_span t) {
                return printed("%s within %s (limits.%s)", what, time_text(t.seconds()).c_str(),
                               field);
            };
            if (rec_.sent_ns == 0 && over(connect_from_ns_, l.connect))
                return abandon(request_status::connect,
                               within("no connection", "connect", l.connect));
            if (connecting_) try_elsewhere(now);
            if (over(rec_.dispatched_ns, l.total))
                return abandon(request_status::timeout, within("not complete", "total", l.total));
            if (rec_.sent_ns == 0) return;
            const stream_timeline& seen = answer_.timeline();
            if (!worker_.plan_.common.stream) return;  // all at the end: `total` is its limit
            if (seen.events() == 0 && over(rec_.sent_ns, l.first_event))
                return abandon(request_status::timeout,
                               within("no content", "first_event", l.first_event));
            if (seen.events() > 0 && over(seen.last_content_ns(), l.between_events))
                return abandon(request_status::timeout,
                               within("no further content", "between_events", l.between_events));
        }
        bool is_delivered() const { return delivered_; }
        void check_opening(long long now) { if (connecting_) try_elsewhere(now); }
        // The worker's list with this in it, and where.
        std::vector<std::unique_ptr<connection>>* list = nullptr;
        std::size_t slot = 0;

    private:
        /// An address that never answers leaves its share of limits.connect to the others. One that
        /// could not be asked yet is asked again.
        void try_elsewhere(long long now) {
            const auto n = static_cast<double>(worker_.order_.target->addresses.size());
            if (fd_.get() < 0) return connect(tried_);
            if (!more_addresses() ||
                now - opened_ns_ <= ns_of(worker_.plan_.limits.connect.seconds() / n))
                return;
            close();
            connect(tried_ + 1);
        }
        /// `tried`: addresses of the target that this attempt has seen fail.
        void connect(std::size_t tried) {
            const auto& addresses = worker_.order_.target->addresses;
            which_ = tried == 0 ? worker_.good_address_ : (which_ + 1) % addresses.size();
            tried_ = tried;
            fd_ = connecting_socket(addresses[which_]);
            connecting_ = fd_.get() >= 0 || errno == EAGAIN;
            if (!connecting_) return on_connect_error(errno);
            used_ = waits_for_room_ = false;
            opened_ns_ = now_ns();
            if (fd_.get() < 0) return;  // check_limits tries again
            opened_in_turn_ = worker_.turn_;
            worker_.poller_.watch(EPOLL_CTL_ADD, fd_.get(), EPOLLOUT, this);
        }
        void on_connected() {
            int error = 0;
            socklen_t size = sizeof error;
            ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
            if (error != 0) return on_connect_error(error);
            ++worker_.connections_opened_;
            worker_.good_address_ = which_;
            worker_.poller_.watch(EPOLL_CTL_MOD, fd_.get(), EPOLLIN, this);
            if (const auto& client = worker_.order_.target->tls) {
                shaking_from_ns_ = now_ns();
                unsent_ = 0;
                tls_ = std::make_unique<tls_channel>(*client, &worker_.tls_session_);
                return shake_hands({});
            }
            on_open();
        }
        void shake_hands(std::string_view bytes) {
            const bool spoke_first = !tls_->received(bytes, worker_.plain_).empty();
            const bool lost = !flush();
            if (tls_->ended()) return on_no_handshake(tls_->error());
            if (spoke_first) return on_no_handshake("the server answered before it was asked");
            if (lost) return on_no_handshake(std::strerror(errno));
            if (!tls_->open()) return;
            const double took = static_cast<double>(now_ns() - shaking_from_ns_) * 1e-9;
            add_handshakes(tls_->resumed() ? worker_.handshakes_resumed_ : worker_.handshakes_full_,
                           {1, took, took});
            on_open();
        }
        void on_no_handshake(const std::string& why) {
            if (asked_)
                return abandon(request_status::tls,
                               why.empty() ? "the connection was closed during the TLS handshake"
                                           : why);
            close();
            worker_.move(*this, worker_.retired_);
        }
        void on_open() {
            connecting_ = false;
            if (!asked_) return worker_.move(*this, worker_.idle_);
            rec_.connected_ns = now_ns();
            send();
        }
        bool more_addresses() const {
            return tried_ + 1 < worker_.order_.target->addresses.size();
        }
        void on_connect_error(int error) {
            close();
            if (more_addresses()) return connect(tried_ + 1);
            if (!asked_) return worker_.move(*this, worker_.retired_);
            abandon(request_status::connect,
                    std::string("cannot connect: ") + std::strerror(error));
        }
        void send() {
            unsent_ = bytes_.size();
            if (tls_) tls_->send(bytes_);
            rec_.sent_ns = now_ns();
            write_some();
        }
        // What takes no more of a request may have answered it already, as with 413.
        void write_some() { if (!flush()) read_now(); }
        /// Gives the socket what it takes. False where it takes no more at all.
        bool flush() {
            if (tls_) unsent_ = tls_->outgoing().size();
            while (unsent_ > 0) {
                const char* const from =
                    tls_ ? tls_->outgoing().data() : bytes_.data() + bytes_.size() - unsent_;
                const ssize_t n = ::send(fd_.get(), from, unsent_, MSG_NOSIGNAL);
                if (n > 0) {
                    unsent_ -= static_cast<std::size_t>(n);
                    if (tls_) tls_->sent(static_cast<std::size_t>(n));
                } else if (errno == EAGAIN || errno == EWOULDBLOCK) break;
                else if (errno != EINTR) return false;
            }
            if ((unsent_ > 0) == waits_for_room_) return true;
            waits_for_room_ = unsent_ > 0;
            worker_.poller_.watch(EPOLL_CTL_MOD, fd_.get(),
                                  waits_for_room_ ? EPOLLIN | EPOLLOUT : EPOLLIN, this);
            return true;
        }
        void read_now() {
            auto& buffer = worker_.buffer_;
            const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
            const long long now = now_ns();  // the arrival stamp of everything in this read
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
            worker_.on_stamp(now);
            if (n <= 0 && connecting_) return on_no_handshake(n == 0 ? "" : std::strerror(errno));
            if (n <= 0)
                return on_end_of_input(now, n < 0 ? std::strerror(errno) : tls_ ? tls_was_cut : "");
            std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
            if (connecting_) return shake_hands(bytes);
            if (tls_) {
                bytes = tls_->received(bytes, worker_.plain_);
                flush();  // where it fails, a read will tell
            }
            const int events_before = answer_.timeline().events();
            answer_.feed(bytes, now);
            const int events = answer_.timeline().events() - events_before;
            worker_.content_events_ += events;
            worker_.coalesced_events_ += std::max(0, events - 1);
            // An answer has begun, so this will not be sent again; it may be long.
            if (unsent_ == 0 && !bytes_.empty() && !answer_.untouched())
                std::string().swap(bytes_);
            if (answer_.finished()) return on_finished();
            if (tls_ && tls_->ended()) return on_end_of_tls(now);
            if (answer_.timeline().ended()) deliver();
        }
        void on_end_of_tls(long long now) {
            if (tls_->error().empty()) return on_end_of_input(now, "");
            abandon(request_status::tls, tls_->error());
        }
        void on_end_of_input(long long now, const std::string& error) {
            // A reused connection may have been closed by the server at the very moment we sent:
            // that is no failure, so it is tried once afresh.
            if (answer_.untouched() && reused_ && !retried_) {
                close();
                retried_ = true;
                rec_.connected_ns = rec_.sent_ns = 0;
                connect_from_ns_ = now;
                return connect(0);
            }
            answer_.end_of_input(now, error);
            on_finished();
        }
        void on_finished() {
            const bool keep =
                answer_.keeps_connection() && unsent_ == 0 && !(tls_ && tls_->ended());
            if (!keep) close();
            deliver();
            asked_ = false;
            used_ = true;
            worker_.move(*this, keep ? worker_.idle_ : worker_.retired_);
        }
        void deliver() {
            if (delivered_) return;
            delivered_ = true;
            drain_from_ns_ = now_ns();
            answer_.timeline().write_to(rec_);
            rec_.http_status = answer_.http_status();
            const auto& secrets = worker_.order_.target->secrets;
            rec_.error = without_secrets(str(rec_.error), secrets);
            rec_.finish_reason = without_secrets(str(rec_.finish_reason), secrets);
            if (rec_.end_ns == 0) rec_.end_ns = drain_from_ns_;
            worker_.keep_answer(request_.index, rec_.status, answer_.words());
            worker_.on_delivered(request_, std::move(rec_), answer_.timeline().gaps_us());
        }

        load_worker& worker_;
        descriptor fd_{};
        std::unique_ptr<tls_channel> tls_{};
        waiting_request request_{};
        record rec_{};
        answer_reader answer_{};
        std::string bytes_{};
        std::size_t unsent_ = 0;  // of bytes_, or of what TLS made of them
        std::size_t which_ = 0;   // of the target's addresses
        std::size_t tried_ = 0;   // addresses before it that failed
        long long connect_from_ns_ = 0, drain_from_ns_ = 0;
        long long opened_in_turn_ = 0, opened_ns_ = 0, shaking_from_ns_ = 0;
        bool connecting_ = false, used_ = false, waits_for_room_ = false;
        bool asked_ = false;  // there is a request on it
        bool reused_ = false, retried_ = false, delivered_ = false;
    };
    using connection_ptr = std::unique_ptr<connection>;
    using connection_list = std::vector<connection_ptr>;

    // ---- one turn

    static constexpr long long check_interval_ns = 20000000, spin_ns = 200000;

    /// Waits, and does what there is to do. `retired_` outlives the turn, which may hold events of
    /// its connections yet.
    void turn() {
        ++turn_;
        const long long due = next_due();
        const long long ahead = plan_.client.spin ? spin_ns : 0;
        poller_.wait(due == 0 ? next_check_ns_ : std::min(due - ahead, next_check_ns_));
        woke_ns_ = seen_ns_ = now_ns();
        catch_up(woke_ns_);
        poller_.each([this](void* who, unsigned events) {
            static_cast<connection*>(who)->on_ready(events);
            catch_up(seen_ns_);
        });
        if (woke_ns_ >= next_check_ns_) check(woke_ns_);
        catch_up(seen_ns_);
        retired_.clear();
    }
    /// Sends do not wait for all that a turn has to read.
    void catch_up(long long now) {
        while (promised_ > 0 && !stopping_) {
            --promised_;
            const waiting_request next = waiting_.front();
            waiting_.pop_front();
            dispatch(next, std::max(next.scheduled_ns, now));
        }
        if (const long long due = next_due(); due != 0 && due <= now && !stopping_) on_due();
    }
    /// The arrival stamp of a read.
    void on_stamp(long long now) {
        stamp_lag_.add(now - woke_ns_);
        seen_ns_ = now;
    }
    void move(connection& c, connection_list& to) {
        connection_list& from = *c.list;
        connection_ptr p = std::move(from[c.slot]);
        if (c.slot + 1 < from.size()) {
            from[c.slot] = std::move(from.back());
            from[c.slot]->slot = c.slot;
        }
        from.pop_back();
        put(std::move(p), to);
    }
    static connection& put(connection_ptr p, connection_list& to) {
        p->list = &to;
        p->slot = to.size();
        to.push_back(std::move(p));
        return *to.back();
    }

    // ---- what is due

    void start_users() {
        const auto users = static_cast<std::size_t>(plan_.arrivals.users);
        for (std::size_t u = index_; u < users; u += count_) {
            const double offset =
                plan_.arrivals.users_ramp_s * static_cast<double>(u) / static_cast<double>(users);
            users_.push({.at_ns = shared_.start_ns + ns_of(offset), .user = static_cast<int>(u)});
        }
    }
    /// The next planned time, 0 where nothing is planned any more.
    long long next_due() const {
        const long long turn = users_.empty() ? 0 : users_.top().at_ns;
        const long long planned = next_planned();
        return turn == 0 || planned == 0 ? std::max(turn, planned) : std::min(turn, planned);
    }
    long long next_planned() const {
        return next_open_ < order_.send_at.size() ? shared_.start_ns + order_.send_at[next_open_]
                                                  : 0;
    }
    void on_due() {
        for (long long due = next_due(); due != 0 && due <= now_ns() && !stopping_;
             due = next_due()) {
            if (due == next_planned()) {
                const std::size_t i = order_.first + next_open_ * plan_.stride;
                next_open_ += count_;
                send_or_wait({i, due, -1});
                continue;
            }
            const ready_user u = users_.top();
            users_.pop();
            if (u.user >= 0) send_for_user(u);
            else send_or_wait({u.turn, due, -1});
        }
        prepare();
        // The next one should not have to wait for a connection.
        if (next_due() != 0 && idle_.empty() && opening_.empty() &&
            (cap_ == 0 || in_flight_ < cap_))
            open_ahead();
    }
    void send_or_wait(const waiting_request& w) {
        if (cap_ > 0 && in_flight_ + promised_ >= cap_) waiting_.push_back(w);
        else dispatch(w, w.scheduled_ns);
    }
    void open_ahead() { put(std::make_unique<connection>(*this), opening_).open_ahead(); }
    void send_for_user(const ready_user& u) {
        const long long from = shared_.measured_from.load();
        const bool out_of_time =
            plan_.duration_s > 0 && from > 0 && u.at_ns - from >= ns_of(plan_.duration_s);
        const bool enough = order_.most_measured > 0 &&
                            u.at_ns >= shared_.start_ns + order_.measured_from_ns &&
                            shared_.measured.fetch_add(1) >= order_.most_measured;
        const std::size_t i = out_of_time || enough          ? order_.last
                              : u.turn != new_conversation ? u.turn
                                                           : shared_.next.fetch_add(plan_.stride);
        if (i >= order_.last) {
            long long none = 0;
            shared_.exhausted_at.compare_exchange_strong(
                none, out_of_time ? from + ns_of(plan_.duration_s) : now_ns());
            return;  // this user is done
        }
        dispatch({i, u.at_ns, u.user}, u.at_ns);
    }
    run_phase phase_of(const waiting_request& w) const {
        const bool measured = order_.measured_by_time
                                  ? w.scheduled_ns >= shared_.start_ns + order_.measured_from_ns
                                  : w.index >= order_.warmup;
        return measured ? run_phase::measure : run_phase::warmup;
    }
    /// `possible_ns`: when it could have been sent at the earliest, as far as we are concerned.
    void dispatch(const waiting_request& w, long long possible_ns) {
        std::string bytes = prepared_.ready && prepared_.index == w.index
                                ? std::move(prepared_.bytes)
                                : request_bytes(w.index);
        if (prepared_.index == w.index) prepared_.ready = false;
        const long long now = now_ns();
        if (phase_of(w) == run_phase::measure) {
            long long none = 0;
            shared_.measured_from.compare_exchange_strong(none, now);
        }
        ++in_flight_;
        shared_.sent.fetch_add(1, std::memory_order_relaxed);
        take_connection().start(w, std::move(bytes), now, now - possible_ns);
    }
    /// An idle one, else one on its way, else a new one.
    connection& take_connection() {
        while (!idle_.empty()) {
            connection& c = *idle_.back();
            if (c.is_usable()) { move(c, busy_); return c; }
            c.close();
            move(c, retired_);
        }
        if (opening_.empty()) return put(std::make_unique<connection>(*this), busy_);
        connection& c = *opening_.back();
        move(c, busy_);
        return c;
    }
    /// Building a long prompt takes longer than sending it, so it is done before the send is due.
    void prepare() {
        if (order_.send_at.empty() || next_open_ >= order_.send_at.size()) return;
        const std::size_t i = order_.first + next_open_ * plan_.stride;
        if (prepared_.ready && prepared_.index == i) return;
        prepared_ = {i, request_bytes(i), true};
    }
    std::string request_bytes(std::size_t index) const {
        const load_target& t = *order_.target;
        const request_spec r = request_of(plan_, order_.arm, order_.repeat, index,
                                          answers_to(index / plan_.stride), t.tokens);
        const std::string body = request_body(*t.api, t.model, r);
        const bool events = r.stream && t.api->framed == framing::events;
        return request_text(http_method::post, r.stream ? t.path : t.whole_path, t.url.authority(),
                            t.fields + (events ? "Accept: text/event-stream\r\n"
                                               : "Accept: */*\r\n") +
                                "X-Request-Id: " + order_.id_prefix + std::to_string(index) +
                                "\r\n",
                            body);
    }

    // ---- conversations

    /// The place of the turn behind this one, `new_conversation` where there is none.
    std::size_t next_turn(std::size_t index) const {
        const trace_place at = place_of(plan_, index);
        const bool more = at.turn + 1 < turns_of(plan_, at.conversation) && index + 1 < order_.last;
        return more ? index + 1 : new_conversation;
    }
    const std::vector<std::string>& answers_to(std::size_t conversation) const {
        static const std::vector<std::string> none;
        const auto found = answers_.find(conversation);
        return found == answers_.end() ? none : found->second;
    }
    /// What came of a failed request is not fed back: the conversation goes on without it.
    void keep_answer(std::size_t index, request_status status, const std::string& words) {
        if (plan_.stride == 1) return;
        const std::size_t conversation = index / plan_.stride;
        if (next_turn(index) == new_conversation) {
            answers_.erase(conversation);
            return;
        }
        std::vector<std::string>& answers = answers_[conversation];
        answers.resize(index % plan_.stride + 1);
        if (status == request_status::ok) answers.back() = words;
    }

    // ---- what came back

    void on_delivered(const waiting_request& w, record&& r, const gap_list& gaps) {
        r.id = order_.id_prefix + std::to_string(w.index);
        r.arm = order_.arm;
        r.repeat = order_.repeat;
        r.phase = phase_of(w);
        r.conversation = static_cast<long long>(w.index / plan_.stride);
        r.turn = static_cast<int>(w.index % plan_.stride);
        shared_.note(r);
        const long long end = r.end_ns;
        const bool failed = r.status != request_status::ok;
        if (shared_.out) {
            delivered_.records.push_back(r);
            gaps.for_each_block([&](const std::vector<std::uint32_t>& b) {
                delivered_.gaps.insert(delivered_.gaps.end(), b.begin(), b.end());
            });
        }
        finished_.add(w.index, std::move(r), gaps);
        shared_.gaps += gaps.size();
        if (shared_.gaps > shared_.most_gaps) count_gaps_of_old(gaps.size());
        --in_flight_;
        if (stopping_) return;
        const std::size_t next = next_turn(w.index);
        if (w.user >= 0) {
            // A failed answer that comes at once must not turn a user into a flood.
            const bool goes_on = next != new_conversation && plan_.think_s > 0;
            const double think = goes_on ? plan_.think_s : plan_.arrivals.think_s;
            users_.push({end + ns_of(std::max(think, failed ? 0.01 : 0.0)), w.user, next});
            return;
        }
        if (next != new_conversation) users_.push({end + ns_of(plan_.think_s), -1, next});
        if (static_cast<long long>(waiting_.size()) > promised_)
            ++promised_;  // not sent here and now: this connection is not free yet
    }
    /// Twice as many as came in, so that what was listed before goes too, little by little.
    void count_gaps_of_old(std::uint64_t came_in) {
        may_count_ += 2 * came_in + 64;
        may_count_ -= finished_.count(may_count_, now_ns() - 1000000000, window_edges());
    }
    /// Where the throughput window begins, ends, and may end; 0 where that is not known.
    std::array<long long, 3> window_edges() const {
        const long long start = shared_.start_ns, from = shared_.measured_from.load();
        if (!order_.send_at.empty())
            return {start + order_.measured_from_ns, start + order_.send_at.back(), 0};
        if (from == 0) return {0, shared_.exhausted_at.load(), 0};
        return {std::max(from, start + ns_of(plan_.arrivals.users_ramp_s)),
                shared_.exhausted_at.load(), from + ns_of(plan_.duration_s)};
    }
    bool nothing_left() const {
        return next_due() == 0 && in_flight_ == 0 && waiting_.empty() && promised_ == 0;
    }

    // ---- limits

    /// Every 20 ms, at absolute times: how late it comes is the lag of this loop.
    void check(long long now) {
        loop_lag_.add(now - next_check_ns_);
        while (next_check_ns_ <= now) next_check_ns_ += check_interval_ns;
        if (shared_.out && !delivered_.records.empty()) shared_.out->try_put(delivered_);
        // From the back: a connection that ends makes way for the last one, which was looked at.
        for (std::size_t i = busy_.size(); i-- > 0;) busy_[i]->check_limits(now);
        if (interrupted.load()) return cut_off("interrupted");
        if (shared_.deadline_ns > 0 && now > shared_.deadline_ns)
            return cut_off("LLMBENCH_TIME_BUDGET is spent");
        if (!sending_is_over()) over_since_ns_ = 0;
        else if (over_since_ns_ == 0) over_since_ns_ = now;
        else if (now - over_since_ns_ > ns_of(plan_.limits.drain.seconds()))
            cut_off("cut off " + time_text(plan_.limits.drain.seconds()) +
                    " after the last send (limits.drain)");
    }
    bool sending_is_over() const {
        return order_.send_at.empty() ? shared_.exhausted_at.load() != 0
                                      : next_due() == 0 && waiting_.empty();
    }
    void cut_off(const std::string& why) {
        stopping_ = true;
        for (std::size_t i = busy_.size(); i-- > 0;)
            if (!busy_[i]->is_delivered()) busy_[i]->abandon(request_status::cancelled, why);
        for (const waiting_request& w : waiting_) {
            record r;
            r.scheduled_ns = w.scheduled_ns;
            r.status = request_status::unsent;
            r.error = why;
            ++in_flight_;
            on_delivered(w, std::move(r), {});
        }
        waiting_.clear();
    }

    const load_order& order_;
    const plan& plan_;
    load_state& shared_;
    std::size_t index_, count_;
    poller poller_{};
    std::size_t next_open_ = 0;
    std::priority_queue<ready_user, std::vector<ready_user>, std::greater<>> users_{};
    std::map<std::size_t, std::vector<std::string>> answers_{};  // of conversations that go on
    std::deque<waiting_request> waiting_{};
    prepared_request prepared_{};
    connection_list busy_{}, idle_{}, opening_{}, retired_{};
    request_log finished_{};
    delivered_requests delivered_{};
    std::uint64_t may_count_ = 0;
    std::vector<char> buffer_ = std::vector<char>(256 * 1024);
    std::vector<char> plain_{};  // of one read, where it was TLS
    tls_session tls_session_{};
    handshakes_t handshakes_full_{}, handshakes_resumed_{};
    long long in_flight_ = 0, cap_ = 0, promised_ = 0;
    long long connections_opened_ = 0, content_events_ = 0, coalesced_events_ = 0;
    long long over_since_ns_ = 0;  // when the last send was seen to be behind us
    std::size_t good_address_ = 0;  // the first of the target's to try: the last that connected
    long long turn_ = 0, woke_ns_ = 0, seen_ns_ = 0, next_check_ns_ = 0;
    lag_counts loop_lag_{}, stamp_lag_{};
    double cpu_share_ = 0;
    bool stopping_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
