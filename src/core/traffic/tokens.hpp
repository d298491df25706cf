// prompts of a given number of tokens
#pragma once

#include "core/base/vector.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // max, replace
#include <cmath>  // llround
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

// Plain words of one token each in common vocabularies: a prompt of n words has about n tokens.
inline constexpr const char* prompt_words[] = {
    "the",   "of",   "and",  "to",   "in",    "is",     "for",  "on",   "that", "by",    "this",
    "with",  "you",  "it",   "not",  "or",    "be",     "are",  "from", "at",   "as",    "your",
    "all",   "have", "new",  "more", "an",    "was",    "we",   "will", "home", "can",   "us",
    "about", "if",   "page", "my",   "has",   "search", "free", "but",  "our",  "one",   "other",
    "do",    "no",   "time", "they", "site",  "he",     "up",   "may",  "what", "which", "their",
    "news",  "out",  "use",  "any",  "there", "see",    "only", "so",   "his"};

/// Lower ids are often special tokens and single bytes.
inline constexpr std::size_t first_token_id = 2000;

/// How a server counts synthetic prompts, as far as it reported before the load. It determines
/// their words and how many; the lengths, and so the trace, do not depend on the server.
struct token_fit {
    enum class quality : unsigned char { unknown, average, exact };
    quality lengths = quality::unknown;
    bool as_ids = false;               // prompts are lists of token ids, their "words" are ids
    vector<std::size_t> words{};  // of prompt_words; empty: all of them
    std::size_t last_id = 0;           // of those ids, 0 if only as many as words are known
    double per_word = 1;               // tokens of a word after a space
    double overhead = 0;               // tokens around the prompt
    bool is_unanswered = false;        // not exact, and a question got no answer in time

    std::string word(std::size_t i) const {
        return as_ids ? std::to_string(first_token_id + i) : prompt_words[i];
    }
    int words_in(double tokens) const {
        return static_cast<int>(std::llround(tokens / per_word));
    }
    /// A prompt has at least one word.
    int words_of_prompt(double tokens) const { return std::max(1, words_in(tokens - overhead)); }
    /// A word to go behind others. The first one has no space before it and may count otherwise; an
    /// exact fit always takes the same one.
    std::string drawn_word(generator& random, const std::string& others) const {
        if (last_id > 0)
            return std::to_string(first_token_id + random.below(last_id - first_token_id + 1));
        if (words.empty()) return prompt_words[random.below(std::size(prompt_words))];
        const std::size_t at = random.below(words.size());
        return word(words[others.empty() && lengths == quality::exact && !as_ids ? 0 : at]);
    }
    std::string all_words() const {
        std::string all;
        for (const std::size_t i : words) all += (all.empty() ? "" : " ") + word(i);
        return all;
    }
};
inline std::string id_list(std::string words) {
    std::replace(words.begin(), words.end(), ' ', ',');
    return "[" + words + "]";
}

/// Returns prompt_words that are one token after a space, all or at least `enough`; none if
/// `count(text)`, the tokens of a text, returns -1. A word has at least one token, so one count
/// settles many of them.
template <class Count>
vector<std::size_t> one_token_vocabulary(Count&& count,
                                         std::size_t enough = std::size(prompt_words)) {
    const int start = count(prompt_words[0]);
    vector<std::size_t> found;
    bool reported = start > 0;
    const auto search = [&](auto&& self, std::size_t from, std::size_t to) -> void {
        if (found.size() >= enough) return;
        vector<std::size_t> some;
        for (std::size_t i = from; i < to; ++i) some.push_back(i);
        const token_fit these{.words = some};
        const int n = reported ? count(prompt_words[0] + (" " + these.all_words())) : -1;
        reported = n >= start;
        if (!reported) return;
        if (n - start == static_cast<int>(to - from)) {
            found.insert(found.end(), some.begin(), some.end());
        } else if (to - from > 1) {
            self(self, from, (from + to) / 2);
            self(self, (from + to) / 2, to);
        }
    };
    search(search, 0, std::size(prompt_words));
    return reported ? found : vector<std::size_t>();
}

inline vector<std::size_t> whole_vocabulary() {
    vector<std::size_t> all(std::size(prompt_words));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
}

/// Fits `fit` to `count(prompt)`, the server's count for a request with this prompt, or -1. A count
/// below one token a word leaves out cached tokens, so it is ignored.
template <class Count>
token_fit fitted_vocabulary(token_fit fit, Count&& count) {
    const std::string text = fit.all_words();
    const int once = count(text);
    const int twice = once > 0 ? count(text + " " + text) : -1;
    const int n = static_cast<int>(fit.words.size());
    fit.per_word = static_cast<double>(twice - once) / n;
    fit.overhead = once - n * fit.per_word;
    if (twice < 0 || fit.per_word < 1 || fit.per_word > 20 || fit.overhead <= -2) return {};
    fit.lengths = twice - once == n ? token_fit::quality::exact : token_fit::quality::average;
    return fit;
}

