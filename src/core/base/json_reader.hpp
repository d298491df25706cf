// JSON, read without a tree
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <bit>  // countr_zero, endian
#include <cmath>  // isinf
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <cstring>  // memcpy
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A value of a JSON text. Those in it follow it, so that a pointer to one is a place in the text.
struct json_view {
    enum class kind : unsigned char { null, boolean, number, string, list, object };
    /// Whether it was looked at, and what for; its functions note that.
    enum class use : unsigned char { none, read, text, thought, count };

    kind is = kind::null;
    mutable use used = use::none;
    mutable unsigned char which = 0;  // of the counts
    std::uint32_t values = 1;         // that it consists of, itself included
    std::uint32_t from = 0, to = 0;   // where it stands in the text
    std::string_view name{};          // of a member
    std::string_view text{};          // of a string, decoded; of others as it stands there

    bool is_string() const { return is == kind::string; }
    bool is_object() const { return is == kind::object; }
    bool is_number() const { return is == kind::number; }
    const json_view* end() const { return this + values; }
    const json_view& read() const {
        if (used == use::none) used = use::read;
        return *this;
    }
    /// It was looked at for nothing.
    void ignore() const {
        if (used == use::read) used = use::none;
    }
};
inline bool is_list(const json_view& v) { return v.is == json_view::kind::list; }

/// The items of a list or the members of an object, or those left of them.
struct json_items {
    const json_view *at = nullptr, *to = nullptr;

    json_items begin() const { return *this; }
    json_items end() const { return {to, to}; }
    const json_view& operator*() const { return at->read(); }
    json_items& operator++() { return at = at->end(), *this; }
    bool operator==(const json_items&) const = default;
    bool empty() const { return at == to; }
    int size() const {
        int n = 0;
        for (json_items left = *this; !left.empty(); ++left) ++n;
        return n;
    }
};
inline json_items items_of(const json_view& v) { return {&v + 1, v.end()}; }
/// Null if there is none. Of equal names the last one counts.
inline const json_view* member(const json_view& v, std::string_view name) {
    const json_view* found = nullptr;
    if (v.is_object())
        for (const json_view* m = &v + 1; m != v.end(); m = m->end())
            if (m->name == name) found = m;
    return found ? &found->read() : nullptr;
}
/// The members that count, in the order of their names.
inline std::map<std::string_view, const json_view*> members_of(const json_view& v) {
    std::map<std::string_view, const json_view*> all;
    if (v.is_object())
        for (const json_view& m : items_of(v)) all[m.name] = &m;
    return all;
}

/// Returns the length of the number at the start of a text (RFC 8259, 6), 0 if none.
inline std::size_t json_number_length(std::string_view s) {
    std::size_t i = s.substr(0, 1) == "-";
    const auto digits = [&] {
        const std::size_t from = i;
        while (i < s.size() && s[i] >= '0' && s[i] <= '9') ++i;
        return i - from;
    };
    const auto is_one_of = [&](char a, char b) { return i < s.size() && (s[i] == a || s[i] == b); };
    const bool begins_with_0 = is_one_of('0', '0');
    if (const std::size_t n = digits(); n == 0 || (n > 1 && begins_with_0)) return 0;
    if (is_one_of('.', '.') && (++i, digits() == 0)) return 0;
    if (!is_one_of('e', 'E')) return i;
    ++i;
    if (is_one_of('+', '-')) ++i;
    return digits() == 0 ? 0 : i;
}
/// The value of a JSON number, infinite where no double holds it.
inline double json_number_value(std::string_view s) {
    long long whole = 0;
    std::size_t i = 0;
    for (; i < std::min<std::size_t>(s.size(), 18) && s[i] >= '0' && s[i] <= '9'; ++i)
        whole = whole * 10 + (s[i] - '0');
    if (i == s.size()) return static_cast<double>(whole);
    if (const auto v = parsed_number<double>(s)) return *v;
    return ::strtod_l(std::string(s).c_str(), nullptr, c_locale());  // may be too small
}
/// The end of what stands for itself in a JSON string: a quote, a backslash, a control character.
/// Eight bytes without one are passed at once.
inline const char* plain_end(const char* at, const char* end) {
    constexpr std::uint64_t each = 0x0101010101010101;
    for (std::uint64_t x = 0; end - at >= 8; at += 8) {
        std::memcpy(&x, at, 8);
        const std::uint64_t quote = x ^ each * '"', escape = x ^ each * '\\';
        const std::uint64_t found = (((x - each * 0x20) & ~x) | ((quote - each) & ~quote) |
                                     ((escape - each) & ~escape)) & each * 0x80;
        if (found == 0) continue;
        if constexpr (std::endian::native == std::endian::little)  // its lowest bit is exact
            return at + std::countr_zero(found) / 8;
        break;
    }
    while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
    return at;
}

