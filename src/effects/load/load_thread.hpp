// one client thread
#pragma once

#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/measured/alertness.hpp"
#include "effects/system/clock.hpp"
#include "effects/net/machine_network.hpp"
#include "effects/net/network.hpp"
#include "effects/load/order.hpp"
#include "effects/load/worker.hpp"

#include <algorithm>  // any_of, max, min
#include <memory>  // make_unique, unique_ptr

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Sends one load, or those of both variants at once: then it is drawn for each pair of requests
/// which one is written first.
class load_thread {
public:
    load_thread() { sockets_->stamp_arrivals(); }
    load_thread(const load_thread&) = delete;
    load_thread& operator=(const load_thread&) = delete;

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
        while (std::any_of(workers_.begin(), workers_.end(),
                           [](const auto& w) { return w->goes_on(); }))
            turn();
        for (const auto& w : workers_) w->end();
        const double cpu = thread_cpu_seconds() - cpu_before;
        cpu_utilization_ = cpu / std::max(1e-9, static_cast<double>(now_ns() - began) * 1e-9);
    }
    double cpu_utilization() const { return cpu_utilization_; }

private:
    /// Waits, then handles events and due requests.
    void turn() {
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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
