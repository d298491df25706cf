// field lists of stored structs
// Each stored struct has one function fields_of(field_visitor&, it). The writer, the reader, the
// clock mover, ci/result.schema.json and tests all use it, so that none of them omits a field.
#pragma once

#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <climits>  // LLONG_MIN
#include <cstddef>  // size_t
#include <limits>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

// Limits of numbers in files.
inline constexpr double longest_time_s = 1e7;  // of any measurement
inline constexpr double most_tokens = 1e8;     // of a request
inline constexpr double max_count = 9e15;     // the integers that a double holds exactly
/// Nanoseconds of a clock: 31 years, so that times can be added.
inline constexpr double latest_time_ns = 1e18;
inline constexpr double max_events = 1e7;        // of an answer
inline constexpr double max_reported_tokens = 1e9;  // that a server may report for a request
inline constexpr double most_of_few = 1e6;         // of other small numbers
inline constexpr double max_text_bytes = 2147483647;  // of an answer
inline constexpr double max_rate = 1e12;      // of requests per second
inline constexpr double max_statistic = 1e100;  // a server may report anything

/// Whether files have a field always, as since the first version, only sometimes, or where it is
/// not 0, false or empty.
enum class presence : unsigned char { always, at_times, if_any };

/// A field's name and one line of documentation; for an object, what others of its kind are called.
struct field {
    const char* name = "";
    const char* about = "";
    presence is_there = presence::always;
    const char* kind = "";
};
inline constexpr presence at_times = presence::at_times, if_any = presence::if_any;

/// The allowed numbers, and the value of null and missing fields.
struct number_range {
    double least = 0, most = max_count, otherwise = not_a_number;
    bool with_infinity = false;  // written as the largest double
};
inline constexpr number_range seconds_range{0, longest_time_s};
inline constexpr number_range rate_range{0, max_rate, 0};
inline constexpr number_range any_number{-max_statistic, max_statistic};
/// A missing field keeps the initial value; null is `null`.
struct whole_range {
    static constexpr long long no_null = LLONG_MIN;
    double least = 0, most = max_count;
    long long null = no_null;
};
/// Of integers that a double may not hold, and of the clock's nanoseconds, where null is 0.
inline constexpr whole_range exact_range{0, latest_time_ns}, time_range{0, latest_time_ns, 0};
/// Lists of numbers have a line for each number, or one in all for programs.
enum class layout : unsigned char { lines, one_line };

/// Groups of numbers that begin with times.
struct time_groups {
    std::size_t size = 1, times = 1;
};

/// Visits the fields of a struct. Those that `assign` change values; others leave them, so they may
/// be constant. Functions with empty bodies here are for kinds of fields that most visitors ignore.
class field_visitor {
public:
    field_visitor() = default;
    field_visitor(const field_visitor&) = delete;
    field_visitor& operator=(const field_visitor&) = delete;
    virtual ~field_visitor() = default;
    bool assigns() const { return assigns_; }

