// a file of TOML, with the line of each value
// toml++ reads it. Tables between braces may have several lines, as in TOML 1.1. Dates, inf and nan
// are no value of any option: they are refused.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#define TOML_MAX_NESTED_VALUES 20
#define TOML_ENABLE_UNRELEASED_FEATURES 1  // of TOML 1.1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>  // count, max, min, sort
#include <charconv>  // to_chars
#include <cmath>  // isfinite
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>  // move, pair

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

struct toml_value {
    enum class kind : unsigned char { text, number, boolean, list, table };
    kind is = kind::table;
    std::string text{};          // also a number in decimal, and a boolean
    vector<toml_value> items{};  // of a list, or of a table in the order of the file
    vector<std::string> keys{};  // of a table
    int line = 0;
    bool is_of_headers = false;  // a list of [[tables]]
    const toml_value* find(std::string_view key) const {
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (keys[i] == key) return &items[i];
        return nullptr;
    }
};

/// Reads a file's content. Throws std::invalid_argument with file and line.
class toml_reader {
public:
    toml_reader(const std::string& content, const std::string& file)
        : content_(content), file_(file) {}
    toml_value read() const {
        if (content_.size() > most_bytes_)
            refuse_at(1, printed("a file has at most %zu bytes", most_bytes_));
        check_keys();
        try {
            return value_of(toml::parse(content_, std::string_view(file_)));
        } catch (const toml::parse_error& e) {
            refuse_at(line_in(e.source()), sentence_on(e));
        }
    }

private:
    static constexpr std::size_t most_bytes_ = 1 << 20;
    static constexpr int most_parts_ = 32;

    [[noreturn]] void refuse_at(int line, const std::string& why) const {
        refuse({printed("%s:%d: ", printable(file_, 200).c_str(), line), why});
    }
    static int line_in(const toml::source_region& at) { return static_cast<int>(at.begin.line); }

    /// Refuses two keys outside of quotes that toml++ 3.3 does not outlive: of so many parts that
    /// their tables overflow the stack, and of other letters than those of ASCII.
    void check_keys() const {
        const std::string_view s = content_;
        const auto line_at = [&](std::size_t i) {
            const std::string_view before = s.substr(0, i);
            return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
        };
        int parts = 1;
        for (std::size_t i = s.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < s.size();) {
            if (s[i] == '"' || s[i] == '\'') {
                i = end_of_text(s, i);
                continue;
            }
            if (s[i] == '#') i = std::min(s.find('\n', i), s.size() - 1);
            if (std::string_view("=,[]{}\n").find(s[i]) != std::string_view::npos) parts = 1;
            if (s[i] == '.' && ++parts > most_parts_)
                refuse_at(line_at(i), printed("a key has more than %d parts", most_parts_));
            if (static_cast<unsigned char>(s[i]) >= 0x80)
                refuse_at(line_at(i), "\"" + printable(word_at(s, i), 60) +
                                          "\" stands outside of quotes: a text needs them, and so "
                                          "does a key with other characters than letters, digits, "
                                          "- and _");
            ++i;
        }
    }
    /// Where the text ends whose first quote is at `i`.
    static std::size_t end_of_text(std::string_view s, std::size_t i) {
        const char quote = s[i];
        const bool has_lines = s.substr(i, 3) == std::string(3, quote);
        const std::string_view close = s.substr(i, has_lines ? 3 : 1);
        i += close.size();
        while (i < s.size() && !s.substr(i).starts_with(close)) {
            if (!has_lines && s[i] == '\n') return i;
            i += s[i] == '\\' && quote == '"' && i + 1 < s.size() && s[i + 1] != '\n' ? 2 : 1;
        }
        i = std::min(i + close.size(), s.size());
        for (int n = 0; has_lines && n < 2 && i < s.size() && s[i] == quote; ++n) ++i;
        return i;
    }
    static std::string_view word_at(std::string_view s, std::size_t i) {
        return s.substr(i, std::min(s.find_first_of(" \t\r\n,]}#=", i), s.size()) - i);
    }

    /// A sentence on what toml++ refused, which says "Error while parsing WHAT: WHY".
    std::string sentence_on(const toml::parse_error& e) const {
        const std::string said(e.description());
        const auto says = [&](const char* words) { return said.find(words) != said.npos; };
        std::string_view line = content_;
        for (int i = 1; i < line_in(e.source()); ++i)
            line.remove_prefix(std::min(line.find('\n') + 1, line.size()));
        line = line.substr(0, line.find_first_of("\r\n"));
        const std::string_view key = trimmed(line.substr(0, line.find('=')));
        const std::string name = printable(key, 80);
        if (says("could not determine value type") || says("parsing boolean")) {
            // The columns before a value are those of ASCII, or of a quoted key.
            const std::size_t at = std::min<std::size_t>(e.source().begin.column - 1, line.size());
            return "\"" + printable(word_at(line, at), 60) +
                   "\" is no value: a text needs quotes, a number is decimal, and true and false "
                   "have small letters";
        }
        if (says("cannot redefine") && !says("' as ")) return name + " is there twice";
        if (says("expected '='"))
            return "\"" + name + "\" has no value: a line is key = value";
        if (says("expected a comment or whitespace"))
            return "\"" + name +
                   "\": more stands behind the end of its value: a text with blanks or commas "
                   "needs quotes, and each key a line of its own";
        if (says("TOML_MAX_NESTED_VALUES"))
            return printed("values are nested deeper than %d", TOML_MAX_NESTED_VALUES);
        const std::size_t why = said.find(": ");
        return "\"" + name + "\" is no TOML: " +
               printable(why == said.npos ? said : said.substr(why + 2), 200);
    }

    toml_value value_of(const toml::node& n) const {
        toml_value v;
        v.line = line_in(n.source());
        if (const toml::table* t = n.as_table()) fill_table(v, *t);
        else if (const toml::array* list = n.as_array()) {
            v.is = toml_value::kind::list;
            for (const toml::node& item : *list) v.items.push_back(value_of(item));
            const toml::table* const first = list->empty() ? nullptr : list->front().as_table();
            v.is_of_headers = first && !first->is_inline();
        } else fill_scalar(v, n);
        return v;
    }
    void fill_table(toml_value& v, const toml::table& t) const {
        vector<std::pair<const toml::key*, const toml::node*>> all;
        for (const auto& [key, value] : t) all.push_back({&key, &value});
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
            return a.first->source().begin < b.first->source().begin;
        });
        for (const auto& [key, value] : all) {
            v.keys.push_back(std::string(key->str()));
            v.items.push_back(value_of(*value));
            if (!value->is_table()) v.items.back().line = line_in(key->source());
        }
    }
    void fill_scalar(toml_value& v, const toml::node& n) const {
        v.is = toml_value::kind::number;
        if (const auto* s = n.as_string()) {
            v.is = toml_value::kind::text;
            v.text = s->get();
        } else if (const auto* b = n.as_boolean()) {
            v.is = toml_value::kind::boolean;
            v.text = b->get() ? "true" : "false";
        } else if (const auto* i = n.as_integer()) v.text = std::to_string(i->get());
        else if (const auto* x = n.as_floating_point(); x && std::isfinite(x->get())) {
            char digits[400];
            v.text.assign(digits, std::to_chars(digits, digits + sizeof digits, x->get()).ptr);
        } else
            refuse_at(v.line, "a date, a time, inf and nan are no value of any key: a text needs "
                              "quotes");
    }

    const std::string& content_;
    const std::string& file_;
};

}  // namespace llmbench_program
