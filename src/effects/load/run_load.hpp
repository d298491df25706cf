// the load of one repeat
#pragma once

#include "api/traffic.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/traffic/requests.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/limits.hpp"
#include "effects/system/threads.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/load/order.hpp"
#include "effects/load/worker.hpp"

#include <algorithm>  // min, max
#include <atomic>
#include <latch>  // the start of a load
#include <exception>  // current_exception, rethrow_exception
#include <memory>  // unique_ptr, make_unique
#include <mutex>  // lock_guard
#include <stdexcept>  // runtime_error
#include <string>
#include <system_error>
#include <thread>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::size_t in_flight_at_most(const load_order& o) {
    return o.what->shard.of(static_cast<std::size_t>(o.what->sent->arrivals.max_in_flight));
}

/// Connections that this load needs at one time; 0: depends on the server's speed.
inline std::size_t connections_needed(const load_order& o) {
    const arrival_data& a = o.what->sent->arrivals;
    std::size_t n = 0;
    if (a.kind == arrival_kind::all_at_once) n = o.starts();
    else n = std::min(o.starts(), o.users());
    return a.max_in_flight > 0 ? std::min(n, in_flight_at_most(o)) : n;
}

/// The part of them that one of `count` threads needs for its first sends.
inline std::size_t connections_at_first(const load_order& o, std::size_t index, std::size_t count) {
    const arrival_data& a = o.what->sent->arrivals;
    std::size_t together = std::min<std::size_t>(o.starts(), 1);
    if (a.kind == arrival_kind::all_at_once) together = o.starts();
    if (o.users() > 0 && a.users_ramp_s == 0) together = std::min(o.starts(), o.users());
    if (a.max_in_flight > 0) together = std::min(together, in_flight_at_most(o));
    return together / count + (index < together % count);
}

/// Raises the limit on open files. Refuses a load that needs more files, ports or memory than there
/// are. `loads`: the number of such loads at once.
inline void make_room_for(const load_order& o, std::size_t loads = 1) {
    const std::size_t needed = loads * connections_needed(o);
    // Twice, for simulated servers.
    const rlim_t files = raised_open_files(2 * std::max<rlim_t>(needed, 8192) + 256);
    if (files != 0 && needed + 64 > files)
        refuse({printed("the load needs %zu connections at a time and this process may open %llu "
                        "files: raise the hard limit (ulimit -Hn), or ask for less at once", needed,
                        static_cast<unsigned long long>(files))});
    const double held = static_cast<double>(o.users()) * bytes_held_by_a_user(*o.what->sent);
    if (const double all = memory_of_the_machine(); all > 0 && held > all / 2)
        refuse({printed("%zu users hold about %.3g GB of answers that their conversations go on "
                        "from, over half of this machine's %.3g GB: ask for fewer, or share the "
                        "load",
                        o.users(), held / 1e9, all / 1e9)});
    const client_options& client = o.what->sent->client;
    const auto from = static_cast<long long>(std::max<std::size_t>(1, client.from.size()));
    const long long ports = from * outgoing_ports().size();
    if (o.target->url.socket.empty() && ports > 0)
        if (static_cast<long long>(needed) > ports)
            refuse({printed("the load needs %zu connections at a time and this machine has %lld "
                            "ports for one server: widen net.ipv4.ip_local_port_range, name more "
                            "local addresses in client.from, or ask for less", needed, ports)});
}

/// One thread reads some hundred thousand paced events a second. A second one is only for thousands
/// of streams, and for machines with spare cores: the server may be on the same machine.
inline std::size_t default_threads(const load_order& o, std::size_t loads = 1) {
    const arrival_data& a = o.what->sent->arrivals;
    const auto all = static_cast<double>(loads);
    const double needed = all * static_cast<double>(connections_needed(o));
    const double own_rate = all * a.rate / static_cast<double>(o.what->shard.count);
    const double streams = needed > 0 ? needed : 10 * own_rate;  // answers of ten seconds
    const double spare = std::max(1u, std::thread::hardware_concurrency() / 4);
    return static_cast<std::size_t>(std::max(1.0, std::min(streams / 1000, spare)));
}

