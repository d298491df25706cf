// the repeats of a gate, on its servers
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/random.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/settling.hpp"
#include "core/judging/client.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/judge.hpp"
#include "core/judging/measurements.hpp"
#include "core/described/described.hpp"
#include "core/traffic/plan.hpp"
#include "core/capacity/found.hpp"
#include "core/capacity/search.hpp"
#include "core/capacity/searched.hpp"
#include "core/planning/past_extension.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/targets/same_server.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/record_files.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // max
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <memory>  // make_unique, shared_ptr, unique_ptr
#include <optional>
#include <string>
#include <utility>  // exchange, move
#include <vector>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Positions of repeats, pairs or rounds of a comparison; a probe has none (-1). A repeat that is
/// set aside is measured again in its position, because order and requests depend on it.
class repeat_positions {
public:
    explicit repeat_positions(int max_replacements) : max_replacements_(max_replacements) {}

    /// The next position after `count` repeats that count.
    int next(int count) const { return is_again() ? again_ : count; }
    bool is_again() const { return again_ >= 0; }
    /// Returns the number of a repeat that begins, among all measured, those set aside included.
    int begin() { return measured_++; }
    bool has_another(int count) const { return measured_ - count < max_replacements_; }
    /// A repeat has ended: it gets its position, or is dropped if not `whole`.
    void end(const std::vector<measurements*>& all, int position, int number, bool whole) {
        for (measurements* seen : all)
            for (repeat_list* variant : {&seen->candidate, &seen->baseline}) {
                if (variant->empty() || variant->back().index != number) continue;
                if (!whole) variant->pop_back();
                else if (position >= 0) variant->move_last_to(static_cast<std::size_t>(position));
            }
        again_ = -1;
    }
    /// Sets the repeats of this position aside in all lists: they are compared with each other.
    void set_aside(const std::vector<measurements*>& all, std::size_t position,
                   const std::string& why) {
        for (measurements* seen : all)
            for (repeat_list* variant : {&seen->candidate, &seen->baseline}) {
                if (position >= variant->size()) continue;
                const repeat_data& d = (*variant)[position];
                seen->set_aside.push_back({d.variant, d.index, why});
                variant->erase(position);
            }
        again_ = static_cast<int>(position);
    }
    /// The next position follows from the repeats that are left.
    void leave_empty() { again_ = -1; }

private:
    const int max_replacements_;
    int measured_ = 0;
    int again_ = -1;  // the position to measure again
};

