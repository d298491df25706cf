// How true the client's stamps are: the server, a process on another core, logs on the same monotonic
// clock when it saw each request and when it wrote each first and last event. Beside ours in the same
// run: the raw reader, whose error is the machine's.
//   client_accuracy [SECONDS]      of each measurement, default 4
//   client_accuracy --disturbed    ours alone, left alone, beside a busy process on its core, and stopped for
//                                  200 ms five times: errors of ttft, tpot and e2e
//   client_accuracy --quick        whether our stamps are those of the raw reader, in seconds; exits 1
#include "llmbench.hpp"
#include "core/base/text.hpp"
#include "core/traffic/arrivals.hpp"

#include "flood_server.hpp"
#include "support/one_repeat.hpp"

#include <algorithm>

using namespace llmbench;

/// Client's stamp minus server's, ms; of the requests the time from the planned send.
struct errors {
    std::vector<double> first{}, last{}, received{};
    double late_fraction = 0;  // of stamps that the self-check saw wait for more than 1 ms
    void add(const bench::served& s, long long scheduled_ns, long long first_ns, long long last_ns) {
        const auto ms = [](long long ns) { return static_cast<double>(ns) * 1e-6; };
        if (s.first_ns == 0 || s.last_ns == 0 || first_ns == 0) return;
        first.push_back(ms(first_ns - s.first_ns));
        last.push_back(ms(last_ns - s.last_ns));
        if (scheduled_ns > 0) received.push_back(ms(s.received_ns - scheduled_ns));
    }
};
static double at(std::vector<double> v, double q) {
    if (v.empty()) return detail::not_a_number;
    std::sort(v.begin(), v.end());
    return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1))];
}

struct load {
    const char* name;
    std::size_t streams;
    int interval_ms, tokens;
    bool open;
};
/// Requests a second that keep so many streams busy.
static double rate_of(const load& l) { return static_cast<double>(l.streams) / (1e-3 * l.interval_ms * (l.tokens + 0.5)); }

static errors ours(const bench::flood_server& server, const load& l, double seconds) {
    const double rate = rate_of(l);
    const scenario s{
        .target = endpoint{.url = server.url()},
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(l.tokens)},
        .arrivals = l.open ? arrival_pattern(poisson(request_rate(rate))) : arrival_pattern(closed_loop(static_cast<long long>(l.streams))),
        .warmup = 0,
        .requests = l.open ? static_cast<long long>(rate * seconds) : 0,
        .duration = l.open ? time_span() : time_span::from_seconds(seconds),
        .repeats = 1,
    };
    const detail::repeat_data d = bench::one_repeat(s);
    errors e;
    for (const record& r : d.records) {
        const std::string id = detail::str(r.id);
        e.add(server.log(std::stoul(id.substr(id.rfind('-') + 1))), r.scheduled_ns, r.first_token_ns, r.last_token_ns);
    }
    std::printf("    the client's own view: loop lag p99 %.3f ms, wake-up to stamp p99 %.3f ms, max %.3f ms, %.0f %% CPU\n", 1e3 * d.loop_lag.quantile(0.99),
                1e3 * d.stamp_lag.quantile(0.99), 1e3 * d.stamp_lag.max(), 100 * d.cpu_utilization);
    return e;
}
static errors raw(const bench::flood_server& server, const load& l, double seconds) {
    bench::raw_reader reader(server, l.tokens);
    bench::raw_figures f;
    if (l.open) {
        const detail::schedule plan = detail::open_loop_schedule(poisson(request_rate(rate_of(l))).data(), 0, 0,
                                                                 static_cast<long long>(rate_of(l) * seconds), 0, 1);
        std::vector<long long> send_at;
        for (const double t : plan.at) send_at.push_back(std::llround(t * 1e9));
        f = reader.open(send_at);
    } else {
        f = reader.closed(l.streams, seconds);
    }
    errors e;
    for (std::size_t i = 0; i < f.records.size(); ++i) e.add(server.log(i), f.records[i].scheduled_ns, f.records[i].first_ns, f.records[i].last_ns);
    return e;
}
static void row(const load& l, const char* client, const errors& e) {
    if (e.first.empty()) return;
    std::printf("| %-11s | %4zu at %2d ms | %-8s | %6zu | %7.3f | %8.3f | %8.3f | %7.3f | %8.3f | %8.3f |", l.name, l.streams, l.interval_ms, client,
                e.first.size(), at(e.first, 0.5), at(e.first, 0.99), at(e.first, 1), at(e.last, 0.5), at(e.last, 0.99), at(e.last, 1));
    if (e.received.empty()) std::printf("\n");
    else std::printf(" %7.3f | %8.3f |\n", at(e.received, 0.5), at(e.received, 0.99));
    std::fflush(stdout);
}

