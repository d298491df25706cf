// slots: what is loaded at one time, and what follows
#pragma once

#include "api/result.hpp"
#include "api/side_task.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"
#include "core/measured/settling.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/measurements.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/load_search.hpp"
#include "core/planning/plan_text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/server_pages.hpp"
#include "effects/gates/early_looks.hpp"
#include "effects/gates/posts.hpp"
#include "effects/gates/progress_meter.hpp"
#include "effects/gates/record_files.hpp"
#include "effects/gates/repeat.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // min
#include <cmath>  // fabs, isnan
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <cstdlib>  // llabs
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// What is loaded at one time: one variant, or both at once, the candidate first.
struct slot {
    vector<run_variant> variants{run_variant::candidate};
    int position = 0;  // among those that count
    int number = 0;    // among all that were measured, those set aside included
    std::string name{};  // for the progress
    double load = 0, answer_s = 0;  // of a probe; 0: the load of the plan
    probe_of part = probe_of::asked;
    bool parts_twins = false;  // so that they do not meet at one server
    bool tries_alone = false;  // each variant has its server to itself before
    bool is_kept = true;  // its records are written, and its servers' pages are read
    long long deadline_ns = 0;  // 0: none
};

/// What the slots of a gate, or of one setting, have in common. It outlives none of that.
struct slot_host {
    const plan& what;
    live_target& candidate;
    live_target* baseline = nullptr;  // null: none
    int gate = 1;
    progress_meter* meter = nullptr;
    answers_shown show = answers_shown::open;
    bool are_models = false;  // the servers, which need no preparation
    live_target& on(run_variant v) const {
        return v == run_variant::baseline ? *baseline : candidate;
    }
    plan plan_of(const slot& s, run_variant v) const {
        return plan_of_variant(
            s.load > 0 ? the_search().at_load(what, s.load, s.answer_s) : what, v);
    }
};

/// What came of a slot.
struct slot_seen {
    vector<repeat_data> repeats{};  // of its variants; none if the time ended before
    bool is_whole = false;          // the time did not end before, nor in it
    double part = 1;                // of its planned time, after which all was decided
    vector<std::string> notes{};
};

/// Calls `act`; returns false if the time ended before it was done.
template <class Act>
bool is_in_time(long long deadline_ns, Act&& act) {
    try {
        act();
        return true;
    } catch (const std::runtime_error&) {
        if (stop_asked.load() || seconds_until(deadline_ns) > 0) throw;
        return false;
    }
}

/// The plan as its servers get it. Models take no posts but those that they know: their cache is
/// emptied where work is counted, and they are held by a path of theirs.
inline plan plan_on_servers(const slot_host& host, const slot& s, run_variant v) {
    plan p = host.plan_of(s, v);
    if (!host.are_models) return p;
    return with_traffic(std::move(p), [](planned_traffic& t) {
        erase_if(t.prepare, [](const task_step& step) { return !step.by; });
        if (t.counts_work) t.prepare.insert(t.prepare.begin(), post("/reset_prefix_cache"));
        if (!t.arrivals.held.empty()) t.arrivals.held = {post("/pause"), post("/resume")};
    });
}
/// The repeats of a slot. Their plan is made here once: they are prepared and loaded by it.
inline variant_repeats orders_of(const slot_host& host, const slot& s) {
    variant_repeats variants;
    for (const run_variant v : s.variants)
        variants.emplace_back(plan_on_servers(host, s, v), host.on(v),
                              repeat_order{.variant = v,
                                           .number = s.number,
                                           .gate = host.gate,
                                           .parts_twins = s.parts_twins,
                                           .deadline_ns = s.deadline_ns,
                                           .meter = host.meter,
                                           .show = host.show});
    return variants;
}
/// The preparation of a server, with the posts of which an extension's step consists there.
inline plan prepared_by_posts(const plan& p, const live_target& on) {
    return with_traffic(p, [&](planned_traffic& t) {
        vector<task_step> all;
        for (const task_step& step : t.prepare)
            if (!step.by) all.push_back(step);
            else for (const task_step& post : step.by->posts_of_step(p, on)) all.push_back(post);
        t.prepare = std::move(all);
    });
}
/// Makes the servers of a slot ready for it. Returns false if the time ended before.
inline bool make_ready(const slot& s, const variant_repeats& variants) {
    const auto left_s = [&] { return seconds_until(s.deadline_ns); };
    for (const variant_repeat& v : variants) {
        if (stop_asked.load()) return true;  // nothing will be sent
        live_target& target = v.target;
        const planned_traffic& sent = *v.what.sent;
        if (target.was_loaded()) {
            if (!target.restarts()) rest(target.pages());
            else if (!is_in_time(s.deadline_ns, [&] { target.restart(left_s()); })) return false;
        }
        if (!is_in_time(s.deadline_ns,
                        [&] { target.begin_turn(v.asked.variant, sent.common, left_s()); }))
            return false;
        if (v.asked.meter) v.asked.meter->stage(s.name);
        target.start_cold(report_directory() + printed("/cold-%d.log", v.asked.gate));
        const double within_s = std::min(left_s(), sent.limits.total.seconds());
        if (!is_in_time(s.deadline_ns, [&] {
                prepare_server(prepared_by_posts(v.what, target), target, s.number, within_s);
            }))
            return false;
    }
    return true;
}

