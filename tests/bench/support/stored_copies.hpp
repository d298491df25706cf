// The files of a stored run with many requests, made of those of a small one.
#pragma once

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "child_process.hpp"

namespace bench {

constexpr long long small_repeat = 500;  // requests of a repeat of the small run
constexpr long long small_repeats = 2;
constexpr long long small_run = small_repeat * small_repeats;

/// A text in which some numbers grow from copy to copy.
class stencil {
public:
    explicit stencil(std::string text) : text_(std::move(text)) {}
    /// The whole number behind each `mark`, if there is one: copy n has it `step` times n higher.
    void grow(const std::string& mark, long long step) {
        for_each(mark, [&](std::size_t at) { numbers_[at] = {number_at(at), step}; });
    }
    /// As above, but copy n has it n + 1 times.
    void multiply(const std::string& mark) {
        for_each(mark, [&](std::size_t at) { numbers_[at] = {number_at(at), number_at(at)}; });
    }
    std::string copy(long long n) const {
        std::string s;
        std::size_t from = 0;
        for (const auto& [at, number] : numbers_) {
            s += text_.substr(from, at - from) + std::to_string(number.first + number.second * n);
            from = at + std::to_string(number.first).size();
        }
        return s + text_.substr(from);
    }
    /// The first number behind `mark`.
    long long first(const std::string& mark) const {
        const std::size_t at = text_.find(mark);
        if (at == std::string::npos) throw std::runtime_error("the small run has no " + mark);
        return number_at(at + mark.size());
    }

private:
    long long number_at(std::size_t at) const { return std::atoll(text_.c_str() + at); }
    template <class Do>
    void for_each(const std::string& mark, Do&& act) {
        for (std::size_t at = 0; (at = text_.find(mark, at)) != std::string::npos;)
            if (std::isdigit(static_cast<unsigned char>(text_[at += mark.size()]))) act(at);
    }
    std::string text_;
    std::map<std::size_t, std::pair<long long, long long>> numbers_{};  // and their steps
};

/// `by` in place of what stands between `mark` and `end`.
inline void replace_behind(std::string& text, const std::string& mark, char end,
                           const std::string& by) {
    const std::size_t from = text.find(mark) + mark.size();
    text.replace(from, text.find(end, from) - from, by);
}

/// Copies of one repeat follow one another in time; the repeats lie over one another, at which
/// nothing looks. Each copy is planned 40 ns earlier than the one before, so that few values are
/// equal.
inline stencil record_stencil(const std::string& line, long long span_ns) {
    stencil s(line);
    const std::size_t id_end = line.find('"', std::strlen("{\"id\":\""));
    const std::size_t dash = line.rfind('-', id_end);
    s.grow(line.substr(0, dash + 1), small_repeat);
    s.grow("\"conversation\":", small_repeat);
    s.grow("\"scheduled_ns\":", span_ns - 40);
    for (const char* key : {"dispatched", "connected", "sent", "first_token", "second_token",
                            "first_answer", "last_token", "end"})
        s.grow("\"" + std::string(key) + "_ns\":", span_ns);
    return s;
}

/// The files of `small` so many times over, in `large`.
inline int write_copies(const std::filesystem::path& small, const std::filesystem::path& large,
                        long long copies) {
    stencil result(content_of(small / "result.json"));
    const std::string events = content_of(small / "events.bin");
    std::vector<std::string> lines;
    std::ifstream in(small / "records.jsonl");
    for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
    if (lines.size() != small_run || events.size() % lines.size() != 0)
        throw std::runtime_error("the small run lost requests, or events of them");
    const std::size_t gaps = events.size() / lines.size();  // bytes of them, all answers are alike
    const long long span_ns = result.first("\"window_to_ns\": ") -
                              result.first("\"window_from_ns\": ") + 50000000;

    std::filesystem::create_directories(large);
    std::ofstream records_out(large / "records.jsonl", std::ios::binary);
    std::ofstream events_out(large / "events.bin", std::ios::binary);
    std::uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a
    for (std::size_t repeat = 0; repeat < small_repeats; ++repeat) {
        std::vector<stencil> stencils;
        for (std::size_t i = 0; i < small_repeat; ++i)
            stencils.push_back(record_stencil(lines[repeat * small_repeat + i], span_ns));
        const std::string bytes = events.substr(repeat * small_repeat * gaps, small_repeat * gaps);
        for (long long n = 0; n < copies; ++n) {
            for (const stencil& s : stencils) records_out << s.copy(n);
            events_out << bytes;
            for (const char c : bytes)
                hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
        }
    }
    std::string offsets;
    for (std::size_t i = 0; i < lines.size() * static_cast<std::size_t>(copies); ++i)
        offsets += (i > 0 ? "," : "") + std::to_string(i * gaps);
    for (const char* key : {"expected_requests", "content_events", "coalesced_events", "bytes"})
        result.multiply("\"" + std::string(key) + "\": ");
    result.grow("\"window_to_ns\": ", span_ns);
    std::string json = result.copy(copies - 1);
    char hash_text[20];
    std::snprintf(hash_text, sizeof hash_text, "%016llx", static_cast<unsigned long long>(hash));
    replace_behind(json, "\"fnv1a_64\": \"", '"', hash_text);
    replace_behind(json, "\"offsets\": [", ']', offsets);
    std::ofstream(large / "result.json", std::ios::binary) << json;
    return records_out && events_out ? 0 : 1;
}

}  // namespace bench
