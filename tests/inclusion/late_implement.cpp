// Some other header included ours first, without LLMBENCH_IMPLEMENT; the later request must not
// silently do nothing. The user's using-directives are in force by then.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "llmbench.hpp"
#include "gates.hpp"

#include <algorithm>
#include <chrono>
#include <string>

using namespace std;
using namespace std::chrono;
using namespace llmbench;

TEST_CASE("a gate before the implementation") { gate(tiny_scenario()); }

#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
