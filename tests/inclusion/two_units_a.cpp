// One of two translation units: this one carries the implementation and main().
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "gates.hpp"

TEST_CASE("a gate beside the implementation") { llmbench::gate(tiny_scenario()); }
