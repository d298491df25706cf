// What the client can take, and what it costs: events/s and CPU time for an event and a request, one
// client thread against a server process on another core. It is the time of the whole process, whose
// records are written as a gate writes them. In the same run, on the same answers: the
// raw reader, and our client on events with an escape in a name.
//   client_capacity [SECONDS [SERVER [STREAMS]]]   of each measurement, default 3; only these rows
//   client_capacity --shapes [SECONDS [SHAPE]]   a flood of each shape of events, three turns, as multiples of plain ones
//   client_capacity --paced [SECONDS]      streams of 20 ms an event, one to a thousand, Poisson from 32 on
//   client_capacity --quick        the ratios that hold on any machine, in a few seconds; exits 1
//   client_capacity --memory [SECONDS]    of the client, for an event kept and for a stream in flight
#include "llmbench.hpp"
#include "core/base/text.hpp"

#include "flood_server.hpp"
#include "support/one_repeat.hpp"

#include <malloc.h>

#include <fstream>

using namespace llmbench;

struct figures {
    double seconds = 0, cpu = 0, requests = 0, events = 0;
    double cpu_us() const { return 1e6 * cpu / events; }
};

/// One thread's load, without the statistics of the run that would follow.
static detail::repeat_data repeat_on(const bench::flood_server& server, std::size_t streams, int tokens, double seconds,
                                     std::uint64_t max_gaps = 0, double* cpu_s = nullptr, const any_api& api = openai_chat,
                                     bool keeps_texts = false) {
    scenario s{
        .target = endpoint{.url = server.url(), .model = "flood", .api = api},
        .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(tokens)},
        .arrivals = closed_loop(static_cast<long long>(streams)),
        .warmup = 0,
        .duration = time_span::from_seconds(seconds),
        .repeats = 1,
    };
    if (keeps_texts) {
        s.workload = prompts({"Hello"});
        s.options.max_tokens = tokens;
        s.options.temperature = 0;
    }
    return bench::one_repeat(s, max_gaps, cpu_s, keeps_texts);
}
static figures ours(const bench::flood_server& server, std::size_t streams, int tokens, double seconds,
                    const any_api& api = openai_chat, bool keeps_texts = false) {
    figures f;
    const detail::repeat_data d = repeat_on(server, streams, tokens, seconds, 0, &f.cpu, api, keeps_texts);
    long long first = 0, last = 0;
    for (const record& r : d.records) {
        if (r.status != request_status::ok) throw std::runtime_error("a request failed: " + detail::str(r.error));
        if (first == 0 || r.dispatched_ns < first) first = r.dispatched_ns;
        last = std::max(last, r.end_ns);
        ++f.requests;
        f.events += r.events;
    }
    f.seconds = static_cast<double>(last - first) * 1e-9;
    return f;
}
static figures raw(const bench::flood_server& server, std::size_t streams, int tokens, double seconds) {
    const bench::raw_figures r = bench::raw_reader(server, tokens).closed(streams, seconds);
    return {r.seconds, r.cpu, r.requests, r.events};
}
struct manner {
    const char* name;
    bench::flood_options server;
    int tokens;
    std::vector<std::size_t> streams;
};

static void row(const manner& s, const char* client, std::size_t streams, const figures& f, const figures& floor) {
    std::printf("| %-22s | %4zu | %-9s | %9.0f | %3.0f %% | %9.0f | %7.3f | %8.1f | %6.2f |\n", s.name, streams, client, f.events / f.seconds,
                100 * f.cpu / f.seconds, f.events / f.cpu, f.cpu_us(), 1e6 * f.cpu / f.requests, f.cpu_us() / floor.cpu_us());
    std::fflush(stdout);
}
static void judged(const char* what, double value, double must, double aim, bool at_least) {
    const auto meets = [&](double limit) { return at_least ? value >= limit : value <= limit; };
    std::printf("%-64s %10.4g  must %s %g: %s, aim %g: %s\n", what, value, at_least ? ">=" : "<=", must, meets(must) ? "met" : "NOT MET", aim,
                meets(aim) ? "met" : "not met");
}

