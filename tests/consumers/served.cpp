// Gates for the server at LLMBENCH_URL, which llmbench_add_gate() starts: here it is this program
// itself, ./served --serve PORT.
#define DOCTEST_CONFIG_IMPLEMENT
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <cstdlib>
#include <cstring>

using namespace llmbench;

TEST_CASE("the server of the suite answers") {
    gate({
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(4)},
        .arrivals = closed_loop(4),
        .warmup = 4,
        .requests = 40,
        .repeats = 2,
        .slos = {mean(tpot) <= 10_s},
    });
}

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--serve") == 0)
        return serve_simulated({}, std::atoi(argv[2]));
    return doctest::Context(argc, argv).run();
}
