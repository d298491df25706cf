// llmbench_machines 1.0.0-rc.1: one load that several programs send, on one machine or on many, as shards
// Put together from src/ by ci/assemble.py: edit there, not here.
// or as ranks of MPI. Include it after llmbench.hpp.
//
// Part one: declarations
//   [A] a load that several programs send
// Part three: what each of these programs does, and what is made of their parts
//
// Macros, optional, in the file with the implementation:
//   LLMBENCH_WITH_MPI          ranks of MPI share the load of each gate: compile with mpicxx
//
// SPDX-License-Identifier: MIT
//
// Copyright (c) 2026 the llmbench authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or
// substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

#ifndef LLMBENCH_HPP
#error "llmbench_machines.hpp comes after llmbench.hpp: include that first"
#include <llmbench stops here>
#endif

#ifndef LLMBENCH_MACHINES_HPP
#define LLMBENCH_MACHINES_HPP
static_assert(__builtin_strcmp(LLMBENCH_RELEASE_, "llmbench_1.0.0rc.1") == 0,
              "llmbench_machines.hpp is of 1.0.0-rc.1, but llmbench.hpp is " LLMBENCH_RELEASE_
              ": take both from one release");

// ===== [A] a load that several programs send =====================================================

namespace llmbench {
inline namespace v1 {

/// Judges a load that several programs sent: LLMBENCH_SHARD (such as 2/8, counted from 0) gives
/// each its part, and LLMBENCH_START_AT (seconds since 1970) the common start. Combines the records
/// of their report directories and judges once. `gate` names one of several. Refuses, by name, a
/// shard that is missing, double, or of another run, trace, version, model or time limit; a shard
/// more than 50 ms late makes all objectives invalid. The error guard is last. Reported and
/// asserted as by gate().
///     judge_shards({"shard-0", "shard-1"}, {p90(ttft) <= 300_ms});
result judge_shards(const types::list<types::text>& directories, const slo_list& slos,
                    const types::text& gate = {}, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE())
    asm("include_llmbench_machines_hpp_where_LLMBENCH_MAIN_is");

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_MACHINES_HPP

#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS) && !defined(LLMBENCH_MACHINES_IMPLEMENTED)
#define LLMBENCH_MACHINES_IMPLEMENTED

#include <algorithm>  // find, find_if, max, min, sort
#include <atomic>
#include <cmath>  // fabs, isnan, llround
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <cstdio>  // freopen
#include <cstdlib>  // atexit, getenv, setenv, _Exit
#include <exception>  // current_exception, rethrow_exception
#include <filesystem>
#include <fstream>
#include <functional>  // what is done when ranks are lost
#include <iostream>  // cerr
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>
#include <utility>  // move

#include <sys/resource.h>  // getrusage

// ===== [E] the programs that sent a load, in reports =============================================

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Of each program the worst repeat and all requests, in order of rank.
inline vector<rank_part> over_repeats(const vector<rank_part>& of_all_repeats) {
    vector<rank_part> all;
    for (const rank_part& r : of_all_repeats) {
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const rank_part& x) { return x.index == r.index; });
        if (at == all.end()) {
            all.push_back(r);
            continue;
        }
        if (std::fabs(r.off_s) > std::fabs(at->off_s)) at->off_s = r.off_s;
        if (!(r.error_s <= at->error_s)) at->error_s = r.error_s;
        at->synchronised = at->synchronised && r.synchronised;
        at->cpu_utilization = std::max(at->cpu_utilization, r.cpu_utilization);
        at->memory_bytes = std::max(at->memory_bytes, r.memory_bytes);
        at->lateness_p99 = std::max(at->lateness_p99, r.lateness_p99);
        at->requests += r.requests;
        at->failed += r.failed;
    }
    return all;
}

inline std::string memory_text(double bytes) { return printed("%.0f MiB", bytes / 1048576); }

/// From the smallest to the largest value.
template <class Text>
std::string range_text(const vector<rank_part>& all, double rank_part::*of, const Text& text) {
    double least = infinity, most = -infinity;
    for (const rank_part& r : all) {
        least = std::min(least, r.*of);
        most = std::max(most, r.*of);
    }
    const std::string a = text(least), b = text(most);
    return a == b ? a : a + " to " + b;
}

/// "4 programs on 2 machines sent the load: ...", "" for one program.
inline std::string programs_text(const vector<rank_part>& of_all_repeats) {
    const vector<rank_part> all = over_repeats(of_all_repeats);
    if (all.size() < 2) return {};
    vector<std::string> hosts;
    std::size_t unsynchronised = 0;
    double off = 0;
    for (const rank_part& r : all) {
        if (std::find(hosts.begin(), hosts.end(), r.host) == hosts.end())
            hosts.push_back(r.host);
        unsynchronised += !r.synchronised && std::isnan(r.error_s);
        off = std::max(off, std::fabs(r.off_s));
    }
    const auto fraction = [](double x) { return printed("%.1f %%", 100 * x); };
    return filled("{programs} programs on {machines} machine{machines:s} sent the load; they "
                  "began within {off:t}, sent late by p99 {lateness}, used {cpu} of a core and "
                  "{memory}[{may_differ?}; the clocks of {unsynchronised} of them are not "
                  "known to be synchronised]",
                  {{"programs", all.size()}, {"machines", hosts.size()}, {"off", off},
                   {"lateness", range_text(all, &rank_part::lateness_p99, time_text)},
                   {"cpu", range_text(all, &rank_part::cpu_utilization, fraction)},
                   {"memory", range_text(all, &rank_part::memory_bytes, memory_text)},
                   {"may_differ", hosts.size() > 1 && unsynchronised > 0},
                   {"unsynchronised", unsynchronised}});
}
inline vector<rank_part> ranks_of(const gate_report& g) {
    vector<rank_part> all;
    for (const repeat_figures& r : g.figures.candidate.repeats)
        all.insert(all.end(), r.ranks.begin(), r.ranks.end());
    return all;
}
inline void show_programs(const gate_report& g, report_parts& into) {
    const vector<rank_part> all = over_repeats(ranks_of(g));
    if (all.size() < 2) return;
    into.notes.push_back(programs_text(all));
    report_table t{{"rank", "machine", "requests", "failed", "began late by", "known to",
                    "sends late by p99", "busiest thread", "memory"}, 2};
    for (const rank_part& r : all)
        t.add({r.index, r.host, r.requests, r.failed, time_text(r.off_s),
               std::isnan(r.error_s) ? "?" : time_text(r.error_s), time_text(r.lateness_p99),
               filled("{cpu:.1f%} %", {{"cpu", r.cpu_utilization}}),
               memory_text(r.memory_bytes)});
    into.details +=
        folded("Programs that sent the load", plural(all.size(), "rank"), fold::closed,
               page_table(filled("Ranks of {name}", {{"name", g.what.name}}), t));
}