/// Sends one load, or those of both variants at once: then it is drawn for each pair of requests
/// which one is written first.
class load_thread : not_copied {
public:
    load_thread() { sockets_->stamp_arrivals(); }

    /// Adds its share `index` of `count` of a load. Both arguments must outlive this.
    load_worker& add(const load_order& order, load_state& shared, std::size_t index,
                     std::size_t count) {
        workers_.push_back(std::make_unique<load_worker>(order, shared, index, count, *sockets_));
        return *workers_.back();
    }
    void prepare_first() {
        for (const auto& w : workers_) w->prepare_first();
    }
    void open_connections(std::size_t wanted, std::size_t at_a_time) {
        for (const auto& w : workers_) w->open_connections(wanted, at_a_time);
    }
    void run() {
        const double cpu_before = thread_cpu_seconds();
        const long long began = now_ns();
        const run_queue_wait waits;
        for (const auto& w : workers_) w->begin(began, waits);
        // Each turn waits, then handles events and due requests.
        while (any_of(workers_, [](const auto& w) { return w->goes_on(); })) {
            const long long now = now_ns();
            long long until = 0;
            std::size_t open = 0;
            for (const auto& w : workers_) {
                const long long its = w->sleeps_until(now);
                until = until == 0 ? its : std::min(until, its);
                open += w->sockets();
            }
            sockets_->wait(until, now);
            const long long woke = now_ns();
            for (const auto& w : workers_) w->on_wake(woke, now, until, open);
            catch_up(woke);
            sockets_->each([this] { catch_up(seen_ns()); });
            for (const auto& w : workers_) w->end_turn();
            catch_up(seen_ns());
            for (const auto& w : workers_) w->prepare_next();
        }
        for (const auto& w : workers_) w->end();
        const double cpu = thread_cpu_seconds() - cpu_before;
        cpu_utilization_ = cpu / std::max(1e-9, static_cast<double>(now_ns() - began) * 1e-9);
    }
    double cpu_utilization() const { return cpu_utilization_; }

private:
    long long seen_ns() const {
        long long seen = 0;
        for (const auto& w : workers_) seen = std::max(seen, w->seen_ns());
        return seen;
    }
    /// Sends need not wait for all reads of a turn.
    void catch_up(long long now) {
        bool is_due = false;
        for (const auto& w : workers_) {
            if (workers_.size() > 1) w->on_step(now);
            w->send_promised(now);
            is_due = is_due || w->is_due(now);
        }
        if (!is_due) return;
        bool sends = true;
        while (sends) {
            const bool turned = workers_.size() > 1 && random_.uniform() < 0.5;
            sends = false;
            for (std::size_t i = 0; i < workers_.size(); ++i)
                sends |= workers_[turned ? workers_.size() - 1 - i : i]->send_next();
            sends = sends && workers_[0]->may_send();
        }
        for (const auto& w : workers_) w->open_for_next();
    }

    const std::unique_ptr<network> sockets_ = new_network();  // outlives its users
    vector<std::unique_ptr<load_worker>> workers_{};
    generator random_{1, 1};
    double cpu_utilization_ = 0;
};

/// The load of one variant, and where its measurements go.
struct load_of_variant {
    load_order* order;
    load_state* state;
    repeat_data* into;
    request_log* log;
};

