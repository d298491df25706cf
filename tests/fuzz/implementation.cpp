// What the parts have that is not inline, compiled for all fuzzers: nothing that they look at.
#include "core/bodies/result.hpp"
#include "core/bodies/values.hpp"
