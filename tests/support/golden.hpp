// Texts that are compared with a file of tests/golden/. LLMBENCH_APPROVE=1 writes the files anew:
// look at what git shows then.
#pragma once
#include <doctest/doctest.h>

#include "texts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace golden {

/// The folder of the repository, with its slash: tests are run in tests/.
inline std::string root() { return "../"; }

/// Numbers with nine digits, for texts that hold them in full: the last ones are the C library's.
inline std::string rounded(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const auto is_part = [&](char c) {
            return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == '-' || c == '+';
        };
        std::size_t end = i;
        while (end < text.size() && is_part(text[end])) ++end;
        const std::string part = text.substr(i, end - i);
        char* stop = nullptr;
        const double v = std::strtod(part.c_str(), &stop);
        char nine[40];
        std::snprintf(nine, sizeof nine, "%.9g", v);
        const bool in_full = part.size() > 9 && *stop == 0 && part.find('.') != std::string::npos;
        out += in_full ? nine : part;
        if (end == i) out += text[end++];
        i = end;
    }
    return out;
}

/// JSON with its innermost lists and objects in one line each, where that has room.
inline std::string folded(std::string json) {
    for (std::size_t open = 0; (open = json.find_first_of("[{", open)) != std::string::npos; ++open) {
        const std::size_t close = json.find_first_of("[{]}", open + 1), line = json.rfind('\n', open);
        if (json[open + 1] != '\n' || (json[close] != ']' && json[close] != '}')) continue;
        std::string one = json.substr(open, 1);
        for (std::size_t i = open + 1; i < close; ++i) {
            if (json[i] != '\n') { one += json[i]; continue; }
            i = json.find_first_not_of(' ', i + 1) - 1;
            if (one.size() > 1 && i + 1 < close) one += ' ';
        }
        if (open - line + one.size() <= 100) json.replace(open, close - open, one);
    }
    return json;
}

/// The first line in which two texts differ, with what stands there.
inline std::string difference(const std::string& want, const std::string& got) {
    std::size_t line = 1, begin = 0, i = 0;
    for (; i < want.size() && i < got.size() && want[i] == got[i]; ++i)
        if (got[i] == '\n') { ++line; begin = i + 1; }
    const auto at = [&](const std::string& s) {
        return s.substr(std::min(begin, s.size()), s.find('\n', i) - begin);
    };
    return "line " + std::to_string(line) + "\n  want: " + at(want) + "\n  got:  " + at(got);
}

inline void check(const std::string& name, const std::string& got) {
    const std::string path = root() + "tests/golden/" + name;
    if (std::getenv("LLMBENCH_APPROVE")) std::ofstream(path, std::ios::binary) << got;
    const std::string want = texts::content_of(path);
    const std::string how = "tests/golden/" + name + " differs in " + difference(want, got) +
                            "\nLLMBENCH_APPROVE=1 writes it anew";
    const bool same = want == got;
    CHECK_MESSAGE(same, how);
}

}  // namespace golden
