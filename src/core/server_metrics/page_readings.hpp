// readings of a server's pages
#pragma once

#include "core/base/text.hpp"
#include "core/wire/metrics_page.hpp"
#include "core/wire/series.hpp"
#include "core/server_metrics/server_names.hpp"

#include <algorithm>  // max, min, sort
#include <array>
#include <cmath>  // isfinite, isnan
#include <cstddef>  // size_t
#include <iterator>  // size
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t quantity_count = static_cast<std::size_t>(server_quantity::clock) + 1;
static_assert(std::size(quantity_names) == quantity_count);
using quantity_values = std::array<double, quantity_count>;
inline quantity_values no_values() {
    quantity_values v;
    v.fill(not_a_number);
    return v;
}

/// What all pages of a server said at one time, in SI; NaN where they did not.
struct page_reading {
    long long at_ns = 0;
    double began = not_a_number;  // when its counters did, seconds since 1970
    quantity_values values = no_values();  // of a histogram, the sum of what was observed
    quantity_values counts = no_values();  // of a histogram, how often something was
    std::vector<double> named{};           // of the series that objectives name
    std::array<std::size_t, quantity_count> series{};  // that a gauge is of
    double value(server_quantity q) const { return values[static_cast<std::size_t>(q)]; }
    double count(server_quantity q) const { return counts[static_cast<std::size_t>(q)]; }
};

inline constexpr bool is_of_accelerator(server_quantity q) {
    return q >= server_quantity::energy;
}

// ---- series that objectives name

/// A name with as many labels as tell one series from the others: x{a="b"}.
struct series_selector {
    metrics_page page{};  // of this one series, whose views the rest are
    std::string_view name{};
    page_labels labels{};
};
/// Throws std::invalid_argument where the text is none.
inline series_selector selector_of(const std::string& text) {
    parsed_page read = read_metrics_page(text + " 0\n", "text/plain; version=0.0.4");
    const bool is_one = read.problem.empty() && read.page.samples.size() == 1 &&
                        !read.page.samples[0].at_s && text.find('\n') == std::string::npos;
    if (!is_one)
        refuse({"server_metric(\"", printable(text, 200),
                "\") names no series: it is a name, or a name with labels, x{a=\"b\"}"});
    series_selector s;
    s.page = std::move(read.page);
    const page_sample& sample = s.page.samples.front();
    s.name = sample.name;
    for (const page_label& l : labels_of(s.page, sample)) s.labels.push_back(l);
    return s;
}
/// "x{a="b",c="d"}".
inline std::string series_text(const metrics_page& page, const page_sample& s) {
    std::string labels;
    for (const page_label& l : labels_of(page, s))
        labels += (labels.empty() ? "" : ",") + std::string(l.name) + "=\"" +
                  std::string(l.value) + "\"";
    return printable(std::string(s.name) + (labels.empty() ? "" : "{" + labels + "}"), 200);
}
/// Up to eight of the names on a page, those first that share the most words with a wanted one.
inline std::string names_like(const metrics_page& page, std::string_view wanted) {
    const auto words_in = [](std::string_view name) {
        std::set<std::string_view> words;
        for (std::size_t at = 0; at < name.size();) {
            const std::size_t end = std::min(name.find_first_of(":_", at), name.size());
            if (end > at) words.insert(name.substr(at, end - at));
            at = end + 1;
        }
        return words;
    };
    const auto asked = words_in(wanted);
    std::vector<std::pair<std::size_t, std::string_view>> names;  // and the words that they lack
    for (const page_sample& s : page.samples) {
        if (s.name.ends_with("_bucket")) continue;
        if (!names.empty() && names.back().second == s.name) continue;
        std::size_t lacking = asked.size();
        for (const std::string_view w : words_in(s.name)) lacking -= asked.contains(w);
        names.emplace_back(lacking, s.name);
    }
    std::sort(names.begin(), names.end());
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i)
        text += (i > 0 ? ", " : "") + printable(names[i].second, 100);
    if (names.size() > 8) text += printed(" and %zu more", names.size() - 8);
    return text.empty() ? "none at all" : text;
}
/// Why a page has not exactly one such series, "" where it has.
inline std::string why_no_series(const metrics_page& page, const series_selector& wanted) {
    const auto found = samples_of(page, wanted.name, wanted.labels);
    if (found.size() == 1) return {};
    const auto listed = [](const std::vector<const page_sample*>& all, const metrics_page& on) {
        std::string names;
        for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 4); ++i)
            names += (i > 0 ? ", " : "") + series_text(on, *all[i]);
        return names + (all.size() > 4 ? printed(" and %zu more", all.size() - 4) : "");
    };
    if (found.size() > 1)
        return printed("it names %zu series, say which by its labels: ", found.size()) +
               listed(found, page);
    const auto with_other_labels = samples_of(page, wanted.name);
    if (!with_other_labels.empty())
        return "the page has it with other labels: " + listed(with_other_labels, page);
    return "the page has no such name; it has " + names_like(page, wanted.name);
}

// ---- a reading

/// When the process behind a page began to count: since then no counter has fallen. Series that are
/// new begin later, so the earliest one tells.
inline double beginning_of(const metrics_page& page) {
    double latest = -infinity, earliest = infinity;
    for (const page_sample* s : samples_of(page, "process_start_time_seconds"))
        latest = std::max(latest, s->value);
    if (std::isfinite(latest)) return latest;
    for (const page_sample& s : page.created) earliest = std::min(earliest, s.value);
    return earliest < infinity ? earliest : not_a_number;
}

/// What one page says of one quantity, or adds to what others say.
inline void read_quantity(page_reading& into, const metrics_page& page, server_kind kind,
                          server_quantity q) {
    const auto reported = value_on(page, kind, q);
    if (!reported) return;
    // which infinity is a value of
    const bool is_gauge = reported->row->kind == series_kind::gauge;
    if (is_gauge ? std::isnan(reported->value) : !std::isfinite(reported->value)) return;
    into.series[static_cast<std::size_t>(q)] += reported->series;
    double& value = into.values[static_cast<std::size_t>(q)];
    if (!std::isnan(value)) value = joined(gauges_of(q), value, reported->value);
    else value = reported->value;
    if (reported->count) into.counts[static_cast<std::size_t>(q)] = *reported->count;
}
/// The first page is the server's own, where it has one; the others are of exporters. A server
/// tells of accelerators only where no exporter does.
inline page_reading reading_of(const std::vector<metrics_page>& pages, bool first_is_servers,
                               const std::vector<std::string>& selectors) {
    page_reading r;
    for (std::size_t i = pages.size(); i-- > 0;) {
        const auto kind = found_in(pages[i]);
        if (!kind) continue;
        const bool is_server = i == 0 && first_is_servers;
        for (std::size_t k = 0; k < quantity_count; ++k) {
            const auto q = static_cast<server_quantity>(k);
            const bool is_reported = is_server && is_of_accelerator(q) && !std::isnan(r.value(q));
            if ((is_server || is_of_accelerator(q)) && !is_reported)
                read_quantity(r, pages[i], *kind, q);
        }
    }
    if (first_is_servers && !pages.empty()) r.began = beginning_of(pages[0]);
    for (const std::string& text : selectors) {
        const series_selector wanted = selector_of(text);
        double value = not_a_number;
        for (const metrics_page& page : pages)
            if (const auto found = samples_of(page, wanted.name, wanted.labels);
                found.size() == 1 && std::isnan(value))
                value = found.front()->value;
        r.named.push_back(value);
    }
    return r;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
