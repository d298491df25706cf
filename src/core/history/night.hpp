// what a history says of one statistic of one gate
#pragma once

#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The last valid run of a UTC date.
struct history_night {
    std::string id{};
    std::string at{};      // UTC, "2026-11-23T02:15:04Z"
    std::string commit{};  // "" where nobody knows it
    std::vector<double> repeats{};  // the statistic in each, in SI units, > 0
    /// Facts that do not make another cohort: name and value, "server" "vllm 0.33.0".
    std::vector<std::pair<std::string, std::string>> watched{};
    bool is_left_out = false;  // by a mark
};

enum class history_mark_kind { accept, step, no_step, leave_out };

struct history_mark {
    history_mark_kind kind = history_mark_kind::accept;
    std::string at{};  // the date, or the night, that it is about
    std::string why{}, by{};
};

/// One statistic of a gate in one cohort, oldest night first, and the marks that are about it.
struct history_series {
    std::string statistic{};  // "mean(tpot)"
    std::vector<history_night> nights{};
    std::vector<history_mark> marks{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
