// fields of a data set's rows that are sent or left out
#pragma once

#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <map>
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Counts the rows that have a field, for fields that are sent and for fields that are left out.
class row_fields {
public:
    void send(const std::string& name, long long row) { count(sent_, name, row); }
    void leave_out(const std::string& name, long long row) { count(left_out_, name, row); }
    /// "sent as rows have them: tools (60 rows); left out: model (60 rows)".
    std::string text() const {
        const std::string sent = told("sent as rows have them: ", sent_);
        const std::string left_out = told("left out: ", left_out_);
        return sent + (sent.empty() || left_out.empty() ? "" : "; ") + left_out;
    }

private:
    struct rows {
        long long count = 0, last = -1;
    };
    using by_name = std::map<std::string, rows>;
    static constexpr std::size_t max_names = 1000, most_told = 8;

    static void count(by_name& all, const std::string& name, long long row) {
        if (all.size() == max_names && all.find(name) == all.end()) return;
        rows& of = all[name];
        of.count += of.last != row;
        of.last = row;
    }
    static std::string told(const char* what, const by_name& all) {
        std::string t;
        std::size_t n = 0;
        for (const auto& [name, of] : all)
            if (n++ < most_told)
                t += (t.empty() ? what : ", ") + printable(name, 60) +
                     printed(" (%lld %s)", of.count, of.count == 1 ? "row" : "rows");
        return n > most_told ? t + printed(" and %zu more", n - most_told) : t;
    }

    by_name sent_{}, left_out_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