/// The server of the candidate, and that of the baseline: another one, or the same.
class gate_servers {
public:
    gate_servers(const plan& p, const scenario& s, const run_mode& mode)
        : p_(p),
          candidate_(s.target, run_variant::candidate, mode.stand_in(run_variant::candidate)) {
        if (s.baseline.is_same_server() || p.sent->otherwise) baseline_ = &candidate_;
        else if (p.judged->has_baseline) {
            other_ = std::make_unique<live_target>(s.baseline.live(), run_variant::baseline,
                                                   mode.stand_in(run_variant::baseline));
            other_->is_compared_with(candidate_);
            baseline_ = other_.get();
        }
    }
    live_target& on(run_variant variant) {
        return variant == run_variant::baseline ? *baseline_ : candidate_;
    }
    live_target& candidate() { return candidate_; }
    /// The room that both variants have; 0: neither reports one.
    int room_of(const std::string& model) const {
        int least = candidate_.room_of(model);
        const auto take = [&](int room) {
            if (room > 0 && (least == 0 || room < least)) least = room;
        };
        if (other_) take(other_->room_of(model));
        if (p_.sent->otherwise && model.empty())
            take(candidate_.room_of((*p_.sent->otherwise).common.model));
        return least;
    }
    bool has_baseline() const { return baseline_ != nullptr; }
    /// Calls `f` for each different server.
    template <class F>
    void each(F&& f) {
        f(candidate_);
        if (other_) f(*other_);
    }
    void check_two_servers() const {
        if (!other_) return;
        const std::string& mine = candidate_.facts().url;
        const std::string& its = other_->facts().url;
        std::string why = same_server_reason(candidate_.load(), mine, other_->load(), its);
        if (why.empty() && lead_to_one_process(candidate_.load(), candidate_.pages(),
                                               other_->load(), other_->pages(), p_.sent->common))
            why = one_process_text("target", mine, "baseline", its) +
                  " and would be compared with itself: forward another port, or say .baseline = "
                  "otherwise{.same = true}";
        if (!why.empty()) refuse({why});
    }
    /// Fills in all that is known of the servers so far.
    void report(target_facts& mine, target_facts& its) const {
        mine = candidate_.facts();
        if (!baseline_) return;
        its = baseline_->facts();
        if (!p_.sent->otherwise) {
            if (!other_) its.kind = target_kind::same;
            return;
        }
        // Two variants on one server differ by their requests.
        its.kind = target_kind::otherwise;
        const std::string& model = (*p_.sent->otherwise).common.model;
        if (!model.empty()) its.model = printable(model);
        mine.options = options_text(p_, run_variant::candidate);
        its.options = options_text(p_, run_variant::baseline);
        if ((*p_.sent->otherwise).beside.size() != p_.sent->beside.size())
            its.options += ", nothing done beside the load";
        check_other_requests(p_, candidate_.load());
    }
    void check_objectives() const {
        candidate_.check_reports_metrics(p_.judged->slos, p_.sent->common);
        std::vector<slo> compared = p_.judged->slos;
        std::erase_if(compared, [](const slo& s) { return s.factor == 0; });
        if (baseline_) baseline_->check_reports_metrics(compared, p_.sent->common);
        check_images(p_, *candidate_.load().api);
        if (baseline_) check_images(p_, *baseline_->load().api);
    }

private:
    const plan& p_;
    live_target candidate_;
    std::unique_ptr<live_target> other_{};  // of the baseline, if it has its own server
    live_target* baseline_ = nullptr;       // null, `other_`, or the candidate's
};

/// Runs one repeat, writes its records and reads the server's metrics meanwhile.
inline repeat_data recorded_repeat(const plan& what, live_target& target, run_variant variant,
                                   int number, int gate, long long deadline_ns,
                                   progress_meter& meter) {
    session& program = session::of_this_program();
    record_writer writer(program.records(), what.name);
    const repeat_parameters parameters{deadline_ns, program.room_for_gaps(), &writer.box(), &meter,
                                       {}, settings_of(environment).answers};
    repeat_data d;
    if (what.shard.is_whole())
        d = watched_repeat(what, target, variant, number, gate, parameters);
    else load_sharing_of_program->send(d, what, target, variant, number, gate, parameters);
    program.note_gaps(d.gaps.size());
    return d;
}

/// Blocks of two pairs, ABBA or BAAB by the seed: a drift of the machine then affects both variants
/// alike.
inline bool baseline_goes_first(std::uint64_t seed, int pair) {
    const bool flipped = mixed(seed + 7919 * static_cast<std::uint64_t>(pair / 2)) & 1;
    return flipped != (pair % 2 == 1);
}

/// The measurements of a gate's repeats.
struct measured_gate {
    target_facts target{}, baseline{};
    measurements seen{};
    judging_parameters judged_by{};
    analysis found{};
    taken_profile profile{};  // of the candidate, if it failed
    std::shared_ptr<const gate_past> past{};  // if an extension keeps earlier runs
};

/// The settings of a probe of a search with slow answers.
struct probe_order {
    probe_of part = probe_of::asked;
    double load = 0, answer_s = 0;
};

