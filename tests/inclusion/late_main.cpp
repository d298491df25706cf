// The same for LLMBENCH_MAIN: doctest's implementation and main() come late as well.
#include "llmbench.hpp"
#include "gates.hpp"

TEST_CASE("a gate before main") { llmbench::gate(tiny_scenario()); }

#define LLMBENCH_MAIN
#include "llmbench.hpp"
