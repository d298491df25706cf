// llmbench convert: other tools' recordings as lines that sessions{} reads
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "extensions/sessions/core/session_graph.hpp"
#include "extensions/sessions/read_sessions.hpp"
#include "program/arguments.hpp"
#include "program/sessions/recordings.hpp"
#include "program/sessions/written_lines.hpp"
#include "program/values.hpp"

#include <iostream>  // cerr
#include <string>

namespace llmbench_program {

inline const recording_format& format_from(const given& from) {
    const char* known = "weka, bailian, mooncake_agents or otel";
    for (const recording_format& f : recording_formats)
        if (from.text == f.name) return f;
    if (from.text.empty()) refuse({"--from is needed: the format of the files is ", known});
    from.refuse_as(known);
}

inline int convert(const given_options& o) {
    const vector<std::string>& named = files_in(
        o, "FILE", "no file is named: give a recording, as `llmbench convert traces.jsonl --from "
                   "weka --out sessions.jsonl`");
    const recording_format& format = format_from(o.one("--from"));
    vector<std::string> files;
    for (const std::string& path : named)
        for (const std::string& file : files_at(path, "FILE")) files.push_back(file);
    if (o.has("--out")) refuse_if_read(o["--out"], files);
    const converted_corpus c = format.read(
        files, [](const std::string& file) { return bytes_of(file, "FILE"); },
        enumerated(named));
    const std::string lines = session_lines(c), told = c.told.text();
    if (!o.has("--out")) {
        say(lines);
        if (!told.empty()) std::cerr << told << std::endl;
        return 0;
    }
    write_file(o["--out"], lines);
    say(o["--out"] + printed(": %zu sessions of %zu steps", c.sessions.size(), c.steps.size()) +
        (told.empty() ? "" : "; " + told) + "\n");
    return 0;
}

inline verb convert_verb() {
    return {"convert",
            "Make JSON lines for sessions{} of a recording",
            {{"Files", {{"FILE", "", "recordings of one format, or folders of them", takes::many}}},
             {"Options",
              {{"--from", "FORMAT", "weka, bailian, mooncake_agents or otel"},
               {"--out", "FILE", "where the lines go; default: standard output"}}}},
            "Examples:\n"
            "  llmbench convert cc-traces/ --from weka --out sessions.jsonl\n"
            "  llmbench convert spans.jsonl --from otel | head -n 1\n"
            "The formats are those of Weka's and Bailian's traces, of Mooncake's with AIPerf's\n"
            "session_id and delay, and spans of OpenTelemetry's GenAI conventions.\n"
            "Exit codes: 0 done, 2 refused.",
            convert};
}

}  // namespace llmbench_program