// ===== [E] measurements on another machine's clock ===============================================

/// An answer between these two times had this Date.
inline void note_date(clock_ahead& c, double asked_s, double answered_s, double reported_s) {
    c.low_s = std::max(c.low_s, asked_s - reported_s - 2);
    c.high_s = std::min(c.high_s, answered_s - reported_s);
}
/// The least difference between two machines' clocks. Several servers with clocks of their own
/// leave it unknown.
inline double least_between(const clock_ahead& a, const clock_ahead& b) {
    if (!a.is_reported() || !b.is_reported()) return 0;
    return std::max({0.0, a.low_s - b.high_s, b.low_s - a.high_s});
}

/// Moves all times from their clock to another one.
class clock_mover : public field_visitor {
public:
    explicit clock_mover(long long by_ns) : by_ns_(by_ns) {}
    void time(const field&, long long& ns, const whole_range&) override {
        if (ns != 0) ns += by_ns_;
    }
    void time_after(const field& f, long long& ns, long long) override { time(f, ns, time_range); }
    void times_after(const field&, vector<long long>& ns, long long,
                     const time_groups& g) override {
        for (std::size_t i = 0; i < ns.size(); ++i)
            if (i % g.size < g.times) ns[i] += by_ns_;
    }

private:
    const long long by_ns_;
};

inline void move_clock(record& r, long long by_ns) {
    clock_mover mover(by_ns);
    std::string gate;
    fields_of(mover, r, gate);
}
/// Moves all times of a repeat.
inline void move_clock(repeat_data& d, long long by_ns) {
    for (record& r : d.records) move_clock(r, by_ns);
    clock_mover mover(by_ns);
    odd_counts odd;
    cross_check checked;
    vector<named_number> statistics;
    fields_of(mover, d, odd, checked, statistics);
}

// ===== [E] one repeat from the parts of several programs =========================================

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

// ===== [E] a load sent by several programs without communication =================================

#ifdef __linux__
#include <sys/timex.h>  // adjtimex
#endif
#include <unistd.h>  // gethostname

