// pages of metrics
// Prometheus' text format 0.0.4 and OpenMetrics 1.0, which have the same samples. A page is read
// whole or refused, as values of half a page would be misleading.
#pragma once

#include "core/base/json.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/wire/series.hpp"

#include <algorithm>  // min, sort
#include <cmath>  // isfinite
#include <cstddef>  // size_t
#include <memory>  // shared_ptr
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A page, or why there is none.
struct parsed_page {
    metrics_page page{};
    std::string problem{};
    bool is_json = false;  // so it is not a page
    double reported_s = not_a_number;  // seconds since 1970, by its sender's clock
};

inline bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}
inline bool continues_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

/// In Prometheus 3 a sample may begin with { as well.
inline bool is_json(std::string_view text, std::string_view content_type) {
    picojson::value v;
    return content_type.find("json") != std::string_view::npos || text.front() == '[' ||
           text.front() == '"' || (text.front() == '{' && parse_json(text, v));
}
/// Why a body is not a page of metrics, without a problem if it may be one. An empty text is the
/// page of a server that has counted nothing yet.
inline parsed_page other_than_metrics(std::string_view body, std::string_view content_type) {
    const std::size_t first = std::min(body.find_first_not_of(" \t\r\n"), body.size());
    const std::string_view text = body.substr(first);
    const std::string shown = ": \"" + printable(text, 60) + "\"";
    const bool is_none = body.empty() && content_type.find("text/plain") != std::string_view::npos;
    if (text.empty()) return {.problem = is_none ? "" : "the page of metrics is empty"};
    if (text.substr(0, 2) == "\x1F\x8B") return {.problem = "the page is compressed, unasked"};
    if (text.front() == '<') return {.problem = "the page is HTML and no metrics" + shown};
    if (!is_json(text, content_type)) return {};
    return {.problem = "the page is JSON and no metrics" + shown, .is_json = true};
}

/// A value as Go prints it: decimal, infinite or NaN, in any case.
inline std::optional<double> go_float(std::string_view s) {
    if (same_ignoring_case(s, "nan")) return not_a_number;
    const double sign = s.starts_with('-') ? -1 : 1;
    if (s.starts_with('+') || s.starts_with('-')) s.remove_prefix(1);
    if (same_ignoring_case(s, "inf") || same_ignoring_case(s, "infinity")) return sign * infinity;
    const auto value = s.starts_with('-') ? std::nullopt : parsed_number<double>(s);
    return value ? std::optional(sign * *value) : std::nullopt;
}

/// Reads one body. Escapes are longer than their characters, so these overwrite them, and all views
/// are into one copy of the body.
class metrics_page_reader {
public:
    explicit metrics_page_reader(std::string_view body)
        : body_(body), text_(new_shared<std::string>(body)) {}
    parsed_page read() {
        std::size_t from = 0;
        while (from < body_.size() && problem_.empty()) {
            const std::size_t end = std::min(body_.find('\n', from), body_.size());
            line_ = body_.substr(from, end - from);
            at_ = text_->data() + from;
            end_ = text_->data() + end;
            ++number_;
            read_line();
            from = end + 1;
            // OpenMetrics may omit the end of its last line.
            if (end == body_.size() && problem_.empty() && line_ != "# EOF")
                problem_ = "the page of metrics was cut: its last line does not end";
        }
        if (!problem_.empty()) return {.problem = std::move(problem_)};
        std::sort(page_.samples.begin(), page_.samples.end(),
                  [](const page_sample& a, const page_sample& b) {
                      if (a.name != b.name) return a.name < b.name;
                      return a.name.data() < b.name.data();  // order in the text
                  });
        page_.text = std::move(text_);
        return {.page = std::move(page_)};
    }

private:
    bool fail(const char* why) {
        const std::string shown = "\"" + printable(line_, 80) + "\"";
        problem_ = seen_ ? printed("line %zu of the page of metrics has %s: %s", number_, why,
                                   shown.c_str())
                         : "the page is no metrics: it begins with " + shown;
        return false;
    }
    bool at_end() const { return at_ == end_; }
    bool at(char c) const { return at_ != end_ && *at_ == c; }
    bool at_blank() const { return at(' ') || at('\t'); }
    void skip_blanks() {
        while (at_blank()) ++at_;
    }
    std::string_view since(const char* from) const {
        return {from, static_cast<std::size_t>(at_ - from)};
    }
    std::string_view word() {
        const char* const from = at_;
        while (!at_end() && !at_blank()) ++at_;
        return since(from);
    }
    /// "" if there is no name.
    std::string_view name(char end = '\0') {
        const char* const from = at_;
        if (at_end() || !begins_name(*at_)) return {};
        while (!at_end() && continues_name(*at_) && *at_ != end) ++at_;
        return since(from);
    }
    /// The text up to its closing quote with escapes resolved, nothing if it does not end.
    std::optional<std::string_view> quoted() {
        const char* const from = ++at_;
        char* to = at_;
        for (; !at_end() && !at('"'); ++at_) {
            char c = *at_;
            const char next = c == '\\' && at_ + 1 != end_ ? at_[1] : '\0';
            if (next == '\\' || next == 'n' || next == '"') {
                c = next == 'n' ? '\n' : next;
                ++at_;
            }
            *to++ = c;
        }
        if (at_end()) return std::nullopt;
        ++at_;
        return std::string_view(from, static_cast<std::size_t>(to - from));
    }

