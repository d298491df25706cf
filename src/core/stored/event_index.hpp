// the index of events.bin in result.json
#pragma once

#include "core/base/fields.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The offset of each record's gaps in events.bin, its length, and the hash of so many bytes.
struct event_index {
    std::vector<long long> offsets{};
    std::string hash{};
    long long bytes = 0;
};
inline void fields_of(field_visitor& v, event_index& i) {
    std::string file = "events.bin", unit = "microseconds, uint32 little-endian";
    v.text({"file"}, file);
    v.text({"unit"}, unit);
    v.whole({"bytes", "of the file that are of this result"}, i.bytes);
    v.text({"fnv1a_64", "of those"}, i.hash);
    v.times_after({"offsets", "of each line of records.jsonl into the file, bytes"}, i.offsets, 0,
                  {1, 0});
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
