// Servers that have one GPU in turns: who sleeps when, and what becomes of a gate whose servers do not.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"
#include "llmbench_compare.hpp"
#include "llmbench_switched.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace llmbench;
using namespace live;

namespace {

/// The servers that are awake on it slow each other down.
struct gpu {
    int awake = 0;
};
/// A server on a GPU. `did`: S and W where it was told to sleep and to wake, a dot for each load, and
/// an X where it was asked for an answer in its sleep, which ends some servers. As vLLM, it wakes by
/// parts, and only what is awake as a whole can be put to sleep.
class sleeper {
public:
    explicit sleeper(gpu& on, bool is_awake = true) : gpu_(on) {
        if (is_awake) wake();
        server.tell_of_sleep([this] { return tells ? tells() : !is_awake_; });
        server.on_check([this] { did += is_awake_ ? "" : "X"; });
    }
    bool is_awake() const { return is_awake_; }
    bool has_weights() const { return has_weights_; }
    void wake() {
        if (!is_awake_) ++gpu_.awake;
        is_awake_ = has_weights_ = true;
    }
    void sleep() {
        if (!is_awake_) return;
        --gpu_.awake;
        is_awake_ = has_weights_ = false;
    }
    std::string url() const { return server.url(); }
    endpoint at() const { return {.url = url(), .model = "m", .ready_within = 20_s}; }
    /// S, W and dots since the first load began.
    std::string turns() const { return did.substr(did.find('.') == did.npos ? 0 : did.find('.')); }

    std::string did{}, posts{};
    scripted::answer on_sleep = done(), on_wake = done();
    std::function<bool()> tells{};      // in place of the truth
    std::function<void()> on_load{};
    std::function<void(const std::string& path)> on_post{};
    bool ignores_sleep = false, is_gone = false;
    bool falls_asleep_late = false;  // when it answers, not when it is told to
    int refused_wakes = 0, ignored_wakes = 0;  // of the next ones

