// The one file of the test program that carries doctest's and llmbench's implementation. Its main is
// doctest's own: that llmbench's verdicts reach a main that knows nothing of them is tested that way.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
