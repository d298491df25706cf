// what X-Request-Id says, and records.jsonl
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// All of an id but the request's place in its trace, which `request_id` adds. Ids have the form of
/// a UUID, as some servers take no other: of version 8, whose digits are its maker's to choose (RFC
/// 9562, section 5.8). After eight digits that are always the same come the gate's number, `8c` or
/// `8b` for candidate and baseline, the repeat, and the place as a decimal number.
inline std::string id_prefix(int gate, run_arm arm, int repeat) {
    return printed("11bbec40-%04d-8%c%02d-8000-", gate % 10000,
                   arm == run_arm::baseline ? 'b' : 'c', repeat % 100);
}
inline std::string request_id(const std::string& prefix, std::size_t place) {
    return prefix + printed("%012zu", place);
}
/// The place that an id ends with.
inline std::optional<std::size_t> place_of(std::string_view id) {
    return parsed_number<std::size_t>(id.substr(id.rfind('-') + 1));
}

/// Where a header's value has the id of a line of a session.
inline constexpr const char* session_placeholder = "{session}";
/// Of what is asked before a load.
inline std::string id_of_check() { return request_id(id_prefix(0, run_arm::candidate, 0), 0); }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
