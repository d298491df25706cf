// What tests ask of texts: what they hold, and where they come from.
#pragma once

#include <doctest/doctest.h>

#include <picojson.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>

namespace texts {

inline bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
/// How often the part stands in the text.
inline std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos;
         at = text.find(part, at + part.size()))
        ++n;
    return n;
}
/// With the first `from`, which must be there, changed to `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, "there is no ", from);
    return text.replace(at, from.size(), to);
}
/// Markdown without its code spans: what a mention or a link could be made of.
inline std::string outside_of_code(const std::string& markdown) {
    std::string out;
    const auto ticks_at = [&](std::size_t at) {
        return std::min(markdown.find_first_not_of('`', at), markdown.size()) - at;
    };
    for (std::size_t i = 0; i < markdown.size();) {
        if (markdown[i] == '\\') { out += markdown.substr(i, 2); i += 2; continue; }
        const std::size_t n = ticks_at(i);
        if (n == 0) { out += markdown[i++]; continue; }
        std::size_t end = markdown.find('`', i + n);
        while (end < markdown.size() && ticks_at(end) != n)
            end = markdown.find('`', end + ticks_at(end));
        if (end >= markdown.size()) out += markdown.substr(i, n);
        i = end >= markdown.size() ? i + n : end + n;
    }
    return out;
}
/// What a console shows, with lines that go on behind an indent as one.
inline std::string unwrapped(std::string text) {
    for (std::size_t at = text.find("\n      "); at != std::string::npos;
         at = text.find("\n      ", at)) {
        const std::size_t word = std::min(text.find_first_not_of(' ', at + 1), text.size());
        text.replace(at, word - at, " ");
    }
    return text;
}
inline picojson::value parsed(const std::string& json) {
    picojson::value v;
    REQUIRE(picojson::parse(v, json) == "");
    return v;
}
/// All that is in a file, "" where there is none.
inline std::string content_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The sentence with which a call is refused, "" where it is not.
template <class F> std::string refusal_of(F&& f) {
    try {
        f();
    } catch (const std::invalid_argument& e) { return e.what(); }
    return "";
}
/// Refused, in a sentence that has all the parts.
#define CHECK_REFUSED(sentence, ...)                                                               \
    do {                                                                                           \
        const std::string said = (sentence);                                                       \
        CAPTURE(said);                                                                             \
        for (const std::string& part : std::initializer_list<std::string>{__VA_ARGS__}) {          \
            CAPTURE(part);                                                                         \
            CHECK(texts::holds(said, part));                                                       \
        }                                                                                          \
    } while (false)

}  // namespace texts
