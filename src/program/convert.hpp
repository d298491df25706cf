// llmbench convert: other tools' recordings as lines that sessions{} reads
#pragma once

#include "core/base/text.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "extensions/sessions/read_sessions.hpp"
#include "program/arguments.hpp"
#include "program/sessions/recordings.hpp"
#include "program/sessions/written_lines.hpp"
#include "program/values.hpp"

#include <memory>
#include <string>
#include <vector>

namespace llmbench_program {

struct convert_options {
    std::vector<std::string> files{};
    std::string from{}, out{};
};

inline const recording_format& format_from(const std::string& name) {
    const char* known = "weka, bailian, mooncake_agents or otel";
    for (const recording_format& f : recording_formats)
        if (name == f.name) return f;
    if (name.empty()) refuse({"--from is needed: the format of the files is ", known});
    given{"--from", name}.refuse_as(known);
}

inline int convert(const convert_options& o) {
    if (o.files.empty())
        refuse({"no file is named: give a recording, as `llmbench convert traces.jsonl --from weka "
                "--out sessions.jsonl`"});
    const recording_format& format = format_from(o.from);
    std::vector<std::string> files;
    for (const std::string& path : o.files)
        for (const std::string& file : files_at(path, "FILE")) files.push_back(file);
    const session_corpus c = format.read(
        files, [](const std::string& file) { return bytes_of(file, "FILE"); },
        enumerated(o.files));
    const std::string lines = session_lines(c);
    if (o.out.empty()) {
        say(lines);
        return 0;
    }
    write_file(o.out, lines);
    say(o.out + printed(": %zu sessions of %zu steps\n", c.sessions.size(), c.steps.size()));
    return 0;
}

inline verb add_convert(CLI::App& app) {
    const auto o = std::make_shared<convert_options>();
    CLI::App& v = *app.add_subcommand("convert", "Make JSON lines for sessions{} of a recording");
    take_files(v, "FILE", o->files, "recordings of one format, or folders of them");
    option_group(v, "Options")
        .text("--from", o->from, "FORMAT", "weka, bailian, mooncake_agents or otel")
        .text("--out", o->out, "FILE", "where the lines go; default: standard output");
    v.footer("Examples:\n"
             "  llmbench convert cc-traces/ --from weka --out sessions.jsonl\n"
             "  llmbench convert spans.jsonl --from otel | head -n 1\n"
             "The formats are those of Weka's and Bailian's traces, of Mooncake's with AIPerf's\n"
             "session_id and delay, and spans of OpenTelemetry's GenAI conventions.\n"
             "Exit codes: 0 done, 2 refused.");
    return {&v, [o] { return convert(*o); }};
}

}  // namespace llmbench_program
