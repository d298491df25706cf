// llmbench doctor: what can be measured on this machine, and on a server
#pragma once

#include "api/scenario.hpp"
#include "api/traffic.hpp"
#include "api/verbs.hpp"
#include "api/workload.hpp"
#include "core/base/json.hpp"
#include "core/base/statistics.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/judging/at_once.hpp"
#include "core/judging/rule.hpp"
#include "core/measured/slices.hpp"
#include "core/planning/planning.hpp"
#include "core/reports/machine_facts.hpp"
#include "core/stored/calibration.hpp"
#include "core/wire/url.hpp"
#include "effects/gates/accelerators.hpp"
#include "effects/gates/slot.hpp"
#include "effects/net/sockets.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/console.hpp"
#include "effects/system/files.hpp"
#include "effects/system/limits.hpp"
#include "effects/system/machine.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/signals.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/verbs.hpp"
#include "program/arguments.hpp"
#include "program/run_options.hpp"
#include "program/serve.hpp"
#include "program/truth.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min, sort
#include <cmath>      // sqrt
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>  // move, pair

namespace llmbench_program {

/// The error of this client against a server of its own, under one load.
struct own_error {
    long long streams = 0, threads = 0;
    double ttft_p50_s = not_a_number, ttft_p99_s = not_a_number;
    double tpot_p99_s = not_a_number, itl_p99_s = not_a_number;
    double server_late_p99_s = 0;
    bool has_stamps = false;
    std::size_t failed = 0;
    /// Half of a percent of an answer of 20 tokens a second.
    static constexpr double allowed_s = 0.001;
    bool is_right() const {
        return failed == 0 && ttft_p99_s <= allowed_s && tpot_p99_s <= allowed_s;
    }
    double worst_s() const { return std::max(ttft_p99_s, tpot_p99_s); }
};
/// The end of the time that LLMBENCH_TIME_BUDGET gives the program; 0: none.
inline long long deadline_of_doctor() {
    const double budget_s = settings_of(environment).time_budget_s;
    return budget_s > 0 ? program_began_ns + ns_of(budget_s) : 0;
}
/// One load; none if that time ended before it did.
inline std::optional<repeat_data> measured_load(const scenario& s, live_target& target,
                                                long long deadline_ns) {
    const plan p = planned(s, 1);
    const slot_host host{.what = p, .candidate = target};
    const slot load{.is_kept = false, .deadline_ns = deadline_ns};
    variant_repeats variants = orders_of(host, load);
    if (!make_ready(load, variants)) return {};
    slot_seen seen = run_slot(load, variants);
    if (!seen.is_whole) return {};
    return std::move(seen.repeats[0]);
}
/// One event of each stream every 50 ms, the first after 20 to 70 ms. None if the time ended before.
inline std::optional<own_error> measured_error(long long streams, long long threads,
                                               long long deadline_ns) {
    constexpr long long tokens = 10;
    serving what;
    what.paced = pace{uniform(time_span::from_seconds(0.02), time_span::from_seconds(0.07)),
                      time_span::from_seconds(0.05)};
    serving_host server(what, listening_address({"--host", "127.0.0.1"}, 0), {});
    const scenario s{
        .target = endpoint{.url = "http://127.0.0.1:" + std::to_string(server.port())},
        .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(tokens)},
        .arrivals = closed_loop(streams),
        .warmup = streams,
        .requests = std::max(streams, std::min(6 * streams, 128ll)),
        .repeats = 1,
        .client = {.threads = threads},
    };
    own_error e{.streams = streams, .threads = threads};
    live_target target(s.target, run_variant::candidate);
    target.bring_up();
    const std::optional<repeat_data> d = measured_load(s, target, deadline_ns);
    server.stop();
    if (!d) return {};
    const served_since served = server.take();
    std::string log = printed("{\"schema\":\"%s\",\"server\":\"doctor\"}\n", truth_schema);
    for (const served_request& r : served.requests) log += truth_line(r);
    const true_requests truth = read_truth(log, "doctor");
    measured_requests measured;
    add_repeats(measured, {*d});
    const matched_requests m = matched_by_id(measured.requests, truth);
    for (const error_row& row : rows_for(measured)) {
        const error_figures f = errors_of(row, m);
        if (row.name == "ttft_from_send") {
            e.ttft_p50_s = f.at(0.5);
            e.ttft_p99_s = f.at(0.99);
            e.failed = f.lost;
        }
        if (row.name == "tpot") e.tpot_p99_s = f.at(0.99);
        if (row.name == "itl") e.itl_p99_s = f.at(0.99);
    }
    e.server_late_p99_s = served.late.late.quantile(0.99);
    e.has_stamps = is_mostly_stamped(d->stamped_reads, d->reads);
    return e;
}

