// One of two translation units: this one carries the implementation and main(), which are asked for
// when another header has included ours already, and the user's using-directives are in force. The later
// request must not silently do nothing.
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "gates.hpp"

#include <algorithm>
#include <chrono>
#include <string>

using namespace std;
using namespace std::chrono;
using namespace llmbench;

TEST_CASE("a gate before main, and beside the implementation") { gate(tiny_scenario()); }

#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
