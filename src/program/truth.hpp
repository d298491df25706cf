// llmbench judge --truth: the error of a client
// Measured minus true of each request. A request that one side lacks has an infinite error.
#pragma once

#include "core/base/json.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/metric/table.hpp"
#include "effects/gates/stored_run.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "program/arguments.hpp"
#include "program/definitions.hpp"
#include "program/judge.hpp"
#include "program/run_options.hpp"
#include "program/truth_log.hpp"
#include "program/truth_match.hpp"
#include "program/truth_table.hpp"
#include "program/values.hpp"

#include <algorithm>  // all_of, max, min, sort
#include <cmath>      // fabs, isnan
#include <cstddef>
#include <iterator>  // begin, end
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench_program {

/// What a client has measured, of all files together.
struct measured_requests {
    vector<timed_request> requests{};
    std::optional<other_tool> tool{};  // whose definitions are shown, too
    vector<std::string> notes{};
    metric_group unknown{};  // metrics of ours that the files do not have
    bool lacks(metric_id m) const {
        return detail::any_of(unknown, [&](metric_id x) { return x == m; });
    }
};

inline void add_repeats(measured_requests& to, const repeat_list& repeats) {
    for (const repeat_data& d : repeats)
        for (std::size_t i = 0; i < d.records.size(); ++i) {
            timed_request t;
            t.what = d.records[i];
            t.order_ns = t.what.sent_ns;
            if (!d.gaps_counted && t.is_complete())
                for (std::size_t k = 0; k < gap_count(t.what); ++k)
                    t.gaps_s.push_back(d.gaps[d.gap_offsets[i] + k] * 1e-6);
            to.requests.push_back(std::move(t));
        }
}
inline void add_imported(measured_requests& to, imported_run&& run, const true_requests& truth) {
    to.tool.reset();
    for (const other_tool_name& t : other_tools)
        if (run.tool.starts_with(t.title)) to.tool = t.id;
    if (to.tool == other_tool::vllm) number_ids(run.requests, truth);
    for (const unsupported_metrics& u : run.unsupported) {
        for (const metric_id m : u.of) to.unknown.push_back(m);
        if (u.of.empty()) to.notes.push_back(run.file + ": " + u.why);
    }
    for (imported_request& r : run.requests) {
        timed_request t;
        for (const std::uint32_t us : r.gaps) t.gaps_s.push_back(us * 1e-6);
        t.what = std::move(r.what);
        t.what.id = r.id;
        t.order_ns = run.clock.is_reported() ? t.what.sent_ns : 0;
        to.requests.push_back(std::move(t));
    }
}
inline measured_requests measured_in(const vector<std::string>& files, const std::string& gate,
                                     const true_requests& truth) {
    measured_requests all;
    for (const std::string& path : files) {
        if (is_own_run(path)) {
            const own_run run = run_at(path);
            for (const past_gate& g : gates_in(run, gate)) {
                const stored_run s = read_stored_run(run.records(), str(g.name));
                add_repeats(all, s.gate.seen.candidate);
                add_repeats(all, s.gate.seen.baseline);
            }
            continue;
        }
        const std::optional<std::string> bytes = bytes_of_file(path);
        if (!bytes) refuse({"files: ", printable(path), " cannot be read as a file"});
        if (is_table(*bytes))
            for (timed_request& t : read_table(*bytes, path)) all.requests.push_back(std::move(t));
        else
            for (imported_run& run : read_imported_runs(*bytes, path, bytes_of_file))
                add_imported(all, std::move(run), truth);
    }
    return all;
}

/// A metric by the stamps it is between, by our definitions or by those of a tool.
struct error_row {
    std::string name{};
    other_metric by{};
    bool is_ours = true;
};
inline vector<error_row> rows_for(const measured_requests& m) {
    using enum divided_by;
    const auto ours = [](const char* name, divided_by per, long long record::* from,
                         long long record::* to) {
        return error_row{name, {{}, name, per, from, to}};
    };
    const std::pair<metric_id, error_row> known[] = {
        {metric_id::ttft, ours("ttft", nothing, &record::scheduled_ns, &record::first_token_ns)},
        {metric_id::ttft_from_send,
         ours("ttft_from_send", nothing, &record::sent_ns, &record::first_token_ns)},
        {metric_id::tpot,
         ours("tpot", later_tokens, &record::first_token_ns, &record::last_token_ns)},
        {metric_id::itl, ours("itl", gaps, nullptr, nullptr)},
        {metric_id::e2e, ours("e2e", nothing, &record::scheduled_ns, &record::end_ns)}};
    vector<error_row> rows;
    for (const auto& [id, row] : known)
        if (!m.lacks(id)) rows.push_back(row);
    if (m.tool)
        for (const other_metric& o : other_metrics)
            if (o.tool == *m.tool && (o.per != gaps || !m.lacks(metric_id::itl)))
                rows.push_back({o.name, o, false});
    return rows;
}
/// The tokens of its first event that a client does not divide the time after it by: those of the
/// client's definition, on both sides, as an event may have several tokens without telling it.
inline int first_tokens_of(const timed_request* t) {
    return t && !t->is_row ? t->what.first_event_tokens : 1;
}
/// NaN: the request has no such value.
inline double value_of(const error_row& row, const timed_request& t, int first_tokens) {
    if (row.is_ours && row.name == "ttft" && t.ttft_s) return *t.ttft_s;
    if (row.is_ours && row.name == "tpot" && t.tpot_s) return *t.tpot_s;
    if (row.is_ours && row.name == "e2e" && t.e2e_s) return *t.e2e_s;
    const record& r = t.what;
    const long long from = r.*row.by.from, to = r.*row.by.to;
    const bool is_first = row.by.to == &record::first_token_ns;
    const int less = row.by.per != divided_by::later_tokens ? 0
                     : row.is_ours                          ? first_tokens
                                                            : 1;
    const int parts = row.by.per == divided_by::nothing ? 1 : r.output_tokens - less;
    if (from == 0 || to == 0 || parts <= 0 || (is_first && r.first_token_ns == 0))
        return not_a_number;
    return static_cast<double>(to - from) * 1e-9 / parts;
}

struct error_figures {
    std::string name{};
    bool is_ours = true;
    vector<double> sizes{};      // without signs, rising; infinite: one side lacks the request
    double bias = not_a_number;  // mean of the finite ones, with signs
    std::size_t lost = 0, other_events = 0;
    std::size_t without_value = 0;  // of the client, though the truth has one
    double at(double q) const { return sizes.empty() ? not_a_number : nearest_rank(sizes, q); }
};
/// The size of an error is smaller by what the truth itself does not know.
inline double error_beyond(double error, double doubt_s) {
    return std::fabs(error) <= doubt_s ? 0 : error > 0 ? error - doubt_s : error + doubt_s;
}
inline double doubt_of(const error_row& row, const timed_request& truth) {
    const std::size_t last = truth.gaps_s.size();
    const bool begins = row.by.to == &record::first_token_ns;
    if (row.by.per == divided_by::nothing) return truth.doubt_s(begins ? 0 : last);
    return (truth.doubt_s(0) + truth.doubt_s(last)) / std::max(truth.what.output_tokens - 1, 1);
}
inline void add_errors(vector<double>& to, error_figures& f, const error_row& row,
                       const matched_pair& p) {
    if (row.by.per != divided_by::gaps) {
        const int first = first_tokens_of(p.measured);
        const double truth = value_of(row, *p.truth, first);
        const double error = value_of(row, *p.measured, first) - truth;
        if (!std::isnan(error)) to.push_back(error_beyond(error, doubt_of(row, *p.truth)));
        else if (row.is_ours && !std::isnan(truth)) ++f.without_value;
        return;
    }
    const vector<double>&a = p.measured->gaps_s, &b = p.truth->gaps_s;
    if (a.size() != b.size()) {
        ++f.other_events;
        return;
    }
    for (std::size_t i = 0; i < a.size(); ++i)
        to.push_back(error_beyond(a[i] - b[i], p.truth->doubt_s(i) + p.truth->doubt_s(i + 1)));
}
/// Sorted values of both sides against each other, at as many ranks as the files have.
inline void add_rank_errors(vector<double>& to, error_figures& f, const error_row& row,
                            const vector<matched_pair>& pairs) {
    vector<double> a, b;
    int first = 1;  // of the client, whose requests come first
    for (const matched_pair& p : pairs)
        if (p.measured && p.measured->is_complete()) first = first_tokens_of(p.measured);
    const auto add = [&](vector<double>& values, const timed_request* t) {
        if (!t || !t->is_complete()) return;
        if (row.by.per == divided_by::gaps)
            for (const double gap : t->gaps_s) values.push_back(gap);
        else if (const double v = value_of(row, *t, first); !std::isnan(v)) values.push_back(v);
    };
    for (const matched_pair& p : pairs) {
        add(a, p.measured);
        add(b, p.truth);
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a.empty() || b.empty()) return;
    f.lost = row.by.per == divided_by::gaps ? 0
             : a.size() > b.size()          ? a.size() - b.size()
                                            : b.size() - a.size();
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double rank = (static_cast<double>(i) + 0.5) / static_cast<double>(a.size());
        to.push_back(a[i] - nearest_rank(b, rank));
    }
}
inline error_figures errors_of(const error_row& row, const matched_requests& m) {
    error_figures f{.name = row.name, .is_ours = row.is_ours};
    vector<double> errors;
    if (m.by == matching::by_rank) {
        add_rank_errors(errors, f, row, m.pairs);
    } else {
        for (const matched_pair& p : m.pairs) {
            const bool measured = p.measured && p.measured->is_complete();
            const bool is_true = p.truth && p.truth->is_complete();
            if (measured && is_true) add_errors(errors, f, row, p);
            else f.lost += measured || is_true;
        }
    }
    if (errors.empty()) return f;
    f.bias = mean_of(errors);
    for (const double e : errors) f.sizes.push_back(std::fabs(e));
    f.lost += f.other_events + f.without_value;
    for (std::size_t i = 0; i < f.lost; ++i) f.sizes.push_back(infinity);
    std::sort(f.sizes.begin(), f.sizes.end());
    return f;
}

