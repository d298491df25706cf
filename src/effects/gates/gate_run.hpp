// the repeats of a gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/rule.hpp"
#include "core/judging/saturation.hpp"
#include "core/judging/validity.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/target_facts.hpp"
#include "core/traffic/tokens.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/stored.hpp"
#include "core/reports/words.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // max
#include <chrono>
#include <cstdint>  // uint64_t
#include <filesystem>  // error_code
#include <fstream>  // ofstream
#include <map>
#include <memory>  // make_unique, unique_ptr
#include <string>
#include <thread>  // this_thread
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the gate will do, said before it does it.
inline std::string announcement(const gate_report& g) {
    const double seconds = expected_seconds(g.what);
    std::string t =
        "\n" + g.what.name + "\n  " + plan_text(g.what) + "\n  " + target_text(g.target);
    if (g.baseline.kind != target_kind::none) t += "; baseline " + target_text(g.baseline);
    t += "; " + repeats_text(g.what);
    const api_traits* api = api_named(g.target.api);
    if (g.what.forces_length && api && !api->forces_lengths)
        t += printed("; %s cannot be forced to a length, so answers end where the model ends them",
                     api->name);
    if (seconds > 0) {
        const auto [least, most] = expected_span(g.what, seconds);
        t += ", " + span_text(least, most);
    }
    if (makes_up_prompts(g.what)) t += "\n  " + fit_text(g.target.tokens);
    if (makes_up_prompts(g.what) && g.what.has_baseline)
        t += "; baseline: " + fit_text(g.baseline.tokens);
    return t + "\n";
}

/// What the environment asks of a gate beside its verdicts.
struct run_mode {
    int calibrate = 0;            // repeats, 0: judge
    bool write_baseline = false;
    long long deadline = 0;
    std::map<std::string, double> noise{};
    progress_mode progress = progress_mode::off;
    bool judges() const { return calibrate == 0 && !write_baseline; }
};
inline run_mode mode_of(const plan& p) {
    run_mode mode;
    mode.calibrate = environment_number("LLMBENCH_CALIBRATE", 3, 100);
    mode.write_baseline = environment_says_yes("LLMBENCH_WRITE_BASELINE") && p.has_stored_baseline;
    require(mode.calibrate == 0 || !mode.write_baseline,
            "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are both set: do one after the other");
    require(mode.calibrate == 0 || p.rule.traffic == replayed,
            "LLMBENCH_CALIBRATE: traffic is fresh, what is calibrated is the noise between repeats "
            "of the same traffic");
    environment_says_yes("LLMBENCH_SKIP_WITHOUT_SERVER");
    mode.progress = progress_wanted();
    mode.deadline = deadline_ns();
    if (const std::string file = environment("LLMBENCH_CALIBRATION"); !file.empty())
        mode.noise = read_calibration(file_content(file, "LLMBENCH_CALIBRATION"), file, p.name);
    inconclusive_policy();  // a bad value is refused before the load, not after it
    return mode;
}

/// A file that cannot be written is told of before the load, not after it.
inline void check_writable(const std::string& file) {
    const std::filesystem::path path = file;
    std::error_code ignored;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
    const std::filesystem::path draft = file + ".tmp";
    const bool writable = !std::filesystem::is_directory(path, ignored) && path.has_filename() &&
                          static_cast<bool>(std::ofstream(draft));
    std::filesystem::remove(draft, ignored);
    require(writable, "baseline is stored(\"" + file + "\"): the file cannot be written");
}

/// Blocks of two pairs, ABBA or BAAB by the seed: a drift of the machine hits both arms alike.
inline bool baseline_goes_first(std::uint64_t seed, int pair) {
    const bool flipped = mixed(seed + 7919 * static_cast<std::uint64_t>(pair / 2)) & 1;
    return flipped != (pair % 2 == 1);
}

