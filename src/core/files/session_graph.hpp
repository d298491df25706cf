// sessions as graphs of model calls
#pragma once

#include "core/base/text.hpp"
#include "core/files/prefix_tree.hpp"

#include <algorithm>  // find, max, min, partition_point, sort
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <iterator>  // prev
#include <map>
#include <string>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t most_session_steps = 10000;
inline constexpr std::size_t most_steps_before = 255;  // that one step waits for
inline constexpr std::size_t most_corpus_steps = 2000000;
inline constexpr int no_parent = -1;

/// One model call of a session, as a recording tells of it.
struct recorded_step {
    double at_s = 0, end_s = 0;  // from wherever its session counts; end < at: nobody knows
    std::uint32_t agent = 0;     // 0: the main one
    std::uint32_t model = 0, label = 0, body = 0;  // of those of the corpus
    tree_prompt prompt{};
    int output_tokens = 0;
    int quotes = no_parent;  // an ended step whose answer its prompt has, if messages are known
    bool has_ended() const { return end_s >= at_s; }
};

/// What a step waits for, and what of a prompt it goes on from.
struct step_links {
    std::vector<std::uint32_t> after{};
    int goes_on_from = no_parent;
    double wait_s = 0;
    double at_s = 0;  // not before this, from its session's start
};

/// Which agent's a step is, for reports; it moves no request.
struct step_place {
    std::uint32_t line = 0, turn = 0;
    int depth = 0;
};

/// A step of a corpus that was read. What it waits for stands in `corpus.after`.
struct session_step {
    tree_prompt prompt{};
    int output_tokens = 0;
    float wait_s = 0, at_s = 0;
    std::uint32_t first_after = 0, first_next = 0;
    std::uint8_t after = 0, depth = 0;  // how many; a line below another
    std::uint16_t next = 0, line = 0, turn = 0;
    std::uint8_t model = 0, label = 0;
    std::uint32_t body = 0;
};
struct session_entry {
    std::uint32_t first = 0, steps = 0;
    double start_s = -1;  // of the recording; below 0: it has none
    bool shares = false;  // its text is that of other sessions, too
};

/// All sessions of a recording. Steps stand behind those that they wait for.
struct session_corpus {
    std::string format{};
    prefix_tree prompts{};
    std::vector<session_step> steps{};
    std::vector<std::uint32_t> after{}, next{};  // steps of the same session
    std::vector<session_entry> sessions{};
    std::vector<std::string> models{""}, labels{""}, bodies{""};
    long long left_out = 0;  // sessions with a prompt that is too long
    std::size_t most_steps = 1;
    int deepest = 0;


    std::size_t bytes() const {
        return prompts.nodes.size() * sizeof(prefix_node) + steps.size() * sizeof(session_step) +
               (after.size() + next.size()) * sizeof(std::uint32_t) +
               sessions.size() * sizeof(session_entry);
    }
};

/// The graph of a recording that does not tell it; steps are in the order of their starts.
///
/// A step goes on from the ended one that it quotes, else from the one with whose text its own
/// begins longest (of the same model; the earliest of several); with none in common it branches off
/// the one that ended last. It waits for that one, and for every branch off the path behind it that
/// had ended as a whole, unless a step on the path did.
class derived_graph {
public:
    derived_graph(const std::vector<recorded_step>& steps, const prefix_tree& tree)
        : steps_(steps), tree_(tree), links_(steps.size()), children_(steps.size()) {
        for (std::uint32_t s = 0; s < steps.size(); ++s) by_end_.push_back(s);
        std::sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return ended(a) != ended(b) ? ended(a) < ended(b) : a < b;
        });
        std::size_t done = 0;
        for (std::uint32_t s = 0; s < steps.size(); ++s) {
            // One that takes no time ends when it begins, and is not behind itself.
            for (; by_end_[done] < s && had_ended(by_end_[done], s); ++done)
                note_end(by_end_[done]);
            const int from = steps[s].quotes != no_parent ? steps[s].quotes : longest(s);
            links_[s].goes_on_from =
                from != no_parent ? from
                : done > 0        ? static_cast<int>(by_end_[done - 1])
                                  : no_parent;
            const int behind = links_[s].goes_on_from;
            (behind == no_parent ? roots_ : children_[index(behind)]).push_back(s);
        }
        find_branch_ends();
        for (std::uint32_t s = 0; s < steps.size(); ++s) find_waits(s);
    }
    std::vector<step_links>& links() { return links_; }

