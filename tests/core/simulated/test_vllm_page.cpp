// The simulated server's page of metrics, held against what its engine did.
#include "extensions/simulated/core/replies.hpp"

#include "core/base/random.hpp"
#include "support/golden.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

/// Every time is a multiple of 1/1024 s, so that sums are exact on every machine.
engine in_binary_steps() {
    engine e;
    e.slots = 2;
    e.decode_step = time_span::from_seconds(1.0 / 64);
    e.step_per_sequence = time_span::from_seconds(1.0 / 128);
    e.prefill_per_token = time_span::from_seconds(1.0 / 1024);
    e.jitter = 0;
    return e;
}
/// The engine, and what a server would have counted of it.
struct counted_engine {
    explicit counted_engine(const engine& e) : model(e) {}

    void step() {
        for (const engine_model::emission& e : model.finish_step()) {
            counts.count(e);
            if (e.finished) counts.count(e.id % 2 ? end_reason::length : end_reason::stop);
            seen.push_back(e);
        }
    }
    void run_dry() {
        while (model.step_end() < infinity) step();
    }
    std::string page() const { return vllm_page(model, counts); }

    engine_model model;
    tallies counts{1700000000.25};
    vector<engine_model::emission> seen{};
};
/// The samples of a page by all that stands before their value.
std::map<std::string, double> samples_of(const std::string& page) {
    std::map<std::string, double> samples;
    std::size_t at = 0;
    for (std::size_t end; (end = page.find('\n', at)) != std::string::npos; at = end + 1) {
        const std::string line = page.substr(at, end - at);
        if (line[0] == '#') continue;
        const std::size_t blank = line.rfind(' ');
        const bool is_new =
            samples.emplace(line.substr(0, blank), std::stod(line.substr(blank + 1))).second;
        CHECK_MESSAGE(is_new, line);
    }
    return samples;
}
double sample(const std::string& page, const std::string& name, const std::string& own = "") {
    const std::string all =
        "vllm:" + name + "{engine=\"0\"," + own + "model_name=\"simulated\"}";
    CAPTURE(all);
    const std::map<std::string, double> samples = samples_of(page);
    REQUIRE(samples.contains(all));
    return samples.at(all);
}
double ended(const std::string& page, const char* why) {
    return sample(page, "request_success_total",
                  std::string("finished_reason=\"") + why + "\",");
}
/// The cumulative counts of a histogram, in the page's order.
vector<double> buckets_of(const std::string& page, const std::string& name) {
    vector<double> counts;
    const std::string begins = "\nvllm:" + name + "_bucket{";
    for (std::size_t at = page.find(begins); at != std::string::npos;
         at = page.find(begins, at + 1)) {
        const std::size_t end = page.find('\n', at + 1);
        counts.push_back(std::stod(page.substr(page.rfind(' ', end))));
    }
    return counts;
}
const char* const histograms[] = {"time_to_first_token_seconds", "inter_token_latency_seconds",
                                  "e2e_request_latency_seconds", "request_queue_time_seconds",
                                  "request_prefill_time_seconds", "request_decode_time_seconds"};

}  // namespace

TEST_CASE("the whole page of a scripted engine") {
    counted_engine e(in_binary_steps());
    e.model.submit(0, {1, 64, 3, {11, 12, 13, 14}});
    e.model.submit(0, {2, 96, 2, {21, 22}});
    e.model.submit(0, {3, 64, 40, {11, 12, 13, 14}});
    e.model.submit(0, {4, 4000, 1, {}});
    e.model.submit(0, {5, 8, 8, {}});
    for (int i = 0; i < 4; ++i) e.step();
    CHECK(e.model.cancel(5));
    e.counts.count(end_reason::abort);
    golden::check("simulated-metrics.txt", e.page());
}

TEST_CASE("times of a request are those at which the engine did it") {
    counted_engine e(in_binary_steps());
    e.model.submit(1, {1, 64, 3, {}});   // steps of 64/1024, then of 1/64, and 1/128 each that runs
    e.model.submit(1, {2, 32, 1, {}});   // joins when the first one's first step has ended
    e.model.submit(1.25, {3, 32, 1, {}});  // the engine is idle
    e.run_dry();
    REQUIRE(e.seen.size() == 5);
    const engine_model::emission &first = e.seen[0], &last = e.seen[3], &other = e.seen[2];
    CHECK(first.first);
    CHECK(first.gap == 0);
    CHECK(first.when.first_token == 1 + 2.0 / 128 + 1.0 / 128 + 64.0 / 1024);
    CHECK_FALSE(last.first);
    CHECK(last.when.first_token == first.when.first_token);
    CHECK(last.gap == last.when.last_token - e.seen[1].when.last_token);
    CHECK(other.id == 2);
    CHECK(other.when.arrived == 1);
    CHECK(other.when.admitted == first.when.first_token);
    CHECK(e.seen[4].when.admitted == 1.25);
}

TEST_CASE("what comes before a late step has ended has not waited for a negative time") {
    engine one = in_binary_steps();
    one.slots = 1;
    counted_engine e(one);
    e.model.submit(0, {1, 1, 1, {}});
    e.model.submit(100, {2, 1, 1, {}});  // though the step that runs ended long before
    e.run_dry();
    REQUIRE(e.seen.size() == 2);
    CHECK(e.seen[1].when.admitted == 100);
    CHECK(sample(e.page(), "request_queue_time_seconds_sum") == 0);
}

