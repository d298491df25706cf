// files of other tools, read value by value
// At any time one value is held, and the values that were kept. The bytes come through a function,
// so that this section does no I/O.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <cstring>  // memcmp
#include <functional>  // where bytes come from
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Bytes in order, with their line numbers. Skips a byte order mark.
class byte_stream {
public:
    /// Fills the room with the next bytes and returns how many; 0 at the end.
    using fill_function = std::function<std::size_t(char*, std::size_t)>;

    byte_stream(fill_function fill, std::string name)
        : fill_(std::move(fill)), name_(std::move(name)), room_(65536) {
        for (std::size_t n = 1; n > 0 && end_ < start_bytes; end_ += n)
            n = fill_(room_.data() + end_, room_.size() - end_);
        start_.assign(room_.data(), std::min(end_, start_bytes));
        if (const std::string why = why_no_text(start_); !why.empty()) refuse(1, why);
        if (end_ >= 3 && std::memcmp(room_.data(), "\xEF\xBB\xBF", 3) == 0) at_ = 3;
    }
    /// Returns -1 at the end.
    int peek() {
        if (at_ == end_ && !refill()) return -1;
        return static_cast<unsigned char>(room_[at_]);
    }
    int get() {
        const int c = peek();
        if (c < 0) return c;
        ++at_;
        line_ += c == '\n';
        return c;
    }
    void skip_space() {
        for (int c = peek(); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = peek()) get();
    }
    long long line() const { return line_; }
    const std::string& name() const { return name_; }
    /// The text of the last JSON value that was read.
    const std::string& value_text() const { return value_text_; }
    void keep_value_text(std::string text) { value_text_ = std::move(text); }
    /// Returns the first bytes, however far it was read.
    const std::string& start() const { return start_; }
    [[noreturn]] void refuse(long long line, const std::string& why) const {
        throw std::invalid_argument(printed("%s:%lld: ", name_.c_str(), line) + why);
    }

private:
    bool refill() {
        at_ = 0;
        end_ = fill_(room_.data(), room_.size());
        return end_ > 0;
    }
    static constexpr std::size_t start_bytes = 4096;
    fill_function fill_;
    std::string name_, start_{}, value_text_{};
    vector<char> room_;
    std::size_t at_ = 0, end_ = 0;
    long long line_ = 1;
};

inline constexpr std::size_t max_value_bytes = 64 * 1024 * 1024;

/// Reads the next line without its end; false at the end of the file.
inline bool read_line(byte_stream& in, std::string& out) {
    out.clear();
    if (in.peek() < 0) return false;
    const long long line = in.line();
    for (int c = in.get(); c >= 0 && c != '\n'; c = in.get()) {
        if (out.size() == max_value_bytes) in.refuse(line, "the line is over 64 MiB");
        out += static_cast<char>(c);
    }
    if (!out.empty() && out.back() == '\r') out.pop_back();
    return true;
}