private:
    /// Where nobody knows how long calls took, one had ended before all that began later.
    double ended(std::uint32_t s) const {
        return steps_[s].has_ended() ? steps_[s].end_s : steps_[s].at_s;
    }
    bool had_ended(std::uint32_t a, std::uint32_t before) const {
        return steps_[a].has_ended() ? steps_[a].end_s <= steps_[before].at_s
                                     : steps_[a].at_s < steps_[before].at_s;
    }
    /// Of ended steps that have the first tokens of a node in common: of a model, the earliest for
    /// each number of tokens. One that has fewer and began later is none that anybody asks for,
    /// here and in all pieces before, which are the longer one's, too.
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
    /// Children come behind their parents, so the way back meets them first.
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
    void sort_by_end(std::vector<std::uint32_t>& branches) const {
        std::sort(branches.begin(), branches.end(), [&](std::uint32_t a, std::uint32_t b) {
            const double x = ended(last_[a]), y = ended(last_[b]);
            return x != y ? x < y : a > b;
        });
    }
    void find_waits(std::uint32_t s) {
        step_links& l = links_[s];
        const double offset = steps_[s].at_s - steps_[0].at_s;
        std::vector<int> path;  // and what would be behind the first steps of all
        for (int p = l.goes_on_from; p != no_parent; p = links_[index(p)].goes_on_from)
            path.push_back(p);
        if (path.empty()) { l.wait_s = offset; return; }
        l.after = {static_cast<std::uint32_t>(path[0])};
        path.push_back(no_parent);
        int on_path = static_cast<int>(s);
        for (const int p : path) {
            // Those that ended last come last; what had ended before the step behind was joined.
            const std::vector<std::uint32_t>& all = p == no_parent ? roots_ : children_[index(p)];
            const auto before = [&](std::uint32_t step) {
                return std::partition_point(all.begin(), all.end(), [&](std::uint32_t branch) {
                    return had_ended(last_[branch], step);
                });
            };
            const auto first = p == path[0] ? all.begin() : before(l.after[0]);
            std::size_t found = 0;
            for (auto at = before(s); at > first && found < most_steps_before;) {
                const std::uint32_t branch = *--at;
                if (branch >= s || static_cast<int>(branch) == on_path) continue;
                add_leaves(branch, s, l.after);
                ++found;
            }
            on_path = p;
        }
        if (l.after.size() > most_steps_before) {  // those that ended last
            std::sort(l.after.begin() + 1, l.after.end(), [&](std::uint32_t a, std::uint32_t b) {
                return ended(a) != ended(b) ? ended(a) > ended(b) : a < b;
            });
            l.after.resize(most_steps_before);
        }
        double last_end = 0;
        bool is_known = true;
        for (const std::uint32_t a : l.after) {
            last_end = std::max(last_end, ended(a));
            is_known = is_known && steps_[a].has_ended();
        }
        if (is_known) l.wait_s = std::max(0.0, steps_[s].at_s - last_end);
        else l.at_s = offset;
    }
    void add_leaves(std::uint32_t branch, std::uint32_t before,
                    std::vector<std::uint32_t>& to) const {
        std::vector<std::uint32_t> open{branch};
        while (!open.empty()) {
            const std::uint32_t s = open.back();
            open.pop_back();
            if (children_[s].empty() && s < before) to.push_back(s);
            open.insert(open.end(), children_[s].begin(), children_[s].end());
        }
    }
    static std::size_t index(int step) { return static_cast<std::size_t>(step); }

    const std::vector<recorded_step>& steps_;
    const prefix_tree& tree_;
    std::vector<step_links> links_;
    std::vector<std::vector<std::uint32_t>> children_;
    std::vector<std::uint32_t> by_end_{}, last_{}, roots_{};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<int, std::uint32_t>> ended_in_{};
};

