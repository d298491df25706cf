// What `llmbench count` says of loads that were counted, and the gates that it writes.
#include "program/count_text.hpp"

#include "support/golden.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using namespace llmbench_program;
using texts::holds;

namespace {

work_row row(const char* name, double first, double second, double expected = not_a_number) {
    return {.name = name, .seen = {first, second}, .expected = {expected, expected}};
}
/// As of a vLLM with blocks of 128 tokens.
counted_work of_vllm() {
    counted_work w;
    w.url = "http://127.0.0.1:8000";
    w.server = "vLLM";
    w.reset = "/reset_prefix_cache";
    w.rows = {row("server_requests", 24, 24, 24),
              row("prefilled_tokens", 3122, 3122, 3122),
              row("cached_tokens", 1024, 1024, 1024),
              row("generated_tokens", 576, 576, 576),
              row("engine_steps", 163, 169),
              row("preemptions", 0, 0)};
    return w;
}

}  // namespace

TEST_CASE("a healthy server: what repeats, what is expected, and both gates") {
    golden::check("program/count.txt", counted_text(of_vllm()));
}

TEST_CASE("a gate has the counts that repeat, and no others") {
    counted_work w = of_vllm();
    const auto objectives = [&] { return objectives_of(w); };
    CHECK(objectives() == vector<std::string>{
        "server_requests == expected", "prefilled_tokens == 3122", "cached_tokens == expected",
        "generated_tokens == expected", "preemptions == 0"});
    w.rows = {row("cached_tokens", 1024, 1024, 2200), row("prefilled_tokens", 3122, 3122),
              row("generated_tokens", 576, 575, 576), row("accepted_tokens", not_a_number, 3)};
    CHECK(objectives() == vector<std::string>{"cached_tokens == 1024", "prefilled_tokens == 3122"});
    // Steps are exact of one user alone, and preemptions where there are none.
    w.rows = {row("engine_steps", 90, 90), row("preemptions", 3, 3)};
    CHECK(objectives().empty());
    CHECK(holds(counted_text(w), "there is no gate to paste"));
    w.users = 1;
    CHECK(objectives() == vector<std::string>{"engine_steps == 90"});
    CHECK(holds(counted_text(w), ".arrivals = closed_loop(1),\n"));
}

TEST_CASE("without an empty cache there is no objective on what it holds") {
    counted_work w = of_vllm();
    w.reset = "";
    CHECK(objectives_of(w) == vector<std::string>{"server_requests == expected",
                                                  "generated_tokens == expected"});
    CHECK_FALSE(holds(counted_text(w), "prepare"));
    w.command = "serve \"m\" --port {port}";
    CHECK(objectives_of(w).size() == 5);
    const std::string text = counted_text(w);
    CHECK(holds(text, "sent twice, started anew before each\n"));
    CHECK(holds(text, "gate({.target = process{.command = \"serve \\\"m\\\" --port {port}\",\n"
                      "                            .restart_between_repeats = true},\n"
                      "          .workload = conversations"));
    CHECK(holds(text, "\ncommand = \"serve \\\"m\\\" --port {port}\"\nrestart = true\nusers = 4\n"));
    CHECK_FALSE(holds(text, "url = "));
}

TEST_CASE("both gates have what was given of the server") {
    counted_work w = of_vllm();
    w.api = "openai_completions";
    CHECK(holds(cpp_gate(w), "gate({.target = endpoint{.api = openai_completions},\n"
                             "          .workload = "));
    w.model = "a \"b\"";
    w.metrics_url = "/own/metrics";
    CHECK(holds(cpp_gate(w), "gate({.target = endpoint{.model = \"a \\\"b\\\"\",\n"
                             "                             .api = openai_completions,\n"
                             "                             .metrics_url = \"/own/metrics\"},\n"
                             "          .workload = "));
    CHECK(holds(toml_gate(w), "]\nurl = \"http://127.0.0.1:8000\"\napi = \"openai_completions\"\n"
                              "model = \"a \\\"b\\\"\"\nmetrics-url = \"/own/metrics\"\n"
                              "users = 4\n"));
    w.command = "serve --port {port}";
    w.ready = "/up";
    CHECK(holds(cpp_gate(w), "gate({.target = process{.command = \"serve --port {port}\",\n"
                             "                            .ready = \"/up\",\n"
                             "                            .restart_between_repeats = true,\n"
                             "                            .api = openai_completions,\n"
                             "                            .model = "));
    CHECK(holds(toml_gate(w), "\nrestart = true\nready = \"/up\"\napi = \"openai_completions\"\n"));
}

