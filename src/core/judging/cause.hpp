// causes, and their numbers by name
#pragma once

#include "core/base/vector.hpp"
#include "core/base/statistics.hpp"
#include "core/metric/causes.hpp"

#include <cstddef>  // size_t
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Who is at fault.
enum class whose : unsigned char { nobody, client, plan, server, baseline_server, baseline };

void it_has_numbers();  // not constexpr, so that its call is refused
void it_has_no_such_number();

/// A cause without numbers: one with them does not compile.
struct bare_cause {
    because what;
    consteval bare_cause(because b) : what(b) {
        if (row_of(b).count() > 0) it_has_numbers();
    }
};
struct cause {
    because what = because::nothing;
    vector<double> numbers{};
    whose of = whose::nobody;
    std::string text{};   // from outside: an error, a name
    cause() = default;
    [[gnu::noinline]] cause(bare_cause b, whose fault = whose::nobody, std::string_view words = {})
        : what(b.what), of(fault), text(words) {}
    [[gnu::noinline]] cause(because b, std::size_t n, whose fault, std::string_view words)
        : what(b), numbers(n), of(fault), text(words) {}
    explicit operator bool() const { return what != because::nothing; }
    /// NaN if the cause has none of the name.
    double operator[](std::string_view name) const {
        const std::size_t place = row_of(what).place_of(name);
        return place < numbers.size() ? numbers[place] : not_a_number;
    }
    void set(std::string_view name, double value) {
        numbers[row_of(what).place_of(name)] = value;
    }
};
/// A number of a cause. A name that the cause does not have does not compile.
template <because what>
struct number_name {
    std::size_t place;
    consteval number_name(const char* name) : place(row_of(what).place_of(name)) {
        if (place == row_of(what).count()) it_has_no_such_number();
    }
};
template <because what>
struct cause_number {
    std::size_t place;
    double value;
    template <class N>
    cause_number(number_name<what> name, N v) : place(name.place), value(static_cast<double>(v)) {}
};
/// Returns a cause with all its numbers. Fewer do not compile.
template <because what, std::size_t n>
cause cause_with(const cause_number<what> (&numbers)[n], whose of = whose::nobody,
                 std::string_view text = {}) {
    static_assert(n == row_of(what).count());  // else one is missing
    cause c(what, n, of, text);
    for (const cause_number<what>& x : numbers) c.numbers[x.place] = x.value;
    return c;
}
inline cause with_text(bare_cause what, std::string_view text) {
    if (text.empty()) return {};
    return {what, whose::nobody, text};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