/// Measures repeats, pairs or probes, and keeps those that count. Its arguments must outlive it.
class gate_repeats {
public:
    gate_repeats(const plan& p, const run_mode& mode, gate_servers& servers, measured_gate& all,
                 progress_meter& meter)
        : p_(p),
          mode_(mode),
          servers_(servers),
          all_(all),
          positions_(p.judged->max_repeats),
          max_repeats_(p.judged->max_repeats),
          meter_(meter) {}

    /// The number of repeats that count.
    int count() const { return static_cast<int>(all_.seen.candidate.size()); }
    /// The maximum of count().
    int max_repeats() const { return max_repeats_; }
    void allow(int repeats) { max_repeats_ = std::max(max_repeats_, repeats); }
    /// The next position: that of the repeat that was set aside, if there is one.
    int next_position() const { return positions_.next(count()); }
    /// The repeat number for side measurements.
    int next_number() { return positions_.begin(); }
    /// The analysis of all repeats so far.
    const analysis& analysed() {
        if (!is_analysed_) all_.found = analyse_loads(all_.seen, all_.judged_by);
        is_analysed_ = true;
        return all_.found;
    }

    /// Whether another repeat would end after the deadline.
    bool is_out_of_time() const { return is_past_deadline(needed_ns()); }
    bool is_past_deadline(long long needed_ns) const {
        return mode_.deadline_ns > 0 && now_ns() + needed_ns > mode_.deadline_ns;
    }
    void announce_stop() {
        is_analysed_ = false;  // the reason of undecided verdicts changes
        all_.seen.stopped =
            budget_text(mode_.time_budget_s, seconds_until(mode_.deadline_ns),
                        static_cast<double>(needed_ns()) * 1e-9, count(), max_repeats_,
                        counted_text(p_));
    }

