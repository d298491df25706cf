// grading and comparison of answers
// Only the answer is graded, not the reasoning. An answer without a readable result is wrong, and
// marked unreadable.
#pragma once

#include "api/metrics.hpp"
#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // any_of, count_if, max, min, mismatch
#include <cstddef>  // ptrdiff_t, size_t
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
    fnv1a h;
    h.add(said.data(), said.size());
    return std::max<unsigned long long>(h.value(), 1);
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

/// Where two texts first differ: the characters before, and their fraction of the first text's
/// bytes.
struct parting {
    double characters = 0, fraction = 0;
    std::size_t byte = 0;
};
inline parting parting_of(std::string_view a, std::string_view b) {
    const std::size_t most = std::min(a.size(), b.size());
    auto byte = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
        a.begin());
    const std::string_view longer = a.size() > b.size() ? a : b;
    while (byte > 0 && byte < longer.size() && goes_on(longer[byte])) --byte;
    const auto characters =
        std::count_if(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(byte),
                      [](char c) { return !goes_on(c); });
    return {static_cast<double>(characters),
            a.empty() ? 0 : static_cast<double>(byte) / static_cast<double>(a.size()), byte};
}

/// Calls `f(candidate's record, baseline's)` for each request that both variants of a pair sent.
template <class Records, class F>
void for_each_pair(Records& mine, const vector<record>& theirs, F&& f) {
    std::size_t i = 0;
    for (auto& r : mine) {
        const auto at = place_of(r.id.c_str());
        while (i < theirs.size() && place_of(theirs[i].id.c_str()) < at) ++i;
        if (at && i < theirs.size() && place_of(theirs[i].id.c_str()) == at) f(r, theirs[i]);
    }
}

/// Whether the answers of a repeat can be compared.
inline bool has_hashes(const repeat_data& d) {
    return std::any_of(d.records.begin(), d.records.end(),
                       [](const record& r) { return r.answer_hash != 0; });
}
/// Marks the candidate's answers that equal the baseline's. An answer that failed in either variant
/// differs; a cancelled request is not compared.
inline void mark_same_answers(repeat_data& mine, const repeat_data& theirs) {
    vector<bool> compared(256);
    for (const repeat_data* d : {static_cast<const repeat_data*>(&mine), &theirs})
        for (const record& r : d->records)
            if (r.answer_hash != 0) compared[r.part] = true;
    for_each_pair(mine.records, theirs.records, [&](record& a, const record& b) {
        if (!compared[a.part] || has_left(a) || has_left(b)) return;
        a.same = a.answer_hash != 0 && a.answer_hash == b.answer_hash;
    });
}
/// The same with differences. `masked` makes an excerpt fit to be shown.
template <class Masked>
void compare_answers(repeat_data& mine, const repeat_data& theirs,
                     const vector<kept_text>& said, const vector<kept_text>& expected,
                     std::size_t max_shown, Masked&& masked) {
    mark_same_answers(mine, theirs);
    std::map<std::size_t, const std::string*> mine_at, theirs_at;
    for (const kept_text& t : said) mine_at[t.index] = &t.said;
    for (const kept_text& t : expected) theirs_at[t.index] = &t.said;
    for_each_pair(mine.records, theirs.records, [&](const record& a, const record& b) {
        const bool both = a.answer_hash != 0 && b.answer_hash != 0;
        if (!is_measured(a) || !a.same || !both) return;
        const std::size_t index = *place_of(a.id.c_str());
        const auto own = mine_at.find(index), other = theirs_at.find(index);
        if (own == mine_at.end() || other == theirs_at.end()) {
            mine.differences.without_place += !*a.same;
            return;
        }
        if (*a.same) { mine.differences.tokens += a.output_tokens; return; }
        const std::string &x = *own->second, &y = *other->second;
        const parting at = parting_of(x, y);
        mine.differences.places.push_back(at.characters);
        mine.differences.tokens += a.output_tokens * at.fraction;
        if (mine.differences.places.size() > max_shown) return;
        mine.shown.push_back({index, masked(excerpt(x, max_shown_bytes, at.byte)),
                              masked(excerpt(y, max_shown_bytes, at.byte)), at.characters});
    });
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
            answers& a = questions[r.conversation];
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
