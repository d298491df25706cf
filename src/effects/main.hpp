// main
#pragma once

#include "api/doctest.hpp"
#include "core/base/text.hpp"
#include "core/judging/outcome.hpp"
#include "core/reports/console.hpp"
#include "effects/system/sharing.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/gates/session.hpp"

#include <csignal>  // signal, SIGPIPE, SIGXFSZ
#include <cstddef>  // size_t
#include <initializer_list>
#include <iostream>  // cout, cerr
#include <string>
#include <string_view>

// Here, so that main() itself, which a macro brings, is one line. If doctest is disabled, the
// functions that this calls are in the file with main() alone.
#if !defined(LLMBENCH_NO_BODIES) && !defined(LLMBENCH_NO_DOCTEST) && \
    (defined(LLMBENCH_MAIN) || !defined(DOCTEST_CONFIG_DISABLE))
namespace llmbench {
inline namespace v1 {
namespace detail {
inline bool asks_for_help(int argc, const char* const* argv) {
    bool asks = false;
    for (int i = 1; i < argc; ++i)
        for (const std::string_view name : {"--help", "-help", "-h", "-?", "--dt-help", "-dt-h"})
            asks |= name == argv[i];
    return asks;
}

/// doctest ignores unknown arguments, and a misspelt filter would filter nothing. Arguments with
/// its own prefix, --dt-, are left to it in any version.
inline bool is_option_of_doctest(std::string_view argument) {
    const std::size_t dashes = argument.find_first_not_of('-');
    if (dashes == 0 || dashes == std::string_view::npos) return false;
    argument.remove_prefix(dashes);
    const std::size_t sign = argument.find('=');
    const std::string_view name = argument.substr(0, sign);
    const bool has_value = is_one_of(
        name,
        {"test-case", "tc", "test-case-exclude", "tce", "source-file", "sf", "source-file-exclude",
         "sfe", "test-suite", "ts", "test-suite-exclude", "tse", "subcase", "sc",
         "subcase-exclude", "sce", "reporters", "r", "out", "o", "order-by", "ob", "rand-seed",
         "rs", "first", "f", "last", "l", "abort-after", "aa", "subcase-filter-levels", "scfl",
         "strip-file-prefixes", "sfp"});
    if (has_value) return sign != std::string_view::npos;
    return argument.starts_with("dt-") ||
           is_one_of(
               name, {"help", "h", "?", "version", "v", "count", "c", "list-test-cases", "ltc",
                      "list-test-suites", "lts", "list-reporters", "lr", "success", "s",
                      "case-sensitive", "cs", "exit", "e", "duration", "d", "minimal", "m", "quiet",
                      "q", "no-throw", "nt", "no-exitcode", "ne", "no-run", "nr", "no-intro", "ni",
                      "no-version", "nv", "no-colors", "nc", "force-colors", "fc", "no-breaks",
                      "nb", "no-skip", "ns", "gnu-file-line", "gfl", "no-path-filenames", "npf",
                      "no-line-numbers", "nln", "no-debug-output", "ndo", "no-skipped-summary",
                      "nss", "no-time-in-output", "ntio"});
}
/// Returns the first unknown argument, "" if there is none.
inline std::string unknown_argument(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i)
        if (!is_option_of_doctest(argv[i]))
            return printed("\"%s\" is no option, or lacks its \"=value\": -tc=\"chat*\" runs the "
                           "test cases whose names begin with chat, --help lists all options",
                           printable(argv[i], 60).c_str());
    return {};
}

/// Returns the worse of doctest's and the gates' results as the exit code.
int doctest_main(int argc, char** argv) {
    for (const int refused_write : {SIGPIPE, SIGXFSZ})
        std::signal(refused_write, outlive_refused_write);
    if (const std::string why = unknown_argument(argc, argv); !why.empty()) {
        if (rank_of_program() == 0) std::cerr << "llmbench: " << why << "\n";
        return 2;
    }
    // Never destroyed: a gate's thread may outlive main().
    static doctest::Context& context = *new doctest::Context(argc, argv);
    auto& session = session::of_this_program();
    session.returns_exit_code = true;
    const console_facts& console = surroundings_of_program().console;
    if (!console.no_color.empty()) context.setOption("no-colors", true);
    else if (style_of(console).colour) context.setOption("force-colors", true);
    const int result = context.run();
    session.finish();
    if (session.host_did == host_run::query) {
        if (asks_for_help(argc, argv)) std::cout << variables_help();
        return result;
    }
    if (session.number_of_gates() == 0) {
        if (session.host_did == host_run::matched_none) return 2;
        std::cerr << "llmbench: no gate was run: the test cases that ran have none.\n";
        return result != 0 ? result : 2;
    }
    return session.exit_code(result);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
#endif
