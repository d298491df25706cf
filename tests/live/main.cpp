// doctest, and the main of the live tests. It knows nothing of llmbench's own: that verdicts reach such a
// main is tested that way.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cfloat>  // doctest 2.4.9 leaves it to libstdc++

#include <doctest/doctest.h>

#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include "live/client_stall.hpp"

#include <cstdlib>  // port
#include <string>

int main(int argc, char** argv) {
    // As a server of its own, for the tests of process{...}: llmbench_live_tests --serve PORT
    if (argc == 3 && std::string(argv[1]) == "--serve") {
        llmbench::engine fast;
        fast.decode_step = llmbench::time_span::from_seconds(0.002);
        return llmbench::serve_simulated(fast, std::atoi(argv[2]));
    }
    return live::stalls::exit_code(doctest::Context(argc, argv).run());
}