/// Events that are read in full now and then, or in part, beside plain ones, in turns, the best of three: ratios of CPU times
/// of one process on one core depend little on what else the machine does.
static int quick() {
    using enum bench::event_shape;
    constexpr bench::event_shape all[] = {plain, odd, reasoning, running_usage};
    double us[4] = {1e9, 1e9, 1e9, 1e9}, raw_us = 1e9;
    for (int i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 4; ++k) {
            const bench::flood_server server({.shape = all[k]});
            us[k] = std::min(us[k], ours(server, 16, 2000, 0.3).cpu_us());
            if (k == 0) raw_us = std::min(raw_us, raw(server, 16, 2000, 0.3).cpu_us());
        }
    std::printf("CPU us/event: plain %.3f, escape in a name %.3f, reasoning %.3f, running usage %.3f, raw reader %.3f\n", us[0], us[1], us[2],
                us[3], raw_us);
    const double worst = std::max({us[1], us[2], us[3]}) / us[0];
    if (worst > 3) std::printf("an event costs %.2f times as much as a plain one\n", worst);
    return worst > 3 ? 1 : 0;
}

/// An API of a user's own, on plain chat answers.
static const api own{.name = "own", .path = "/v1/chat/completions",
                     .write = [](api_request& r) { r.text("model", r.model()).number("max_tokens", static_cast<double>(r.max_tokens())); },
                     .read = [](api_event& e) {
                         e.content(e.text("choices.0.delta.content"));
                         e.finish(e.text("choices.0.finish_reason"));
                         e.output_tokens(e.number("usage.completion_tokens"));
                     },
                     .tells_usage = true};

/// A flood of each shape of events on 64 streams. The raw reader and plain events have their turn beside each; medians of three.
static int shapes(double seconds, std::string_view only) {
    using enum bench::event_shape;
    const struct {
        const char* name;
        bench::event_shape shape;
        any_api api = openai_chat;
        bool keeps_texts = false;
    } all[] = {{"plain, 1 stream", plain},
               {"plain", plain},
               {"plain, 1000 streams", plain},
               {"escapes in every second text", escapes},
               {"reasoning in both fields", reasoning},
               {"running usage", running_usage},
               {"kept text", plain, openai_chat, true},
               {"Responses", responses, openai_responses},
               {"Anthropic", anthropic, llmbench::anthropic},
               {"Ollama", ollama, llmbench::ollama},
               {"TGI", tgi, llmbench::tgi},
               {"llama.cpp", llama_cpp, llmbench::llama_cpp},
               {"own API, plain events", plain, own},
               {"escape in a name", odd}};
    std::printf("| flood | bytes/event | raw recv, us | plain, us (x raw) | us | x plain |\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (const auto& s : all) {
        if (std::string_view(s.name).find(only) == std::string_view::npos) continue;
        const std::string_view name = s.name;
        const std::size_t streams = name.ends_with("1 stream") ? 1 : name.ends_with("1000 streams") ? 1000 : 64;
        const bench::flood_server server({.shape = s.shape}), usual{{}};
        double us[4][3] = {};
        for (int turn = 0; turn < 3; ++turn) {
            us[0][turn] = raw(server, streams, 2000, seconds).cpu_us();
            us[1][turn] = raw(usual, streams, 2000, seconds).cpu_us();
            us[2][turn] = ours(usual, streams, 2000, seconds).cpu_us();
            us[3][turn] = ours(server, streams, 2000, seconds, s.api, s.keeps_texts).cpu_us();
        }
        for (auto& turns : us) std::sort(turns, turns + 3);
        const double bytes = static_cast<double>(bench::stream_answer(2000, s.shape).bytes.size()) / 2000;
        std::printf("| %-28s | %3.0f | %.3f | %.3f (%.2f) | %.3f | %.2f |\n", s.name, bytes, us[0][1], us[2][1], us[2][1] / us[1][1], us[3][1],
                    us[3][1] / us[2][1]);
        std::fflush(stdout);
    }
    return 0;
}