/// "p99(ttft_error) <= 1 ms".
struct error_objective {
    std::string text{}, statistic{}, metric{};
    double quantile = 0, limit_s = 0;
};
inline error_objective error_objective_of(const std::string& text) {
    constexpr const char* allowed =
        "p50, p90, p95, p99, max or bias of ttft_error, ttft_from_send_error, tpot_error, "
        "itl_error "
        "or e2e_error, and a time, such as 'p99(ttft_error) <= 1 ms'";
    const given g{"--slo", text};
    error_objective o{.text = text};
    const std::size_t at = text.find("<=");
    const auto c = call_in(std::string_view(text).substr(0, std::min(at, text.size())));
    const auto limit = at == std::string::npos ? std::nullopt : time_in(text.substr(at + 2));
    if (!c || c->arguments.size() != 1 || !limit || *limit < 0) g.refuse_as(allowed);
    o.statistic = c->name;
    o.limit_s = *limit;
    const std::string& metric = c->arguments[0];
    for (const char* known : {"ttft", "ttft_from_send", "tpot", "itl", "e2e"})
        if (metric == std::string(known) + "_error") o.metric = known;
    for (const auto& [name, q] :
         {std::pair{"p50", 0.5}, std::pair{"p90", 0.9}, std::pair{"p95", 0.95},
          std::pair{"p99", 0.99}, std::pair{"max", 1.0}})
        if (o.statistic == name) o.quantile = q;
    if (o.metric.empty() || (o.quantile == 0 && o.statistic != "bias")) g.refuse_as(allowed);
    return o;
}
/// The exit code of an objective, and its line.
struct error_verdict {
    int code = 0;
    std::string line{};
};
inline error_verdict judged(const error_objective& o, const vector<error_figures>& all) {
    const error_figures* f = nullptr;
    for (const error_figures& x : all)
        if (x.is_ours && x.name == o.metric) f = &x;
    const auto invalid = [&](const std::string& why) {
        return error_verdict{3, "  INVALID  " + o.text + "  " + why};
    };
    if (!f || f->sizes.empty()) return invalid("the files have no value of it");
    if (o.quantile > 0 && o.quantile < 1 &&
        static_cast<double>(f->sizes.size()) * (1 - o.quantile) < 1 - 1e-9)
        return invalid(printed("%zu requests have no value at that percentile: %.0f are needed",
                               f->sizes.size(), 1 / (1 - o.quantile)));
    const double v = o.quantile > 0 ? f->at(o.quantile)
                     : f->lost > 0  ? infinity
                                    : std::fabs(f->bias);
    const bool is_met = v <= o.limit_s;
    return {is_met ? 0 : 1,
            std::string(is_met ? "  PASS  " : "  FAIL  ") + o.text + "  measured " + time_text(v)};
}

