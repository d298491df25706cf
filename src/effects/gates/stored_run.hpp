// a run that is over, with its requests
#pragma once

#include "api/result.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/reading.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/reports/stored.hpp"
#include "effects/system/files.hpp"

#include <algorithm>  // find_if, min
#include <cmath>  // isnan
#include <cstdint>  // uint32_t
#include <filesystem>
#include <fstream>  // istream, ifstream, ios, getline
#include <map>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Puts the records of one gate into its repeats. The line of each is where its gaps are listed;
/// `events` may be a file that cannot be read.
inline void read_records(stored_gate& g, const std::string& file,
                         const std::vector<std::size_t>& offsets, std::istream& events) {
    std::ifstream in(file, std::ios::binary);
    require(static_cast<bool>(in), "records_file: " + file + " cannot be read");
    std::map<const repeat_data*, request_log> logs;
    std::string line, gate, bytes;
    std::size_t number = 0, at_byte = 0;
    for (; std::getline(in, line); ++number) {
        record r;
        try {
            r = read_record(line, gate);
        } catch (const std::invalid_argument& e) {
            if (in.eof() && number >= offsets.size()) break;  // a run cut off in the middle of it
            throw std::invalid_argument(printed("%s:%zu: %s", file.c_str(), number + 1, e.what()));
        }
        if (gate != g.name) continue;
        auto& arm = r.arm == run_arm::baseline ? g.seen.baseline : g.seen.candidate;
        const auto at = std::find_if(arm.begin(), arm.end(),
                                     [&](const repeat_data& d) { return d.index == r.repeat; });
        if (at == arm.end()) continue;  // a repeat that was cut short is no evidence
        bytes.assign(4 * gap_count(r), '\0');
        if (number < offsets.size() && events) {
            if (offsets[number] != at_byte) events.seekg(static_cast<long long>(offsets[number]));
            events.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
            at_byte = offsets[number] + bytes.size();
        }
        gap_list gaps;
        for (std::size_t i = 0; i < bytes.size(); i += 4) {
            std::uint32_t gap = 0;
            for (std::size_t b = 4; b-- > 0;)
                gap = gap << 8 | static_cast<unsigned char>(bytes[i + b]);
            gaps.push_back(gap);
        }
        request_log& log = logs[&*at];
        log.add(index_of(r, number), std::move(r), gaps);
        if (at->gaps_counted) log.count_all(at->window);
    }
    for (auto* arm : {&g.seen.candidate, &g.seen.baseline})
        for (repeat_data& d : *arm) {
            logs[&d].move_into(d, d.gaps_counted);
            if (g.shards <= 1) fail_frequent_resends(d);  // else nobody knows the whole yet
            note_bunches(d);
            require(!d.records.empty(), printed("%s has no records of repeat %d of \"%s\"",
                                                file.c_str(), d.index, g.name.c_str()));
        }
    require(number >= offsets.size(),
            printed("%s has %zu whole lines, the result beside it tells of %zu", file.c_str(),
                    number, offsets.size()));
}
/// Why an events.bin is not the one that belongs to a result.json, "" where it is. Gates that were
/// measured since may have added to it.
inline std::string problem_of_events(std::istream& in, const std::string& file,
                                     const picojson::value& index) {
    if (!in) return file + " cannot be read";
    const double told = number_member(index, "bytes");
    std::vector<char> some(1 << 20);
    fnv1a hash;
    for (double left = std::isnan(told) ? infinity : told; left > 0 && in;) {
        const double most = std::min(left, static_cast<double>(some.size()));
        in.read(some.data(), static_cast<std::streamsize>(most));
        hash.add(some.data(), static_cast<std::size_t>(in.gcount()));
        left -= static_cast<double>(in.gcount());
    }
    in.clear();
    in.seekg(0);
    return hash.text() == string_member(index, "fnv1a_64")
               ? ""
               : file + " is not the one of this result: its hash differs";
}

/// One gate of a run as its files tell it, and why the times of its events are not known, "" where
/// they are.
struct stored_run {
    stored_gate gate{};
    std::string problem_of_events{};
};
/// From its records.jsonl, and the result.json and events.bin beside it. Throws
/// std::invalid_argument with one sentence where they cannot be used.
inline stored_run read_stored_run(const std::filesystem::path& records, const std::string& gate) {
    const std::string result_file = (records.parent_path() / "result.json").string();
    const std::string json = file_content(result_file, "records_file: the result beside it");
    stored_run run{read_stored_gate(json, result_file, gate), ""};
    require(run.gate.definitions == definitions_version,
            result_file + " has the definitions " + run.gate.definitions + ", these are " +
                definitions_version);
    picojson::value root;
    parse_json(json, root);
    const picojson::value* index = member(root, "events");
    std::vector<std::size_t> offsets;
    run.problem_of_events = index ? "" : result_file + " has no index of the events";
    const std::string events_file = (records.parent_path() / "events.bin").string();
    std::ifstream events(events_file, std::ios::binary);
    if (index) {
        for (const picojson::value& o : array_member(*index, "offsets"))
            offsets.push_back(o.is<double>() ? static_cast<std::size_t>(o.get<double>()) : 0);
        run.problem_of_events = problem_of_events(events, events_file, *index);
    }
    if (!run.problem_of_events.empty()) events.setstate(std::ios::failbit);
    read_records(run.gate, records.string(), offsets, events);
    return run;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