/// In turns with the raw reader, whose error is the machine's; of five runs the best medians. A stamp
/// that is wrong by a chunk, a queue or a turn of the loop is wrong in every run.
static int quick() {
    const load l{"closed loop", 32, 5, 40, false};
    const bench::flood_server server({.interval = std::chrono::milliseconds(l.interval_ms)});
    double raw_first = 1e9, raw_last = 1e9, first = 1e9, last = 1e9;
    for (int i = 0; i < 5; ++i) {
        const errors theirs = raw(server, l, 0.3), our = ours(server, l, 0.3);
        if (our.first.size() < l.streams) { std::printf("only %zu requests\n", our.first.size()); return 1; }
        raw_first = std::min(raw_first, at(theirs.first, 0.5));
        raw_last = std::min(raw_last, at(theirs.last, 0.5));
        first = std::min(first, at(our.first, 0.5));
        last = std::min(last, at(our.last, 0.5));
        // A stamp before the write would be no stamp: the clock is the same.
        if (at(our.first, 0) < 0 || at(our.last, 0) < 0) { std::printf("an event was stamped before it was written\n"); return 1; }
    }
    const bool close = first <= 1.5 * raw_first + 1 && last <= 1.5 * raw_last + 1;
    std::printf("median error in ms of the first and last stamps: %.3f and %.3f, of the raw reader %.3f and %.3f; at most 1.5 times that + 1 ms: %s\n", first, last,
                raw_first, raw_last, close ? "met" : "NOT MET");
    return close ? 0 : 1;
}

