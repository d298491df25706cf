// whether an answer is right
// Graded is what was answered, never what was thought. An answer in which nothing can be found is
// unreadable, which counts as wrong and is told apart.
#pragma once

#include "api/result.hpp"
#include "api/workload.hpp"
#include "core/answers/pattern.hpp"
#include "core/answers/schema_check.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // count, min, remove
#include <memory>  // shared_ptr
#include <optional>
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* grade_name(answer_grade g) {
    return name_at({"exact", "last_number", "choice", "pattern", "schema"}, g);
}

/// What is right. The key is a text, a number, a letter, a pattern or a schema.
struct wanted_answer {
    answer_grade by = exact;
    std::string key{};
    int choices = 0;
    std::shared_ptr<const text_pattern> found{};     // compiled once, by whoever reads the key
    std::shared_ptr<const picojson::value> allowed{};
};

enum class graded_as : unsigned char { right, wrong, unreadable };
struct graded_answer {
    graded_as is = graded_as::unreadable;
    std::string read{};  // what was held against the key
};

/// What was said, but for space around it.
inline std::string_view without_space(std::string_view s) {
    constexpr std::string_view space = " \t\r\n\v\f";
    s.remove_prefix(std::min(s.find_first_not_of(space), s.size()));
    return s.substr(0, s.find_last_not_of(space) + 1);
}
/// "1,234.50" as it is compared; nothing where it is no number.
inline std::optional<double> graded_number(std::string_view s) {
    std::string plain(without_space(s));
    while (!plain.empty() && plain.back() == '.') plain.pop_back();
    if (!plain.empty() && plain.front() == '$') plain.erase(0, 1);
    if (!plain.empty() && plain.front() == '+') plain.erase(0, 1);
    plain.erase(std::remove(plain.begin(), plain.end(), ','), plain.end());
    for (const char c : plain)  // no inf, no nan, no 0x1p3
        if (std::string_view("0123456789.-").find(c) == std::string_view::npos) return {};
    return parsed_number<double>(plain);
}
/// The numbers of a text, one after the other: digits, commas between thousands, a point, a sign
/// where no digit or letter stands before it.
template <class Each>
void each_number(std::string_view s, Each&& each) {
    const auto digit = [&](std::size_t i) { return i < s.size() && s[i] >= '0' && s[i] <= '9'; };
    for (std::size_t i = 0; i < s.size();) {
        const bool bare = s[i] == '.' && digit(i + 1) && (i == 0 || !digit(i - 1));
        if (!digit(i) && !bare) { ++i; continue; }
        std::size_t from = i;
        if (from > 0 && s[from - 1] == '-' &&
            (from == 1 || std::string_view(" \t\n(=:$*{\"'").find(s[from - 2]) !=
                              std::string_view::npos))
            --from;
        bool has_point = false;
        for (; i < s.size(); ++i) {
            const bool point = s[i] == '.' && !has_point && digit(i + 1);
            const bool comma = s[i] == ',' && !has_point && digit(i + 1) && digit(i + 2) &&
                               digit(i + 3) && !digit(i + 4);
            if (!digit(i) && !point && !comma) break;
            has_point = has_point || point;
        }
        each(s.substr(from, i - from));
    }
}
inline std::string_view last_number_in(std::string_view s) {
    const auto mark = s.rfind("####");
    std::string_view found;
    if (mark != std::string_view::npos)
        each_number(s.substr(mark + 4), [&](std::string_view n) { if (found.empty()) found = n; });
    if (found.empty()) each_number(s, [&](std::string_view n) { found = n; });
    return found;
}

/// The letter of a choice that a model named, '\0' where it named none. No space is before it.
inline char choice_in(std::string_view s, int choices) {
    const auto letter = [&](char c) {
        const char upper = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
        return upper >= 'A' && upper < 'A' + choices ? upper : '\0';
    };
    const auto is_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '\'' || (static_cast<unsigned char>(c) & 0x80);
    };
    const auto alone = [&](std::size_t i) {
        return (i == 0 || !is_word(s[i - 1])) && (i + 1 >= s.size() || !is_word(s[i + 1]));
    };
    constexpr std::string_view around = " \t\r*_().:[]\"'`$";
    const auto first_behind = [&](std::size_t i) {
        i = std::min(s.find_first_not_of(around, i), s.size());
        return i < s.size() && alone(i) ? letter(s[i]) : '\0';
    };
    // A first line that is a letter and no word more.
    const std::string_view line = s.substr(0, s.find('\n'));
    const std::size_t at = std::min(line.find_first_not_of(around), line.size());
    if (at < line.size() && line.find_first_not_of(around, at + 1) == std::string_view::npos &&
        letter(line[at]))
        return letter(line[at]);
    char found = '\0';
    std::size_t found_at = 0;
    const auto look_behind = [&](std::string_view mark) {
        for (std::size_t i = s.size(); i-- > found_at;)
            if (same_ignoring_case(s.substr(i, mark.size()), mark)) {
                const char c = first_behind(i + mark.size());
                if (!c) continue;
                found = c;
                found_at = i;
                return;
            }
    };
    look_behind("answer is");
    look_behind("\\boxed{");
    if (found) return found;
    // "A" alone begins sentences, too: a letter in lower case is none, and no A before a word.
    for (std::size_t i = s.size(); i-- > 0;) {
        if (s[i] < 'A' || !letter(s[i]) || s[i] > 'Z' || !alone(i)) continue;
        const bool is_article = (s[i] == 'A' || s[i] == 'I') && i + 2 < s.size() &&
                                s[i + 1] == ' ' && s[i + 2] >= 'a' && s[i + 2] <= 'z';
        if (!is_article) return s[i];
    }
    return '\0';
}

inline graded_answer graded(std::string_view text, const wanted_answer& wanted) {
    constexpr std::size_t most_searched = 4096;
    const std::string_view said = without_space(text);
    const auto held = [](bool is_right, std::string_view read) {
        return graded_answer{is_right ? graded_as::right : graded_as::wrong, std::string(read)};
    };
    if (said.empty()) return {};
    switch (wanted.by) {
    case exact: return held(said == without_space(wanted.key), said);
    case last_number: {
        const std::string_view found = last_number_in(said);
        const auto n = graded_number(found), key = graded_number(wanted.key);
        if (!n) return {};
        return held(key && *n == *key, found);
    }
    case choice: {
        const char c = choice_in(said, wanted.choices);
        if (!c) return {};
        return held(wanted.key == std::string(1, c), std::string(1, c));
    }
    case pattern: {
        const std::string_view end =
            said.substr(said.size() - std::min(said.size(), most_searched));
        return held(wanted.found && wanted.found->found_in(end), end);
    }
    case schema: {
        picojson::value v;
        if (!parse_json(said, v)) return {};
        return held(wanted.allowed && schema_allows(*wanted.allowed, v), said);
    }
    }
    return {};
}

/// Enters into the record of a question what became of it. A failed request is a wrong answer,
/// and so is one in which nothing can be read; one that nobody waited for is none.
inline void grade(record& r, const wanted_answer& wanted, std::string_view words) {
    constexpr std::size_t most_kept = 80;
    if (r.status == request_status::left) return;
    r.right = false;
    if (r.status != request_status::ok) return;
    const graded_answer g = graded(words, wanted);
    r.right = g.is == graded_as::right;
    r.graded = printable(g.read, most_kept);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
