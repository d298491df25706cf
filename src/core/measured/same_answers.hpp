// which answers of a pair of repeats are the same
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/wire/http.hpp"
#include "core/measured/answers.hpp"
#include "core/measured/repeat.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t

namespace llmbench {
inline namespace v1 {
namespace detail {

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
/// The same of all pairs.
inline void hold_together(repeat_list& mine, const repeat_list& theirs) {
    for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i)
        if (has_hashes(theirs[i]))
            mine.change(i, [&](repeat_data& d) { mark_same_answers(d, theirs[i]); });
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
