// The list of a result's requests, which several threads may ask for at once.
#include "effects/gates/gate_result.hpp"
#include "support/sample_gates.hpp"
#include "support/timelines.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace llmbench;
using namespace llmbench::detail;
using namespace sample_gates;
using namespace timelines;

TEST_CASE("all threads that ask get one list of all requests") {
    measurements seen;
    for (int k = 0; k < 3; ++k) seen.candidate.push_back(repeat_of_ttft(80, k));
    const auto all = listed_once(seen);
    vector<const types::list<record>*> got(8, nullptr);
    vector<std::thread> threads;
    for (std::size_t i = 0; i < got.size(); ++i)
        threads.emplace_back([&, i] { got[i] = &all(); });
    for (std::thread& t : threads) t.join();
    for (const auto* list : got) CHECK(list == got[0]);
    CHECK(got[0]->size() == 3 * seen.candidate[0].records.size());
}
