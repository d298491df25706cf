// pages of metrics
// Prometheus' text format 0.0.4 and OpenMetrics 1.0. A page is read whole or refused, as values of
// half a page would be misleading.
#pragma once

#include "core/base/text.hpp"
#include "core/wire/series.hpp"

#include <algorithm>  // min, sort
#include <cmath>  // isfinite, isinf
#include <cstddef>  // size_t
#include <cstdint>  // int64_t
#include <cstdlib>  // strtod
#include <map>
#include <memory>  // shared_ptr, make_shared
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

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

// ---- types and names

inline bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}
inline bool continues_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

/// Unknown types are untyped. 0.0.4 has the first five; OpenMetrics calls the first one unknown.
inline series_kind series_kind_named(std::string_view word) {
    struct named {
        const char* word;
        series_kind kind;
    };
    constexpr named kinds[] = {
        {"counter", series_kind::counter},        {"gauge", series_kind::gauge},
        {"histogram", series_kind::histogram},    {"summary", series_kind::summary},
        {"info", series_kind::info},              {"stateset", series_kind::state_set},
        {"gaugehistogram", series_kind::gauge_histogram},
    };
    for (const named& k : kinds)
        if (same_ignoring_case(word, k.word)) return k.kind;
    return series_kind::untyped;
}

/// The name without this suffix, "" if it has another.
inline std::string_view without_end(std::string_view name, std::string_view end) {
    const bool ends_so = name.size() > end.size() && name.ends_with(end);
    return ends_so ? name.substr(0, name.size() - end.size()) : std::string_view();
}
inline bool counts_from_a_beginning(series_kind k) {
    return k == series_kind::counter || k == series_kind::histogram || k == series_kind::summary;
}
/// Whether samples of this kind may have this suffix.
inline bool has_samples_that_end(series_kind k, std::string_view end) {
    if (end == "_total") return k == series_kind::counter;
    if (end == "_created") return counts_from_a_beginning(k);
    if (end == "_info") return k == series_kind::info;
    if (end == "_gsum" || end == "_gcount") return k == series_kind::gauge_histogram;
    if (end == "_bucket") return k == series_kind::histogram || k == series_kind::gauge_histogram;
    return k == series_kind::histogram || k == series_kind::summary;
}

/// Whether a text that begins with { is a JSON object. After {" it may instead be a metric's name,
/// as in Prometheus 3, without a colon after it.
inline bool is_json_object(std::string_view text) {
    const std::size_t next = std::min(text.find_first_not_of(" \t", 1), text.size());
    if (next == text.size()) return true;
    if (text[next] == '}' || text[next] == '\n' || text[next] == '\r') return true;
    if (text[next] != '"') return false;
    std::size_t quote = next;  // becomes the closing one
    do quote = std::min(text.find_first_of("\"\n", quote + 1), text.size());
    while (quote < text.size() && text[quote - 1] == '\\');
    const std::size_t after = std::min(text.find_first_not_of(" \t", quote + 1), text.size());
    return after < text.size() && text[after] == ':';
}
inline bool is_json(std::string_view text, std::string_view content_type) {
    return content_type.find("json") != std::string_view::npos || text.front() == '[' ||
           text.front() == '"' || (text.front() == '{' && is_json_object(text));
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

/// OpenMetrics by its content type, or by its end unless the type differs.
inline bool is_openmetrics(std::string_view body, std::string_view content_type) {
    constexpr std::string_view name = "application/openmetrics-text";
    if (same_ignoring_case(trimmed(content_type).substr(0, name.size()), name)) return true;
    if (content_type.find("version=0.0.4") != std::string_view::npos) return false;
    if (body.ends_with('\n')) body.remove_suffix(1);
    return body == "# EOF" || body.ends_with("\n# EOF");
}

/// A value as Go's strconv.ParseFloat reads it: decimal or hexadecimal, infinite and NaN in any
/// case. A number that is too large is invalid, and one that is too small is 0.
inline std::optional<double> go_float(std::string_view s) {
    if (same_ignoring_case(s, "nan")) return not_a_number;
    const std::string_view unsigned_part = s.substr(s.substr(0, 1) == "+" || s.substr(0, 1) == "-");
    const char first = unsigned_part.empty() ? ' ' : unsigned_part[0];
    // strtod also takes blanks, "nan(1)" and hexadecimal without an exponent.
    const bool is_hexadecimal = same_ignoring_case(unsigned_part.substr(0, 2), "0x");
    if (std::string_view("0123456789.iI").find(first) == std::string_view::npos ||
        (is_hexadecimal && unsigned_part.find_first_of("pP") == std::string_view::npos))
        return std::nullopt;
    const in_c_locale with_points;
    const std::string number(s);  // strtod needs a final zero
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    const bool is_too_large = std::isinf(value) && (first | ' ') != 'i';
    if (is_too_large || end != number.c_str() + number.size()) return std::nullopt;
    return value;
}

// ---- the reader

/// Reads one body. Escapes are longer than their characters, so these overwrite them, and all views
/// are into one copy of the body.
class metrics_page_reader {
public:
    metrics_page_reader(std::string_view body, std::string_view content_type)
        : body_(body), text_(std::make_shared<std::string>(body)) {
        page_.is_openmetrics = is_openmetrics(body, content_type);
    }
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
            // OpenMetrics may omit the end of the last line only.
            if (end == body_.size() && problem_.empty() && !ended_)
                problem_ = "the page of metrics was cut: its last line does not end";
        }
        if (problem_.empty() && page_.is_openmetrics && !ended_)
            problem_ = "the page of metrics was cut: OpenMetrics ends with \"# EOF\"";
        if (!problem_.empty()) return {.problem = std::move(problem_)};
        finish();
        return {.page = std::move(page_)};
    }