TEST_CASE("a secret that is not printed is to be put back") {
    counted_work w = of_vllm();
    const std::string says = "*** stands for a secret: put it back by an environment variable";
    CHECK_FALSE(holds(counted_text(w), says));
    w.command = "serve --api-key *** --port {port}";
    CHECK(holds(counted_text(w), says));
}

TEST_CASE("a post that did not empty the cache is named") {
    counted_work w = of_vllm();
    w.rows = {row("prefilled_tokens", 3680, 96, 3680), row("cached_tokens", 2976, 6560, 2976),
              row("generated_tokens", 768, 767)};
    const std::string says = "differs: POST /reset_prefix_cache did not empty the cache";
    CHECK(finding_of(w.rows[0], w) == says);
    CHECK(finding_of(w.rows[1], w) == says);
    CHECK(finding_of(w.rows[2], w) == "differs");
    w.rows[0].seen = {3680, 3552};
    CHECK(finding_of(w.rows[0], w) == "differs");
    w.rows[0].seen = {3680, not_a_number};
    CHECK(finding_of(w.rows[1], w) == "differs");
    // It was left by a program before.
    w.rows = {row("prefilled_tokens", 96, 96, 3680), row("generated_tokens", 700, 700, 768)};
    CHECK(finding_of(w.rows[0], w) ==
          "equal, 3584 fewer than expected, as if POST /reset_prefix_cache had emptied nothing");
    CHECK(finding_of(w.rows[1], w) == "equal, 68 fewer than expected");
}

TEST_CASE("several users of SGLang are primed, and slots of llama-server have no exact prompts") {
    counted_work w = of_vllm();
    w.server = "SGLang";
    w.reset = "/flush_cache";
    CHECK(holds(counted_text(w), ".prepare = {post(\"/flush_cache\"), prime()}});\n"));
    CHECK(holds(counted_text(w), "\nprepare = [{post = \"/flush_cache\"}, {prime = true}]\n"));
    w.users = 1;
    CHECK(holds(counted_text(w), ".prepare = {post(\"/flush_cache\")}});\n"));
    w.server = "llama.cpp";
    w.reset = "";
    w.command = "llama-server";
    CHECK(objectives_of(w).size() == 5);
    w.users = 4;
    CHECK(objectives_of(w) == vector<std::string>{
        "server_requests == expected", "generated_tokens == expected", "preemptions == 0"});
}

TEST_CASE("each row says what it shows") {
    const counted_work w = of_vllm();
    const auto finding = [&](const work_row& r) { return finding_of(r, w); };
    CHECK(finding(row("cached_tokens", 5, 5, 5)) == "equal, as expected");
    CHECK(finding(row("cached_tokens", 5, 5, 7)) == "equal, 2 fewer than expected");
    CHECK(finding(row("cached_tokens", 9, 9, 7)) == "equal, 2 more than expected");
    CHECK(finding(row("cached_tokens", 5, 5)) == "equal");
    CHECK(finding(row("cached_tokens", 5, 6, 5)) == "differs");
    CHECK(finding(row("cached_tokens", 5, not_a_number)) == "not on the page");
    CHECK(holds(finding(row("engine_steps", 9, 9)), "equal by chance"));
    CHECK(holds(finding(row("engine_steps", 8, 9)), "differs: which requests share a step"));
}

TEST_CASE("what would show more is said") {
    counted_work w = of_vllm();
    w.no_model = "POST /tokenize answers HTTP 404";
    w.advice = {"Start vLLM with VLLM_SERVER_DEV_MODE=1."};
    const std::string text = counted_text(w);
    CHECK(holds(text, "\nnothing is expected of prompts: POST /tokenize answers HTTP 404\n"));
    CHECK(holds(text, "\nStart vLLM with VLLM_SERVER_DEV_MODE=1.\n"));
}