    static scripted::answer done() {
        return {scripted::wait(std::chrono::milliseconds(1500)),
                scripted::send(scripted::json("200 OK", "{}"))};
    }
    static scripted::answer fails() {
        return {scripted::send(scripted::json("500 Internal Server Error", R"({"detail":"no"})"))};
    }

private:
    scripted::answer answered(const scripted::request& r) {
        const bool sleeps = r.path.starts_with("/sleep") || r.path.starts_with("/release_");
        const bool wakes = r.path.starts_with("/wake_up") || r.path.starts_with("/resume_");
        if (r.path != "/v1/chat/completions") {
            posts += r.path + " ";
            if (on_post) on_post(r.path);
        }
        if (sleeps) {
            did += 'S';
            if (falls_asleep_late) virtual_world::after(1'500'000'000, [this] { sleep(); });
            else if (!ignores_sleep) sleep();
            return on_sleep;
        }
        if (wakes) {
            did += 'W';
            if (refused_wakes > 0 && refused_wakes-- > 0) return fails();
            if (ignored_wakes > 0 && ignored_wakes-- > 0) return done();
            if (r.path.ends_with("tags=weights")) has_weights_ = true;
            else if (!r.path.ends_with("tags=kv_cache") || has_weights_) wake();
            return on_wake;
        }
        if (r.path == "/collective_rpc") return done();
        if (on_load) on_load();
        if (is_gone) {
            server.leave();
            return {scripted::reset()};
        }
        if (!is_awake_) did += 'X';
        else if (!did.ends_with('.')) did += '.';
        const std::chrono::milliseconds each(20);
        return {scripted::wait(each * gpu_.awake), scripted::healthy()[0]};
    }

    gpu& gpu_;
    bool is_awake_ = false, has_weights_ = false;

public:
    const scripted::server server{[this](const scripted::request& r) { return answered(r); }};
};

scenario pair_of(const any_target& mine, const any_baseline& its, const char* name) {
    scenario s = brief(mine, name);
    s.baseline = its;
    s.workload = prompts({"one"});
    s.slos = {p50(ttft) <= 1.5 * baseline};
    s.repeats = 4;
    return s;
}
scenario pair_of(const sleeper& mine, const sleeper& its, const char* name) {
    return pair_of(switched(mine.at(), vllm_sleep(1)), switched(its.at(), vllm_sleep(1)), name);
}

}  // namespace

TEST_CASE("one of two servers sleeps while the other is loaded, and both are left as they were") {
    gpu one;
    sleeper mine(one), its(one);
    const heard_run heard = heard_of(pair_of(mine, its, "in turns"));
    CHECK(heard.result.verdicts()[0].outcome == verdict::pass);
    // Beside the other one an answer would take 40 ms.
    for (const record& r : heard.result.requests()) CHECK(seconds(r.end_ns - r.dispatched_ns) < 0.03);
    // The first is the baseline, by the seed; pairs alternate. At last it is woken as it was.
    CHECK(mine.turns() + " " + its.turns() == ".SW.SW. .SW.SW.SW");
    CHECK(mine.did.find('X') == std::string::npos);
    CHECK(its.did.find('X') == std::string::npos);
    CHECK(mine.is_awake());
    CHECK(its.is_awake());
    CHECK(holds(texts::unwrapped(heard.said),
                "a switch to " + its.url() + " took 3.3 s (POST /sleep?level=1; POST /wake_up)"));
    check_rejudged(heard.result, {p50(ttft) <= 1.5 * baseline});
}

TEST_CASE("without a switch both are awake, and each takes twice as long") {
    gpu one;
    sleeper mine(one), its(one);
    const result r = run(pair_of(any_target(mine.at()), any_target(its.at()), "beside each other"));
    for (const record& x : r.requests()) CHECK(seconds(x.end_ns - x.dispatched_ns) > 0.039);
}

TEST_CASE("a server that slept when the gate began sleeps when it ends") {
    gpu one;
    sleeper mine(one, false), its(one);
    run(pair_of(mine, its, "found asleep"));
    CHECK_FALSE(mine.is_awake());
    CHECK(its.is_awake());
    CHECK(mine.did.find('X') == std::string::npos);
}

TEST_CASE("a server that does not sleep ends the gate, and all are left awake") {
    gpu one;
    sleeper mine(one), its(one);
    SUBCASE("it refuses to") {
        its.on_sleep = sleeper::fails();
        CHECK(holds(why_no_result(pair_of(mine, its, "no sleep")),
                    "switched: " + its.url() + " was to sleep: POST /sleep?level=1 was answered with "
                    "HTTP 500: "));
    }
    SUBCASE("it takes longer than .ready_within") {
        its.on_sleep = {scripted::wait(std::chrono::seconds(30)),
                        scripted::send(scripted::json("200 OK", "{}"))};
        CHECK(why_no_result(pair_of(mine, its, "slow sleep")) ==
              "switched: " + its.url() + " was to sleep: POST /sleep?level=1 failed: no answer within "
              "20 s (its .ready_within is 20 s)");
    }
    SUBCASE("it says that it did, and tells that it does not") {
        its.ignores_sleep = true;
        CHECK(why_no_result(pair_of(mine, its, "sleepless")) ==
              "switched: " + its.url() + " was to sleep: GET /is_sleeping still says that it does not "
              "(its .ready_within is 20 s)");
    }
    CHECK(mine.is_awake());
    CHECK(its.is_awake());
}

TEST_CASE("a server that does not wake ends the gate, and its time is limited") {
    gpu one;
    sleeper mine(one), its(one);
    SUBCASE("it refuses to") {
        mine.on_wake = sleeper::fails();
        CHECK(holds(why_no_result(pair_of(mine, its, "no wake")),
                    "switched: " + mine.url() + " was to wake: POST /wake_up was answered with HTTP "
                    "500: "));
    }
    SUBCASE("it takes longer than .ready_within") {
        mine.on_wake = {scripted::wait(std::chrono::seconds(30)),
                        scripted::send(scripted::json("200 OK", "{}"))};
        CHECK(why_no_result(pair_of(mine, its, "slow wake")) ==
              "switched: " + mine.url() + " was to wake: POST /wake_up failed: no answer within 20 s "
              "(its .ready_within is 20 s)");
    }
    SUBCASE("it gives no answer after its wake") {
        mine.server.answer_check(sleeper::fails());
        CHECK(why_no_result(pair_of(mine, its, "mute")) ==
              "switched: " + mine.url() + " was to answer after its wake: HTTP 500");
    }
    CHECK(mine.is_awake());
    CHECK(its.is_awake());
}

TEST_CASE("a server that failed to wake once is told again at the end") {
    gpu one;
    sleeper mine(one), its(one);
    SUBCASE("it refused to") { its.refused_wakes = 1; }
    SUBCASE("it said that it did, and did not") { its.ignored_wakes = 1; }
    CHECK(holds(why_no_result(pair_of(mine, its, "wakes at the second try")),
                "switched: " + its.url() + " was to wake: "));
    CHECK(mine.is_awake());
    CHECK(its.is_awake());
}

TEST_CASE("after a failed switch those are woken that were found before") {
    gpu one;
    sleeper mine(one), its(one, false);
    mine.ignores_sleep = true;
    mine.on_sleep = sleeper::fails();
    CHECK(holds(why_no_result(pair_of(mine, its, "the first sleep")),
                "switched: " + mine.url() + " was to sleep: "));
    CHECK(mine.is_awake());
    CHECK_FALSE(its.is_awake());
    CHECK(its.did == "");
}

TEST_CASE("a server that tells nothing, and refused to sleep, is not woken") {
    gpu one;
    sleeper mine(one), its(one, false);
    for (sleeper* s : {&mine, &its}) s->server.tell_of_sleep({});
    mine.ignores_sleep = true;
    mine.on_sleep = sleeper::fails();
    why_no_result(pair_of(switched(mine.at(), sglang_release()),
                          switched(its.at(), sglang_release(), {.is_asleep = true}), "refused"));
    CHECK(mine.did == "S");
}

TEST_CASE("an interrupted gate leaves its servers as it found them") {
    gpu one;
    interruption stop;
    sleeper mine(one), its(one);
    bool is_mine_to_sleep = false;
    const auto stop_at = [&](sleeper& at, const char* path, int nth, int after_ms) {
        at.on_post = [&stop, path, nth, after_ms, n = 0](const std::string& asked) mutable {
            if (asked.starts_with(path) && ++n == nth)
                virtual_world::after(after_ms * 1'000'000ll, [&stop] { stop.come(); });
        };
    };
    int level = 2;
    SUBCASE("in the second of three steps of a wake") { stop_at(mine, "/collective_rpc", 1, 100); }
    SUBCASE("in the same, of one that slept before") {
        mine.sleep();
        is_mine_to_sleep = true;
        stop_at(mine, "/collective_rpc", 2, 100);
    }
    SUBCASE("while it still falls asleep") {
        level = 1;
        its.falls_asleep_late = true;
        stop_at(its, "/sleep", 1, 100);
    }
    SUBCASE("while one falls asleep that slept before") {
        mine.sleep();
        is_mine_to_sleep = mine.falls_asleep_late = true;
        stop_at(mine, "/sleep", 1, 100);
    }
    SUBCASE("while a wake is answered") {
        level = 1;
        stop_at(its, "/wake_up", 2, 100);
    }
    const std::string why = why_no_result(pair_of(switched(mine.at(), vllm_sleep(level)),
                                                  switched(its.at(), vllm_sleep(level)), "interrupted"));
    CAPTURE(mine.posts);
    CAPTURE(its.posts);
    CHECK(holds(why, "the run was interrupted before it answered"));
    virtual_world::pass(60);
    CHECK(mine.is_awake() == !is_mine_to_sleep);
    CHECK(mine.has_weights() == !is_mine_to_sleep);
    CHECK(its.is_awake());
}

TEST_CASE("after an interruption in a load no other server gets its turn") {
    gpu one;
    interruption stop;
    sleeper mine(one), its(one);
    its.on_load = [&] { stop.come(); };  // the baseline's is the first
    const result r = run(pair_of(mine, its, "interrupted in a load"));
    CHECK(reason_of(r, "p50(ttft) <= 1.5 * baseline") == "the run was interrupted");
    CHECK(its.turns() == ".");
    CHECK(mine.did.find('X') == std::string::npos);
    CHECK(mine.is_awake());
    CHECK(its.is_awake());
}

TEST_CASE("a load beside a server that is awake is invalid, by what the servers tell after it") {
    gpu one;
    sleeper mine(one), its(one);
    int loads = 0;
    SUBCASE("the other one was woken by somebody else") {
        mine.on_load = [&] {
            if (++loads == 30) its.wake();
        };
        const result r = run(pair_of(mine, its, "woken"));
        CHECK(r.verdicts()[0].outcome == verdict::invalid);
        CHECK(reason_of(r, "p50(ttft) <= 1.5 * baseline") ==
              "server: " + its.url() + " was awake (GET /is_sleeping) while " + mine.url() + " was measured");
    }
    SUBCASE("the loaded one says that it sleeps, and answers") {
        mine.on_load = [&] {
            if (++loads == 30) mine.tells = [] { return true; };
        };
        const result r = run(pair_of(mine, its, "a liar"));
        CHECK(r.verdicts()[0].outcome == verdict::invalid);
        CHECK(reason_of(r, "p50(ttft) <= 1.5 * baseline") ==
              "server: " + mine.url() + " said that it sleeps (GET /is_sleeping) while it was measured");
    }
    SUBCASE("a server does not tell") {
        CHECK(holds(why_no_result(pair_of(switched(mine.at(), {{post("/sleep")}, {post("/wake_up")}, "/asleep"}),
                                   switched(its.at(), vllm_sleep(1)), "untold")),
                    "switched: " + mine.url() + " was to tell whether it sleeps: GET /asleep answered "
                    "HTTP 200"));
    }
}

TEST_CASE("vLLM's level 2 reads the weights again, in three steps") {
    gpu one;
    sleeper mine(one), its(one);
    run(pair_of(switched(mine.at(), vllm_sleep(2)), switched(its.at(), vllm_sleep(2)), "level 2"));
    CHECK(mine.posts.starts_with("/sleep?level=2 /wake_up?tags=weights /collective_rpc "
                                 "/wake_up?tags=kv_cache /sleep?level=2 "));
}

TEST_CASE("a server that tells nothing is never told to sleep or to wake twice") {
    gpu one;
    sleeper mine(one), its(one, false);
    for (sleeper* s : {&mine, &its}) s->server.tell_of_sleep({});
    const result r = run(pair_of(switched(mine.at(), sglang_release()),
                                 switched(its.at(), sglang_release(), {.is_asleep = true}), "sglang"));
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    for (const sleeper* s : {&mine, &its}) {
        CHECK(s->did.find("SS") == std::string::npos);
        CHECK(s->did.find("WW") == std::string::npos);
        CHECK(s->did.find('X') == std::string::npos);
    }
    CHECK(mine.posts.starts_with("/release_memory_occupation /resume_memory_occupation "));
    CHECK(its.posts.starts_with("/resume_memory_occupation "));
    CHECK(mine.is_awake());
    CHECK_FALSE(its.is_awake());
}

TEST_CASE("in an A/A run over switches the candidate's loads alone come after one") {
    gpu one;
    sleeper mine(one);
    const result r = run(pair_of(switched(mine.at(), post("/sleep"), post("/wake_up")),
                                 otherwise{.same = true}, "woken and awake"));
    CHECK(r.verdicts()[0].outcome == verdict::pass);
    // The first load is the baseline's; its others are one dot with the load before.
    CHECK(mine.did == ".SW.SW.SW.SW.");
}

TEST_CASE("settings on one GPU are compared in turns, and one that fails is told of") {
    gpu one;
    sleeper a(one), b(one);
    scenario s = brief({}, "settings in turns");
    s.workload = prompts({"one"});
    s.repeats = 2;
    const auto settings = [&] {
        return types::list<setting>{{"a", switched(a.at(), vllm_sleep(1))},
                                    {"b", switched(b.at(), vllm_sleep(1))}};
    };
    SUBCASE("all is well") {
        const comparison_result c = compare(s, settings());
        const estimate_t ratio = c.ratio("a", "b", p50(ttft));
        CHECK(ratio.value == doctest::Approx(1).epsilon(0.01));
        for (const char* name : {"a", "b"})
            for (const record& r : c[name].requests())
                CHECK(seconds(r.end_ns - r.dispatched_ns) < 0.03);
        CHECK((a.did + b.did).find('X') == std::string::npos);
        CHECK(a.is_awake());
        CHECK(b.is_awake());
    }
    SUBCASE("one does not wake any more") {
        s.repeats = 3;
        b.on_load = [&] { b.on_wake = sleeper::fails(); };
        comparison_result c;
        refusal_by([&] { c = compare(s, settings()); });
        for (const slo_verdict& v : c["b"].verdicts()) {
            CHECK(v.outcome == verdict::invalid);
            CHECK(holds(v.reason, "was to wake: POST /wake_up was answered with HTTP 500"));
        }
    }
    SUBCASE("one crashes, and leaves the GPU to the other") {
        b.on_load = [&] { b.is_gone = true; };
        comparison_result c;
        refusal_by([&] { c = compare(s, settings()); });
        CHECK(c["b"].verdicts()[0].outcome == verdict::invalid);
        for (const slo_verdict& v : c["a"].verdicts()) CHECK(v.outcome != verdict::invalid);
        CHECK(c["a"].requests().size() == 2 * c["b"].requests().size());
        CHECK(a.is_awake());
    }
    SUBCASE("one of them has no switch") {
        types::list<setting> mixed = settings();
        mixed.push_back({"c", endpoint{.url = "http://127.0.0.1:1"}});
        CHECK_REFUSED(refusal_by([&] { compare(s, mixed); }), "some settings are switched(...)",
                      "switch all, or none");
    }
}

TEST_CASE("switches that no gate can use are refused in a sentence") {
    gpu one;
    sleeper mine(one), its(one);
    const auto refusal = [&](const any_target& target, const any_baseline& base,
                             pairing pairs = in_turns) {
        scenario s = pair_of(target, base, "refused");
        s.pairs = pairs;
        if (pairs == at_once) s.duration = 60_s;
        return refusal_by([&] { run(s); });
    };
    const any_target a = switched(mine.at(), vllm_sleep(1)), b = switched(its.at(), vllm_sleep(1));
    CHECK_REFUSED(refusal(a, b, at_once), "target is switched(...)", "pairs is at_once");
    CHECK_REFUSED(refusal(a, any_target(its.at())), "baseline is not");
    CHECK_REFUSED(refusal(mine.at(), b), "baseline is switched(...)", "target is not");
    CHECK_REFUSED(refusal(a, otherwise{.model = "n"}), "needs no switch");
    CHECK_REFUSED(refusal(switched(mine.at(), vllm_sleep(3)), b), "vllm_sleep(3): the level is 1 or 2");
    CHECK_REFUSED(refusal(switched(mine.at(), {}), b), "no request to sleep");
    CHECK_REFUSED(refusal(switched(mine.at(), post("sleep"), post("/wake")), b),
                  "switched, to sleep", "begins with /");
    CHECK_REFUSED(refusal(switched(mine.at(), vllm_sleep(1), {.restart_every = 4}), b),
                  "restart_every is 4", "an endpoint, which the gate does not start");
    CHECK_REFUSED(refusal(switched(process{.command = "x"}, vllm_sleep(1), {.restart_every = 1}), b),
                  "restart_every is 1: it is 2 to 100");
    CHECK_REFUSED(refusal(switched(simulated(), vllm_sleep(1)), b), "an endpoint{} or a process{}");
    scenario alone = brief(a, "alone");
    alone.slos = {p50(ttft) <= 1_s};
    CHECK_REFUSED(refusal_by([&] { run(alone); }), "no other server has turns");
    CHECK(mine.did + its.did == "");
}
