// A project that has its own doctest main() adds only our implementation.
#define DOCTEST_CONFIG_IMPLEMENT
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "gates.hpp"

TEST_CASE("a gate under another main") { llmbench::gate(tiny_scenario()); }

int main(int argc, char** argv) { return doctest::Context(argc, argv).run(); }
