// libllmbench.a: doctest's implementation
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