/// The servers of a gate, and its repeats on them.
class gate_run {
public:
    gate_run(gate_report& g, const scenario& s, const run_mode& mode)
        : g_(g),
          p_(g.what),
          mode_(mode),
          candidate_(s.target, run_arm::candidate),
          meter_(g.what, mode.progress, style_of_console()) {
        if (p_.has_baseline)
            baseline_ = std::make_unique<live_target>(s.baseline.live(), run_arm::baseline);
        if (mode.write_baseline) check_writable(str(p_.stored.file));
        else if (p_.has_stored_baseline) {
            const std::string file = str(p_.stored.file);
            old_ = read_stored_gate(
                file_content(file, "baseline is stored(\"" + file +
                                       "\"), which LLMBENCH_WRITE_BASELINE=1 would write"),
                file, p_.name);
        }
    }
    /// False where there is no time for a single repeat.
    bool bring_up() {
        if (is_out_of_time(0)) { tell_stop(0); return false; }
        const auto left_s = [&] {
            return mode_.deadline > 0 ? static_cast<double>(mode_.deadline - now_ns()) * 1e-9
                                      : infinity;
        };
        candidate_.bring_up(left_s());
        candidate_.learn_tokens(p_, left_s());
        g_.target = candidate_.facts();
        if (baseline_) baseline_->bring_up(left_s());
        if (baseline_) baseline_->learn_tokens(p_, left_s());
        if (baseline_) g_.baseline = baseline_->facts();
        check_images(*candidate_.load().api);
        if (baseline_) check_images(*baseline_->load().api);
        if (!p_.has_stored_baseline) return true;
        g_.baseline.kind = target_kind::stored;
        g_.baseline.url = str(p_.stored.file);
        if (mode_.write_baseline) return true;
        check_comparable(old_, str(p_.stored.file), p_, g_.target);
        g_.measured.stored = {str(p_.stored.file), p_.stored.day_to_day.fraction, old_.statistics};
        return true;
    }
    void check_images(const api_traits& api) const {
        require(api.takes_images || !asks_about_images(p_),
                std::string("workload has images, and ") + api.name +
                    " takes none: use openai_chat");
    }
    /// Repeats the load until every SLO is decided, the repeats or the time are spent, or nothing
    /// can be said.
    void measure() {
        meter_.say(announcement(g_));
        for (int repeat = 0; repeat < p_.most_repeats; ++repeat) {
            const long long began = now_ns();
            if (is_out_of_time(repeat)) return tell_stop(repeat);
            const bool whole = measure_once(repeat);
            if (!whole) return tell_stop(repeat);
            slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
            if (!gate_invalid_reason(g_.measured).empty()) return;
            const bool judges = mode_.judges() && !p_.slos.empty();
            if (!judges || repeat + 1 < p_.first_repeats) continue;
            // Under too much load a shown miss is told as one, and red takes a third repeat.
            if (repeat + 1 < first_fail && !over_saturation_reason(g_.measured).empty()) continue;
            const std::vector<slo_verdict> so_far = judge_all(g_.measured);
            if (all_decided(so_far)) return;
            meter_.decided(so_far);
        }
    }

private:
    /// Whether the next repeat would not be over in time.
    bool is_out_of_time(int repeat) const {
        const bool doubled = p_.rule.traffic == fresh && repeat + 1 == last_stage;
        const double arms = baseline_ ? 2 : 1;
        const long long needed = std::max(slowest_ns_, ns_of(arms * expected_seconds(p_)));
        return mode_.deadline > 0 && now_ns() + needed * (doubled ? 2 : 1) > mode_.deadline;
    }
    void tell_stop(int repeats) {
        g_.measured.stopped =
            printed("LLMBENCH_TIME_BUDGET of %g s is spent after %d of %d %ss", time_budget_s(),
                    repeats, p_.most_repeats, repeat_word(p_.rule, p_.has_baseline));
    }
    /// Both arms, where there are two. False where the time ended in the middle: then neither is
    /// evidence.
    bool measure_once(int repeat) {
        const bool baseline_first = baseline_ && baseline_goes_first(p_.seed, repeat);
        bool whole = true;
        if (baseline_first) whole = repeat_on(*baseline_, run_arm::baseline, repeat);
        if (whole) whole = repeat_on(candidate_, run_arm::candidate, repeat);
        if (whole && baseline_ && !baseline_first)
            whole = repeat_on(*baseline_, run_arm::baseline, repeat);
        if (!whole)
            for (auto* arm : {&g_.measured.candidate, &g_.measured.baseline})
                if (!arm->empty() && arm->back().index == repeat) arm->pop_back();
        return whole;
    }
    /// False where the time ended in its middle.
    bool repeat_on(live_target& target, run_arm arm, int repeat) {
        session& all = session::of_this_program();
        if (repeat > 0) {
            if (target.restarts()) target.restart();
            else
                std::this_thread::sleep_for(
                    std::chrono::milliseconds(200));  // queues drain, caches settle
        }
        auto& into = arm == run_arm::baseline ? g_.measured.baseline : g_.measured.candidate;
        meter_.stage(stage_text(p_, repeat, arm));
        const bool is_fresh = p_.rule.traffic == fresh;
        record_writer writer(all, p_.name);
        into.push_back(run_repeat(is_fresh ? stage_of(p_, repeat) : p_, target, arm, repeat,
                                  all.number_of_gates(),
                                  {mode_.deadline, all.room_for_gaps(), &writer.box(), &meter_}));
        return !into.back().cut_short;
    }

    gate_report& g_;
    const plan& p_;
    const run_mode& mode_;
    live_target candidate_;
    std::unique_ptr<live_target> baseline_{};
    stored_gate old_{};
    long long slowest_ns_ = 0;  // of the repeats so far
    progress_meter meter_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
