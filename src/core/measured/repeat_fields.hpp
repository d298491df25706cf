// the fields of a repeat
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/base/time_interval.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/measured/histograms.hpp"
#include "core/measured/ranks.hpp"
#include "core/measured/record_fields.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/server_metrics.hpp"

#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <set>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr double max_ranks = 100000;
inline constexpr double max_cost = 1e6;  // USD an hour
inline constexpr std::size_t max_series = 1000;  // each has a number in each reading

/// For a repeat, or for the client over all of them.
template <class Conduct>
void lag_fields(field_visitor& v, Conduct& c, presence is_there = presence::always) {
    v.seconds({"loop_lag_p99", "", is_there}, c.loop_lag_p99);
    v.seconds({"loop_lag_max", "", is_there}, c.loop_lag_max);
    v.seconds({"stamp_lag_p99", "", is_there}, c.stamp_lag_p99);
    v.seconds({"stamp_lag_max", "", is_there}, c.stamp_lag_max);
}

inline void stamp_fields(field_visitor& v, repeat_facts& d) {
    v.whole({"reads", "of the client's sockets", at_times}, d.reads);
    v.whole({"stamped_reads", "of them, those whose time of arrival the kernel told", at_times},
            d.stamped_reads);
    arrival_stamps stamps =
        is_mostly_stamped(d.stamped_reads, d.reads) ? arrival_stamps::kernel : arrival_stamps::read;
    v.choice({"stamps", "whose times of arrival records have: the kernel's, or those of reads",
              at_times},
             stamps, arrival_stamps::kernel);
    v.whole({"unknown_gaps", "of completed measured requests, between events that a late client "
                             "read together", at_times}, d.unknown_gaps);
}

inline void fields_of(field_visitor& v, rank_part& r, long long window_from_ns) {
    v.whole({"index"}, r.index, {0, max_ranks});
    v.whole({"count"}, r.count, {1, max_ranks});
    v.quoted({"host"}, r.host);
    v.time_after({"start_ns", "after window_from_ns"}, r.start_ns, window_from_ns);
    v.number({"off_s", "how much later than the common start it began"}, r.off_s,
             {-longest_time_s, longest_time_s});
    v.seconds({"off_error_s", "how well that is known; null: nobody can tell"}, r.error_s);
    v.flag({"clock_is_synchronised", "by its system's own account"}, r.synchronised);
    v.number({"server_clock_low_s", "its machine's clock is ahead of the server's by this at "
                                    "least, by the Date of answers before and after the load; "
                                    "null: unknown", at_times},
             r.lead.low_s, {-max_count, max_count, -infinity});
    v.number({"server_clock_high_s", "and by this at most", at_times}, r.lead.high_s,
             {-max_count, max_count, infinity});
    v.number({"cpu_utilization", "of its busiest thread"}, r.cpu_utilization, {0, max_ranks});
    v.number({"memory_bytes", "the most that its process has had"}, r.memory_bytes);
    v.seconds({"lateness_p99"}, r.lateness_p99);
    v.whole({"requests"}, r.requests);
    v.whole({"failed"}, r.failed);
}

inline void fields_of(field_visitor& v, side_task_seen& t, long long window_from_ns) {
    v.text({"name"}, t.name);
    v.flag({"may_fail"}, t.may_fail);
    v.number({"excuses_s", "requests that failed within so long of a step are counted apart",
              if_any}, t.excuses_s, {0, longest_time_s, 0});
    if (v.has("recovery_s", !std::isnan(t.recovery_s)))
        v.number({"recovery_s", "until the load was answered in time again", at_times},
                 t.recovery_s, {-largest_number, largest_number, not_a_number, true});
    v.list({"steps"}, t.steps, [&](side_step& s) {
        v.text({"what"}, s.what);
        v.time_after({"due_ns", "after window_from_ns"}, s.due_ns, window_from_ns);
        v.time_after({"from_ns", "when it began"}, s.from_ns, window_from_ns);
        v.time_after({"to_ns", "when it had ended"}, s.to_ns, window_from_ns);
        if (s.to_ns < s.from_ns) v.misfit("to_ns", "a step ends after it began");
        v.text({"failed", "why, empty where it did not"}, s.failed);
    });
}

