// The simulated server's page of metrics under a load, held against the server's own log and
// against what the client saw.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "virtual/execution_environment.hpp"

#include <string>

using namespace live;

namespace {

double sample(const std::string& page, const std::string& name, const std::string& own = "") {
    const std::string begins =
        "\nvllm:" + name + "{engine=\"0\"," + own + "model_name=\"simulated\"} ";
    CAPTURE(begins);
    const std::size_t at = page.find(begins);
    REQUIRE(at != std::string::npos);
    return std::stod(page.substr(at + begins.size()));
}
double ended(const std::string& page, const char* why) {
    return sample(page, "request_success_total", std::string("finished_reason=\"") + why + "\",");
}
double start_of(const std::string& page) {
    const std::string begins = "\nprocess_start_time_seconds ";
    REQUIRE(page.find(begins) != std::string::npos);
    return std::stod(page.substr(page.find(begins) + begins.size()));
}
/// Two at a time, of sixteen that ask at once.
scenario waiting_at(const logging_server& server) {
    return {.target = endpoint{.url = server.url(), .model = "simulated"},
            .workload = prompts({"a prompt of six words"}),
            .arrivals = closed_loop(16),
            .warmup = 0,
            .requests = 48,
            .repeats = 1,
            .options = {.max_tokens = 4}};
}
engine narrow() {
    engine e = quick_engine();
    e.slots = 2;
    return e;
}

}  // namespace

TEST_CASE("the page's times are those of the engine, request by request") {
    const double before = virtual_world::unix_s();
    const logging_server server(narrow());
    const result r = run(waiting_at(server));
    all_ok(r);
    const std::string page = server.page_of_metrics();
    double queue = 0, prefill = 0, decode = 0, prompt = 0, tokens = 0;
    for (const server_log_entry& e : server.log(true)) {
        queue += e.queue_s;
        prefill += e.prefill_s;
        decode += e.decode_s;
        prompt += e.prompt_tokens;
        tokens += e.output_tokens;
    }
    const auto requests = static_cast<double>(server.log(true).size());
    CHECK(requests >= 48);
    CHECK(sample(page, "request_queue_time_seconds_count") == requests);
    CHECK(sample(page, "request_queue_time_seconds_sum") == doctest::Approx(queue));
    CHECK(sample(page, "request_prefill_time_seconds_sum") == doctest::Approx(prefill));
    CHECK(sample(page, "request_decode_time_seconds_sum") == doctest::Approx(decode));
    CHECK(sample(page, "prompt_tokens_total") == prompt);
    CHECK(sample(page, "generation_tokens_total") == tokens);
    CHECK(ended(page, "length") + ended(page, "stop") == requests);
    CHECK(sample(page, "num_requests_running") == 0);
    CHECK(sample(page, "num_requests_waiting") == 0);
    // Of sixteen two run: most of what the client sees of the first token is the queue.
    CHECK(queue > 4 * (prefill + decode));
    double client = 0, checks = queue + prefill;  // what a gate asks before its load is on the page, too
    for (const record& x : r.requests()) client += seconds(x.first_token_ns - x.sent_ns);
    for (const server_log_entry& e : server.log()) checks -= e.queue_s + e.prefill_s;
    CHECK(sample(page, "time_to_first_token_seconds_sum") - checks <= client);
    CHECK(start_of(page) >= before);
    CHECK(start_of(page) <= virtual_world::unix_s());
    CHECK(sample(page, "request_queue_time_seconds_created") == start_of(page));
}

TEST_CASE("what a client gave up on is aborted, what the server broke off is an error") {
    engine endless = quick_engine();
    endless.decode_step = 1_s;
    {
        const logging_server server(endless);
        scenario s = waiting_at(server);
        s.requests = 16;
        s.limits.total = 0.3_s;
        run(s);
        const std::string page = server.page_of_metrics();
        CHECK(ended(page, "abort") == 16);
        CHECK(sample(page, "request_queue_time_seconds_count") == 1);  // the check before the load
    }
    engine rude = quick_engine();
    rude.faults.reset_rate = 100_pct;
    const logging_server server(rude);
    scenario s = waiting_at(server);
    s.requests = 16;
    run(s);
    const std::string page = server.page_of_metrics();
    CHECK(ended(page, "error") == 16);
    CHECK(ended(page, "abort") == 0);
    CHECK(sample(page, "time_to_first_token_seconds_count") == 17);  // the check has one, too
}

TEST_CASE("a server can be told to count from zero, and to say nothing of it") {
    engine restarted = narrow();
    restarted.faults.restart_after = 30;
    const double before = virtual_world::unix_s();
    const logging_server server(restarted);
    const result r = run(waiting_at(server));
    all_ok(r);
    const std::string page = server.page_of_metrics();
    // Of those after the thirtieth; two were half done, some waited.
    const double counted = ended(page, "length") + ended(page, "stop");
    CHECK(counted >= 18);
    CHECK(counted <= 18 + 16);
    CHECK(start_of(page) > before);
    CHECK(sample(page, "prompt_tokens_total") < 48 * 5);

    engine silent = quick_engine();
    silent.faults.metrics_hang = true;
    const logging_server mute(silent);
    CHECK(mute.page_of_metrics(0.5).empty());
    all_ok(run(waiting_at(mute)));
}
