// posts to servers around a load: what prepares them, and what holds a burst
#pragma once

#include "api/side_task.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/plan.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/system/threads.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/load_target.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/server_pages.hpp"

#include <algorithm>  // min
#include <stdexcept>  // runtime_error
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What became of a post.
struct sent_step {
    std::string fault{};  // why it has no 2xx answer in time, "" if it has
    bool is_answered = false;
};
/// Sends a post of a repeat, whose number `{n}` in it is.
inline sent_step send_step(const task_step& s, const live_target& on, int repeat,
                           double within_s) {
    const std::string nth = std::to_string(repeat + 1);
    const load_target& to = on.load();
    const std::string path = filled_in(str(s.path), "{n}", nth);
    const std::string body = filled_in(str(s.body), "{n}", nth);
    const http_answer a =
        blocking_post(to, inquiry_path(to, path.c_str()), to.fields, body, within_s);
    const std::string why = fault_of_post(a, to);
    return {why.empty() ? why : "POST " + masked_words_of(path, to) + " " + why, a.status != 0};
}

/// Does the preparation of each repeat; with a shared load only the first program does. Throws if a
/// request has no 2xx answer in time: the server would not be in the state asked for.
inline void prepare_server(const plan& p, const live_target& target, int repeat, double within_s) {
    if (p.shard.index > 0) return;
    for (const task_step& s : p.sent->prepare)
        if (const std::string why = send_step(s, target, repeat, within_s).fault; !why.empty())
            throw std::runtime_error(printed("prepare, before repeat %d on ", repeat + 1) +
                                     target.facts().url + ": " + why);
}

/// A burst that waits at its server until all of its requests are there. The server is told to go
/// on in any case, also after an exception and an interruption, and once more if that fails.
class held_burst : not_copied {
public:
    /// All arguments must outlive it.
    held_burst(const load_order& o, load_state& s, const live_target& on)
        : order_(o), state_(s), on_(on), steps_(o.what->sent->arrivals.held) {}
    ~held_burst() {
        contained([this] { let_go(); }, [](const char*) {});
    }

    /// Holds the server, and lets it go on soon after the burst was sent. Throws if it does not
    /// hold.
    void begin() {
        is_held_ = true;  // also without an answer it may be
        check(posted(steps_[0]));
        const auto starts = static_cast<long long>(order_.starts());
        all_sent_ = state_.sent.load() + starts;  // a warm-up was sent before
        releasing_.begin([] { return now_ns() + look_ns; }, [this] { look(); },
                         [this](const char* why) { problem_ = why; });
    }
    /// The load is over. Throws if the server was not let go.
    void end() {
        let_go();
        check(problem_ + (is_held_ ? "; the server may hold its requests still" : ""));
    }

private:
    static constexpr long long look_ns = 50'000'000;
    static constexpr double settles_s = 2;  // where no page tells that all are there
    static constexpr double post_s = 30, interrupted_s = 3;
    static constexpr int max_tries = 2;

    std::string posted(const task_step& step) const {
        const double most_s = stop_asked.load() ? interrupted_s : post_s;
        const double within_s = std::min(most_s, order_.what->sent->limits.total.seconds());
        return send_step(step, on_, order_.number, within_s).fault;
    }
    void check(const std::string& why) const {
        if (!why.empty())
            throw std::runtime_error(printed("arrivals, held in repeat %d on ", order_.number + 1) +
                                     on_.facts().url + ": " + why);
    }
    void look() {
        if (!is_held_ || tries_ > 0 || state_.sent.load() < all_sent_) return;
        if (settled_ns_ == 0) settled_ns_ = now_ns() + ns_of(settles_s);
        if (!are_there() && now_ns() < settled_ns_) return;
        release();
        state_.is_called_off = is_held_;  // nobody would answer
    }
    /// Whether its page has the whole burst, also what other programs send of it.
    bool are_there() const {
        if (!on_.pages().first_is_servers) return false;
        const std::size_t stride = order_.what->sent->stride;
        const std::size_t all = (order_.last - order_.first + stride - 1) / stride;
        return requests_at(reading_of_server(on_.pages())) >= static_cast<double>(all);
    }
    void release() {
        ++tries_;
        const std::string why = posted(steps_[1]);
        is_held_ = !why.empty();
        if (is_held_) problem_ = why;
    }
    void let_go() {
        releasing_.stop();
        while (is_held_ && tries_ < max_tries) release();
    }

    const load_order& order_;
    load_state& state_;
    const live_target& on_;
    const list<task_step> steps_;
    long long all_sent_ = 0, settled_ns_ = 0;
    bool is_held_ = false;
    int tries_ = 0;  // to release it
    std::string problem_{};
    repeated releasing_{};  // its end comes first
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