/// Streams of an event each 20 ms, a hundred events each: one after the other, or as many as arrive at random, on average.
static int paced(double seconds) {
    std::printf("| paced streams | raw recv, us | llmbench, us | x raw |\n| ---: | ---: | ---: | ---: |\n");
    for (const int streams : {1, 32, 128, 512, 1000}) {
        const bench::flood_server server({.interval = std::chrono::milliseconds(20)});
        const double rate = streams / 2.0;
        double us[2][3] = {};
        for (int turn = 0; turn < 3; ++turn) {
            std::vector<long long> at;
            std::mt19937_64 random(static_cast<std::uint64_t>(turn + 1));
            std::exponential_distribution<double> gap(rate);
            for (double t = gap(random); t < seconds; t += gap(random)) at.push_back(static_cast<long long>(1e9 * t));
            bench::raw_reader reader(server, 100);
            const bench::raw_figures r = streams == 1 ? reader.closed(1, seconds) : reader.open(at);
            us[0][turn] = 1e6 * r.cpu / r.events;
            scenario s{.target = endpoint{.url = server.url()},
                             .workload = synthetic{.prompt_tokens = fixed(8), .output_tokens = fixed(100)},
                             .arrivals = closed_loop(1),
                             .warmup = 0,
                             .duration = time_span::from_seconds(seconds),
                             .repeats = 1};
            if (streams > 1) s.arrivals = poisson(request_rate(rate));
            double cpu = 0, events = 0;
            for (const record& x : bench::one_repeat(s, 0, &cpu).records) events += x.events;
            us[1][turn] = 1e6 * cpu / events;
        }
        for (auto& turns : us) std::sort(turns, turns + 3);
        std::printf("| %4d | %.2f | %.2f | %.2f |\n", streams, us[0][1], us[1][1], us[1][1] / us[0][1]);
        std::fflush(stdout);
    }
    return 0;
}

