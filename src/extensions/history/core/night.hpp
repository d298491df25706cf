// one statistic of one gate in a history
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
    std::string commit{};  // "" if unknown
    std::vector<double> repeats{};  // of the statistic, SI units, > 0
    /// Properties that do not change the series: name and value, "server" "vllm 0.33.0".
    std::vector<std::pair<std::string, std::string>> watched{};
    bool is_left_out = false;  // by an annotation
};

enum class annotation_kind { accept, step, no_step, leave_out };

struct annotation {
    annotation_kind kind = annotation_kind::accept;
    std::string at{};  // its date, or its run's
    std::string why{}, by{};
};

/// One statistic of a gate in one series, oldest run first, with its annotations.
struct history_series {
    std::string statistic{};  // "mean(tpot)"
    double offset = 0;        // of its metric: levels are logarithms of value + offset
    std::vector<history_night> nights{};
    std::vector<annotation> marks{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