/// One number per reading, on one line. A list of another length is ignored.
template <class Of>
void reading_fields(field_visitor& v, const field& f, vector<page_reading>& readings,
                    Of&& of) {
    vector<double> numbers;
    for (page_reading& r : readings) numbers.push_back(of(r));
    v.numbers(f, numbers, {-largest_number, largest_number, not_a_number, true}, layout::one_line);
    if (!v.assigns() || numbers.size() != readings.size()) return;
    for (std::size_t i = 0; i < numbers.size(); ++i) of(readings[i]) = numbers[i];
}
/// Only quantities with values.
inline void quantity_fields(field_visitor& v, const field& f, vector<page_reading>& readings,
                            quantity_values page_reading::*values) {
    if (!v.begin(f)) return;
    for (std::size_t q = 0; q < quantity_count; ++q) {
        const auto is_reported = [&](const page_reading& r) { return !std::isnan((r.*values)[q]); };
        if (v.has(quantity_names[q], any_of(readings, is_reported)))
            reading_fields(v, {quantity_names[q], "", at_times}, readings,
                           [&](page_reading& r) -> double& { return (r.*values)[q]; });
    }
    v.end();
}

/// The names of series that each reading has a number of.
inline vector<std::string> few_names(field_visitor& v, const vector<std::string>& have) {
    vector<std::string> names = v.names(have);
    if (v.assigns() && names.size() > max_series)
        v.misfit(names[max_series].c_str(),
                 printed("up to %zu series are allowed", max_series).c_str());
    return names;
}
inline void joules_fields(field_visitor& v, vector<page_reading>& readings) {
    std::set<std::string> cards;
    for (const page_reading& r : readings)
        for (const auto& [name, joules] : r.joules) cards.insert(name);
    if (v.has("joules", !cards.empty()) &&
        v.begin({"joules", "of each accelerator's counter of energy, in the same way", at_times})) {
        for (const std::string& name : few_names(v, {cards.begin(), cards.end()})) {
            vector<double> joules;
            for (page_reading& r : readings) {
                const auto at = r.joules.find(name);
                joules.push_back(at == r.joules.end() ? not_a_number : at->second);
            }
            v.numbers({name.c_str(), "", at_times}, joules,
                      {-largest_number, largest_number, not_a_number, true}, layout::one_line);
            for (std::size_t i = 0; v.assigns() && i < joules.size() && i < readings.size(); ++i)
                if (!std::isnan(joules[i])) readings[i].joules[name] = joules[i];
        }
        v.end();
    }
}

inline void fields_of(field_visitor& v, cross_check& c) {
    v.number({"requests_sent"}, c.sent, any_number);
    v.number({"requests_reported"}, c.requests_reported, any_number);
    v.number({"output_tokens"}, c.tokens, any_number);
    v.number({"output_tokens_reported"}, c.tokens_reported, any_number);
    v.number({"prompt_tokens"}, c.prompt_tokens, any_number);
    v.number({"prompt_tokens_reported"}, c.prompt_tokens_reported, any_number);
}
/// Its readings, the times of which count from the window's beginning.
inline void readings_fields(field_visitor& v, server_metrics& w, std::size_t missed,
                            long long window_from_ns) {
    v.times_after({"missed_at_ns", "when they did, in ns after window_from_ns", at_times},
                  w.missed_ns, window_from_ns);
    if (v.assigns() && w.missed_ns.size() != missed)
        v.misfit("missed", "as many as there are times in missed_at_ns are allowed");

    vector<long long> at_ns;
    for (const page_reading& r : w.readings) at_ns.push_back(r.at_ns);
    v.times_after({"at_ns", "when it was read, in ns after window_from_ns"}, at_ns, window_from_ns);
    if (v.assigns()) w.readings.resize(at_ns.size());
    for (std::size_t i = 0; v.assigns() && i < at_ns.size(); ++i) w.readings[i].at_ns = at_ns[i];
    reading_fields(v, {"began", "when its counters began, in seconds since 1970"}, w.readings,
                   [](page_reading& r) -> double& { return r.began; });
    quantity_fields(v, {"values", "of each quantity at each time, SI; of a histogram, the sum of "
                                  "what was observed; 1.7976931348623157e+308 is infinity"},
                    w.readings, &page_reading::values);
    quantity_fields(v, {"counts", "of a histogram, how often something was observed"}, w.readings,
                    &page_reading::counts);
    joules_fields(v, w.readings);
    if (!v.begin({"named", "of each series that an objective names, in the same way"})) return;
    const vector<std::string> names = few_names(v, w.selectors);
    if (v.assigns()) w.selectors = names;
    for (std::size_t i = 0; i < names.size(); ++i) {
        for (page_reading& r : w.readings)
            if (v.assigns()) r.named.resize(names.size(), not_a_number);
        reading_fields(v, {names[i].c_str(), "", at_times}, w.readings,
                       [&](page_reading& r) -> double& { return r.named[i]; });
    }
    v.end();
}

