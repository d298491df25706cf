// the progress line
#pragma once

#include "core/base/text.hpp"

#include <algorithm>  // max
#include <cmath>  // isnan
#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The state of a running gate.
struct progress_facts {
    std::string stage{};                       // "repeat 2 of 2-5"
    std::string phase{};                       // "warming up"; "" while it measures
    double elapsed_s = 0;
    double least_s = 0, max_s = 0;            // of the whole gate; 0: not known
    long long planned = 0;                     // requests of this repeat; 0: not known
    long long sent = 0, done = 0, failed = 0;  // of this repeat
    double ttft = not_a_number, tpot = not_a_number;  // means of the answers so far
    std::size_t slos = 0;                      // objectives that the gate waits for
    std::size_t decided = 0;                   // of these
    std::vector<std::string> waits_for{};      // at the last analysis: "mean(tpot) <= 25 ms"
};

/// Returns one line of at most `width` columns (0: any); for that, parts are left out or shortened.
inline std::string progress_line(const progress_facts& f, std::size_t width, bool unicode) {
    const std::string stage = f.stage + (f.stage.empty() || f.phase.empty() ? "" : ", ") + f.phase;
    std::string time = printed("%.0f", f.elapsed_s);
    if (f.max_s > 0 && f.elapsed_s <= f.max_s)  // the plan has no time for a start
        time += f.least_s < f.max_s ? printed(" of %.0f-%.0f", f.least_s, f.max_s)
                                     : printed(" of %.0f", f.max_s);
    const std::string of = f.planned > 0 ? printed("/%lld", f.planned) : "";
    std::string counts, in_short, latency, decided, which;
    if (f.planned > 0 || f.sent > 0) {
        counts = printed("%lld%s sent, %lld done, %lld failed, %lld open", f.sent, of.c_str(),
                         f.done, f.failed, std::max(f.sent - f.done, 0ll));
        in_short = printed("%lld%s done", f.done, of.c_str()) +
                   (f.failed > 0 ? printed(", %lld failed", f.failed) : "");
    }
    if (!std::isnan(f.ttft)) latency = "ttft " + time_text(f.ttft);
    if (!std::isnan(f.ttft) && !std::isnan(f.tpot)) latency += ", tpot " + time_text(f.tpot);
    if (f.slos > 0) decided = printed("%zu of %zu decided", f.decided, f.slos);
    for (const std::string& w : f.waits_for) which += (which.empty() ? "waits for " : ", ") + w;

    const auto fitted = [&](const std::string& reported) {
        std::string line = "  " + stage.substr(0, width > 2 ? width - 2 : std::string::npos);
        int parts = 0;
        for (const std::string& part : {time + " s", reported, latency, decided, which}) {
            const std::string more = (unicode ? " \u00B7 " : " | ") + part;
            const bool fits = width == 0 || columns_of(line) + columns_of(more) <= width;
            if (part.empty() || !fits) continue;
            line += more;
            ++parts;
        }
        return std::pair(parts, line);
    };
    const auto [parts, line] = fitted(counts);
    const auto [parts_in_short, line_in_short] = fitted(in_short);
    const bool is_reported = line.find(counts) != std::string::npos;
    return is_reported && parts >= parts_in_short ? line : line_in_short;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