inline std::string signed_time(double s) { return (s > 0 ? "+" : "") + time_text(s); }
/// Our definitions first, then the tool's.
inline std::string errors_text(const vector<error_figures>& all,
                               const std::optional<other_tool>& tool) {
    std::string out = printed("\n  %-17s %10s %10s %10s %10s %9s\n", "measured - true", "p50",
                              "p99", "max", "bias", "values");
    for (const bool ours : {true, false}) {
        if (!ours && tool)
            out += printed("  as %s has it\n", other_tools[static_cast<std::size_t>(*tool)].title);
        for (const error_figures& f : all) {
            if (f.is_ours != ours || f.sizes.empty()) continue;
            out += printed("  %-17s %10s %10s %10s %10s %9zu\n", f.name.c_str(),
                           time_text(f.at(0.5)).c_str(), time_text(f.at(0.99)).c_str(),
                           time_text(f.at(1)).c_str(), signed_time(f.bias).c_str(), f.sizes.size());
            if (f.other_events > 0)
                out += printed("  %-17s %s with another number of events in the log: infinite "
                               "error\n", "", plural(f.other_events, "request").c_str());
            if (f.without_value > 0)
                out += printed("  %-17s %s without a value in the files: infinite error\n", "",
                               plural(f.without_value, "request").c_str());
        }
    }
    return out;
}
inline std::string lost_text(const matched_requests& m) {
    std::size_t absent = 0, failed = 0, unknown = 0, broken = 0;
    for (const matched_pair& p : m.pairs) {
        if (m.by == matching::by_rank) continue;
        const bool measured = p.measured && p.measured->is_complete();
        const bool is_true = p.truth && p.truth->is_complete();
        absent += is_true && !p.measured;
        failed += is_true && p.measured && !measured;
        unknown += measured && !p.truth;
        broken += measured && p.truth && !is_true;
    }
    std::string out;
    const auto add = [&](std::size_t n, const char* what) {
        if (n > 0) out += "  " + plural(n, "request") + " " + what + "\n";
    };
    add(absent, "served and not in the files: infinite error");
    add(failed, "served, and failed in the files: infinite error");
    add(unknown, "in the files and not in the log: infinite error");
    add(broken, "completed in the files, and not served whole: infinite error");
    add(m.others, "of the log of other runs, before or after");
    return out;
}
inline std::string errors_json(const vector<error_figures>& all, const matched_requests& m) {
    json_writer j;
    j.open('{').field("schema", "llmbench/client_error/1");
    j.field("matched_by", matching_names[static_cast<std::size_t>(m.by)]).key("errors").open('[');
    for (const error_figures& f : all) {
        j.open('{').field("metric", f.name).field("definition", f.is_ours ? "llmbench" : "tool");
        j.field("requests", f.sizes.size()).field("lost", f.lost).field("p50_s", f.at(0.5));
        j.field("p99_s", f.at(0.99)).field("max_s", f.at(1)).field("bias_s", f.bias).close();
    }
    return j.close().close().text() + "\n";
}

