// Answers that cannot be what their numbers say: streams that a proxy holds back, usage that
// disagrees, prompts that were seen before, requests that a server drops. What such a run says of
// the metrics that this spoils, and that the others stand.
#include "support/environment.hpp"
#include "support/live.hpp"
#include "support/rejudged.hpp"
#include "virtual/scripted_server.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

using namespace live;

namespace {

/// Wide limits, and closer ones.
scenario decoding_on(const std::string& url, int tokens, std::vector<slo> closer = {}) {
    closer.insert(closer.begin(), {mean(tpot) <= 10_s, p50(itl) <= 10_s, p50(e2e) <= 60_s});
    types::list<slo> slos;
    for (const slo& s : closer) slos.push_back(s);
    return {.target = endpoint{.url = url},
            .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(tokens)},
            .arrivals = closed_loop(4),
            .warmup = 4,
            .requests = 24,
            .repeats = 2,
            .slos = slos};
}
void check_invalid(const result& r, const std::string& slo, const std::string& why) {
    CAPTURE(reason_of(r, slo));
    CHECK(outcome_of(r, slo) == verdict::invalid);
    CHECK(reason_of(r, slo).find(why) != std::string::npos);
}

using scripted::answer;

}  // namespace

TEST_CASE("a proxy that hands over whole answers leaves no time per token to judge") {
    std::string words;
    for (int i = 0; i < 12; ++i) words += scripted::chat_chunk(" word");
    const scripted::server server(
        {{scripted::wait(scripted::milliseconds(240)),
          scripted::send(scripted::sized_stream(scripted::role() + words + scripted::finish("length") +
                                                scripted::usage(16, 12) + scripted::done()))}});
    const scenario s = decoding_on(server.url(), 12, {mean(tpot) <= 15_ms, p50(itl) <= 20_ms});
    const result r = run(s);
    check_invalid(r, "mean(tpot) <= 15 ms", " answers came in one piece");
    check_invalid(r, "p50(itl) <= 20 ms", "the stream does not stream");
    CHECK(outcome_of(r, "p50(e2e) <= 60 s") == verdict::pass);
    // But for their end over their tokens.
    for (const char* slo : {"mean(tpot) <= 10 s", "p50(itl) <= 10 s"}) {
        CHECK(outcome_of(r, slo) == verdict::pass);
        CHECK(reason_of(r, slo).find("passes even if these took all the time since the send") !=
              std::string::npos);
    }
    check_rejudged(r, s.slos);
}

TEST_CASE("an event stream under another content type is measured, with a note") {
    using namespace scripted;
    const auto mistyped = [](int n) { return answer{send(sized("200 OK", "application/json", healthy_events(n)))}; };
    scripted::server server({mistyped(8)});
    server.answer_check(mistyped(1));
    scenario s = decoding_on(server.url(), 8);
    s.slos = {p50(e2e) <= 60_s};
    const heard_run r = heard_of(s);
    CHECK(outcome_of(r.result, "p50(e2e) <= 60 s") == verdict::pass);
    CHECK(r.said.find("answers are read as an event stream") != std::string::npos);
}

TEST_CASE("answers that break off and end in order have failed") {
    using namespace scripted;
    const std::string slot_is_lost = "error: {\"code\":500,\"message\":\"slot is lost\"}\n\n";
    for (const std::string& told : {slot_is_lost, std::string()}) {
        CAPTURE(told);
        int asked = 0;
        const server server([&](const request&) -> answer {
            if (++asked % 5 != 0) return healthy(8);
            return {send(sized_stream(role() + chat_chunk("a") + chat_chunk("b") + told + done()))};
        });
        scenario s = decoding_on(server.url(), 8);
        s.name = "broken " + told;
        s.warmup = 0;
        s.requests = 60;
        s.repeats = 3;
        s.slos = {error_rate <= 5_pct, p50(e2e) <= 60_s};
        const result r = run(s);
        CHECK(outcome_of(r, "error_rate <= 5 %") == verdict::fail);
        CHECK(outcome_of(r, "p50(e2e) <= 60 s") == verdict::pass);
        int failed = 0;
        for (const record& x : r.requests()) {
            if (x.status == request_status::ok) continue;
            ++failed;
            CHECK(status(x) == (told.empty() ? "truncated" : "server"));
        }
        CHECK(failed * 5 == static_cast<int>(r.requests().size()));
        check_rejudged(r, s.slos);
    }
}

