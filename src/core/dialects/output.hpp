// what output is, what a usage may hold, and when output came as a lump
// The one place that says it; readers of APIs and metrics follow.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // max, min, nth_element
#include <cstddef>  // ptrdiff_t, size_t
#include <cstdint>  // uint32_t
#include <initializer_list>
#include <string_view>
#include <utility>  // exchange

namespace llmbench {
inline namespace v1 {
namespace detail {

// 1. Output is what the model wrote and a user sees come, by the name of a field or of a part:
//
//    text       content, text, refusal, transcript
//    reasoning  names with "think" or "reason"; text that a part or its delta marks as a thought
//    call       tool_calls, function_call, parts and deltas of a "call" or "tool_use"
//    opaque     everything else: signatures, encrypted and redacted reasoning, citations,
//               references, ratings, sound, images, results of tools
//
//    What is opaque is no content event: it moves neither the first nor the last one, and no gap.

inline bool has_any_of(std::string_view name, std::initializer_list<std::string_view> parts) {
    return any_of(parts, [&](std::string_view p) { return name.find(p) != name.npos; });
}
inline bool is_opaque(std::string_view name) {
    return has_any_of(name, {"signature", "encrypt", "redact", "opaque", "citation", "result"});
}
inline bool names_thoughts(std::string_view name) {
    constexpr std::string_view others[] = {"_reason", "_id",     "_format", "_effort", "_type",
                                           "_state",  "_status", "_mode",   "_level",  "_budget",
                                           "_enabled", "_time",  "_tokens", "_model",  "_duration"};
    return has_any_of(name, {"think", "thought", "reason"}) && !is_opaque(name) &&
           !any_of(others, [&](std::string_view end) { return name.ends_with(end); });
}
/// Whether a part, or a delta, says of its text that it is reasoning: Gemini does, also through
/// LiteLLM.
inline bool is_marked_as_thought(const json_view& v) {
    for (const char* mark : {"thought", "is_thought", "thinking", "is_thinking", "is_reasoning"})
        if (true_member(v, mark)) return true;
    for (const char* within : {"extra_content.google", "provider_specific_fields"})
        if (const json_view* in = value_at(v, within); in && is_marked_as_thought(*in))
            return true;
    return names_thoughts(string_member(v, "type"));
}
inline bool names_call(std::string_view type) {
    return has_any_of(type, {"tool_use", "_call"}) && !is_opaque(type);
}

// 2. A usage has the tokens of the prompt and of the completion. Of other counts each API says
//    otherwise whether they are part of these, or apart; a total tells:
//    total = prompt + completion + those that are apart.
//
//    cached, written    of the prompt. Apart: the prompt is longer than its number
//    tool use           of searches and tools. Apart: neither prompt nor output
//    reasoning          of the completion. Apart: output only if it was streamed
//    rejected, media    of the completion, never streamed as text; neither is what is
//                       beyond its text and its reasoning, where both are known

/// The counts of a usage in tokens, -1 where absent.
struct usage_counts {
    int prompt_tokens = -1, completion_tokens = -1, total_tokens = -1;
    int cached_tokens = -1, written_tokens = -1, tool_use_tokens = -1;
    int rejected_tokens = -1, media_tokens = -1;
    int reasoning_tokens = -1, text_tokens = -1;
    bool cache_is_apart = false;  // in this API always
    bool is_mixed = false;        // some count stands there twice
};
inline constexpr int usage_counts::*all_counts[] = {
    &usage_counts::prompt_tokens,   &usage_counts::completion_tokens,
    &usage_counts::total_tokens,    &usage_counts::cached_tokens,
    &usage_counts::written_tokens,  &usage_counts::tool_use_tokens,
    &usage_counts::rejected_tokens, &usage_counts::media_tokens,
    &usage_counts::reasoning_tokens, &usage_counts::text_tokens};

/// A server may report several times. The latest number counts, but a zero replaces none.
inline void note_usage(usage_counts& so_far, const usage_counts& more) {
    for (int usage_counts::*count : all_counts)
        if (more.*count > 0 || so_far.*count < 0) so_far.*count = more.*count;
    so_far.cache_is_apart = so_far.cache_is_apart || more.cache_is_apart;
}

/// Names of counts in any API; `in_details`: in an object of details, too.
inline constexpr struct usage_name {
    std::string_view name;
    int usage_counts::*count;
    bool in_details = true;
} usage_names[] = {{"prompt_tokens", &usage_counts::prompt_tokens, false},
                   {"input_tokens", &usage_counts::prompt_tokens, false},
                   {"completion_tokens", &usage_counts::completion_tokens, false},
                   {"output_tokens", &usage_counts::completion_tokens, false},
                   {"total_tokens", &usage_counts::total_tokens, false},
                   {"cached_tokens", &usage_counts::cached_tokens},
                   {"cache_read_tokens", &usage_counts::cached_tokens},
                   {"cache_read_input_tokens", &usage_counts::cached_tokens},
                   {"prompt_cache_hit_tokens", &usage_counts::cached_tokens},
                   {"cache_write_tokens", &usage_counts::written_tokens},
                   {"cache_creation_tokens", &usage_counts::written_tokens},
                   {"cached_creation_tokens", &usage_counts::written_tokens},
                   {"cache_creation_input_tokens", &usage_counts::written_tokens},
                   {"tool_use_prompt_tokens", &usage_counts::tool_use_tokens},
                   {"citation_tokens", &usage_counts::tool_use_tokens},
                   {"reasoning_tokens", &usage_counts::reasoning_tokens},
                   {"thinking_tokens", &usage_counts::reasoning_tokens},
                   {"rejected_prediction_tokens", &usage_counts::rejected_tokens}};

/// Takes a count, or the greater one of two.
inline void take_count(const json_view& v, usage_counts& c, int usage_counts::*count) {
    c.is_mixed = c.is_mixed || c.*count >= 0;
    c.*count = std::max(c.*count, count_of(v));
    v.used = json_view::use::count;
    while (all_counts[v.which] != count) ++v.which;
}
/// Takes the counts of a usage, or of its details. Under two names the greater one counts.
inline void read_usage(const json_view& usage, usage_counts& c, std::string_view of = {}) {
    const bool of_output = of.starts_with("completion") || of.starts_with("output");
    for (const auto& [name, v] : members_of(usage)) {
        if (of.empty() && name.ends_with("_details")) read_usage(*v, c, name);
        const int n = count_of(*v);
        if (n < 0) continue;
        for (const usage_name& u : usage_names)
            if (name == u.name && (of.empty() || u.in_details)) take_count(*v, c, u.count);
        if (!of_output || !name.ends_with("_tokens")) continue;
        if (has_any_of(name, {"audio", "image", "video"})) {
            const int others = std::max(c.media_tokens, 0);
            take_count(*v, c, &usage_counts::media_tokens);
            c.media_tokens = sum_of_counts(others, n);
        }
        if (name.starts_with("rejected") && v->used != json_view::use::count)
            take_count(*v, c, &usage_counts::rejected_tokens);
        if (name == "text_tokens") take_count(*v, c, &usage_counts::text_tokens);
    }
}

/// Speculative decoding (up to 16 drafts a step, mostly 3 to 8) and multi-step scheduling send
/// several tokens per event. More mean buffering. Chat templates have as many special tokens.
inline constexpr int max_event_tokens = 16;

/// The content of an answer: events, decoded bytes, and tokens of its first event by the server.
struct streamed_content {
    int events = 0, reasoning_events = 0;
    int bytes = 0, reasoning_bytes = 0;
    int first_tokens = 1, first_bytes = 0;
    bool is_counted = false;     // by the server
    bool hides_thought = false;  // encrypted or redacted
    int textless = 0;            // tokens without text after the last event, where that is told
};
/// Whether as many tokens can have come: one per event, or two bytes each. A language with shorter
/// tokens in events of several is not known.
inline bool bears(int events, int bytes, long long tokens) {
    const long long n = tokens - max_event_tokens;
    return n * 4 <= events * 5ll || n * 2 <= bytes;
}

/// What an answer's tokens are.
struct token_counts {
    int prompt = -1, cached = -1, output = -1;
    int reasoning = -1;  // of the output
    int hidden = 0;      // of the output, not streamed; -1: number unknown
    int before = 0;      // of these, those before the first event
};
/// The counts of a usage that are apart, as bits of `names`: those that make up the total. If
/// several do, those without reasoning.
inline unsigned counts_apart(const usage_counts& u, const int (&named)[6], long long& rest) {
    rest = -1;
    if (u.total_tokens < 0 || u.prompt_tokens < 0 || u.completion_tokens < 0) return 0;
    rest = 0ll + u.total_tokens - u.prompt_tokens - u.completion_tokens;
    for (unsigned some = 0; some < 64; ++some) {
        long long sum = 0;
        for (unsigned k = 0; k < 6; ++k) sum += some >> k & 1 ? named[k] : 0;
        if (sum == rest) return rest = 0, some;
    }
    return 0;
}
/// Only what was streamed counts as output, and only as far as the text bears it.
inline token_counts tokens_of(const usage_counts& u, const streamed_content& s) {
    const auto some = [](int n) { return std::max(n, 0); };
    const int named[] = {some(u.cached_tokens),   some(u.written_tokens), some(u.tool_use_tokens),
                         some(u.rejected_tokens), some(u.media_tokens),   some(u.reasoning_tokens)};
    long long rest = 0;  // of the total, unexplained
    const unsigned apart = counts_apart(u, named, rest);
    token_counts t{u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.reasoning_tokens};
    for (unsigned k = 0; k < 2; ++k)
        if (u.cache_is_apart || apart >> k & 1) t.prompt = sum_of_counts(some(t.prompt), named[k]);
    if (t.output < 0 || s.events == 0) return t;
    const bool streams_thought = s.reasoning_bytes > 0;
    const bool names_any = any_of(named, [](int n) { return n > 0; });
    long long thought_apart = apart >> 5 & 1 || (rest < 0 && named[5] > t.output) ? named[5] : 0;
    if (!names_any && rest > 0 && streams_thought) thought_apart = rest;
    const bool thought_is_borne =
        bears(s.reasoning_events, s.reasoning_bytes, std::max<long long>(thought_apart, named[5]));
    if (streams_thought && !thought_is_borne && !s.is_counted) t.hidden = -1;
    if (thought_apart > 0) {
        const bool adds = streams_thought && thought_is_borne;
        if (adds) t.output = sum_of_counts(t.output, static_cast<int>(thought_apart));
        else t.reasoning = u.reasoning_tokens > 0 ? 0 : u.reasoning_tokens;
    } else if (!streams_thought) {
        t.before = named[5];
    }
    if (t.hidden < 0) return t.before = 0, t;
    const int most = std::max(t.output - s.events, 0);  // each event has at least one
    long long other = 0;
    for (unsigned k = 3; k < 5; ++k) other += apart >> k & 1 ? 0 : named[k];
    if (u.text_tokens > 0 && (named[5] > 0 || !streams_thought))
        other = std::max(other, 0ll + t.output - u.text_tokens - named[5]);
    // There may be more events than tokens: a router splits the text anew, or some are apart.
    const long long left = t.output - t.before - other;
    const bool is_sure = other > 0 || rest == 0;
    if (is_sure && t.before + other > 0 && (s.events - 2) * 4ll > left * 5)
        return t.before = 0, t.hidden = -1, t;
    if (most == 0) return t.before = 0, t;
    if (t.before == 0 && s.events > 1 && s.first_bytes > 0 &&
        s.first_tokens - max_event_tokens > s.first_bytes)
        t.before = s.first_tokens - 1;
    t.before = std::min(t.before, most);
    t.hidden = static_cast<int>(std::min<long long>(t.before + other, most));
    const int shown = t.output - t.hidden - s.textless;
    const bool may_hide = (shown - s.events) * 4ll > s.events && !s.is_counted && s.bytes > 0;
    const bool hides_some = s.hides_thought && !streams_thought && named[5] == 0 && rest <= 0;
    if (may_hide && (hides_some || s.bytes / 2 < shown)) t.hidden = -1;
    return t;
}

// 3. A lump is output that comes before it can have been generated since the first content, at four
//    times the usual pace: over 5 % of the tokens (hidden_s). Its share is that of its bytes, so
//    that one event counts as what it brings. A later pause is no lump: its tokens had that time.

/// Tokens that came at once, beyond those of the first event by the server. `bytes`: of each event;
/// `gaps_us`: before each but the first; `tokens`: of all, `first` of them in the first event.
/// Events within a tenth of the mean gap came together. A long token is no lump: 32 bytes beyond
/// the usual are.
inline int tokens_at_once(const vector<std::uint32_t>& bytes, const vector<std::uint32_t>& gaps_us,
                          int tokens, int first) {
    if (gaps_us.empty() || gaps_us.size() + 1 != bytes.size() || tokens <= first) return 0;
    long long all = bytes[0], spread_us = 0;
    for (std::size_t i = 0; i < gaps_us.size(); ++i) {
        all += bytes[i + 1];
        spread_us += gaps_us[i];
    }
    const long long together_us = spread_us / 10 / static_cast<long long>(gaps_us.size());
    vector<double> pieces, pauses_us;
    long long piece = bytes[0], pause_us = 0;
    for (std::size_t i = 0; i < gaps_us.size(); ++i) {
        pause_us += gaps_us[i];
        if (gaps_us[i] > together_us) {
            pieces.push_back(static_cast<double>(std::exchange(piece, 0)));
            pauses_us.push_back(static_cast<double>(std::exchange(pause_us, 0)));
        }
        piece += bytes[i + 1];
    }
    pieces.push_back(static_cast<double>(piece));
    if (all == 0 || pauses_us.empty()) return 0;
    const auto middle_of = [](vector<double> v) {
        const auto at = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
        std::nth_element(v.begin(), at, v.end());
        return *at;
    };
    const double us = middle_of(pauses_us), usual = middle_of(pieces);
    const double per_byte = tokens / static_cast<double>(all);
    double most = 0, came = 0, after_us = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        came += pieces[i];
        if (i > 0) after_us += pauses_us[i - 1];
        most = std::max(most, came - std::max(usual, first / per_byte) - 4 * usual * after_us / us);
    }
    return most <= 32 ? 0 : static_cast<int>(most * per_byte);
}

// 4. A token may have no text: special ones, with which a model goes on where its end is ignored. A
//    running usage tells when they came. Without one the finish does, where it is far behind the
//    last text and usage has tokens without an event: the last of them came with it.

/// The end of an answer, in times of one unit.
struct textless_tail {
    int gaps = 0, paced = 0;      // of events with text; tokens after the first event
    double spread = 0, tail = 0;  // from the first text to the last, and from there to the finish
    int without_event() const { return paced - gaps; }
    /// Over 5 % of the tokens have no event, and the finish is late by over 5 % and two gaps.
    bool is_far() const {
        return gaps > 0 && without_event() * 20 >= paced && tail * 20 > spread &&
               tail * gaps > 2 * spread;
    }
    /// Whether tokens without an event fill the tail at the pace of the others, within a factor of
    /// two. If not, events may have brought several, and the finish may have none.
    bool is_told() const {
        const double expected = spread / gaps * without_event();
        return is_far() && tail <= 2 * expected && expected <= 2 * tail;
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
