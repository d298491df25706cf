// readings of a server's pages
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/wire/metrics_page.hpp"
#include "core/wire/series.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/server_metrics/server_names.hpp"

#include <algorithm>  // max, min, sort
#include <array>
#include <cmath>  // isfinite, isnan
#include <cstddef>  // size_t
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

// ---- series that objectives name

/// A name with labels that identify one series: x{a="b"}.
struct series_selector {
    metrics_page page{};  // the series, viewed by the other members
    std::string_view name{};
    page_labels labels{};
};
/// Throws std::invalid_argument if the text is not a selector.
inline series_selector selector_of(const std::string& text) {
    // A text with a value of its own has this one as its time.
    parsed_page read = read_metrics_page(text + " 77\n", "text/plain; version=0.0.4");
    const bool is_one = read.problem.empty() && read.page.samples.size() == 1 &&
                        read.page.samples[0].value == 77 && text.find('\n') == std::string::npos;
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
inline std::string series_text(const metrics_page& page, const page_sample& s) {
    std::string labels;
    for (const page_label& l : labels_of(page, s))
        labels += (labels.empty() ? "" : ",") + std::string(l.name) + "=\"" +
                  std::string(l.value) + "\"";
    return printable(std::string(s.name) + (labels.empty() ? "" : "{" + labels + "}"), 200);
}
/// Up to eight names of a page, most words in common with the wanted one first.
inline std::string names_like(const metrics_page& page, std::string_view wanted) {
    const auto words_in = [](std::string_view name) {
        std::set<std::string_view> words;
        while (!name.empty())
            if (const std::string_view word = taken_part(name, ":_"); !word.empty())
                words.insert(word);
        return words;
    };
    const auto asked = words_in(wanted);
    vector<std::pair<std::size_t, std::string_view>> names;  // with missing words
    for (const page_sample& s : page.samples) {
        if (s.name.ends_with("_bucket") || s.name.ends_with("_created")) continue;
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
/// Why a page does not have exactly one such series, "" if it does.
inline std::string why_no_series(const metrics_page& page, const series_selector& wanted) {
    const auto found = samples_of(page, wanted.name, wanted.labels);
    if (found.size() == 1) return {};
    const auto listed = [](const vector<const page_sample*>& all, const metrics_page& on) {
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

/// Whether a name is that of the start times of a counter or histogram on the page.
inline bool is_start_of_series(const metrics_page& page, std::string_view name) {
    constexpr std::string_view end = "_created";
    if (!name.ends_with(end)) return false;
    const std::string of(name.substr(0, name.size() - end.size()));
    for (const char* counts : {"_total", "_count", ""})
        if (!samples_named(page, of + counts).empty()) return true;
    return false;
}
/// When the process behind a page began to count, since which no counter has fallen. New series
/// begin later, so the earliest counts.
inline double beginning_of(const metrics_page& page) {
    double latest = -infinity, earliest = infinity;
    for (const page_sample* s : samples_of(page, "process_start_time_seconds"))
        latest = std::max(latest, s->value);
    if (std::isfinite(latest)) return latest;
    for (const page_sample& s : page.samples)
        if (is_start_of_series(page, s.name)) earliest = std::min(earliest, s.value);
    return earliest < infinity ? earliest : not_a_number;
}

/// Adds one quantity of one page.
inline void read_quantity(page_reading& into, const metrics_page& page,
                          const server_traits& server, server_quantity q) {
    const auto reported = value_on(page, server, q);
    if (!reported) return;
    // infinity is a valid value
    const bool is_gauge = reported->row->kind == series_kind::gauge;
    if (is_gauge ? std::isnan(reported->value) : !std::isfinite(reported->value)) return;
    into.series[static_cast<std::size_t>(q)] += reported->series;
    double& value = into.values[static_cast<std::size_t>(q)];
    if (!std::isnan(value)) value = joined(gauges_of(q), value, reported->value);
    else value = reported->value;
    if (reported->count) into.counts[static_cast<std::size_t>(q)] = *reported->count;
    into.places[static_cast<std::size_t>(q)] = reported->places;
}
/// The accelerator of a series: its UUID under any exporter's label, else its identity on this
/// page.
inline std::string accelerator_of(const metrics_page& page, const page_sample& s,
                                  std::size_t number_of_page) {
    for (const char* label : {"UUID", "uuid", "gpu_uuid", "GPU_UUID"})
        if (const std::string_view id = label_of(page, s, label); !id.empty())
            return printable(id, 100);
    return series_text(page, s) + (number_of_page > 0 ? printed(" of page %zu", number_of_page + 1)
                                                      : "");
}
/// Adds the accelerators of one page, except those of earlier pages.
inline void read_accelerators(page_reading& into, const metrics_page& page,
                              const server_traits& server, server_quantity q,
                              std::size_t number_of_page, std::set<std::string>& known) {
    for (const server_name& row : server_table::rows) {
        if (!row.is_of(server, q)) continue;
        const auto samples = samples_of(page, row);
        for (const page_sample* s : samples) {
            const std::string name = accelerator_of(page, *s, number_of_page);
            const bool is_gauge = row.kind == series_kind::gauge;
            if (is_gauge ? std::isnan(s->value) : !std::isfinite(s->value)) continue;
            if (!known.insert(name).second) continue;
            const double value = s->value * row.to_si;
            double& all = into.values[static_cast<std::size_t>(q)];
            all = std::isnan(all) ? value : joined(gauges_of(q), all, value);
            into.series[static_cast<std::size_t>(q)] += is_gauge;
            if (q == server_quantity::energy) into.joules[name] = value;
        }
        if (!samples.empty()) return;  // the newest name on the page
    }
}

/// Returns the value of a series that one of the pages has, NaN if none has it.
inline double value_of_series(const vector<metrics_page>& pages, const std::string& selector) {
    const series_selector wanted = selector_of(selector);
    for (const metrics_page& page : pages)
        if (const auto found = samples_of(page, wanted.name, wanted.labels);
            found.size() == 1 && !std::isnan(found.front()->value))
            return found.front()->value;
    return not_a_number;
}
/// The first `own` pages, 0 or 1, are the server's; others are exporters'. A server's accelerators
/// count only without exporters.
inline page_reading reading_of(const vector<metrics_page>& pages,
                               const vector<std::string>& selectors = {}, std::size_t own = 1) {
    page_reading r;
    std::array<std::set<std::string>, quantity_count> known;  // accelerators
    for (std::size_t i = pages.size(); i-- > 0;) {
        const server_traits* const server = found_in(pages[i]);
        if (!server) continue;
        const bool is_server = i < own;
        for (std::size_t k = 0; k < quantity_count; ++k) {
            const auto q = static_cast<server_quantity>(k);
            if (is_of_accelerator(q)) {
                if (!is_server || known[k].empty())
                    read_accelerators(r, pages[i], *server, q, i, known[k]);
            } else if (is_server) {
                read_quantity(r, pages[i], *server, q);
            }
        }
    }
    if (own > 0 && !pages.empty()) r.began = beginning_of(pages[0]);
    for (const std::string& text : selectors) r.named.push_back(value_of_series(pages, text));
    return r;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
