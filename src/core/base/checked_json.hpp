// checked numbers of files
// A file may contain anything. Its numbers pass through here before they are cast, added or used as
// sizes. An error names the file, the field, the value and what is allowed.
#pragma once

#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <cmath>  // floor
#include <cstddef>  // size_t
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The name of a list element in errors: "ttfts[3]".
inline std::string element_name(const std::string& list, std::size_t i) {
    return list + printed("[%zu]", i);
}
/// A value in an error.
inline std::string shown_value(const picojson::value& v) {
    if (v.is<picojson::array>()) return "a list";
    if (v.is<picojson::object>()) return "an object";
    return v.is<double>() ? json_number(v.get<double>()) : printable(v.serialize(), 60);
}
/// Throws an error with the file, the value and what is allowed.
[[noreturn]] inline void refuse_value(const std::string& file, const std::string& name,
                                      const picojson::value& v, const std::string& allowed) {
    refuse({file, file.empty() ? "" : ": ", name, " is ", shown_value(v), ", ", allowed});
}
/// `name` is called only for errors, as there are millions of numbers.
template <class Name>
double number_from(const std::string& file, const picojson::value& v, double least, double most,
                   const char* what, Name&& name) {
    const double d = number_in(v);
    if (!(d >= least && d <= most))
        refuse_value(file, name(), v,
                     printed("%s from %.9g to %.9g is allowed", what, least, most));
    return d;
}
/// An integer, of a type that holds both bounds.
template <class Whole, class Name>
Whole whole_from(const std::string& file, const picojson::value& v, double least, double most,
                 const char* what, Name&& name) {
    const double d = number_from(file, v, least, most, what, name);
    if (d != std::floor(d)) refuse_value(file, name(), v, "a whole number is allowed");
    return static_cast<Whole>(d);
}
template <class Name>
double seconds_from(const std::string& file, const picojson::value& v, Name&& name) {
    return number_from(file, v, 0, longest_time_s, "a time in seconds", name);
}
template <class Name>
int tokens_from(const std::string& file, const picojson::value& v, Name&& name) {
    return whole_from<int>(file, v, 0, most_tokens, "a whole number of tokens", name);
}

/// An object of a file with its name in errors. Members that are missing (older versions) or null
/// (unknown) are read as `otherwise`.
class checked_object {
public:
    checked_object(const picojson::value& v, std::string file, std::string path)
        : v_(v), file_(std::move(file)), path_(std::move(path)) {}

    /// A member that is neither missing nor null, else nullptr.
    const picojson::value* present(const char* name) const {
        const picojson::value* m = member(v_, name);
        return m && !m->is<picojson::null>() ? m : nullptr;
    }
    bool has(const char* name) const { return present(name) != nullptr; }
    double number(const char* name, double least, double most,
                  double otherwise = not_a_number) const {
        const picojson::value* m = present(name);
        return m ? number_of(*m, name, least, most) : otherwise;
    }
    double number_of(const picojson::value& m, const char* name, double least, double most) const {
        return number_from(file_, m, least, most, "a number", [&] { return name_of(name); });
    }
    double seconds(const char* name, double otherwise = not_a_number) const {
        return number(name, 0, longest_time_s, otherwise);
    }
    template <class Whole>
    Whole whole(const char* name, double least, double most, Whole otherwise) const {
        const picojson::value* m = present(name);
        return m ? whole_of<Whole>(*m, name, least, most) : otherwise;
    }
    template <class Whole>
    Whole whole_of(const picojson::value& m, const char* name, double least, double most) const {
        return whole_from<Whole>(file_, m, least, most, "a whole number",
                                 [&] { return name_of(name); });
    }
    /// An integer from 0 that a double may not hold, by digits(), usually whole_numbers'.
    template <class Digits>
    long long exact_of(const picojson::value& m, const char* name, double most,
                       Digits&& digits) const {
        const double about = whole_of<double>(m, name, 0, most);
        if (about <= max_count) return static_cast<long long>(about);
        const std::optional<long long> exactly = digits();
        if (!exactly || static_cast<double>(*exactly) != about)
            refuse(name, "a whole number in plain digits is allowed");
        return *exactly;
    }
    /// Calls `each(index, value)` for each element of a list.
    template <class Each>
    void numbers(const char* name, double least, double most, Each&& each) const {
        const picojson::array& all = array_member(v_, name);
        for (std::size_t i = 0; i < all.size(); ++i)
            each(i, all[i].is<picojson::null>()
                        ? not_a_number
                        : number_from(file_, all[i], least, most, "a number",
                                      [&] { return element_name(name_of(name), i); }));
    }
    std::string text(const char* name) const { return string_member(v_, name); }
    bool is_true(const char* name) const { return true_member(v_, name); }
    const picojson::value& value() const { return v_; }
    /// A member that is an object; an empty one if missing.
    checked_object at(const char* name) const {
        static const picojson::value none;
        const picojson::value* m = member(v_, name);
        return {m ? *m : none, file_, name_of(name)};
    }
    std::vector<checked_object> each(const char* name) const {
        std::vector<checked_object> all;
        for (const picojson::value& v : array_member(v_, name))
            all.emplace_back(v, file_, element_name(name_of(name), all.size()));
        return all;
    }
    [[noreturn]] void refuse(const char* name, const std::string& allowed) const {
        static const picojson::value none;
        const picojson::value* m = member(v_, name);
        refuse_value(file_, name_of(name), m ? *m : none, allowed);
    }
    std::string name_of(const char* name) const {
        return path_.empty() ? name : path_ + "." + name;
    }

private:
    const picojson::value& v_;
    std::string file_, path_;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