    template <class Text>
    void text(const field& f, Text& t) {
        std::string to;
        if (is_here(f, !t.empty()) && visit_text(f, {t.data(), t.size()}, to)) t = to;
    }
    /// Text from outside, made printable.
    template <class Text>
    void quoted(const field& f, Text& t) {
        std::string to;
        if (is_here(f, !t.empty()) && visit_text(f, {t.data(), t.size()}, to)) t = shown(to);
    }
    /// Likewise, where null is "".
    template <class Text>
    void quoted_or_null(const field& f, Text& t) {
        std::string to;
        if (is_here(f, !t.empty()) && visit_text_or_null(f, {t.data(), t.size()}, to))
            t = shown(to);
    }
    template <integer Whole>
    void whole(const field& f, Whole& n, const whole_range& of = {}) {
        if (!is_here(f, n != 0)) return;
        auto to = static_cast<long long>(n);
        constexpr auto most = static_cast<double>(std::numeric_limits<Whole>::max());
        visit_whole(f, to, {of.least, std::min(of.most, most), of.null});
        if (assigns_) n = static_cast<Whole>(to);
    }
    /// `to_string` names the enumerators.
    template <class Enum>
    void choice(const field& f, Enum& e, Enum last) {
        if (!is_here(f, e != Enum{})) return;
        auto to = static_cast<int>(e);
        visit_choice(f, to, static_cast<int>(last) + 1,
                     [](int k) { return to_string(static_cast<Enum>(k)); });
        if (assigns_) e = static_cast<Enum>(to);
    }
    void flag(const field& f, bool& b) {
        if (is_here(f, b)) visit_flag(f, b);
    }
    void number(const field& f, double& n, const number_range& of = {}) {
        if (is_here(f, n > 0)) visit_number(f, n, of);
    }
    void seconds(const field& f, double& s) { number(f, s, seconds_range); }
    /// An integer that a double may not hold.
    virtual void exact(const field& f, long long& n, const whole_range& of = exact_range) {
        visit_whole(f, n, of);
    }
    /// Nanoseconds of the clock, 0 for none.
    virtual void time(const field& f, long long& ns, const whole_range& of = time_range) {
        exact(f, ns, of);
    }
    /// A time relative to another one in files.
    virtual void time_after(const field&, long long&, long long /* from_ns */) {}
    virtual void times_after(const field&, vector<long long>&, long long /* from_ns */,
                             const time_groups& = {}) {}
    virtual void numbers(const field&, vector<double>&, const number_range& = {},
                         layout = layout::lines) {}
    void texts(const field& f, vector<std::string>& all) {
        if (is_here(f, !all.empty())) visit_texts(f, all);
    }
    void interval(const field& f, double& low, double& high) {
        vector<double> both = {low, high};
        numbers(f, both, any_number);
        if (assigns_ && both.size() == 2) {
            low = both[0];
            high = both[1];
        }
    }
    /// Refuses a field that does not fit with others.
    virtual void misfit(const char* /* name */, const char* /* allowed */) {}
    /// Whether a field is present: `there`, or as in the file.
    virtual bool has(const char*, bool there) { return there; }
    /// An object, up to end(), unless it returns false.
    virtual bool begin(const field&) { return true; }
    virtual void end() {}
    template <class T, class... More>
    void object(const field& f, T& of, More&... more) {
        if (!begin(f)) return;
        fields_of(*this, of, more...);
        end();
    }
    /// The names of variable fields: `have`, or as in the file.
    virtual vector<std::string> names(const vector<std::string>& have) { return have; }
    template <class List, class Each>
    void list(const field& f, List& all, Each&& each) {
        if (!is_here(f, !all.empty())) return;
        const std::size_t n = begin_list(f, all.size());
        if (assigns_) all.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            begin_element(i);
            each(all[i]);
            end();
        }
        end_list();
    }

protected:
    virtual bool visit_text(const field&, std::string_view, std::string&) { return false; }
    virtual bool visit_text_or_null(const field& f, std::string_view t, std::string& to) {
        return visit_text(f, t, to);
    }
    virtual void visit_flag(const field&, bool&) {}
    virtual void visit_number(const field&, double&, const number_range&) {}
    virtual void visit_texts(const field&, vector<std::string>&) {}
    virtual void visit_whole(const field&, long long&, const whole_range&) {}
    virtual void visit_choice(const field&, int&, int /* how many */, const char* (*)(int)) {}
    virtual std::size_t begin_list(const field&, std::size_t n) { return n; }
    virtual void begin_element(std::size_t) {}
    virtual void end_list() {}
    bool assigns_ = true;

private:
    static std::string shown(const std::string& t) { return printable(t, 4 * t.size() + 4); }
    bool is_here(const field& f, bool any) {
        return f.is_there != presence::if_any || has(f.name, any);
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