TEST_CASE("histograms ascend to their count, and their means are the engine's") {
    engine settings = in_binary_steps();
    settings.slots = 8;
    settings.jitter = 0.1;
    settings.tokens_per_event = 2;
    counted_engine e(settings);
    generator random(3);
    double now = 0, prompts = 0, tokens = 0;
    for (std::uint64_t id = 1; id <= 300; ++id) {
        now += 0.05 * random.exponential();
        while (e.model.step_end() <= now) e.step();
        const int prompt = 1 + static_cast<int>(random.below(400)),
                  output = 1 + static_cast<int>(random.below(30));
        prompts += prompt;
        tokens += output;
        e.model.submit(now, {id, prompt, output, {}});
    }
    CHECK(sample(e.page(), "num_requests_running") > 0);
    e.run_dry();
    const std::string page = e.page();
    double ttft = 0, e2e = 0, queue = 0, prefill = 0, decode = 0, gaps = 0;
    for (const engine_model::emission& x : e.seen) {
        if (x.first) ttft += x.when.first_token - x.when.arrived;
        else gaps += x.gap;
        if (!x.finished) continue;
        e2e += x.when.last_token - x.when.arrived;
        queue += x.when.admitted - x.when.arrived;
        prefill += x.when.first_token - x.when.admitted;
        decode += x.when.last_token - x.when.first_token;
    }
    const double sums[] = {ttft, gaps, e2e, queue, prefill, decode};
    for (std::size_t i = 0; i < std::size(histograms); ++i) {
        const std::string name = histograms[i];
        CAPTURE(name);
        const vector<double> counts = buckets_of(page, name);
        REQUIRE(counts.size() > 10);
        for (std::size_t j = 1; j < counts.size(); ++j) CHECK(counts[j] >= counts[j - 1]);
        CHECK(counts.back() == sample(page, name + "_bucket", "le=\"+Inf\","));
        CHECK(counts.back() == sample(page, name + "_count"));
        const bool of_gaps = name == "inter_token_latency_seconds";
        CHECK(counts.back() == (of_gaps ? static_cast<double>(e.seen.size()) - 300 : 300));
        CHECK(sample(page, name + "_sum") == doctest::Approx(sums[i]).epsilon(1e-12));
        CHECK(sums[i] > 0);
    }
    // A request is nothing but its wait, its prompt and its tokens.
    CHECK(queue + prefill + decode == doctest::Approx(e2e).epsilon(1e-9));
    CHECK(gaps == doctest::Approx(decode).epsilon(1e-9));
    CHECK(sample(page, "prompt_tokens_total") == prompts);
    CHECK(sample(page, "generation_tokens_total") == tokens);
    CHECK(ended(page, "stop") == 150);
    CHECK(ended(page, "length") == 150);
    CHECK(ended(page, "abort") == 0);
    CHECK(sample(page, "num_requests_running") == 0);
    CHECK(sample(page, "kv_cache_usage_perc") == 0);
}

TEST_CASE("a value lies under the limit that it is, and what is over all of them in the last") {
    bucket_counts b(gap_limits);
    for (const double v : {0.0, 0.01, 0.0100001, 80.0, 80.1, 1e9}) b.add(v);
    CHECK(b.counts().front() == 2);
    CHECK(b.counts()[1] == 1);
    CHECK(b.counts()[std::size(gap_limits) - 1] == 1);
    CHECK(b.counts().back() == 2);
}

TEST_CASE("a request is cancelled once, and only while the engine has it") {
    counted_engine e(in_binary_steps());
    for (std::uint64_t id = 1; id <= 3; ++id) e.model.submit(0, {id, 16, 2, {}});
    CHECK_FALSE(e.model.cancel(7));
    CHECK(e.model.cancel(1));  // runs
    CHECK_FALSE(e.model.cancel(1));
    CHECK(e.model.cancel(3));  // waits
    CHECK_FALSE(e.model.cancel(3));
    e.run_dry();
    CHECK_FALSE(e.model.cancel(2));  // has ended
    CHECK(ended(e.page(), "stop") == 1);
    CHECK(sample(e.page(), "e2e_request_latency_seconds_count") == 1);
}

TEST_CASE("a restarted server counts from zero, and what runs goes on") {
    counted_engine e(in_binary_steps());
    e.model.submit(0, {1, 64, 3, {11, 12}});
    e.model.submit(0, {2, 64, 3, {11, 12}});
    while (e.seen.size() < 3) e.step();
    CHECK(sample(e.page(), "prompt_tokens_total") == 128);
    e.counts = tallies(1700000500, e.model.totals());
    const std::string anew = e.page();
    for (const auto& [name, value] : samples_of(anew)) {
        CAPTURE(name);
        const bool is_start = texts::holds(name, "_created") || texts::holds(name, "start_time");
        const bool is_gauge = texts::holds(name, "num_requests_") || texts::holds(name, "perc") ||
                              texts::holds(name, "_config_info");
        if (is_gauge) continue;
        CHECK(value == (is_start ? 1700000500 : 0));
    }
    CHECK(sample(anew, "num_requests_running") > 0);
    e.run_dry();
    CHECK(sample(e.page(), "prompt_tokens_total") == 0);
    CHECK(sample(e.page(), "generation_tokens_total") == 3);
    CHECK(sample(e.page(), "e2e_request_latency_seconds_count") == 2);
}

TEST_CASE("numbers are written as Python writes them") {
    for (const auto& [v, text] : vector<std::pair<double, std::string>>{
             {0, "0.0"}, {1, "1.0"}, {0.1, "0.1"}, {0.0001, "0.0001"}, {0.00001, "1e-05"},
             {1234.5, "1234.5"}, {999999, "999999.0"}, {1e6, "1e+06"},
             {1700000000.25, "1.70000000025e+09"}, {-2, "-2.0"},
             {std::numeric_limits<double>::infinity(), "+Inf"}})
        CHECK(python_number(v) == text);
}
