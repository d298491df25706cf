// What requests should cost a server with a prefix cache: computed by hand.
#include "extensions/work/core/model.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace llmbench::detail;

namespace {
/// Tokens that no other range has.
token_ids range(int from, int n) {
    token_ids t(static_cast<std::size_t>(n));
    std::iota(t.begin(), t.end(), from);
    return t;
}
work_done sum_of(const vector<work_done>& each) {
    work_done all;
    for (const work_done& w : each) {
        all.prefilled += w.prefilled;
        all.cached += w.cached;
    }
    return all;
}
token_ids joined(token_ids a, const token_ids& b) {
    for (const int t : b) a.push_back(t);
    return a;
}
}  // namespace

TEST_CASE("a prompt that is sent again has all cached but the block of its last token") {
    const model_request r{range(0, 160), range(1000, 4)};
    const vector<work_done> each = expected_work({r, r}, 16);
    CHECK(each[0] == work_done{160, 0});
    CHECK(each[1] == work_done{16, 144});
    CHECK(sum_of(each) == work_done{176, 144});
    // 161 tokens: the last one is in a block of its own
    const model_request longer{range(0, 161), range(1000, 4)};
    CHECK(expected_work({longer, longer}, 16)[1] == work_done{1, 160});
    // a cache of single tokens
    CHECK(expected_work({r, r}, 1)[1] == work_done{1, 159});
}
TEST_CASE("a later turn finds the answer, but for its last token") {
    const token_ids first = range(0, 20), answer = range(100, 12);
    const model_request one{first, answer};
    const model_request two{joined(joined(first, answer), range(200, 8)), range(300, 4)};
    // 20 + 12 - 1 = 31 tokens are left behind: one block of 16, seven of 4
    CHECK(expected_work({one, two}, 16)[1] == work_done{24, 16});
    CHECK(expected_work({one, two}, 4)[1] == work_done{12, 28});
    CHECK(expected_work({one, two}, 1)[1] == work_done{9, 31});
}
TEST_CASE("one token at the head leaves nothing of a shared prefix") {
    const token_ids shared = range(0, 64);
    const auto asks = [&](int head, int own) {
        return model_request{joined(joined(range(head, 1), shared), range(own, 8)), range(900, 2)};
    };
    const auto cached = [](const vector<model_request>& all) {
        return sum_of(expected_work(all, 16)).cached;
    };
    CHECK(cached({asks(500, 600), asks(500, 700), asks(500, 800)}) == 128);
    CHECK(cached({asks(500, 600), asks(501, 700), asks(502, 800)}) == 0);
}
TEST_CASE("a block is that of the tokens before it, too") {
    const token_ids same = range(0, 16);
    const model_request a{joined(range(100, 16), joined(same, range(300, 1))), range(900, 1)};
    const model_request b{joined(range(200, 16), joined(same, range(300, 1))), range(900, 1)};
    CHECK(expected_work({a, b}, 16)[1].cached == 0);
}
TEST_CASE("short prompts and empty answers") {
    const model_request one{range(0, 1), range(10, 1)};
    CHECK(expected_work({one, one}, 1)[1] == work_done{1, 0});
    CHECK(expected_work({{range(0, 5), {}}}, 16)[0] == work_done{5, 0});
    CHECK(sum_of(expected_work({}, 16)) == work_done{});
}
