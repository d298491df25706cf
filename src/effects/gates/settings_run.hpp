// several settings of a server, measured in turns
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat_list.hpp"
#include "core/judging/client_bias.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/validity.hpp"
#include "core/described/sentences.hpp"
#include "core/comparing/setting_ratios.hpp"
#include "core/judging/outcome.hpp"
#include "core/traffic/load_conditions.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/tokens.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/page_watch.hpp"
#include "effects/targets/same_server.hpp"
#include "effects/gates/announcement.hpp"
#include "effects/gates/gate_repeats.hpp"
#include "effects/gates/recorded_repeat.hpp"
#include "effects/gates/repeat_slots.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/unended_profiles.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <exception>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // exchange
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One setting: its part of the plan, its server, and what was measured of it.
struct setting_under_test {
    std::string name{};
    plan what{};
    int number = 0;  // of its gate
    live_target server;
    measured_gate all{};
    std::string lost{};  // why it has no more turns
    gate_outcome lost_as = gate_outcome::invalid;
    bool is_missing = false;  // no server was there
    bool is_known = false;    // it was up once
    long long took_ns = 0;    // of its turns, its server's start included
    bool has_turns() const { return lost.empty(); }
};

/// The rounds of a comparison.
class settings_run {
public:
    /// `all`: in the order in which they were named. They must outlive this.
    settings_run(std::vector<setting_under_test>& all, const plan& as_a_whole,
                 const run_mode& mode, progress_mode progress)
        : all_(all),
          whole_(as_a_whole),
          mode_(mode),
          rounds_(all.front().what.judged->most_repeats),
          slots_(rounds_),
          meter_(whole_, progress, surroundings_of_program().style()) {
        for (setting_under_test& s : all_) {
            static_cast<load_conditions&>(s.all.seen) = load_conditions_of(s.what);
            s.all.judged_by = terms_asked(s.what, mode);
        }
    }
    /// Until all rounds are measured, the time is spent, or no setting is left. A round that the
    /// client had too great a part in is measured again, on all settings.
    void measure() {
        meter_.say(printed("\n%s\n  ", whole_.name.c_str()) + plan_text(whole_) +
                   printed("; %zu settings in turns, %d rounds", all_.size(), rounds_) +
                   time_of_all() + "\n");
        for (setting_under_test& s : all_)
            if (!s.server.is_process()) bring_up(s);
        check_servers();
        for (int slot = next_slot(); slot >= 0; slot = next_slot()) {
            const long long began = now_ns();
            if (is_out_of_time() || !measure_round(slot)) {
                note_end_of_time();
                break;
            }
            slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
        }
        if (stop_asked.load()) note_interruption();
        for (setting_under_test& s : all_) s.all.found = assess(s.all.seen, s.all.judged_by);
    }

private:
    std::string time_of_all() const {
        const double each = seconds_of_one(whole_);
        const double all = each * whole_.judged->most_repeats;
        return all > 0 ? ", " + span_text(all, all) + of_virtual_time() : std::string();
    }
    /// Which round is measured next; -1: none.
    int next_slot() {
        if (stop_asked.load() || !is_anything_left()) return -1;
        const int slot = slots_.next(measured_rounds());
        if (slot < rounds_) return slot;
        for (setting_under_test& s : all_) {
            if (!s.has_turns()) continue;
            s.all.found = assess(s.all.seen, s.all.judged_by);
            if (s.all.found.bias && set_aside(*s.all.found.bias))
                return slots_.next(measured_rounds());
        }
        return -1;
    }
    bool is_anything_left() const {
        for (const setting_under_test& s : all_)
            if (s.has_turns()) return true;
        return false;
    }
    /// Whole ones: the same of all settings that still have turns.
    int measured_rounds() const {
        for (const setting_under_test& s : all_)
            if (s.has_turns()) return static_cast<int>(s.all.seen.candidate.size());
        return 0;
    }
    /// As of a gate's repeats, and what is set aside of one setting goes of all, for they are held
    /// against each other round by round.
    bool set_aside(const client_bias& bias) {
        const int slot = static_cast<int>(bias.repeat);
        if (slot >= measured_rounds() || !slots_.has_another(measured_rounds()) ||
            is_out_of_time())
            return false;
        slots_.set_aside(seen_where([](const setting_under_test& s) { return s.has_turns(); }),
                         bias.repeat, described(bias.why));
        meter_.say(printed("  round %d is measured again: ", slot + 1) + described(bias.why) +
                   "\n");
        return true;
    }
    /// False where the time ended in its middle: then it is no evidence for any setting.
    bool measure_round(int slot) {
        const int number = slots_.begin();
        bool whole = true;
        for (const std::size_t i : turns_of_round(all_.size(), slot))
            if (whole && all_[i].has_turns() && !stop_asked.load()) {
                const long long began = now_ns();
                whole = take_turn(all_[i], slot, number);
                all_[i].took_ns += now_ns() - began;
            }
        slots_.end(seen_where([&](const setting_under_test& s) { return !whole || s.has_turns(); }),
                   slot, number, whole);
        return whole;
    }
    template <class F>
    std::vector<evidence*> seen_where(F&& f) {
        std::vector<evidence*> seen;
        for (setting_under_test& s : all_)
            if (f(s)) seen.push_back(&s.all.seen);
        return seen;
    }
    /// A process is there for its turn alone: two of them may not fit beside each other.
    bool take_turn(setting_under_test& s, int slot, int number) {
        if (s.server.is_process()) bring_up(s);
        else if (number > 0) rest(s.server.pages());
        if (!s.has_turns()) return true;
        meter_.stage(printed("round %d of %d, ", slot + 1, rounds_) + s.name);
        repeat_list& arm = s.all.seen.candidate;
        arm.push_back(recorded_repeat(s.what, s.server, run_arm::candidate, number, s.number,
                                      mode_.deadline_ns, meter_));
        s.server.end();
        if (arm.back().cut_short) return false;
        if (const cause why = fault_of_gate(s.all.seen)) {
            s.lost = described(why);
            meter_.say("  " + s.name + " has no more turns: " + s.lost + "\n");
        }
        return true;
    }