inline std::size_t threads_of(const vector<load_of_variant>& loads) {
    const load_order& order = *loads[0].order;
    const auto asked =
        static_cast<std::size_t>(static_cast<long long>(order.what->sent->client.threads));
    std::size_t threads = asked > 0 ? asked : default_threads(order, loads.size());
    if (current_environment) threads = 1;  // virtual time needs no second one
    else make_room_for(order, loads.size());
    // With fewer slots than threads, some threads could send nothing.
    if (order.what->sent->arrivals.max_in_flight > 0)
        threads = std::min(threads, std::max<std::size_t>(1, in_flight_at_most(order)));
    return threads;
}
inline std::string lack_of_threads(std::size_t started, std::size_t asked, const char* why) {
    return printed("client: only %zu of its %zu threads could be started (%s): raise the limit on "
                   "threads, ulimit -u, or ask for fewer, client.threads", started, asked, why);
}
/// What one thread measured of one load.
inline void collect(const load_of_variant& l, load_worker& w, double cpu_utilization) {
    repeat_data& into = *l.into;
    l.log->take(std::move(w.finished()));
    w.answers().move_into(into);
    const client_io& io = w.io();
    client_counts seen = io;
    seen.connection_resets -= l.order->target->resets_before();
    if (io.is_stamped()) seen.disturbed_requests = 0;  // no late read changes times
    else into.lost_fraction = std::max(into.lost_fraction, io.alert.lost_fraction());
    into.add(seen);
    into.stamp_lag.add(io.stamp_lag);
    into.cpu_utilization = std::max(into.cpu_utilization, cpu_utilization);
    into.thread_cpu_utilization.push_back(cpu_utilization);
    into.loop_lag.add(w.loop_lag());
}

/// Makes the places of all loads, of which two know each other.
inline void make_places(const vector<load_of_variant>& loads) {
    for (const load_of_variant& l : loads) begin_places(*l.order, *l.state);
    if (loads.size() != 2) return;
    loads[0].state->twin = loads[1].state;
    loads[1].state->twin = loads[0].state;
}
/// Runs one load, or those of both variants at once, on the same threads, and collects their
/// measurements. Loads at once have the same starts.
inline void run_load(const vector<load_of_variant>& loads) {
    const load_order& order = *loads[0].order;
    const std::size_t threads = threads_of(loads);
    vector<std::unique_ptr<load_thread>> workers;
    vector<vector<load_worker*>> shares(threads);  // of each thread, in the order of the loads
    make_places(loads);
    for (std::size_t i = 0; i < threads; ++i) {
        workers.push_back(std::make_unique<load_thread>());
        for (const load_of_variant& l : loads)
            shares[i].push_back(&workers[i]->add(*l.order, *l.state, i, threads));
    }
    const auto count = static_cast<std::ptrdiff_t>(threads);
    std::latch all_connected(count), start_is_known(count);
    // Connections opening at once, over all threads: as many as a server's queue takes.
    const std::size_t at_a_time = std::max<std::size_t>(1, 256 / threads);
    std::atomic<bool> called_off{false};
    std::mutex of_thrown;
    std::exception_ptr thrown;
    // An exception of one thread ends no other: all meet before the start, and all end.
    const auto call_off = [&](const char*) {
        const std::lock_guard guard(of_thrown);
        if (!thrown) thrown = std::current_exception();
        called_off = true;
    };
    const auto work = [&](std::size_t i) {
        contained([&] {
            workers[i]->prepare_first();
            workers[i]->open_connections(connections_at_first(order, i, threads), at_a_time);
        }, call_off);
        all_connected.arrive_and_wait();
        // All threads are awake 10 ms after the last one has its connections.
        if (i == 0) contained([&] {
            const long long at = order.start && !called_off ? order.start() : now_ns() + 10000000;
            for (const load_of_variant& l : loads) l.state->start_ns = at;
            if (order.decided) order.decided->begin(at);
        }, call_off);
        start_is_known.arrive_and_wait();
        if (!called_off) contained([&] { workers[i]->run(); }, call_off);
    };
    vector<std::thread> running;
    running.reserve(threads);
    std::string lack;
    try {
        for (std::size_t i = 1; i < threads; ++i) running.emplace_back(work, i);
    } catch (const std::system_error& e) {
        lack = lack_of_threads(running.size() + 1, threads, e.what());
        called_off = true;
        for (std::size_t i = running.size() + 1; i < threads; ++i) {
            all_connected.count_down();
            start_is_known.count_down();
        }
    }
    work(0);
    for (std::thread& t : running) t.join();
    if (thrown) std::rethrow_exception(thrown);
    if (called_off) throw std::runtime_error(lack);
    for (std::size_t i = 0; i < threads; ++i)
        for (std::size_t k = 0; k < loads.size(); ++k)
            collect(loads[k], *shares[i][k], workers[i]->cpu_utilization());
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