inline void fields_of(field_visitor& v, server_metrics& w, cross_check& checked,
                      long long window_from_ns) {
    v.text({"of", "whose page it is, empty where nobody knows that"}, w.of);
    std::size_t missed = w.missed_ns.size();
    v.whole({"missed", "readings that failed"}, missed);
    v.text({"problem", "why the last one of these did"}, w.problem);
    v.flag({"has_both_ends", "read before all requests and after them"}, w.has_both_ends);
    v.number({"from_unix_s", "when it was read first, in seconds since 1970 by the server's clock",
              at_times},
             w.from_s, {-max_count, max_count});
    v.flag({"several_processes", "several processes answer at its address, in turns", at_times},
           w.is_of_several);
    if (v.has("cross_check", checked.is_made) &&
        v.begin({"cross_check", "what we did in the repeat, and what the server says that it did",
                 at_times})) {
        if (v.assigns()) checked.is_made = true;
        fields_of(v, checked);
        v.end();
    }
    readings_fields(v, w, missed, window_from_ns);
}

/// A number with a name, such as a statistic of a repeat.
struct named_number {
    std::string name{};
    double value = not_a_number;
};
inline void named_fields(field_visitor& v, const field& f, vector<named_number>& all,
                         const number_range& of) {
    if (!v.begin(f)) return;
    vector<std::string> names;
    for (const named_number& n : all) names.push_back(n.name);
    names = v.names(names);
    if (v.assigns()) all.resize(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (v.assigns()) all[i].name = names[i];
        v.number({names[i].c_str(), "", at_times}, all[i].value, of);
    }
    v.end();
}

inline void fields_of(field_visitor& v, answer_differences& differ) {
    const bool any = differ.tokens > 0 || differ.without_place > 0 || !differ.places.empty();
    if (!v.has("answer_differences", any) ||
        !v.begin({"answer_differences", "of the answers that were held against the baseline's",
                  at_times}))
        return;
    v.numbers({"places", "characters before each first difference"}, differ.places,
              {0, max_text_bytes}, layout::one_line);
    v.number({"tokens", "before those, and of the answers that do not differ"}, differ.tokens);
    v.whole({"without_place", "answers that differ, whose texts were too many to keep"},
            differ.without_place);
    v.end();
}

inline void fields_of(field_visitor& v, foreseen_work& w) {
    const bool any = !w.prompt.empty() || !w.unknown.empty();
    if (!v.has("expected_work", any) ||
        !v.begin({"expected_work", "what requests should cost, in order of planned sends",
                  at_times}))
        return;
    v.numbers({"prompt_tokens"}, w.prompt, {0, max_reported_tokens}, layout::one_line);
    v.numbers({"cached_tokens"}, w.cached, {0, max_reported_tokens}, layout::one_line);
    v.text({"unknown", "why it is not known", if_any}, w.unknown);
    v.end();
}

