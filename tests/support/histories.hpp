// history() in unit tests: its implementation is support/histories.cpp.
#pragma once

#include "llmbench.hpp"
#include "extensions/history/api.hpp"
