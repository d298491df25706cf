// grading and comparison of answers
// Only the answer is graded, not the reasoning. An answer without a readable result is wrong, and
// marked unreadable.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/bytes.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class graded_as : unsigned char { right, wrong, unreadable };
struct graded_answer {
    graded_as is = graded_as::unreadable;
    std::string read{};  // the text that was graded
};
/// The right answer to a question, and its grading.
struct wanted_answer {
    virtual const std::string& key() const = 0;
    virtual graded_answer graded(std::string_view text) const = 0;

protected:
    ~wanted_answer() = default;
};

/// Records the grade of an answer. A failed request and an unreadable answer are wrong; a cancelled
/// one has no grade.
inline void grade(record& r, const wanted_answer& wanted, std::string_view words) {
    constexpr std::size_t max_kept = 80;
    if (r.status == request_status::left) return;
    r.right = false;
    if (r.status != request_status::ok) return;
    const graded_answer g = wanted.graded(words);
    r.right = g.is == graded_as::right;
    r.graded = printable(g.read, max_kept);
}

/// LLMBENCH_ANSWERS: which answers reports show: those that keep an objective from passing, all, or
/// none.
enum class answers_shown : unsigned char { open, all, none };
inline constexpr std::size_t max_answers_shown = 50;

/// A hash of a whole answer; 0 means none.
inline unsigned long long answer_hash(std::string_view said) {
    return std::max<unsigned long long>(hash_of(said).value(), 1);
}

/// Whether a byte continues a UTF-8 character.
inline bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
/// Returns at most so many bytes of a text around a position, in whole UTF-8 characters.
inline std::string excerpt(std::string_view s, std::size_t most, std::size_t around = 0) {
    std::size_t from = std::min(around > most / 2 ? around - most / 2 : 0,
                                s.size() > most ? s.size() - most : 0);
    std::size_t to = std::min(s.size(), from + most);
    while (from > 0 && goes_on(s[from])) --from;
    while (to < s.size() && to > from && goes_on(s[to])) --to;
    std::string out = from > 0 ? "..." : "";
    for (const char c : s.substr(from, to - from))
        if (c == '\x1e') out += "\n\n[answer] ";
        else if (c == '\x1f') out += "\n\n[calls] ";
        else out += c;
    return out + (to < s.size() ? "..." : "");
}

/// Whether the answers of a repeat can be compared.
inline bool has_hashes(const repeat_data& d) {
    return any_of(d.records, [](const record& r) { return r.answer_hash != 0; });
}
/// How often a server agrees with itself: the fraction of equal answers over all pairs of repeats.
/// NaN for one repeat.
template <class Repeats>
double own_agreement(const Repeats& variant, std::size_t repeats, const statistic_data& what) {
    struct answers {
        std::map<unsigned long long, double> of_hash{};
        double all = 0;
    };
    std::map<long long, answers> questions;
    for (std::size_t i = 0; i < std::min<std::size_t>(repeats, variant.size()); ++i) {
        const selects selected(what, variant[i]);
        for (const record& r : variant[i].records) {
            if (!selected(r) || !r.same) continue;
            answers& a = questions[question_of(r)];
            ++a.all;
            if (r.answer_hash != 0) ++a.of_hash[r.answer_hash];
        }
    }
    double alike = 0, pairs = 0;
    for (const auto& [place, a] : questions) {
        pairs += a.all * (a.all - 1);
        for (const auto& [hash, n] : a.of_hash) alike += n * (n - 1);
    }
    return pairs > 0 ? alike / pairs : not_a_number;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
