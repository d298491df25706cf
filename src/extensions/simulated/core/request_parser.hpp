// requests, as the simulated server reads them
#pragma once

#include "core/base/text.hpp"
#include "core/wire/http.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Only for requests of ours and of clients like curl.
class request_parser {
public:
    std::string method{}, path{}, body{};
    std::vector<header_field> fields{};
    bool keep_alive = true;

    std::string_view header(std::string_view name) const {
        for (const header_field& f : fields)
            if (same_ignoring_case(f.name, name)) return f.value;
        return {};
    }
    /// Returns true for a complete request; false with `broken()` for an invalid one.
    bool feed(std::string_view bytes) {
        raw_.append(bytes);
        if (!head_done_ && !read_head()) return false;
        if (raw_.size() < length_) return false;
        body = raw_.substr(0, length_);
        raw_.erase(0, length_);
        return true;
    }
    bool broken() const { return broken_; }
    /// Prepares for the next request on the connection; early bytes are kept.
    void reset() {
        std::string rest = std::move(raw_);
        *this = request_parser();
        raw_ = std::move(rest);
    }

private:
    bool read_head() {
        const std::size_t end = raw_.find("\r\n\r\n");
        if (end == std::string::npos) {
            broken_ = raw_.size() > 64 * 1024;
            return false;
        }
        std::string_view head = std::string_view(raw_).substr(0, end);
        const std::size_t first = std::min(head.find("\r\n"), head.size());
        const std::string_view line = head.substr(0, first);
        const std::size_t a = line.find(' '), b = line.rfind(' ');
        if (a == std::string_view::npos || a == b || line.substr(b + 1, 7) != "HTTP/1.")
            return !(broken_ = true);
        method = line.substr(0, a);
        path = line.substr(a + 1, b - a - 1);
        keep_alive = line.back() == '1';
        head.remove_prefix(std::min(first + 2, head.size()));
        while (!head.empty()) {
            const std::size_t eol = std::min(head.find("\r\n"), head.size());
            const std::size_t colon = head.substr(0, eol).find(':');
            if (colon == std::string_view::npos) return !(broken_ = true);
            fields.push_back({std::string(head.substr(0, colon)),
                              std::string(trimmed(head.substr(colon + 1, eol - colon - 1)))});
            head.remove_prefix(std::min(eol + 2, head.size()));
        }
        for (const header_field& f : fields) {
            if (!same_ignoring_case(f.name, "content-length")) continue;
            const auto length = parsed_number<std::size_t>(f.value);
            if (!length) return !(broken_ = true);
            length_ = *length;
        }
        if (length_ > (64u << 20) || !header("transfer-encoding").empty()) return !(broken_ = true);
        if (lists(header("connection"), "close")) keep_alive = false;
        raw_.erase(0, end + 4);
        return head_done_ = true;
    }
    std::string raw_{};
    std::size_t length_ = 0;
    bool head_done_ = false;
    bool broken_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
