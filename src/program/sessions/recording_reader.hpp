// what the readers of recordings share
#pragma once

#include "core/base/json.hpp"
#include "core/files/dialogues.hpp"
#include "core/traffic/recorded.hpp"
#include "extensions/sessions/core/session_graph.hpp"

#include <algorithm>  // max
#include <initializer_list>  // names of members
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A recording, and the numbers of what was not read, or changed.
struct converted_corpus : session_corpus {
    row_fields told{};
};

class recording_reader : public corpus_reader {
public:
    converted_corpus finished(const std::string& name) {
        if (const std::string told = told_.text(); corpus_.sessions.empty() && !told.empty())
            refuse({name, ": it holds no sessions; ", told});
        return {corpus_reader::finished(name), told_};
    }

protected:
    void tell(const std::string& what) { told_.leave_out(what, ++all_told_); }
    /// Tells of members that are not read.
    void tell_others(const checked_object& o, std::initializer_list<std::string_view> known) {
        each_other_member(o.value(), known, [&](const std::string& name, const auto&) {
            tell(name);
        });
    }
    /// A step has an answer of at least one token.
    int answer_tokens(const checked_object& o, const char* name) {
        const int n = tokens(o, name, 0);
        if (n == 0) tell("empty answers, which become one token");
        return std::max(1, n);
    }

private:
    row_fields told_{};
    long long all_told_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
