// Texts with one of their numbers after the other made extreme, absent or something else: what any
// file may say, and no reader may trip over.
#pragma once

#include <cctype>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>

namespace hostile {
using llmbench::detail::vector;

/// In place of a number. The last is no value: the member that has it goes by another name.
inline constexpr const char* no_number[] = {
    "0", "-1", "0.5", "1e308", "-1e308", "1e300", "9e15", "9007199254740993", "2147483648",
    "99999999999999999999", "1e-320", "1e999", "1e400", "NaN", "-Infinity", "\"x\"", "\"NaN\"",
    "\"inf\"", "\"1\"", "-0", "007", "-01", "1.", "1.e5", ".5", "+1", "1e", "0x10", "null", "true",
    "[1e308]", "{\"a\": 1e308}", ""};

/// Of these, what is no JSON, or no number that a double holds: refused wherever it stands.
inline bool is_no_json(const std::string& by) {
    for (const char* s : {"1e999", "1e400", "007", "-01", "1.", "1.e5", ".5", "+1", "1e", "0x10"})
        if (by == s) return true;
    return false;
}

/// A number of a text, and the name of the member that has it.
struct place {
    std::size_t from = 0, to = 0, name_at = 0;
    std::string path{};  // the names of what it is in
};

/// The numbers that stand outside of quotes: of each path the first one and the last, for the
/// others of a list are read as these.
inline vector<place> numbers_in(const std::string& text) {
    vector<place> all;
    vector<std::string> inside;
    std::string name;
    std::size_t name_at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') {
            const std::size_t from = i + 1;
            for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
            std::size_t after = i + 1;
            while (after < text.size() && text[after] == ' ') ++after;
            if (after >= text.size() || text[after] != ':') continue;
            name = text.substr(from, i - from);
            name_at = from;
        } else if (c == '{' || c == '[') {
            inside.push_back(name);
        } else if ((c == '}' || c == ']') && !inside.empty()) {
            inside.pop_back();
        } else if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) {
            place p{i, i, name_at, ""};
            while (p.to < text.size() && (std::isalnum(static_cast<unsigned char>(text[p.to])) ||
                                          text[p.to] == '.' || text[p.to] == '-' ||
                                          text[p.to] == '+'))
                ++p.to;
            for (const std::string& s : inside) p.path += s + ".";
            p.path += name;
            i = p.to - 1;
            all.push_back(p);
        }
    }
    std::set<std::string> first, last;
    std::set<std::size_t> kept;
    for (const place& p : all)
        if (first.insert(p.path).second) kept.insert(p.from);
    for (auto p = all.rbegin(); p != all.rend(); ++p)
        if (last.insert(p->path).second) kept.insert(p->from);
    vector<place> some;
    for (const place& p : all)
        if (kept.count(p.from)) some.push_back(p);
    return some;
}

/// Calls back with every such text, and with what was done to it. Returns how many there were.
/// Of a long text, `one_in` says which fraction of the values each number gets: others than the
/// number before it, so that all are among them.
template <class F>
std::size_t each_spoiled(const std::string& text, F&& f, std::size_t one_in = 1) {
    std::size_t n = 0, turn = 0;
    for (const place& p : numbers_in(text)) {
        ++turn;
        for (std::size_t i = 0; i < std::size(no_number); ++i) {
            if ((turn + i) % one_in != 0) continue;
            const std::string by = no_number[i];
            std::string spoiled = text;
            if (!by.empty()) spoiled.replace(p.from, p.to - p.from, by);
            else if (p.name_at > 0) spoiled[p.name_at] = '~';
            f(spoiled, p.path + " = " + by);
            ++n;
        }
    }
    return n;
}

}  // namespace hostile