namespace llmbench {
inline namespace v1 {
namespace detail {

/// This program's share of the load, and the start of its first repeat in Unix time.
struct shard_settings {
    load_shard shard{};
    double start_at_s = 0;
};
/// LLMBENCH_SHARD, the whole load if not set.
inline load_shard shard_of(const std::string& s) {
    if (s.empty()) return {};
    const std::size_t slash = std::min(s.find('/'), s.size());
    const auto index = parsed_number<std::size_t>(s.substr(0, slash));
    const auto count = parsed_number<std::size_t>(s.substr(std::min(slash + 1, s.size())));
    if (!(index && count && *count > 0 && *count <= max_shards && *index < *count))
        refuse({"LLMBENCH_SHARD is \"", printable(s, 40),
                "\": it must be such as 2/8, the third of eight: 0/8 to 7/8, of 10000 at most"});
    return {*index, *count};
}
/// LLMBENCH_START_AT, 0 if not set.
inline double start_at_of(const std::string& s) {
    if (s.empty()) return 0;
    const double at = parsed_number<double>(s).value_or(0);
    if (!(at >= 1e9 && at < 1e10))
        refuse({"LLMBENCH_START_AT is \"", printable(s, 40),
                "\": it must be a time in seconds since 1970, such as $(($(date +%s) + 60))"});
    return at;
}
inline shard_settings shard_settings_of(const variable_lookup& look_up) {
    const shard_settings s{shard_of(look_up("LLMBENCH_SHARD")),
                           start_at_of(look_up("LLMBENCH_START_AT"))};
    if (s.shard.is_whole() != (s.start_at_s == 0))
        refuse({"LLMBENCH_SHARD and LLMBENCH_START_AT belong together: all shards of a load begin "
                "at one time, and only ", s.shard.is_whole() ? "the second" : "the first",
                " is set"});
    return s;
}

/// Refuses loads that cannot be shared in any way.
inline void check_shard(const planned_traffic& p, const load_shard& shard) {
    const auto count = static_cast<long long>(shard.count);
    const std::string shared = printed("the load is shared by %lld programs, and ", count);
    const arrival_data& a = p.arrivals;
    if (!p.beside.empty())
        refuse({shared, "beside has side tasks, which each of them would do: let one program send "
                "the load"});
    if (users_of(p) > 0 && !a.is_searched && a.users < count)
        refuse({shared, printed("arrivals has %lld users: each program needs one", a.users)});
    if (p.warmup_until_stable)
        refuse({shared, "warmup is until_stable: each program would end it at another time"});
    if (a.max_in_flight != 0 && a.max_in_flight < count)
        refuse({shared, printed("max_in_flight is %lld: each program needs one", a.max_in_flight)});
}
/// With servers of their own they would be separate loads.
inline void check_shared_target(const scenario& s) {
    if (s.target.is_switched())
        refuse({"target is switched(...), and the load is shared by several programs, each of which "
                "would put servers to sleep: let one program send the load"});
    for (const box* what : {&s.target.what(), &s.baseline.live().what()}) {
        if (what->get<process>())
            refuse({"target is a process, and the load is shared by several programs: start the "
                    "server once, and name its endpoint"});
        if (what->get<extension_value>())
            refuse({"target is simulated(), and the load is shared by several programs: start the "
                    "simulated server once (serve_simulated), and name its endpoint"});
    }
}

/// Refuses loads for which shards would have to communicate.
inline void check_shard(const plan& p, const load_shard& shard, const settings& asked) {
    const std::string of = printed("LLMBENCH_SHARD is %zu/%zu: ", shard.index, shard.count);
    if (p.searches())
        refuse({of, "a search needs a verdict between its probes, which shards do not have: use "
                    "MPI, or ask for one load"});
    if (p.judged->has_stored_baseline || (p.judged->has_baseline && !p.judged->is_at_once))
        refuse({of, "a baseline needs programs that communicate, unless pairs is at_once: use MPI, "
                    "or run the gate in one"});
    if (p.judged->past.by)
        refuse({of, "a history is of runs of one program: use MPI, or run the gate in one"});
    if (asked.calibrate != 0 || asked.write_baseline)
        refuse({of, "LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are of a whole load"});
    if (!p.sent->is_open_loop() && !(p.sent->duration_s > 0))
        refuse({of, "arrivals is a closed loop without a duration, so that no shard knows when the "
                    "next repeat begins: set .duration"});
    check_shard(*p.sent, shard);
}

/// The default number of repeats of shards: there is one analysis at the end, and a fail takes
/// three.
inline constexpr int repeats_of_shards = 3;

/// Shards start by their machines' clocks, which NTP keeps within some ten milliseconds.
inline constexpr double max_skew_of_shards_s = 0.05;

/// The starts of all repeats of this program's shards: all know the first start and the longest
/// duration of a repeat, so none has to ask. Times are Unix seconds.
class shard_clock {
public:
    static shard_clock& of_this_program() {
        static shard_clock clock;
        return clock;
    }
    /// The same words in all shards, and in no other run.
    static std::uint64_t nonce(double start_at_s, std::uint64_t seed, std::size_t gate) {
        const auto at = static_cast<std::uint64_t>(std::llround(start_at_s * 1e6));
        return mixed(at ^ mixed(seed + 7919 * (gate + 1)));
    }
    void begin_gate(double start_at_s, int servers) {
        if (next_s_ == 0) next_s_ = start_at_s;
        else next_s_ += between_gates_s * servers;
    }
    /// The start of the next repeat, which lasts until begin_next().
    double start_s() const { return next_s_; }
    /// The measured part of a batch begins when its warm-up must be over.
    static double measured_after_s(const planned_traffic& p) {
        return drain_s(p) + 1;
    }
    /// When all shards have all answers to a repeat that begins now. Twins may be sent 1 s apart.
    double end_s(const plan& of) const {
        const planned_traffic& p = of;
        const bool as_batch = p.arrivals.kind == arrival_kind::all_at_once;
        const double sends_s = as_batch && p.warmup_requests > 0 ? measured_after_s(p) :
                               expected_seconds(p) + (p.is_open_loop() ? 0 : first_answers_s);
        return next_s_ + sends_s + drain_s(p) + (of.judged->is_at_once ? 2 : 1);
    }
    void begin_next(const plan& p) { next_s_ = end_s(p) + between_repeats_s; }

private:
    static constexpr double between_gates_s = 15;  // to find the server, and its words
    static constexpr double between_repeats_s = 4;
    static constexpr double first_answers_s = 10;  // of users whose warm-up is a number
    double next_s_ = 0;
};

/// Waits for a time of the machine's clock, or a signal.
inline void wait_for_unix_time(double at_s) {
    for (double left = at_s - unix_s(); left > 0 && !stop_asked.load(); left = at_s - unix_s())
        sleep_s(std::min(left, 0.05));
}
inline long long steady_ns_at(double unix_time_s) {
    return now_ns() + std::llround((unix_time_s - unix_s()) * 1e9);
}

/// Peak memory of this process, in bytes.
inline double max_memory_so_far() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
#ifdef __APPLE__
    return static_cast<double>(used.ru_maxrss);
#else
    return 1024.0 * static_cast<double>(used.ru_maxrss);
#endif
}
inline std::string name_of_the_machine() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}
/// An id of this machine's start, "" if there is none.
inline std::string name_of_the_boot() {
    std::string id;
#ifdef __linux__
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
#endif
    return id;
}
/// Whether the system reports a synchronised clock.
inline bool clock_is_synchronised() {
#ifdef __linux__
    timex reported{};
    return ::adjtimex(&reported) != TIME_ERROR;
#else
    return true;  // unknown
#endif
}

inline rank_part part_of(const repeat_data& d, const load_shard& shard, long long start_ns) {
    rank_part r;
    r.index = static_cast<int>(shard.index);
    r.count = static_cast<int>(shard.count);
    r.host = printable(name_of_the_machine(), 256);
    r.start_ns = start_ns;
    r.cpu_utilization = d.cpu_utilization;
    r.memory_bytes = max_memory_so_far();
    r.synchronised = clock_is_synchronised();
    vector<double> late;
    for (const record& x : d.records) {
        if (!is_measured(x)) continue;
        ++r.requests;
        r.failed += has_failed(x);
        if (x.dispatched_ns > 0) late.push_back(static_cast<double>(x.late_ns) * 1e-9);
    }
    std::sort(late.begin(), late.end());
    if (!late.empty()) r.lateness_p99 = nearest_rank(late, 0.99);
    return r;
}

/// Reads the server's clock, if it reports one, because all shards see the same one.
inline void note_server_clock(const load_target& to, clock_ahead& lead) {
    const double asked_s = unix_s();
    const http_answer a = blocking_get(to, first_path(to), to.fields, 1);
    if (a.date_s) note_date(lead, asked_s, unix_s(), *a.date_s);
}

/// A shard's part of each variant, which begins with all others. The first shard reads the servers'
/// metrics before any of them sends and after all have their answers.
inline void send_of_shard(variant_repeats& variants, const std::function<void()>& load) {
    constexpr double to_connect_s = 2;
    const plan& p = variants[0].what;
    const load_target& clock_of = variants[0].target.load();
    shard_clock& clock = shard_clock::of_this_program();
    double begins_s = clock.start_s();
    const double ends_s = clock.end_s(p);
    clock.begin_next(p);
    clock_ahead lead;
    wait_for_unix_time(begins_s - to_connect_s - 1);
    if (unix_s() < begins_s - to_connect_s) note_server_clock(clock_of, lead);
    wait_for_unix_time(begins_s - to_connect_s);
    long long planned_ns = 0, began_ns = now_ns();
    variants[0].asked.start = [&] {  // both begin together
        planned_ns = steady_ns_at(begins_s);
        begins_s += shard_clock::measured_after_s(p);
        return began_ns = std::max(planned_ns, now_ns() + 10000000);
    };
    load();
    for (variant_repeat& v : variants) v.seen.ranks = {part_of(v.seen, p.shard, began_ns)};
    wait_for_unix_time(ends_s);
    if (!stop_asked.load()) note_server_clock(clock_of, lead);
    variants[0].seen.ranks[0].lead = lead;
    for (variant_repeat& v : variants)
        v.seen.ranks[0].off_s = static_cast<double>(began_ns - planned_ns) * 1e-9;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench

// ===== [E] programs started together by MPI ======================================================
// Rank 0 plans, judges and reports; the others send their share of the load and return their
// measurements. Only this part calls MPI, from one thread (MPI_THREAD_FUNNELED), with nine
// functions: Init_thread, Comm_rank, Comm_size, Bcast, Barrier, Allreduce, Gatherv, Finalize and
// Abort.

#ifdef LLMBENCH_WITH_MPI
#include <mpi.h>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Seconds that a rank waits for the others in a common step; ten times that before a gate and
/// while rank 0 judges. LLMBENCH_RANK_WAIT; not a number if that is invalid, which gates refuse.
inline double rank_wait_s() {
    const char* said = std::getenv("LLMBENCH_RANK_WAIT");
    if (!said || !*said) return 60;
    const double s = parsed_number<double>(said).value_or(0);
    return s >= 1 && s <= 86400 ? s : not_a_number;
}
inline void check_rank_wait() {
    if (std::isnan(rank_wait_s()))
        refuse({"LLMBENCH_RANK_WAIT is \"", printable(std::getenv("LLMBENCH_RANK_WAIT"), 40),
                "\": it must be a number of seconds from 1 to 86400"});
}

struct start_parameters {
    bool machine_has_one_clock = true;  // false: the clocks of its ranks are measured, too
    long long later_ns = 0;             // than agreed
};

class rank_group {
public:
    static rank_group& of_this_program() {
        static rank_group* const group = new rank_group;  // outlives every static object
        return *group;
    }
    int index() const { return index_; }
    int count() const { return count_; }
    bool is_first() const { return index_ == 0; }
    bool is_alone() const { return count_ == 1; }
    double wait_s() const { return wait_s_; }
    const start_parameters& starts() const { return starts_; }
    void set_starts(const start_parameters& s) { starts_ = s; }

    /// Sets the action, which does not return, for when other ranks are lost.
    void when_lost(std::function<void(const std::string& why)> act) { lost_ = std::move(act); }

    // ---- what all ranks call together; each waits for at most `max_s`

    /// Rank `from` sends, the others receive.
    std::string heard(std::string said, double max_s, int from = 0) {
        const waiting w(*this, max_s);
        long long size = static_cast<long long>(said.size());
        MPI_Bcast(&size, 1, MPI_LONG_LONG, from, MPI_COMM_WORLD);
        said.resize(static_cast<std::size_t>(size));
        for (std::size_t at = 0; at < said.size(); at += max_at_once)
            MPI_Bcast(said.data() + at, part(said.size(), at), MPI_CHAR, from, MPI_COMM_WORLD);
        return said;
    }
    long long heard(long long said, double max_s, int from = 0) {
        const waiting w(*this, max_s);
        MPI_Bcast(&said, 1, MPI_LONG_LONG, from, MPI_COMM_WORLD);
        return said;
    }
    void meet(double max_s) {
        const waiting w(*this, max_s);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    long long most(long long mine, double max_s) {
        const waiting w(*this, max_s);
        long long all = mine;
        MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
        return all;
    }
    /// Returns all texts in rank order at rank 0; elsewhere nothing. MPI counts in ints, so it is
    /// sent in pieces.
    vector<std::string> gathered(const std::string& mine, double max_s) {
        const std::size_t longest = static_cast<std::size_t>(
            most(static_cast<long long>(mine.size()), max_s));
        const std::size_t piece = std::max<std::size_t>(
            1, max_at_once / static_cast<std::size_t>(count_));
        vector<std::string> all(is_first() ? static_cast<std::size_t>(count_) : 0);
        for (std::size_t at = 0; at < longest; at += piece) {
            const waiting w(*this, max_s);
            gather_piece(mine, at, piece, all);
        }
        return all;
    }
    /// All ranks do this, or all throw: a rank that failed its own exception, the others the text
    /// of the first one.
    void all_or_none(const std::function<void()>& act, double max_s) {
        std::exception_ptr own;
        std::string why;
        try {
            act();
        } catch (const std::exception& e) {
            own = std::current_exception();
            why = reason_in(e);
        }
        agree(own, why, max_s);
    }
    void agree(const std::exception_ptr& own, const std::string& why, double max_s) {
        const long long failed = most(own ? count_ - index_ : 0, max_s);
        if (failed == 0) return;
        const int first = count_ - static_cast<int>(failed);
        const std::string words = heard(why, max_s, first);
        if (own) std::rethrow_exception(own);
        throw std::runtime_error(printed("rank %d of %d: ", first, count_) + words);
    }
    /// The last call, also of a program that ends by exit().
    void finish() {
        if (finished_.exchange(true)) return;
        const waiting w(*this, wait_s_);
        MPI_Finalize();
    }

private:
    static constexpr std::size_t max_at_once = 64 << 20;

    rank_group() : main_(std::this_thread::get_id()) {
        // Made where nothing catches an exception yet.
        if (const double s = rank_wait_s(); !std::isnan(s)) wait_s_ = s;
        ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);  // a waiting rank leaves the core
        contained_thread([this] { watch(); }, [](const char* why) {
            std::cerr << "llmbench: nobody watches the other ranks any more: " << why << std::endl;
            std::_Exit(3);
        }).detach();
        int provided = 0;
        {
            const waiting w(*this, wait_s_);
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        }
        MPI_Comm_rank(MPI_COMM_WORLD, &index_);
        MPI_Comm_size(MPI_COMM_WORLD, &count_);
        if (!is_first() && !std::freopen("/dev/null", "w", stdout))
            std::cerr << "llmbench: rank " << index_ << " speaks although rank 0 does\n";
        std::atexit([] { of_this_program().finish(); });
    }
    static int part(std::size_t size, std::size_t at, std::size_t most = max_at_once) {
        return static_cast<int>(std::min(most, size - std::min(at, size)));
    }
    void gather_piece(const std::string& mine, std::size_t at, std::size_t piece,
                      vector<std::string>& all) {
        const int own = part(mine.size(), at, piece);
        // The lengths are unknown to others, so all send them first.
        vector<int> sizes(all.size()), ones(all.size(), 1), places(all.size());
        for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i);
        MPI_Gatherv(&own, 1, MPI_INT, sizes.data(), ones.data(), places.data(), MPI_INT, 0,
                    MPI_COMM_WORLD);
        int total = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            places[i] = total;
            total += sizes[i];
        }
        std::string bytes(static_cast<std::size_t>(total), '\0');
        MPI_Gatherv(mine.data() + std::min(at, mine.size()), own, MPI_CHAR, bytes.data(),
                    sizes.data(), places.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i].append(bytes, static_cast<std::size_t>(places[i]),
                          static_cast<std::size_t>(sizes[i]));
    }