/// The connections of a repeat.
inline void way_fields(field_visitor& v, repeat_facts& d) {
    v.whole({"resends", "of requests whose kept connection was closed without an answer"},
            d.resends);
    v.whole({"hang_ups", "connections that the server closed right after their first answer "
                         "without saying so"},
            d.connection_resets);
}
/// What the client says of itself.
inline void client_fields(field_visitor& v, repeat_facts& d) {
    v.number({"asked_rate", "requests/s, 0 where the load asks for none"}, d.asked_rate,
             rate_range);
    v.number({"achieved_rate"}, d.achieved_rate, rate_range);
    v.whole({"connections_opened"}, d.connections_opened);
    lag_fields(v, d);
    v.numbers({"thread_cpu_utilization", "of one core, one a client thread"},
              d.thread_cpu_utilization, {0, most_of_few});
    v.whole({"content_events"}, d.content_events);
    v.whole({"coalesced_events", "read together with an earlier one"}, d.coalesced_events);
    v.number({"cpu_utilization"}, d.cpu_utilization, {0, most_of_few});
    stamp_fields(v, d);
    v.number({"lost_fraction", "of its time, what the client lost where it stamps what it reads "
                               "itself", at_times}, d.lost_fraction, {0, most_of_few, 0});
    v.whole({"disturbed_requests", "in whose time it lost over 20 ms", at_times},
            d.disturbed_requests);
}
inline void fields_of(field_visitor& v, probe_facts& p) {
    if (!v.has("load", p.load > 0)) return;
    v.number({"load", "of a probe: requests/s, or users of a closed loop", at_times}, p.load,
             {1e-9, max_rate});
    v.choice({"part", "of a probe: tried by a search, or asked for by an objective", at_times},
             p.part, probe_of::asked);
    v.text({"disturbed", "of a probe: why it shows nothing, through the client", at_times},
           p.disturbed);
}
inline void fields_of(field_visitor& v, speed_facts& s) {
    if (!v.has("speed_at_once", !std::isnan(s.speed_at_once))) return;
    v.number({"speed_at_once", "at which it answered beside the other variant's load, as a part "
                               "of that alone", at_times}, s.speed_at_once);
    v.number({"speed_error", "the standard error of its logarithm", at_times}, s.speed_error);
}
/// What was not asked for of all requests.
inline void odd_fields(field_visitor& v, odd_counts& odd) {
    v.whole({"short_outputs", "completed requests with fewer tokens than forced"},
            odd.short_outputs);
    v.whole({"long_outputs", "and with more"}, odd.long_outputs);
    v.whole({"short_prompts", "and with under 80 % of the prompt tokens asked for", if_any},
            odd.short_prompts);
    v.whole({"equal_openings", "and whose texts begin alike, though their prompts do not", if_any},
            odd.equal_openings);
}
inline void server_fields(field_visitor& v, repeat_facts& d, cross_check& checked,
                          long long from_ns) {
    if (v.has("server", d.server.is_read) &&
        v.begin({"server", "what the server reported in a repeat, on its page of metrics and "
                           "on those of exporters", at_times, "server"})) {
        if (v.assigns()) d.server.is_read = true;
        fields_of(v, d.server, checked, from_ns);
        v.end();
    }
}
inline void beside_fields(field_visitor& v, repeat_facts& d, long long from_ns) {
    v.list({"beside", "what else was done to the server under the load, task by task", if_any},
           d.side_tasks, [&](side_task_seen& t) { fields_of(v, t, from_ns); });
}
inline void rank_fields(field_visitor& v, repeat_facts& d, long long from_ns) {
    v.list({"ranks", "of a load that several programs sent: what each says of itself", if_any},
           d.ranks, [&](rank_part& r) { fields_of(v, r, from_ns); });
}
/// Its load, and the window of that.
inline void load_fields(field_visitor& v, repeat_facts& d) {
    v.whole({"index"}, d.index, {0, most_of_few});
    fields_of(v, static_cast<probe_facts&>(d));
    long long from_ns = d.window.from_ns(), to_ns = d.window.to_ns();
    v.time({"window_from_ns", "CLOCK_MONOTONIC, the window in which throughput is counted"},
           from_ns, exact_range);
    v.time({"window_to_ns"}, to_ns, exact_range);
    if (to_ns < from_ns) v.misfit("window_to_ns", "a window ends after it began");
    if (v.assigns()) d.window = time_interval::between(from_ns, to_ns);
}
inline void part_fields(field_visitor& v, repeat_facts& d) {
    v.texts({"labels", "of the parts of the workload, in order", if_any}, d.labels);
}
inline void start_fields(field_visitor& v, repeat_facts& d) {
    v.seconds({"startup_s"}, d.startup_s);
    if (v.has("first_answer_s", !std::isnan(d.first_answer_s)))
        v.seconds({"first_answer_s", "of the cold server", at_times}, d.first_answer_s);
}
inline void end_fields(field_visitor& v, repeat_facts& d) {
    v.text({"target_gone", "why, where the server went away"}, d.target_gone);
    v.flag({"interrupted"}, d.interrupted);
    v.flag({"decided_early", "all was decided at the end of its window: requests planned later do "
                             "not count", if_any}, d.decided_early);
}
/// What its metrics need to know of all its requests.
inline void whole_fields(field_visitor& v, repeat_facts& d, odd_counts& odd) {
    v.whole({"shared_tokens", "prompt tokens that the workload lets a prefix cache have, of "
                              "requests that report how many were cached; -1 where none does"},
            odd.shared_tokens, {-1, max_count});
    v.number({"usd_per_hour", "of its server", if_any}, d.usd_per_hour, {0, max_cost, 0});
    v.flag({"plays_out", "whether sessions under way at its end were played to theirs, as an "
                         "objective on session_time asks for", if_any},
           d.plays_out);
    v.flag({"gaps_counted", "there were too many gaps between events to keep each one"},
           d.gaps_counted);
    double error = d.gaps_counted ? gap_error : 0;  // not read back
    v.number({"itl_relative_error", "of itl percentiles at most, 0 where every gap was kept"},
             error, {0, 1, 0});
}
/// A repeat of one variant in result.json, without its requests. Times are of the clock.
inline void fields_of(field_visitor& v, repeat_facts& d, odd_counts& odd, cross_check& checked,
                      vector<named_number>& statistics) {
    load_fields(v, d);
    const long long from_ns = d.window.from_ns();
    part_fields(v, d);
    client_fields(v, d);
    start_fields(v, d);
    fields_of(v, static_cast<speed_facts&>(d));
    end_fields(v, d);
    odd_fields(v, odd);
    way_fields(v, d);
    whole_fields(v, d, odd);
    server_fields(v, d, checked, from_ns);
    beside_fields(v, d, from_ns);
    fields_of(v, d.differences);
    fields_of(v, d.foreseen);
    rank_fields(v, d, from_ns);
    named_fields(v, {"statistics", "by name, as in an SLO: \"p99(ttft)\"; of fractions that a "
                                   "later run is held against their counts, too: "
                                   "\"misses(error_rate)\""},
                 statistics, any_number);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