// ---- what is noted of a slot

/// Of a warm-up, also of a repeat set aside later: a cold start, or a warm-up that never became
/// stable, must be seen.
inline void note_warmup(const repeat_data& d, vector<std::string>& notes) {
    if (!d.warmup.asked) return;
    const std::string whose = d.variant == run_variant::baseline ? "baseline, " : "";
    notes.push_back(warmup_sentence(d.warmup, whose + printed("repeat %d", d.index + 1)));
}
inline void note_speeds(const repeat_data& mine, const repeat_data& its,
                        vector<std::string>& notes) {
    if (std::isnan(mine.speed_at_once) || std::isnan(its.speed_at_once)) return;
    notes.push_back(printed("at once, the candidate answers at %.3g %% of its speed alone, the "
                            "baseline at %.3g %%",
                            100 * mine.speed_at_once, 100 * its.speed_at_once));
}
inline void note_clock_set(long long set_ns, int number, vector<std::string>& notes) {
    if (std::llabs(set_ns) <= noticed_step_ns) return;
    notes.push_back(printed("the time of day was set %s by %s in repeat %d, and the kernel's "
                            "stamps around that do not count",
                            set_ns > 0 ? "forward" : "back",
                            time_text(std::fabs(static_cast<double>(set_ns)) * 1e-9).c_str(),
                            number + 1));
}
inline void note_decided(double part, const repeat_data& d, vector<std::string>& notes) {
    if (part == 1) return;
    notes.push_back("the load ended after " + time_text(d.window.seconds()) + " of " +
                    time_text(d.window.seconds() / part) +
                    ", since all was decided by then (.repeats = 1: the whole time)");
}
inline void note_last_words(live_target& server, vector<std::string>& notes) {
    for (std::string& line : server.take_last_words()) notes.push_back(std::move(line));
}
/// Of a repeat that does not count, as the time ended in it or in the other half of its pair.
inline void note_dropped(const repeat_data& d, vector<std::string>& notes) {
    const requests_before_cut all = before_cut(d);
    if (all.failed > 0)
        notes.push_back(printed("the time ended before repeat %d was whole, so it does not count; "
                                "%zu of %s requests had failed (%s)",
                                d.index + 1, all.failed,
                                d.variant == run_variant::baseline ? "the baseline's" : "its",
                                all.first.c_str()));
}

// ---- the load