    /// Sets the deadline of a call that may never return.
    class waiting {
    public:
        waiting(rank_group& g, double max_s) : group_(g) {
            if (std::this_thread::get_id() != g.main_)
                refuse({"a gate in a thread of its own: with MPI all gates run in the thread that "
                        "runs the first"});
            group_.since_ns_ = now_ns();
            group_.until_ns_ = now_ns() + ns_of(max_s);
        }
        ~waiting() { group_.until_ns_ = 0; }
        waiting(const waiting&) = delete;
        waiting& operator=(const waiting&) = delete;

    private:
        rank_group& group_;
    };
    /// Nothing hangs: a rank whose call does not return writes its results and ends the others.
    void watch() {
        for (;;) {
            sleep_s(0.05);
            const long long until = until_ns_, now = now_ns();
            if (until == 0) continue;
            const double waited_s = static_cast<double>(now - since_ns_) * 1e-9;
            std::string why;
            if (now > until)
                why = printed("rank %d of %d waited %.0f s for the others: one of them has died, "
                              "or never came", index_, count_, waited_s);
            else if (stop_asked.load() && waited_s > 0.3)
                why = printed("the run was interrupted while rank %d of %d waited for the others: "
                              "one of them may have died", index_, count_);
            if (why.empty()) continue;
            std::cerr << "llmbench: " << why << std::endl;
            if (lost_) lost_(why);
            std::_Exit(3);  // also ends the other ranks
        }
    }