/// The files named, those beside them that are read too, and the log.
inline vector<std::string> files_read(const vector<std::string>& named, const std::string& log) {
    vector<std::string> all = {log};
    for (const std::string& path : named) {
        all.push_back(path);
        all.push_back(aiperf_file_beside(path));
        if (!is_own_run(path)) continue;
        const own_run run = run_at(path);
        for (const std::string& file : {run.result(), run.records(), run.directory + "/events.bin"})
            all.push_back(file);
    }
    return all;
}

inline int judge_truth(const given_options& o) {
    vector<error_objective> objectives;
    for (const std::string& text : o.all("--slo")) objectives.push_back(error_objective_of(text));
    const std::string how = o["--match"];
    if (!how.empty() && how != "id" && how != "order" && how != "ranks")
        o.one("--match").refuse_as("id, order or ranks");
    const long long skipped = o.has("--skip") ? whole_of(o.one("--skip"), 0, 1000000000) : 0;
    const vector<std::string>& files =
        files_in(o, "FILE",
                 "no file is named: give what the client wrote, as `llmbench judge llmbench-report "
                 "--truth truth.jsonl`");
    if (o.has("--out")) refuse_if_read(o["--out"], files_read(files, o["--truth"]));
    const std::optional<std::string> log = bytes_of_file(o["--truth"]);
    if (!log) refuse({"--truth is ", printable(o["--truth"]), ", which cannot be read as a file"});
    const true_requests truth = read_truth(*log, o["--truth"]);
    const measured_requests measured = measured_in(files, o["--gate"], truth);
    const matched_requests m = matched(measured.requests, truth, how, skipped);
    vector<error_figures> all;
    for (const error_row& row : rows_for(measured)) all.push_back(errors_of(row, m));
    say(errors_text(all, measured.tool));
    std::string notes =
        printed("  %zu requests, matched by %s; p50, p99 and max are without signs\n",
                measured.requests.size(), matching_names[static_cast<std::size_t>(m.by)]) +
        lost_text(m);
    for (const std::string& note : measured.notes) notes += "  " + note + "\n";
    if (truth.late_p99_s < 0)
        notes += "  the log has no end: its server still runs, or was killed\n";
    else
        notes += "  the server was late by p99 " + time_text(truth.late_p99_s) + ", max " +
                 time_text(truth.late_max_s) + ", which its log knows\n";
    std::size_t doubted = 0;
    double most_s = 0;
    for (const timed_request& t : truth.requests)
        for (const auto& [event, s] : t.doubts_s) {
            ++doubted;
            most_s = std::max(most_s, s);
        }
    if (doubted > 0)
        notes += "  " + plural(doubted, "event") + " of the log known to within " +
                 time_text(most_s) + " or less only: so much of an error does not count\n";
    if (truth.waited > 0)
        notes +=
            printed("  %lld writes of the server waited for the client to read\n", truth.waited);
    say(notes);
    if (o.has("--out")) write_file(o["--out"], errors_json(all, m));
    int code = 0;
    const auto worse = [](int c) { return c == 1 ? 2 : c == 3 ? 1 : 0; };  // a miss counts first
    for (const error_objective& objective : objectives) {
        const error_verdict v = judged(objective, all);
        say(v.line + "\n");
        if (worse(v.code) > worse(code)) code = v.code;
    }
    const bool has_values =
        detail::any_of(all, [](const error_figures& f) { return !f.sizes.empty(); });
    if (!has_values) say("  no request has a value on both sides\n");
    return has_values ? code : 3;
}