/// What came of a load that lasted this part of its planned time.
inline slot_seen seen_of(const slot& s, variant_repeats& variants, double part,
                         const vector<seconds_by_place>& alone, long long clock_set_ns) {
    slot_seen seen{.is_whole = true, .part = part};
    for (std::size_t k = 0; k < alone.size(); ++k) note_speed_at_once(alone[k], variants[k].seen);
    if (!alone.empty()) note_speeds(variants[0].seen, variants[1].seen, seen.notes);
    note_clock_set(clock_set_ns, s.number, seen.notes);
    note_decided(part, variants[0].seen, seen.notes);
    for (variant_repeat& v : variants) {
        v.target.note_load();
        if (std::string why = v.target.end_turn(); v.seen.target_gone.empty())
            v.seen.target_gone = std::move(why);
        note_last_words(v.target, seen.notes);
        v.seen.load = s.load;
        v.seen.part = s.part;
        note_warmup(v.seen, seen.notes);
        seen.is_whole = seen.is_whole && !v.seen.cut_short;
        seen.repeats.push_back(std::move(v.seen));
    }
    return seen;
}
/// The pages of a slot's servers, which are read while the load is sent.
class watched_pages {
public:
    void begin(const variant_repeats& variants) {
        const bool reads = variants[0].what.shard.index == 0;  // one program does
        for (const variant_repeat& v : variants)
            all_.emplace_back(reads ? v.target.pages() : none_,
                              named_series(v.what.judged->slos),
                              v.what.sent->counts_work ? page_use::work : page_use::speed);
    }
    void end(variant_repeats& variants) {
        for (std::size_t i = 0; i < all_.size(); ++i) {
            repeat_data& d = variants[i].seen;
            d.server = all_[i].metrics(cross_check_of(d).finished);
        }
    }

private:
    const server_pages none_{};
    std::deque<page_watch> all_{};
};
/// Sends this program's part of the load of a slot to servers that are ready. What is kept is
/// written meanwhile, and the servers' pages are read. The load ends early where `decides` says
/// that all is decided by it so far.
inline slot_seen run_slot(const slot& s, variant_repeats& variants,
                          std::function<bool(load_so_far&&)> decides = {}) {
    session& program = session::of_this_program();
    const plan& p = variants[0].what;
    vector<seconds_by_place> alone;
    if (s.tries_alone)
        for (const variant_repeat& v : variants) alone.push_back(seconds_alone(v));
    const long long was_ahead_ns = day_ahead_ns();
    early_looks looks(p.judged->rule.looks_early ? std::move(decides) : nullptr);
    std::optional<record_writer> writer;
    if (s.is_kept)
        writer.emplace(program.records(), p.name,
                       [&](delivered_requests&& d) { looks.take(std::move(d)); });
    for (variant_repeat& v : variants) {
        if (writer) v.asked.out = &writer->box();
        if (writer) v.asked.max_gaps = program.room_for_gaps() / variants.size();
        v.asked.decided = looks.end();
    }
    watched_pages pages;
    the_sharing().send(s, variants, [&] {
        if (s.is_kept) pages.begin(variants);
        run_repeat(variants);
    });
    pages.end(variants);
    if (s.is_kept)
        for (variant_repeat& v : variants) {
            if (p.sent->counts_work) the_work().foresee(v.what, v.target, v.seen);
            program.note_gaps(v.seen.gaps.size());
        }
    return seen_of(s, variants, looks.part(), alone, day_ahead_ns() - was_ahead_ns);
}
/// The same of servers that need no preparation, or that another program prepares.
inline slot_seen run_slot(const slot_host& host, const slot& s) {
    variant_repeats variants = orders_of(host, s);
    return run_slot(s, variants);
}

// ---- which slots follow one another

/// Positions of repeats, pairs or rounds of a comparison; a probe has none. A repeat that is set
/// aside is measured again in its position, because order and requests depend on it.
class repeat_positions {
public:
    explicit repeat_positions(int max_replacements) : max_replacements_(max_replacements) {}

    /// The next position after `count` repeats that count.
    int next(int count) const { return is_again() ? again_ : count; }
    bool is_again() const { return again_ >= 0; }
    /// Returns the number of a repeat that begins, among all measured, those set aside included.
    int begin() { return measured_++; }
    bool has_another(int count) const { return measured_ - count < max_replacements_; }
    static constexpr int of_probe = -1, dropped = -2;
    /// A repeat has ended: it gets its position, or is dropped and leaves a note.
    void end(const vector<measurements*>& all, int position, int number) {
        for (measurements* seen : all)
            for (repeat_list* variant : {&seen->candidate, &seen->baseline}) {
                if (variant->empty() || variant->back().index != number) continue;
                if (position >= 0) variant->move_last_to(static_cast<std::size_t>(position));
                if (position != dropped) continue;
                note_dropped(variant->back(), seen->notes);
                variant->pop_back();
            }
        again_ = -1;
    }
    /// Sets the repeats of this position aside in all lists: they are compared with each other.
    void set_aside(const vector<measurements*>& all, std::size_t position,
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

/// Blocks of two pairs, ABBA or BAAB by the seed: a drift of the machine then affects both variants
/// alike.
inline bool baseline_goes_first(std::uint64_t seed, int pair) {
    const bool flipped = mixed(seed + 7919 * static_cast<std::uint64_t>(pair / 2)) & 1;
    return flipped != (pair % 2 == 1);
}
/// The slots of a repeat or a pair: of both variants at once, or in turns by the seed. `each`: what
/// they have in common.
inline vector<slot> slots_of(const plan& p, bool is_pair, const slot& each) {
    const auto of = [&](vector<run_variant> variants) {
        slot s = each;
        s.name = stage_text(p, each.position, variants[0]) + each.name;
        s.variants = std::move(variants);
        return s;
    };
    constexpr run_variant mine = run_variant::candidate, its = run_variant::baseline;
    if (!is_pair) return {of({mine})};
    if (p.judged->is_at_once) return {of({mine, its})};
    if (baseline_goes_first(p.sent->seed, each.position)) return {of({its}), of({mine})};
    return {of({mine}), of({its})};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