    const std::thread::id main_;
    int index_ = 0, count_ = 1;
    double wait_s_ = 60;
    start_parameters starts_{};
    std::atomic<long long> since_ns_{0}, until_ns_{0};
    std::atomic<bool> finished_{false};
    std::function<void(const std::string&)> lost_{};
};

/// Rank 0's order to the others between two verdicts: the next slot, or the end of the gate.
struct rank_command {
    bool is_over = false;
    slot next{};
};
inline std::string text_of(const rank_command& c) {
    const long long deadline_ns = c.next.deadline_ns;
    const double left_s = deadline_ns > 0 ? std::max(0.001, seconds_until(deadline_ns)) : 0;
    return printed("%d %d %d %d %d %.17g %.17g %.17g", c.is_over, c.next.variants.size() > 1,
                   c.next.variants[0] == run_variant::baseline, c.next.number, c.next.parts_twins,
                   c.next.load, c.next.answer_s, left_s);
}
inline rank_command command_of(const std::string& text) {
    vector<double> n;
    std::string_view left = text;
    while (!left.empty()) {
        n.push_back(leading_number<double>(left).value_or(not_a_number));
        left.remove_prefix(std::min(left.size(), left.find_first_not_of(' ')));
        if (n.size() == 8) break;
    }
    if (n.size() != 8) throw std::runtime_error("rank 0 asks for \"" + printable(text) + "\"");
    slot next{.number = static_cast<int>(n[3]),
              .load = n[5],
              .answer_s = n[6],
              .parts_twins = n[4] != 0,
              .deadline_ns = n[7] > 0 ? now_ns() + ns_of(n[7]) : 0};
    if (n[2] != 0) next.variants[0] = run_variant::baseline;
    if (n[1] != 0) next.variants.push_back(run_variant::baseline);
    return {n[0] != 0, std::move(next)};
}

