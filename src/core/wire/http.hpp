// HTTP/1.1
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Whether a list header, such as Connection, has this name.
inline bool lists(std::string_view list, std::string_view name) {
    for (;;) {
        const std::size_t comma = std::min(list.find(','), list.size());
        if (same_ignoring_case(trimmed(list.substr(0, comma)), name)) return true;
        if (comma == list.size()) return false;
        list.remove_prefix(comma + 1);
    }
}

/// Whether a text is a token (RFC 9110, 5.6.2).
inline bool is_token(std::string_view s) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    };
    return !s.empty() && all_of(s, allowed);
}

/// Whether a header value cannot inject another line (RFC 9110, 5.5).
inline bool is_header_safe(std::string_view s) {
    return all_of(s, [](char c) {
        return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
    });
}

struct header_field {
    std::string name{};
    std::string value{};
};

/// Calls `on(name, value, line)` for each header line behind the first line of a head, which ends
/// without CR LF. Returns false at one without a colon.
template <class On>
bool for_each_field(std::string_view head, On&& on) {
    for (std::size_t at = std::min(head.find("\r\n"), head.size()); at < head.size();) {
        const std::size_t end = std::min(head.find("\r\n", at + 2), head.size());
        const std::string_view line = head.substr(at + 2, end - at - 2);
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return false;
        on(line.substr(0, colon), trimmed(line.substr(colon + 1)), line);
        at = end;
    }
    return true;
}

enum class http_method : unsigned char { get, post };

/// A request's text. `fields`: more header lines, each with its CR LF. Only a POST has a body and
/// its length.
inline std::string request_text(http_method method, std::string_view path,
                                std::string_view authority, std::string_view fields,
                                std::string_view body = {}) {
    const bool posts = method == http_method::post;
    const std::string length =
        posts ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : "";
    std::string out;
    out.reserve(64 + path.size() + authority.size() + fields.size() + body.size());
    out.append(posts ? "POST " : "GET ").append(path).append(" HTTP/1.1\r\nHost: ");
    out.append(authority).append("\r\n").append(fields).append(length).append("\r\n");
    return out.append(body);
}

inline constexpr std::string_view month_names = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// Unix seconds of a Date header, "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7).
inline std::optional<double> seconds_of_http_date(std::string_view s) {
    if (s.size() != 29 || s.substr(25) != " GMT" || s.substr(3, 2) != ", ") return {};
    const auto number = [&](std::size_t at, std::size_t n) {
        return parsed_number<int>(s.substr(at, n)).value_or(-1);
    };
    const std::size_t month = month_names.find(s.substr(8, 3));
    const int day = number(5, 2), year = number(12, 4);
    const int hour = number(17, 2), minute = number(20, 2), second = number(23, 2);
    const bool is_date = month != std::string_view::npos && month % 3 == 0 && day >= 1 &&
                         day <= 31 && year >= 1970 && hour >= 0 && hour <= 23 && minute >= 0 &&
                         minute <= 59 && second >= 0 && second <= 60;
    if (!is_date) return {};
    return 86400.0 * static_cast<double>(days_of_date(year, static_cast<int>(month) / 3 + 1, day)) +
           3600 * hour + 60 * minute + second;
}

/// Response parser without I/O (RFC 9112): bytes in, body bytes out through a callback. Anything
/// ambiguous is an error.
class response_parser {
public:
    static constexpr std::size_t max_line = 16 * 1024;
    static constexpr std::size_t max_head = 64 * 1024;  // with interim answers
    static constexpr std::size_t max_fields = 256;
    static constexpr std::uint64_t max_chunk = 1ull << 30;