/// How late the system wakes a thread that sleeps until a point in time.
struct wake_ups {
    double p50_s = 0, p99_s = 0;
};
inline wake_ups measured_wake_ups() {
    vector<double> late;
    for (int i = 0; i < 500 && !stop_asked.load(); ++i) {
        const long long due = now_ns() + 1000000;
        sleep_until(due);
        late.push_back(static_cast<double>(now_ns() - due) * 1e-9);
    }
    std::sort(late.begin(), late.end());
    return {nearest_rank(late, 0.5), nearest_rank(late, 0.99)};
}

struct machine_findings {
    environment_facts machine{};
    vector<unequal_runs> unequal{};
    wake_ups wakes{};
    vector<own_error> errors{};
    /// The most streams that this client reads rightly, 0 if not even one.
    long long streams = 0;
    bool is_by_server = false;  // more are not known: the server was late
    rlim_t files = 0;           // more were not tried: so many may be open; 0: all were tried
};
/// The limit on open files, if it is too low for so many streams; 0: there are enough. The client
/// and its server are one process.
inline rlim_t files_too_few_for(long long streams) {
    const rlim_t needed = 2 * static_cast<rlim_t>(streams) + 64;
    const rlim_t files = raised_open_files(needed);
    return files < needed ? files : 0;
}
/// The truth is known to the time that a send takes.
inline std::string known_text(double s) {
    constexpr double least_s = 1e-9 * static_cast<double>(usual_send_ns);
    return s < least_s ? "under " + time_text(least_s) : time_text(s);
}
/// The most streams up to which this client reads rightly, with some number of threads at each
/// number of streams: what is right beyond a wrong one is luck.
inline long long right_streams(const vector<own_error>& errors) {
    std::map<long long, bool> is_right;
    for (const own_error& e : errors) is_right[e.streams] |= e.is_right();
    long long most = 0;
    for (const auto& [streams, right] : is_right) {
        if (!right) break;
        most = streams;
    }
    return most;
}
inline std::string unequal_text(const vector<unequal_runs>& all) {
    if (all.empty()) return "";
    std::string s = "\n  what makes runs on this machine unequal:\n";
    for (const unequal_runs& u : all) s += "  - " + u.why + "\n      " + u.mend + "\n";
    return s;
}
/// `url`: of the server, "" without one.
inline machine_findings examined_machine(const std::string& url) {
    machine_findings f{.machine = environment_now(), .wakes = measured_wake_ups()};
    f.unequal = what_makes_unequal(f.machine.machine, accelerators_here());
    const http_url server = url.empty() ? http_url{} : parsed_url(url, "--url");
    if (!url.empty() && server.socket.empty() && is_this_host(server))
        for (const unequal_runs& u :
             shared_cores(server_on_port(parsed_number<int>(server.port).value_or(0)),
                          allowed_cores(line_of_file("/proc/self/status", '\0'))))
            f.unequal.push_back(u);
    const long long deadline_ns = deadline_of_doctor();
    const auto measure = [&](long long streams, long long threads) {
        if (stop_asked.load() || f.files != 0) return;
        f.files = files_too_few_for(streams);
        if (f.files != 0) {
            say(printed("  %6lld streams: not tried, this process may open %llu files "
                        "(ulimit -Hn)\n",
                        streams, static_cast<unsigned long long>(f.files)));
            return;
        }
        const auto measured = measured_error(streams, threads, deadline_ns);
        if (stop_asked.load() || !measured) return;
        const own_error& e = *measured;
        f.errors.push_back(e);
        f.streams = right_streams(f.errors);
        f.is_by_server = !e.is_right() && e.server_late_p99_s > own_error::allowed_s;
        say(printed("  %6lld streams, %lld thread%s: ttft p99 %s, tpot p99 %s, itl p99 %s\n",
                    streams, threads, threads == 1 ? " " : "s", known_text(e.ttft_p99_s).c_str(),
                    known_text(e.tpot_p99_s).c_str(), known_text(e.itl_p99_s).c_str()));
    };
    for (const long long streams : {1, 32, 1000}) measure(streams, 1);
    if (f.machine.cores > 1) measure(1000, 2);
    for (long long streams = 2000; f.streams * 2 == streams && streams <= 16000; streams *= 2)
        measure(streams, f.machine.cores > 1 ? 2 : 1);
    return f;
}
inline std::string sentence_of(const machine_findings& f) {
    double worst = 1e-9 * static_cast<double>(usual_send_ns);  // the truth is not known better
    bool has_stamps = true;
    for (const own_error& e : f.errors) {
        if (!e.is_right()) continue;
        worst = std::max(worst, e.worst_s());
        has_stamps = has_stamps && e.has_stamps;
    }
    if (f.streams == 0)
        return "On this machine times are not right within 1 ms, not even of one stream: it is "
               "busy, or too slow.";
    std::string s = "On this machine times are right within " + time_text(worst) +
                    printed(" up to %lld streams", f.streams);
    if (f.is_by_server) s += "; more are not known, as the server beside it was late";
    if (f.files != 0)
        s += printed("; more are not known, as this process may open %llu files",
                     static_cast<unsigned long long>(f.files));
    return s + (has_stamps ? " (kernel stamps)."
                           : " (without kernel stamps: a busy client reads late).");
}

