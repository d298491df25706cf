// side tasks during a load
#pragma once

#include "api/side_task.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/load_faults.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/threads.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/load_target.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"

#include <algorithm>  // min
#include <memory>  // make_unique, unique_ptr
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One task in one repeat: its own thread and connections, or events of a virtual environment.
class task_under_load final : public task_at_work {
public:
    /// Task `number` of the plan. All arguments must outlive it.
    task_under_load(const plan& p, std::size_t number, live_target& target, const load_state& load,
                    int gate)
        : what_(p.sent->beside[number]),
          target_(target),
          load_(load),
          within_s_(p.sent->limits.total.seconds()),
          log_(report_directory() + printed("/beside-%d-%zu.log", gate, number + 1)) {
        seen_.name = what_.name;
        seen_.may_fail = what_.may_fail;
        seen_.excuses_s = what_.excuses_s;
        doing_.begin([this] { return next_ns(); }, [this] { act(); },
                     [this](const char* why) { end_step(std::string("failed: ") + why); });
    }
    task_under_load(const task_under_load&) = delete;
    task_under_load& operator=(const task_under_load&) = delete;

    /// The load is over: finishes a round of steps that has begun.
    side_task_seen finished() override {
        doing_.stop();
        while (post_ && !has_advanced()) sleep_s(poll_s);
        while (begun_ % what_.steps.size() != 0) {
            begin_step(now_ns());
            while (post_ && !has_advanced()) sleep_s(poll_s);
        }
        return std::move(seen_);
    }

private:
    static constexpr double poll_s = 0.001, look_s = 0.01, interrupted_s = 10;

    bool is_over() const { return what_.every_s == 0 && begun_ == what_.steps.size(); }
    long long due_ns() const {
        return measured_from_ns_ + ns_of(what_.first_s) +
               intervals_ * ns_of(what_.every_s);
    }
    long long next_ns() {
        if (post_) return now_ns() + ns_of(poll_s);
        if (measured_from_ns_ == 0) measured_from_ns_ = load_.measured_from.load();
        if (measured_from_ns_ == 0) return now_ns() + ns_of(look_s);
        return is_over() ? now_ns() + ns_of(60) : due_ns();
    }
    void act() {
        if (post_) has_advanced();
        else if (measured_from_ns_ != 0 && !is_over() && now_ns() >= due_ns()) begin_due_step();
    }
    /// Of those that one under way held up, only the last is done: the others would follow at once,
    /// which is another load.
    void begin_due_step() {
        const long long every_ns = ns_of(what_.every_s), late_ns = now_ns() - due_ns();
        if (every_ns > 0) intervals_ += late_ns / every_ns;
        const long long due = due_ns();
        ++intervals_;
        begin_step(due);
    }
    void begin_step(long long due_ns) {
        const task_step& s = what_.steps[begun_ % what_.steps.size()];
        const std::string nth = std::to_string(begun_ / what_.steps.size() + 1);
        const auto filled = [&](const text& t) { return filled_in(str(t), "{n}", nth); };
        const load_target& to = target_.load();
        const double max_s = stop_asked.load() ? std::min(within_s_, interrupted_s) : within_s_;
        ++begun_;
        side_step& seen = seen_.steps.emplace_back();
        seen.due_ns = due_ns;
        seen.from_ns = seen.to_ns = now_ns();
        if (s.path.empty()) {
            seen.what = "\"" + masked_words_of(str(s.line), to) + "\"";
            return end_step(carried_out_within(filled(s.line), max_s));
        }
        const std::string path = filled(s.path);
        seen.what = "POST " + masked_words_of(path, to);
        const std::string request = last_request(
            http_method::post, to, inquiry_path(to, path.c_str()), to.fields, filled(s.body));
        // The one thread of a virtual environment also runs the load.
        if (!current_environment) return end_step(fault_of_post(answer_to(to, request, max_s), to));
        post_ = std::make_unique<plain_request>(to, request, max_s);
        has_advanced();
    }
    bool has_advanced() {
        if (!post_->advance(now_ns())) return false;
        end_step(fault_of_post(post_->answer(), target_.load()));
        post_.reset();
        return true;
    }
    void end_step(std::string why) {
        if (seen_.steps.empty()) return;  // it never began: reported for the whole task
        seen_.steps.back().to_ns = now_ns();
        seen_.steps.back().failed = std::move(why);
    }
    std::string carried_out_within(const std::string& line, double max_s) {
        carried_command c = carried_out(line, target_.load(), log_, now_ns() + ns_of(max_s));
        const std::string fault = c.fault(max_s);
        if (!c.how.empty()) target_.commands().keep(std::move(c.process));
        return fault;
    }

    const planned_task& what_;
    live_target& target_;
    const load_state& load_;
    const double within_s_;
    const std::string log_;
    // Owned by the task's thread while it runs, then by this object.
    side_task_seen seen_{};
    std::size_t begun_ = 0;  // number of steps
    long long intervals_ = 0;  // of `every`, that have passed at the next step
    long long measured_from_ns_ = 0;
    std::unique_ptr<plain_request> post_{};
    repeated doing_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
