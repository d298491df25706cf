// one repeat from the parts of several programs
#pragma once

#include "api/result.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/bodies/result_data.hpp"
#include "core/answers/timeline.hpp"
#include "core/base/json.hpp"
#include "core/base/statistics.hpp"
#include "core/base/field_json.hpp"
#include "core/base/text.hpp"
#include "core/judging/cross_check.hpp"
#include "core/judging/measurements.hpp"
#include "core/measured/credible.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/recovery.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/repeat_fields.hpp"
#include "core/measured/request_log.hpp"
#include "core/measured/timing_bounds.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/record_json.hpp"
#include "core/stored/stored.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "extensions/machines/core/clock.hpp"

#include <algorithm>  // max, min
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // move


namespace llmbench {
inline namespace v1 {
namespace detail {

/// As in result.json, records.jsonl and events.bin: facts on the first line, a line for each
/// request, an empty line, and all gaps in that order. Every gap must be listed.
inline std::string packed(const repeat_data& d) {
    json_writer facts(layout::one_line);
    facts.open('{');
    write_fields(facts, static_cast<const repeat_facts&>(d), odd_counts(), cross_check(),
                 vector<named_number>());
    std::string bytes = facts.close().text() + "\n";
    for (const record& r : d.records) bytes += record_json(r, "");
    bytes += '\n';
    for (std::size_t i = 0; i < d.records.size(); ++i)
        for (std::size_t k = 0; k < gap_count(d.records[i]); ++k) {
            const std::uint32_t gap = d.gaps[d.gap_offsets[i] + k];
            for (int b = 0; b < 4; ++b) bytes += static_cast<char>(gap >> (8 * b));
        }
    return bytes;
}

/// Throws std::runtime_error for invalid bytes, std::invalid_argument for an invalid number.
inline repeat_data unpacked(std::string_view bytes, run_variant variant) {
    const auto line = [&] {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) throw std::runtime_error("a part of a repeat is cut");
        const std::string_view found = bytes.substr(0, end);
        bytes.remove_prefix(end + 1);
        return found;
    };
    const std::string facts(line());
    json_reader json;
    const json_view* const described = json.read(facts);
    if (!described) throw std::runtime_error("a part of a repeat has no facts");
    const stored_object part(*described, "a part of a repeat");
    if (!part.has("window_from_ns") || !part.has("window_to_ns"))
        throw std::runtime_error("a part of a repeat has no window");
    repeat_data d = read_repeat(part, variant).what;
    std::string gate;
    vector<record> records;
    for (std::string_view next = line(); !next.empty(); next = line())
        records.push_back(read_record(std::string(next), gate));
    request_log log;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const std::size_t count = gap_count(records[i]);
        if (bytes.size() < 4 * count) throw std::runtime_error("a part of a repeat is cut");
        const gap_list gaps = gaps_in(bytes.substr(0, 4 * count));
        bytes.remove_prefix(4 * count);
        log.add(index_of(records[i], i), std::move(records[i]), gaps);
    }
    log.move_into(d);
    return d;
}

/// Adds the facts of another part to a repeat. Both are on one clock.
inline void add_facts(repeat_data& to, const repeat_data& part, bool by_window_of_all) {
    if (by_window_of_all) to.window = to.window.shared_with(part.window);
    to.resends += part.resends;
    to.add(part);
    // The slopes of sends over plan are averaged, weighted by the rates.
    const double asked = to.asked_rate + part.asked_rate;
    to.achieved_rate += part.achieved_rate;
    to.asked_rate = asked;
    to.cpu_utilization = std::max(to.cpu_utilization, part.cpu_utilization);
    to.thread_cpu_utilization.insert(to.thread_cpu_utilization.end(),
                                     part.thread_cpu_utilization.begin(),
                                     part.thread_cpu_utilization.end());
    to.loop_lag_p99 = std::max(to.loop_lag_p99, part.loop_lag_p99);
    to.loop_lag_max = std::max(to.loop_lag_max, part.loop_lag_max);
    to.stamp_lag_p99 = std::max(to.stamp_lag_p99, part.stamp_lag_p99);
    to.stamp_lag_max = std::max(to.stamp_lag_max, part.stamp_lag_max);
    to.lost_fraction = std::max(to.lost_fraction, part.lost_fraction);
    if (to.target_gone.empty()) to.target_gone = part.target_gone;
    to.interrupted = to.interrupted || part.interrupted;
    to.cut_short = to.cut_short || part.cut_short;
    to.differences.add(part.differences);
    to.texts.insert(to.texts.end(), part.texts.begin(), part.texts.end());
    to.shown.insert(to.shown.end(), part.shown.begin(), part.shown.end());
    if (!to.server.is_read) to.server = part.server;
    to.ranks.insert(to.ranks.end(), part.ranks.begin(), part.ranks.end());
}

/// The repeat of these parts, on the clock of the first; each has one entry in `ranks`, its own.
/// `closed`: users wait for answers, so each part has its own window, and the common part of all
/// windows counts.
inline repeat_data together(vector<repeat_data> parts, bool closed) {
    fail_frequent_resends(parts);
    fail_unfinished([&](auto&& f) {
        for (repeat_data& part : parts)
            for (record& r : part.records) f(r);
    });
    repeat_data all = std::move(parts.front());
    request_log log;
    log.take(request_log::again(all));
    for (std::size_t i = 1; i < parts.size(); ++i) {
        repeat_data& part = parts[i];
        move_clock(part, all.ranks.front().start_ns - part.ranks.front().start_ns);
        log.take(request_log::again(part));
        add_facts(all, part, closed);
        part = {};
    }
    if (log.is_counted()) log.count_all(all.window);
    log.move_into(all);
    note_lateness(all);
    note_unknown_gaps(all);
    note_exempt(all);
    return all;
}

/// One program's files of a shared load, with its requests.
struct stored_shard {
    std::string directory{};
    stored_gate gate{};
};

/// Numbers in a list: "3, 5, 6"; at most ten of them.
inline std::string numbers_text(const vector<std::size_t>& all) {
    std::string t;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 10); ++i)
        t += (i > 0 ? ", " : "") + std::to_string(all[i]);
    return all.size() > 10 ? t + printed(" and %zu more", all.size() - 10) : t;
}

