// A user of another test framework: no doctest header at all, results through run and judge.
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "gates.hpp"

int main() {
    using namespace llmbench;
    const result r = run(tiny_scenario());
    const slo_verdict v = judge(r, mean(tpot) <= 10_s);
    return v.outcome == verdict::pass ? 0 : 1;
}
