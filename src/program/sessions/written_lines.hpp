// sessions as the JSON lines that sessions{} reads
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/traffic/prefix_tree.hpp"
#include "extensions/sessions/core/session_graph.hpp"

#include <algorithm>  // min
#include <charconv>  // to_chars
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Finds the earlier step with whose prompt one begins, and the number of common tokens.
class earlier_prompts {
public:
    struct part {
        std::uint32_t session = 0, step = 0;
        int tokens = 0;
    };
    explicit earlier_prompts(const prefix_tree& tree) : tree_(tree), longest_(tree.nodes.size()) {}
    part add(const tree_prompt& p, std::uint32_t session, std::uint32_t step) {
        part kept;
        tree_.each_piece(p, [&](std::uint32_t node, int, int to) {
            part& longest = longest_[node];
            if (kept.tokens == 0 && longest.tokens > 0) {
                kept = longest;
                kept.tokens = std::min(to, longest.tokens);
            }
            if (to > longest.tokens) longest = {session, step, to};
        });
        return kept;
    }

private:
    const prefix_tree& tree_;
    vector<part> longest_;  // of the prompts that have tokens of a node
};

/// Returns the shortest text that reads back as the same number.
inline std::string number_text(float v) {
    char digits[40];
    return {digits, std::to_chars(digits, digits + sizeof digits, v).ptr};
}
inline std::string name_of_number(std::size_t i) { return std::to_string(i + 1); }

/// Returns a corpus as lines that read back as the same sessions. Numbers name sessions and steps.
inline std::string session_lines(const session_corpus& c) {
    std::string out;
    earlier_prompts earlier(c.prompts);
    for (std::uint32_t i = 0; i < c.sessions.size(); ++i) {
        const session_entry& session = c.sessions[i];
        const session_step* steps = c.steps.data() + session.first;
        for (std::uint32_t k = 0; k < session.steps; ++k) {
            const session_step& s = steps[k];
            json_writer j(layout::one_line);
            j.open('{').field("session", name_of_number(i));
            if (k == 0 && session.start_s >= 0) j.field("start", session.start_s);
            if (k == 0 && session.shares) j.field("shared", true);
            j.field("step", name_of_number(k));
            if (session.steps > 1)
                j.field("agent", s.line == 0 ? "main" : name_of_number(s.line - 1u));
            const std::uint32_t* after = c.after.data() + s.first_after;
            if (s.after > 0) j.key("after").open('[');
            for (std::uint32_t a = 0; a < s.after; ++a) j.value(name_of_number(after[a]));
            if (s.after > 0) j.close();
            // Of a longer one nothing is left beside workload.max_wait.
            constexpr auto most_s = static_cast<float>(longest_time_s);
            if (s.wait_s > 0) j.key("wait").raw(number_text(std::min(s.wait_s, most_s)));
            if (s.at_s > 0) j.key("at").raw(number_text(std::min(s.at_s, most_s)));
            earlier_prompts::part kept = earlier.add(s.prompt, i, k);
            if (kept.tokens > 0) {
                // Of equal prompts, the one of the step that this one continues is clearest.
                if (s.after > 0 &&
                    c.prompts.common(s.prompt, steps[after[0]].prompt) == kept.tokens)
                    kept = {i, after[0], kept.tokens};
                j.key("keeps").open('[').value(name_of_number(kept.step));
                j.value(static_cast<long long>(kept.tokens));
                if (kept.session != i) j.value(name_of_number(kept.session));
                j.close();
            }
            j.field("prompt_tokens", s.prompt.tokens).field("output_tokens", s.output_tokens);
            if (s.model > 0) j.field("model", c.models[s.model]);
            if (s.label > 0) j.field("label", c.labels[s.label]);
            if (s.body > 0) j.key("body").raw("{" + c.bodies[s.body].substr(1) + "}");
            out += j.close().text() + "\n";
        }
    }
    return out;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
