// What the parts have that is not inline, compiled for all fuzzers: nothing that they look at.
#include "core/bodies/result.hpp"
#include "core/bodies/slo.hpp"
#include "core/bodies/text.hpp"
#include "core/bodies/traffic.hpp"