/// Refuses a list that is not each shard of one load, once.
inline void check_all_there(const vector<stored_shard>& shards) {
    const stored_shard& first = shards.front();
    for (const stored_shard& s : shards)
        if (s.gate.load.shard.is_whole())
            refuse({s.directory, " is no shard of a load: \"", s.gate.name,
                    "\" was measured as a whole"});
    vector<const stored_shard*> found(first.gate.load.shard.count, nullptr);
    for (const stored_shard& s : shards) {
        const load_shard& shard = s.gate.load.shard;
        if (shard.count != found.size())
            refuse({s.directory, printed(" is one of %zu shards, ", shard.count), first.directory,
                    printed(" one of %zu", found.size())});
        const stored_shard*& place = found[std::min(shard.index, found.size() - 1)];
        if (place)
            refuse({printed("shard %zu is there twice: ", shard.index), place->directory, " and ",
                    s.directory});
        place = &s;
    }
    vector<std::size_t> missing;
    for (std::size_t i = 0; i < found.size(); ++i)
        if (!found[i]) missing.push_back(i);
    if (!missing.empty())
        refuse({printed("of %zu shards these are missing: ", found.size()), numbers_text(missing)});
}

/// How the requests of pairs were sent: at servers that only some shards take for one, only their
/// twins would be apart.
inline std::string pairs_text(const stored_gate& g) {
    const repeat_list &mine = g.seen.candidate, &other = g.seen.baseline;
    if (mine.empty() || other.empty()) return {};
    const bool are_apart = users_of(*g.described.sent) == 0 &&
                           mine.front().window.to_ns() != other.front().window.to_ns();
    return printed("%zu, %s", other.size(),
                   !g.seen.is_at_once ? "in turns" : are_apart ? "twins apart" : "at once");
}

inline void check_alike(const stored_shard& first, const stored_shard& s) {
    const auto same = [&](const char* what, const std::string& a, const std::string& b) {
        if (a != b)
            refuse({s.directory, " belongs to another load: ", what, " \"", printable(b), "\", in ",
                    first.directory, " \"", printable(a), "\""});
    };
    const stored_gate &a = first.gate, &b = s.gate;
    same("gate", a.name, b.name);
    same("version", a.version, b.version);
    same("definitions version", a.definitions, b.definitions);
    same("trace hash", a.load.trace_hash, b.load.trace_hash);
    same("run", a.load.nonce, b.load.nonce);
    same("server", a.target.url, b.target.url);
    same("model", a.target.model, b.target.model);
    same("api", a.target.api, b.target.api);
    same("arrivals", a.load.arrivals, b.load.arrivals);
    same("workload", a.load.sent.workload_text, b.load.sent.workload_text);
    same("extent", a.load.extent, b.load.extent);
    same("options", a.load.options, b.load.options);
    same("limits", a.load.limits, b.load.limits);
    same("seed", a.load.seed, b.load.seed);
    same("number of repeats", std::to_string(a.seen.candidate.size()),
         std::to_string(b.seen.candidate.size()));
    same("baseline", a.baseline.url, b.baseline.url);
    same("model of the baseline", a.baseline.model, b.baseline.model);
    same("api of the baseline", a.baseline.api, b.baseline.api);
    same("options of the baseline", a.baseline.options, b.baseline.options);
    same("workload of the baseline", a.load.baseline_workload, b.load.baseline_workload);
    same("pairs", pairs_text(a), pairs_text(b));
}

