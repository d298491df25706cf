// doctest, the host
#pragma once

#ifndef LLMBENCH_NO_DOCTEST
#include <doctest/doctest.h>  // the host: test cases, assertions, filters
#endif