    /// Takes all of `bytes` unless the message is complete or broken. Returns how many it took.
    /// `take_chunks` is given the bytes behind the data of a chunk, and may take whole chunks off,
    /// as next_data() finds them. It returns whether it did; nothing else changes by that.
    template <class OnBody, class TakeChunks = bool (*)(std::string_view&)>
    std::size_t feed(std::string_view bytes, OnBody&& on_body,
                     TakeChunks&& take_chunks = [](std::string_view&) { return false; }) {
        std::string_view rest = bytes;
        while (!rest.empty() && at_ != state::complete && at_ != state::broken) {
            if (at_ == state::chunk_end && line_.empty() && take_chunks(rest)) continue;
            std::size_t n = rest.size();
            if (at_ == state::fixed_body || at_ == state::chunk_data) {
                n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, n));
                left_ -= n;
                if (left_ == 0) at_ = at_ == state::fixed_body ? state::complete : state::chunk_end;
                on_body(std::string_view(rest.data(), n));
            } else if (at_ == state::until_close) {
                on_body(rest);
            } else if (line_.empty() && (n = usual_chunk_lines(rest, at_, left_)) > 0) {
                head_size_ = 0;
                at_ = state::chunk_data;
            } else {
                n = take_line(rest);
            }
            rest.remove_prefix(n);
        }
        return bytes.size() - rest.size();
    }
    /// The data of the next chunk, for bytes behind the data of one; "" unless the chunk is whole
    /// here and both lines before its data are usual.
    static std::string_view next_data(std::string_view s) {
        std::uint64_t size = 0;
        const std::size_t n = usual_chunk_lines(s, state::chunk_end, size);
        return n > 0 && size <= s.size() - n ? s.substr(n, static_cast<std::size_t>(size))
                                             : std::string_view();
    }
    void end_of_input() {
        if (at_ == state::until_close) at_ = state::complete;
        else if (at_ != state::complete && at_ != state::broken)
            fail("the connection was closed inside the answer");
    }

    bool complete() const { return at_ == state::complete; }
    bool broken() const { return at_ == state::broken; }
    /// The status is known, whatever follows.
    bool head_done() const { return head_done_; }
    /// No byte of the answer has arrived.
    bool untouched() const { return at_ == state::status_line && line_.empty() && !interim_seen_; }
    bool body_may_be_cut() const { return at_ != state::until_close; }
    const std::string& error() const { return error_; }
    int status() const { return status_; }
    /// Of the connection, as far as is known.
    socket_use use() const {
        if (broken()) return socket_use::broken;
        const bool closes = head_done_ && (!keep_alive_ || ends_with_connection_);
        return closes ? socket_use::over : socket_use::kept;
    }
    std::string_view header(std::string_view name) const {
        for (const header_field& f : fields_)
            if (same_ignoring_case(f.name, name)) return f.value;
        return {};
    }
    /// Whether `f(name, value)` is true of any field of the head.
    template <class F>
    bool any_header(F&& f) const {
        return any_of(fields_, [&](const header_field& h) { return f(h.name, h.value); });
    }
    void reset() { *this = response_parser(); }

