// result files of other tools, as the repeats of one gate
// Repeats count only if each is a run of its own under the same load. Any sign that they are not
// makes every objective invalid.
#pragma once

#include "api/scenario.hpp"
#include "api/slo.hpp"
#include "core/base/vector.hpp"
#include "core/bodies/result_data.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/rule.hpp"
#include "core/measured/repeat.hpp"
#include "core/planning/target_facts.hpp"
#include "core/traffic/arrivals.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "program/others/records_of_aiperf.hpp"
#include "program/others/records_of_requests.hpp"
#include "program/others/imported_run.hpp"
#include "program/others/lists_of_requests.hpp"
#include "program/others/lists_of_sglang.hpp"

#include <algorithm>  // binary_search, count_if, find, find_if, max, min, minmax_element, sort
#include <cmath>  // fabs, log, sqrt
#include <cstddef>  // size_t
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns the bytes of a file that may be beside another one; nothing if there is none.
using file_beside = std::function<std::optional<std::string>(const std::string& path)>;

/// Whether AIPerf made it of several runs: profile_export_aiperf_aggregate.json, ..._collated.json.
inline bool is_aiperf_of_several(const vector<picojson::value>& values) {
    const auto is_of_several = [](const picojson::value& v) {
        return member(v, "schema_version") &&
               (member(v, "per_run") || member(v, "combined") ||
                value_at(v, "metadata.aggregation_type") ||
                value_at(v, "metadata.num_profile_runs"));
    };
    return (values.size() > 1 && is_aiperf_summary(values[1])) || is_of_several(values[0]);
}
inline imported_run read_aiperf_files(const vector<picojson::value>& values,
                                      const std::string& file, const file_beside& beside) {
    const std::string other = aiperf_file_beside(file);
    const std::optional<std::string> bytes = beside(other);
    vector<picojson::value> others;
    if (bytes) others = read_json_values(*bytes, other);
    if (is_aiperf_summary(values[0])) return read_aiperf_run(others, &values[0], file);
    const bool has_summary = others.size() == 1 && is_aiperf_summary(others[0]);
    return read_aiperf_run(values, has_summary ? &others[0] : nullptr, file);
}

/// Reads a run that is one JSON value. `file` names the file, and the run in it.
inline imported_run read_whole_run(const picojson::value& v, const std::string& file,
                                   vllm_stream known) {
    if (is_vllm_file(v)) return read_vllm_run(v, file, known);
    if (is_sglang_file(v)) return read_sglang_run(v, file);
    if (is_guidellm_file(v)) return read_guidellm_run(v, file);
    refuse({file, ": no tool that is known wrote it; vLLM bench serve (--save-result "
                  "--save-detailed), SGLang bench_serving (--output-details), guidellm 0.8 "
                  "and AIPerf are allowed"});
}

/// Returns the runs of lists, as vLLM's sweep writes them, beside values that are none.
inline vector<picojson::value> in_lists(vector<picojson::value> values) {
    vector<picojson::value> all;
    for (picojson::value& v : values) {
        const bool is_list = v.is<picojson::array>() && !v.get<picojson::array>().empty() &&
                             v.get<picojson::array>()[0].is<picojson::object>();
        if (!is_list) all.push_back(std::move(v));
        else
            for (picojson::value& one : v.get<picojson::array>()) all.push_back(std::move(one));
    }
    return all;
}

