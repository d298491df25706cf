// What all fuzzers link of the header's implementation: nothing that they look at.
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
