// llmbench: gates without C++, and tools for the files of runs.
// This file compiles all parts of src/ that it needs, with their bodies.
#define LLMBENCH_IMPLEMENT
#include "core/base/vector.hpp"
#include "llmbench.hpp"
#include "extensions/answers.hpp"     // objectives on answers
#include "extensions/capacity.hpp"    // up_to(...), capacity
#include "extensions/embeddings.hpp" // LLMBENCH_API=rerank
#include "extensions/answers.hpp"    // --questions
#include "extensions/faults.hpp"     // [[gate.task]]
#include "extensions/history.hpp"    // llmbench history, LLMBENCH_HISTORY
#include "extensions/machines.hpp"   // llmbench merge, LLMBENCH_SHARD
#include "extensions/sessions.hpp"   // llmbench convert
#include "extensions/simulated.hpp"  // llmbench serve, LLMBENCH_REHEARSE
#include "extensions/websocket.hpp"  // --websocket
#include "extensions/work.hpp"       // llmbench count, cached_tokens == expected

#include "program/arguments.hpp"
#include "program/convert.hpp"
#include "program/count.hpp"
#include "program/doctor.hpp"
#include "program/explain.hpp"
#include "program/flags.hpp"
#include "program/history.hpp"
#include "program/judge.hpp"
#include "program/output.hpp"
#include "program/run.hpp"
#include "program/serve.hpp"
#include "program/show.hpp"
#include "program/truth.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace {

using namespace llmbench_program;

/// A name of a file or a folder may hold lines, which a runner must not take for its commands.
std::string as_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::string_view line = taken_part(text, "\n");
        if (!out.empty()) out += '\n';
        if (begins_with_colons(line) || line.starts_with("##[")) out += "| ";
        for (const char c : line) out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    return out;
}
int llmbench_main(int argc, char** argv) {
    CLI::App app("Performance gates for LLM inference servers", "llmbench");
    app.set_version_flag("--version", "llmbench " + version_text());
    app.get_formatter()->column_width(30);
    const verb verbs[] = {run_verb(),     explain_verb(), judge_or_compare_verb(),
                          show_verb(),    merge_verb(),   history_verb(),
                          convert_verb(), serve_verb(),   doctor_verb(),
                          count_verb(),   flags_verb()};
    given_options given;
    vector<std::string> names;
    for (const verb& v : verbs) {
        add_verb(app, v, given);
        names.push_back(v.name);
    }
    app.footer(
        "Example:\n"
        "  llmbench run --url http://127.0.0.1:8000 --users 8 --slo 'p90(ttft) <= 500 ms'\n"
        "`llmbench VERB --help` shows each verb's options with an example.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);  // the help that was asked for
        const CLI::App* at = &app;
        for (const CLI::App* of_verb : app.get_subcommands({}))
            if (argc > 1 && of_verb->get_name() == argv[1]) at = of_verb;
        refuse({unplaced_argument(*at, enumerated(names), e)});
    }
    refuse_misspelt(whole_environment());  // also where no gate begins
    for (const verb& v : verbs)
        if (app.got_subcommand(v.name)) return v.run(given);
    std::fputs(app.help().c_str(), stderr);
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    for (const int refused_write : {SIGPIPE, SIGXFSZ})
        std::signal(refused_write, llmbench::detail::outlive_refused_write);
    try {
        const int code = llmbench_main(argc, argv);
        return code_with_output(code, detail::session::of_this_program().number_of_gates() > 0);
    } catch (const std::exception& e) {
        // A refused gate has its reason in its own lines and reports already.
        if (detail::session::of_this_program().number_of_gates() > 0) return llmbench::exit_code();
        detail::vector<std::string> secrets;
        for (int i = 0; i < argc; ++i) add_secrets_named_in(secrets, argv[i]);
        const std::string why = as_lines(without_secrets(e.what(), secrets));
        std::fprintf(stderr, "llmbench: %s\n", why.c_str());
        return 2;
    }
}
