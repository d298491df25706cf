// several settings of a server, measured in turns
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/judging/client.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/checks.hpp"
#include "core/described/causes.hpp"
#include "core/judging/outcome.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/tokens.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/load_faults.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/same_server.hpp"
#include "effects/gates/gate_run.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/gate_servers.hpp"
#include "effects/gates/slot.hpp"
#include "extensions/compare/core/settings.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <exception>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One setting: its server, its part of the plan and its measurements.
struct setting_under_test {
    std::string name{};
    int number = 0;  // of its gate
    live_target server;
    bool is_fresh = false;  // started again for each turn, or a model
    measured_gate all{};
    std::string lost{};  // why it has no more turns
    gate_outcome lost_as = gate_outcome::invalid;
    bool is_missing = false;  // no server was there
    bool is_known = false;    // it was running once
    long long took_ns = 0;    // by its turns, with its server's starts
    bool has_turns() const { return lost.empty(); }
};

class settings_run {
public:
    /// `all`: in the order of the scenario. `key_is_for`: the URL whose host gets LLMBENCH_API_KEY,
    /// "" for that of the first endpoint. The arguments must outlive this.
    settings_run(vector<setting_under_test>& all, const plan& as_a_whole, const run_mode& mode,
                 std::string key_is_for, progress_mode progress)
        : all_(all),
          whole_(as_a_whole),
          mode_(mode),
          rounds_(all.front().all.what.judged->max_repeats),
          positions_(rounds_),
          meter_({.each_s = seconds_of_one(as_a_whole), .loads = {loads(), loads()}}, progress,
                 surroundings_of_program().style()) {
        for (setting_under_test& s : all_) {
            static_cast<load_conditions&>(s.all.seen) = load_conditions_of(s.all.what);
            s.all.seen.pairs_are_fresh = s.is_fresh;
            s.all.judged_by = parameters_asked(s.all.what, mode);
            if (key_is_for.empty()) key_is_for = s.server.url_of_endpoint();
            s.server.takes_key_of(key_is_for);
        }
    }
    /// Until all rounds are measured, the time is spent, or no setting is left. A round that the
    /// client had too great a part in is measured again, on all settings.
    void measure() {
        meter_.say(printed("\n%s\n  ", whole_.name.c_str()) + plan_text(whole_) +
                   printed("; %zu settings in turns, %d rounds", all_.size(), rounds_) +
                   time_of_all() + "\n");
        bool in_time = true;
        for (setting_under_test& s : all_)
            if (in_time && !s.server.ends_after_turn()) in_time = bring_up(s);
        check_servers();
        for (int at = next_position(); at >= 0; at = next_position()) {
            const long long began = now_ns();
            if (!in_time || is_out_of_time() || !measure_round(at)) {
                note_end_of_time();
                break;
            }
            slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
        }
        if (stop_asked.load()) note_interruption();
        for (setting_under_test& s : all_) s.all.found = analyse(s.all.seen, s.all.judged_by);
    }

private:
    /// In all turns of all settings.
    double loads() const { return rounds_ * static_cast<double>(all_.size()); }
    std::string time_of_all() const {
        const double all = seconds_of_one(whole_) * loads();
        return all > 0 ? ", " + span_text(all, all) + of_virtual_time() : std::string();
    }
    /// Returns the next round to measure; -1: none.
    int next_position() {
        if (stop_asked.load() || !is_anything_left()) return -1;
        const int position = positions_.next(measured_rounds());
        if (position < rounds_) return position;
        for (setting_under_test& s : all_) {
            if (!s.has_turns()) continue;
            s.all.found = analyse(s.all.seen, s.all.judged_by);
            if (s.all.found.by_client && set_aside(*s.all.found.by_client))
                return positions_.next(measured_rounds());
        }
        return -1;
    }
    bool is_anything_left() const {
        return any_of(all_, [](const setting_under_test& s) { return s.has_turns(); });
    }
    /// The number of complete rounds, equal for all settings that still have turns.
    int measured_rounds() const {
        for (const setting_under_test& s : all_)
            if (s.has_turns()) return static_cast<int>(s.all.seen.candidate.size());
        return 0;
    }
    /// As for a gate's repeats, but the round is set aside for all settings, because they are
    /// compared by rounds.
    bool set_aside(const client_error& bias) {
        const int position = static_cast<int>(bias.repeat);
        if (position >= measured_rounds() || !positions_.has_another(measured_rounds()) ||
            is_out_of_time())
            return false;
        positions_.set_aside(
            seen_where([](const setting_under_test& s) { return s.has_turns(); }), bias.repeat,
            described(bias.why));
        meter_.say(printed("  round %d is measured again: ", position + 1) + described(bias.why) +
                   "\n");
        return true;
    }
    /// Returns false if the time ended in between: then the round counts for no setting.
    bool measure_round(int position) {
        const int number = positions_.begin();
        bool whole = true;
        for (const std::size_t i : turns_of_round(all_.size(), position))
            if (whole && all_[i].has_turns() && !stop_asked.load()) {
                const long long began = now_ns();
                whole = take_turn(all_[i], position, number);
                all_[i].took_ns += now_ns() - began;
            }
        positions_.end(
            seen_where([&](const setting_under_test& s) { return !whole || s.has_turns(); }),
            whole ? position : repeat_positions::dropped, number);
        return whole;
    }
    template <class F>
    vector<measurements*> seen_where(F&& f) {
        vector<measurements*> seen;
        for (setting_under_test& s : all_)
            if (f(s)) seen.push_back(&s.all.seen);
        return seen;
    }
    /// A process runs only in its turn: two may not fit side by side. Returns false if the time
    /// ended before the turn was over.
    bool take_turn(setting_under_test& s, int position, int number) {
        const slot_host host{.what = s.all.what,
                             .candidate = s.server,
                             .gate = s.number,
                             .meter = &meter_,
                             .show = mode_.answers,
                             .are_models = mode_.model != nullptr};
        const slot turn{.number = number,
                        .name = printed("round %d of %d, ", position + 1, rounds_) + s.name,
                        .deadline_ns = mode_.deadline_ns};
        if (s.server.ends_after_turn() && !bring_up(s)) return false;
        if (!s.has_turns()) return true;
        variant_repeats variants = orders_of(host, turn);
        if (!make_ready(s, turn, variants)) return false;
        if (!s.has_turns()) return true;
        slot_seen seen = run_slot(turn, variants);
        for (std::string& note : seen.notes) s.all.seen.notes.push_back(std::move(note));
        s.all.seen.candidate.push_back(std::move(seen.repeats[0]));
        if (s.server.ends_after_turn()) s.server.end();
        if (!seen.is_whole) return false;
        if (const cause why = fault_of_gate(s.all.seen)) {
            s.lost = described(why);
            s.server.end();
            meter_.say("  " + s.name + " has no more turns: " + s.lost + "\n");
        }
        return true;
    }

