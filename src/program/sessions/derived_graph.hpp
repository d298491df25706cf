// the graph of a recording that has none
#pragma once

#include "core/base/vector.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "extensions/sessions/core/session_graph.hpp"

#include <algorithm>  // max, partition_point, sort
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <iterator>  // prev
#include <map>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Finds the graph of a recording that has none; steps are in the order of their starts. A step
/// continues the ended one that it quotes, else the one of its model with which its prompt has the
/// longest common beginning (the earliest of several), else it branches off the one that ended
/// last. It waits for that step, and for all branches off the path behind it that had ended, unless
/// a step on the path did.
class derived_graph {
public:
    derived_graph(vector<recorded_step>& steps, const prefix_tree& tree)
        : steps_(steps), tree_(tree), children_(steps.size()) {
        for (std::uint32_t s = 0; s < steps.size(); ++s) by_end_.push_back(s);
        std::sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return ended(a) != ended(b) ? ended(a) < ended(b) : a < b;
        });
        std::size_t done = 0;
        for (std::uint32_t s = 0; s < steps.size(); ++s) {
            // A step without duration ends when it begins, but does not come before itself.
            for (; by_end_[done] < s && had_ended(by_end_[done], s); ++done)
                note_end(by_end_[done]);
            const int from = steps[s].quotes != no_parent ? steps[s].quotes : longest(s);
            const int behind = steps[s].goes_on_from =
                from != no_parent ? from
                : done > 0        ? static_cast<int>(by_end_[done - 1])
                                  : no_parent;
            (behind == no_parent ? roots_ : children_[index(behind)]).push_back(s);
        }
        find_branch_ends();
        for (std::uint32_t s = 0; s < steps.size(); ++s) find_waits(s);
    }

private:
    /// Without durations, a call has ended before all that began later.
    double ended(std::uint32_t s) const {
        return steps_[s].has_ended() ? steps_[s].end_s : steps_[s].at_s;
    }
    bool had_ended(std::uint32_t a, std::uint32_t before) const {
        return steps_[a].has_ended() ? steps_[a].end_s <= steps_[before].at_s
                                     : steps_[a].at_s < steps_[before].at_s;
    }
    /// Keeps the ended steps that share a node's first tokens: of each model, the earliest for each
    /// number of tokens. A later step with fewer tokens is never chosen, here or in earlier pieces.
    void note_end(std::uint32_t s) {
        bool is_known = false;
        tree_.each_piece(steps_[s].prompt, [&](std::uint32_t node, int, int to) {
            if (is_known) return;
            std::map<int, std::uint32_t>& found = ended_in_[{node, steps_[s].model}];
            const auto longer = found.lower_bound(to);
            is_known = longer != found.end() && longer->second < s;
            if (is_known) return;
            auto at = found.insert_or_assign(to, s).first;
            while (at != found.begin() && std::prev(at)->second > s) found.erase(std::prev(at));
        });
    }
    int longest(std::uint32_t s) const {
        int best = no_parent;
        tree_.each_piece(steps_[s].prompt, [&](std::uint32_t node, int, int to) {
            if (best != no_parent) return;
            const auto in = ended_in_.find({node, steps_[s].model});
            if (in == ended_in_.end() || in->second.empty()) return;
            const auto at = in->second.lower_bound(to);
            best = static_cast<int>(at != in->second.end() ? at->second
                                                           : in->second.rbegin()->second);
        });
        return best;
    }
    /// Children come after their parents, so a backward pass meets them first.
    void find_branch_ends() {
        last_.resize(steps_.size());
        for (std::size_t i = steps_.size(); i-- > 0;) {
            last_[i] = static_cast<std::uint32_t>(i);
            for (const std::uint32_t c : children_[i])
                if (ended(last_[c]) > ended(last_[i])) last_[i] = last_[c];
            sort_by_end(children_[i]);
        }
        sort_by_end(roots_);
    }
    void sort_by_end(vector<std::uint32_t>& branches) const {
        std::sort(branches.begin(), branches.end(), [&](std::uint32_t a, std::uint32_t b) {
            const double x = ended(last_[a]), y = ended(last_[b]);
            return x != y ? x < y : a > b;
        });
    }
    void find_waits(std::uint32_t s) {
        recorded_step& l = steps_[s];
        const double offset = steps_[s].at_s - steps_[0].at_s;
        vector<int> path;  // ends with no_parent, for the first steps
        for (int p = l.goes_on_from; p != no_parent; p = steps_[index(p)].goes_on_from)
            path.push_back(p);
        if (path.empty()) { l.wait_s = offset; return; }
        l.after = {static_cast<std::uint32_t>(path[0])};
        path.push_back(no_parent);
        int on_path = static_cast<int>(s);
        for (const int p : path) {
            // Sorted by end; those that had ended before the step behind are joined already.
            const vector<std::uint32_t>& all = p == no_parent ? roots_ : children_[index(p)];
            const auto before = [&](std::uint32_t step) {
                return std::partition_point(all.begin(), all.end(), [&](std::uint32_t branch) {
                    return had_ended(last_[branch], step);
                });
            };
            const auto first = p == path[0] ? all.begin() : before(l.after[0]);
            std::size_t found = 0;
            for (auto at = before(s); at > first && found < max_steps_before;) {
                const std::uint32_t branch = *--at;
                if (branch >= s || static_cast<int>(branch) == on_path) continue;
                add_leaves(branch, s, l.after);
                ++found;
            }
            on_path = p;
        }
        if (l.after.size() > max_steps_before) {  // keep the last to end
            std::sort(l.after.begin() + 1, l.after.end(), [&](std::uint32_t a, std::uint32_t b) {
                return ended(a) != ended(b) ? ended(a) > ended(b) : a < b;
            });
            l.after.resize(max_steps_before);
        }
        double last_end = 0;
        bool is_known = true;
        for (const std::uint32_t a : l.after) {
            last_end = std::max(last_end, ended(a));
            is_known = is_known && steps_[a].has_ended();
        }
        if (is_known) l.wait_s = std::max(0.0, steps_[s].at_s - last_end);
        else l.not_before_s = offset;
    }
    void add_leaves(std::uint32_t branch, std::uint32_t before, vector<std::uint32_t>& to) const {
        vector<std::uint32_t> open{branch};
        while (!open.empty()) {
            const std::uint32_t s = open.back();
            open.pop_back();
            if (children_[s].empty() && s < before) to.push_back(s);
            open.insert(open.end(), children_[s].begin(), children_[s].end());
        }
    }
    static std::size_t index(int step) { return static_cast<std::size_t>(step); }

    vector<recorded_step>& steps_;
    const prefix_tree& tree_;
    vector<vector<std::uint32_t>> children_;
    vector<std::uint32_t> by_end_{}, last_{}, roots_{};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<int, std::uint32_t>> ended_in_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