/// Refuses shards that did not send at the same time, by the server's clock, in the first of their
/// remaining repeats, the run's `repeat`-th.
inline void check_one_time(const vector<stored_shard>& shards, std::size_t repeat) {
    const auto part = [&](const stored_shard& s) -> const rank_part& {
        const vector<rank_part>& own = s.gate.seen.candidate.front().ranks;
        if (own.empty())
            refuse({s.directory, printed(": repeat %zu does not say when it began", repeat)});
        return own.front();
    };
    for (const stored_shard& s : shards) {
        if (s.gate.seen.baseline.empty()) continue;
        const repeat_data& other = s.gate.seen.baseline.front();
        if (other.index != s.gate.seen.candidate.front().index || other.ranks.empty() ||
            other.ranks.front().start_ns != part(s).start_ns)
            refuse({s.directory, printed(": in repeat %zu both variants did not begin together",
                                         repeat)});
    }
    const stored_shard *ahead = &shards.front(), *behind = ahead;
    for (const stored_shard& s : shards) {
        const clock_ahead& lead = part(s).lead;
        if (!lead.is_reported()) continue;
        const auto is_reported = [&](const stored_shard* x) { return part(*x).lead.is_reported(); };
        if (!is_reported(ahead) || lead.low_s > part(*ahead).lead.low_s) ahead = &s;
        if (!is_reported(behind) || lead.high_s < part(*behind).lead.high_s) behind = &s;
    }
    const double apart_s = least_between(part(*ahead).lead, part(*behind).lead);
    const double max_s = shards.front().gate.seen.max_skew_s;
    if (!(apart_s <= max_s))
        refuse({"in repeat ", std::to_string(repeat), " the clocks of ", ahead->directory, " and ",
                behind->directory, " were at least ", time_text(apart_s),
                " apart, by the Date of the server's answers: they sent no load together; up to ",
                time_text(max_s), " is allowed"});
}

/// Throws std::invalid_argument with one sentence if the shards are not a whole run. There is at
/// least one, and its repeats have their records.
inline measured_gate gathered(vector<stored_shard> shards, const slo_list& slos) {
    check_all_there(shards);
    for (const stored_shard& s : shards) check_alike(shards.front(), s);
    sort_by(shards, [](const stored_shard& s) { return s.gate.load.shard.index; });
    const stored_gate& first = shards.front().gate;
    measured_gate g;
    g.what = with_judging(first.described, [&](planned_judging& j) {
        j.rule = first.judged_by.rule;
        j.first_repeats = j.max_repeats = static_cast<int>(first.seen.candidate.size());
        j.slos = {slos.begin(), slos.end()};
    });
    g.target.kind = target_kind::endpoint;
    g.target.url = first.target.url;
    g.target.model = first.target.model;
    g.target.api = first.target.api;
    g.baseline = first.baseline;
    g.judged_by.slos = g.what.judged->slos;
    g.judged_by.rule = first.judged_by.rule;
    static_cast<load_conditions&>(g.seen) = first.seen;
    const bool closed = users_of(*g.what.sent) > 0;
    while (!first.seen.candidate.empty()) {
        check_one_time(shards, g.seen.candidate.size());
        for (const run_variant v : {run_variant::candidate, run_variant::baseline}) {
            if (first.seen.variant(v).empty()) continue;
            vector<repeat_data> parts;
            for (stored_shard& s : shards) {
                parts.push_back(s.gate.seen.variant(v).front());
                s.gate.seen.variant(v).erase(0);
            }
            g.seen.variant(v).push_back(together(std::move(parts), closed));
        }
        for (const run_variant v : {run_variant::candidate, run_variant::baseline})
            if (!g.seen.variant(v).empty())
                g.seen.variant(v).change_last(
                    [&](repeat_data& d) { note_lateness(d, twin_of(g.seen, d)); });
    }
    for (const stored_shard& s : shards)
        if (g.seen.stopped.empty()) g.seen.stopped = s.gate.seen.stopped;
    return g;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
