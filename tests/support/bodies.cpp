// What the parts have that is not inline, once for all unit tests. It leaves out what has effects.
#include "core/bodies/result.hpp"
#include "core/bodies/slo.hpp"
#include "core/bodies/text.hpp"
#include "core/bodies/traffic.hpp"
