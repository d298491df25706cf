// prefix cache hits
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/text.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_list.hpp"

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Prompt tokens, and cached ones, of requests for which the server reports them.
struct prefix_hits {
    double cached = 0, prompt = 0;
    /// More than all of them is impossible.
    bool is_over_all() const { return cached > prompt; }
    /// 0 where the server reports none.
    double fraction() const { return prompt > 0 && !is_over_all() ? cached / prompt : 0; }
    double share() const { return prompt > 0 && !is_over_all() ? cached / prompt : not_a_number; }
};
inline bool tells_cached_tokens(const record& r) {
    return r.cached_tokens >= 0 && r.prompt_tokens > 0;
}
inline prefix_hits prefix_hits_of(const repeat_data& d, const selection& which) {
    const selects selected(which, d);
    prefix_hits sum;
    for (const record& r : d.records) {
        if (!selected(r) || !tells_cached_tokens(r)) continue;
        sum.cached += r.cached_tokens;
        sum.prompt += r.prompt_tokens;
    }
    return sum;
}
inline prefix_hits prefix_hits_of(const repeat_list& variant, const selection& which = {}) {
    prefix_hits sum;
    for (const repeat_data& d : variant) {
        const prefix_hits one = prefix_hits_of(d, which);
        sum.cached += one.cached;
        sum.prompt += one.prompt;
    }
    return sum;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
