// positions in a trace
// A trace is a row of positions; each conversation takes as many as the longest one has turns. So
// the request at a position does not depend on the lengths of other conversations.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "core/traffic/recorded.hpp"
#include "core/traffic/lengths.hpp"
#include "core/traffic/tokens.hpp"

#include <algorithm>  // max, min
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr std::size_t max_session_steps = 10000;

/// The position of a request: its conversation, and its turn in it.
struct trace_position {
    std::size_t conversation = 0, turn = 0;
    std::size_t first = 0;  // the position of the conversation's first turn
    std::size_t index() const { return first + turn; }
};

/// The lengths of a request, the same in every repeat and variant; 0 if they are not given.
struct trace_item {
    int prompt_tokens = 0;  // of the new message, without the earlier turns
    int output_tokens = 0;
};

struct source_facts {
    std::size_t most_turns = 1;    // positions that each of its conversations takes
    bool makes_up_prompts = false; // with the lengths that are given
    bool repeats_prompts = false;  // the same ones in every repeat and in both variants
    bool shares_system_prompt = true;
    bool is_graph = false;         // a step may wait for several others
    bool plays_sessions = false;   // as recorded: each step has its own wait, no answer is fed back
    int deepest = 0;               // of its steps
    const vector<std::string>* labels = nullptr;  // of its steps, if there are several
    bool expects_short_outputs = true;  // forced answers may have one token
};

/// A request in the graph of its session; a conversation is a graph without branches.
struct graph_step {
    vector<std::uint32_t> after{}, next{};  // waits for these, these wait for it
    double wait_s = 0;  // after the last of the former
    double at_s = 0;    // at the earliest, from its session's start
    double max_wait_s = 1e8;  // after the last of the former, even if at_s is later
    int turn = 0;       // in its line
    int depth = 0;      // 0: the main line
    std::uint32_t line = 0;  // a number, different for each line of a session
    unsigned char label = 0;  // index among the workload's labels
};
inline graph_step step_of_line(std::size_t turn, std::size_t turns) {
    graph_step s{.turn = static_cast<int>(turn)};
    if (turn > 0) s.after = {static_cast<std::uint32_t>(turn - 1)};
    if (turn + 1 < turns) s.next = {static_cast<std::uint32_t>(turn + 1)};
    return s;
}

/// The source of lengths and turns, which are the same in every repeat and variant.
struct trace_parameters {
    std::uint64_t seed = 1;
    const workload_files& files;
};
/// The source of words, which differ between repeats, variants and executions of a gate.
struct prompt_parameters {
    std::uint64_t salt = 0;
    const token_fit& fit;
    const vector<std::string>& answers;  // to the earlier turns of the conversation
};

/// The streams of random numbers, which must not overlap. Schedules have streams 1 and 2.
namespace streams {
inline constexpr std::uint64_t shared_words = 1;
inline constexpr std::uint64_t shared_length = 3;
inline constexpr std::uint64_t places = 1000;  // one for each position: its lengths, its words
inline constexpr std::uint64_t turns = 1ull << 40;
inline constexpr std::uint64_t parts = 1ull << 39;  // the order of a mix's parts
inline constexpr std::uint64_t system_prompts = 1ull << 41;
inline constexpr std::uint64_t groups = 1ull << 42;
inline constexpr std::uint64_t blocks = 1ull << 43;
inline constexpr std::uint64_t helpers = 3ull << 43;   // of a conversation's subagents
inline constexpr std::uint64_t thinking = 5ull << 43;  // before a position
inline constexpr std::uint64_t pauses = 7ull << 43;    // of users, after a position
inline constexpr std::uint64_t group_words = 1ull << 44;  // between two groups
inline constexpr std::uint64_t twins = 9ull << 43;
}  // namespace streams

/// Returns the length of the text that many requests share: it is drawn once.
inline int shared_length(const length_distribution& d, std::uint64_t seed) {
    generator random(seed, streams::shared_length);
    return drawn_length(d, random, 0);
}

/// Puts a line into a request: earlier exchanges as history, its last position as the prompt. A
/// failed exchange has no answer and is left out. If the server keeps the history, `answers` are
/// the ids of responses, the last of which has all before it.
template <class PromptOf>
void add_turns(request_spec& r, const vector<std::size_t>& line,
               const vector<std::string>& answers, PromptOf&& prompt_of) {
    for (const std::size_t turn : line) {
        if (turn == line.back()) break;
        if (turn >= answers.size() || answers[turn].empty()) continue;
        if (r.server_history) {
            r.previous_response = answers[turn];
            r.history.clear();
            continue;
        }
        r.history.push_back({"user", prompt_of(turn)});
        r.history.push_back({"assistant", answers[turn]});
    }
    r.prompt = prompt_of(line.back());
}
/// Returns the line of a conversation without subagents.
inline vector<std::size_t> line_to(std::size_t last) {
    vector<std::size_t> line(last + 1);
    for (std::size_t turn = 0; turn <= last; ++turn) line[turn] = turn;
    return line;
}

/// Appends at most `most` words of a recorded prompt, `scale` for each of its tokens, and returns
/// how many. The words of a node are the same in all prompts that have it.
inline int append_prompt(std::string& words, const prefix_tree& tree, const tree_prompt& p,
                         double scale, int most, const prompt_parameters& w) {
    vector<std::pair<std::uint32_t, int>> pieces;  // node, its end in the prompt
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

/// The length keeps "ab", "c" apart from "a", "bc".
inline void add_text(fnv1a& h, const std::string& s) {
    h.add(static_cast<long long>(s.size()));
    h.add(s.data(), s.size());
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