/// Bytes of a field of /proc/self/status: VmRSS, VmHWM.
static double resident(const char* field) {
    std::ifstream in("/proc/self/status");
    for (std::string word; in >> word;)
        if (double kib = 0; word == std::string(field) + ":" && in >> kib) return 1024 * kib;
    return 0;
}
/// What a load adds to the resident memory, at its peak and once it is over and all is kept.
struct footprint {
    double peak = 0, kept = 0, events = 0, requests = 0;
};
static footprint footprint_of(const bench::flood_server& server, std::size_t streams, int tokens, double seconds,
                              std::uint64_t max_gaps = 0) {
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM starts anew
    const double before = resident("VmRSS");
    const detail::repeat_data d = repeat_on(server, streams, tokens, seconds, max_gaps);
    footprint f{resident("VmHWM") - before, resident("VmRSS") - before, static_cast<double>(d.content_events), static_cast<double>(d.records.size())};
    std::printf("| %4zu | %6d | %9.0f | %11.0f | %8.1f | %8.1f | %6.2f | %9.1f |\n", streams, tokens, f.requests, f.events, f.peak / 1048576, f.kept / 1048576,
                f.peak / f.events, f.peak / 1024 / static_cast<double>(streams));
    std::fflush(stdout);
    return f;
}
static int memory(double seconds) {
    std::printf("| streams | tokens | requests | events | peak MiB | kept MiB | peak bytes/event | peak KiB/stream |\n"
                "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    const bench::flood_server paced{{.interval = std::chrono::milliseconds(20)}}, flood{{}};
    // Every stream is in flight once, and nothing else: what it takes beside its events.
    const auto per_stream = [](const footprint& f) { return (f.peak - 4 * f.events) / 1024 / 1000; };
    const double paced_stream = per_stream(footprint_of(paced, 1000, 150, 0.5));
    const double flood_stream = per_stream(footprint_of(flood, 1000, 2000, seconds));
    // What is kept of an event is what a longer run adds.
    const footprint some = footprint_of(flood, 64, 2000, seconds), more = footprint_of(flood, 64, 2000, 3 * seconds);
    const double per_event = (more.kept - some.kept) / (more.events - some.events);
    const footprint counted = footprint_of(flood, 64, 2000, 3 * seconds, 1 << 20);
    const footprint hour = footprint_of(flood, 64, 128, 20 * seconds);
    std::printf("\n");
    judged("KiB for a paced stream in flight, beside 4 bytes an event", paced_stream, 16, 8, false);
    judged("KiB for a flooding stream of 2000 events in flight, beside them", flood_stream, 16, 8, false);
    judged("bytes for an event kept, its share of a record included", per_event, 4.4, 4.2, false);
    judged("MiB where only a million gaps may be kept", counted.peak / 1048576, 32, 16, false);
    judged("MiB for a run beyond all gaps that are kept, 128 events a request", hour.peak / 1048576, 1024, 768, false);
    return paced_stream <= 16 && flood_stream <= 16 && per_event <= 4.4 && counted.peak < 32e6 && hour.peak < 1e9 ? 0 : 1;
}

int main(int argc, char** argv) {
    const bool is_quick = argc > 1 && std::string_view(argv[1]) == "--quick";
    const bool is_memory = argc > 1 && std::string_view(argv[1]) == "--memory";
    const bool is_shapes = argc > 1 && std::string_view(argv[1]) == "--shapes";
    const bool is_paced = argc > 1 && std::string_view(argv[1]) == "--paced";
    const bool is_named = is_quick || is_memory || is_shapes || is_paced;
    const double seconds = argc > 1 && !is_named ? std::atof(argv[1]) : argc > 2 ? std::atof(argv[2]) : 3;
    if (seconds <= 0) {
        std::fprintf(stderr, "client_capacity: \"%s\" is no number of seconds above 0\n", argv[1]);
        return 2;
    }
    bench::allow_many_files();
    bench::pin(0);
    if (is_quick) return quick();
    if (is_memory) return memory(seconds);
    if (is_shapes) return shapes(seconds, argc > 3 ? argv[3] : "");
    if (is_paced) return paced(seconds);
    const std::string_view only = argc > 2 ? argv[2] : "";
    const std::size_t only_streams = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
    const std::vector<manner> settings = {
        {"flood, all it takes", {}, 2000, {1, 16, 64, 1000}},
        {"flood, 64 a write", {.events_per_write = 64}, 2000, {1, 64, 1000}},
        {"flood, 1 a write", {.events_per_write = 1}, 2000, {1, 64, 1000}},
        {"answers of one event", {}, 1, {1, 64}},
        {"paced, 20 ms", {.interval = std::chrono::milliseconds(20)}, 100, {1, 64, 128, 1000}},
    };
    std::printf("| server | streams | client | events/s | CPU | events/CPU s | CPU us/event | us/request | x raw |\n"
                "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    double flood_rate = 0, flood_raw = 0, paced_raw = 0;
    for (const manner& s : settings) {
        if (std::string_view(s.name).find(only) == std::string_view::npos) continue;
        const bench::flood_server server(s.server);
        bench::flood_options odd_options = s.server;
        odd_options.shape = bench::event_shape::odd;
        const bench::flood_server odd(odd_options);
        for (const std::size_t n : s.streams) {
            if (only_streams != 0 && n != only_streams) continue;
            const figures r = raw(server, n, s.tokens, seconds);
            const figures o = ours(server, n, s.tokens, seconds);
            const figures again = raw(server, n, s.tokens, seconds);  // before and after ours
            const figures floor = {r.seconds + again.seconds, r.cpu + again.cpu, r.requests + again.requests, r.events + again.events};
            row(s, "raw recv", n, floor, floor);
            row(s, "llmbench", n, o, floor);
            row(s, "  escapes", n, ours(odd, n, s.tokens, seconds), floor);
            if (&s == &settings[0] && n == 64) {
                flood_rate = o.events / o.cpu;
                flood_raw = o.cpu_us() / floor.cpu_us();
            }
            if (s.server.interval.count() > 0 && n == 1000) paced_raw = o.cpu_us() / floor.cpu_us();
        }
    }
    if (argc > 2) return 0;
    std::printf("\n");
    judged("flood, 64 streams: events a second of CPU", flood_rate, 1.5e6, 1.5e6, true);
    judged("flood, 64 streams: CPU of the raw reader, times", flood_raw, 4, 2, false);
    judged("paced at 20 ms, 1000 streams: CPU of the raw reader, times", paced_raw, 1.3, 1.1, false);
}
