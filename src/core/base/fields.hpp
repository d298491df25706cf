// lists of the fields of what is stored
// A struct that files hold has one list of its fields: a function fields_of(field_visitor&, it).
// What writes it, reads it, moves its clock, describes it in ci/result.schema.json or, in tests,
// draws its values goes through that list, so that none of them forgets what another one knows.
#pragma once

#include "api/text.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <climits>  // LLONG_MIN
#include <cstddef>  // size_t
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

// What numbers of files may be.
inline constexpr double longest_time_s = 1e7;  // of anything that anybody measured
inline constexpr double most_tokens = 1e8;     // of one request
inline constexpr double most_count = 9e15;     // which a double holds to the last one
/// Nanoseconds of a clock: 31 years since it began, so that times can be moved and added.
inline constexpr double latest_time_ns = 1e18;
inline constexpr double most_events = 1e7;        // of one answer
inline constexpr double most_reported_tokens = 1e9;  // which a server may say of one request
inline constexpr double most_of_few = 1e6;         // and of whatever else there are few
inline constexpr double most_text_bytes = 2147483647;  // of one answer
inline constexpr double most_rate = 1e12;      // of requests, per second
inline constexpr double most_statistic = 1e100;  // a server may say what it likes of itself

/// Whether files have a field: each one since the first version, which readers of records insist
/// on, or some, as older versions did not write it, or not all have what it says.
enum class presence : unsigned char { always, at_times };

/// A field's name, and in a line what it says; of an object what others of its kind are called.
struct field {
    const char* name = "";
    const char* about = "";
    presence is_there = presence::always;
    const char* kind = "";
};
inline constexpr presence at_times = presence::at_times;

/// Numbers that are allowed, and what null and a field that is not there stand for.
struct number_range {
    double least = 0, most = most_count, otherwise = not_a_number;
    bool with_infinity = false;  // which is written as the largest number that there is
};
inline constexpr number_range seconds_range{0, longest_time_s};
inline constexpr number_range rate_range{0, most_rate, 0};
inline constexpr number_range any_number{-most_statistic, most_statistic};
/// A field that is not there leaves what the struct begins with; null is `null`.
struct whole_range {
    static constexpr long long no_null = LLONG_MIN;
    double least = 0, most = most_count;
    long long null = no_null;
};
/// Lists of numbers have a line for each, or one for all where they are for programs.
enum class layout : unsigned char { lines, one_line };

/// Numbers in groups, of which the first ones are times.
struct time_groups {
    std::size_t size = 1, times = 1;
};

/// One who goes through the fields of a struct. Those who `assign` leave other values behind; what
/// others go through is as it was, and may be constant. Each function without a body of its own
/// here is for a kind of field that most have no business with.
class field_visitor {
public:
    explicit field_visitor(bool assigns) : assigns_(assigns) {}
    field_visitor(const field_visitor&) = delete;
    field_visitor& operator=(const field_visitor&) = delete;
    virtual ~field_visitor() = default;
    bool assigns() const { return assigns_; }