/// Reads JSON texts (RFC 8259) in one pass, into memory that it keeps: up to 100 levels, halves of
/// surrogate pairs as U+FFFD (8.2 permits them, servers that cut an emoji send them), no number
/// that no double holds.
class json_reader {
public:
    static constexpr std::size_t most_levels = 100;

    /// Null unless the text is exactly one value, which lives until the next call, and as long as
    /// the text.
    const json_view* read(std::string_view s) {
        constexpr std::size_t usual = 1 << 14;  // values; an answer of megabytes has more
        if (s.size() < usual && values_.capacity() > usual) values_ = {};
        if (s.size() < usual && decoded_.capacity() > usual) std::string().swap(decoded_);
        begin(s);
        return read_all() && at_ == end_ ? values_.data() : nullptr;
    }
    /// The value with which a text begins, which is taken off it; null if there is none.
    const json_view* read_first(std::string_view& s) {
        begin(s);
        if (!read_all()) return nullptr;
        s.remove_prefix(place());
        return values_.data();
    }
    /// Why the last text was none, "" where no more is known than that it is not JSON.
    std::string why() const {
        if (is_too_deep_) return printed("its JSON nests deeper than %zu levels", most_levels);
        if (!at_ || at_ == end_) return {};
        // A number that begins here, or that goes on here.
        const bool goes_on = !values_.empty() && values_.back().is_number() &&
                             begin_ + values_.back().to == at_;
        const char* const from = goes_on ? begin_ + values_.back().from : at_;
        std::string_view word(from, static_cast<std::size_t>(end_ - from));
        word = word.substr(0, word.find_first_of(",:]} \t\r\n\"[{"));
        if (word.find_first_of("0123456789-+.") != 0) return {};
        if (json_number_length(word) != word.size())
            return "it is not JSON: " + printable(word, 40) + " is no number there";
        return std::isinf(json_number_value(word)) ? "it has a number that no double holds" : "";
    }
    /// All values of the text.
    vector<json_view>& values() { return values_; }
    /// Begins to read strings and numbers alone.
    void begin(std::string_view s) {
        values_.clear();
        decoded_.clear();
        is_too_deep_ = false;
        begin_ = at_ = s.data();
        end_ = s.data() + s.size();
    }
    /// Reads the string behind a quote at `from`. Returns where it ends, null if it is none.
    const char* string_at(const char* from, std::string_view& text) {
        const char* const at = plain_end(from, end_);
        if (at == end_ || *at != '"') return decoded_at(from, at, text);
        text = {from, static_cast<std::size_t>(at - from)};
        return at + 1;
    }
    /// The same for a number, which begins there.
    const char* number_at(const char* from, std::string_view& text) const {
        const char* at = from;  // mostly a short whole number
        while (at != end_ && *at >= '0' && *at <= '9') ++at;
        text = {from, static_cast<std::size_t>(at - from)};
        const bool is_whole =
            !text.empty() && text.size() < 300 && (text.size() == 1 || *from != '0');
        if (is_whole && (at == end_ || (*at != '.' && *at != 'e' && *at != 'E'))) return at;
        text = {from, static_cast<std::size_t>(end_ - from)};
        text = text.substr(0, json_number_length(text));
        const bool may_be_large = text.size() > 300 || text.find_first_of("eE") != text.npos;
        const bool is_none = text.empty() || (may_be_large && std::isinf(json_number_value(text)));
        return is_none ? nullptr : from + text.size();
    }

private:
    void skip_blanks() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    }
    bool take(char c) {
        skip_blanks();
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }
    std::uint32_t place() const { return static_cast<std::uint32_t>(at_ - begin_); }
    /// Reads a value and the blanks behind it.
    bool read_all() {
        std::uint32_t open[most_levels];
        std::size_t levels = 0;
        std::string_view name;
        const auto next_name = [&] {
            name = {};
            return !values_[open[levels - 1]].is_object() ||
                   (take('"') && (at_ = string_at(at_, name)) && take(':'));
        };
        for (;;) {
            skip_blanks();
            if (at_ == end_) return false;
            const char first = *at_;
            json_view v;
            v.name = name;
            v.from = place();
            if (first == '{' || first == '[') {
                is_too_deep_ = levels == most_levels;
                if (is_too_deep_) return false;
                ++at_;
                v.is = first == '{' ? json_view::kind::object : json_view::kind::list;
                open[levels++] = static_cast<std::uint32_t>(values_.size());
                values_.push_back(v);
                skip_blanks();
                const bool is_empty = at_ != end_ && *at_ == (first == '{' ? '}' : ']');
                if (!is_empty && !next_name()) return false;
                if (!is_empty) continue;
            } else {
                if (!read_single(v)) return false;
                v.to = place();
                values_.push_back(v);
            }
            for (;; --levels) {  // what ends behind it
                if (levels == 0) return skip_blanks(), true;
                if (take(',')) break;
                json_view& whole = values_[open[levels - 1]];
                if (!take(whole.is_object() ? '}' : ']')) return false;
                whole.values = static_cast<std::uint32_t>(values_.size() - open[levels - 1]);
                whole.to = place();
                whole.text = {begin_ + whole.from, whole.to - whole.from};
            }
            if (!next_name()) return false;
        }
    }
    /// A value without others in it.
    bool read_single(json_view& v) {
        const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
        for (const std::string_view word : {"null", "true", "false"}) {
            if (!rest.starts_with(word)) continue;
            v.is = word[0] == 'n' ? json_view::kind::null : json_view::kind::boolean;
            v.text = rest.substr(0, word.size());
            at_ += word.size();
            return true;
        }
        v.is = rest[0] == '"' ? json_view::kind::string : json_view::kind::number;
        const char* const to = v.is_string() ? string_at(at_ + 1, v.text) : number_at(at_, v.text);
        if (to) at_ = to;
        return to != nullptr;
    }
    /// The same with escapes, the first of which is at `at`.
    [[gnu::noinline]] const char* decoded_at(const char* from, const char* at,
                                             std::string_view& text) {
        if (decoded_.empty()) decoded_.reserve(static_cast<std::size_t>(end_ - begin_));
        const std::size_t begins = decoded_.size();
        for (;; at = plain_end(from, end_)) {
            decoded_.append(from, at);
            if (end_ - at < 2 || *at != '\\') break;
            constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
            const std::size_t which = letters.find(at[1]);
            from = at + 2;
            if (which != letters.npos) decoded_ += meant[which];
            else if (at[1] != 'u' || !(from = append_unit(from))) return nullptr;
        }
        text = std::string_view(decoded_).substr(begins);
        return at != end_ && *at == '"' ? at + 1 : nullptr;
    }
    /// Appends the character behind "\u". Returns where it ends, null if it is none.
    const char* append_unit(const char* at) {
        const auto unit = [&](const char* from) {
            return end_ - from < 4 ? std::nullopt : parsed_number<unsigned>({from, 4}, 16);
        };
        const auto first = unit(at);
        if (!first) return nullptr;
        at += 4;
        unsigned c = *first;
        if ((c & 0xFC00) == 0xD800 && end_ - at >= 6 && at[0] == '\\' && at[1] == 'u')
            if (const auto second = unit(at + 2); second && (*second & 0xFC00) == 0xDC00) {
                c = 0x10000 + ((c & 0x3FF) << 10) + (*second & 0x3FF);
                at += 6;
            }
        if ((c & ~0x7FFu) == 0xD800) c = 0xFFFD;
        const auto byte = [&](unsigned b) { decoded_ += static_cast<char>(b); };
        if (c < 0x80) return byte(c), at;
        if (c < 0x800) byte(0xC0 | c >> 6);
        else if (c < 0x10000) byte(0xE0 | c >> 12);
        else byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F));
        if (c >= 0x800) byte(0x80 | (c >> 6 & 0x3F));
        return byte(0x80 | (c & 0x3F)), at;
    }

    vector<json_view> values_{};
    std::string decoded_{};  // strings with escapes
    const char *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;
    bool is_too_deep_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
