// values of options, parsed from text
// Each refusal is one sentence: the option, its value, and what is allowed. Only set_variable()
// has a side effect.
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/metric/table.hpp"
#include "extensions/capacity/api.hpp"

#include <cmath>  // isfinite
#include <cstddef>
#include <cstdlib>  // setenv
#include <filesystem>  // equivalent
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>  // error_code

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

/// The text of an option, and its name for refusals.
struct given {
    const char* option;
    std::string text;
    [[noreturn]] void refuse_as(std::string_view allowed) const {
        refuse({option, " is \"", printable(text, 80), "\": it must be ", allowed});
    }
};

/// The options and files of a verb by name, with their texts.
struct given_options {
    std::map<std::string, vector<std::string>> texts{};
    std::set<std::string> off{};  // flags that a table of gates.toml sets to false
    const vector<std::string>& all(const char* name) const {
        static const vector<std::string> none;
        const auto at = texts.find(name);
        return at == texts.end() ? none : at->second;
    }
    bool has(const char* name) const { return !all(name).empty(); }
    /// "" if it is not given.
    std::string operator[](const char* name) const { return has(name) ? all(name)[0] : ""; }
    given one(const char* name) const { return {name, (*this)[name]}; }
};

/// Returns the files of a verb, or refuses their lack.
inline const vector<std::string>& files_in(const given_options& o, const char* name,
                                           const char* none) {
    if (!o.has(name)) refuse({none});
    return o.all(name);
}

/// "gamma(8 rps, 0.5)": the name, and the arguments between commas that are not in inner brackets.
/// A text without brackets is only a name.
struct call_text {
    std::string name{};
    vector<std::string> arguments{};
};
inline std::optional<call_text> call_in(std::string_view s) {
    s = trimmed(s);
    const std::size_t open = s.find('(');
    call_text c{std::string(trimmed(s.substr(0, open)))};
    if (open == std::string_view::npos) return c;
    if (s.back() != ')') return {};
    const std::string_view inside = trimmed(s.substr(open + 1, s.size() - open - 2));
    int depth = 0;
    std::size_t from = 0;
    for (std::size_t i = 0; i < inside.size(); ++i) {
        if (inside[i] == '(') ++depth;
        if (inside[i] == ')' && --depth < 0) return {};
        if (inside[i] != ',' || depth > 0) continue;
        c.arguments.emplace_back(trimmed(inside.substr(from, i - from)));
        from = i + 1;
    }
    if (depth != 0) return {};
    if (!inside.empty()) c.arguments.emplace_back(trimmed(inside.substr(from)));
    return c;
}

/// Returns a number with a unit in the base unit, 0.3 for "300 ms".
inline std::optional<double> amount_in(std::string_view s, metric_unit of) {
    s = trimmed(s);
    const auto v = leading_number<double>(s);
    s = trimmed(s);
    if (s.starts_with('_')) s.remove_prefix(1);
    for (const written_unit& u : written_units)
        if (v && u.of == of && s == u.name) return *v / u.si;
    return {};
}
/// The same, where the unit may be left out.
inline std::optional<double> amount_or_number_in(std::string_view s, metric_unit of) {
    const auto v = parsed_number<double>(trimmed(s));
    return v ? v : amount_in(s, of);
}
inline std::optional<double> time_in(std::string_view s) {
    if (trimmed(s) == "0") return 0;
    return amount_in(s, metric_unit::time);
}
inline std::optional<double> rate_in(std::string_view s) {
    const auto v = amount_or_number_in(s, metric_unit::requests_per_s);
    return v && *v > 0 ? v : std::nullopt;
}

inline time_span time_of(const given& g) {
    const auto v = time_in(g.text);
    if (!v || *v < 0) g.refuse_as("a time with its unit, such as 500ms, 30s or 2min");
    return time_span::from_seconds(*v);
}
inline fraction fraction_of(const given& g) {
    const auto v = amount_in(g.text, metric_unit::fraction);
    if (!v || !(*v >= 0 && *v <= 1)) g.refuse_as("a share from 0% to 100%, such as 60%");
    return fraction(*v);
}
inline long long whole_of(const given& g, long long least, long long most) {
    const auto v = parsed_number<long long>(std::string(trimmed(g.text)));
    if (!v || *v < least || *v > most)
        g.refuse_as(printed("a whole number from %lld to %lld", least, most));
    return *v;
}
inline double number_of(const given& g) {
    const auto v = parsed_number<double>(std::string(trimmed(g.text)));
    if (!v || !std::isfinite(*v)) g.refuse_as("a number, such as 0.7");
    return *v;
}

/// 512, "fixed(512)", "uniform(100, 900)", "normal(512, 64)", "lognormal(512, 0.6)", and
/// "empirical(lengths.txt)".
inline length_distribution lengths_of(const given& g) {
    static constexpr const char* allowed =
        "a number of tokens, uniform(LOW, HIGH), normal(MEAN, SD), lognormal(MEDIAN, SIGMA) or "
        "empirical(FILE), such as 512 or lognormal(512, 0.6)";
    if (const auto n = parsed_number<long long>(std::string(trimmed(g.text))); n && *n >= 0)
        return fixed(*n);
    const auto c = call_in(g.text);
    if (!c) g.refuse_as(allowed);
    if (c->name == "empirical" && c->arguments.size() == 1) return empirical(c->arguments[0]);
    vector<double> v;
    for (const std::string& a : c->arguments) {
        const auto x = parsed_number<double>(a);
        if (!x || !std::isfinite(*x)) g.refuse_as(allowed);
        v.push_back(*x);
    }
    if (c->name == "fixed" && v.size() == 1) return fixed(static_cast<long long>(v[0]));
    if (c->name == "uniform" && v.size() == 2) return uniform(v[0], v[1]);
    if (c->name == "normal" && v.size() == 2) return normal(v[0], v[1]);
    if (c->name == "lognormal" && v.size() == 2) return lognormal(v[0], v[1]);
    g.refuse_as(allowed);
}