/// What repeats of one load on one server tell of a gate there.
struct noise_row {
    std::string statistic{};
    double estimate = not_a_number, sd = 0;  // sd of the logarithm between repeats
    /// The smallest regression that a gate finds, of the value; none at once if answers are long.
    double by_limit = 0, in_turns = 0, at_once = not_a_number;
};
struct server_findings {
    std::string url{}, load{};
    int repeats = 0;
    double repeat_s = 0;
    vector<noise_row> rows{};
};
/// Distances with this mean 0 and spread: scores of the normal distribution.
inline vector<double> spread_distances(std::size_t n, double sd) {
    vector<double> d;
    for (std::size_t i = 0; i < n; ++i)
        d.push_back(normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(n)));
    double squares = 0;
    for (const double x : d) squares += x * x;
    const double scale = sd / std::sqrt(squares / static_cast<double>(n - 1));
    for (double& x : d) x *= scale;
    return d;
}
/// The smallest regression that a gate of so many seconds finds in four of five runs, as a
/// fraction: by a limit with this calibration, and against a baseline in turns and at once.
/// The noise between repeats is taken to be each server's own, so that none of it cancels at once.
/// `answer_s`: of a typical answer; slices are several times as long.
inline void set_reach(noise_row& row, std::size_t repeats, double repeat_s, double gate_s,
                      double answer_s) {
    const auto fits = [&](double each_s, int least, int most) {
        return static_cast<std::size_t>(
            std::clamp(static_cast<int>(gate_s / std::max(each_s, 1e-3)), least, most));
    };
    const std::size_t n = fits(repeat_s, first_fail, last_analysis);
    const judging_rule rule = rule_of({}, first_analysis, last_analysis);
    row.by_limit = analysis_by_calibration(spread_distances(n, row.sd),
                                           calibrated_noise_of(row.sd, repeats), prior_sd, rule)
                       .detectable;
    const std::size_t pairs = fits(2 * repeat_s, first_pair_analysis, last_pair_analysis);
    row.in_turns = analysis_of_pairs(spread_distances(pairs, row.sd * std::sqrt(2.0)), prior_sd,
                                     rule_of({}, first_pair_analysis, last_pair_analysis))
                       .detectable;
    const double slice_s = std::max(least_slice_s, answers_of_slice * answer_s);
    if (gate_s < slice_s * static_cast<double>(least_slices_at_once)) return;
    const auto slices = static_cast<double>(fits(repeat_s, 1, most_slices_at_once));
    const interim_analysis l = decided({.df = static_cast<double>(blocks_of_slices - 1),
                                        .se = row.sd * std::sqrt(2.0 / slices)},
                                       looking_early(rule_of({}, 1, 1, 0, 1)));
    // The error of a ratio grows with it.
    const double reach = (l.fail_t + student_t_quantile(0.8, l.df)) * l.se;
    if (reach < 1) row.at_once = reach / (1 - reach);
}
inline server_findings read_findings(const std::string& directory, const std::string& name) {
    const std::string file = directory + "/calibration.json";
    server_findings f;
    const std::string json = file_content(file, "the calibration");
    json_reader reader;
    const stored_object root =
        stored_document(reader, json, file, " is not a calibration", calibration_schema);
    for (const stored_object& g : root.each("gates")) {
        if (g.text("name") != name) continue;
        calibrated_gate read;
        read_fields(g, read);
        f.repeats = static_cast<int>(read.repeats);
        for (const calibrated_limit& c : read.limits)
            if (!std::isnan(c.sd)) f.rows.push_back({c.statistic, c.estimate, c.sd});
    }
    return f;
}
/// Users that a server answers as it answers one: doubled as long as the median of ttft stays under
/// twice that of one user, then halved.
inline long long gentle_users(const endpoint& server) {
    live_target target(server, run_variant::candidate);
    const long long deadline_ns = deadline_of_doctor();
    target.bring_up(seconds_until(deadline_ns));
    double alone_s = 0;
    long long users = 1;
    for (long long n = 1; n <= 64 && !stop_asked.load(); n *= 2) {
        const scenario s{.target = server,
                         .workload = synthetic{},
                         .arrivals = closed_loop(n),
                         .warmup = n,
                         .duration = time_span::from_seconds(5),
                         .repeats = 1};
        const std::optional<repeat_data> d = measured_load(s, target, deadline_ns);
        if (!d) break;
        vector<double> ttft;
        bool has_failed = false;
        for (const record& r : d->records) {
            if (r.status != request_status::ok) has_failed = true;
            else ttft.push_back(static_cast<double>(r.first_token_ns - r.scheduled_ns) * 1e-9);
        }
        std::sort(ttft.begin(), ttft.end());
        const double median = ttft.empty() ? infinity : nearest_rank(ttft, 0.5);
        if (n == 1) alone_s = median;
        if (has_failed || median > 2 * alone_s) break;
        users = n;
    }
    return std::max(users / 2, 1ll);
}
/// An A/A run: ten repeats in about three minutes, nothing is judged.
inline server_findings examined_server(const given_options& o) {
    constexpr int repeats = 10;
    const double all_s = o.has("--duration") ? time_of(o.one("--duration")).seconds() : 180;
    const std::string name = o.has("--name") ? o["--name"] : "llmbench run";
    scenario s{.name = name, .target = endpoint_of(o, "--url"), .workload = synthetic{}};
    set(s.arrivals, o, "--users", users_of);
    set(s.arrivals, o, "--rate", rate_of);
    server_findings f;
    if (!o.has("--users") && !o.has("--rate")) {
        const long long users = gentle_users(endpoint_of(o, "--url"));
        s.arrivals = closed_loop(users);
    }
    s.duration = time_span::from_seconds(all_s / repeats);
    const time_span hour = time_span::from_seconds(3600);
    s.slos = {mean(ttft) <= hour, p50(ttft) <= hour, p90(ttft) <= hour, mean(tpot) <= hour,
              mean(e2e) <= hour};
    set_variable("LLMBENCH_CALIBRATE", std::to_string(repeats));
    const result all = gate(s, "", 0);
    exit_code();  // it judges nothing
    if (stop_asked.load()) return f;
    if (const double failed = all.measured(error_rate); failed > error_guard().bound) {
        say(printed("\n  %.3g %% of the requests failed: the noise of such a server is not that of a "
                    "gate\n", 100 * failed));
        return f;
    }
    f = read_findings(environment("LLMBENCH_REPORT_DIR"), name);
    f.url = known_secrets::of_this_program().without(o["--url"]);
    f.load = s.arrivals.data().kind == arrival_kind::closed_loop
                 ? printed("%lld users", static_cast<long long>(s.arrivals.data().users))
                 : printed("%g requests/s", s.arrivals.data().rate);
    f.repeat_s = s.duration.seconds();
    double answer_s = 0;
    for (const noise_row& row : f.rows)
        if (row.statistic == "mean(e2e)") answer_s = row.estimate;
    for (noise_row& row : f.rows)
        set_reach(row, static_cast<std::size_t>(f.repeats), f.repeat_s, 300, answer_s);
    return f;
}
inline std::string at_once_text(double found) {
    return std::isnan(found) ? "" : printed(", %.3g %% at once", 100 * found);
}
inline std::string findings_text(const server_findings& f) {
    std::string s = printed("\n  %-14s %11s %10s   %s\n", "metric", "measured", "noise",
                            "a gate of 5 min finds a regression of");
    for (const noise_row& r : f.rows)
        s += printed("  %-14s %11s %9.3g %%   %.3g %% by a limit, %.3g %% against a baseline in "
                     "turns%s\n",
                     r.statistic.c_str(), time_text(r.estimate).c_str(), 100 * r.sd,
                     100 * r.by_limit, 100 * r.in_turns, at_once_text(r.at_once).c_str());
    return s + "  (in four of five runs; noise: how far repeats of one server differ)\n";
}
/// One paragraph for a pull request.
inline std::string paragraph_of(const machine_findings& m, const server_findings& f) {
    std::string s = sentence_of(m);
    if (f.rows.empty()) return s;
    double noise = 0, found = 0, at_once = 0;
    for (const noise_row& r : f.rows) {
        noise = std::max(noise, r.sd);
        found = std::max(found, r.in_turns);
        at_once = std::isnan(r.at_once) ? r.at_once : std::max(at_once, r.at_once);
    }
    return s +
           printed(
               " With %s, %d repeats of %.3g s of the same server differ by up to %.3g %%; a gate "
               "of 5 minutes finds a regression of %.3g %% against a baseline in turns%s.",
               f.load.c_str(), f.repeats, f.repeat_s, 100 * noise, 100 * found,
               at_once_text(at_once).c_str());
}
inline std::string doctor_json(const machine_findings& m, const server_findings& f) {
    json_writer j;
    j.open('{').field("schema", "llmbench/doctor/1").field("says", paragraph_of(m, f));
    j.key("machine").open('{').field("os", m.machine.os).field("cpu", m.machine.cpu);
    j.field("cores", m.machine.cores).field("wake_up_p50_s", m.wakes.p50_s);
    j.field("wake_up_p99_s", m.wakes.p99_s).field("streams", m.streams);
    j.field("limited_by_server", m.is_by_server).field("limited_by_files", m.files != 0);
    j.key("unequal").open('[');
    for (const unequal_runs& u : m.unequal)
        j.open('{').field("why", u.why).field("mend", u.mend).close();
    j.close().key("errors").open('[');
    for (const own_error& e : m.errors) {
        j.open('{').field("streams", e.streams).field("threads", e.threads);
        j.field("stamps", e.has_stamps ? "kernel" : "read").field("failed", e.failed);
        j.field("ttft_p50_s", e.ttft_p50_s).field("ttft_p99_s", e.ttft_p99_s);
        j.field("tpot_p99_s", e.tpot_p99_s).field("itl_p99_s", e.itl_p99_s);
        j.field("server_late_p99_s", e.server_late_p99_s).close();
    }
    j.close().close().key("server");
    if (f.rows.empty()) return j.raw("null").close().text() + "\n";
    j.open('{').field("url", f.url).field("load", f.load).field("repeats", f.repeats);
    j.field("repeat_s", f.repeat_s).key("metrics").open('[');
    for (const noise_row& r : f.rows) {
        j.open('{').field("statistic", r.statistic).field("estimate", r.estimate);
        j.field("sd", r.sd).field("found_by_a_limit", r.by_limit);
        j.field("found_in_turns", r.in_turns).field("found_at_once", r.at_once).close();
    }
    return j.close().close().close().text() + "\n";
}

