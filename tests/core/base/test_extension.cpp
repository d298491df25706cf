// Hooks of extensions: all of them are called, or the one that is there.
#include "core/base/extension.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/gates/run_mode.hpp"

#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench::detail;

namespace {

void show_first(const gate_report&, report_parts& into) { into.notes.push_back("first"); }
void show_second(const gate_report&, report_parts& into) { into.notes.push_back("second"); }

constexpr extension first{.name = "first", .show = show_first},
    silent{.name = "silent"}, second{.name = "second", .show = show_second};

/// Takes ours out again: other tests have extensions, too.
struct added {
    added() {
        for (const extension* e : {&first, &silent, &second, &first}) add(*e);
    }
    ~added() { extensions() = before; }
    const vector<const extension*> before = extensions();
};

}  // namespace

TEST_CASE("every extension's hook is called once, in the order in which they were added") {
    const added ours;
    CHECK(extensions().size() == ours.before.size() + 3);
    CHECK(parts_of_extensions(gate_report()).notes == vector<std::string>{"first", "second"});
}

TEST_CASE("a hook that no extension has is refused with the header to include") {
    CHECK(texts::refusal_of([] { the_rehearsals(); }) ==
          "LLMBENCH_REHEARSE needs llmbench_simulated.hpp: include it after llmbench.hpp where "
          "LLMBENCH_MAIN is");
}
