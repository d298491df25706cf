// Rehearsals where nobody has models.
#include "effects/gates/run_mode.hpp"

#include "support/texts.hpp"

#include <doctest/doctest.h>

using namespace llmbench::detail;

TEST_CASE("a rehearsal without the extension names the file to include") {
    REQUIRE(rehearsals_of_program == nullptr);
    CHECK(texts::refusal_of([] { known_rehearsals(); }) ==
          "LLMBENCH_REHEARSE needs llmbench_simulated.hpp: include it after llmbench.hpp where "
          "LLMBENCH_MAIN is");
}
