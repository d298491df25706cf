// How long it takes to read a history: 1,000 runs of 20 gates, of which a gate reads its own, and
// llmbench history all. Exits with 1 where a gate takes over 0.3 s.
#include "core/base/text.hpp"
#include "extensions/history/core/lines.hpp"
#include "extensions/history/folder.hpp"
#include "effects/system/files.hpp"
#include "support/scratch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

using namespace llmbench::detail;

namespace {

std::string run(int number) {
    const std::string at = utc_text(1700000000 + 86400 * number);
    std::string lines;
    for (int g = 0; g < 20; ++g) {
        history_run r{.id = printed("%s-%d.%d", at.c_str(), number, g), .at = at,
                      .gate = printed("gate %d", g), .run_series = printed("%016d", g),
                      .commit = printed("%012d", number),
                      .watched = {{"card", "9c2e"}, {"driver", "570.86"}, {"server", "vLLM 0.33"}},
                      .outcome = "passed"};
        for (const char* name : {"mean(tpot)", "p50(ttft)", "p90(ttft)", "p99(ttft)", "p50(e2e)",
                                 "output_throughput"})
            r.values.push_back({name, {0.0123456, 0.0234567, 0.0345678}});
        lines += history_line(r);
    }
    return lines;
}
template <class Read>
double seconds_of(const Read& read) {
    double least = 1e9;
    for (int i = 0; i < 5; ++i) {
        const auto began = std::chrono::steady_clock::now();
        read();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        least = std::min(least, took.count());
    }
    return least;
}

}  // namespace

int main() {
    const files::scratch dir;
    for (int i = 0; i < 1000; ++i) write_file(dir.file(printed("%04d.jsonl", i)), run(i));
    std::size_t runs = 0, lines = 0;
    const double one_s = seconds_of([&] {
        const history_store all = history_of_gate(dir.file(""), "gate 7", {});
        runs = series_of(all.lines, runs_of(all.lines, "gate 7", printed("%016d", 7)), "mean(tpot)")
                   .runs.size();
    });
    const double all_s = seconds_of([&] {
        lines = read_history(dir.file(""), "2099-01-01T00:00:00Z").lines.runs.size();
    });
    std::printf("%zu runs of one gate in %.3f s, all %zu lines in %.3f s\n", runs, one_s, lines,
                all_s);
    return runs == 1000 && lines == 20000 && one_s <= 0.3 ? 0 : 1;
}
