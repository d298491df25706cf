// all files of a scenario
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/workload.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/datasets.hpp"
#include "core/files/dialogues.hpp"
#include "core/files/traces.hpp"
#include "core/traffic/recorded.hpp"
#include "core/planning/workloads.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/planning/workload.hpp"
#include "effects/system/files.hpp"

#include <algorithm>  // clamp, sort
#include <cstdint>  // uint64_t
#include <filesystem>
#include <sstream>  // istringstream
#include <string>
#include <string_view>
#include <system_error>  // error_code

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One number a line; empty lines are ignored.
inline vector<double> read_numbers(const std::string& path, const char* field) {
    std::istringstream in(
        file_content(path, printed("%s is empirical(\"%s\")", field, path.c_str())));
    vector<double> values;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        const std::string_view t = trimmed(line);
        if (t.empty() || t == "\r") continue;
        if (const std::string why = why_no_text(line); !why.empty()) refuse({path, ": ", why});
        std::string_view rest = t;
        const double v = leading_number<double>(rest).value_or(not_a_number);
        if (!((rest.empty() || rest == "\r") && v >= 1 && v <= 1e7))
            refuse({printed("%s:%d is \"%s\": %s needs one length from 1 to 10000000 a line",
                            path.c_str(), number, printable(t, 60).c_str(), field)});
        values.push_back(v);
    }
    if (values.empty()) refuse({field, " is empirical(\"", path, "\"): the file holds no lengths"});
    return values;
}

/// The file's bytes, read on demand.
inline byte_stream bytes_of(const std::string& path, const char* field) {
    auto in = new_shared<input_file>(path);
    if (!in->problem().empty())
        refuse({printed("%s is \"%s\": the file cannot be read: ", field, path.c_str()),
                in->problem()});
    return {[in](char* room, std::size_t n) { return in->read(room, n); }, path};
}

/// Loads the images of a sample.
inline void read_images(const dataset& d, vector<dialogue>& sample) {
    constexpr std::size_t max_bytes = 512 * 1024 * 1024;
    std::filesystem::path directory = str(d.images);
    if (directory.empty()) directory = std::filesystem::path(str(d.path)).parent_path();
    std::error_code problem;
    const std::filesystem::path inside = std::filesystem::weakly_canonical(
        directory.empty() ? std::filesystem::path(".") : directory, problem);
    std::size_t bytes = 0;
    for (dialogue& x : sample)
        for (dialogue_turn& t : x.turns) {
            if (t.image.empty()) continue;
            if (!t.image.starts_with("data:image/")) {
                const std::filesystem::path file = directory / t.image;
                const std::string type = image_type(t.image), of = str(d.path) + ": the image \"" +
                                                                   printable(t.image, 200) + "\"";
                if (type.empty()) refuse({of, " must end in .jpg, .jpeg, .png, .webp or .gif"});
                // A dataset of others must not be able to send any file of this machine.
                const auto path = std::filesystem::weakly_canonical(file, problem);
                const auto way = path.lexically_relative(inside);
                if (problem || way.empty() || *way.begin() == "..")
                    refuse({of, " lies outside of ", inside.string(), ": images stand below "
                            "workload.images, by default the folder of the file"});
                t.image = "data:" + type + ";base64," +
                          base64(file_content(file.string(), str(d.path) + ": an image of it"));
            }
            bytes += t.image.size();
            if (bytes > max_bytes)
                refuse({str(d.path), ": the images of the sample take over 512 MiB, ask for less "
                                     "with max_items"});
        }
}

/// The number of conversations that a scenario can use, if its dataset does not limit it.
inline std::size_t dialogues_wanted(const scenario& s) {
    if (s.requests <= 0) return 10000;
    const long long n = s.requests + s.warmup.requests();
    return static_cast<std::size_t>(std::clamp(n, 1ll, 1000000ll));
}

/// The files that a scenario names itself; those of its extensions' workloads are not among them.
inline vector<std::string> files_of(const scenario& s) {
    vector<std::string> all;
    const auto add = [&](const text& file) { if (!file.empty()) all.push_back(str(file)); };
    add(s.baseline.stored().file);
    add(s.arrivals.data().file);
    if (const auto* d = s.workload.what().get<dataset>()) add(d->path);
    return all;
}

/// Reads the files of a workload that is no mix.
inline void read_prompts(const scenario& s, std::uint64_t default_seed, workload_files& f) {
    using shape = length_distribution::shape;
    const auto numbers_of = [](const length_distribution& d, const char* field) {
        return d.kind == shape::empirical ? read_numbers(str(d.file), field)
                                          : vector<double>();
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
    } else if (const auto* d = w.get<dataset>()) {
        check_dataset(*d);
        byte_stream in = bytes_of(str(d->path), "workload.path");
        f.dialogues = sampled_dialogues(in, *d, dialogues_wanted(s), seed_of_file, f.fields,
                                        given_fields(s.options));
        read_images(*d, f.dialogues);
    } else if (const auto* e = w.get<extension_value>()) {
        e->by->read(e->what, s, seed_of_file, f);
    }
}
/// Reads the starts of a replay, which a workload may have itself.
inline void read_starts(const arrival_data& a, workload_files& f) {
    if (a.kind != arrival_kind::replay) return;
    check_arrivals(a);
    if (f.of_extension)
        if (const auto starts = f.of_extension->starts(a)) {
            f.trace = *starts;
            return;
        }
    byte_stream in = bytes_of(str(a.file), "arrivals, replay's file,");
    f.trace = read_trace(in, a.unit_s);
}
inline vector<scenario> parts_of(const scenario& s) {
    vector<scenario> all;
    const auto* const m = s.workload.what().get<mix_of_parts>();
    if (!m) return all;
    check_mix(*m);
    for (const part& of : m->parts) all.push_back(scenario_of(s, of));
    return all;
}
/// The same load with the baseline's other workload, if it has one.
inline vector<scenario> others_of(const scenario& s) {
    if (s.baseline.asked().workload.what().empty()) return {};
    scenario other = s;
    other.workload = s.baseline.asked().workload;
    other.baseline = {};
    return {other};
}
/// Reads all files that a scenario names.
inline workload_files read_workload_files(const scenario& s, std::uint64_t default_seed) {
    workload_files f;
    for (const scenario& of : parts_of(s))
        f.of_parts.push_back(read_workload_files(of, default_seed));
    for (const scenario& of : others_of(s))
        f.of_baseline.push_back(read_workload_files(of, default_seed));
    read_prompts(s, default_seed, f);
    read_starts(s.arrivals.data(), f);
    return f;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
