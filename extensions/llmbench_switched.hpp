// llmbench_switched 1.0.0-rc.1: servers that have one GPU in turns. Include it after llmbench.hpp.
// Put together from src/ by ci/assemble.py: edit there, not here.
//
// Part one: declarations
//   [A] servers that have one GPU in turns
// Part two: core, as pure functions
// Part three: sleeping, waking and what servers say of it
//   [E] which switches are sound, and which gates can use them
//   [E] one server among those that have a GPU in turns
//   [E] the hooks of switched()
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_switched.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_SWITCHED_HPP
#define LLMBENCH_SWITCHED_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_switched.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] servers that have one GPU in turns ====================================================

namespace llmbench {
inline namespace v1 {

namespace detail {
/// If this is not found, the file with LLMBENCH_MAIN or LLMBENCH_IMPLEMENT lacks the header in the
/// name.
extern const extension* const include_llmbench_switched_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

/// The requests by which a server leaves its GPU to another one, and takes it back.
struct sleep_requests {
    types::list<task_step> sleep{}, wake{};  ///< post()s, in this order
    types::text state{};  ///< a path whose GET answers {"is_sleeping": true}; "": nothing tells
    types::whole level = 1;  ///< of vllm_sleep(): 1 or 2
};
/// vLLM with --enable-sleep-mode and VLLM_SERVER_DEV_MODE=1. Level 1 keeps the weights in main
/// memory; level 2 drops them, and a wake reads them again from the disk.
inline sleep_requests vllm_sleep(types::whole level) {
    if (level != 2)
        return {{post("/sleep?level=1")}, {post("/wake_up")}, "/is_sleeping", level};
    return {{post("/sleep?level=2")},
            {post("/wake_up?tags=weights"),
             post("/collective_rpc", R"({"method": "reload_weights"})"),
             post("/wake_up?tags=kv_cache")},
            "/is_sleeping",
            level};
}
/// SGLang with --enable-memory-saver. It does not tell whether it sleeps: see
/// switch_options::is_asleep.
inline sleep_requests sglang_release() {
    return {{post("/release_memory_occupation")}, {post("/resume_memory_occupation")}, {}};
}

struct switch_options {
    /// Of a process: it is started anew after so many pairs or rounds, 2 to 100, so that its luck
    /// is drawn again; 0: never.
    types::whole restart_every = 0;
    /// The server sleeps when the gate begins. For servers that do not tell.
    bool is_asleep = false;
};

namespace detail {
struct switch_settings {
    sleep_requests how{};
    switch_options options{};
    double within_s = 0;  // for a sleep, and for a wake with its first answer
    bool is_endpoint = false, is_process = false;
};
}  // namespace detail

/// A server that shares one GPU with the others of its gate: a live baseline in turns, or the
/// settings of compare(). Before a server is loaded, the others sleep, it wakes, and it answers a
/// first request; none of this is measured. A sleep or wake that fails, or takes longer than
/// `.ready_within` (of an endpoint without one: 120 s), makes the gate invalid, and all that it had
/// found are woken. A gate that ends otherwise leaves endpoints as it found them. With
/// `otherwise{.same = true}` the server sleeps and wakes before the candidate's loads alone.
///     .target = switched(endpoint{.url = "http://127.0.0.1:8001"}, vllm_sleep(1)),
///     .baseline = switched(endpoint{.url = "http://127.0.0.1:8000"}, vllm_sleep(1)),
inline any_target switched(const any_target& server, const sleep_requests& how,
                           const switch_options& options = {}) {
    const endpoint* const e = server.what().get<endpoint>();
    const process* const p = server.what().get<process>();
    const double ready_s = e ? e->ready_within.seconds() : p ? p->ready_within.seconds() : 0;
    return {server,
            {detail::box::make(detail::switch_settings{how, options, ready_s > 0 ? ready_s : 120,
                                                       e != nullptr, p != nullptr}),
             detail::include_llmbench_switched_hpp_where_LLMBENCH_MAIN_is}};
}
/// By two requests of your own: `switched(server, post("/sleep"), post("/wake_up"))`.
inline any_target switched(const any_target& server, const task_step& sleep, const task_step& wake,
                           const switch_options& options = {}) {
    return switched(server, sleep_requests{{sleep}, {wake}, {}}, options);
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_SWITCHED_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_SWITCHED_IMPLEMENTED)
#define LLMBENCH_SWITCHED_IMPLEMENTED

#include <algorithm>  // clamp, find, max, min
#include <memory>  // make_unique, unique_ptr
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // exchange

// ===== [E] which switches are sound, and which gates can use them ================================

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_switch(const switch_settings& s) {
    if (!s.is_endpoint && !s.is_process)
        refuse({"switched(...) takes an endpoint{} or a process{}: other servers have no GPU that "
                "they could leave"});
    const long long level = s.how.level, every = s.options.restart_every;
    if (level != 1 && level != 2)
        refuse({printed("vllm_sleep(%lld): the level is 1 or 2", level)});
    if (s.how.sleep.empty() || s.how.wake.empty())
        refuse({"switched(...) has no request to ", s.how.sleep.empty() ? "sleep" : "wake",
                ": give a post(\"/path\") each, or vllm_sleep(1), or sglang_release()"});
    for (const task_step& step : s.how.sleep) check_post(step, "switched, to sleep");
    for (const task_step& step : s.how.wake) check_post(step, "switched, to wake");
    if (!s.how.state.empty()) check_post(post(s.how.state), "switched, state");
    if (every != 0 && !(every >= 2 && every <= 100))
        refuse({printed("switched: restart_every is %lld: it is 2 to 100, or 0 for never; "
                        "process.restart_between_repeats restarts for each pair", every)});
    if (every != 0 && !s.is_process)
        refuse({printed("switched: restart_every is %lld, and the server is an endpoint, which the "
                        "gate does not start: give a process{}", every)});
}

inline const switch_settings* switch_of(const any_target& t) {
    return t.is_switched() ? t.switched_by().what.get<switch_settings>() : nullptr;
}
/// Refuses a gate whose servers have no turns, or only one of them leaves its GPU.
inline void check_switches(const scenario& s, planned_traffic&, planned_judging&) {
    const switch_settings *const mine = switch_of(s.target),
                          *const its = switch_of(s.baseline.live());
    if (!mine && !its) return;
    for (const switch_settings* one : {mine, its})
        if (one) check_switch(*one);
    const char* const given = mine ? "target" : "baseline";
    if (s.pairs == at_once)
        refuse({given, " is switched(...), so that servers are loaded in turns, and pairs is "
                "at_once: leave out one of them"});
    if (!s.baseline.is_live())
        refuse({"target is switched(...), and no other server has turns: give a live baseline "
                "that is switched, .baseline = otherwise{.same = true}, or compare() its "
                "settings"});
    if (s.baseline.is_asked_otherwise())
        refuse({"target is switched(...), and baseline is otherwise{...} on the same server, which "
                "needs no switch: leave out switched(...)"});
    if (!s.baseline.is_same_server() && !(mine && its))
        refuse({given, " is switched(...), and ", mine ? "baseline" : "target",
                " is not, which would be awake beside it: switch both, or none"});
}

// ===== [E] one server among those that have a GPU in turns =======================================

/// A server in a group that shares a GPU. A sleeping one gets no other request than those to wake
/// and to tell: older versions of vLLM end at a completion meanwhile (vllm issue 15483). None is
/// put to sleep twice, nor woken twice: SGLang ends at that. It is idle before, for the same reason
/// (vllm issues 28714 and 45520).
class server_in_turns final : public server_switch {
public:
    explicit server_in_turns(const switch_settings& s)
        : its_(s), is_(rest_state(s.options.is_asleep)) {
        check_switch(s);
        vector<std::string> secrets;
        for (const list<task_step>* steps : {&its_.how.sleep, &its_.how.wake})
            for (const task_step& step : *steps) add_query_secrets(secrets, str(step.path));
        known_secrets::of_this_program().add(secrets);
    }
    ~server_in_turns() override {
        if (on_) contained([] { leave(); }, [](const char*) {});
        ended();
    }

    void make_room(double at_most_s) override {
        for (server_in_turns* other : group())
            if (other != this && other->is_ != state::asleep && !other->has_left())
                other->sleep(at_most_s);
    }
    void found(const live_target& server, bool is_new) override {
        on_ = &server;
        loads_ = 0;
        if (!is_new) was_asleep_ = is_asleep_by_itself();
        is_ = rest_state(was_asleep_);
        if (std::find(group().begin(), group().end(), this) == group().end()) {
            if (group().empty()) has_failed() = false;
            group().push_back(this);
        }
    }
    void ended() override {
        on_ = nullptr;
        erase_if(group(), [this](const server_in_turns* one) { return one == this; });
    }
    std::string begin_turn(run_variant v, const request_spec& like, double at_most_s) override {
        const long long from_ns = now_ns();
        const bool are_to_sleep = any_of(group(), [this](const server_in_turns* one) {
            return one != this && one->is_ != state::asleep;
        });
        // An A/A run: the server was awake since the baseline's load, if not for this.
        if (is_alone() && v == run_variant::candidate) sleep(at_most_s);
        make_room(at_most_s);
        if (is_ == state::awake) return {};
        wake(like, at_most_s);
        if (!are_to_sleep || std::exchange(is_noted_, true)) return {};
        const double took_s = static_cast<double>(now_ns() - from_ns) * 1e-9;
        return "a switch to " + url() + " took " + time_text(took_s) + " (" +
               text_of(its_.how.sleep) + "; " + text_of(its_.how.wake) + ")";
    }
    std::string end_turn() override try {
        ++loads_;
        if (stop_asked.load()) return {};  // a runner that cancels a job does not wait for answers
        for (const server_in_turns* one : group()) {
            const bool should = one != this;
            // One that sleeps without a page that says so is not asked: a request may wake it.
            const bool is_asked = one->tells() || one->is_ == state::awake;
            if (should && is_asked && one->has_left()) continue;
            if (one->is_asleep_by_itself() == should) continue;
            const std::string told = " (GET " + str(one->its_.how.state) + ")";
            return should ? one->url() + " was awake" + told + " while " + url() + " was measured"
                          : url() + " said that it sleeps" + told + " while it was measured";
        }
        return {};
    } catch (const std::runtime_error& e) {
        return reason_in(e);
    }
    bool is_due() const override {
        const long long every = its_.options.restart_every;
        return every > 0 && loads_ >= every * (is_alone() ? 2 : 1);
    }

private:
    static constexpr double state_within_s = 10, brief_s = 3;
    /// What its answers showed it to be; or what it was told to become, while none shows it.
    enum class state : unsigned char { awake, asleep, waking, falling_asleep };
    static state rest_state(bool asleep) { return asleep ? state::asleep : state::awake; }

    /// Those of the gate that runs: one at a time does.
    static vector<server_in_turns*>& group() {
        static vector<server_in_turns*> all;
        return all;
    }
    static bool& has_failed() {
        static bool failed = false;
        return failed;
    }
    bool is_alone() const { return group().size() == 1; }
    const std::string& url() const { return on_->facts().url; }
    /// Whether it has a page that says whether it sleeps.
    bool tells() const { return !its_.how.state.empty(); }

    static std::string text_of(const list<task_step>& steps) {
        std::string all;
        for (const task_step& s : steps) all += (all.empty() ? "" : ", ") + step_name(s);
        return all;
    }
    /// `is_cut`: the gate's time ended, or it was interrupted, which is no fault of the server.
    [[noreturn]] void fail(const char* to, const std::string& why, bool is_cut = false) const {
        if (!is_cut && !stop_asked.load()) has_failed() = true;
        throw std::runtime_error("switched: " + url() + " was to " + to + ": " + why);
    }
    http_answer answer_at(const char* path, double at_most_s = state_within_s) const {
        const load_target& at = on_->load();
        return blocking_get(at, inquiry_path(at, path), at.fields,
                            std::min(at_most_s, its_.within_s));
    }
    /// Whether nobody listens there any more: it crashed.
    bool has_left() const {
        const std::string path = tells() ? str(its_.how.state) : on_->load().api->ready;
        const http_answer a = answer_at(path.c_str());
        return a.status == 0 && a.error.starts_with("cannot connect: ");
    }
    bool is_asleep_by_itself(double at_most_s = state_within_s) const {
        if (!tells()) return is_ == state::asleep;
        const load_target& at = on_->load();
        const std::string path = str(its_.how.state);
        const http_answer a = answer_at(path.c_str(), at_most_s);
        json_reader reader;
        const json_view* const v = a.status == 200 ? reader.read(a.body) : nullptr;
        const json_view* const told = v ? member(*v, "is_sleeping") : nullptr;
        if (!told || told->is != json_view::kind::boolean)
            fail("tell whether it sleeps",
                 a.status == 0 ? "GET " + path + " failed: " + masked_words_of(a.error, at)
                               : quoted_answer(at, "GET", path, a) +
                                     R"(, and not {"is_sleeping": true})");
        return told->text == "true";
    }
    /// Whether a wait ended because the gate has no more than `at_most_s`.
    bool is_cut(double at_most_s, long long until_ns) const {
        return at_most_s < its_.within_s && now_ns() >= until_ns;
    }
    /// Whether the server tells in time that it does. An interruption meanwhile ends the wait.
    bool comes_to(bool sleeping, long long until_ns) const {
        const bool was_interrupted = stop_asked.load();
        const auto is_stopped = [&] { return stop_asked.load() != was_interrupted; };
        const auto is_over = [&] {
            const double left_s = std::clamp(seconds_until(until_ns), 0.1, state_within_s);
            return is_stopped() || is_asleep_by_itself(left_s) == sleeping;
        };
        return comes_by(is_over, until_ns, 0.1) && !is_stopped();
    }
    /// Posts, and waits until the server tells that it has done it. One that does not tell may have
    /// done it without an answer, and has not if it refused.
    void become(bool sleeping, double at_most_s) {
        const char* const to = sleeping ? "sleep" : "wake";
        const long long until_ns = now_ns() + ns_of(std::min(its_.within_s, at_most_s));
        const std::string late = " (its .ready_within is " + time_text(its_.within_s) + ")";
        const bool was_interrupted = stop_asked.load();
        const state before = std::exchange(is_, sleeping ? state::falling_asleep : state::waking);
        std::string why;
        for (const task_step& s : sleeping ? its_.how.sleep : its_.how.wake) {
            const double left_s = std::max(seconds_until(until_ns), 0.1);
            const sent_step sent = send_step(s, *on_, 0, left_s);
            if (sent.fault.empty()) continue;
            if (why.empty()) why = sent.fault;
            if (!tells()) is_ = sent.is_answered ? before : rest_state(sleeping);
            // An interrupted gate cannot wait, and a server does in turn what it is told.
            if (sent.is_answered || !was_interrupted) break;
        }
        if (why.empty() && tells() && !comes_to(sleeping, until_ns))
            why = "GET " + str(its_.how.state) + " still says that it does not";
        if (!why.empty())
            fail(to, why + (now_ns() < until_ns ? "" : late), is_cut(at_most_s, until_ns));
        is_ = rest_state(sleeping);
    }
    /// First ends what was begun: a wake during a sleep may be lost, and vLLM puts none to sleep that
    /// is half awake.
    void turn_to(bool sleeping, double at_most_s) {
        contained([&] {
            if (is_ == state::falling_asleep && comes_to(true, now_ns() + ns_of(brief_s)))
                is_ = state::asleep;
            if (is_ == state::waking && sleeping) become(false, at_most_s);
        }, [](const char*) {});
        if (is_ != rest_state(sleeping)) become(sleeping, at_most_s);
    }
    void sleep(double at_most_s) {
        if (is_ == state::asleep) return;
        rest(on_->pages());
        if (on_->pages().first_is_servers && requests_at(reading_of_server(on_->pages())) > 0)
            fail("sleep", "its metrics page still has requests that run or wait");
        if (stop_asked.load()) fail("sleep", "the run was interrupted");
        turn_to(true, at_most_s);
    }
    void wake(const request_spec& like, double at_most_s) {
        if (stop_asked.load()) fail("wake", "the run was interrupted");
        turn_to(false, at_most_s);
        const long long until_ns = now_ns() + ns_of(std::min(its_.within_s, at_most_s));
        std::string why;
        const auto is_over = [&] {
            const http_answer a = ask_for_one_token(on_->load(), like, seconds_until(until_ns));
            why = why_no_answer(on_->load(), like, a);
            return why.empty() || stop_asked.load();
        };
        comes_by(is_over, until_ns, 0.05);
        if (!why.empty()) fail("answer after its wake", why, is_cut(at_most_s, until_ns));
    }

    /// What is left behind by the first one that goes, for all: they are awake after a failure, else
    /// each endpoint is as it was found. Processes end with the gate.
    static void leave() {
        const vector<server_in_turns*> all = std::exchange(group(), {});
        const bool are_awake = has_failed();
        const auto each = [&](bool is_process, bool to_sleep) {
            for (server_in_turns* one : all) {
                const bool should = !are_awake && (is_process || one->was_asleep_);
                if (one->its_.is_process != is_process || should != to_sleep) continue;
                const double within_s = stop_asked.load() ? brief_s : infinity;
                contained([&] { one->turn_to(should, within_s); }, [](const char*) {});
            }
        };
        if (!any_of(all, [](const server_in_turns* one) { return one->its_.is_endpoint; })) return;
        each(true, true);
        each(false, true);
        each(false, false);
    }

    const switch_settings its_;
    const live_target* on_ = nullptr;  // null: not there
    state is_;
    bool was_asleep_ = false, is_noted_ = false;
    long long loads_ = 0;  // since it was found or started
};

// ===== [E] the hooks of switched() ===============================================================

inline std::unique_ptr<server_switch> new_server_in_turns(const box& settings) {
    return std::make_unique<server_in_turns>(*settings.get<switch_settings>());
}
inline constinit const extension servers_in_turns{.name = "switched",
                                                  .new_switch = new_server_in_turns,
                                                  .add_to_plan = check_switches};
constinit const extension* const
    include_llmbench_switched_hpp_where_LLMBENCH_MAIN_is = &servers_in_turns;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_servers_in_turns() { add(servers_in_turns); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_SWITCHED_IMPLEMENTED
