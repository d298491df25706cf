// When a warm-up has settled.
#include "core/base/random.hpp"
#include "core/base/statistics.hpp"
#include "core/measured/settling.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

using namespace llmbench::detail;

namespace {
/// So many requests, one each 0.1 s, which take so long to their first token and answer 50 tokens.
template <class Ttft>
vector<warming_request> sent(int n, Ttft&& ttft, std::uint64_t seed = 1) {
    generator random(seed);
    vector<warming_request> all;
    for (int i = 0; i < n; ++i) {
        const double s = ttft(i) * std::exp(0.1 * random.normal());
        all.push_back({true, true, 0.1 * i + s + 1, s, 50});
    }
    return all;
}
const auto one_second = [](int) { return 1.0; };
}  // namespace

TEST_CASE("a load settles once its later half is alike at its two ends") {
    CHECK_FALSE(is_settled({}));
    CHECK_FALSE(is_settled(sent(29, one_second)));
    CHECK(is_settled(sent(30, one_second)));
    int with_client_error = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed)
        with_client_error += is_settled(sent(30, one_second, seed));
    CHECK(with_client_error >= 45);
    // From 20 s to 0.4 s over a hundred requests: not on the way, but afterwards.
    const auto warms_up = [](int i) { return 20 * std::exp(-std::min(i, 100) / 25.0); };
    CHECK_FALSE(is_settled(sent(60, warms_up)));
    CHECK_FALSE(is_settled(sent(100, warms_up)));
    CHECK(is_settled(sent(260, warms_up)));
}

TEST_CASE("a cold first wave holds up the warm-up, and does not end it") {
    vector<warming_request> all = sent(40, [](int i) { return i < 10 ? 50.0 : 1.0; });
    for (int i = 0; i < 10; ++i) all[static_cast<std::size_t>(i)].has_ended = false;
    CHECK_FALSE(is_settled(all));  // nothing is known before what is under way
    for (warming_request& r : all) r.has_ended = true;
    CHECK_FALSE(is_settled({all.begin(), all.begin() + 30}));
    CHECK(is_settled(all));  // the last thirty are none of it
    CHECK(ttft_from(all.begin(), all.end()) > 40);
    CHECK(ttft_from(all.rbegin(), all.rend()) < 1.5);
    const std::string said = warmup_sentence({true, true, 54, 40, 50.2, 1.01}, "repeat 1");
    CHECK(said == "repeat 1 was stable after 54 s of warm-up and 40 requests: ttft 50.2 s of its "
                  "first ten requests, 1.01 s of the last");
}

TEST_CASE("a throughput that still grows is not settled") {
    vector<warming_request> all = sent(90, one_second);
    double now = 0;
    for (std::size_t i = 0; i < all.size(); ++i)  // answers end faster and faster
        all[i].end_s = now += std::exp(-static_cast<double>(i) / 15);
    CHECK_FALSE(is_settled(all));
}

TEST_CASE("what fails never settles, and is told") {
    vector<warming_request> all = sent(60, one_second);
    for (warming_request& r : all) r.ok = false;
    CHECK_FALSE(is_settled(all));
    const std::string said = warmup_sentence({true, false, 60, 60, 9, 3}, "repeat 2");
    CHECK(said.find("repeat 2 never became stable in 60 s of warm-up and 60 requests") == 0);
}