/// By how much a rank's clock is ahead of rank 0's, and the error of that.
struct clock_offset {
    long long ahead_ns = 0, error_ns = 0;
};
/// Called by all ranks, returned at all. Ranks of one machine share a clock. With any other, rank 0
/// exchanges messages for its time: the shortest of fifty exchanges is the most exact, because that
/// time lies between its two ends (Cristian 1989, doi:10.1007/BF01784024). If busy machines allow
/// no short one, it continues for a second.
inline vector<clock_offset> clock_offsets(rank_group& ranks, double max_s) {
    constexpr int least_exchanges = 50;
    constexpr long long good_ns = 100000, max_ns = 1000000000;
    vector<clock_offset> all(static_cast<std::size_t>(ranks.count()));
    const std::string own_boot = name_of_the_boot();
    for (int r = 1; r < ranks.count(); ++r) {
        const std::string boot = ranks.heard(own_boot, max_s, r);
        const bool same = ranks.starts().machine_has_one_clock && !boot.empty() && boot == own_boot;
        if (ranks.heard(static_cast<long long>(same), max_s, 0)) continue;
        clock_offset best{0, 1LL << 60};
        const long long first = now_ns();
        for (int i = 0;; ++i) {
            const long long began = now_ns();
            const bool more =
                i < least_exchanges || (best.error_ns > good_ns && began - first < max_ns);
            if (!ranks.heard(static_cast<long long>(more), max_s, 0)) break;
            const long long there = ranks.heard(now_ns(), max_s, r);
            const long long half = (now_ns() - began + 1) / 2;
            if (half < best.error_ns) best = {there - (began + half), half};
        }
        clock_offset& at = all[static_cast<std::size_t>(r)];
        at.ahead_ns = ranks.heard(best.ahead_ns, max_s, 0);
        at.error_ns = ranks.heard(best.error_ns, max_s, 0);
    }
    return all;
}

/// The common start of all ranks, each by its clock, once all are ready.
class common_start {
public:
    common_start(rank_group& ranks, vector<clock_offset> offsets)
        : ranks_(ranks), offsets_(std::move(offsets)) {}
    long long operator()() {
        try {
            ranks_.agree({}, "", ranks_.wait_s());
        } catch (...) {
            is_called_off_ = true;
            throw;
        }
        ++begun_;
        ranks_.meet(ranks_.wait_s());
        at_first_ns_ = ranks_.heard(now_ns() + ahead_ns, ranks_.wait_s());
        const auto own = static_cast<std::size_t>(ranks_.index());
        return std::max(at_first_ns_ + offsets_[own].ahead_ns, now_ns() + 10000000) +
               ranks_.starts().later_ns;
    }
    int begun() const { return begun_; }
    bool is_called_off() const { return is_called_off_; }
    /// Notes how far from the plan a part began, by clocks before and after.
    void note(rank_part& part, const vector<clock_offset>& after) const {
        const auto r = static_cast<std::size_t>(part.index);
        for (const auto* offsets : {&offsets_, &after}) {
            const clock_offset& c = (*offsets)[r];
            const double off_s =
                static_cast<double>(part.start_ns - c.ahead_ns - at_first_ns_) * 1e-9;
            const double error_s = static_cast<double>(c.error_ns) * 1e-9;
            if (offsets == &offsets_ || std::fabs(off_s) > std::fabs(part.off_s))
                part.off_s = off_s;
            part.error_s = offsets == &offsets_ ? error_s : std::max(part.error_s, error_s);
        }
    }

private:
    static constexpr long long ahead_ns = 200000000;
    rank_group& ranks_;
    vector<clock_offset> offsets_;
    long long at_first_ns_ = 0;
    int begun_ = 0;
    bool is_called_off_ = false;
};

inline delivered_requests delivered(const repeat_data& part) {
    delivered_requests d;
    d.records = part.records;
    for (std::size_t i = 0; i < part.records.size(); ++i)
        for (std::size_t k = 0; k < gap_count(part.records[i]); ++k)
            d.gaps.push_back(part.gaps[part.gap_offsets[i] + k]);
    return d;
}

inline repeat_data gathered_repeat(const plan& p, repeat_data own,
                                   const vector<std::string>& packed_parts,
                                   const common_start& start,
                                   const vector<clock_offset>& after, outbox* out) {
    vector<repeat_data> parts;
    parts.push_back(std::move(own));
    for (std::size_t i = 1; i < packed_parts.size(); ++i) {
        if (packed_parts[i].empty() || packed_parts[i][0] != '{')
            throw std::runtime_error(printed("rank %zu of %zu: ", i, packed_parts.size()) +
                                     printable(packed_parts[i]));
        parts.push_back(unpacked(packed_parts[i], parts[0].variant));
    }
    for (repeat_data& d : parts)
        for (rank_part& r : d.ranks) start.note(r, after);
    for (std::size_t i = 1; i < parts.size(); ++i) {
        move_clock(parts[i], parts[0].ranks[0].start_ns - parts[i].ranks[0].start_ns);
        if (!out) continue;
        delivered_requests d = delivered(parts[i]);
        out->put(d);
    }
    return together(std::move(parts), users_of(*p.sent) > 0);
}