/// Returns the text of the next JSON value, up to its last bracket; the parser checks the rest.
inline std::string read_json_text(byte_stream& in) {
    in.skip_space();
    const long long line = in.line();
    std::string out;
    int depth = 0;
    bool quoted = false;
    for (int c = in.peek(); c >= 0; c = in.peek()) {
        const bool is_space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
        if (!quoted && depth == 0 && (c == ',' || c == ']' || c == '}' || is_space)) return out;
        if (out.size() >= max_value_bytes) in.refuse(line, "the value is over 64 MiB");
        out += static_cast<char>(in.get());
        if (quoted) {
            if (c == '\\' && in.peek() >= 0) out += static_cast<char>(in.get());
            else if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if (c == '}' || c == ']') {
            --depth;
        }
        if (!quoted && depth == 0 && (c == '"' || c == '}' || c == ']')) return out;
    }
    if (quoted || depth > 0) in.refuse(line, "the file ends inside a value that begins here");
    return out;
}

inline picojson::value parsed_json(const byte_stream& in, const std::string& text, long long line) {
    picojson::value v;
    std::string why;
    if (!parse_json(text, v, &why))
        in.refuse(line, text.empty()  ? "a JSON value is expected here"
                        : why.empty() ? "it is not JSON: " + printable(text, 60)
                                      : why);
    return v;
}
/// Returns the next value; a refusal names the line on which it begins.
inline picojson::value next_json(byte_stream& in) {
    in.skip_space();
    const long long line = in.line();
    in.keep_value_text(read_json_text(in));
    return parsed_json(in, in.value_text(), line);
}

inline void expect(byte_stream& in, char wanted) {
    in.skip_space();
    if (in.peek() != wanted) in.refuse(in.line(), printed("'%c' is expected here", wanted));
    in.get();
}
/// Calls `read()` at the start of each element of the list that begins here.
template <class Read>
void each_list_place(byte_stream& in, Read&& read) {
    expect(in, '[');
    in.skip_space();
    if (in.peek() == ']') { in.get(); return; }
    for (;;) {
        in.skip_space();
        read();
        in.skip_space();
        if (in.peek() == ',') { in.get(); continue; }
        return expect(in, ']');
    }
}
/// Calls `on_element(key, value, line)` for each element of the list that begins here.
template <class OnElement>
void each_list_element(byte_stream& in, const std::string& key, OnElement&& on_element) {
    each_list_place(in, [&] {
        const long long line = in.line();
        on_element(key, next_json(in), line);
    });
}
/// Does the same for each list in the object that begins here, and calls `on_member(key, value)`
/// for its other members.
template <class OnElement, class OnMember>
void each_json_member(byte_stream& in, OnElement&& on_element, OnMember&& on_member) {
    expect(in, '{');
    in.skip_space();
    while (in.peek() != '}') {
        const picojson::value key = next_json(in);
        if (!key.is<std::string>()) in.refuse(in.line(), "a member's name is expected here");
        expect(in, ':');
        in.skip_space();
        if (in.peek() == '[') each_list_element(in, key.get<std::string>(), on_element);
        else on_member(key.get<std::string>(), next_json(in));
        in.skip_space();
        if (in.peek() == ',') { in.get(); in.skip_space(); }
        else if (in.peek() != '}') expect(in, '}');
    }
    in.get();
}

inline void expect_end(byte_stream& in) {
    in.skip_space();
    if (in.peek() >= 0) in.refuse(in.line(), "something stands behind the end of the JSON value");
}
/// Calls `read()` at the start of each value of a file, whatever its name: of each element of the
/// list that it is, or of the values that follow each other, as JSON lines do.
template <class Read>
void each_json_place(byte_stream& in, Read&& read) {
    in.skip_space();
    if (in.peek() != '[') {
        for (; in.peek() >= 0; in.skip_space()) read();
        return;
    }
    each_list_place(in, read);
    expect_end(in);
}
/// Calls `on_element("", value, line)` for each of these values.
template <class OnElement>
void each_json_value(byte_stream& in, OnElement&& on_element) {
    each_json_place(in, [&] {
        const long long line = in.line();
        on_element(std::string(), next_json(in), line);
    });
}
/// `on_element(key, value, line)` for each element of the lists of the object that a file is.
template <class OnElement>
void each_json_element(byte_stream& in, OnElement&& on_element) {
    each_json_member(in, on_element, [](const std::string&, const picojson::value&) {});
    expect_end(in);
}

/// `on_header(fields, line)` for the first row of a CSV file (RFC 4180), `on_row(fields, line)` for
/// each other, which has as many fields. Quoted fields may hold commas, line ends, doubled quotes.
template <class OnHeader, class OnRow>
void each_csv_row(byte_stream& in, OnHeader&& on_header, OnRow&& on_row) {
    std::size_t columns = 0;
    while (in.peek() >= 0) {
        const long long line = in.line();
        vector<std::string> fields(1);
        bool quoted = false;
        std::size_t size = 0;
        for (int c = in.get(); c >= 0 && (quoted || c != '\n'); c = in.get()) {
            if (++size > max_value_bytes) in.refuse(line, "the row is over 64 MiB");
            std::string& field = fields.back();
            if (quoted && c == '"' && in.peek() == '"') field += static_cast<char>(in.get());
            else if (c == '"' && (quoted || field.empty())) quoted = !quoted;
            else if (c == ',' && !quoted) fields.emplace_back();
            else if (c != '\r' || quoted) field += static_cast<char>(c);
        }
        if (quoted) in.refuse(line, "a quoted field of this row does not end");
        if (fields.size() == 1 && trimmed(fields[0]).empty()) continue;
        if (columns == 0) {
            columns = fields.size();
            on_header(fields, line);
        } else if (fields.size() == columns) {
            on_row(fields, line);
        } else {
            in.refuse(line, printed("the row has %zu fields: the first row names %zu columns",
                                    fields.size(), columns));
        }
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
