// places of a trace
// A trace is a row of places, and each conversation takes as many of them as the longest one has
// turns: what stands on a place depends on the place alone, not on how long others are.
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/tokens.hpp"

#include <algorithm>  // max, min
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Where a request's conversation is, and which turn of it.
struct trace_place {
    std::size_t conversation = 0, turn = 0;
    std::size_t first = 0;  // the place of the conversation's first turn
    std::size_t index() const { return first + turn; }
};

/// Lengths that the request on a place asks for, the same in every repeat and arm; 0 where nothing
/// says so.
struct trace_item {
    int prompt_tokens = 0;  // of the new message; what was said before comes on top of it
    int output_tokens = 0;
};

/// What a request is in the graph of its session: a conversation is the graph that is a line.
struct graph_step {
    std::vector<std::uint32_t> after{}, next{};  // that it waits for, that wait for it
    double wait_s = 0;  // behind the last of the former
    double at_s = 0;    // not before this, from its session's start
    int turn = 0;       // of its line
    int depth = 0;      // 0 is the main line
    std::uint32_t line = 0;  // of the session, another number for each
    unsigned char label = 0;  // its place among those of the workload
};
inline graph_step step_of_line(std::size_t turn, std::size_t turns) {
    graph_step s{.turn = static_cast<int>(turn)};
    if (turn > 0) s.after = {static_cast<std::uint32_t>(turn - 1)};
    if (turn + 1 < turns) s.next = {static_cast<std::uint32_t>(turn + 1)};
    return s;
}

/// What lengths and turns are drawn from: the same in every repeat and arm.
struct trace_terms {
    std::uint64_t seed = 1;
    const workload_files& files;
};
/// What words are drawn from: others in every repeat and arm, and in every execution of a gate.
struct prompt_terms {
    std::uint64_t salt = 0;
    const token_fit& fit;
    const std::vector<std::string>& answers;  // to the earlier turns of the conversation
};

/// The streams of random numbers, which must not meet; those of schedules are 1 and 2.
namespace streams {
inline constexpr std::uint64_t shared_words = 1;
inline constexpr std::uint64_t shared_length = 3;
inline constexpr std::uint64_t places = 1000;  // and on: lengths, and words, of each place
inline constexpr std::uint64_t turns = 1ull << 40;
inline constexpr std::uint64_t parts = 1ull << 39;  // of a mix: their order
inline constexpr std::uint64_t system_prompts = 1ull << 41;
inline constexpr std::uint64_t groups = 1ull << 42;
inline constexpr std::uint64_t blocks = 1ull << 43;
inline constexpr std::uint64_t helpers = 3ull << 43;   // of a conversation
inline constexpr std::uint64_t thinking = 5ull << 43;  // before a place
inline constexpr std::uint64_t pauses = 7ull << 43;    // of users, behind it
inline constexpr std::uint64_t group_words = 1ull << 44;  // between two groups
}  // namespace streams

/// Tokens of what many requests have in common: there is one draw of them.
inline int shared_length(const length_distribution& d, std::uint64_t seed) {
    generator random(seed, streams::shared_length);
    return drawn_length(d, random, 0);
}

/// Puts a line into a request: what was said on these places of a conversation, and the last of
/// them as the prompt. An exchange that failed left no answer, and is not spoken of again.
template <class PromptOf>
void add_turns(request_spec& r, const std::vector<std::size_t>& line,
               const std::vector<std::string>& answers, PromptOf&& prompt_of) {
    for (const std::size_t turn : line) {
        if (turn == line.back()) break;
        if (turn >= answers.size() || answers[turn].empty()) continue;
        r.history.push_back({"user", prompt_of(turn)});
        r.history.push_back({"assistant", answers[turn]});
    }
    r.prompt = prompt_of(line.back());
}
/// The line of a conversation that nobody helps.
inline std::vector<std::size_t> line_to(std::size_t last) {
    std::vector<std::size_t> line(last + 1);
    for (std::size_t turn = 0; turn <= last; ++turn) line[turn] = turn;
    return line;
}

/// Adds the words of a recorded prompt, of so many times its tokens and `most` of them. Those of a
/// node are the same in whatever prompts have it. Returns how many.
inline int append_prompt(std::string& words, const prefix_tree& tree, const tree_prompt& p,
                         double scale, int most, const prompt_terms& w) {
    std::vector<std::pair<std::uint32_t, int>> pieces;  // to where of the prompt
    tree.each_piece(p, [&](std::uint32_t node, int, int to) { pieces.emplace_back(node, to); });
    int done = 0;
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
        generator random(w.salt, streams::blocks + piece->first);
        const int to = std::min(most, w.fit.words_in(piece->second * scale));
        append_words(words, to - done, random, w.fit);
        done = std::max(done, to);
    }
    return done;
}

/// "ab", "c" is not "a", "bc".
inline void add_text(fnv1a& h, const std::string& s) {
    h.add(static_cast<long long>(s.size()));
    h.add(s.data(), s.size());
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
