// doctest, the host
#pragma once

#ifndef LLMBENCH_NO_DOCTEST
#include <cfloat>  // DBL_EPSILON, which doctest 2.4.9 leaves to libstdc++
#include <doctest/doctest.h>  // the host: test cases, assertions, filters
#endif