/// Returns the runs of a file of any tool; tools append their runs. Throws std::invalid_argument if
/// it has none, or an unknown value. `known`: see read_vllm_run.
inline vector<imported_run> read_imported_runs(std::string_view bytes, const std::string& file,
                                               const file_beside& beside,
                                               vllm_stream known = vllm_stream::untold_chat) {
    constexpr std::size_t max_runs = 100;
    const vector<picojson::value> values = in_lists(read_json_values(bytes, file));
    for (const picojson::value& v : values) {
        if (!v.is<picojson::object>())
            refuse({file, ": it is ", shown_value(v),
                    ", the result file of a tool is a JSON object"});
        if (string_member(v, "schema").rfind("llmbench/", 0) == 0)
            refuse({file,
                    ": it is a result of llmbench itself, whose records.jsonl judge() reads"});
    }
    if (is_aiperf_of_several(values))
        refuse({file, ": it holds aggregates of several runs of AIPerf, and a verdict needs every "
                      "request: name the profile_export.jsonl of each run"});
    vector<imported_run> runs;
    if (is_aiperf_summary(values[0]) || is_aiperf_record(values[0])) {
        runs.push_back(read_aiperf_files(values, file, beside));
        runs[0].hash = hash_of(bytes).value();
        return runs;
    }
    if (values.size() > max_runs)
        refuse({printed("%s: it holds %zu runs, up to %zu are allowed", file.c_str(),
                        values.size(), max_runs)});
    for (const picojson::value& v : values) {
        const bool is_alone = values.size() == 1;
        runs.push_back(read_whole_run(
            v, is_alone ? file : file + printed(", run %zu", runs.size() + 1), known));
        runs.back().hash = hash_of(is_alone ? std::string(bytes) : v.serialize()).value();
    }
    return runs;
}

/// What the first chunk of a chat is in those runs that tell; untold if they differ.
inline vllm_stream first_chunk_in(const vector<imported_run>& runs) {
    vllm_stream known = vllm_stream::untold_chat;
    for (const imported_run& run : runs)
        for (const imported_setting& s : run.settings) {
            if (s.name != first_chunk_setting || s.value.empty()) continue;
            const vllm_stream own = s.value == "text" ? vllm_stream::text : vllm_stream::role;
            if (known != vllm_stream::untold_chat && known != own) return vllm_stream::untold_chat;
            known = own;
        }
    return known;
}
/// Reads the runs of several files, which are of one client: a file that does not tell what its
/// first chunks are is read as those that do. `bytes_of` returns nothing if there is no such file.
inline vector<imported_run> read_runs_of(const vector<std::string>& files,
                                         const file_beside& bytes_of) {
    const auto read = [&](const std::string& file, vllm_stream known) {
        const std::optional<std::string> bytes = bytes_of(file);
        if (!bytes.has_value()) refuse({"files: ", printable(file), " cannot be read as a file"});
        return read_imported_runs(*bytes, file, bytes_of, known);
    };
    vector<vector<imported_run>> all;
    vector<imported_run> runs;
    for (const std::string& file : files) all.push_back(read(file, vllm_stream::untold_chat));
    vllm_stream known = vllm_stream::untold_chat;
    for (const auto& of_file : all)
        if (known == vllm_stream::untold_chat) known = first_chunk_in(of_file);
    for (std::size_t i = 0; i < files.size(); ++i) {
        const bool is_untold =
            any_of(all[i], [](const imported_run& run) { return run.has_untold_chunks; });
        if (is_untold && known != vllm_stream::untold_chat) all[i] = read(files[i], known);
        for (imported_run& run : all[i]) runs.push_back(std::move(run));
    }
    return runs;
}

/// The times of the answers identify a run, because clocks have nanoseconds.
using answer_times = vector<std::pair<long long, long long>>;
inline answer_times answer_times_of(const imported_run& run) {
    answer_times times;
    for (const imported_request& t : run.requests)
        if (t.what.status == request_status::ok)
            times.emplace_back(t.what.first_token_ns - t.what.sent_ns,
                               t.what.last_token_ns - t.what.sent_ns);
    std::sort(times.begin(), times.end());
    return times;
}
inline bool share_requests(const answer_times& a, const answer_times& b) {
    const auto same = std::count_if(b.begin(), b.end(), [&](const auto& t) {
        return t.second > 0 && std::binary_search(a.begin(), a.end(), t);
    });
    return static_cast<std::size_t>(2 * same) > b.size();
}

