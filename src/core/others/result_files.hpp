// which tool wrote a result file, and what it tells
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/others/aiperf_file.hpp"
#include "core/others/guidellm_file.hpp"
#include "core/others/json_file.hpp"
#include "core/others/sglang_file.hpp"
#include "core/others/imported_run.hpp"
#include "core/others/vllm_file.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The bytes of a file that may stand beside another one; nothing where there is none.
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

/// The run that a file tells of, whoever wrote it. Throws std::invalid_argument with one sentence
/// where it holds none, or a value that is none.
inline imported_run read_imported_run(std::string_view bytes, const std::string& file,
                                      const file_beside& beside) {
    const std::vector<picojson::value> values = read_json_values(bytes, file);
    const picojson::value& first = values[0];
    if (!first.is<picojson::object>())
        refuse({file, ": it is ", shown_value(first),
                ", the result file of a tool is a JSON object"});
    if (string_member(first, "schema").rfind("llmbench/", 0) == 0)
        refuse({file, ": it is a result of llmbench itself, whose records.jsonl judge() reads"});
    const bool is_summary = is_aiperf_summary(first);
    imported_run run;
    if (is_summary || is_aiperf_record(first)) {
        run = read_aiperf_files(values, is_summary, file, beside);
    } else {
        const bool is_vllm = is_vllm_file(first), is_sglang = !is_vllm && is_sglang_file(first);
        if (!is_vllm && !is_sglang && !is_guidellm_file(first))
            refuse({file, ": no tool that is known wrote it; vLLM bench serve (--save-result "
                          "--save-detailed), SGLang bench_serving (--output-details), guidellm 0.8 "
                          "and AIPerf are allowed"});
        if (values.size() != 1)
            refuse({printed("%s: it holds %zu runs, one after the other; a file is one repeat",
                            file.c_str(), values.size())});
        run = is_vllm     ? read_vllm_run(first, file)
              : is_sglang ? read_sglang_run(first, file)
                          : read_guidellm_run(first, file);
    }
    fnv1a hash;
    hash.add(bytes.data(), bytes.size());
    run.hash = hash.value();
    return run;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
