// Thousands of streams for a minute against the simulated server while one in a hundred is reset,
// stalls or turns to garbage: every request is accounted for, and neither memory nor descriptors
// grow beyond what the records themselves take.
//   soak            2,000 streams, 60 seconds
//   soak --quick    300 streams, 6 seconds, more faults; what holds on any machine. Exits 1 where
//                   it does not
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"
#include "core/base/text.hpp"

#include "support/one_repeat.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

using namespace llmbench;

struct usage {
    double seconds = 0;
    long rss_kb = 0, descriptors = 0, threads = 0;
};
static usage usage_now() {
    usage u;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmRSS:", 0) == 0) u.rss_kb = std::atol(line.c_str() + 6);
        if (line.rfind("Threads:", 0) == 0) u.threads = std::atol(line.c_str() + 8);
    }
    for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator("/proc/self/fd"))
        ++u.descriptors;
    return u;
}

/// Looks at this process every half second for as long as it lives.
class observer {
public:
    observer() : thread_([this] {
        const auto began = std::chrono::steady_clock::now();
        while (!over_.load()) {
            usage u = usage_now();
            u.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
            seen_.push_back(u);
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
        }
    }) {}
    std::vector<usage> seen() {
        over_ = true;
        if (thread_.joinable()) thread_.join();
        return seen_;
    }
    ~observer() { seen(); }

private:
    std::atomic<bool> over_{false};
    std::vector<usage> seen_{};
    std::thread thread_;
};

static int wrong = 0;
static void expect(bool holds, const std::string& what) {
    std::printf("%s: %s\n", holds ? "ok" : "NOT OK", what.c_str());
    wrong += !holds;
}

int main(int argc, char** argv) {
    const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
    const long long streams = quick ? 300 : 2000;
    const double seconds = quick ? 6 : 60;
    const int tokens = quick ? 16 : 32;

    engine e;
    e.slots = streams;
    e.decode_step = quick ? 50_ms : 100_ms;
    e.step_per_sequence = 0_ms;
    e.prefill_per_token = 0.0001_ms;
    e.prefill_budget = 100000;
    e.kv.memory_bytes = 1e12;
    e.faults.reset_rate = quick ? 1_pct : 0.4_pct;
    e.faults.stall_rate = quick ? 1_pct : 0.3_pct;
    e.faults.garbage_rate = quick ? 1_pct : 0.3_pct;

    const scenario s{
        .target = simulated(e),
        .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(tokens)},
        .arrivals = closed_loop(streams).ramp(time_span::from_seconds(seconds / 30)),
        .warmup = 0,
        .duration = time_span::from_seconds(seconds),
        .repeats = 1,
        .limits = {.connect = 10_s,
                   .first_event = 20_s,
                   .between_events = quick ? 2_s : 5_s,
                   .total = 40_s,
                   .drain = 20_s},
    };
    const usage before = usage_now();
    std::vector<usage> seen;
    detail::repeat_data d;
    {
        observer watch;
        d = bench::one_repeat(s);
        seen = watch.seen();
    }
    const usage after = usage_now();

    std::map<request_status, long> counts;
    std::set<std::string> ids;
    long long last_end = 0, first_send = 0, short_answers = 0;
    std::vector<std::pair<long long, int>> steps;
    for (const record& r : d.records) {
        ++counts[r.status];
        ids.insert(detail::str(r.id));
        last_end = std::max(last_end, r.end_ns);
        if (first_send == 0 || r.dispatched_ns < first_send) first_send = r.dispatched_ns;
        short_answers += r.status == request_status::ok && r.output_tokens != tokens;
        steps.push_back({r.dispatched_ns, 1});
        steps.push_back({r.end_ns, -1});
    }
    std::sort(steps.begin(), steps.end());
    long at_once = 0, most = 0;
    for (const auto& [at, step] : steps) most = std::max(most, at_once += step);
    long events = 0;
    for (const record& r : d.records) events += r.events;
    const auto n = static_cast<double>(d.records.size());
    std::printf("%zu requests, %ld events, %ld streams at once, %.1f s, %.0f %% of a core\n",
                d.records.size(), events, most,
                static_cast<double>(last_end - first_send) * 1e-9, d.cpu_utilization * 100);
    for (const auto& [status, count] : counts) std::printf("  %s %ld\n", to_string(status), count);
    for (const usage& u : seen)
        if (std::fmod(u.seconds + 0.25, seconds / 6) < 0.5)
            std::printf("  after %4.1f s: %6ld KiB, %5ld descriptors, %ld threads\n", u.seconds,
                        u.rss_kb, u.descriptors, u.threads);
    std::printf("  before %ld, after %ld descriptors\n", before.descriptors, after.descriptors);

    // A reset, a stall and garbage each have their own kind of failure, and nothing else fails.
    const std::pair<request_status, fraction> kinds[] = {
        {request_status::truncated, e.faults.reset_rate},
        {request_status::timeout, e.faults.stall_rate},
        {request_status::protocol, e.faults.garbage_rate}};
    double accounted = static_cast<double>(counts[request_status::ok]);
    for (const auto& [status, rate] : kinds) {
        const double expected = n * rate.value;
        const auto count = static_cast<double>(counts[status]);
        accounted += count;
        expect(std::abs(count - expected) <= 6 * std::sqrt(expected),
               detail::printed("%s: %.0f where about %.0f were asked for", to_string(status), count,
                               expected));
    }
    expect(accounted == n, "sent = ok + resets + stalls + garbage");
    expect(ids.size() == d.records.size(), "every request has one record");
    expect(short_answers == 0, "no answer that is ok lacks a token");
    expect(most >= streams * 9 / 10 && most <= streams, "as many streams at once as asked for");

    // From the first third on, when everybody has begun.
    long descriptors = 0, least = 0, growth_from = 0, growth_to = 0;
    for (const usage& u : seen) {
        if (u.seconds < seconds / 3 || u.seconds > seconds) continue;
        descriptors = std::max(descriptors, u.descriptors);
        if (least == 0) { least = u.descriptors; growth_from = u.rss_kb; }
        growth_to = u.rss_kb;
    }
    expect(descriptors <= 2 * streams + 64,
           detail::printed("%ld descriptors at most", descriptors));
    expect(after.descriptors == before.descriptors, "no descriptor is left");
    const double a_request = static_cast<double>(growth_to - growth_from) * 1024 / (n * 2 / 3);
    expect(a_request < 2048, detail::printed("memory grew by %ld KiB in the last two thirds, %.0f "
                                             "bytes a request",
                                             growth_to - growth_from, a_request));
    return wrong > 0;
}
