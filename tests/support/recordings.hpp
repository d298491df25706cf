// Recordings of sessions: read from texts, written as lines, and held against each other.
#pragma once

#include "extensions/sessions/core/session_lines.hpp"
#include "program/sessions/recordings.hpp"
#include "program/sessions/written_lines.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace recordings {

using namespace llmbench;
using namespace llmbench::detail;

inline byte_stream stream(std::string text, const std::string& name) {
    return {[text = std::move(text), at = std::size_t{0}](char* room, std::size_t size) mutable {
                const std::size_t n = std::min(size, text.size() - at);
                std::memcpy(room, text.data() + at, n);
                at += n;
                return n;
            },
            name};
}
/// Of lines of ours.
inline session_corpus read_lines(const std::string& text, int max_context = 0) {
    byte_stream in = stream(text, "x.json");
    session_reader reader(max_context);
    reader.read(in);
    return reader.finished("x.json");
}
/// Of files of a format of `llmbench convert`, by their texts; each is named x.json.
inline converted_corpus read(const std::string& format, const vector<std::string>& files) {
    for (const recording_format& f : recording_formats)
        if (format == f.name)
            return f.read(files, [](const std::string& text) { return stream(text, "x.json"); },
                          "x.json");
    throw std::logic_error("no such format: " + format);
}

inline const session_step& step(const session_corpus& c, std::size_t i, std::size_t session = 0) {
    return c.steps[c.sessions[session].first + i];
}
using step_list = vector<unsigned>;
inline step_list after(const session_corpus& c, std::size_t i, std::size_t session = 0) {
    const session_step& s = step(c, i, session);
    return {c.after.begin() + s.first_after, c.after.begin() + s.first_after + s.after};
}
inline step_list next(const session_corpus& c, std::size_t i, std::size_t session = 0) {
    const session_step& s = step(c, i, session);
    return {c.next.begin() + s.first_next, c.next.begin() + s.first_next + s.next};
}

/// Where two corpora differ in anything that is played or reported, "" where they do not. What
/// prompts have in common is compared for every two of them.
inline std::string difference(const session_corpus& a, const session_corpus& b) {
    if (a.sessions.size() != b.sessions.size() || a.steps.size() != b.steps.size() ||
        a.left_out != b.left_out || a.max_steps != b.max_steps || a.deepest != b.deepest)
        return "the corpus";
    for (std::size_t k = 0; k < a.sessions.size(); ++k) {
        const session_entry &s = a.sessions[k], &t = b.sessions[k];
        if (s.first != t.first || s.steps != t.steps || s.start_s != t.start_s ||
            s.shares != t.shares)
            return printed("session %zu", k);
        for (std::size_t i = 0; i < s.steps; ++i)
            if (after(a, i, k) != after(b, i, k) || next(a, i, k) != next(b, i, k))
                return printed("what step %zu of session %zu is between", i, k);
    }
    for (std::size_t i = 0; i < a.steps.size(); ++i) {
        const session_step &s = a.steps[i], &t = b.steps[i];
        const std::string which = printed(" of step %zu", i);
        if (s.output_tokens != t.output_tokens || s.prompt.tokens != t.prompt.tokens)
            return "the lengths" + which;
        if (s.wait_s != t.wait_s || s.at_s != t.at_s) return "the times" + which;
        if (s.line != t.line || s.turn != t.turn || s.depth != t.depth) return "the place" + which;
        if (a.models[s.model] != b.models[t.model] || a.labels[s.label] != b.labels[t.label] ||
            a.bodies[s.body] != b.bodies[t.body])
            return "the names" + which;
        int kept = 0;
        for (std::size_t j = 0; j < i; ++j) {
            const int common = a.prompts.common(s.prompt, a.steps[j].prompt);
            if (common != b.prompts.common(t.prompt, b.steps[j].prompt))
                return printed("what step %zu has in common with", j) + which;
            kept = std::max(kept, common);
        }
        if (t.prompt.kept != kept) return "what is kept" + which;
    }
    return "";
}
/// The same of a corpus and what its lines are read as.
inline std::string lost_in_lines(const session_corpus& c) {
    return difference(c, read_lines(session_lines(c)));
}

}  // namespace recordings
