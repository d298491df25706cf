// the contents of a page of metrics
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // equal_range
#include <cstddef>  // size_t
#include <memory>  // shared_ptr
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct page_label {
    std::string_view name{};
    std::string_view value{};
};
using page_labels = vector<page_label>;

struct page_sample {
    std::string_view name{};
    double value = 0;
    std::size_t first_label = 0, label_count = 0;
};
/// Its views are into a text that all copies share.
struct metrics_page {
    vector<std::string_view> names{};  // of comments and samples, in the order of the page
    vector<page_sample> samples{};     // by name, then as on the page
    page_labels labels{};                   // of all samples
    std::shared_ptr<const std::string> text{};
};
// ---- looking things up

inline std::span<const page_label> labels_of(const metrics_page& page, const page_sample& s) {
    return std::span(page.labels).subspan(s.first_label, s.label_count);
}
/// "" if the sample lacks the label, as in Prometheus.
inline std::string_view label_of(const metrics_page& page, const page_sample& s,
                                 std::string_view name) {
    for (const page_label& l : labels_of(page, s))
        if (l.name == name) return l.value;
    return {};
}
inline std::span<const page_sample> samples_named(const metrics_page& page, std::string_view name) {
    struct by_name {
        bool operator()(const page_sample& s, std::string_view n) const { return s.name < n; }
        bool operator()(std::string_view n, const page_sample& s) const { return n < s.name; }
    };
    const auto found = std::equal_range(page.samples.begin(), page.samples.end(), name, by_name());
    return {found.first, found.second};
}
/// The samples of this name with at least these labels.
inline vector<const page_sample*> samples_of(const metrics_page& page, std::string_view name,
                                             const page_labels& wanted = {}) {
    vector<const page_sample*> found;
    for (const page_sample& s : samples_named(page, name))
        if (all_of(wanted,
                   [&](const page_label& l) { return label_of(page, s, l.name) == l.value; }))
            found.push_back(&s);
    return found;
}
/// Sums all of them. Servers with several processes may repeat a series.
inline std::optional<double> sum_of(const metrics_page& page, std::string_view name,
                                    const page_labels& wanted = {}) {
    const auto samples = samples_of(page, name, wanted);
    if (samples.empty()) return std::nullopt;
    double sum = 0;
    for (const page_sample* s : samples) sum += s->value;
    return sum;
}

/// The delta of sum over the delta of count is a mean.
struct histogram_totals {
    double sum = 0, count = 0;
};
inline std::optional<histogram_totals> totals_of(const metrics_page& page, std::string_view name,
                                                 const page_labels& wanted = {}) {
    const auto sum = sum_of(page, std::string(name) + "_sum", wanted);
    const auto count = sum_of(page, std::string(name) + "_count", wanted);
    if (!sum || !count) return std::nullopt;
    return histogram_totals{*sum, *count};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
