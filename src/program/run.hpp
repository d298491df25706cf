// llmbench run: a gate without C++
#pragma once

#include "api/verbs.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "effects/gates/measure.hpp"
#include "effects/gates/session.hpp"
#include "effects/system/settings.hpp"
#include "effects/verbs.hpp"
#include "program/arguments.hpp"
#include "program/run_options.hpp"
#include "program/values.hpp"

#include <memory>
#include <string>

namespace llmbench_program {

inline void set_variables(const run_options& o) {
    if (!o.api.empty() && api_named(o.api) == nullptr)
        given{"--api", o.api}.refuse_as("one of " + api_names());
    if (!o.time_budget.empty() && !(time_in(o.time_budget).value_or(0) > 0))
        given{"--time-budget", o.time_budget}.refuse_as("a time above zero, such as 90s or 5min");
    set_variable("LLMBENCH_API", o.api);
    set_inconclusive(o.inconclusive);
    if (!o.time_budget.empty())
        set_variable("LLMBENCH_TIME_BUDGET", printed("%.9g", *time_in(o.time_budget)));
    set_variable("LLMBENCH_REPORT_DIR", o.report);
}

inline int run_gate(const run_options& o) {
    if (o.url.empty() && o.command.empty() && environment("LLMBENCH_URL").empty() &&
        means_off(environment("LLMBENCH_REHEARSE")))
        refuse({"no server is named: give --url http://127.0.0.1:8000, or --command 'vllm serve "
                "MODEL --port {port}' for one that is to be started"});
    set_variables(o);
    const scenario s = scenario_of(o);
    const bool searches = s.arrivals.data().is_searched;
    bool has_capacity = false;
    for (const slo& x : s.slos) has_capacity |= is_capacity(x.what.metric);
    if (searches && !has_capacity) find_capacity(s, "", 0);
    else gate(s, "", 0);
    return exit_code();
}

inline verb add_run(CLI::App& app) {
    const auto o = std::make_shared<run_options>();
    CLI::App& v = *app.add_subcommand("run", "Send a load to a server and judge objectives");
    option_group(v, "Server")
        .text("--url", o->url, "URL", "a server that runs; default: LLMBENCH_URL")
        .text("--command", o->command, "TEXT", "starts one; {port} in it becomes a free port")
        .text("--model", o->model, "NAME", "default: the only one that the server lists")
        .text("--api", o->api, "NAME", "openai_chat (default), openai_completions, tgi, ollama ...")
        .text("--path", o->path, "PATH", "of the requests; default: the API's")
        .text("--key-variable", o->key_variable, "NAME",
              "variable with the key; default: LLMBENCH_API_KEY")
        .list("--header", o->headers, "'NAME: VALUE'", "of every request; may be repeated")
        .text("--metrics-url", o->metrics_url, "URL", "the server's Prometheus page, or off")
        .text("--ready-within", o->ready_within, "TIME", "waits so long for a server that loads")
        .text("--ready", o->ready_path, "PATH", "answers 200 once a started server is ready")
        .list("--env", o->environment, "NAME=VALUE", "for a started server; may be repeated")
        .text("--directory", o->directory, "PATH", "where a server is started")
        .text("--ca-file", o->ca_file, "FILE", "authorities that https:// trusts")
        .flag("--insecure", o->insecure, "https:// with any certificate");
    option_group(v, "When requests are sent")
        .text("--users", o->users, "N", "each sends again once it is answered; default: 1")
        .text("--rate", o->rate, "R", "Poisson arrivals, requests a second")
        .text("--arrivals", o->arrivals, "TEXT",
              "constant(8rps), gamma(8rps, 0.5), ramp(1rps, 8rps, 2min),\n"
              "steps(2rps 30s, 8rps 30s), replay(trace.csv), all_at_once()")
        .text("--think", o->think, "TIME", "a user's pause: 2s, uniform(1s, 5s), lognormal(2s, 1)")
        .text("--ramp", o->ramp, "TIME", "users start one after the other over this time")
        .text("--max-in-flight", o->max_in_flight, "N", "of --rate: the others wait, which counts")
        .text("--speed", o->speed, "X", "of replay: 2 takes half the time")
        .text("--time-unit", o->time_unit, "TIME", "of replay: what 1 is in its time stamps");
    option_group(v, "What is sent")
        .text("--prompt-tokens", o->prompt_tokens, "LENGTHS",
              "512, uniform(64, 900), lognormal(512, 0.6) (default), empirical(FILE)")
        .text("--output-tokens", o->output_tokens, "LENGTHS", "of each answer; default: 128")
        .flag("--own-length", o->own_length, "answers end where the model ends them")
        .text("--prefix-tokens", o->prefix_tokens, "LENGTHS", "that prompts begin with alike")
        .text("--prefix-groups", o->prefix_groups, "N", "so many such beginnings")
        .text("--prefix-share", o->prefix_share, "P%", "of the prompts that have one")
        .text("--dataset", o->dataset, "FILE", "prompts of a file, default format sharegpt")
        .text("--format", o->format, "NAME",
              "sharegpt, dolly, openai_jsonl, coco_captions, text_lines")
        .flag("--unsalted", o->unsalted, "sent as the file has them, so caches help")
        .list("--prompt", o->prompts, "TEXT", "this one; may be repeated")
        .text("--turns", o->turns, "LENGTHS", "conversations: answers are fed back")
        .text("--max-tokens", o->max_tokens, "N", "of an answer")
        .text("--temperature", o->temperature, "X", "of the sampling; default: the server's")
        .text("--system-prompt", o->system_prompt, "TEXT", "stands before every prompt")
        .text("--extra-body", o->extra_body, "JSON", "fields of every request's body")
        .flag("--no-stream", o->no_stream, "answers in one piece");
    option_group(v, "How long")
        .text("--requests", o->requests, "N",
              "measured in a repeat; default: 100, or what objectives and users need")
        .text("--duration", o->duration, "TIME", "of a repeat, instead of --requests or with it")
        .text("--warmup", o->warmup, "AMOUNT", "20 requests (default), 5s, until_stable(60s)")
        .text("--repeats", o->repeats, "N", "at most; default: 2 to 5, as many as it takes")
        .text("--time-budget", o->time_budget, "TIME", "for all of it")
        .text("--timeout", o->timeout, "TIME", "of one request; default: 300s")
        .text("--seed", o->seed, "N", "of the traffic; default: 1");
    option_group(v, "What is judged")
        .list("--slo", o->slos, "TEXT", "an objective; may be repeated")
        .text("--baseline-url", o->baseline_url, "URL", "server for 'p90(ttft) <= 1.1 * baseline'")
        .text("--baseline-file", o->baseline_file, "FILE", "an earlier result.json instead")
        .text("--day-to-day", o->day_to_day, "P%", "how far two days' runs differ; default: 5%")
        .text("--inconclusive", o->inconclusive, "KIND", "warn (0, default), fail (1), skip (77)")
        .text("--name", o->name, "TEXT", "of the gate in reports")
        .text("--report", o->report, "PATH", "where reports go; default: llmbench-report");
    v.footer("Examples:\n"
             "  llmbench run --url http://127.0.0.1:8000 --users 8 --slo 'p90(ttft) <= 500 ms'\n"
             "  llmbench run --url http://127.0.0.1:8000 --rate 8 --requests 300 \\\n"
             "      --prompt-tokens 'lognormal(512, 0.6)' --output-tokens 128 \\\n"
             "      --slo 'p90(ttft) <= 300 ms' --slo 'mean(tpot) <= 25 ms'\n"
             "  llmbench run --url http://127.0.0.1:8000 --users 'up_to(256)' --slo 'p95(ttft) <= 2 s'\n"
             "The last one searches the most users that hold the objective.\n"
             "Objectives are written as in C++: p50 to p99, mean and max of ttft, tpot, itl, e2e;\n"
             "output_throughput >= 400 tok/s; goodput(ttft <= 500 ms && tpot <= 30 ms) >= 90 %;\n"
             "advisory(...) fails nothing. error_rate <= 1 % is always added.\n"
             "Exit codes: 0 passed or inconclusive, 1 missed, 2 refused, 3 invalid, 77 skipped.\n"
             "The environment variables of gates hold, too: LLMBENCH_API_KEY, LLMBENCH_CALIBRATE ...");
    return {&v, [o] { return run_gate(*o); }};
}

}  // namespace llmbench_program
