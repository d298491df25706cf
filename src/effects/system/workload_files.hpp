// all that a scenario names in files
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "core/base/bytes.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/datasets.hpp"
#include "core/files/session_files.hpp"
#include "core/files/session_graph.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/workload.hpp"
#include "core/planning/planning.hpp"
#include "effects/system/files.hpp"

#include <algorithm>  // clamp, sort
#include <cstdint>  // uint64_t
#include <filesystem>
#include <system_error>  // error_code
#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Puts the images of a sample into it.
inline void read_images(const dataset& d, std::vector<dialogue>& sample) {
    constexpr std::size_t most_bytes = 512 * 1024 * 1024;
    std::filesystem::path directory = str(d.images);
    if (directory.empty()) directory = std::filesystem::path(str(d.path)).parent_path();
    std::size_t bytes = 0;
    for (dialogue& x : sample)
        for (dialogue_turn& t : x.turns) {
            if (t.image.empty()) continue;
            const std::string file = (directory / t.image).string();
            const std::string type = image_type(file);
            if (type.empty())
                refuse({str(d.path), ": the image \"", t.image,
                        "\" must end in .jpg, .jpeg, .png, .webp or .gif"});
            t.image = "data:" + type + ";base64," +
                      base64(file_content(file, str(d.path) + ": an image of it"));
            bytes += t.image.size();
            if (bytes > most_bytes)
                refuse({str(d.path), ": the images of the sample take over 512 MiB, ask for less "
                                     "with max_items"});
        }
}

/// Conversations that a scenario can use, where its dataset does not say how many.
inline std::size_t dialogues_wanted(const scenario& s) {
    if (s.requests <= 0) return 10000;
    const long long n = s.requests + s.warmup.requests();
    return static_cast<std::size_t>(std::clamp(s.traffic == fresh ? 4 * n : n, 1ll, 1000000ll));
}

/// Of a folder, all files in the order of their names.
inline session_corpus read_sessions(const sessions& w) {
    const std::string path = str(w.path);
    std::vector<std::string> files{path};
    std::error_code problem;
    if (std::filesystem::is_directory(path, problem)) {
        files.clear();
        for (const auto& entry : std::filesystem::directory_iterator(path, problem))
            if (entry.is_regular_file()) files.push_back(entry.path().string());
        std::sort(files.begin(), files.end());
        if (problem) refuse({"workload.path, ", path, ", cannot be read"});
    }
    session_reader reader(static_cast<int>(w.max_context));
    for (const std::string& file : files) {
        byte_stream in = bytes_of(file, "workload.path");
        reader.read(in);
    }
    return reader.finished(path);
}

/// All that a scenario names in files.
inline workload_files read_workload_files(const scenario& s, std::uint64_t default_seed) {
    using shape = length_distribution::shape;
    workload_files f;
    if (const auto* m = s.workload.what().get<mix_of_parts>()) {
        check_mix(*m);
        for (const part& of : m->parts)
            f.of_parts.push_back(read_workload_files(scenario_of(s, of), default_seed));
    }
    if (!s.baseline.asked().workload.what().empty()) {
        scenario other = s;
        other.workload = s.baseline.asked().workload;
        other.baseline = {};
        f.of_baseline.push_back(read_workload_files(other, default_seed));
    }
    const auto numbers_of = [](const length_distribution& d, const char* field) {
        return d.kind == shape::empirical ? read_numbers(str(d.file), field)
                                          : std::vector<double>();
    };
    const long long seed = s.seed;
    const std::uint64_t seed_of_file = seed > 0 ? static_cast<std::uint64_t>(seed) : default_seed;
    const box& w = s.workload.what();
    if (const auto* made = w.get<synthetic>()) {
        f.prompt_values = numbers_of(made->prompt_tokens, "workload.prompt_tokens");
        f.output_values = numbers_of(made->output_tokens, "workload.output_tokens");
    } else if (const auto* talk = w.get<conversations>()) {
        f.prompt_values = numbers_of(talk->user_tokens, "workload.user_tokens");
        f.output_values = numbers_of(talk->output_tokens, "workload.output_tokens");
    } else if (const auto* q = w.get<questions>()) {
        check_questions(*q, s.options);
        byte_stream in = bytes_of(str(q->path), "workload.path");
        f.dialogues = read_questions(in, *q, s.options, seed_of_file);
    } else if (const auto* d = w.get<dataset>()) {
        check_dataset(*d);
        byte_stream in = bytes_of(str(d->path), "workload.path");
        answer_lengths answers;
        if (!d->answers.empty()) {
            byte_stream reported = bytes_of(str(d->answers), "workload.answers");
            answers = read_vqa_answers(reported);
        }
        f.dialogues = sampled_dialogues(in, *d, dialogues_wanted(s),
                                        seed_of_file, answers);
        read_images(*d, f.dialogues);
    }
    if (const auto* graphs = w.get<sessions>()) {
        check_sessions(*graphs);
        f.sessions = read_sessions(*graphs);
    }
    const arrival_data& a = s.arrivals.data();
    if (a.kind == arrival_kind::replay) {
        check_arrivals(a);
        if (const auto* graphs = w.get<sessions>()) {
            if (!(a.file == graphs->path))
                refuse({"workload is sessions of ", str(graphs->path),
                        " and arrivals is a replay of ", str(a.file),
                        ": sessions begin when their own recording says"});
            const std::size_t most = graphs->max_items
                                         ? static_cast<std::size_t>(*graphs->max_items)
                                         : most_corpus_steps;
            f.trace = trace_of_starts(f.sessions, most, str(a.file));
            return f;
        }
        byte_stream in = bytes_of(str(a.file), "arrivals, replay's file,");
        f.trace = read_trace(in);
    }
    return f;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