/// The means of a run's requests; a run with other means had another load.
struct traffic_means {
    double requests = 0, prompt = 0, output = 0;
};
inline traffic_means means_of(const imported_run& run) {
    traffic_means m;
    double completed = 0, reported = 0;
    for (const imported_request& t : run.requests) {
        if (!is_measured(t.what)) continue;
        ++m.requests;
        if (t.what.prompt_tokens > 0) ++reported;
        m.prompt += t.what.prompt_tokens;
        if (t.what.status != request_status::ok) continue;
        ++completed;
        m.output += t.what.output_tokens;
    }
    m.prompt /= std::max(reported, 1.0);
    m.output /= std::max(completed, 1.0);
    return m;
}
inline std::string other_traffic(const imported_run& run, const imported_run& first) {
    const traffic_means a = means_of(first), b = means_of(run);
    const auto differ = [](double x, double y) {
        return x > 0 && y > 0 && std::fabs(x / y - 1) > 0.10;
    };
    const auto words = [&](const char* what, double x, double y) {
        return printed("%s has %s%.4g, %s %.4g: repeats are of the same traffic",
                       run.file.c_str(), what, y, first.file.c_str(), x);
    };
    if (differ(a.requests, b.requests)) return words("requests: ", a.requests, b.requests);
    if (differ(a.prompt, b.prompt)) return words("tokens in a prompt: ", a.prompt, b.prompt);
    if (differ(a.output, b.output)) return words("tokens in an answer: ", a.output, b.output);
    return {};
}

/// Returns why two files are not two runs under one load, a sentence each.
inline vector<std::string> not_two_repeats(const imported_run& first, const imported_run& run) {
    const std::string both = first.file + " and " + run.file;
    if (first.hash == run.hash) return {both + " are the same, byte for byte"};
    if (!first.identity.empty() && first.identity == run.identity)
        return {both + " are of one run, " + run.identity};
    vector<std::string> why;
    if (share_requests(answer_times_of(first), answer_times_of(run)))
        why.push_back(both + " tell of the same requests");
    const auto both_report = [&](imported_span imported_run::*of) {
        return (first.*of).is_reported() && (run.*of).is_reported();
    };
    const auto may_meet = [&](imported_span imported_run::*of) {
        return !both_report(of) || (first.*of).meets(run.*of);
    };
    if ((both_report(&imported_run::clock) || both_report(&imported_run::calendar)) &&
        may_meet(&imported_run::clock) && may_meet(&imported_run::calendar))
        why.push_back(both + " were measured at the same time: they are parts of one run, or two "
                             "loads on one server");
    return why;
}
/// "max_num_seqs (64 and 32) and tp (2 and 1)": what two files say otherwise of their setting.
inline std::string other_keys(const imported_run& first, const imported_run& run) {
    constexpr std::size_t max_shown = 6;
    std::map<std::string, std::pair<std::string, std::string>> values;
    for (const auto& [name, value] : run.more) values[name].first = value;
    for (const auto& [name, value] : first.more) values[name].second = value;
    vector<std::string> keys;
    for (const auto& [name, both] : values) {
        if (both.first == both.second) continue;
        const auto shown = [](const std::string& s) { return s.empty() ? "none" : printable(s, 40); };
        keys.push_back(name + " (" + shown(both.first) + " and " + shown(both.second) + ")");
    }
    const std::size_t others = keys.size() > max_shown ? keys.size() - max_shown : 0;
    keys.resize(keys.size() - others);
    if (others > 0) keys.push_back(printed("%zu more", others));
    return keys.empty() ? "" : enumerated(keys);
}
inline vector<std::string> other_settings(const imported_run& first, const imported_run& run) {
    vector<std::string> why;
    const auto differs = [&](const std::string& name, const std::string& a, const std::string& b) {
        if (a == b) return;
        const auto shown = [](const std::string& s) { return s.empty() ? "not reported" : s; };
        why.push_back(name + " is " + shown(b) + " in " + run.file + " and " + shown(a) + " in " +
                      first.file + ": repeats are of one tool, model and load");
    };
    differs("the tool", first.tool_and_version(), run.tool_and_version());
    if (first.tool != run.tool) return why;
    differs("the model", first.model, run.model);
    for (std::size_t i = 0; i < std::min(first.settings.size(), run.settings.size()); ++i)
        if (first.settings[i].value != first.model || run.settings[i].value != run.model)
            differs(first.settings[i].name, first.settings[i].value, run.settings[i].value);
    if (const std::string keys = other_keys(first, run); !keys.empty())
        why.push_back(run.file + " and " + first.file + " differ in " + keys +
                      ": repeats are of one setting");
    return why;
}

