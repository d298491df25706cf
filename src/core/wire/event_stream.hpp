// server-sent events
#pragma once

#include <algorithm>  // min, search
#include <cstring>  // memchr, memcmp
#include <string>
#include <string_view>
#include <utility>  // exchange

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether an event of OpenAI's responses is about a tool, whose failure the model answers:
/// "response.mcp_call.failed", "response.mcp_list_tools.failed".
inline bool is_of_tool(std::string_view type) {
    return type.starts_with("response.") && (type.find("_call") != std::string_view::npos ||
                                             type.find("_tool") != std::string_view::npos);
}
/// Whether the name of an event or field means an error: "error", "response.failed".
inline bool speaks_of_error(std::string_view name) {
    if (name.empty() || is_of_tool(name)) return false;
    constexpr std::string_view words[] = {"error", "exception", "fail"};
    for (const std::string_view word : words)
        if (std::search(name.begin(), name.end(), word.begin(), word.end(), [](char a, char b) {
                return (a >= 'A' && a <= 'Z' ? a + 32 : +a) == b;
            }) != name.end())
            return true;
    return false;
}

/// Event-stream parser without I/O (WHATWG HTML, "server-sent events"): a blank line ends an event,
/// and the end of the body discards an open one. Errors in other forms count, too: an event without
/// data, or a line that is not a field (llama.cpp's "error: {...}", a gateway's "Internal Server
/// Error").
class event_stream_parser {
public:
    static constexpr std::size_t max_event = 16 * 1024 * 1024;

    /// Calls `on_event(type, data)` for every event with data. False once the stream is broken.
    /// `take_next` is given the bytes from the start of an event on, and may take whole ones off.
    template <class OnEvent, class TakeNext = bool (*)(std::string_view&)>
    bool feed(std::string_view bytes, OnEvent&& on_event,
              TakeNext&& take_next = [](std::string_view&) { return false; }) {
        // The next LF is kept, so that text with many CRs is not searched once per line.
        const char* lf = bytes.data();
        while (!bytes.empty() && !broken_) {
            if (after_cr_) {
                after_cr_ = false;
                if (bytes.front() == '\n') { bytes.remove_prefix(1); continue; }
            }
            if (is_between_events() && take_next(bytes)) continue;
            const char* const last = bytes.data() + bytes.size();
            if (lf != last && (lf < bytes.data() || *lf != '\n'))
                lf = found('\n', bytes.data(), last);
            const char* const eol = found('\r', bytes.data(), lf);
            if (eol == last) {
                line_.append(bytes);
                broken_ = line_.size() + data_.size() > max_event;
                return !broken_;
            }
            const auto end = static_cast<std::size_t>(eol - bytes.data());
            if (line_.size() + end + data_.size() > max_event) return !(broken_ = true);
            // The usual event is one line and a blank one in the same read, and is not copied.
            const std::size_t usual = line_.empty() && !has_data_ ? usual_end(bytes, end) : 0;
            if (usual > 0) {
                on_event(std::string_view(type_), value_of(bytes.substr(4, end - 4)));
                type_.clear();
                data_.clear();  // a comment of an event of errors
                first_line_ = false;
                bytes.remove_prefix(usual);
                continue;
            }
            after_cr_ = *eol == '\r';
            if (line_.empty()) {
                on_line(bytes.substr(0, end), on_event);
            } else {
                line_.append(bytes.substr(0, end));
                on_line(line_, on_event);
                line_.clear();
            }
            bytes.remove_prefix(end + 1);
        }
        return !broken_;
    }

    /// What comes begins an event, or a line that says nothing of it.
    bool is_between_events() const {
        return line_.empty() && !has_data_ && type_.empty() && !after_cr_ && !first_line_;
    }

private:
    static const char* found(char c, const char* from, const char* to) {
        const void* at =
            from == to ? nullptr : std::memchr(from, c, static_cast<std::size_t>(to - from));
        return at ? static_cast<const char*>(at) : to;
    }
    /// Returns the bytes of "data: ..." up to `end`, its line end and that of a blank line, else 0.
    static std::size_t usual_end(std::string_view bytes, std::size_t end) {
        if (end < 5 || std::memcmp(bytes.data(), "data:", 5) != 0) return 0;
        const std::size_t n = bytes[end] == '\r' ? 4 : 2;
        const bool blank = bytes.size() - end >= n &&
                           std::memcmp(bytes.data() + end, n == 4 ? "\r\n\r\n" : "\n\n", n) == 0;
        return blank ? end + n : 0;
    }
    /// Returns the value behind a field's colon without its one leading space.
    static std::string_view value_of(std::string_view rest) {
        if (!rest.empty()) rest.remove_prefix(1);
        if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
        return rest;
    }
    template <class OnEvent>
    void on_line(std::string_view line, OnEvent&& on_event) {
        if (first_line_) {
            first_line_ = false;
            if (line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
        }
        if (line.empty()) {
            if (has_data_ || speaks_of_error(type_))
                on_event(std::string_view(type_), std::string_view(data_));
            has_data_ = false;
            data_.clear();
            type_.clear();
            return;
        }
        const std::size_t colon = line.find(':');
        if (colon == 0) {  // usually a keep-alive
            if (!has_data_) data_ = speaks_of_error(type_) ? value_of(line) : std::string_view();
            return;
        }
        const std::string_view field = line.substr(0, colon);
        const std::string_view value = value_of(line.substr(std::min(colon, line.size())));
        if (field == "data") {
            if (std::exchange(has_data_, true)) (data_ += '\n') += value;
            else data_ = value;
        } else if (field == "event") {
            type_ = value;
        } else if (speaks_of_error(field)) {
            on_event(std::string_view("error"), field == "error" ? value : line);
        }
    }
    std::string line_{}, data_{}, type_{};
    bool has_data_ = false;
    bool after_cr_ = false;
    bool first_line_ = true;
    bool broken_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
