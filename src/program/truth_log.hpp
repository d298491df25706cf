// the log of `llmbench serve`, read: each request with its true times, as a record of ours
#pragma once

#include "api/result.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "program/serve_log.hpp"
#include "program/values.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>

namespace llmbench_program {

/// A request as one side has it. The times of a record, or values of a table.
struct timed_request {
    record what{};            // id, times, tokens; of a table only the id
    long long order_ns = 0;   // when it was sent, or arrived, by the clock of its side; 0: unknown
    vector<double> gaps_s{};  // between events with content
    std::optional<double> ttft_s{}, tpot_s{}, e2e_s{};  // of a table
    std::optional<double> start_s{};  // of a table: when it was sent, by any clock
    bool is_row = false;              // of a table
    std::map<std::size_t, double>
        doubts_s{};  // of events: how much later the kernel may have had them
    double doubt_s(std::size_t event) const {
        const auto found = doubts_s.find(event);
        return found == doubts_s.end() ? 0 : found->second;
    }
    bool is_complete() const { return what.status == request_status::ok; }
};
struct true_requests {
    std::string file{}, server{};
    long long day_ahead_ns = 0;        // the time of day minus its clock
    vector<timed_request> requests{};  // by arrival
    /// Of the line at its end; -1: the server still ran, or was killed.
    double late_p99_s = -1, late_max_s = -1;
    long long waited = 0;
};

inline timed_request read_true_request(const checked_object& line) {
    constexpr double most = 9e18, longest = 1e15;
    timed_request t;
    record& r = t.what;
    const auto from = line.whole<long long>("received_ns", 1, most, 0);
    if (from == 0) line.refuse("received_ns", "every request has one");
    r.scheduled_ns = r.dispatched_ns = r.connected_ns = r.sent_ns = t.order_ns = from;
    r.id = line.text("id");
    r.output_tokens = line.tokens("output_tokens", 0);
    r.prompt_tokens = line.tokens("prompt_tokens", 0);
    r.first_event_tokens = line.tokens("first_event_tokens", 1);
    r.end_ns = from + line.whole<long long>("end_ns", 0, longest, 0);
    for (const picojson::value& d : array_member(line.value(), "doubts")) {
        const bool is_pair = d.is<picojson::array>() && d.get<picojson::array>().size() == 2;
        const double event = is_pair ? number_in(d.get(0)) : -1;
        const double ns = is_pair ? number_in(d.get(1)) : -1;
        if (!(event >= 0 && event <= 1e9 && ns >= 0 && ns <= longest))
            line.refuse("doubts", "pairs of an event and nanoseconds are allowed");
        t.doubts_s[static_cast<std::size_t>(event)] = 1e-9 * ns;
    }
    r.status = line.text("ended") == "ok" ? request_status::ok : request_status::server;
    r.error = line.text("ended");
    long long last = 0;
    line.numbers("tokens_ns", 0, longest, [&](std::size_t i, double ns) {
        const long long at = from + static_cast<long long>(ns);
        if (at < last) line.refuse("tokens_ns", "times in rising order are allowed");
        if (i == 0) r.first_token_ns = at;
        else t.gaps_s.push_back(static_cast<double>(at - last) * 1e-9);
        r.last_token_ns = last = at;
    });
    return t;
}

/// Throws std::invalid_argument with the file and the line.
inline true_requests read_truth(std::string_view bytes, const std::string& file) {
    true_requests all;
    all.file = file;
    std::size_t number = 0;
    long long counted = -1;  // by the line at the end
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) break;  // it is being written
        const std::string_view text = bytes.substr(0, end);
        bytes.remove_prefix(end + 1);
        const std::string place = printed("%s:%zu", file.c_str(), ++number);
        picojson::value v;
        const bool is_object = parse_json(text, v) && v.is<picojson::object>();
        if (!is_object && number > 1)
            refuse({place, ": it is no line of a log of `llmbench serve`"});
        const checked_object line(v, place, "");
        if (counted >= 0)
            refuse({place, ": the log ends before this line: give one log of one server"});
        if (number == 1) {
            if (!is_object || line.text("schema") != truth_schema)
                refuse({file,
                        ": it is no log of `llmbench serve`, whose first line has \"schema\": \"",
                        truth_schema, "\""});
            all.server = line.text("server");
            all.day_ahead_ns = line.whole<long long>("day_ahead_ns", -9e18, 9e18, 0);
        } else if (line.is_true("end")) {
            counted = line.whole<long long>("requests", 0, max_count, 0);
            all.late_p99_s = 1e-9 * line.number("late_p99_ns", 0, 1e18, 0);
            all.late_max_s = 1e-9 * line.number("late_max_ns", 0, 1e18, 0);
            all.waited = line.whole<long long>("waited", 0, max_count, 0);
        } else {
            all.requests.push_back(read_true_request(line));
        }
    }
    if (number == 0) refuse({file, ": it is empty"});
    if (counted >= 0 && counted != static_cast<long long>(all.requests.size()))
        refuse({file, printed(": its end counts %lld requests, and it has %zu: give the whole log",
                              counted, all.requests.size())});
    sort_by(all.requests, [](const timed_request& t) { return t.order_ns; });
    return all;
}

}  // namespace llmbench_program
