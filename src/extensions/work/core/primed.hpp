// what prompts of a load share at their beginnings
#pragma once

#include "api/result.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/dialects/request_body.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/tokens.hpp"

#include <algorithm>  // mismatch, sort
#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A text, and how much of its beginning another one has, too.
struct shared_start {
    std::size_t which = 0, length = 0;
};
inline std::size_t common_length(const std::string& a, const std::string& b) {
    const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(end.first - a.begin());
}
/// The fewest starts among which any two of the texts find all that they share. In the order of
/// the texts, each is where neighbours share more than those before and after them. Two texts have
/// one even if they share nothing: a server may put the same words before both.
inline vector<shared_start> shared_starts(const vector<std::string>& texts) {
    vector<std::size_t> order;
    for (std::size_t i = 0; i < texts.size(); ++i) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return texts[a] < texts[b]; });
    vector<shared_start> all;
    bool rises = false;
    for (std::size_t i = 0, before = 0; i < order.size(); ++i) {
        const bool is_last = i + 1 == order.size();
        const std::size_t next =
            is_last ? 0 : 1 + common_length(texts[order[i]], texts[order[i + 1]]);
        if (next < before && rises) all.push_back({order[i], before - 1});
        if (next != before) rises = next > before;
        before = next;
    }
    return all;
}

/// The request up to the word with which its first so many characters end, for one token.
inline request_spec begun(request_spec r, std::size_t length) {
    const std::size_t before = joined_prompt(r).size() - r.prompt.size();
    const std::size_t at_least = length > before + 1 ? length - before - 1 : 1;
    r.prompt = r.prompt.substr(0, r.prompt.find_first_of(" \n", at_least));
    if (!r.token_ids.empty()) r.token_ids = id_list(r.prompt);
    r.max_tokens = 1;
    return r;
}
/// Requests for what conversations of the load share: their later turns begin with the first.
inline vector<request_spec> primers_of(const plan& p, const token_fit& fit) {
    const planned_traffic& sent = *p.sent;
    const conversation_counts all = counted_conversations(sent);
    vector<request_spec> first;
    vector<std::string> texts;
    for (std::size_t c = 0; c < all.warmup + all.measured; ++c)
        for (std::size_t i = c * sent.stride, n = turns_of(sent, c); n > 0; ++i, --n) {
            if (sent.stride > 1 && step_of(sent, i).turn > 0) continue;
            first.push_back(request_of(p, run_variant::candidate, 0, i, {}, fit));
            texts.push_back(joined_prompt(first.back()));
        }
    vector<request_spec> primers;
    for (const shared_start& s : shared_starts(texts))
        primers.push_back(begun(first[s.which], s.length));
    return primers;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
