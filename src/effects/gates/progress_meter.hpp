// the progress of a repeat
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/judging/judge.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/load_search.hpp"
#include "core/reports/console.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/threads.hpp"
#include "effects/system/settings.hpp"
#include "effects/load/order.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <iostream>  // cout
#include <mutex>  // lock_guard
#include <string>
#include <utility>  // exchange

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What a run has before it: its loads, one after the other, and its objectives.
struct work_ahead {
    double each_s = 0;        // of one load; 0: not known before the first
    span_of_repeats loads{};  // the fewest and the most
    std::size_t slos = 0;     // without the error guard
    std::size_t awaited_slos = 0;
    awaited which{};
};
inline work_ahead work_of(const plan& p) {
    const planned_judging& j = *p.judged;
    const awaited which{.advisory = j.repeats_are_asked};
    work_ahead w{seconds_of_one(p), expected_span(p, 1), j.slos.size(), 0, which};
    for (const slo& s : j.slos) w.awaited_slos += !s.is_advisory || which.advisory;
    return w;
}

/// Shows a gate's progress from its own thread, which only reads counters: one rewritten line on a
/// terminal, ever rarer lines in a log.
class progress_meter : not_copied {
public:
    progress_meter(const work_ahead& all, progress_mode mode, const console_style& style)
        : mode_(mode), style_(style), all_(all), began_ns_(now_ns()), each_s_(all.each_s) {
        facts_.slos = all.awaited_slos;
        if (mode == progress_mode::off) return;
        reporting_.begin([this] { return next_ns(); },
                       [this] {
                           const std::lock_guard lock(mutex_);
                           report();
                       },
                       [](const char*) {});  // failure is harmless
    }
    ~progress_meter() { end(); }

    /// Stops progress, and clears its line.
    void end() {
        reporting_.stop();
        clear();
    }
    /// Prints other text to the console.
    void say(const std::string& words) {
        const std::lock_guard lock(mutex_);
        clear();
        detail::say(wrapped_lines(words));
    }
    void stage(const std::string& name) {
        const std::lock_guard lock(mutex_);
        facts_.stage = name;
    }
    void decided(const vector<decision>& verdicts) {
        const std::lock_guard lock(mutex_);
        facts_.waits_for.clear();
        facts_.decided = facts_.slos;
        for (std::size_t i = 0; i < verdicts.size(); ++i) {
            if (!is_waited_for(verdicts[i], all_.which)) continue;
            facts_.waits_for.push_back(str(verdicts[i].objective.text()));
            // The error guard does not count.
            if (i < all_.slos) --facts_.decided;
        }
    }
    /// Shows the counters of a load from now on; null: none. The load must outlive that.
    void watch(const load_state* load) {
        const std::lock_guard lock(mutex_);
        if (load) load_began_ns_ = now_ns();
        else each_s_ = std::max(each_s_, static_cast<double>(now_ns() - load_began_ns_) * 1e-9);
        load_ = load;
    }

private:
    long long next_ns() const {
        const long long now = now_ns();
        const double plain_s = now - began_ns_ < 60000000000 ? 5 : 15;
        return now + ns_of(mode_ == progress_mode::line ? 0.2 : plain_s);
    }
    void report() {
        gather();
        if (mode_ == progress_mode::plain) {
            std::cout << progress_line(facts_, 0, style_) + "\n" << std::flush;
            return;
        }
        // One column stays free: a full line would wrap on some terminals.
        const std::size_t width = std::max<std::size_t>(console_width(), 2) - 1;
        std::cout << "\r" + progress_line(facts_, width, style_) + "\x1b[K" << std::flush;
        drawn_ = true;
    }
    void gather() {
        facts_.elapsed_s = static_cast<double>(now_ns() - began_ns_) * 1e-9;
        facts_.least_s = all_.loads.least * each_s_;
        facts_.max_s = all_.loads.most * each_s_;
        facts_.phase = load_                  ? ""
                       : facts_.stage.empty() ? "waiting for the server"
                                              : "resting";
        facts_.planned = facts_.sent = facts_.done = facts_.failed = 0;
        facts_.ttft = facts_.tpot = not_a_number;
        if (!load_) return;
        facts_.planned = load_->planned.load();
        facts_.done = load_->done.load();  // read before `sent`, which is then never behind it
        facts_.failed = load_->failed.load();
        facts_.sent = load_->sent.load();
        const auto mean = [](long long sum, long long n) {
            return n > 0 ? static_cast<double>(sum) / static_cast<double>(n) * 1e-9 : not_a_number;
        };
        facts_.ttft = mean(load_->ttft_ns.load(), load_->answered.load());
        facts_.tpot = mean(load_->tpot_ns.load(), load_->paced.load());
        const long long from = load_->measured_from.load();
        if (from == 0 || from > now_ns()) facts_.phase = "warming up";
        else if (facts_.planned > 0 && facts_.sent >= facts_.planned)
            facts_.phase = "waiting for the last answers";
    }
    void clear() {
        if (std::exchange(drawn_, false)) std::cout << "\r\x1b[K" << std::flush;
    }

    const progress_mode mode_;
    const console_style style_;
    const work_ahead all_;
    const long long began_ns_;
    std::mutex mutex_{};
    progress_facts facts_{};
    const load_state* load_ = nullptr;
    long long load_began_ns_ = 0;
    double each_s_;
    bool drawn_ = false;
    repeated reporting_{};
};
/// Shows one load while it lives.
class progress_watch : not_copied {
public:
    progress_watch(progress_meter* meter, const load_state& load) : meter_(meter) {
        if (meter_) meter_->watch(&load);
    }
    ~progress_watch() { if (meter_) meter_->watch(nullptr); }

private:
    progress_meter* meter_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