private:
    struct marks {
        bool typed = false, sampled = false;
    };

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
    std::string_view name(bool with_colons) {
        const char* const from = at_;
        if (at_end() || !begins_name(*at_)) return {};
        while (!at_end() && continues_name(*at_) && (with_colons || *at_ != ':')) ++at_;
        return since(from);
    }
    /// The text up to its closing quote, or to the end of the line, with escapes resolved.
    std::string_view unescaped(bool is_quoted) {
        const char* const from = at_;
        char* to = at_;
        for (; !at_end() && !(is_quoted && at('"')); ++at_) {
            char c = *at_;
            const char next = c == '\\' && at_ + 1 != end_ ? at_[1] : '\0';
            const bool quote = next == '"' && (is_quoted || page_.is_openmetrics);
            if (next == '\\' || next == 'n' || quote) {
                c = next == 'n' ? '\n' : next;
                ++at_;
            }
            *to++ = c;
        }
        return {from, static_cast<std::size_t>(to - from)};
    }
    std::optional<std::string_view> quoted() {
        ++at_;
        const std::string_view inside = unescaped(true);
        if (at_end()) return std::nullopt;
        ++at_;
        return inside;
    }

    void read_line() {
        if (ended_) {
            fail("something behind \"# EOF\"");
            return;
        }
        skip_blanks();
        if (at_end()) return;
        if (at('#')) read_comment();
        else read_sample();
        seen_ = true;
    }

    bool read_comment() {
        ++at_;
        skip_blanks();
        const std::string_view what = word();
        skip_blanks();
        if (what == "EOF" && page_.is_openmetrics) ended_ = at_end();
        const bool says_unit = what == "UNIT" && page_.is_openmetrics;
        if (what != "HELP" && what != "TYPE" && !says_unit) return true;
        if (at_end()) return true;  // has no meaning
        std::string_view family;
        if (at('"')) family = quoted().value_or("");
        else family = name(true);
        if (family.empty() || (!at_end() && !at_blank())) return fail("no name of a metric");
        skip_blanks();
        if (at_end()) return true;
        const std::size_t i = family_named(family);
        if (what == "TYPE") return read_type(i);
        const std::string_view text = trimmed(unescaped(false));
        (says_unit ? page_.families[i].unit : page_.families[i].help) = text;
        return true;
    }
    bool read_type(std::size_t family) {
        const std::string_view kind = word();
        skip_blanks();
        if (!at_end()) return fail("more than a name and a type");
        if (marks_[family].typed) return fail("a second type of one metric");
        if (marks_[family].sampled) return fail("a type behind the samples that it is of");
        marks_[family].typed = true;
        page_.families[family].kind = series_kind_named(kind);
        return true;
    }

    bool read_sample() {
        page_sample s{.first_label = page_.labels.size()};
        s.name = name(true);
        const bool is_named = !s.name.empty(), is_apart = at_blank();
        skip_blanks();
        if (at('{')) {
            if (!read_labels(is_named ? nullptr : &s.name)) return false;
        } else if (is_named && !is_apart && !at_end()) {
            return fail("no name of a metric");
        }
        if (s.name.empty()) return fail("no name of a metric");
        s.label_count = page_.labels.size() - s.first_label;
        if (!read_value(s.value) || !read_time(s.at_s) || !read_exemplar()) return false;
        const bool same = !page_.samples.empty() && page_.samples.back().name == s.name;
        s.family = same ? page_.samples.back().family : family_of(s.name);
        marks_[s.family].sampled = true;
        page_.samples.push_back(s);
        return true;
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
        else label.name = name(false);
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
    bool read_value(double& into) {
        skip_blanks();
        const auto value = go_float(word());
        if (!value) return fail("no number as its value");
        into = *value;
        return true;
    }
    /// Milliseconds in 0.0.4, seconds in OpenMetrics.
    bool read_time(std::optional<double>& into) {
        skip_blanks();
        if (at_end() || at('#')) return true;
        std::string_view s = word();
        if (page_.is_openmetrics) {
            into = go_float(s);
        } else {
            if (s.front() == '+' && s.substr(1, 1) != "-") s.remove_prefix(1);
            if (const auto ms = parsed_number<std::int64_t>(s))
                into = static_cast<double>(*ms) / 1000;
        }
        return (into && std::isfinite(*into)) || fail("no time behind its value");
    }
    /// In OpenMetrics, one of the observations of a sample; it is ignored.
    bool read_exemplar() {
        skip_blanks();
        if (at_end()) return true;
        if (!at('#') || !page_.is_openmetrics) return fail("more than a value and a time");
        ++at_;
        skip_blanks();
        const std::size_t labels = page_.labels.size();
        double value = 0;
        std::optional<double> time;
        if (!at('{')) return fail("an exemplar without braces");
        if (!read_labels(nullptr) || !read_value(value) || !read_time(time)) return false;
        page_.labels.resize(labels);
        return at_end() || fail("more than an exemplar");
    }

    std::size_t family_named(std::string_view name) {
        const auto [at, added] = families_.try_emplace(name, page_.families.size());
        if (added) {
            page_.families.push_back({.name = name});
            marks_.emplace_back();
        }
        return at->second;
    }
    series_kind kind_of(std::string_view name) const {
        const auto at = families_.find(name);
        return at == families_.end() ? series_kind::untyped : page_.families[at->second].kind;
    }
    /// An exact name comes first: there is a histogram vllm:iteration_tokens_total.
    std::size_t family_of(std::string_view name) {
        if (families_.find(name) != families_.end()) return family_named(name);
        for (const char* end :
             {"_total", "_bucket", "_sum", "_count", "_created", "_info", "_gsum", "_gcount"}) {
            const std::string_view family = without_end(name, end);
            if (!family.empty() && has_samples_that_end(kind_of(family), end))
                return family_named(family);
        }
        return family_named(name);
    }
    /// In 0.0.4 such a series may have type gauge, so its base series decides.
    bool reports_a_start(const page_sample& s) const {
        const std::string_view of = without_end(s.name, "_created");
        if (of.empty()) return false;
        const page_family& family = page_.families[s.family];
        return family.name != s.name || !marks_[s.family].typed ||
               counts_from_a_beginning(kind_of(of)) ||
               kind_of(std::string(of) + "_total") == series_kind::counter;
    }
    void finish() {
        std::vector<page_sample> data;
        data.reserve(page_.samples.size());
        for (const page_sample& s : page_.samples)
            (reports_a_start(s) ? page_.created : data).push_back(s);
        std::sort(data.begin(), data.end(), [](const page_sample& a, const page_sample& b) {
            if (a.name != b.name) return a.name < b.name;
            return a.name.data() < b.name.data();  // order in the text
        });
        page_.samples = std::move(data);
        page_.text = std::move(text_);
    }

    std::string_view body_;
    std::shared_ptr<std::string> text_;
    metrics_page page_{};
    std::vector<marks> marks_{};  // of each family
    std::map<std::string_view, std::size_t> families_{};
    std::string problem_{};
    std::string_view line_{};
    std::size_t number_ = 0;  // of lines
    char* at_ = nullptr;
    char* end_ = nullptr;
    bool seen_ = false;   // there was a non-empty line
    bool ended_ = false;  // by # EOF
};

/// Reads a server's answer with this content type, which may be "".
inline parsed_page read_metrics_page(std::string_view body, std::string_view content_type) {
    parsed_page other = other_than_metrics(body, content_type);
    if (!other.problem.empty()) return other;
    return metrics_page_reader(body, content_type).read();
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
