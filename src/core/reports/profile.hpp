// the profile of a server that failed a gate
#pragma once

#include "core/base/fields.hpp"
#include "core/metric/filled.hpp"

#include <cstddef>  // size_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A request to the server's profiler, by HTTP or by a command.
struct profile_step {
    std::string asked{};  // "POST /start_profile", or the command; "" if not sent
    std::string came{};   // "answered HTTP 200", "exited with status 0", or why neither
    std::string said{};   // the answer, or the last line that the command wrote
    bool heard = false;   // it was answered, or the command ended
    bool done = false;    // and that with success
};
/// The texts of servers and commands in it are printable, and without secrets.
struct taken_profile {
    std::string none{};  // why there is none, "" if there is one
    bool goes_on = false;  // started, and not known to have ended
    profile_step start{}, stop{};
    double load_s = 0;  // under load; `requests` were sent or cut off
    std::size_t requests = 0;
    std::string files{};  // its place, if that is known
};

inline std::string step_text(const profile_step& s) {
    return filled("{asked} {came}[: {said}]",
                  {{"asked", s.asked}, {"came", s.came}, {"said", s.said}});
}
/// One sentence.
inline std::string profile_text(const taken_profile& t) {
    if (!t.none.empty())
        return filled("no profile: {why}{goes_on?; it may go on, and slows down whatever this "
                      "server does next}",
                      {{"why", t.none}, {"goes_on", t.goes_on}});
    return filled("profile: {load:t} of the same load, {requests} requests; {start}; {stop}[; "
                  "{files}]",
                  {{"load", t.load_s}, {"requests", t.requests}, {"start", step_text(t.start)},
                   {"stop", step_text(t.stop)}, {"files", t.files}});
}

inline void fields_of(field_visitor& v, profile_step& s) {
    v.text({"asked", "the request or the command; \"\": none was made"}, s.asked);
    v.flag({"done"}, s.done);
    v.text({"came", "the status, or why there is none"}, s.came);
    v.text({"said", "the answer, or the last line of what the command wrote"}, s.said);
}
inline void fields_of(field_visitor& v, taken_profile& t) {
    bool is_taken = t.none.empty();
    v.flag({"taken"}, is_taken);
    v.text({"why_not"}, t.none);
    v.flag({"goes_on", "it was begun and could not be ended", at_times}, t.goes_on);
    v.number({"load_s", "seconds of load, outside the measurement"}, t.load_s,
             {0, longest_time_s, 0});
    v.whole({"requests", "in them, cut off ones included; they are in no other file"}, t.requests);
    v.text({"files", "where the profile is, as far as that is known"}, t.files);
    v.object({"start", "", presence::always, "profile_step"}, t.start);
    v.object({"stop", "", presence::always, "profile_step"}, t.stop);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
