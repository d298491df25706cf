// llmbench run: a gate without C++
#pragma once

#include "api/verbs.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "effects/verbs.hpp"
#include "extensions/capacity/api.hpp"
#include "program/arguments.hpp"
#include "program/config/gates_file.hpp"
#include "program/run_options.hpp"
#include "program/run_rows.hpp"
#include "program/sweep.hpp"
#include "program/values.hpp"

#include <cstdlib>  // unsetenv
#include <string>

namespace llmbench_program {

/// Sets what holds for all gates of the program.
inline void set_program_variables(const given_options& o) {
    const given budget = o.one("--time-budget");
    const double budget_s = time_in(budget.text).value_or(0);
    if (!budget.text.empty() && !(budget_s > 0))
        budget.refuse_as("a time above zero, such as 90s or 5min");
    set_variables(o);
    if (budget_s > 0) set_variable("LLMBENCH_TIME_BUDGET", printed("%.9g", budget_s));
}
/// Runs the gate, or searches its load.
inline void run_one(const scenario& s, const char* file, int line) {
    if (use_of(s) == scenario_use::find_capacity) find_capacity(s, file, line);
    else gate(s, file, line);
}

/// Runs gates of a file, one after the other. One that is refused, or has no server, is told in
/// its own lines and reports, and the others go on.
inline int run_gates(const given_options& o) {
    gates_reader file(o["--config"]);
    given_options called = o;
    for (const char* own : {"--config", "--gate"}) called.texts.erase(own);
    const gates_in_file all = file.read(called, o.all("--gate"));
    file.of_all([&] { set_program_variables(all.common); });
    ::unsetenv("LLMBENCH_API");  // the scenarios have it
    for (const gate_in_file& g : all.gates)
        number_of_run([&] { run_one(g.what, all.path, g.line); });
    return exit_code();
}
inline int run_gate(const given_options& o) {
    one_of(o, {"--config", "--sweep"});
    if (o.has("--config")) return run_gates(o);
    check_fit(o, {{false, " needs --config", {"--gate"}}});
    if (server_is_missing(o))
        refuse(
            {"no server is named: give --url http://127.0.0.1:8000, or --command 'vllm serve "
             "MODEL --port {port}' for one that is to be started"});
    set_program_variables(o);
    if (o.has("--sweep")) return run_sweep(o, [](const scenario& s) { run_one(s, "", 0); });
    const scenario s = scenario_of(o);
    ::unsetenv("LLMBENCH_API");  // the scenario has it
    run_one(s, "", 0);
    return exit_code();
}

inline const option_group gates_of_a_file = {
    "Several gates",
    {{"--config", "FILE", "gates.toml: a table a gate, its keys these options"},
     {"--gate", "NAME", "of the file, this one; may be repeated", takes::each},
     {"--sweep", "OPTION=VALUES", "a gate for each: prompt-tokens=512,2048,8192"}}};
inline constexpr const char* run_examples =
    "Examples:\n"
    "  llmbench run --url http://127.0.0.1:8000 --users 8 --slo 'p90(ttft) <= 500 ms'\n"
    "  llmbench run --url http://127.0.0.1:8000 --rate 8 --requests 300 \\\n"
    "      --prompt-tokens 'lognormal(512, 0.6)' --output-tokens 128 \\\n"
    "      --slo 'p90(ttft) <= 300 ms' --slo 'mean(tpot) <= 25 ms'\n"
    "  llmbench run --url http://127.0.0.1:8000 --users 'up_to(256)' --slo 'p95(ttft) <= 2 s'\n"
    "The last one searches the most users that hold the objective.\n"
    "  llmbench run --config gates.toml\n"
    "Objectives are written as in C++: p50 to p99, mean and max of ttft, tpot, itl, e2e;\n"
    "output_throughput >= 400 tok/s; goodput(ttft <= 500 ms && tpot <= 30 ms) >= 90 %;\n"
    "advisory(...) fails nothing. error_rate <= 1 % is added unless you set one.\n";

inline verb run_verb() {
    vector<option_group> groups = run_groups();
    groups.insert(groups.begin(), gates_of_a_file);
    return {"run",
            "Send a load to a server and judge objectives",
            groups,
            std::string(run_examples) + exit_codes_of_gates +
                "\nThe environment variables of gates hold, too: LLMBENCH_API_KEY, "
                "LLMBENCH_CALIBRATE ...",
            run_gate};
}

}  // namespace llmbench_program
