// Result files of other tools as their sources write them, for what no fixture shows.
#pragma once

#include "llmbench.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "program/others/runs_together.hpp"

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace result_files {
using llmbench::detail::vector;

namespace lb = llmbench::detail;

inline std::string fixture(const std::string& name) {
    std::ifstream in("data/files/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The run of a file that has one.
inline lb::imported_run only_run(std::string_view bytes, const std::string& file,
                                 const lb::file_beside& beside) {
    vector<lb::imported_run> all = lb::read_imported_runs(bytes, file, beside);
    REQUIRE(all.size() == 1);
    return std::move(all[0]);
}

/// One request, seconds.
struct answer {
    double start = 0, waited = 0, ttft = 0.05;
    vector<double> gaps{};
    int tokens = 16, prompt = 32;
    std::string error{};
};
/// What a run was asked for, and what it tells.
struct run_file {
    std::string backend = "openai", model = "m", rate = "\"inf\"", date = "20261122-120000";
    std::string concurrency = "4", more = "";  // members of its own, each followed by a comma
    double duration = 10;
    vector<answer> answers{};
    int bytes_of_token = 4;
    long long leave_out = 0;  // requests, from the end of its lists and not from its counts
    bool with_details = true, with_queues = true, with_starts = true;
};
/// `n` answers of `tokens` tokens each, sent one after the other; times vary with the seed, by some
/// percent.
inline run_file run_of(int n, unsigned seed, double ttft = 0.05, double gap = 0.02,
                       int tokens = 16) {
    run_file f;
    unsigned long long state = seed * 2654435761ull + 1;
    const auto random = [&] {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<double>(state >> 40) / 16777216.0;
    };
    for (int i = 0; i < n; ++i) {
        answer a;
        a.start = 1000.0 * seed + 0.4 * i;
        a.ttft = ttft * (0.95 + 0.1 * random());
        a.tokens = tokens;
        for (int k = 1; k < tokens; ++k) a.gaps.push_back(gap * (0.95 + 0.1 * random()));
        f.answers.push_back(a);
    }
    f.date = lb::printed("20261122-1%u0000", seed % 10);
    return f;
}

template <class F>
std::string list_of(const run_file& f, F&& value) {
    std::string s;
    const std::size_t n = f.answers.size() - static_cast<std::size_t>(f.leave_out);
    for (std::size_t i = 0; i < n; ++i) s += (i ? ", " : "") + value(f.answers[i]);
    return "[" + s + "]";
}
inline std::string details_of(const run_file& f, bool failures_have_tokens = false) {
    const auto number = [](double v) { return lb::json_number(v); };
    const auto gaps = [&](const answer& a) {
        std::string s;
        for (const double g : a.gaps) s += (s.empty() ? "" : ", ") + number(g);
        return "[" + s + "]";
    };
    std::string s = ", \"input_lens\": " + list_of(f, [&](const answer& a) {
        return std::to_string(a.prompt);
    });
    s += ", \"output_lens\": " + list_of(f, [&](const answer& a) {
        return std::to_string(a.error.empty() || failures_have_tokens ? a.tokens : 0);
    });
    s += ", \"ttfts\": " + list_of(f, [&](const answer& a) { return number(a.ttft); });
    s += ", \"itls\": " + list_of(f, gaps);
    s += ", \"errors\": " + list_of(f, [](const answer& a) { return lb::json_quoted(a.error); });
    s += ", \"generated_texts\": " + list_of(f, [&](const answer& a) {
        return lb::json_quoted(std::string(static_cast<std::size_t>(f.bytes_of_token * a.tokens), 'x'));
    });
    return s;
}
struct sums {
    int completed = 0, failed = 0;
    long long input = 0, output = 0;
};
inline sums sums_of(const run_file& f) {
    sums s;
    for (const answer& a : f.answers) {
        const bool ok = a.error.empty();
        ++(ok ? s.completed : s.failed);
        s.input += ok ? a.prompt : 0;
        s.output += ok ? a.tokens : 0;
    }
    return s;
}
inline std::string vllm_text(const run_file& f) {
    const sums s = sums_of(f);
    std::string text = lb::printed(
        "{%s\"date\": \"%s\", \"backend\": \"%s\", \"model_id\": \"%s\", \"tokenizer_id\": \"t\", "
        "\"num_prompts\": %zu, \"request_rate\": %s, \"burstiness\": 1.0, \"max_concurrency\": %s, "
        "\"duration\": %g, \"completed\": %d, \"failed\": %d, \"total_input_tokens\": %lld, "
        "\"total_output_tokens\": %lld",
        f.more.c_str(), f.date.c_str(), f.backend.c_str(), f.model.c_str(), f.answers.size(),
        f.rate.c_str(), f.concurrency.c_str(), f.duration, s.completed, s.failed, s.input,
        s.output);
    const auto number = [](double v) { return lb::json_number(v); };
    if (f.with_details) text += details_of(f);
    if (f.with_details && f.with_starts)
        text += ", \"start_times\": " +
                list_of(f, [&](const answer& a) { return number(a.start); });
    if (f.with_queues)
        text += ", \"queue_times\": " +
                list_of(f, [&](const answer& a) { return number(a.waited); });
    return text + "}";
}
inline std::string sglang_text(const run_file& f) {
    const sums s = sums_of(f);
    std::string text = lb::printed(
        "{%s\"tag\": null, \"backend\": \"%s\", \"dataset_name\": \"random\", \"request_rate\": %s, "
        "\"max_concurrency\": %s, \"server_info\": {\"version\": \"0.5.23\", \"model_path\": "
        "\"%s\"}, \"duration\": %g, \"completed\": %d, \"total_output_tokens\": %lld, "
        "\"total_output_tokens_retokenized\": %lld, \"mean_ttft_ms\": NaN",
        f.more.c_str(), f.backend.c_str(), f.rate.c_str(), f.concurrency.c_str(), f.model.c_str(),
        f.duration, s.completed, s.output, s.output);
    return text + (f.with_details ? details_of(f) : "") + "}\n";
}

}  // namespace result_files