/// A batch is measured after its warm-up, as a load of its own.
inline int starts_of(const planned_traffic& p) {
    return p.arrivals.kind == arrival_kind::all_at_once && p.warmup_requests > 0 ? 2 : 1;
}

/// Called by all ranks. Each variant then has the whole repeat at rank 0, elsewhere this rank's
/// part. Throws at all ranks if one could not begin, at rank 0 if one could not end.
inline void send_of_ranks(variant_repeats& variants, const std::function<void()>& load) {
    rank_group& ranks = rank_group::of_this_program();
    const plan& p = variants[0].what;
    common_start start(ranks, clock_offsets(ranks, ranks.wait_s()));
    if (!ranks.is_first())
        for (variant_repeat& v : variants)
            v.asked.max_gaps = ~0ull;  // counted when all are combined
    long long began_ns = now_ns();
    variants[0].asked.start = [&] { return began_ns = start(); };  // both begin together
    std::string why;
    const long long began = now_ns();
    try {
        load();
        for (variant_repeat& v : variants) v.seen.ranks = {part_of(v.seen, p.shard, began_ns)};
    } catch (const std::exception& e) {
        if (start.is_called_off()) throw;
        if (start.begun() < starts_of(p))  // the others wait for it
            ranks.agree(std::current_exception(), reason_in(e), ranks.wait_s());
        why = reason_in(e);
    }
    // Another rank's users may take as long again as ours, and so may the last answers.
    const double max_s = ranks.wait_s() + drain_s(*p.sent) +
                          static_cast<double>(now_ns() - began) * 1e-9;
    const vector<clock_offset> after = clock_offsets(ranks, max_s);
    vector<vector<std::string>> parts;  // all are sent before one of them may be found wrong
    for (const variant_repeat& v : variants)
        parts.push_back(ranks.gathered(
            ranks.is_first() ? "" : why.empty() ? packed(v.seen) : why, max_s));
    if (!ranks.is_first()) return;
    if (!why.empty()) throw std::runtime_error(why);
    for (std::size_t i = 0; i < variants.size(); ++i) {
        repeat_data& all = variants[i].seen;
        all = gathered_repeat(p, std::move(all), parts[i], start, after, variants[i].asked.out);
        parts[i] = {};
    }
    if (variants.size() < 2) return;
    note_lateness(variants[0].seen, &variants[1].seen);
    note_lateness(variants[1].seen, &variants[0].seen);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
#endif

// ===== [E] this program's role in a shared load ==================================================

namespace llmbench {
inline namespace v1 {
namespace detail {

inline plan as_shard(plan p, const scenario& s, const settings& asked, std::size_t gate) {
    const shard_settings own = shard_settings_of(environment);
    check_shard(p, own.shard, asked);
    const long long repeats = s.repeats;
    p.shard = own.shard;
    p.max_skew_s = max_skew_of_shards_s;
    p.nonce = shard_clock::nonce(own.start_at_s, asked.seed, gate);
    p = with_judging(std::move(p), [&](planned_judging& j) {
        j.max_repeats = j.first_repeats = repeats > 0    ? static_cast<int>(repeats)
                                          : j.is_at_once ? 1
                                                         : repeats_of_shards;
        j.rule = rule_of(s.judging, j.first_repeats, j.max_repeats, 0, j.is_at_once ? 1 : 5);
    });
    shard_clock::of_this_program().begin_gate(own.start_at_s, p.judged->has_baseline ? 2 : 1);
    const double ahead_s = shard_clock::of_this_program().start_s() - unix_s();
    if (!(ahead_s > 0 && ahead_s < 86400))
        refuse({printed("LLMBENCH_START_AT: the first repeat was to begin %.0f s %s: all shards "
                        "must be there before it, and within a day", std::fabs(ahead_s),
                        ahead_s < 0 ? "ago" : "from now")});
    return p;
}

/// Seconds: 5 ms, or 1 % of the tightest limit on ttft if that is more. Each latency is measured on
/// one clock; only the arrival pattern depends on the skew.
inline double max_skew_of_ranks(const plan& p) {
    double tightest = infinity;
    const auto take = [&](metric_id m, double bound) {
        if (m == metric_id::ttft && bound > 0) tightest = std::min(tightest, bound);
    };
    for (const auto* objectives : {&p.judged->slos, &p.judged->search.objectives_held})
        for (const slo& s : *objectives) {
            if (is_absolute(s)) take(s.statistic.metric, s.bound);
            for (const predicate_step& step : s.statistic.where)
                if (step.op == predicate_step::op_kind::compare) take(step.metric, step.bound);
        }
    return std::max(0.005, tightest < infinity ? 0.01 * tightest : 0);
}

#ifdef LLMBENCH_WITH_MPI
/// One rank's part of a plan, which must be the same at all ranks.
inline plan as_rank(plan p, const load_shard& part) {
    rank_group& ranks = rank_group::of_this_program();
    p.shard = part;
    check_shard(*p.sent, p.shard);
    p.max_skew_s = max_skew_of_ranks(p);
    std::string mine = version_text() + " " + p.name + " " + trace_hash(p) + " " +
                       options_text(p) + " " + limits_text(p) +
                       (p.judged->is_at_once ? " at once" : "");
    for (const slo& x : p.judged->slos) mine += "; " + str(x.text());
    const std::string first = ranks.heard(mine, 10 * ranks.wait_s());
    p.nonce = static_cast<std::uint64_t>(
        ranks.heard(static_cast<long long>(p.nonce), ranks.wait_s()));
    ranks.all_or_none(
        [&] {
            if (mine != first)
                refuse({"its gate is another one than rank 0's: \"", printable(mine),
                        "\" is not \"", printable(first),
                        "\"; all ranks need the same program, arguments and LLMBENCH_ variables"});
        },
        ranks.wait_s());
    return p;
}
#endif

/// Shards, which do not communicate.
class shards_of_load : public load_sharing {
public:
    void check(const scenario& s, const settings& asked) override {
        if (asked.is_shard) check_shared_target(s);
    }
    void take_part(plan& p, const scenario& s, const settings& asked, std::size_t gate) override {
        if (asked.is_shard) p = as_shard(std::move(p), s, asked, gate);
    }
    void send(const slot&, variant_repeats& variants,
              const std::function<void()>& load) override {
        if (variants[0].what.shard.is_whole()) load();
        else send_of_shard(variants, load);
    }
};

#ifdef LLMBENCH_WITH_MPI
/// Ranks of MPI, if it has started several programs.
class ranks_of_load final : public shards_of_load {
public:
    int rank() override { return ranks().index(); }
    load_shard part() override {
        return {static_cast<std::size_t>(ranks().index()),
                static_cast<std::size_t>(ranks().count())};
    }
    void when_lost(std::function<void(const std::string&)> act) override {
        ranks().when_lost(std::move(act));
    }
    void check(const scenario& s, const settings& asked) override {
        check_rank_wait();
        if (ranks().is_alone()) return shards_of_load::check(s, asked);
        if (!asked.rehearse.empty())
            refuse({"LLMBENCH_REHEARSE is set, and the load is shared by ranks of MPI: start one "
                    "program, the model answers no others"});
        if (asked.is_shard) refuse({"LLMBENCH_SHARD is set, and MPI shares the load already"});
        check_shared_target(s);
    }
    void all_or_none(const std::function<void()>& act) override {
        if (ranks().is_alone()) act();
        else ranks().all_or_none(act, 10 * ranks().wait_s());
    }
    void take_part(plan& p, const scenario& s, const settings& asked, std::size_t gate) override {
        if (ranks().is_alone()) shards_of_load::take_part(p, s, asked, gate);
        else p = as_rank(std::move(p), part());
    }
    void send(const slot& s, variant_repeats& variants,
              const std::function<void()>& load) override {
        // A profile after a red gate is of rank 0 alone: the others have left the gate.
        if (ranks().is_alone() || variants[0].what.shard.is_whole())
            return shards_of_load::send(s, variants, load);
        tell({false, s});
        send_of_ranks(variants, load);
    }
    void end_gate() override { tell({.is_over = true}); }
    /// Rank 0 reports the failure of a repeat.
    std::string follow(const std::function<void(const slot&)>& run) override {
        for (;;) {
            const rank_command c =
                command_of(ranks().heard(std::string(), 10 * ranks().wait_s()));
            if (c.is_over) break;
            try {
                run(c.next);
            } catch (const std::exception&) {
                // Rank 0 knows of it.
            }
        }
        return printed("rank %d of %d sends its part of the load: rank 0 judges and reports",
                       ranks().index(), ranks().count());
    }

private:
    static rank_group& ranks() { return rank_group::of_this_program(); }
    static void tell(const rank_command& c) {
        if (!ranks().is_alone() && ranks().is_first()) ranks().heard(text_of(c), ranks().wait_s());
    }
};
inline constinit ranks_of_load sharing_with_others{};
#else
inline constinit shards_of_load sharing_with_others{};
#endif

inline void read_shard_settings(const variable_lookup& look_up, settings& into) {
    into.is_shard = !shard_settings_of(look_up).shard.is_whole();
}
inline constinit const extension loads_shared{.name = "machines",
                                              .read_settings = read_shard_settings,
                                              .show = show_programs};
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_loads_shared() {
    add(loads_shared);
    sharing_of_program = &sharing_with_others;
}

inline stored_shard read_shard(const std::string& directory, const std::string& gate) {
    stored_run run = read_stored_run(std::filesystem::path(directory) / "records.jsonl", gate);
    if (!run.problem_of_events.empty()) refuse({directory, ": ", run.problem_of_events});
    return {directory, std::move(run.gate)};
}

inline result judged_shards(const types::list<types::text>& directories, const slo_list& slos,
                            const types::text& gate, const char* file, int line) {
    scenario as;
    as.name = gate;
    as.slos = slos;
    const gate_reader read = [&] {
        if (directories.size() == 0)
            refuse({"directories: none is named, one for each shard is needed"});
        vector<stored_shard> shards;
        for (const text& d : directories) shards.push_back(read_shard(str(d), str(gate)));
        measured_gate g = gathered(std::move(shards), slos);
        const slo_context context(g.what);
        for (const slo& s : g.what.judged->slos) check_slo(s, context);
        return g;
    };
    vector<std::string> all;
    for (const text& d : directories) all.push_back(str(d));
    return executed(gate_execution(as, file, line, "judge_shards", read, std::move(all)));
}

}  // namespace detail

result judge_shards(const types::list<types::text>& directories, const slo_list& slos,
                    const types::text& gate, const char* file, int line) {
    return detail::asserted(detail::judged_shards(directories, slos, gate, file, line), file, line);
}

}  // inline namespace v1
}  // namespace llmbench

#endif  // LLMBENCH_MACHINES_IMPLEMENTED
