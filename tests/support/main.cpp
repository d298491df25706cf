// doctest, and the main of the unit tests.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cfloat>  // doctest 2.4.9 leaves it to libstdc++

#include <doctest/doctest.h>
