// A user of another test framework: no doctest header at all. That it works is shown by the programs
// that link llmbench_with_none.
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
