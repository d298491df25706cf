// llmbench run: a gate without C++
#pragma once

#include "api/verbs.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "effects/system/settings.hpp"
#include "effects/verbs.hpp"
#include "extensions/capacity/api.hpp"
#include "program/arguments.hpp"
#include "program/run_options.hpp"
#include "program/values.hpp"

#include <string>

namespace llmbench_program {

inline int run_gate(const given_options& o) {
    if (!o.has("--url") && !o.has("--command") && environment("LLMBENCH_URL").empty() &&
        means_off(environment("LLMBENCH_REHEARSE")))
        refuse(
            {"no server is named: give --url http://127.0.0.1:8000, or --command 'vllm serve "
             "MODEL --port {port}' for one that is to be started"});
    const given api = o.one("--api"), budget = o.one("--time-budget");
    if (!api.text.empty() && api_named(api.text) == nullptr) api.refuse_as("one of " + api_names());
    const double budget_s = time_in(budget.text).value_or(0);
    if (!budget.text.empty() && !(budget_s > 0))
        budget.refuse_as("a time above zero, such as 90s or 5min");
    set_variables(o);
    set_variable("LLMBENCH_API", api.text);
    if (budget_s > 0) set_variable("LLMBENCH_TIME_BUDGET", printed("%.9g", budget_s));
    const scenario s = scenario_of(o);
    const bool searches = s.arrivals.data().is_searched;
    bool has_capacity = false;
    for (const slo& x : s.slos) has_capacity |= is_capacity(x.statistic.metric);
    if (searches && !has_capacity) find_capacity(s, "", 0);
    else gate(s, "", 0);
    return exit_code();
}

inline constexpr const char* run_examples =
    "Examples:\n"
    "  llmbench run --url http://127.0.0.1:8000 --users 8 --slo 'p90(ttft) <= 500 ms'\n"
    "  llmbench run --url http://127.0.0.1:8000 --rate 8 --requests 300 \\\n"
    "      --prompt-tokens 'lognormal(512, 0.6)' --output-tokens 128 \\\n"
    "      --slo 'p90(ttft) <= 300 ms' --slo 'mean(tpot) <= 25 ms'\n"
    "  llmbench run --url http://127.0.0.1:8000 --users 'up_to(256)' --slo 'p95(ttft) <= 2 s'\n"
    "The last one searches the most users that hold the objective.\n"
    "Objectives are written as in C++: p50 to p99, mean and max of ttft, tpot, itl, e2e;\n"
    "output_throughput >= 400 tok/s; goodput(ttft <= 500 ms && tpot <= 30 ms) >= 90 %;\n"
    "advisory(...) fails nothing. error_rate <= 1 % is added unless you set one.\n";

inline verb run_verb() {
    return {"run",
            "Send a load to a server and judge objectives",
            {{"Server",
              {{"--url", "URL", "a server that runs; default: LLMBENCH_URL"},
               {"--command", "TEXT", "starts one; {port} in it becomes a free port"},
               {"--model", "NAME", "default: the only one that the server lists"},
               {"--api", "NAME", "openai_chat (default), openai_completions, tgi, ollama ..."},
               {"--path", "PATH", "of the requests; default: the API's"},
               {"--key-variable", "NAME", "variable with the key; default: LLMBENCH_API_KEY"},
               {"--header", "'NAME: VALUE'", "of every request; may be repeated", takes::each},
               {"--metrics-url", "URL", "the server's Prometheus page, or off"},
               {"--ready-within", "TIME", "waits so long for a server that loads"},
               {"--ready", "PATH", "answers 200 once a started server is ready"},
               {"--env", "NAME=VALUE", "for a started server; may be repeated", takes::each},
               {"--directory", "PATH", "where a server is started"},
               {"--ca-file", "FILE", "authorities that https:// trusts"},
               {"--insecure", "", "https:// with any certificate", takes::nothing}}},
             {"When requests are sent",
              {{"--users", "N", "each sends again once it is answered; default: 1"},
               {"--rate", "R", "Poisson arrivals, requests a second"},
               {"--arrivals", "TEXT",
                "constant(8rps), gamma(8rps, 0.5), ramp(1rps, 8rps, 2min),\n"
                "steps(2rps 30s, 8rps 30s), replay(trace.csv), all_at_once()"},
               {"--think", "TIME", "a user's pause: 2s, uniform(1s, 5s), lognormal(2s, 1)"},
               {"--ramp", "TIME", "users start one after the other over this time"},
               {"--max-in-flight", "N", "of --rate: the others wait, which counts"},
               {"--speed", "X", "of replay: 2 takes half the time"},
               {"--time-unit", "TIME", "of replay: what 1 is in its time stamps"}}},
             {"What is sent",
              {{"--prompt-tokens", "LENGTHS",
                "512, uniform(64, 900), lognormal(512, 0.6) (default), empirical(FILE)"},
               {"--output-tokens", "LENGTHS", "of each answer; default: 128"},
               {"--own-length", "", "answers end where the model ends them", takes::nothing},
               {"--prefix-tokens", "LENGTHS", "that prompts begin with alike"},
               {"--prefix-groups", "N", "so many such beginnings"},
               {"--prefix-share", "P%", "of the prompts that have one"},
               {"--dataset", "FILE", "prompts of a file, default format sharegpt"},
               {"--format", "NAME", "sharegpt, dolly, openai_jsonl, coco_captions, text_lines"},
               {"--unsalted", "", "sent as the file has them, so caches help", takes::nothing},
               {"--prompt", "TEXT", "this one; may be repeated", takes::each},
               {"--turns", "LENGTHS", "conversations: answers are fed back"},
               {"--max-tokens", "N", "of an answer"},
               {"--temperature", "X", "of the sampling; default: the server's"},
               {"--system-prompt", "TEXT", "stands before every prompt"},
               {"--extra-body", "JSON", "fields of every request's body"},
               {"--no-stream", "", "answers in one piece", takes::nothing}}},
             {"How long",
              {{"--requests", "N",
                "measured in a repeat; default: 100, or what objectives and users need"},
               {"--duration", "TIME", "of a repeat, instead of --requests or with it"},
               {"--warmup", "AMOUNT", "20 requests (default), 5s, until_stable(60s)"},
               {"--repeats", "N", "at most; default: 2 to 5, as many as it takes"},
               {"--time-budget", "TIME", "for all of it"},
               {"--stop", "WHEN", "first_miss: once it failed; default: all_decided"},
               {"--timeout", "TIME", "of one request; default: 300s"},
               {"--seed", "N", "of the traffic; default: 1"}}},
             {"What is judged",
              {{"--slo", "TEXT", "an objective; may be repeated", takes::each},
               {"--baseline-url", "URL",
                "server for 'p90(ttft) <= 1.1 * baseline'; gets the same requests"},
               {"--baseline-file", "FILE", "an earlier result.json instead"},
               {"--day-to-day", "P%", "how far two days' runs differ; default: 5%"},
               inconclusive_row,
               {"--name", "TEXT", "of the gate in reports"},
               {"--report", "PATH", "where reports go; default: llmbench-report"}}}},
            std::string(run_examples) + exit_codes_of_gates +
                "\nThe environment variables of gates hold, too: LLMBENCH_API_KEY, "
                "LLMBENCH_CALIBRATE ...",
            run_gate};
}

}  // namespace llmbench_program