/// Returns words of one token each if there are enough, counted by `count_text` for a text or by
/// `count_prompt` for a request, else all words. Requests are slow, so they search no further.
template <class CountText, class CountPrompt>
token_fit fitted_tokens(CountText&& count_text, CountPrompt&& count_prompt) {
    constexpr std::size_t least_vocabulary = 16;
    token_fit some{.words = one_token_vocabulary(count_text)};
    if (some.words.size() >= least_vocabulary) return fitted_vocabulary(some, count_prompt);
    const token_fit all = fitted_vocabulary({.words = whole_vocabulary()}, count_prompt);
    if (all.lengths != token_fit::quality::average) return all;
    some.words = one_token_vocabulary(count_prompt, least_vocabulary);
    if (some.words.size() < least_vocabulary) return all;
    some = fitted_vocabulary(some, count_prompt);
    return some.lengths == token_fit::quality::exact ? some : all;
}

/// Returns characters of many scripts: their tokens lie all over a vocabulary, to its end.
inline std::string text_of_many_scripts() {
    constexpr struct { unsigned from, to, step; } scripts[] = {
        {0x00c0, 0x024f, 3},  {0x0370, 0x052f, 5},   {0x05d0, 0x05ea, 1}, {0x0621, 0x064a, 1},
        {0x0904, 0x0939, 1},  {0x0e01, 0x0e3a, 1},   {0x3041, 0x30fe, 3}, {0x4e00, 0x9fa5, 61},
        {0xac00, 0xd7a3, 61}};
    std::string all;
    const auto put = [&](unsigned bits) { all += static_cast<char>(bits); };
    for (const auto& s : scripts)
        for (unsigned c = s.from; c <= s.to; c += s.step) {
            if (c < 0x800) {
                put(0xc0 | c >> 6);
            } else {
                put(0xe0 | c >> 12);
                put(0x80 | (c >> 6 & 0x3f));
            }
            put(0x80 | (c & 0x3f));
        }
    return all;
}

/// Returns token ids instead of words if `count_ids(ids)`, the tokens of a request with this list
/// as its prompt, counts one for each, else nothing. No id above `known`, the largest one that the
/// tokenizer returned, is tried: some servers do not survive that.
template <class CountIds>
token_fit fitted_ids(CountIds&& count_ids, std::size_t known = 0) {
    token_fit fit = fitted_vocabulary({.as_ids = true, .words = whole_vocabulary()}, count_ids);
    if (fit.lengths != token_fit::quality::exact) return {};
    if (known < first_token_id + std::size(prompt_words)) return fit;
    constexpr std::size_t looks = 256;  // spread evenly over all ids
    std::string some;
    for (std::size_t i = 0; i < looks; ++i)
        some += (i ? " " : "") +
                std::to_string(first_token_id + (known - first_token_id) * i / (looks - 1));
    if (count_ids(some) == std::lround(looks + fit.overhead)) fit.last_id = known;
    return fit;
}

inline const char* to_string(token_fit::quality q) {
    return name_at({"unknown", "average", "exact"}, q);
}
/// `shortest`: of the planned prompts, 0 if unknown.
inline std::string fit_text(const token_fit& f, double shortest = 0) {
    const std::string around = printed(", %.0f around a prompt", f.overhead);
    const double least = f.overhead + 1;  // a prompt has at least one word
    const bool is_too_short = shortest > 0 && shortest < least;
    const std::string exact =
        is_too_short ? printed("prompt lengths exact in tokens from %.0f on (%.0f are asked for)",
                               least, shortest)
                     : "prompt lengths exact in tokens";
    switch (f.lengths) {
    case token_fit::quality::exact:
        if (f.as_ids) {
            const std::string range =
                f.last_id > 0 ? printed(" from %zu to %zu", first_token_id, f.last_id) : "";
            return exact + ": lists of token ids" + range + around;
        }
        return exact + printed(": %zu words of one token", f.words.size()) + around;
    case token_fit::quality::average:
        return printed("prompt lengths right on the average: %.3g tokens a word", f.per_word) +
               around + (f.is_unanswered ? "; the server did not answer in time for more" : "");
    case token_fit::quality::unknown: break;
    }
    return std::string("prompt lengths in words: the server ") +
           (f.is_unanswered ? "did not say in time" : "does not tell") +
           " how many tokens they have";
}

inline void append_words(std::string& out, int count, generator& random,
                         const token_fit& fit = {}) {
    for (int i = 0; i < count; ++i) {
        const std::string word = fit.drawn_word(random, out);
        if (!out.empty()) out += ' ';
        out += word;
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