/// Returns the names of files with the same reason: "a.json", "a.json and 2 more".
inline std::string files_text(const vector<std::string>& files) {
    return files.size() < 2 ? files[0] : printed("%s and %zu more", files[0].c_str(),
                                                 files.size() - 1);
}
/// Returns the metrics that runs do not support, each reason once.
inline vector<unsupported_metrics> unsupported_by(const vector<imported_run>& runs) {
    vector<unsupported_metrics> all;
    vector<vector<std::string>> files;
    for (const imported_run& run : runs)
        for (const unsupported_metrics& u : run.unsupported) {
            const auto at = std::find_if(all.begin(), all.end(), [&](const unsupported_metrics& x) {
                return x.why == u.why && x.of == u.of;
            });
            if (at == all.end()) {
                all.push_back(u);
                files.push_back({run.file});
            } else {
                files[static_cast<std::size_t>(at - all.begin())].push_back(run.file);
            }
        }
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i].why = files_text(files[i]) + ": " + all[i].why;
    return all;
}
/// Why requests that started at these times are not the load that the file names: a client that
/// sends half of it measures another server. Random arrivals differ by four standard errors at most.
inline std::string not_the_named_rate(const imported_run& run) {
    const arrival_data& a = run.arrivals;
    const bool is_random = a.kind == arrival_kind::poisson || a.kind == arrival_kind::gamma;
    const bool names_one = run.knows_sends && run.knows_arrivals && !run.has_late_sends &&
                           a.max_in_flight == 0 && a.rate > 0 &&
                           (is_random || a.kind == arrival_kind::constant);
    vector<long long> sent;
    for (const imported_request& t : run.requests)
        if (is_measured(t.what)) sent.push_back(t.what.sent_ns);
    if (!names_one || sent.size() < 10) return {};
    const auto [first, last] = std::minmax_element(sent.begin(), sent.end());
    const double gaps = as_number(sent.size() - 1);
    const double seen = gaps / (static_cast<double>(std::max(*last - *first, 1ll)) * 1e-9);
    const double by_chance = is_random ? 4 / std::sqrt(gaps * a.burstiness) : 0;
    if (std::fabs(std::log(seen / a.rate)) <= 0.05 + by_chance) return {};
    return printed("%s: its start times show %.3g requests a second, and it names %.3g: the client "
                   "did not send the load", run.file.c_str(), seen, a.rate);
}
/// Returns the reasons why the files are not repeats.
inline vector<unsupported_metrics> unsupported_between(const vector<imported_run>& runs) {
    vector<unsupported_metrics> all;
    for (const imported_run& run : runs)
        if (std::string why = not_the_named_rate(run); !why.empty())
            all.push_back({std::move(why), {}});
    for (std::size_t i = 1; i < runs.size(); ++i) {
        const vector<std::string> other = other_settings(runs[0], runs[i]);
        for (const std::string& why : other) all.push_back({why, {}});
        for (std::size_t k = 0; k < i; ++k) {
            for (std::string& why : not_two_repeats(runs[k], runs[i]))
                all.push_back({std::move(why), {}});
            if (std::string why = other_traffic(runs[i], runs[k]); other.empty() && !why.empty())
                all.push_back({std::move(why), {}});
        }
    }
    return all;
}

inline vector<std::string> notes_of(const vector<imported_run>& runs, long long cut_off) {
    vector<std::string> notes;
    for (const imported_run& run : runs)
        for (const std::string& note : run.notes)
            if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    if (!runs[0].has_late_sends && runs[0].knows_sends && !saturates(runs[0].arrivals))
        notes.push_back("when a request was to be sent is not in the files: ttft counts from when "
                        "the tool took it up, and what it came late by is not seen");
    if (!runs[0].knows_sends || !runs[0].knows_arrivals)
        notes.push_back("whether the load outgrew the server is not in the files");
    if (cut_off > 0)
        notes.push_back(printed("%lld requests were cut off as their run ended: a verdict stands "
                                "where it is the same with them as the worst and without them",
                                cut_off));
    return notes;
}

