// request ids in X-Request-Id and records.jsonl
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

/// An id without the request's index, which `request_id` appends. It has the form of a UUID, since
/// some servers require one, of version 8, whose digits are free (RFC 9562, 5.8). After eight fixed
/// digits come the gate's number, `8c` for candidate or `8b` for baseline, the repeat, and the
/// index in decimal.
inline std::string id_prefix(int gate, run_arm variant, int repeat) {
    return printed("11bbec40-%04d-8%c%02d-8000-", gate % 10000,
                   variant == run_arm::baseline ? 'b' : 'c', repeat % 100);
}
inline std::string request_id(const std::string& prefix, std::size_t place) {
    return prefix + printed("%012zu", place);
}
/// Returns the request index at the end of an id.
inline std::optional<std::size_t> place_of(std::string_view id) {
    return parsed_number<std::size_t>(id.substr(id.rfind('-') + 1));
}

/// Replaced in headers by the id of a session.
inline constexpr const char* session_placeholder = "{session}";
/// For requests before a load.
inline std::string id_of_check() { return request_id(id_prefix(0, run_arm::candidate, 0), 0); }

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
