// The program of simulated/seeds.hpp by itself, of the parts of src/: for `run` and structure/mutations.py.
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "extensions/faults.hpp"
#include "extensions/simulated.hpp"

#include "simulated/seeds.hpp"

#include "simulated/main.cpp"