private:
    enum class state : unsigned char {
        status_line,
        header,
        fixed_body,
        until_close,
        chunk_size,
        chunk_data,
        chunk_end,
        trailer,
        complete,
        broken
    };

    /// The length of the lines between the data of two chunks, of which each event may have them:
    /// the end of a chunk, if one ends, and a size of at most six digits alone. 0 for others.
    static std::size_t usual_chunk_lines(std::string_view s, state at, std::uint64_t& size) {
        const bool ends = at == state::chunk_end;
        if ((!ends && at != state::chunk_size) || s.size() < 10) return 0;
        if (ends && (s[0] != '\r' || s[1] != '\n')) return 0;
        const std::size_t from = ends ? 2 : 0;
        std::size_t i = from;
        std::uint64_t n = 0;
        for (; i < from + 6; ++i) {
            const auto decimal = static_cast<unsigned>(s[i] - '0');
            const auto letter = static_cast<unsigned>((s[i] | 0x20) - 'a');
            if (decimal > 9 && letter > 5) break;
            n = n * 16 + (decimal <= 9 ? decimal : letter + 10);
        }
        if (n == 0 || s[i] != '\r' || s[i + 1] != '\n') return 0;
        size = n;
        return i + 2;
    }
    void fail(std::string why) {
        at_ = state::broken;
        error_ = std::move(why);
    }
    std::size_t take_line(std::string_view bytes) {
        const std::size_t end = bytes.find('\n');
        const std::size_t n = end == std::string_view::npos ? bytes.size() : end + 1;
        head_size_ += n;
        std::string_view line = bytes.substr(0, n);
        const bool copied = !line_.empty() || end == std::string_view::npos;
        if (copied) line = line_.append(line);
        if (at_ == state::status_line && is_settings_frame(line))
            fail("the server speaks HTTP/2 only: it answers with a SETTINGS frame, and requests "
                 "are sent in HTTP/1.1");
        else if (line.size() > max_line) fail("a header or chunk line is over 16 KiB");
        else if (head_size_ > max_head && (at_ == state::header || at_ == state::trailer))
            fail("the headers are over 64 KiB");
        else if (end != std::string_view::npos) {
            line.remove_suffix(1);
            if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
            else if (at_ != state::status_line && at_ != state::header)
                fail("a chunk line does not end with CR LF");
            if (at_ != state::broken) on_line(line);
            if (copied) line_.clear();
        }
        return n;
    }
    void on_line(std::string_view line) {
        const state at = at_;
        if (at == state::status_line) on_status_line(line);  // reports anything that is not HTTP
        if (broken()) return;
        if (line.find('\r') != std::string_view::npos) return fail("a bare CR in the headers");
        if (line.find('\0') != std::string_view::npos) return fail("a zero byte in the headers");
        switch (at) {
        case state::header: return line.empty() ? on_head_end() : on_header(line);
        case state::chunk_size: return on_chunk_size(line);
        case state::chunk_end:
            if (!line.empty()) return fail("chunk data is longer than its size");
            at_ = state::chunk_size;
            return;
        case state::trailer:
            if (!line.empty()) return on_header(line);
            at_ = state::complete;
            return;
        default: return;
        }
    }
    /// The first frame of a server of HTTP/2 (RFC 9113, 3.4 and 6.5): settings of six bytes each.
    static bool is_settings_frame(std::string_view s) {
        if (s.size() < 9 || s[0] != 0 || s[3] != 4 || s[5] != 0 || s[6] != 0) return false;
        const auto octet = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
        return (octet(1) * 256u + octet(2)) % 6 == 0 && s[7] == 0 && s[8] == 0;
    }
    void on_status_line(std::string_view line) {
        const bool shape = line.size() >= 12 && line.substr(0, 7) == "HTTP/1." &&
                           (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                           (line.size() == 12 || line[12] == ' ');
        const int code = shape ? parsed_number<int>(line.substr(9, 3)).value_or(0) : 0;
        if (code < 100 || code > 599)
            return fail("not an HTTP/1.x answer: \"" + printable(line, 60) + "\"");
        status_ = code;
        old_version_ = line[7] == '0';
        keep_alive_ = !old_version_;
        at_ = state::header;
    }
    void on_header(std::string_view line) {
        if (line.front() == ' ' || line.front() == '\t') return fail("a folded header line");
        const std::size_t colon = line.find(':');
        if (colon == 0 || colon == std::string_view::npos)
            return fail("a header line without a name");
        const std::string_view name = line.substr(0, colon);
        if (name.find_first_of(" \t") != std::string_view::npos)
            return fail("a space in a header name");
        if (!is_token(name))
            return fail("\"" + printable(name, 60) + "\" is no name of a header");
        if (at_ == state::trailer) return;  // checked, then ignored
        if (fields_.size() == max_fields) return fail("more than 256 header lines");
        fields_.push_back({std::string(name), std::string(trimmed(line.substr(colon + 1)))});
    }
    void on_head_end() {
        if (status_ < 200) {  // interim answers precede the final one
            if (status_ == 101) return fail("the server switched protocols unasked");
            interim_seen_ = true;
            fields_.clear();
            at_ = state::status_line;
            return;
        }
        head_done_ = true;
        bool chunked = false, sized = false, closes = false;
        std::string codings;  // of several lines together (RFC 9110, 5.3)
        for (const header_field& f : fields_) {
            if (same_ignoring_case(f.name, "transfer-encoding")) {
                codings += (codings.empty() ? "" : ", ") + f.value;
                chunked = true;
            } else if (same_ignoring_case(f.name, "content-length")) {
                const auto n = parsed_number<std::uint64_t>(f.value);
                if (!n)
                    return fail("content length \"" + printable(f.value, 60) +
                                "\" is not a number");
                if (sized && *n != left_) return fail("two different content lengths");
                sized = true;
                left_ = *n;
            } else if (same_ignoring_case(f.name, "connection")) {
                if (lists(f.value, "keep-alive")) keep_alive_ = true;
                if (lists(f.value, "close")) closes = true;
            } else if (same_ignoring_case(f.name, "content-encoding") && !f.value.empty() &&
                       !same_ignoring_case(f.value, "identity")) {
                return fail("content coding \"" + printable(f.value, 60) + "\" came unasked");
            }
        }
        if (const std::string why = fault_of_codings(codings); chunked && !why.empty())
            return fail(why);
        if (chunked && sized) return fail("both a content length and a chunked body");
        // HTTP/1.0 has no chunks, so a server that sends them may not delimit the answer reliably.
        ends_with_connection_ = closes || (chunked && old_version_);
        if (status_ == 204 || status_ == 304) at_ = state::complete;
        else if (chunked) at_ = state::chunk_size;
        else if (!sized) { at_ = state::until_close; ends_with_connection_ = true; }
        else at_ = left_ == 0 ? state::complete : state::fixed_body;
    }
    /// Why a list of transfer codings is not chunked alone.
    static std::string fault_of_codings(std::string_view list) {
        std::size_t chunks = 0, others = 0;
        const std::string named = "transfer encoding \"" + printable(list, 60) + "\"";
        for (std::size_t comma = 0; comma < list.size(); list.remove_prefix(comma + 1)) {
            comma = std::min(list.find(','), list.size());
            const bool is_chunked = same_ignoring_case(trimmed(list.substr(0, comma)), "chunked");
            ++(is_chunked ? chunks : others);
            if (comma == list.size()) break;
        }
        if (others > 0 || chunks == 0) return named + " is not supported";
        return chunks == 1 ? "" : named + ": \"chunked\" may stand there once (RFC 9112, 6.1)";
    }
    void on_chunk_size(std::string_view line) {
        std::string_view rest = line;
        const auto n = leading_number<std::uint64_t>(rest, 16);
        const std::string_view after = trimmed(rest);
        if (!n || (!after.empty() && after.front() != ';'))
            return fail("chunk size \"" + printable(line, 60) + "\" is not a hexadecimal number");
        if (*n > max_chunk) return fail("a chunk is over 1 GiB");
        left_ = *n;
        head_size_ = 0;
        at_ = *n == 0 ? state::trailer : state::chunk_data;
    }

    state at_ = state::status_line;
    std::string line_{};
    vector<header_field> fields_{};
    std::string error_{};
    std::uint64_t left_ = 0;
    std::size_t head_size_ = 0;
    int status_ = 0;
    bool old_version_ = false;
    bool keep_alive_ = true;
    bool ends_with_connection_ = false;
    bool interim_seen_ = false;
    bool head_done_ = false;
};

/// The number of a run in its ids where all runs are alike, as in virtual time.
inline constexpr std::uint32_t virtual_run = 0x11bbec40;
/// An id without the request's index, which `request_id` appends. It has the form of a UUID, since
/// some servers require one, of version 8, whose digits are free (RFC 9562, 5.8). After the eight
/// digits of the run come the gate's number, `8c` for candidate or `8b` for baseline, the repeat,
/// and the index in decimal.
inline std::string id_prefix(int gate, run_variant variant, int repeat,
                             std::uint32_t run = virtual_run) {
    return printed("%08x-%04d-8%c%02d-8000-", static_cast<unsigned>(run), gate % 10000,
                   variant == run_variant::baseline ? 'b' : 'c', repeat % 100);
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
/// For requests before a load, of which each has a number of its own.
inline std::string id_of_check(std::size_t number = 0, std::uint32_t run = virtual_run) {
    return request_id(id_prefix(0, run_variant::candidate, 0, run), number);
}
inline bool is_id_of_check(std::string_view id) {
    const std::string one = id_of_check();
    const std::size_t run = one.find('-'), index = one.rfind('-') + 1;
    return id.size() == one.size() && id.substr(run, index - run) == one.substr(run, index - run);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
