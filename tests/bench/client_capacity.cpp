// What the client can take: events/s and requests/s against a server that costs next to nothing, and
// the client's CPU time for one event.
//   client_capacity [SECONDS]      of each measurement, default 3
#define LLMBENCH_NO_DOCTEST
#define LLMBENCH_IMPLEMENT
#include "llmbench.hpp"

#include "flood_server.hpp"

using namespace llmbench;

static double seconds_each = 3;

struct figures {
    double seconds = 0, requests = 0, events = 0, client_cpu = 0, coalesced = 0, failed = 0;
};

/// The load's own CPU time is cpu_share of the time between the first send and the last answer.
static figures measured(const flood_server& server, long long streams, int tokens) {
    const result r = run({
        .target = endpoint{.url = server.url()},
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(tokens)},
        .arrivals = closed_loop(streams),
        .warmup = streams,
        .duration = time_span::from_seconds(seconds_each),
        .repeats = 1,
    });
    figures f;
    long long first = 0, last = 0;
    for (const record& x : r.requests()) {
        if (first == 0 || x.dispatched_ns < first) first = x.dispatched_ns;
        if (x.end_ns > last) last = x.end_ns;
        ++f.requests;
        f.events += x.events;
        f.failed += x.status != request_status::ok;
    }
    f.seconds = static_cast<double>(last - first) * 1e-9;
    f.client_cpu = r.self_check().cpu_share * f.seconds;
    f.coalesced = r.self_check().coalesced_share;
    return f;
}

static void print(const char* what, const flood_server& server, long long streams, int tokens) {
    const figures f = measured(server, streams, tokens);
    std::printf("| %-24s | %3lld | %4d | %8.0f | %9.0f | %5.0f %% | %8.2f | %8.1f | %5.1f %% |%s\n", what, streams, tokens,
                f.requests / f.seconds, f.events / f.seconds, 100 * f.client_cpu / f.seconds, 1e6 * f.client_cpu / f.events,
                1e6 * f.client_cpu / f.requests, 100 * f.coalesced, f.failed > 0 ? " REQUESTS FAILED" : "");
    std::fflush(stdout);
}

int main(int argc, char** argv) {
    if (argc > 1) seconds_each = std::atof(argv[1]);
    std::cout.rdbuf(nullptr);  // the table is all that is to be said
    std::printf("| server                   | streams | tokens | requests/s | events/s | client CPU | us/event | us/request | read together |\n"
                "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    const long long streams[] = {1, 16, 64};
    {
        const flood_server server;
        for (const long long n : streams) print("flood", server, n, 2000);
        for (const long long n : streams) print("tiny answers", server, n, 1);
    }
    const flood_server paced(std::chrono::milliseconds(5));
    for (const long long n : streams) print("an event each 5 ms", paced, n, 200);
}