    /// A server that is not there leaves the others.
    void bring_up(setting_under_test& s) {
        const auto lose = [&](gate_outcome as, bool is_missing, const std::exception& e) {
            s.lost = e.what();
            s.lost_as = as;
            s.is_missing = is_missing;
            s.server.end();
            meter_.say("  " + s.name + ": " + s.lost + "\n");
            if (!s.all.seen.candidate.empty())
                s.all.seen.candidate.change_last([&](repeat_data& d) {
                    d.target_gone = "it did not start again: " + s.lost;
                });
        };
        try {
            s.server.bring_up(seconds_left());
            if (std::exchange(s.is_known, true)) return;
            check_images(s.what, *s.server.load().api);
            check_room(s);
            s.server.check_answers(*s.what.sent);
            s.server.learn_tokens(s.what, seconds_left());
            s.server.check_reports_metrics(s.what.judged->slos, s.what.sent->common);
            s.all.target = s.server.facts();
            for (const std::string& note :
                 unended_profiles::of_this_program().ended_on(s.server, s.number)) {
                meter_.say("  note: " + note + "\n");
                s.all.seen.notes.push_back(note);
            }
            meter_.say("  " + s.name + ": " + target_text(s.all.target) +
                       (makes_up_prompts(s.what)
                            ? "; " + fit_text(s.all.target.tokens, shortest_prompt(s.what))
                            : "") +
                       "\n");
            for (const std::string& note : s.all.target.notes)
                if (session::of_this_program().is_news(note))
                    meter_.say("  note: " + note + "\n");
        } catch (const std::invalid_argument& e) {
            lose(gate_outcome::refused, false, e);
        } catch (const no_server& e) {
            lose(gate_outcome::invalid, !stop_asked.load(), e);
        } catch (const std::exception& e) {
            lose(gate_outcome::invalid, false, e);
        }
    }
    /// Settings are compared on the same sessions, those of all of them.
    static void check_room(const setting_under_test& s) {
        const plan fitted = without_long_sessions(
            s.what, [&](const std::string& model) { return s.server.room_of(model); });
        if (trace_hash(fitted) != trace_hash(s.what))
            refuse({"its server has no room for all sessions, which are the same of all settings: ",
                    fitted.sent->workload_text, "; give workload.max_context"});
    }
    /// Two settings that are one server differ in nothing.
    void check_servers() const {
        for (std::size_t a = 0; a < all_.size(); ++a)
            for (std::size_t b = a + 1; b < all_.size(); ++b) {
                if (!all_[a].is_known || !all_[b].is_known) continue;
                const live_target &one = all_[a].server, &other = all_[b].server;
                if (are_one_server(one.load(), other.load()))
                    refuse({"settings \"", all_[a].name, "\" and \"", all_[b].name,
                            "\" are one server at ", printable(one.facts().url),
                            ": give them URLs, models, paths or headers of their own"});
                if (lead_to_one_process(one.load(), one.pages(), other.load(), other.pages(),
                                        all_[a].what.sent->common))
                    refuse({one_process_text("setting \"" + all_[a].name + "\"", one.facts().url,
                                             "setting \"" + all_[b].name + "\"", other.facts().url),
                            " and differ in nothing: forward another port"});
            }
    }

    double seconds_left() const { return seconds_until(mode_.deadline_ns); }
    /// Whether the next round would not be over in time.
    bool is_out_of_time() const {
        const double each = expected_seconds(whole_) * static_cast<double>(all_.size());
        return mode_.deadline_ns > 0 &&
               now_ns() + std::max(slowest_ns_, ns_of(each)) > mode_.deadline_ns;
    }
    /// What is undecided has another reason now.
    void note_end_of_time() {
        const std::string why =
            printed("LLMBENCH_TIME_BUDGET of %g s is spent after %d of %d rounds",
                    mode_.time_budget_s, measured_rounds(), rounds_);
        for (setting_under_test& s : all_)
            if (s.has_turns()) s.all.seen.stopped = why;
    }
    /// None of the settings has what it was to have, whichever of them was being measured.
    void note_interruption() {
        for (setting_under_test& s : all_) {
            if (!s.all.seen.candidate.empty())
                s.all.seen.candidate.change_last([](repeat_data& d) { d.interrupted = true; });
            else if (s.lost.empty()) s.lost = "the run was interrupted before its first turn";
        }
    }

    std::vector<setting_under_test>& all_;
    const plan& whole_;
    const run_mode& mode_;
    const int rounds_;
    repeat_slots slots_;
    long long slowest_ns_ = 0;
    progress_meter meter_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