inline int doctor(const given_options& o) {
    one_of(o, {"--users", "--rate"}, "name one load");
    check_fit(o, {{o.has("--url"), " is of a server: it needs --url",
                   {"--users", "--rate", "--duration", "--name", "--report", "--model"}}});
    const interrupt_guard signals;
    // Before the first load, which takes the folder for the program.
    set_variable("LLMBENCH_REPORT_DIR", o.has("--report") ? o["--report"] : "llmbench-doctor");
    const std::string file = o.has("--out") ? o["--out"] : "doctor.json";
    drafted_files().add(file, "");  // refused before the measurement; the draft goes
    const environment_facts here = environment_now();
    say("llmbench doctor: " + here.cpu + printed(", %d cores, ", here.cores) + here.os +
        "\n  the error of this client, against its own server on this machine:\n");
    const machine_findings m = examined_machine(o.has("--url") ? o["--url"] : "");
    say(printed("  a thread that sleeps wakes up late by p50 %s, p99 %s\n",
                time_text(m.wakes.p50_s).c_str(), time_text(m.wakes.p99_s).c_str()) +
        unequal_text(m.unequal));
    server_findings f;
    if (o.has("--url") && !stop_asked.load()) {
        f = examined_server(o);
        if (!f.rows.empty())
            say(findings_text(f) + "  calibration: LLMBENCH_CALIBRATION=" +
                environment("LLMBENCH_REPORT_DIR") + "/calibration.json llmbench run ...\n");
    }
    if (stop_asked.load()) {
        say("\ninterrupted: nothing is said of this machine, and " + file + " is not written\n");
        return exit_code_of(gate_outcome::invalid);
    }
    write_file(file, doctor_json(m, f));
    say("\n" + paragraph_of(m, f) + "\n(" + file + ")\n");
    return m.streams == 0 ? 1 : o.has("--url") && f.rows.empty() ? 3 : 0;
}
inline verb doctor_verb() {
    return {
        "doctor",
        "What can be measured on this machine",
        {{"Options",
          {{"--url", "URL", "a server, too: ten repeats of one load in three minutes"},
           {"--model", "NAME", "default: the only one that the server lists"},
           {"--users", "N", "of the load; default: as many as it answers like one"},
           {"--rate", "R", "Poisson arrivals instead, requests a second"},
           {"--duration", "TIME", "of all ten repeats; default: 3min"},
           {"--name", "TEXT", "of the gate that the calibration is for; default: llmbench run"},
           {"--report", "PATH", "where the calibration goes; default: llmbench-doctor"},
           {"--out", "FILE", "default: doctor.json"}}}},
        "Examples:\n"
        "  llmbench doctor\n"
        "  llmbench doctor --url http://127.0.0.1:8000 --rate 8\n"
        "It takes 20 s, and with --url three minutes more. The last paragraph is for a pull\n"
        "request. LLMBENCH_CALIBRATION=llmbench-doctor/calibration.json is for gates of that "
        "name.\n"
        "Exit codes: 0 done, 1 no time is right within 1 ms, 2 refused, 3 no value of the server.",
        doctor};
}

}  // namespace llmbench_program
