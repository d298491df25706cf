// common prefixes of recorded prompts
// A recording names thousands of blocks for each of a hundred thousand prompts. The tree has one
// node a prompt: the earlier prompt that it continues, and where.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/random.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <limits>  // of whole numbers
#include <unordered_map>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::size_t max_prompt_blocks = 20000000;  // of one scope, which differ

/// The tokens of a prompt, from `from` to `to`, that no earlier prompt has. Those before are the
/// parent's, of which it may have only the first.
struct prefix_node {
    std::uint32_t parent = nowhere;
    int from = 0, to = 0;
};
/// A prompt is the path from the root to a node, cut after `tokens`.
struct tree_prompt {
    std::uint32_t node = nowhere;
    int tokens = 0;
    int kept = 0;  // of these, tokens of earlier prompts
};

struct prefix_tree {
    vector<prefix_node> nodes{};

    /// Returns a prompt of `tokens`, the first `kept` of which are those of the prompt that ends in
    /// `parent`.
    tree_prompt branch(std::uint32_t parent, int kept, int tokens) {
        while (parent != nowhere && kept <= nodes[parent].from) parent = nodes[parent].parent;
        if (kept >= tokens) return {parent, tokens, tokens};
        nodes.push_back({parent, kept, tokens});
        return {static_cast<std::uint32_t>(nodes.size() - 1), tokens, kept};
    }
    /// Calls `each(node, from, to)` for each piece of a prompt, the last first.
    template <class Each>
    void each_piece(const tree_prompt& p, Each&& each) const {
        int end = p.tokens;
        for (std::uint32_t n = p.node; n != nowhere && end > 0; n = nodes[n].parent) {
            if (nodes[n].from < end) each(n, nodes[n].from, end);
            end = std::min(end, nodes[n].from);
        }
    }
    /// Returns the number of tokens with which both begin.
    int common(tree_prompt a, tree_prompt b) const {
        // Nodes come after their parents, so the later node is not on the other prompt's path.
        while (a.node != b.node) {
            const bool is_a = b.node == nowhere || (a.node != nowhere && a.node > b.node);
            tree_prompt& later = is_a ? a : b;
            later.tokens = std::min(later.tokens, nodes[later.node].from);
            later.node = nodes[later.node].parent;
        }
        return a.node == nowhere ? 0 : std::min(a.tokens, b.tokens);
    }
};

/// Finds the tokens of a block, one number for all prompts of a file. A prompt has ceil(tokens /
/// size) blocks, or floor where a partly full last block is left out.
class block_size {
public:
    /// Returns false if no size fits this prompt and all before it.
    bool fits(int tokens, std::size_t blocks) {
        const long long t = tokens, n = static_cast<long long>(blocks);
        if (n == 0) return true;
        with_last_ = {std::max(with_last_.least, (t + n - 1) / n),
                      n == 1 ? with_last_.most : std::min(with_last_.most, (t - 1) / (n - 1))};
        without_ = {std::max(without_.least, t / (n + 1) + 1), std::min(without_.most, t / n)};
        return with_last_.least <= with_last_.most || without_.least <= without_.most;
    }
    /// Returns a common size, those of published traces first, else the only one; 0 if several fit.
    int found() const {
        const range& r = with_last_.least <= with_last_.most ? with_last_ : without_;
        for (const int common : {512, 64, 16, 128, 256, 32})
            if (r.least <= common && common <= r.most) return common;
        return r.least == r.most ? static_cast<int>(r.least) : 0;
    }

private:
    struct range { long long least = 1, most = 10000000; };
    range with_last_{}, without_{};
};

/// Finds the earlier prompt with which a prompt begins. A block includes all before it.
class block_index {
public:
    /// Returns false if there are too many blocks.
    bool add(prefix_tree& tree, const vector<std::uint64_t>& ids, int block_tokens, int tokens,
             tree_prompt& added) {
        std::uint64_t prefix = 0;
        std::uint32_t last = nowhere;
        std::size_t known = 0;
        vector<std::uint64_t> fresh;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (static_cast<double>(i) * block_tokens >= tokens) break;  // blocks after its end
            prefix = mixed(prefix ^ mixed(ids[i] + 1));
            const auto at = fresh.empty() ? nodes_.find(prefix) : nodes_.end();
            if (at == nodes_.end()) { fresh.push_back(prefix); continue; }
            last = at->second;
            ++known;
        }
        // A known last block may have been only partly full in the earlier prompt.
        const double shared = std::min(static_cast<double>(known) * block_tokens,
                                       last == nowhere ? 0.0 : tree.nodes[last].to);
        added = tree.branch(last, static_cast<int>(std::min<double>(shared, tokens)), tokens);
        if (nodes_.size() + fresh.size() > max_prompt_blocks) return false;
        for (const std::uint64_t p : fresh) nodes_.emplace(p, added.node);
        return true;
    }
    void clear() { nodes_ = {}; }

private:
    std::unordered_map<std::uint64_t, std::uint32_t> nodes_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
