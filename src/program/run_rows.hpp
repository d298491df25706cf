// the options of `llmbench run`, which are also the keys of a file of gates
#pragma once

#include "core/base/vector.hpp"
#include "program/arguments.hpp"

namespace llmbench_program {

inline vector<option_row> rows_of_the_workload() {
    return {{"--prompt-tokens", "LENGTHS",
             "512, uniform(64, 900), lognormal(512, 0.6) (default), empirical(FILE)"},
            {"--output-tokens", "LENGTHS", "of each answer; default: 128"},
            {"--own-length", "", "answers end where the model ends them", takes::nothing},
            {"--prefix-tokens", "LENGTHS", "that prompts begin with alike"},
            {"--prefix-groups", "N", "so many such beginnings"},
            {"--prefix-share", "P%", "of the prompts that have one"},
            {"--dataset", "FILE", "prompts of a file, default format sharegpt"},
            {"--format", "NAME", "sharegpt, dolly, openai_jsonl, coco_captions, text_lines"},
            {"--questions", "FILE",
             "with known answers, for 'accuracy >= 93 %'; --format gsm8k,\n"
             "or qa_jsonl (default)"},
            {"--grade", "NAME", "exact, last_number, choice; default: as the file says"},
            {"--before", "TEXT", "stands before each question"},
            {"--after", "TEXT", "stands behind each question"},
            {"--sessions", "FILE", "recorded sessions of agents, a file or a folder"},
            {"--max-wait", "TIME", "between the steps of a session; default: 60s"},
            {"--max-context", "N", "tokens; longer sessions are left out"},
            {"--max-items", "N", "of a data set, of questions or sessions; default: all"},
            {"--unsalted", "", "sent as the file has them, so caches help", takes::nothing},
            {"--prompt", "TEXT", "this one; may be repeated", takes::each},
            {"--turns", "LENGTHS", "conversations: answers are fed back"},
            {"--max-tokens", "N", "of an answer"},
            {"--temperature", "X", "of the sampling; default: the server's"},
            {"--system-prompt", "TEXT", "stands before every prompt"},
            {"--extra-body", "JSON", "fields of every request's body"},
            {"--no-stream", "", "answers in one piece", takes::nothing},
            {"--server-history", "", "kept by it, with openai_responses", takes::nothing}};
}
inline vector<option_group> run_groups() {
    return {{"Server",
             {{"--url", "URL", "a server that runs; default: LLMBENCH_URL"},
              {"--command", "TEXT", "starts one; {port} in it becomes a free port"},
              {"--model", "NAME", "default: the only one that the server lists"},
              {"--api", "NAME", "openai_chat (default), openai_completions, tgi, ollama ..."},
              {"--path", "PATH", "of the requests; default: the API's"},
              {"--websocket", "", "one for each conversation, of openai_responses", takes::nothing},
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
            {"What is sent", rows_of_the_workload()},
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
              {"--at-once", "", "both servers at the same time, for 40 s or more", takes::nothing},
              {"--baseline-file", "FILE", "an earlier result.json instead"},
              {"--baseline-history", "FOLDER", "the main branch's runs instead"},
              {"--day-to-day", "P%", "how far two days' runs differ; default: 5%"},
              {"--cost", "USD", "an hour of the server, for cost_per_million_tokens"},
              inconclusive_row,
              {"--name", "TEXT", "of the gate in reports"},
              {"--report", "PATH", "where reports go; default: llmbench-report"}}}};
}

}  // namespace llmbench_program