/// judge, also against a log of `llmbench serve`.
inline int judge_or_compare(const given_options& o) {
    check_fit(o, {{o.has("--truth"), " is of --truth FILE, the log of `llmbench serve`",
                   {"--match", "--skip", "--out"}},
                  {!o.has("--truth"), " is of verdicts on a run: with --truth leave it out",
                   {"--against", "--name", "--inconclusive", "--report"}}});
    return o.has("--truth") ? judge_truth(o) : judge_again(o);
}
inline verb judge_or_compare_verb() {
    verb v = judge_verb();
    v.groups.push_back(
        {"Against the truth",
         {{"--truth", "FILE", "the log of `llmbench serve`: shows the error of the client"},
          {"--match", "HOW", "id, order or ranks (sorted values); default: id, else order"},
          {"--skip", "N", "leaves out the first requests of the log, where ids do not tell"},
          {"--out", "FILE", "the errors as JSON"}}});
    v.footer =
        "With --truth, objectives are on the error, and files may be CSV or JSON lines with\n"
        "id, ttft, tpot, e2e, itl (in seconds, or as ttft_ms):\n"
        "  llmbench judge result.json --truth truth.jsonl --slo 'p99(ttft_error) <= 1 ms'\n" +
        v.footer;
    v.run = judge_or_compare;
    return v;
}

}  // namespace llmbench_program
