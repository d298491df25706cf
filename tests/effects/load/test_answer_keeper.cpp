// What is kept of answers: hashes of all, texts while there is room for them, excerpts of some.
#include "llmbench.hpp"
#include "core/planning/planning.hpp"
#include "effects/load/request_book.hpp"
#include "extensions/answers/api.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

load_plan comparing() {
    scenario s;
    s.target = endpoint{.url = "http://127.0.0.1:1"};
    s.baseline = endpoint{.url = "http://127.0.0.1:2"};
    s.workload = prompts({"one", "two"});
    s.arrivals = closed_loop(1);
    s.warmup = 1;
    s.requests = 100;
    s.slos = {same_answers >= 90_pct};
    s.options.temperature = 0.0;
    return planned(s, 1, {}, scenario_use::gate, traits_of(plain_text));
}
/// An answer of so many bytes.
void answer_with(answer_reader& a, std::size_t bytes) {
    a.reset(traits_of(plain_text), {.is_kept = true});
    a.feed("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
               std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'x'),
           1000);
}

}  // namespace

TEST_CASE("texts of an arm are kept up to 32 MiB, and beyond that a hash of each") {
    const load_plan p = comparing();
    load_target target;
    target.api = &traits_of(plain_text);
    load_order order;
    order.what = &p;
    order.target = &target;
    order.warmup = 1;
    load_state shared;
    answer_keeper keeper(order, shared);
    answer_reader a;
    answer_with(a, 1 << 20);
    REQUIRE(a.said().answer.size() == 1 << 20);
    unsigned long long hash = 0;
    for (std::size_t i = 0; i < 40; ++i) {
        record r;
        r.status = request_status::ok;
        keeper.on_answer({i, 0, -1}, r, a);
        CHECK(r.answer_hash != 0);
        CHECK((i == 0 || r.answer_hash == hash));
        hash = r.answer_hash;
    }
    record failed;
    failed.status = request_status::timeout;
    keeper.on_answer({41, 0, -1}, failed, a);
    CHECK(failed.answer_hash == 0);
    repeat_data d;
    keeper.move_into(d);
    CHECK(d.texts.size() == 32);
    CHECK(d.texts.front().index == 1);  // the first one warms up
    CHECK(d.shown.empty());             // nobody graded them
}
