// One of two translation units: this one carries the implementation and main(), which are asked for
// when another header has included ours already. The later request must not silently do nothing.
#include "llmbench.hpp"
#include "gates.hpp"

TEST_CASE("a gate before main, and beside the implementation") { llmbench::gate(tiny_scenario()); }

#define LLMBENCH_MAIN
#include "llmbench.hpp"
