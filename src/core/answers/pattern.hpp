// patterns that a hostile answer cannot slow down
// std::regex backtracks: an answer that nearly matches may take it hours, or its stack. This one
// follows all ways at once (Thompson 1968), so a byte costs no more than the pattern is long. What
// only backtracking can do, \1 and (?=...), is refused.
#pragma once

#include "core/base/text.hpp"

#include <bitset>
#include <cstddef>  // ptrdiff_t, size_t
#include <string>
#include <string_view>
#include <utility>  // swap
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// An ECMAScript expression over bytes. Throws std::invalid_argument where it is none.
class text_pattern {
public:
    static constexpr std::size_t most_steps = 4000;

    text_pattern() = default;
    explicit text_pattern(std::string_view source) : source_(source) {
        alternatives(0);
        if (at_ != source_.size()) wrong("a ) that nothing opens");
        add({op::match});
    }

    /// Whether it is found anywhere in the text.
    bool found_in(std::string_view s) const {
        std::vector<std::size_t> now, next;
        std::vector<std::size_t> seen(steps_.size(), 0);
        for (std::size_t i = 0; i <= s.size(); ++i) {
            bool matches = false;
            const auto follow = [&](std::vector<std::size_t>& from) {
                for (std::size_t k = 0; k < from.size(); ++k) {
                    const step& t = steps_[from[k]];
                    const auto also = [&](std::size_t to) {
                        if (seen[to] == i + 1) return;
                        seen[to] = i + 1;
                        from.push_back(to);
                    };
                    switch (t.what) {
                    case op::match: matches = true; break;
                    case op::fork: also(t.to); also(t.other); break;
                    case op::begin: if (i == 0) also(from[k] + 1); break;
                    case op::end: if (i == s.size()) also(from[k] + 1); break;
                    case op::edge:
                    case op::no_edge:
                        if (is_edge(s, i) == (t.what == op::edge)) also(from[k] + 1);
                        break;
                    case op::byte: break;
                    }
                }
            };
            if (!steps_.empty() && seen[0] != i + 1) {  // it may begin here, too
                seen[0] = i + 1;
                now.push_back(0);
            }
            follow(now);
            if (matches) return true;
            if (i == s.size()) break;
            next.clear();
            for (const std::size_t k : now) {
                if (steps_[k].what != op::byte || seen[k + 1] == i + 2) continue;
                if (!steps_[k].bytes[static_cast<unsigned char>(s[i])]) continue;
                seen[k + 1] = i + 2;
                next.push_back(k + 1);
            }
            std::swap(now, next);
        }
        return false;
    }

private:
    using byte_set = std::bitset<256>;
    static constexpr std::size_t no_limit = ~std::size_t{0};
    enum class op : unsigned char { byte, fork, begin, end, edge, no_edge, match };
    struct step {
        op what = op::match;
        std::size_t to = 0, other = 0;  // of a fork
        byte_set bytes{};
    };
    static bool is_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    }
    static bool is_edge(std::string_view s, std::size_t i) {
        return (i > 0 && is_word(s[i - 1])) != (i < s.size() && is_word(s[i]));
    }
    [[noreturn]] void wrong(const std::string& what) const {
        refuse({"the pattern \"", printable(source_, 60), "\" has ", what});
    }
    bool more() const { return at_ < source_.size(); }
    bool take(char c) {
        if (!more() || source_[at_] != c) return false;
        ++at_;
        return true;
    }
    void add(const step& s) {
        if (steps_.size() == most_steps)
            wrong(printed("over %zu steps when its counts are written out", most_steps));
        steps_.push_back(s);
    }
    void add_bytes(const byte_set& b) { add({op::byte, 0, 0, b}); }
    /// A fork before what stands from here on.
    void insert_fork(std::size_t at) {
        add({});
        for (std::size_t i = steps_.size() - 1; i > at; --i) {
            steps_[i] = steps_[i - 1];
            if (steps_[i].what != op::fork) continue;
            if (steps_[i].to >= at) ++steps_[i].to;
            if (steps_[i].other >= at) ++steps_[i].other;
        }
        steps_[at] = {op::fork, at + 1, steps_.size(), {}};
    }

    void alternatives(int depth) {
        if (depth > 50) wrong("groups over 50 deep");
        const std::size_t from = steps_.size();
        sequence(depth);
        if (!take('|')) return;
        insert_fork(from);
        const std::size_t leave = steps_.size();
        add({op::fork, 0, 0, {}});
        steps_[from].other = steps_.size();
        alternatives(depth + 1);
        steps_[leave].to = steps_[leave].other = steps_.size();
    }
    void sequence(int depth) {
        while (more() && source_[at_] != '|' && source_[at_] != ')') {
            const std::size_t from = steps_.size();
            atom(depth);
            repeated(from);
        }
    }
    void atom(int depth) {
        const char c = source_[at_++];
        switch (c) {
        case '^': return add({op::begin});
        case '$': return add({op::end});
        case '.': return add_bytes(~(byte_set().set('\n').set('\r')));
        case '[': return add_bytes(bracket());
        case '\\': return escape();
        case '*': case '+': case '?': case '{':
            wrong(std::string("a ") + c + " with nothing before it");
        case '(':
            if (take('?') && !take(':')) wrong("a (?, of which only (?: is known");
            alternatives(depth + 1);
            if (!take(')')) wrong("a ( without its )");
            return;
        default: add_bytes(one(c));
        }
    }
    static byte_set one(char c) { return byte_set().set(static_cast<unsigned char>(c)); }
    static byte_set all_of(bool (*is)(char)) {
        byte_set b;
        for (int c = 0; c < 256; ++c) b[static_cast<std::size_t>(c)] = is(static_cast<char>(c));
        return b;
    }
    /// What a backslash and this stand for.
    byte_set escaped(char c) const {
        switch (c) {
        case 'd': return all_of([](char k) { return k >= '0' && k <= '9'; });
        case 'D': return ~escaped('d');
        case 'w': return all_of(is_word);
        case 'W': return ~escaped('w');
        case 's':
            return all_of([](char k) { return k == ' ' || (k >= '\t' && k <= '\r'); });
        case 'S': return ~escaped('s');
        case 'n': return one('\n');
        case 'r': return one('\r');
        case 't': return one('\t');
        case 'f': return one('\f');
        case 'v': return one('\v');
        default: break;
        }
        if (is_word(c)) wrong(std::string("\\") + c + ", which is not known here");
        return one(c);
    }
    char next_of_escape() {
        if (!more()) wrong("a \\ at its end");
        return source_[at_++];
    }
    void escape() {
        const char c = next_of_escape();
        if (c == 'b' || c == 'B') return add({c == 'b' ? op::edge : op::no_edge});
        add_bytes(escaped(c));
    }
    byte_set bracket() {
        byte_set b;
        const bool is_not = take('^');
        const auto item = [&] {
            const char c = source_[at_++];
            return c == '\\' ? escaped(next_of_escape()) : one(c);
        };
        const auto first = [](const byte_set& of) {
            std::size_t i = 0;
            while (i < 255 && !of[i]) ++i;
            return i;
        };
        while (more() && source_[at_] != ']') {
            const byte_set low = item();
            b |= low;
            if (at_ + 1 >= source_.size() || source_[at_] != '-' || source_[at_ + 1] == ']')
                continue;
            ++at_;
            const byte_set high = item();
            if (low.count() != 1 || high.count() != 1 || first(low) > first(high))
                wrong("a range in [] whose ends are not in order");
            for (std::size_t i = first(low); i <= first(high); ++i) b.set(i);
        }
        if (!take(']')) wrong("a [ without its ]");
        return is_not ? ~b : b;
    }
    /// One repeated as often as the quantifier behind it says. Lazy or not, it is found or not.
    void repeated(std::size_t from) {
        std::size_t least = 0, most = no_limit;
        if (take('+')) least = 1;
        else if (take('?')) most = 1;
        else if (take('{')) {
            least = most = count();
            if (take(',')) most = more() && source_[at_] != '}' ? count() : no_limit;
            if (!take('}')) wrong("a { without its }");
            if (most < least) wrong("a count whose ends are not in order");
        } else if (!take('*')) {
            return;
        }
        take('?');
        if (more() && std::string_view("*+?{").find(source_[at_]) != std::string_view::npos)
            wrong("two quantifiers in a row");
        const std::vector<step> body(steps_.begin() + static_cast<std::ptrdiff_t>(from),
                                     steps_.end());
        steps_.resize(from);
        const auto append = [&](std::size_t away) {
            for (step s : body) {
                s.to += away - from;
                s.other += away - from;
                add(s);
            }
        };
        for (std::size_t i = 0; i < least; ++i) append(steps_.size());
        const bool is_loop = most == no_limit;
        for (std::size_t i = least; i < (is_loop ? least + 1 : most); ++i) {
            const std::size_t fork = steps_.size();
            add({op::fork, fork + 1, 0, {}});
            append(steps_.size());
            if (is_loop) add({op::fork, fork, fork, {}});
            steps_[fork].other = steps_.size();
        }
    }
    std::size_t count() {
        const std::size_t from = at_;
        while (more() && source_[at_] >= '0' && source_[at_] <= '9') ++at_;
        const auto n = parsed_number<std::size_t>(source_.substr(from, at_ - from));
        if (!n || *n > 1000) wrong("a count that is no number from 0 to 1000");
        return *n;
    }

    std::string source_{};
    std::size_t at_ = 0;
    std::vector<step> steps_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
