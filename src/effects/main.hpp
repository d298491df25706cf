// main
#pragma once

#include "api/doctest.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/console_style.hpp"
#include "effects/system/ranks.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/gates/session.hpp"

#include <csignal>  // signal, SIGPIPE
#include <iostream>  // cout, cerr
#include <string_view>

#ifdef LLMBENCH_MAIN
#include <doctest/doctest.h>  // again, outside our guard: a late LLMBENCH_MAIN works

namespace llmbench {
inline namespace v0 {
namespace detail {
inline bool asks_for_help(int argc, const char* const* argv) {
    bool asks = false;
    for (int i = 1; i < argc; ++i)
        for (const std::string_view name : {"--help", "-help", "-h", "-?", "--dt-help", "-dt-h"})
            asks |= name == argv[i];
    return asks;
}
}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench

/// The worst of what doctest and the gates say; the exit code tells which red.
int main(int argc, char** argv) {
    std::signal(SIGPIPE, llmbench::detail::outlive_reader_of_output);
    const bool is_first = llmbench::detail::rank_group::of_this_program().is_first();
    // Never destroyed: a gate's thread may outlive main().
    static doctest::Context& context = *new doctest::Context(argc, argv);
    auto& session = llmbench::detail::session::of_this_program();
    session.returns_exit_code = true;
    using namespace llmbench::detail;
    const console_facts& console = surroundings_of_program().console;
    if (!console.no_color.empty()) context.setOption("no-colors", true);
    else if (style_of(console).colour) context.setOption("force-colors", true);
    const int result = context.run();
    if (!session.is_ours()) return result;  // a forked child that came back from its test case
    session.finish();
    if (session.only_asked) {
        if (asks_for_help(argc, argv)) std::cout << variables_help();
        return result;
    }
    if (session.number_of_gates() == 0) {
        std::cerr << "llmbench: no gate was run: the filter matches none, or there is none.\n";
        if (!is_no(environment("LLMBENCH_BISECT"))) return bisect_code_of(gate_outcome::refused);
        return result != 0 ? result : 2;
    }
    const gate_outcome outcome = session.final_outcome();
    if (!is_first) return 0;  // rank 0 tells
    const int code = session.code_of(outcome);
    const bool is_green = !session.is_rehearsal() && (outcome == gate_outcome::passed ||
                                                      outcome == gate_outcome::skipped);
    return result != 0 && is_green ? 1 : code;
}
#endif
