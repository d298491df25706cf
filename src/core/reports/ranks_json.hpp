// programs that sent one load, in result.json
#pragma once

#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"

#include <cstddef>  // size_t
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double most_ranks = 100000;

/// Of a load that several programs sent; the start is in ns since the window began.
inline void write_ranks(json_writer& j, const repeat_facts& d) {
    if (d.ranks.empty()) return;
    j.key("ranks").open('[');
    for (const rank_part& r : d.ranks)
        j.open('{')
            .field("index", r.index)
            .field("count", r.count)
            .field("host", printable(r.host, 256))
            .field("start_ns", r.start_ns - d.window.from_ns())
            .field("off_s", r.off_s)
            .field("off_error_s", r.error_s)
            .field("clock_is_synchronised", r.synchronised)
            .field("server_clock_low_s", r.lead.low_s)
            .field("server_clock_high_s", r.lead.high_s)
            .field("cpu_share", r.cpu_share)
            .field("memory_bytes", r.memory_bytes)
            .field("lateness_p99", r.lateness_p99)
            .field("requests", r.requests)
            .field("failed", r.failed)
            .close();
    j.close();
}

/// Of a load that several programs sent.
inline std::vector<rank_part> read_ranks(const checked_object& repeat, long long window_from_ns) {
    std::vector<rank_part> all;
    for (const checked_object& told : repeat.each("ranks")) {
        rank_part r;
        r.index = told.whole("index", 0, most_ranks, 0);
        r.count = told.whole("count", 1, most_ranks, 1);
        r.host = printable(told.text("host"), 256);
        r.start_ns = window_from_ns + told.whole("start_ns", -latest_time_ns, latest_time_ns, 0ll);
        r.off_s = told.number("off_s", -longest_time_s, longest_time_s);
        r.error_s = told.seconds("off_error_s");
        r.synchronised = told.is_true("clock_is_synchronised");
        r.lead.low_s = told.number("server_clock_low_s", -most_count, most_count, -infinity);
        r.lead.high_s = told.number("server_clock_high_s", -most_count, most_count, infinity);
        r.cpu_share = told.number("cpu_share", 0, most_ranks);
        r.memory_bytes = told.number("memory_bytes", 0, most_count);
        r.lateness_p99 = told.seconds("lateness_p99");
        r.requests = told.whole("requests", 0, most_count, std::size_t{0});
        r.failed = told.whole("failed", 0, most_count, std::size_t{0});
        all.push_back(r);
    }
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