/// Our errors where the client is kept from running: of the requests whose times are known, and how many others
/// there are; and how many repeats the read's time alone would have spoiled.
struct disturbed_errors {
    std::vector<double> ttft{}, tpot{}, e2e{};
    std::size_t unknown = 0;
    long long unknown_gaps = 0;
    double stamped = 0, read_max_ms = 0;
};
static disturbed_errors disturbed(const bench::flood_server& server, const load& l, double seconds) {
    const scenario s{
        .target = endpoint{.url = server.url()},
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(l.tokens)},
        .arrivals = closed_loop(static_cast<long long>(l.streams)),
        .warmup = 0,
        .duration = time_span::from_seconds(seconds),
        .repeats = 1,
    };
    const detail::repeat_data d = bench::one_repeat(s);
    disturbed_errors e;
    e.unknown_gaps = d.unknown_gaps;
    e.stamped = static_cast<double>(d.stamped_reads) / static_cast<double>(std::max(d.reads, 1ll));
    e.read_max_ms = 1e3 * d.stamp_lag.max();
    for (const record& r : d.records) {
        const std::string id = detail::str(r.id);
        const bench::served& log = server.log(std::stoul(id.substr(id.rfind('-') + 1)));
        if (r.status != request_status::ok || log.first_ns == 0) continue;
        if (r.first_early_ns > 0) { ++e.unknown; continue; }
        const auto ms = [](long long ns) { return static_cast<double>(ns) * 1e-6; };
        const double first = ms(r.first_token_ns - log.first_ns), last = ms(r.last_token_ns - log.last_ns);
        e.ttft.push_back(first);
        e.tpot.push_back(std::fabs(last - first) / std::max(l.tokens - 1, 1));
        e.e2e.push_back(last);
    }
    return e;
}
static int all_disturbed() {
    std::printf("Errors in ms, of the requests whose first token has a time of its own\n"
                "| the client | streams | requests | stamps of the kernel | read late by at most | ttft p99 | max | tpot p99 | max | e2e p99 | max | "
                "first token unknown | gaps unknown |\n"
                "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const std::size_t n : {1u, 8u, 1000u})
        for (const char* how : {"left alone", "a busy process on its core", "stopped for 200 ms, 5 times"}) {
            const load l{"closed loop", n, 20, 50, false};
            const bench::flood_server server({.interval = std::chrono::milliseconds(l.interval_ms)});
            const bool is_stopped = how[0] == 's', is_busy = how[0] == 'a';
            const pid_t client = ::getpid();
            std::fflush(stdout);
            const pid_t other = is_stopped || is_busy ? ::fork() : -1;
            if (other == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (volatile unsigned turns = 1; is_busy && turns != 0;) turns = turns | 1;
                for (int i = 0; i < 5; ++i) {
                    ::usleep(800000);
                    ::kill(client, SIGSTOP);
                    ::usleep(200000);
                    ::kill(client, SIGCONT);
                }
                ::_exit(0);
            }
            const disturbed_errors e = disturbed(server, l, 6);
            if (other > 0) {
                ::kill(other, SIGKILL);
                ::waitpid(other, nullptr, 0);
            }
            std::printf("| %s | %zu | %zu | %.0f %% | %.1f | %.3f | %.3f | %.4f | %.4f | %.3f | %.3f | %zu | %lld |\n", how, n, e.ttft.size(),
                        100 * e.stamped, e.read_max_ms, at(e.ttft, 0.99), at(e.ttft, 1), at(e.tpot, 0.99), at(e.tpot, 1), at(e.e2e, 0.99), at(e.e2e, 1),
                        e.unknown, e.unknown_gaps);
            std::fflush(stdout);
        }
    return 0;
}

int main(int argc, char** argv) {
    const bool is_quick = argc > 1 && std::string_view(argv[1]) == "--quick";
    const bool is_disturbed = argc > 1 && std::string_view(argv[1]) == "--disturbed";
    const double seconds = argc > 1 && !is_quick && !is_disturbed ? std::atof(argv[1]) : 4;
    bench::allow_many_files();
    bench::pin(0);
    std::cout.rdbuf(nullptr);
    if (is_quick) return quick();
    if (is_disturbed) return all_disturbed();
    std::vector<load> loads;
    for (const std::size_t n : {1u, 32u, 128u, 512u, 1000u}) loads.push_back({"closed loop", n, 20, 50, false});
    loads.push_back({"closed loop", 2000, 40, 25, false});
    for (const std::size_t n : {32u, 512u, 1000u}) loads.push_back({"Poisson", n, 20, 50, true});
    std::printf("Errors in ms: stamp of the client minus that of the server\n"
                "| load | streams | client | requests | first p50 | p99 | max | last p50 | p99 | max | request received p50 | p99 |\n"
                "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    int missed = 0;
    for (const load& l : loads) {
        const bench::flood_server server({.interval = std::chrono::milliseconds(l.interval_ms)});
        // The machine is taken away at times: three runs of each in turns, and the median of their p99.
        std::vector<double> raw_p99, our_p99;
        errors raw_all, our_all;
        const auto gather = [](errors& all, const errors& e, std::vector<double>& p99) {
            p99.push_back(std::max(at(e.first, 0.99), at(e.last, 0.99)));
            all.first.insert(all.first.end(), e.first.begin(), e.first.end());
            all.last.insert(all.last.end(), e.last.begin(), e.last.end());
            all.received.insert(all.received.end(), e.received.begin(), e.received.end());
        };
        for (int i = 0; i < 3; ++i) {
            gather(raw_all, raw(server, l, seconds / 3 + 1e-3 * l.interval_ms * l.tokens), raw_p99);
            gather(our_all, ours(server, l, seconds / 3 + 1e-3 * l.interval_ms * l.tokens), our_p99);
        }
        row(l, "raw recv", raw_all);
        row(l, "llmbench", our_all);
        const double limit = 1.5 * at(raw_p99, 0.5) + 0.2, value = at(our_p99, 0.5);
        std::printf("    median p99: %.3f ms, must be at most 1.5 times %.3f + 0.2 = %.3f ms: %s\n", value, at(raw_p99, 0.5), limit,
                    value <= limit ? "met" : "NOT MET");
        missed += value > limit;
    }
    return missed > 0;
}
