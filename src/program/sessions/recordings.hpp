// recordings of sessions in other tools' formats
#pragma once

#include "core/files/byte_stream.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "program/sessions/chat_files.hpp"
#include "program/sessions/genai_spans.hpp"
#include "program/sessions/weka_file.hpp"

#include <functional>  // who opens a file
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

using file_opener = std::function<byte_stream(const std::string&)>;

/// Reads the files one after the other; `name` stands for all of them.
template <class Reader>
session_corpus corpus_by(const std::vector<std::string>& files, const file_opener& open,
                         const std::string& name) {
    Reader reader;
    for (const std::string& file : files) {
        byte_stream in = open(file);
        reader.read(in);
    }
    return reader.finished(name);
}
struct recording_format {
    const char* name;
    session_corpus (*read)(const std::vector<std::string>&, const file_opener&,
                           const std::string&);
};
inline constexpr recording_format recording_formats[] = {
    {"weka", corpus_by<weka_reader>},
    {"bailian", corpus_by<bailian_reader>},
    {"mooncake_agents", corpus_by<mooncake_reader>},
    {"otel", corpus_by<span_reader>},
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