    void read_line() {
        skip_blanks();
        if (at_end()) return;
        if (at('#')) read_comment();
        else read_sample();
        seen_ = true;
    }

    /// Comments name metrics that may have no samples yet.
    void read_comment() {
        ++at_;
        skip_blanks();
        const std::string_view what = word();
        skip_blanks();
        if (what == "HELP" || what == "TYPE")
            add_name(at('"') ? quoted().value_or("") : name());
    }
    void add_name(std::string_view name) {
        if (!name.empty() && (page_.names.empty() || page_.names.back() != name))
            page_.names.push_back(name);
    }

    bool read_sample() {
        page_sample s{.first_label = page_.labels.size()};
        s.name = name();
        const bool is_named = !s.name.empty(), is_apart = at_blank();
        skip_blanks();
        if (at('{')) {
            if (!read_labels(is_named ? nullptr : &s.name)) return false;
        } else if (is_named && !is_apart && !at_end()) {
            return fail("no name of a metric");
        }
        if (s.name.empty()) return fail("no name of a metric");
        s.label_count = page_.labels.size() - s.first_label;
        skip_blanks();
        const auto value = go_float(word());
        if (!value) return fail("no number as its value");
        s.value = *value;
        add_name(s.name);
        page_.samples.push_back(s);
        return read_time();
    }
    /// The labels in braces; `metric` takes a name among them, if none precedes them.
    bool read_labels(std::string_view* metric) {
        for (++at_;;) {
            skip_blanks();
            if (at('}')) break;
            if (!read_label(metric)) return false;
            skip_blanks();
            if (at(',')) ++at_;
            else if (!at('}')) return fail("braces that do not close");
        }
        ++at_;
        return true;
    }
    bool read_label(std::string_view* metric) {
        page_label label;
        const bool is_quoted = at('"');
        if (is_quoted) label.name = quoted().value_or("");
        else label.name = name(':');
        if (label.name.empty()) return fail("no name of a label");
        skip_blanks();
        if (is_quoted && metric && metric->empty() && (at(',') || at('}'))) {
            *metric = label.name;
            return true;
        }
        if (!at('=')) return fail("a label without a value");
        ++at_;
        skip_blanks();
        const auto value = at('"') ? quoted() : std::nullopt;
        if (!value) return fail("a label's value without both its quotes");
        label.value = *value;
        page_.labels.push_back(label);
        return true;
    }
    /// A time may follow a value, and an exemplar behind a #; neither is used.
    bool read_time() {
        skip_blanks();
        if (at_end() || at('#')) return true;
        if (!std::isfinite(go_float(word()).value_or(infinity)))
            return fail("no time behind its value");
        skip_blanks();
        return at_end() || at('#') || fail("more than a value and a time");
    }

    std::string_view body_;
    std::shared_ptr<std::string> text_;
    metrics_page page_{};
    std::string problem_{};
    std::string_view line_{};
    std::size_t number_ = 0;  // of lines
    char* at_ = nullptr;
    char* end_ = nullptr;
    bool seen_ = false;  // there was a non-empty line
};

/// Reads a server's answer with this content type, which may be "".
inline parsed_page read_metrics_page(std::string_view body, std::string_view content_type) {
    parsed_page other = other_than_metrics(body, content_type);
    if (!other.problem.empty()) return other;
    parsed_page p = metrics_page_reader(body).read();
    constexpr std::string_view open = "application/openmetrics-text";
    const std::string_view type = trimmed(content_type).substr(0, open.size());
    if (body.ends_with('\n')) body.remove_suffix(1);
    if (p.problem.empty() && same_ignoring_case(type, open) && !body.ends_with("# EOF"))
        return {.problem = "the page of metrics was cut: OpenMetrics ends with \"# EOF\""};
    return p;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