/// The lines of a graph, in which a step stands behind those that it waits for. Whoever goes on
/// from a step with most of it stays on its line (of several, whose branch ends last), and so does
/// what waits for the end of a line that nobody goes on with: a compaction.
inline std::vector<step_place> lines_of(const std::vector<recorded_step>& steps,
                                        const std::vector<step_links>& links,
                                        const prefix_tree& tree) {
    const std::size_t n = steps.size();
    const auto behind = [&](std::size_t i) {
        return static_cast<std::size_t>(links[i].goes_on_from);
    };
    const auto is_first = [&](std::size_t i) { return links[i].goes_on_from == no_parent; };
    std::vector<double> ends(n);  // of the branch that a step begins
    for (std::size_t i = n; i-- > 0;) {
        ends[i] = std::max({ends[i], steps[i].end_s, steps[i].at_s});
        if (!is_first(i)) ends[behind(i)] = std::max(ends[behind(i)], ends[i]);
    }
    std::vector<std::size_t> heir(n, n);
    std::vector<int> most(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
        if (is_first(i)) continue;
        const std::size_t p = behind(i);
        const int has = tree.common(steps[i].prompt, steps[p].prompt);
        if (steps[i].agent != steps[p].agent || 2 * has < steps[p].prompt.tokens) continue;
        if (heir[p] == n || has > most[p] || (has == most[p] && ends[i] > ends[heir[p]])) {
            heir[p] = i;
            most[p] = has;
        }
    }
    std::vector<step_place> places(n);
    std::vector<std::size_t> last{0};  // of each line
    for (std::size_t i = 1; i < n; ++i) {
        const step_place from = is_first(i) ? step_place{} : places[behind(i)];
        const std::size_t tip = last[from.line];
        const std::vector<std::uint32_t>& after = links[i].after;
        const bool ends_there = heir[tip] == n && steps[tip].agent == steps[i].agent &&
                                std::find(after.begin(), after.end(), tip) != after.end();
        if (!is_first(i) && (heir[behind(i)] == i || ends_there)) {
            places[i] = {from.line, places[tip].turn + 1, from.depth};
            last[from.line] = i;
        } else {
            places[i] = {static_cast<std::uint32_t>(last.size()), 0, std::min(from.depth + 1, 255)};
            last.push_back(i);
        }
    }
    return places;
}

/// Adds a session to a corpus. Its graph is sound: steps stand behind those that they wait for.
inline void add_session(session_corpus& c, const std::vector<recorded_step>& steps,
                        const std::vector<step_links>& links, double start_s, bool shares) {
    const std::vector<step_place> places = lines_of(steps, links, c.prompts);
    const auto first = static_cast<std::uint32_t>(c.steps.size());
    std::vector<std::vector<std::uint32_t>> next(steps.size());
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
        for (const std::uint32_t a : links[i].after) next[a].push_back(i);
        session_step s;
        s.prompt = steps[i].prompt;
        s.output_tokens = steps[i].output_tokens;
        s.wait_s = static_cast<float>(links[i].wait_s);
        s.at_s = static_cast<float>(links[i].at_s);
        s.first_after = static_cast<std::uint32_t>(c.after.size());
        s.after = static_cast<std::uint8_t>(links[i].after.size());
        s.depth = static_cast<std::uint8_t>(places[i].depth);
        c.deepest = std::max(c.deepest, places[i].depth);
        s.line = static_cast<std::uint16_t>(places[i].line);
        s.turn = static_cast<std::uint16_t>(places[i].turn);
        s.model = static_cast<std::uint8_t>(steps[i].model);
        s.label = static_cast<std::uint8_t>(steps[i].label);
        s.body = steps[i].body;
        c.after.insert(c.after.end(), links[i].after.begin(), links[i].after.end());
        c.steps.push_back(s);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        session_step& s = c.steps[first + i];
        s.first_next = static_cast<std::uint32_t>(c.next.size());
        s.next = static_cast<std::uint16_t>(next[i].size());
        c.next.insert(c.next.end(), next[i].begin(), next[i].end());
    }
    c.most_steps = std::max(c.most_steps, steps.size());
    c.sessions.push_back({first, static_cast<std::uint32_t>(steps.size()), start_s, shares});
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
