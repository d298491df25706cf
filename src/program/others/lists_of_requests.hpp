// files with a list for each value of requests
// vLLM bench serve and SGLang's bench_serving, which have a common origin.
#pragma once

#include "api/result.hpp"
#include "api/traffic.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/judging/server.hpp"
#include "program/others/imported_run.hpp"

#include <algorithm>  // max
#include <cmath>  // round
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The lists of one file, all as long as `ttfts`.
class request_lists {
public:
    request_lists(const picojson::value& of, const std::string& file) : of_(of), file_(file) {
        size_ = array_member(of, "ttfts").size();
    }
    std::size_t size() const { return size_; }
    /// Whether the file has an optional list. Throws if its length differs from the others.
    bool has(const char* name) const {
        const picojson::value* v = member(of_, name);
        if (!v || v->is<picojson::null>()) return false;
        if (!v->is<picojson::array>())
            refuse({file_, ": ", name, " is ", shown_value(*v), ", a list is allowed"});
        const std::size_t n = v->get<picojson::array>().size();
        if (n != size_)
            refuse({printed("%s: %s holds %zu values and ttfts %zu, one for each request is "
                            "allowed", file_.c_str(), name, n, size_)});
        return true;
    }
    void require_list(const char* name) const {
        if (!has(name))
            refuse({file_, ": ", name,
                    " is missing, a list with one value for each request beside ttfts"});
    }
    const picojson::value& at(const char* name, std::size_t i) const {
        return array_member(of_, name)[i];
    }
    double seconds(const char* name, std::size_t i) const {
        return seconds_from(file_, at(name, i), [&] { return element_name(name, i); });
    }
    /// Returns a time of a clock with an unknown start.
    double clock(const char* name, std::size_t i) const {
        return number_from(file_, at(name, i), 0, latest_clock_s, "a time in seconds",
                           [&] { return element_name(name, i); });
    }
    int tokens(const char* name, std::size_t i) const {
        return tokens_from(file_, at(name, i), [&] { return element_name(name, i); });
    }
    std::string text(const char* name, std::size_t i) const {
        const picojson::value& v = at(name, i);
        return v.is<std::string>() ? v.get<std::string>() : std::string();
    }
    /// Returns the gaps of a request in seconds.
    std::vector<double> gaps(std::size_t i) const {
        const picojson::value& v = at("itls", i);
        if (!v.is<picojson::array>())
            refuse_value(file_, element_name("itls", i), v, "a list of seconds is allowed");
        std::vector<double> out;
        double sum = 0;
        for (const picojson::value& x : v.get<picojson::array>()) {
            out.push_back(seconds_from(file_, x, [&] {
                return element_name(element_name("itls", i), out.size());
            }));
            sum += out.back();
        }
        if (sum > longest_time_s)
            refuse_value(file_, element_name("itls", i), v,
                         printed("whose sum is over %g seconds", longest_time_s));
        return out;
    }

private:
    const picojson::value& of_;
    const std::string& file_;
    std::size_t size_ = 0;
};

/// Sets the planned rate, and the limit of requests in flight. A rate of "inf" sends all requests
/// at once.
inline void set_arrivals(imported_run& run, double rate, double burstiness, long long most) {
    arrival_data& a = run.arrivals;
    if (!std::isfinite(rate)) {
        a.kind = most > 0 ? arrival_kind::closed_loop : arrival_kind::all_at_once;
        a.users = std::max(most, 1ll);
        return;
    }
    a.rate = rate;
    a.max_in_flight = most;
    a.burstiness = burstiness;
    a.kind = burstiness == 1 ? arrival_kind::poisson
             : std::isinf(burstiness) ? arrival_kind::constant : arrival_kind::gamma;
}
/// Returns a member that is a number or "inf"; NaN if it is missing.
inline double number_or_inf(const picojson::value& of, const std::string& file, const char* name) {
    const std::string word = string_member(of, name);
    return word == "inf" || word == "Infinity" ? infinity : told_number(file, of, name);
}

/// Sums of the lists, to be compared with those that the file has.
struct reported_sums {
    long long completed = 0, failed = 0, output_tokens = 0, input_tokens = 0;
};
/// Requests that a user removed are missing in the lists but not in the counts.
inline void check_sums(imported_run& run, const picojson::value& of, const reported_sums& found) {
    const auto differs = [&](const char* name, long long n) {
        const double reported = told_number(run.file, of, name, max_count);
        if (std::isnan(reported) || reported == static_cast<double>(n)) return false;
        run.lacks_all(printed("it says %s %.0f, its lists of requests add up to %lld: requests "
                              "were left out, or changed", name, reported, n));
        return true;
    };
    if (differs("completed", found.completed)) return;
    if (differs("failed", found.failed)) return;
    if (differs("total_output_tokens", found.output_tokens)) return;
    differs("total_input_tokens", found.input_tokens);
}

/// Requests whose numbers differ from our definitions and cannot be corrected from the file.
struct odd_answers {
    std::size_t completed = 0, odd = 0;
    bool too_many() const { return is_too_much(odd, completed); }
    std::string words(const char* what) const {
        return printed("%zu of %zu completed requests ", odd, completed) + what;
    }
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
