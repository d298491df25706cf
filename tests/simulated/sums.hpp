// Sums in reports equal sums over records: what result.json, metrics.txt, summary.md and junit.xml
// say of a repeat, added up here once more from its records alone.
#pragma once

#include "simulated/stamps.hpp"
#include "simulated/verdicts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include <picojson.h>

namespace virtual_world {
using llmbench::detail::vector;

/// Of some repeats together.
struct sums {
    std::map<std::string, long long> statuses{};
    std::map<std::string, double> seconds{};  // of each metric, and how many values that is of
    std::map<std::string, double> values{};
    long long measured = 0, ok = 0, exempt = 0, events = 0, resends = 0, connections = 0;
    long long cached = 0, prompts = 0;  // tokens, of those that tell of cached ones
    double window_s = 0, tokens_in_window = 0, requests_in_window = 0;

    double mean(const std::string& metric) const {
        const auto n = values.find(metric);
        return n == values.end() || n->second == 0 ? not_a_number
                                                   : seconds.at(metric) / n->second;
    }
};

inline void add_record(sums& s, const repeat_data& d, std::size_t i) {
    const record& x = d.records[i];
    ++s.measured;
    s.exempt += x.exempt;
    ++s.statuses[to_string(x.status)];
    s.events += x.events;
    s.resends += x.resends;
    if (x.cached_tokens >= 0 && x.prompt_tokens > 0) {
        s.cached += x.cached_tokens;
        s.prompts += x.prompt_tokens;
    }
    if (x.status != request_status::ok) return;
    ++s.ok;
    const auto add = [&](const char* metric, double ns, double of = 1) {
        s.seconds[metric] += ns * 1e-9;
        s.values[metric] += of;
    };
    add("ttft", static_cast<double>(x.first_token_ns - x.scheduled_ns));
    add("ttft_from_send", static_cast<double>(x.first_token_ns - x.sent_ns));
    add("e2e", static_cast<double>(x.end_ns - x.scheduled_ns));
    if (const int n = x.output_tokens - x.first_event_tokens; n > 0)
        add("tpot", static_cast<double>(x.last_token_ns - x.first_token_ns + x.textless_ns) / n);
    const vector<long long> events = events_of(d, i);
    add("itl", static_cast<double>(events.back() - events.front()),
        static_cast<double>(events.size() - 1));
    for (const long long t : events)
        if (d.window.holds(t)) s.tokens_in_window += double(x.output_tokens) / x.events;
    s.requests_in_window += d.window.holds(x.end_ns);
}
inline sums sums_of(const repeat_list& variant) {
    sums s;
    for (const repeat_data& d : variant) {
        for (std::size_t i = 0; i < d.records.size(); ++i) add_record(s, d, i);
        s.window_s += d.window.is_empty() ? 0 : d.window.seconds();
        s.connections += d.connections_opened;
    }
    return s;
}

/// result.json, by paths such as "candidate.ttft.mean".
class reported_numbers {
public:
    explicit reported_numbers(const picojson::value& of) : of_(of) {}
    const picojson::value& at(const std::string& path) const {
        static const picojson::value none;
        const picojson::value* v = &of_;
        for (std::size_t from = 0; from <= path.size();) {
            const std::size_t to = std::min(path.find('.', from), path.size());
            const std::string name = path.substr(from, to - from);
            if (!v->is<picojson::object>() || !v->contains(name)) return none;
            v = &v->get(name);
            from = to + 1;
        }
        return *v;
    }
    double number(const std::string& path) const {
        const picojson::value& v = at(path);
        return v.is<double>() ? v.get<double>() : not_a_number;
    }

private:
    const picojson::value& of_;
};
/// Both are none, or they are the same but for the order in which they were added up.
inline bool are_same(double reported, double summed) {
    if (std::isnan(summed) || std::isnan(reported)) return std::isnan(summed) && std::isnan(reported);
    return std::fabs(reported - summed) <= 1e-9 * std::max({1.0, std::fabs(reported), std::fabs(summed)});
}

inline void check_arm(const reported_numbers& reported, const sums& s, checked& c) {
    const auto equal = [&](const std::string& path, double summed) {
        c.must(are_same(reported.number(path), summed),
               printed("result.json: %s is %.17g, its records give %.17g", path.c_str(),
                       reported.number(path), summed));
    };
    for (const char* metric : {"ttft", "tpot", "itl", "e2e", "ttft_from_send"})
        equal(std::string("candidate.") + metric + ".mean", s.mean(metric));
    equal("candidate.error_rate",
          s.measured > s.exempt ? 1 - double(s.ok) / double(s.measured - s.exempt) : not_a_number);
    if (s.window_s > 0) {
        equal("candidate.output_throughput", s.tokens_in_window / s.window_s);
        equal("candidate.request_throughput", s.requests_in_window / s.window_s);
    }
    long long all = 0;
    for (const auto& [status, n] : s.statuses) {
        equal("candidate.statuses." + status, static_cast<double>(n));
        all += n;
    }
    c.must(all == s.measured, "statuses");
    long long ended = 0;
    const picojson::value& reasons = reported.at("candidate.finish_reasons");
    if (reasons.is<picojson::array>())
        for (const picojson::value& r : reasons.get<picojson::array>())
            ended += std::llround(r.get("count").get<double>());
    c.must(ended == s.ok, printed("result.json: %lld answers say how they ended, %lld are ok",
                                  ended, s.ok));
    if (s.prompts > 0) {
        equal("candidate.prefix_cache.cached_tokens", static_cast<double>(s.cached));
        equal("candidate.prefix_cache.prompt_tokens", static_cast<double>(s.prompts));
    }
    equal("self_check.connections_opened", static_cast<double>(s.connections));
}
inline void check_each(const reported_numbers& reported, const repeat_list& variant,
                       checked& c) {
    const picojson::value& listed = reported.at("candidate.repeats");
    const bool are_all =
        listed.is<picojson::array>() && listed.get<picojson::array>().size() == variant.size();
    c.must(are_all, "result.json: its repeats are not those that were measured");
    for (std::size_t i = 0; are_all && i < variant.size(); ++i) {
        const reported_numbers one(listed.get<picojson::array>()[i]);
        const sums s = sums_of({variant[i]});
        const auto equal = [&](const char* name, double reported_value, double summed) {
            c.must(are_same(reported_value, summed),
                   printed("result.json: %s of repeat %zu is %.17g, its records give %.17g", name,
                           i, reported_value, summed));
        };
        for (const char* name : {"ttft", "itl", "e2e"}) {
            const std::string mean = std::string("mean(") + name + ")";
            equal(mean.c_str(), reported_numbers(one.at("statistics")).number(mean), s.mean(name));
        }
        equal("events", one.number("content_events"), static_cast<double>(s.events));
        equal("resends", one.number("resends"), static_cast<double>(s.resends));
    }
}

inline std::size_t count_of(const std::string& in, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++n;
    return n;
}
/// What is for people and for CI says the same as result.json.
inline void check_texts(const vector<gate_report>& gates, const sums& s, checked& c) {
    const gate_report& g = gates[0];
    const std::string ok = printed("%lld of %lld requests ok", s.ok, s.measured);
    const std::string summary = summary_md(gates);
    for (const std::string& report : {summary, console_text(g, console_style{})})
        c.must(report.find(ok) != std::string::npos, "no \"" + ok + "\" in: " + report);
    for (const auto& [status, n] : s.statuses)
        c.must(status == "ok" ||
                   summary.find(printed("; %lld ", n) + status) != std::string::npos,
               "summary.md does not tell of " + printed("%lld ", n) + status);
    const std::string metrics = open_metrics(gates);
    for (const char* metric : {"ttft", "tpot", "itl", "e2e", "ttft_from_send"}) {
        const std::string of = std::string("metric=\"") + metric + "\",statistic=\"mean\"} ";
        const std::size_t at = metrics.find(of);
        const double reported =
            at == std::string::npos ? infinity : std::strtod(&metrics[at + of.size()], nullptr);
        c.must(are_same(reported, s.mean(metric)),
               printed("metrics.txt: the mean of %s is %.17g, its records give %.17g", metric,
                       reported, s.mean(metric)));
    }
    std::size_t failures = 0, errors = 0;
    for (const slo_verdict& v : g.verdicts) {
        failures += v.outcome == verdict::fail;
        errors += v.outcome == verdict::invalid;
    }
    const std::string junit = junit_xml(gates);
    c.must(junit.find(printed("tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"", g.verdicts.size(),
                              failures, errors)) != std::string::npos &&
               count_of(junit, "<testcase ") == g.verdicts.size() &&
               count_of(junit, "<failure ") == failures && count_of(junit, "<error ") == errors,
           "junit.xml counts other verdicts than there are");
}

/// The reports of a gate with these repeats, and what they add up to.
inline void check_sums(const drawn& d, const vector<repeat>& all, checked& c) {
    plan p = all[0].what;
    p.name = printed("seed %llu", static_cast<unsigned long long>(d.of.seed));
    p = with_judging(p, [&](planned_judging& j) {
        j.slos = {mean(ttft) <= time_span::from_seconds(1), p99(itl) <= time_span::from_seconds(1)};
    });
    measured_gate m;
    m.what = p;
    m.seen = evidence_of(all);
    m.judged_by = parameters_of(all[0], p.judged->slos);
    m.found = analyse(m.seen, m.judged_by);
    const vector<gate_report> gates{report_of(m, settings{})};
    const sums s = sums_of(m.seen.candidate);
    picojson::value json;
    const std::string error = picojson::parse(
        json, result_json(gates, environment_facts{}, event_index{}, 0));
    c.must(error.empty(), "result.json: " + error);
    if (!error.empty()) return;
    const reported_numbers reported(json.get("gates").get<picojson::array>()[0]);
    check_arm(reported, s, c);
    check_each(reported, m.seen.candidate, c);
    check_texts(gates, s, c);
    for (const slo_verdict& v : gates[0].verdicts) {
        long long measured = 0;
        for (int k = 0; k < v.repeats; ++k)
            for (const record& x : m.seen.candidate[static_cast<std::size_t>(k)].records)
                measured += !x.exempt;
        c.must(v.requests == measured,
               printed("a verdict tells of %lld requests in %d repeats that have %lld: ",
                       v.requests, v.repeats, measured) + str(v.line()));
    }
}

}  // namespace virtual_world