    template <class Text>
    void text(const field& f, Text& t) {
        std::string to;
        if (visit_text(f, {t.data(), t.size()}, to)) t = to;
    }
    /// One that is there where it says something.
    template <class Text>
    void text_if_any(const char* name, const char* about, Text& t) {
        if (has(name, !t.empty())) text({name, about, presence::at_times}, t);
    }
    /// Somebody else's, read as what is printable of it; null, where that may be, is "".
    template <class Text>
    void quoted(const field& f, Text& t, bool may_be_null) {
        std::string to;
        if (visit_quoted(f, {t.data(), t.size()}, to, may_be_null)) t = to;
    }
    template <integer Whole>
    void whole(const field& f, Whole& n, const whole_range& of = {}) {
        auto to = static_cast<long long>(n);
        constexpr auto most = static_cast<double>(std::numeric_limits<Whole>::max());
        visit_whole(f, to, {of.least, std::min(of.most, most), of.null});
        if (assigns_) n = static_cast<Whole>(to);
    }
    /// `to_string` names it.
    template <class Enum>
    void choice(const field& f, Enum& e, Enum last) {
        auto to = static_cast<int>(e);
        visit_choice(f, to, static_cast<int>(last) + 1,
                     [](int k) { return to_string(static_cast<Enum>(k)); });
        if (assigns_) e = static_cast<Enum>(to);
    }
    /// `Name` does.
    template <auto Name, class Enum>
    void choice_of(const field& f, Enum& e, Enum last) {
        auto to = static_cast<int>(e);
        visit_choice(f, to, static_cast<int>(last) + 1,
                     [](int k) { return Name(static_cast<Enum>(k)); });
        if (assigns_) e = static_cast<Enum>(to);
    }
    virtual void flag(const field&, bool&, bool /* where it is not there */ = false) {}
    virtual void number(const field&, double&, const number_range& = {}) {}
    void seconds(const field& f, double& s) { number(f, s, seconds_range); }
    /// One up to 1e18, which a double may not hold; null, where that may be, is 0.
    virtual void exact(const field&, long long&, bool /* may be null */) {}
    /// Nanoseconds of the clock, 0: there is none.
    virtual void time(const field& f, long long& ns, bool may_be_null = true) {
        exact(f, ns, may_be_null);
    }
    /// The same, as files have it after another time.
    virtual void time_after(const field&, long long&, long long /* from_ns */) {}
    virtual void times_after(const field&, std::vector<long long>&, long long /* from_ns */,
                             const time_groups& = {}) {}
    virtual void numbers(const field&, std::vector<double>&, const number_range& = {},
                         layout = layout::lines) {}
    virtual void texts(const field&, std::vector<std::string>&) {}
    /// From one number to another.
    void interval(const field& f, double low, double high) {
        std::vector<double> both = {low, high};
        numbers(f, both, any_number);
    }
    /// Where fields must go together: else one of them is refused.
    virtual void must(bool /* be so */, const char* /* name */, const char* /* allowed */) {}
    /// Whether a field is there: `there`, of a file what it says.
    virtual bool has(const char*, bool there) { return there; }
    /// An object, up to end(), unless it says that there is none.
    virtual bool begin(const field&, bool there = true) { return there; }
    virtual void end() {}
    template <class T, class... More>
    void object(const field& f, bool there, T& of, More&... more) {
        if (!begin(f, there)) return;
        fields_of(*this, of, more...);
        end();
    }
    /// The names of an object's fields that are no fixed ones: `have`, of a file what it has.
    virtual std::vector<std::string> names(const std::vector<std::string>& have) { return have; }
    /// A list of objects.
    template <class List, class Each>
    void list(const field& f, List& all, Each&& each) {
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
    virtual bool visit_quoted(const field& f, std::string_view t, std::string& to, bool) {
        return visit_text(f, t, to);
    }
    virtual void visit_whole(const field&, long long&, const whole_range&) {}
    virtual void visit_choice(const field&, int&, int /* how many */, const char* (*)(int)) {}
    virtual std::size_t begin_list(const field&, std::size_t n) { return n; }
    virtual void begin_element(std::size_t) {}
    virtual void end_list() {}

private:
    const bool assigns_;
};

/// Moves all times by so much: from their clock to another one.
class clock_mover : public field_visitor {
public:
    explicit clock_mover(long long by_ns) : field_visitor(true), by_ns_(by_ns) {}
    void time(const field&, long long& ns, bool) override {
        if (ns != 0) ns += by_ns_;
    }
    void time_after(const field& f, long long& ns, long long) override { time(f, ns, true); }
    void times_after(const field&, std::vector<long long>& ns, long long,
                     const time_groups& g) override {
        for (std::size_t i = 0; i < ns.size(); ++i)
            if (i % g.size < g.times) ns[i] += by_ns_;
    }

private:
    const long long by_ns_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
