// programs that sent one load, in result.json
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max
#include <string>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

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
            .field("cpu_share", r.cpu_share)
            .field("memory_bytes", r.memory_bytes)
            .field("lateness_p99", r.lateness_p99)
            .field("requests", r.requests)
            .field("failed", r.failed)
            .close();
    j.close();
}

/// Of a load that several programs sent.
inline std::vector<rank_part> read_ranks(const picojson::value& v, long long window_from_ns) {
    std::vector<rank_part> all;
    for (const picojson::value& told : array_member(v, "ranks")) {
        rank_part r;
        r.index = count_member(told, "index");
        r.count = count_member(told, "count");
        r.host = printable(string_member(told, "host"), 256);
        r.start_ns = window_from_ns + static_cast<long long>(number_member(told, "start_ns"));
        r.off_s = number_member(told, "off_s");
        r.error_s = number_member(told, "off_error_s");
        r.synchronised = true_member(told, "clock_is_synchronised");
        r.cpu_share = number_member(told, "cpu_share");
        r.memory_bytes = number_member(told, "memory_bytes");
        r.lateness_p99 = number_member(told, "lateness_p99");
        r.requests = static_cast<std::size_t>(std::max(0, count_member(told, "requests")));
        r.failed = static_cast<std::size_t>(std::max(0, count_member(told, "failed")));
        all.push_back(r);
    }
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