    /// Measures the next position, on both variants if there are two. Returns false if the time
    /// ended in between: then neither counts.
    bool measure() {
        const int position = next_position();
        const long long began = now_ns();
        std::vector<run_variant> variants{run_variant::candidate};
        if (servers_.has_baseline())
            variants.insert(
                baseline_goes_first(p_.sent->seed, position) ? variants.begin() : variants.end(),
                run_variant::baseline);
        if (!measure_on(variants, position, p_, nullptr)) return false;
        slowest_ns_ = std::max(slowest_ns_, now_ns() - began);
        return true;
    }
    /// Measures a probe; returns false if the time ended.
    bool measure(const plan& what, const probe_order& probe) {
        return measure_on({run_variant::candidate}, 0, what, &probe);
    }
    /// Sets a repeat or pair aside and measures another, if one is left. The choice does not depend
    /// on the result: a repeat is set aside only for an error of the client, and only while a
    /// verdict depends on that error. Passes without forgiveness and misses that remain with it
    /// stay. There are at most as many replacements as repeats, so a client that always stalls
    /// ends.
    bool measure_again(const std::optional<client_error>& error) {
        if (!error || error->repeat >= all_.seen.candidate.size()) return false;
        const int position = static_cast<int>(error->repeat);
        if (!positions_.has_another(count()) || (!p_.searches() && is_out_of_time())) return false;
        positions_.set_aside({&all_.seen}, error->repeat, described(error->why));
        meter_.say(printed("  %s %d is measured again: ", counted_text(p_), position + 1) +
                   described(error->why) + "\n");
        if (p_.searches()) positions_.leave_empty();  // the next probe follows from those left
        is_analysed_ = false;
        return true;
    }

private:
    long long needed_ns() const {
        const double variants = servers_.has_baseline() ? 2 : 1;
        return std::max(slowest_ns_, ns_of(variants * expected_seconds(p_)));
    }
    bool measure_on(const std::vector<run_variant>& variants, int position, const plan& what,
                    const probe_order* probe) {
        is_analysed_ = false;
        const int number = positions_.begin();
        const std::size_t before =
            std::max(all_.seen.candidate.size(), all_.seen.baseline.size());
        bool whole = true;
        for (const run_variant variant : variants) {
            if (!whole) break;
            if (probe)
                meter_.stage(probe_name(p_, before) + " at " +
                             value_text(load_metric(p_), probe->load));
            whole = repeat_on(variant, position, number, what, probe);
        }
        if (whole && variants.size() > 1) hold_answers_together();
        for (std::vector<kept_text>& texts : texts_) texts.clear();
        positions_.end({&all_.seen}, probe ? -1 : position, number, whole);
        return whole;
    }
    /// Compares the answers of the last pair, if answers are compared.
    void hold_answers_together() {
        const repeat_data& theirs = all_.seen.baseline.back();
        if (!has_hashes(theirs)) return;
        std::vector<std::string> secrets = servers_.on(run_variant::candidate).load().secrets;
        for (const std::string& s : servers_.on(run_variant::baseline).load().secrets)
            secrets.push_back(s);
        const answers_shown show = settings_of(environment).answers;
        all_.seen.candidate.change_last([&](repeat_data& mine) {
            compare_answers(mine, theirs, texts_[0], texts_[1],
                            show == answers_shown::none ? 0 : max_answers_shown,
                            [&](std::string s) { return without_secrets(std::move(s), secrets); });
        });
    }
    /// Returns false if the time ended in between.
    bool repeat_on(run_variant variant, int position, int number, const plan& what,
                   const probe_order* probe) {
        live_target& target = servers_.on(variant);
        if (number > 0) {
            if (!target.restarts()) rest(target.pages());
            else if (!is_in_time([&] { target.restart(seconds_until(mode_.deadline_ns)); }))
                return false;
        }
        if (!probe)
            meter_.stage(stage_text(p_, position, variant) +
                         (positions_.is_again() ? ", again" : ""));
        const int gate = session::of_this_program().running_gate();
        target.start_cold(report_directory() + printed("/cold-%d.log", gate));
        const double left_s = seconds_until(mode_.deadline_ns);
        const plan own = plan_of_variant(what, variant);
        const double max_s = std::min(left_s, own.sent->limits.total.seconds());
        if (!mode_.model && !is_in_time([&] { prepare_server(own, target, number, max_s); }))
            return false;
        load_sharing_of_program->ask({variant, number, probe ? probe->load : 0,
                                      probe ? probe->answer_s : 0,
                                      mode_.deadline_ns > 0 ? std::max(0.001, left_s) : 0});
        repeat_data d = recorded_repeat(own, target, variant, number, gate,
                                        mode_.deadline_ns, meter_);
        if (probe) {
            d.load = probe->load;
            d.part = probe->part;
        }
        note_warmup(d);
        const bool whole = !d.cut_short;
        texts_[variant == run_variant::baseline ? 1 : 0] = std::exchange(d.texts, {});
        all_.seen.variant(variant).push_back(std::move(d));
        return whole;
    }
    /// Returns false if the time ended before it was done.
    template <class F>
    bool is_in_time(F&& f) const {
        try {
            f();
            return true;
        } catch (const std::runtime_error&) {
            if (stop_asked.load() || seconds_until(mode_.deadline_ns) > 0) throw;
            return false;
        }
    }
    /// Every report has the warm-ups of all repeats, also of those set aside later: a cold start or
    /// a warm-up that never became stable must be seen.
    void note_warmup(const repeat_data& d) {
        if (!d.warmup.asked) return;
        const std::string whose = d.variant == run_variant::baseline ? "baseline, " : "";
        all_.seen.notes.push_back(
            warmup_sentence(d.warmup, whose + printed("repeat %d", d.index + 1)));
    }

    const plan& p_;
    const run_mode& mode_;
    gate_servers& servers_;
    measured_gate& all_;
    repeat_positions positions_;
    int max_repeats_;
    long long slowest_ns_ = 0;  // of the repeats so far
    bool is_analysed_ = false;  // the analysis is that of the repeats so far
    progress_meter& meter_;
    std::vector<kept_text> texts_[2]{};  // of the variants of the current pair
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