    void lose(setting_under_test& s, gate_outcome as, const std::exception& e,
              const char* told = "it did not start again: ") {
        s.lost = reason_in(e);
        s.lost_as = as;
        s.server.end();
        meter_.say("  " + s.name + ": " + s.lost + "\n");
        if (!s.all.seen.candidate.empty())
            s.all.seen.candidate.change_last(
                [&](repeat_data& d) { d.target_gone = told + s.lost; });
    }
    bool make_ready(setting_under_test& s, const slot& turn, const variant_repeats& variants) {
        try {
            return detail::make_ready(turn, variants);
        } catch (const std::runtime_error& e) {
            lose(s, gate_outcome::invalid, e, "");
        }
        return true;
    }
    /// A missing server leaves the comparison. Returns false if the time ended before.
    bool bring_up(setting_under_test& s) {
        try {
            return is_in_time(mode_.deadline_ns, [&] { find(s); });
        } catch (const std::invalid_argument& e) {
            lose(s, gate_outcome::refused, e);
        } catch (const no_server& e) {
            s.is_missing = !s.is_known && !stop_asked.load();
            lose(s, gate_outcome::invalid, e);
        } catch (const std::exception& e) {
            lose(s, gate_outcome::invalid, e);
        }
        return true;
    }
    void find(setting_under_test& s) {
        s.server.bring_up(seconds_left());
        if (std::exchange(s.is_known, true)) return;
        wake(s);
        check_images(s.all.what, *s.server.load().api);
        check_room(s);
        learn_of(s.server, *s.all.what.sent, seconds_left());
        s.server.check_reports_metrics(s.all.what.judged->slos, s.all.what.sent->common);
        s.all.target = s.server.facts();
        for (const std::string& note : notes_on_profiles(s.server, s.number)) {
            meter_.say("  note: " + note + "\n");
            s.all.seen.notes.push_back(note);
        }
        meter_.say("  " + s.name + ": " + target_text(s.all.target) +
                   (makes_up_prompts(s.all.what)
                        ? "; " + fit_text(s.all.target.tokens, shortest_prompt(s.all.what))
                        : "") +
                   "\n");
        for (const std::string& note : s.all.target.notes)
            if (session::of_this_program().is_news(note))
                meter_.say("  note: " + note + "\n");
    }
    void wake(setting_under_test& s) const {
        s.server.wake(s.all.what.sent->common, seconds_left());
    }
    /// Settings are compared on the same sessions, those that fit all.
    static void check_room(const setting_under_test& s) {
        const plan fitted = without_long_sessions(
            s.all.what, [&](const std::string& model) { return s.server.room_of(model); });
        if (trace_hash(fitted) != trace_hash(s.all.what))
            refuse({"its server has no room for all sessions, which are the same of all settings: ",
                    fitted.sent->workload_text, "; give workload.max_context"});
    }
    /// Two settings on one server cannot differ.
    void check_servers() const {
        for (std::size_t a = 0; a < all_.size(); ++a)
            for (std::size_t b = a + 1; b < all_.size(); ++b) {
                if (!all_[a].is_known || !all_[b].is_known) continue;
                if (!all_[a].has_turns() || !all_[b].has_turns()) continue;  // one is lost
                wake(all_[a]);  // which may be asked
                const live_target &one = all_[a].server, &other = all_[b].server;
                if (are_one_server(one.load(), other.load()))
                    refuse({"settings \"", all_[a].name, "\" and \"", all_[b].name,
                            "\" are one server at ", printable(one.facts().url),
                            ": give them URLs, models, paths or headers of their own"});
                if (lead_to_one_process(one.load(), one.pages(), other.load(), other.pages(),
                                        all_[a].all.what.sent->common))
                    refuse({one_process_text("setting \"" + all_[a].name + "\"", one.facts().url,
                                             "setting \"" + all_[b].name + "\"", other.facts().url),
                            " and differ in nothing: forward another port"});
            }
    }

