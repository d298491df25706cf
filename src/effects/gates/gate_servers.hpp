// the servers of a gate
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/expected.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/tokens.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/planning.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/load_target.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/same_server.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/gates/session.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <memory>  // make_unique, unique_ptr
#include <stdexcept>  // runtime_error
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether every comparison is of a difference that the target may add, as a gateway does.
inline bool asks_what_is_added(const vector<slo>& slos) {
    return !all_of(slos, is_absolute) && all_of(slos, [](const slo& s) {
        return is_absolute(s) || (is_difference(s) && s.at_most && s.offset > 0);
    });
}
/// Refuses variants whose first requests, up to a hundred, differ only in their words.
inline void check_other_requests(const plan& p, const load_target& to) {
    const plan theirs = plan_of_variant(p, run_variant::baseline);
    if (theirs.sent->beside.size() != p.sent->beside.size()) return;
    const auto asked = [&](const plan& of, std::size_t i) {
        const request_spec r = request_of(of, run_variant::candidate, 0, i * of.sent->stride);
        return path_of(to, r) + " " + request_body(*to.api, to.model, r);
    };
    const long long n = expected_requests(p);
    const auto most = static_cast<std::size_t>(n > 0 ? std::min(n, 100ll) : 100);
    bool differ = false;
    for (std::size_t i = 0; i < most && !differ; ++i) differ = asked(p, i) != asked(theirs, i);
    if (!differ)
        refuse({"baseline is otherwise{...}, and its requests are the target's, byte for byte: "
                "give it options, a model or a workload that change them, or say .baseline = "
                "otherwise{.same = true}"});
}

/// Refuses a server that cannot take the load, and learns how it counts synthetic prompts.
inline void learn_of(live_target& t, const planned_traffic& p, double at_most_s) {
    t.check_answers(requests_like(p));
    if (!makes_up_prompts(p)) return;
    // Whose work is counted gets the same words each time, also from a busy machine.
    const double within_s = p.counts_work ? 60 : 5;
    t.learn_tokens(p.common, may_be_ids(p), std::min(within_s, at_most_s));
    if (p.counts_work && t.facts().tokens.is_unanswered)
        throw std::runtime_error(t.facts().url + printed(" did not say within %g s how many tokens "
                                                         "words have, without which a load is not "
                                                         "the same each time", within_s));
}

/// The server of the candidate, and that of the baseline: another one, or the same. Made once for a
/// gate, and brought up once its plan is known.
class gate_servers : not_copied {
public:
    /// `model`: replaces each server, in a rehearsal. `s` must outlive this.
    gate_servers(const scenario& s, const settings& asked, const rehearsal* model)
        : s_(s),
          candidate_(s.target, run_variant::candidate, asked.candidate, stand_in(model, 0)) {
        if (s.baseline.is_same_server() || s.baseline.is_asked_otherwise()) {
            baseline_ = &candidate_;
        } else if (s.baseline.is_live()) {
            other_ = std::make_unique<live_target>(s.baseline.live(), run_variant::baseline,
                                                   asked.baseline, stand_in(model, 1));
            other_->is_compared_with(candidate_);
            baseline_ = other_.get();
        }
    }
    /// Waits for servers that are starting, one after the other: two that load at once would
    /// measure each other's memory.
    void await_start(double within_s, const std::string& ready) {
        each([&](live_target& t) { t.await_start(within_s, ready); });
    }
    /// Starts or finds them, and returns the plan without what they have no room for.
    plan bring_up(const plan& asked, long long deadline_ns) {
        const auto left_s = [&] { return seconds_until(deadline_ns); };
        const bool is_first_asked = any_of(asked.judged->slos, [](const slo& x) {
            return x.statistic.metric == metric_id::first_answer_time;
        });
        candidate_.ask_first_answer(is_first_asked, asked.sent->common,
                                    asked.sent->limits.total.seconds());
        const auto wake = [&](live_target& t) { t.wake(asked.sent->common, left_s()); };
        each([&](live_target& t) { t.bring_up(left_s()); });
        wake(candidate_);
        check_two_servers(asked);
        plan p = without_long_sessions(
            asked, [&](const std::string& model) { return room_of(asked, model); });
        each([&](live_target& t) {
            wake(t);
            learn_of(t, *p.sent, left_s());
            // What was asked is in its cache: it rests, or starts anew, before the first repeat.
            if (p.sent->counts_work) t.note_load();
            check_objectives(p, t);
        });
        if (p.sent->otherwise) check_other_requests(p, candidate_.load());
        return p;
    }
    live_target& candidate() { return candidate_; }
    live_target* baseline() { return baseline_; }  // null: none
    bool has_baseline() const { return baseline_ != nullptr; }
    /// Whether twins may wait for each other: at one server, or at the one behind a gateway. Only
    /// models are two for sure: what listens behind an address may pass requests on.
    bool twins_may_meet() const {
        const auto is_model = [](const live_target& t) { return t.of_extension() != nullptr; };
        return s_.pairs == at_once && !(other_ && is_model(candidate_) && is_model(*other_));
    }
    /// Whether each pair has new processes of servers that the gate starts, or one for both
    /// variants. A model has no process.
    bool pairs_are_fresh() const {
        const auto is_fresh = [&](const any_target& t) {
            const auto* const p = t.what().get<process>();
            return t.what().get<extension_value>() ||
                   (p && (!other_ || p->restart_between_repeats));
        };
        return baseline_ && is_fresh(s_.target) && (!other_ || is_fresh(s_.baseline.live()));
    }
    /// Calls `f` for each different server.
    template <class F>
    void each(F&& f) {
        f(candidate_);
        if (other_) f(*other_);
    }
    /// Fills in all that is known of the servers so far.
    void report(const plan& p, target_facts& mine, target_facts& its) const {
        mine = candidate_.facts();
        if (!baseline_) return;
        its = baseline_->facts();
        if (!p.sent->otherwise) {
            if (!other_) its.kind = target_kind::same;
            return;
        }
        // Two variants on one server differ by their requests.
        its.kind = target_kind::otherwise;
        const std::string& model = (*p.sent->otherwise).common.model;
        if (!model.empty()) its.model = printable(model);
        mine.options = options_text(p, run_variant::candidate);
        its.options = options_text(p, run_variant::baseline);
        if ((*p.sent->otherwise).beside.size() != p.sent->beside.size())
            its.options += ", nothing done beside the load";
    }

private:
    static any_target stand_in(const rehearsal* model, std::size_t server) {
        return model ? model->stand_in(server) : any_target();
    }
    /// The room that both variants have; 0: neither reports one.
    int room_of(const plan& p, const std::string& model) const {
        int least = candidate_.room_of(model);
        const auto take = [&](int room) {
            if (room > 0 && (least == 0 || room < least)) least = room;
        };
        if (other_) take(other_->room_of(model));
        if (p.sent->otherwise && model.empty())
            take(candidate_.room_of((*p.sent->otherwise).common.model));
        return least;
    }
    static void check_users(const plan& p) {
        if (p.judged->is_at_once && users_of(*p.sent) > 0)
            refuse({"pairs is at_once on one server, and arrivals is closed_loop: users of both "
                    "fall into step there, and one of them always waits for its twin. Give it a "
                    "rate, as poisson(8_rps)"});
    }
    void check_two_servers(const plan& p) const {
        if (!other_ || is_same_place(candidate_.load(), other_->load())) check_users(p);
        if (!other_) return;
        const std::string& mine = candidate_.facts().url;
        const std::string& its = other_->facts().url;
        std::string why = same_server_reason(candidate_.load(), mine, other_->load(), its);
        if (why.empty() && lead_to_one_process(candidate_.load(), candidate_.pages(),
                                               other_->load(), other_->pages(), p.sent->common)) {
            // A gateway shows the page of the server behind it, and is asked what it adds.
            if (asks_what_is_added(p.judged->slos)) return check_users(p);
            why = one_process_text("target", mine, "baseline", its) +
                  " and would be compared with itself: forward another port, or say .baseline = "
                  "otherwise{.same = true}; of a gateway before its server, limit the differences: "
                  "mean(ttft) <= baseline + 1_ms";
        }
        if (!why.empty()) refuse({why});
    }
    void check_objectives(const plan& p, const live_target& t) const {
        const bool is_candidate = &t == &candidate_;
        vector<slo> its = p.judged->slos;
        if (!is_candidate) erase_if(its, is_absolute);
        t.check_reports_metrics(std::move(its), p.sent->common);
        if (is_candidate && p.sent->counts_work) the_work().check_counters(t, p);
        check_images(p, *t.load().api);
    }