TEST_CASE("a connection that sat idle and is closed as the next request comes is nobody's failure") {
    for (const bool thinks : {true, false}) {
        CAPTURE(thinks);
        const scripted::server server([](const scripted::request& r) -> answer {
            return r.place % 2 == 1 ? answer{scripted::close()} : scripted::healthy();
        });
        scenario s = asking(endpoint{.url = server.url()}, 60);
        s.name = thinks ? "thinks" : "does not think";
        s.arrivals = thinks ? closed_loop(3).think(2_s) : closed_loop(3);
        s.repeats = 2;
        s.slos = {error_rate <= 90_pct};
        const result r = run(s);
        int sent_again = 0, failed = 0;
        for (const record& x : r.requests()) {
            sent_again += x.resends;
            failed += x.status != request_status::ok;
            if (thinks && x.resends > 0) CHECK(x.idle_ns >= 2'000'000'000);
        }
        // Without thinking it has the habit of closing, and connections are used once from then on.
        CHECK(sent_again > (thinks ? 40 : 2));
        CHECK((thinks ? failed == 0 : failed == sent_again));
        check_rejudged(r, s.slos);
    }
}

TEST_CASE("a model that goes on without text, where its end is ignored, takes its time for that") {
    // The gate forces 64 tokens by itself. Every 10 ms one comes, the last half without text.
    const auto answer_with = [](bool counts, const std::string& textless) {
        const auto with_usage = [&](std::string event, int n) {
            const std::string usage = R"(],"usage":{"prompt_tokens":16,"completion_tokens":)" +
                                      std::to_string(n) + "}}";
            if (counts) event.replace(event.rfind("]}"), 2, usage);
            return event;
        };
        answer a{scripted::send(scripted::chunked_head() + scripted::chunk(scripted::role()))};
        for (int i = 1; i <= 64; ++i) {
            a.push_back(scripted::wait(scripted::milliseconds(10)));
            const std::string event = i <= 32 ? scripted::chat_chunk(" word") : textless;
            if (!event.empty())
                a.push_back(scripted::send(scripted::chunk(with_usage(event, i))));
        }
        a.push_back(scripted::send(scripted::chunk(scripted::finish("length") +
                                                   scripted::usage(16, 64) + scripted::done()) +
                                   scripted::last_chunk()));
        return a;
    };
    for (const bool counts : {false, true})
        for (const std::string& textless :
             {std::string(), scripted::chat_chunk(""), scripted::chat_choice("{}")}) {
            if (counts && textless.empty()) continue;
            CAPTURE(textless);
            const scripted::server server({answer_with(counts, textless)});
            scenario s = decoding_on(server.url(), 64);
            s.options.continuous_usage = counts;
            s.slos = {mean(tpot) <= 7_ms, mean(tpot) <= 11_ms};
            s.repeats = 3;
            const result r = run(s);
            CHECK((server.log().back().body.find("continuous_usage_stats") != std::string::npos) == counts);
            CHECK(r.measured(mean(tpot)) == doctest::Approx(0.01).epsilon(0.001));
            CHECK(outcome_of(r, "mean(tpot) <= 7 ms") == verdict::fail);
            CHECK(outcome_of(r, "mean(tpot) <= 11 ms") == verdict::pass);
            check_rejudged(r, s.slos);
        }
}

TEST_CASE("answers of several models, out of a cache, or capped are not those that were asked for") {
    const auto run_with = [](const std::function<answer(std::size_t)>& answer_to) {
        std::size_t n = 0;
        const scripted::server server(
            [&](const scripted::request&) { return answer_to(n++); });
        scenario s = decoding_on(server.url(), 3);
        s.workload = prompts({"How far is it?"});
        s.options.max_tokens = 64;
        const result r = run(s);
        check_rejudged(r, s.slos);
        return r;
    };
    const auto named = [](const std::string& model) {
        std::string events = scripted::healthy_events(8);
        for (std::size_t at = 0; (at = events.find("{\"object\"", at)) != std::string::npos; at += 9)
            events.insert(at + 1, "\"model\":\"" + model + "\",");
        return answer{scripted::send(scripted::sized_stream(events))};
    };
    const result mixed = run_with([&](std::size_t i) { return named(i % 5 < 3 ? "scripted" : "small"); });
    check_invalid(mixed, "p50(e2e) <= 60 s", "name another model than the others (");
    check_invalid(mixed, "p50(e2e) <= 60 s", "39.6 % \"small\"");
    CHECK(outcome_of(run_with([&](std::size_t) { return named("alias"); }), "p50(e2e) <= 60 s") ==
          verdict::pass);

    const result cached = run_with([&](std::size_t i) {
        const std::string fields = i % 10 < 7 ? "X-Cache-Status: Hit\r\n" : "X-Cache-Status: Miss\r\n";
        return answer{scripted::send(scripted::sized_stream(scripted::healthy_events(8), fields))};
    });
    check_invalid(cached, "p50(e2e) <= 60 s", "came from a cache of answers, by their headers");

    const result capped = run_with([](std::size_t) {
        std::string events = scripted::role();
        for (int i = 0; i < 16; ++i) events += scripted::chat_chunk(" word");
        events += scripted::finish("length") + scripted::usage(5, 16) + scripted::done();
        return answer{scripted::send(scripted::sized_stream(events))};
    });
    check_invalid(capped, "p50(e2e) <= 60 s", "48 of 48 completed requests ended with the finish reason");
}

TEST_CASE("answers that do not depend on what was asked are told, and prove nothing beside a baseline's that do") {
    // One token over and over, or words of the request's own.
    const auto saying = [](bool is_broken) {
        return [is_broken](const scripted::request& r) {
            const std::size_t seed = std::hash<std::string>()(r.body);
            std::string events = scripted::role();
            for (std::size_t i = 0; i < 40; ++i)
                events += scripted::chat_chunk(is_broken ? " the" : " w" + std::to_string((seed + i * i) % 97));
            events += scripted::finish("length") + scripted::usage(16, 40) + scripted::done();
            return answer{scripted::wait(scripted::milliseconds(is_broken ? 50 : 100)),
                          scripted::send(scripted::sized_stream(events))};
        };
    };
    const scripted::server broken(saying(true)), as_broken(saying(true)), sound(saying(false)),
        as_sound(saying(false));
    const auto pair_of = [](const scripted::server& mine, const scripted::server& other) {
        scenario s = decoding_on(mine.url(), 40);
        s.baseline = endpoint{.url = other.url()};
        s.slos = {mean(e2e) <= 1.1 * baseline, mean(e2e) <= 10_s};
        s.repeats = 4;
        return run(s);
    };
    const result r = pair_of(broken, sound);
    check_invalid(r, "mean(e2e) <= 1.1 * baseline", "begin with one text, whatever was asked, and far fewer of the baseline's do");
    CHECK(outcome_of(r, "mean(e2e) <= 10 s") == verdict::pass);
    CHECK(reason_of(r, "mean(e2e) <= 10 s").find("a broken model can be fast, which accuracy or same_answers shows") !=
          std::string::npos);
    check_rejudged(r, {mean(e2e) <= 1.1 * baseline, mean(e2e) <= 10_s});
    CHECK(outcome_of(pair_of(broken, as_broken), "mean(e2e) <= 1.1 * baseline") == verdict::pass);
    const result both = pair_of(sound, as_sound);
    CHECK(outcome_of(both, "mean(e2e) <= 1.1 * baseline") == verdict::pass);
    CHECK(reason_of(both, "mean(e2e) <= 1.1 * baseline") == "");
}
