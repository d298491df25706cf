// what requests should cost a server that has a prefix cache
// A cache of whole blocks, as vLLM and SGLang have, which forgets nothing. The model knows tokens
// and their order alone: no time, no memory.
#pragma once

#include "core/base/vector.hpp"

#include <algorithm>  // min
#include <cstddef>  // size_t
#include <map>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Ids of tokens. Where only their number is known, as of answers that nobody reads again, any
/// ids do that no prompt has.
using token_ids = vector<int>;

/// One request: its prompt as the server tokenizes it, and its answer.
struct model_request {
    token_ids prompt{};
    token_ids answer{};
};
/// What a prompt costs.
struct work_done {
    long long prefilled = 0, cached = 0;
    friend bool operator==(const work_done&, const work_done&) = default;
};

/// The blocks of tokens that a server has computed, each after those before it.
class block_cache {
public:
    /// `block_tokens`: 1 for a cache that finds single tokens.
    explicit block_cache(int block_tokens)
        : block_tokens_(static_cast<std::size_t>(block_tokens)) {}

    /// The first tokens of a sequence that are in the cache, in whole blocks.
    std::size_t found(const token_ids& sequence) const {
        std::size_t at = 0;
        for (int after = root; at + block_tokens_ <= sequence.size(); at += block_tokens_) {
            const auto next = blocks_.find({after, block_of(sequence, at)});
            if (next == blocks_.end()) break;
            after = next->second;
        }
        return at;
    }
    void add(const token_ids& sequence) {
        int after = root;
        for (std::size_t at = 0; at + block_tokens_ <= sequence.size(); at += block_tokens_) {
            const int number = static_cast<int>(blocks_.size()) + 1;
            after = blocks_.try_emplace({after, block_of(sequence, at)}, number).first->second;
        }
    }

private:
    static constexpr int root = 0;
    token_ids block_of(const token_ids& sequence, std::size_t at) const {
        const int* const from = sequence.begin() + at;
        return {from, from + block_tokens_};
    }
    std::size_t block_tokens_;
    std::map<std::pair<int, token_ids>, int> blocks_{};  // by the block before: their numbers
};

/// What each request costs, in the order in which the server begins them. A prompt's last token is
/// computed even if all of it is cached, since the first token of the answer follows from it. The
/// answer's last token is never an input.
inline vector<work_done> expected_work(const vector<model_request>& in_order, int block_tokens) {
    block_cache cache(block_tokens);
    vector<work_done> each;
    for (const model_request& r : in_order) {
        token_ids left_behind = r.prompt;
        for (std::size_t i = 0; i + 1 < r.answer.size(); ++i) left_behind.push_back(r.answer[i]);
        token_ids looked_up = r.prompt;
        if (!looked_up.empty()) looked_up.pop_back();
        const auto cached = static_cast<long long>(cache.found(looked_up));
        each.push_back({static_cast<long long>(r.prompt.size()) - cached, cached});
        cache.add(left_behind);
    }
    return each;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