/// The workload's shared tokens are those of the repeat with the fewest cached tokens. The other
/// repeats sent prompts that the server had seen before.
inline void set_shared_tokens(vector<repeat_data>& repeats) {
    double least = infinity;
    for (const repeat_data& d : repeats) {
        double cached = 0, prompt = 0;
        for (const record& r : d.records)
            if (is_pooled(r) && r.cached_tokens >= 0 && r.prompt_tokens > 0) {
                cached += r.cached_tokens;
                prompt += r.prompt_tokens;
            }
        if (prompt > 0) least = std::min(least, cached / prompt);
    }
    if (least == infinity) return;
    for (repeat_data& d : repeats)
        for (record& r : d.records)
            if (r.cached_tokens >= 0)
                r.shared_tokens = static_cast<int>(least * r.prompt_tokens);
}

/// Returns a plan from the files, in place of a scenario for the reports.
inline plan plan_of_runs(const vector<imported_run>& runs, const slo_list& slos) {
    planned_traffic t;
    const imported_run& first = runs[0];
    const traffic_means means = means_of(first);
    t.is_read = true;
    t.arrivals = first.arrivals;
    if (!first.knows_arrivals) {
        t.arrivals = {};
        t.arrivals.kind = arrival_kind::replay;
        t.arrivals.file = first.file;
    }
    t.requests = static_cast<long long>(means.requests);
    t.seed = 0;
    t.workload_text = printed("prompts of %.4g tokens and answers of %.4g on the average",
                              means.prompt, means.output);
    t.sent_as_given = "the prompts of " + first.tool;
    fnv1a lengths;
    for (const imported_request& r : first.requests) {
        lengths.add(static_cast<long long>(r.what.prompt_tokens));
        lengths.add(static_cast<long long>(r.what.output_tokens));
    }
    t.hash = lengths.text();
    planned_judging j;
    j.first_repeats = j.max_repeats = static_cast<int>(runs.size());
    j.rule = rule_of(judging_options{}, first_analysis, std::max(j.max_repeats, last_analysis));
    // All files are known at once, so their order must not matter. The bounds stay those of several
    // analyses, as a user may add a file to an inconclusive result.
    j.rule.is_single_analysis = true;
    j.slos = {slos.begin(), slos.end()};
    plan p;
    p.sent = std::make_shared<const planned_traffic>(std::move(t));
    p.judged = std::make_shared<const planned_judging>(std::move(j));
    return p;
}

/// Moves the requests out of the runs, of which there is at least one.
inline measured_gate gate_of_runs(vector<imported_run> runs, const slo_list& slos) {
    measured_gate g;
    for (imported_run& run : runs)
        run.lacks({metric_id::time_to_first_answer},
                  "it does not separate reasoning from the answer");
    const imported_run& first = runs[0];
    g.what = plan_of_runs(runs, slos);
    g.judged_by.slos = g.what.judged->slos;
    g.judged_by.rule = g.what.judged->rule;
    g.target.kind = target_kind::files;
    for (const imported_run& run : runs)
        g.target.url += (g.target.url.empty() ? "" : ", ") + run.file;
    g.target.model = first.model;
    g.target.measured_by = first.tool_and_version();
    g.seen.unsupported = unsupported_between(runs);
    for (unsupported_metrics& u : unsupported_by(runs)) g.seen.unsupported.push_back(std::move(u));
    long long cut_off = 0;
    for (const imported_run& run : runs) cut_off += run.cut_off;
    g.seen.notes = notes_of(runs, cut_off);
    const bool describes_load = first.knows_sends && first.knows_arrivals;
    g.seen.arrival_cv2 = describes_load ? arrival_cv2_of(first.arrivals) : not_a_number;
    vector<repeat_data> repeats;
    for (std::size_t i = 0; i < runs.size(); ++i)
        repeats.push_back(repeat_of(runs[i], static_cast<int>(i)));
    set_shared_tokens(repeats);
    g.seen.candidate = std::move(repeats);
    return g;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
