// the tool that wrote a result file
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "program/others/aiperf_file.hpp"
#include "program/others/guidellm_file.hpp"
#include "program/others/json_file.hpp"
#include "program/others/sglang_file.hpp"
#include "program/others/imported_run.hpp"
#include "program/others/vllm_file.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Returns the bytes of a file that may be beside another one; nothing if there is none.
using file_beside = std::function<std::optional<std::string>(const std::string& path)>;

inline imported_run read_aiperf_files(const std::vector<picojson::value>& values, bool is_summary,
                                      const std::string& file, const file_beside& beside) {
    const std::string other = aiperf_file_beside(file);
    const std::optional<std::string> bytes = beside(other);
    std::vector<picojson::value> others;
    if (bytes) others = read_json_values(*bytes, other);
    if (is_summary) return read_aiperf_run(others, &values[0], file);
    const bool has_summary = others.size() == 1 && is_aiperf_summary(others[0]);
    return read_aiperf_run(values, has_summary ? &others[0] : nullptr, file);
}

/// Reads a run that is one JSON value. `file` names the file, and the run in it.
inline imported_run read_whole_run(const picojson::value& v, const std::string& file) {
    if (is_vllm_file(v)) return read_vllm_run(v, file);
    if (is_sglang_file(v)) return read_sglang_run(v, file);
    if (is_guidellm_file(v)) return read_guidellm_run(v, file);
    refuse({file, ": no tool that is known wrote it; vLLM bench serve (--save-result "
                  "--save-detailed), SGLang bench_serving (--output-details), guidellm 0.8 "
                  "and AIPerf are allowed"});
}

/// Returns the runs of a file of any tool; tools append their runs. Throws std::invalid_argument if
/// it has none, or an unknown value.
inline std::vector<imported_run> read_imported_runs(std::string_view bytes, const std::string& file,
                                                    const file_beside& beside) {
    constexpr std::size_t max_runs = 100;
    const std::vector<picojson::value> values = read_json_values(bytes, file);
    const auto hash_of = [](std::string_view of) {
        fnv1a hash;
        hash.add(of.data(), of.size());
        return hash.value();
    };
    for (const picojson::value& v : values) {
        if (!v.is<picojson::object>())
            refuse({file, ": it is ", shown_value(v),
                    ", the result file of a tool is a JSON object"});
        if (string_member(v, "schema").rfind("llmbench/", 0) == 0)
            refuse({file,
                    ": it is a result of llmbench itself, whose records.jsonl judge() reads"});
    }
    std::vector<imported_run> runs;
    const bool is_summary = is_aiperf_summary(values[0]);
    if (is_summary || is_aiperf_record(values[0])) {
        runs.push_back(read_aiperf_files(values, is_summary, file, beside));
        runs[0].hash = hash_of(bytes);
        return runs;
    }
    if (values.size() > max_runs)
        refuse({printed("%s: it holds %zu runs, up to %zu are allowed", file.c_str(),
                        values.size(), max_runs)});
    for (const picojson::value& v : values) {
        const bool is_alone = values.size() == 1;
        runs.push_back(read_whole_run(
            v, is_alone ? file : file + printed(", run %zu", runs.size() + 1)));
        runs.back().hash = hash_of(is_alone ? std::string(bytes) : v.serialize());
    }
    return runs;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
