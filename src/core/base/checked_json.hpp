// numbers of files, which are what they may be or are refused
// Whoever wrote a file may have written anything. Its numbers are cast, added up and given room for
// only after they went through here; where one is none that is allowed, the sentence names the
// file, the field, the value and what is.
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

/// Where a number stands, told where it is none that is allowed: "ttfts[3]".
inline std::string element_name(const std::string& list, std::size_t i) {
    return list + printed("[%zu]", i);
}
/// A value as a sentence shows it.
inline std::string shown_value(const picojson::value& v) {
    if (v.is<picojson::array>()) return "a list";
    if (v.is<picojson::object>()) return "an object";
    return v.is<double>() ? json_number(v.get<double>()) : printable(v.serialize(), 60);
}
/// Says which value of which file is none that is allowed.
[[noreturn]] inline void refuse_value(const std::string& file, const std::string& name,
                                      const picojson::value& v, const std::string& allowed) {
    refuse({file, file.empty() ? "" : ": ", name, " is ", shown_value(v), ", ", allowed});
}
/// `name` is asked only where something is wrong: there are millions of these.
template <class Name>
double number_from(const std::string& file, const picojson::value& v, double least, double most,
                   const char* what, Name&& name) {
    const double d = number_in(v);
    if (!(d >= least && d <= most))
        refuse_value(file, name(), v,
                     printed("%s from %.9g to %.9g is allowed", what, least, most));
    return d;
}
/// A whole number, of a type that holds both ends.
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

/// An object of a file, and how a sentence names it. What an older version did not write is
/// missing, and what could not be told is null: both are read as `otherwise`.
class checked_object {
public:
    checked_object(const picojson::value& v, std::string file, std::string path)
        : v_(v), file_(std::move(file)), path_(std::move(path)) {}

    /// A member that is there and not null, or nullptr.
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
    /// Of a member at hand.
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
    /// One that a double may not hold, from 0, by its digits(), which are whole_numbers' as a rule.
    template <class Digits>
    long long exact_of(const picojson::value& m, const char* name, double most,
                       Digits&& digits) const {
        const double about = whole_of<double>(m, name, 0, most);
        if (about <= most_count) return static_cast<long long>(about);
        const std::optional<long long> exactly = digits();
        if (!exactly || static_cast<double>(*exactly) != about)
            refuse(name, "a whole number in plain digits is allowed");
        return *exactly;
    }
    /// Each element of a list by `each(place, value)`.
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
    /// A member that is an object; one without members where there is none.
    checked_object at(const char* name) const {
        static const picojson::value none;
        const picojson::value* m = member(v_, name);
        return {m ? *m : none, file_, name_of(name)};
    }
    /// The elements of a list.
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
