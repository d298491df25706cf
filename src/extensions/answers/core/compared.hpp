// answers of a pair of repeats compared
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/same_answers.hpp"

#include <algorithm>  // count_if, min, mismatch
#include <cstddef>  // ptrdiff_t, size_t
#include <map>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

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

/// Marks answers that are the same, and keeps where others part. `masked` makes an excerpt fit to be
/// shown.
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

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
