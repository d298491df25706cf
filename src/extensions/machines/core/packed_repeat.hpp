// a repeat as bytes, for another program of the same run
#pragma once

#include "api/result.hpp"
#include "core/base/field_json.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/measured/request_log.hpp"
#include "core/stored/stored.hpp"
#include "core/stored/record_json.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// As in result.json, records.jsonl and events.bin: facts on the first line, a line for each
/// request, an empty line, and all gaps in that order. Every gap must be listed.
inline std::string packed(const repeat_data& d) {
    json_writer facts(true);
    facts.open('{');
    write_fields(facts, static_cast<const repeat_facts&>(d), cross_check(),
                 std::vector<named_number>());
    std::string bytes = facts.close().text() + "\n";
    for (const record& r : d.records) bytes += record_json(r, "");
    bytes += '\n';
    for (std::size_t i = 0; i < d.records.size(); ++i)
        for (std::size_t k = 0; k < gap_count(d.records[i]); ++k) {
            const std::uint32_t gap = d.gaps[d.gap_offsets[i] + k];
            for (int b = 0; b < 4; ++b) bytes += static_cast<char>(gap >> (8 * b));
        }
    return bytes;
}

/// Throws std::runtime_error for invalid bytes, std::invalid_argument for an invalid number.
inline repeat_data unpacked(std::string_view bytes, run_arm variant) {
    const auto line = [&] {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) throw std::runtime_error("a part of a repeat is cut");
        const std::string_view found = bytes.substr(0, end);
        bytes.remove_prefix(end + 1);
        return found;
    };
    const std::string facts(line());
    picojson::value described;
    if (!parse_json(facts, described)) throw std::runtime_error("a part of a repeat has no facts");
    const checked_object part(described, "a part of a repeat", "");
    if (!part.has("window_from_ns") || !part.has("window_to_ns"))
        throw std::runtime_error("a part of a repeat has no window");
    document_digits digits(facts);
    repeat_data d = read_repeat(part, variant, digits, 0).what;
    std::string gate;
    std::vector<record> records;
    for (std::string_view next = line(); !next.empty(); next = line())
        records.push_back(read_record(std::string(next), gate));
    request_log log;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const std::size_t count = gap_count(records[i]);
        if (bytes.size() < 4 * count) throw std::runtime_error("a part of a repeat is cut");
        const gap_list gaps = gaps_in(bytes.substr(0, 4 * count));
        bytes.remove_prefix(4 * count);
        log.add(index_of(records[i], i), std::move(records[i]), gaps);
    }
    log.move_into(d, false);
    return d;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