    const scenario& s_;
    live_target candidate_;
    std::unique_ptr<live_target> other_{};  // of the baseline, if it has its own server
    live_target* baseline_ = nullptr;       // null, `other_`, or the candidate's
};

inline const char* of_virtual_time() { return current_environment ? " of virtual time" : ""; }

/// What a gate's requests and users take, after the server's name.
inline std::string load_text(const plan& p, const target_facts& target) {
    std::string t;
    const api_traits* api = api_named(target.api);
    if (p.sent->forces_length && api && !api->forces_lengths)
        t += printed("; %s cannot be forced to a length, so answers end where the model ends them",
                     api->name);
    const double held = static_cast<double>(p.sent->arrivals.users) * bytes_held_by_a_user(*p.sent);
    if (held > 64e6) t += printed("; its conversations hold about %.0f MB of answers", held / 1e6);
    if (const double seconds = seconds_of_one(p); seconds > 0) {
        const auto [least, most] = expected_span(p, seconds);
        t += ", " + span_text(least, most) + of_virtual_time();
        if (p.sent->is_open_loop())
            t += " if the server keeps up, else up to " + time_text(drain_s(*p.sent)) + " more a " +
                 counted_text(p);
    }
    return t;
}
/// The tokens of a word on each server, on which prompts depend.
inline std::string fits_text(const plan& p, const target_facts& target,
                             const target_facts& baseline) {
    if (!makes_up_prompts(p)) return {};
    const bool is_one_server =
        baseline.kind == target_kind::same || baseline.kind == target_kind::otherwise;
    const double shortest = shortest_prompt(p);
    std::string t = "\n  " + fit_text(target.tokens, shortest);
    if (p.judged->has_baseline && !is_one_server)
        t += "; baseline: " + fit_text(baseline.tokens, shortest);
    return t;
}
/// Returns the text that a gate prints before its load: plan, servers and limits.
inline std::string announcement(const plan& p, const target_facts& target,
                                const target_facts& baseline) {
    std::string t = "\n" + printable(p.name, 200) + "\n  " + plan_text(p) + "\n  " +
                    target_text(target) + compared_text(baseline) + "; " + repeats_text(p) +
                    load_text(p, target);
    for (const std::string& note : load_notes(*p.sent)) t += "\n  note: " + note;
    for (const target_facts* f : {&target, &baseline})
        for (const std::string& note : f->notes)
            if (session::of_this_program().is_news(note)) t += "\n  note: " + note;
    return t + fits_text(p, target, baseline) + "\n";
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