/// "2s", "uniform(1s, 5s)", "lognormal(2s, 1)".
inline time_distribution pause_of(const given& g) {
    static constexpr const char* allowed =
        "a time, uniform(LOW, HIGH) or lognormal(MEDIAN, SIGMA), such as 2s or uniform(1s, 5s)";
    if (const auto v = time_in(g.text)) return time_span::from_seconds(*v);
    const auto c = call_in(g.text);
    if (!c || c->arguments.size() != 2) g.refuse_as(allowed);
    const auto a = time_in(c->arguments[0]);
    if (!a) g.refuse_as(allowed);
    if (c->name == "uniform")
        if (const auto b = time_in(c->arguments[1]))
            return uniform(time_span::from_seconds(*a), time_span::from_seconds(*b));
    if (c->name == "lognormal")
        if (const auto sigma = parsed_number<double>(c->arguments[1]))
            return lognormal(time_span::from_seconds(*a), *sigma);
    g.refuse_as(allowed);
}

/// 20, "5s", "until_stable(60s)".
inline warmup_amount warmup_of(const given& g) {
    if (const auto n = parsed_number<long long>(std::string(trimmed(g.text))); n && *n >= 0)
        return *n;
    if (const auto s = time_in(g.text)) return time_span::from_seconds(*s);
    if (const auto c = call_in(g.text); c && c->name == "until_stable" && c->arguments.size() == 1)
        if (const auto s = time_in(c->arguments[0]))
            return until_stable(time_span::from_seconds(*s));
    g.refuse_as(
        "a number of requests, a time or until_stable(TIME), such as 20, 5s or "
        "until_stable(60s)");
}

/// "NAME=value" or "Name: value".
inline name_value pair_of(const given& g, char between, const char* allowed) {
    const std::size_t at = g.text.find(between);
    if (at == std::string::npos || trimmed(g.text.substr(0, at)).empty())
        refuse({g.option, " has no ", between == ':' ? "colon" : "=", " behind a name: it must be ",
                allowed, "; it is not repeated here, for it may hold a key"});
    return {std::string(trimmed(g.text.substr(0, at))),
            std::string(trimmed(g.text.substr(at + 1)))};
}

/// 8 or "8rps"; "up_to(64rps)" asks for a search.
struct load_text {
    double value = 0;
    bool is_searched = false;
};
inline std::optional<load_text> load_in(std::string_view s,
                                        std::optional<double> (*value_in)(std::string_view)) {
    const auto c = call_in(s);
    const bool is_searched = c && c->name == "up_to" && c->arguments.size() == 1;
    const auto v = value_in(is_searched ? std::string_view(c->arguments[0]) : s);
    return v ? std::optional(load_text{*v, is_searched}) : std::nullopt;
}
inline std::optional<double> users_in(std::string_view s) {
    const auto v = amount_or_number_in(s, metric_unit::users);
    const bool is_whole =
        v && *v >= 1 && *v <= 1e6 && *v == static_cast<double>(static_cast<long long>(*v));
    return is_whole ? v : std::nullopt;
}
inline arrival_pattern users_of(const given& g) {
    const auto n = load_in(g.text, users_in);
    if (!n)
        g.refuse_as(
            "a whole number from 1 to 1000000, or up_to(N) for the most that hold the "
            "objectives, such as 8 or up_to(256)");
    const auto users = static_cast<long long>(n->value);
    return n->is_searched ? closed_loop(up_to(users)) : closed_loop(users);
}
inline arrival_pattern rate_of(const given& g) {
    const auto r = load_in(g.text, rate_in);
    if (!r)
        g.refuse_as(
            "requests a second above 0, or up_to(R) for the most that holds the "
            "objectives, such as 8, 0.5rps or up_to(64)");
    return r->is_searched ? poisson(up_to(request_rate(r->value)))
                          : poisson(request_rate(r->value));
}

/// Refuses a file to write that is one of those that are read, by any path to it.
inline void refuse_if_read(const std::string& out, const vector<std::string>& read) {
    std::error_code none;
    for (const std::string& file : read)
        if (std::filesystem::equivalent(file, out, none))
            refuse({"--out is ", printable(out, 200), ", which is read: name another file"});
}

/// Sets a variable for this program, and for the servers that it starts.
inline void set_variable(const char* name, const std::string& value) {
    if (!value.empty()) ::setenv(name, value.c_str(), 1);
}
/// Sets the variables of gates that options name.
inline void set_variables(const given_options& o) {
    const std::string how = o["--inconclusive"];
    if (!how.empty() && how != "warn" && how != "fail" && how != "skip")
        o.one("--inconclusive").refuse_as("warn, fail or skip");
    set_variable("LLMBENCH_INCONCLUSIVE", how);
    set_variable("LLMBENCH_REPORT_DIR", o["--report"]);
}

}  // namespace llmbench_program
