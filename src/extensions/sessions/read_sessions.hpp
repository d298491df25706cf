// recorded sessions, read from their files
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/traffic/recorded.hpp"
#include "core/planning/workload.hpp"
#include "effects/system/workload_files.hpp"
#include "extensions/sessions/api.hpp"
#include "extensions/sessions/core/session_lines.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "extensions/sessions/core/session_source.hpp"

#include <algorithm>  // sort
#include <cstdint>  // uint64_t
#include <filesystem>
#include <string>
#include <system_error>  // error_code

namespace llmbench {
inline namespace v1 {
namespace detail {

/// In a folder, all files by name.
inline vector<std::string> files_at(const std::string& path, const char* field) {
    vector<std::string> files{path};
    std::error_code problem;
    if (std::filesystem::is_directory(path, problem)) {
        files.clear();
        for (const auto& entry : std::filesystem::directory_iterator(path, problem))
            if (entry.is_regular_file()) files.push_back(entry.path().string());
        std::sort(files.begin(), files.end());
        if (problem) refuse({field, ", ", path, ", cannot be read"});
    }
    return files;
}
inline session_corpus corpus_of(const sessions& w) {
    const std::string path = str(w.path);
    session_reader reader(static_cast<int>(w.max_context));
    for (const std::string& file : files_at(path, "workload.path")) {
        byte_stream in = bytes_of(file, "workload.path");
        reader.read(in);
    }
    return reader.finished(path);
}

inline void read_sessions_of_files(const box& said, const scenario&, std::uint64_t,
                                   workload_files& into) {
    const sessions& w = *said.get<sessions>();
    check_sessions(w);
    into.of_extension = new_shared<const read_sessions>(w, corpus_of(w));
}
inline constinit const extension sessions_played{
    .name = "sessions", .read = read_sessions_of_files, .plays_sessions = true};
constinit const extension* const include_llmbench_sessions_hpp_where_LLMBENCH_MAIN_is =
    &sessions_played;

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
