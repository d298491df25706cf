// a finished run with its requests
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/field_json.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "core/answers/timeline.hpp"
#include "core/measured/same_answers.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/judging/cross_check.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/check_slo.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/files.hpp"

#include <algorithm>  // min, mismatch
#include <filesystem>
#include <fstream>  // istream, ifstream, ios, getline
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move


namespace llmbench {
inline namespace v1 {
namespace detail {

/// The index of events.bin in result.json: the offsets of the lines' gaps, and its coverage.
struct described_events : event_index {
    bool is_there = false;
};
inline described_events events_described_by(const stored_object& root) {
    described_events t;
    t.is_there = root.has("events");
    t.bytes = static_cast<long long>(max_count);  // all, if it does not say
    read_fields(root.at("events"), static_cast<event_index&>(t));
    return t;
}

/// Gaps are in the order of the lines, so the offsets give their number, whatever a line says.
/// Without events.bin all gaps are 0: nothing that needs them is judged then.
class line_gaps {
public:
    line_gaps(const described_events& reported, std::istream* events,
              std::size_t max_kept = 1ull << 26)
        : reported_(reported), events_(events), max_kept_(max_kept) {}
    /// Returns the gaps of the next line for a repeat; null: skips them.
    gap_list of(const record& r, std::size_t line, const repeat_data* to) {
        const std::size_t n = gap_count(r);
        const long long from = at_byte_;
        at_byte_ += 4 * static_cast<long long>(n);
        const bool is_reported = line < reported_.offsets.size();
        const bool is_listed = is_reported && events_;
        const auto refuse = [&](const char* why) {
            throw std::invalid_argument(printed("events is %d: ", r.events) + why);
        };
        if (is_reported && reported_.offsets[line] != from)
            refuse("with those of the lines before, its gaps are elsewhere in events.bin than "
                   "result.json says");
        if (at_byte_ > (is_listed ? reported_.bytes : max_unlisted))
            refuse("events.bin does not hold so many gaps");
        if (!to) return {};
        if (!to->gaps_counted && (kept_ += n) > max_kept_)
            refuse("its repeat has more gaps than are ever kept, and says that they were not "
                   "counted");
        std::string bytes(4 * n, '\0');
        if (is_listed) {
            events_->seekg(from);
            events_->read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
            if (!*events_) refuse("events.bin ends before so many gaps");
        }
        return gaps_in(bytes);
    }

private:
    static constexpr long long max_unlisted = 4000000000;  // bytes: a run of a billion events
    const described_events& reported_;
    std::istream* events_;
    long long at_byte_ = 0;
    std::size_t kept_ = 0;
    const std::size_t max_kept_;  // twice what a run keeps
};

/// Not open where there is no regular file.
inline std::ifstream opened_file(const std::string& path) {
    std::error_code none;
    return std::filesystem::is_regular_file(path, none) ? std::ifstream(path, std::ios::binary)
                                                        : std::ifstream();
}
/// The logs of a gate's repeats, those of the candidate first.
struct logs_of_repeats {
    vector<request_log> all{};
    std::size_t lines = 0;  // of the file
};
/// Sorts one gate's records into its repeats. `events` is null if it cannot be used.
inline logs_of_repeats read_lines(const stored_gate& g, const std::string& file,
                                  const described_events& reported, std::istream* events) {
    std::ifstream in = opened_file(file);
    if (!in.is_open()) refuse({"records_file: ", file, " cannot be read"});
    logs_of_repeats logs{vector<request_log>(g.seen.candidate.size() + g.seen.baseline.size())};
    line_gaps all_gaps(reported, events);
    std::string line, gate;
    json_reader json;
    for (std::size_t& number = logs.lines; std::getline(in, line); ++number) {
        record r;
        gap_list gaps;
        const repeat_data* of = nullptr;  // null: another gate's, or incomplete and not counted
        std::size_t at = 0;
        try {
            r = read_record(line, gate, json);
            const repeat_list& repeats = g.seen.variant(r.variant);
            for (std::size_t i = 0; gate == g.name && i < repeats.size(); ++i)
                if (repeats[i].index == r.repeat) of = &repeats[at = i];
            if (r.variant == run_variant::baseline) at += g.seen.candidate.size();
            gaps = all_gaps.of(r, number, of);
        } catch (const std::invalid_argument& e) {
            // The run was cut off in this line.
            if (in.eof() && number >= reported.offsets.size()) break;
            throw std::invalid_argument(printed("%s:%zu: %s", file.c_str(), number + 1, e.what()));
        }
        if (!of) continue;
        request_log& log = logs.all[at];
        log.add(index_of(r, number), std::move(r), gaps);
        if (of->gaps_counted) log.count_all(of->window);
    }
    return logs;
}
/// Moves the requests into their repeat, and notes what the client did for them. `is_whole`: no
/// other program sent a part of the load, so that all are there.
inline void complete(repeat_data& d, request_log& log, bool is_whole) {
    log.move_into(d);
    leave_out_later(d);
    fail_unfinished([&](auto&& f) {
        for (record& r : d.records) f(r);
    });
    if (is_whole) fail_frequent_resends(d);
    note_exempt(d);
    note_unknown_gaps(d);
}
/// What is known of a pair only with both of its variants.
inline void hold_pairs_together(measurements& e) {
    for (repeat_list* variant : {&e.candidate, &e.baseline})
        for (std::size_t i = 0; i < variant->size(); ++i)
            variant->change(i, [&](repeat_data& d) { note_lateness(d, twin_of(e, d)); });
    hold_together(e.candidate, e.baseline);
}
inline void read_records(stored_gate& g, const std::string& file, const described_events& reported,
                         std::istream* events) {
    logs_of_repeats logs = read_lines(g, file, reported, events);
    std::size_t at = 0;
    for (repeat_list* repeats : {&g.seen.candidate, &g.seen.baseline})
        for (std::size_t i = 0; i < repeats->size(); ++i)
            repeats->change(i, [&](repeat_data& d) {
                complete(d, logs.all[at++], g.load.shard.is_whole());
                if (d.records.empty())
                    refuse({printed("%s has no records of repeat %d of \"%s\"", file.c_str(),
                                    d.index, g.name.c_str())});
            });
    hold_pairs_together(g.seen);
    if (logs.lines < reported.offsets.size())
        refuse({printed("%s has %zu whole lines, the result beside it reports %zu", file.c_str(),
                        logs.lines, reported.offsets.size())});
}
/// Returns why an events.bin does not belong to a result.json, "" if it does. Later gates may have
/// added to it.
inline std::string problem_of_events(std::istream& in, const std::string& file,
                                     const described_events& reported) {
    if (!in || in.peek() == std::istream::traits_type::eof()) return file + " cannot be read";
    vector<char> some(1 << 20);
    fnv1a hash;
    for (auto left = static_cast<double>(reported.bytes); left > 0 && in;) {
        const double most = std::min(left, static_cast<double>(some.size()));
        in.read(some.data(), static_cast<std::streamsize>(most));
        hash.add(some.data(), static_cast<std::size_t>(in.gcount()));
        left -= static_cast<double>(in.gcount());
    }
    in.clear();
    in.seekg(0);
    return hash.text() == reported.hash
               ? ""
               : file + " is not the one of this result: its hash differs";
}

/// One gate of a run from its files, and why its event times are unknown ("": they are known).
struct stored_run {
    stored_gate gate{};
    std::string problem_of_events{};
};
/// Reads records.jsonl, and the result.json and events.bin beside it. Throws std::invalid_argument
/// with one sentence if they cannot be used.
inline stored_run read_stored_run(const std::filesystem::path& records, const std::string& gate) {
    const std::string result_file = (records.parent_path() / "result.json").string();
    const std::string json = file_content(result_file, "records_file: the result beside it");
    stored_run run{read_stored_gate(json, result_file, gate), ""};
    if (run.gate.definitions != definitions_version)
        refuse({result_file, " has the definitions ", run.gate.definitions, ", these are ",
                definitions_version});
    json_reader reader;
    const described_events reported =
        events_described_by(result_document(reader, json, result_file));
    const std::string events_file = (records.parent_path() / "events.bin").string();
    std::ifstream events = opened_file(events_file);
    run.problem_of_events = reported.is_there ? problem_of_events(events, events_file, reported)
                                          : result_file + " has no index of the events";
    read_records(run.gate, records.string(), reported,
                 run.problem_of_events.empty() ? &events : nullptr);
    return run;
}
/// The same; with `against`, the gate of another setting of its comparison, as the baseline.
inline stored_run read_stored_pairs(const std::filesystem::path& records, const std::string& gate,
                                    const std::string& against) {
    stored_run run = read_stored_run(records, gate);
    if (against.empty()) return run;
    stored_gate& g = run.gate;
    const stored_gate other = read_stored_run(records, against).gate;
    const auto parted =
        std::mismatch(g.name.begin(), g.name.end(), other.name.begin(), other.name.end());
    const bool is_one_comparison =
        std::string(g.name.begin(), parted.first).find(" / ") != std::string::npos;
    if (!is_one_comparison || g.name == other.name || g.load.trace_hash != other.load.trace_hash)
        refuse({"\"", g.name, "\" and \"", other.name, "\" are no two settings of one compare()"});
    g.seen = as_pairs(std::move(g.seen), other.seen);
    g.described = with_judging(std::move(g.described),
                               [](planned_judging& j) { j.has_baseline = true; });
    return run;
}
/// Refuses objectives that the plan of a stored run cannot have, or whose events its files lack.
inline void check_stored_objectives(const stored_run& run, const plan& what, const slo_list& slos) {
    const slo_context context(what);
    for (const slo& s : slos) {
        check_slo(s, context);
        if (!run.problem_of_events.empty() &&
            concerns(s.statistic, &metric_facts::needs_event_times))
            refuse({"the SLO ", str(s.text()), " needs the time of every event: ",
                    run.problem_of_events});
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