    double seconds_left() const { return seconds_until(mode_.deadline_ns); }
    bool is_out_of_time() const {
        return mode_.deadline_ns > 0 && now_ns() + needed_ns() > mode_.deadline_ns;
    }
    long long needed_ns() const {
        const double each = expected_seconds(whole_) * static_cast<double>(all_.size());
        return std::max(slowest_ns_, ns_of(each));
    }
    /// Undecided verdicts get another reason.
    void note_end_of_time() {
        const std::string why =
            budget_text(mode_.time_budget_s, seconds_left(),
                        static_cast<double>(needed_ns()) * 1e-9, measured_rounds(), rounds_,
                        "round");
        for (setting_under_test& s : all_)
            if (s.has_turns()) s.all.seen.stopped = why;
    }
    /// After an interruption no setting is complete.
    void note_interruption() {
        for (setting_under_test& s : all_) {
            if (!s.all.seen.candidate.empty())
                s.all.seen.candidate.change_last([](repeat_data& d) { d.interrupted = true; });
            else if (s.lost.empty()) s.lost = "the run was interrupted before its first turn";
        }
    }

    vector<setting_under_test>& all_;
    const plan& whole_;
    const run_mode& mode_;
    const int rounds_;
    repeat_positions positions_;
    long long slowest_ns_ = 0;
    progress_meter meter_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
