// a file of TOML 1.0, with the line of each value
// Dates, hexadecimal numbers, inf and nan are no value of any option: they are refused.
// Our own: toml++ 3.3 (Debian 12) ends the program by an assertion at "[\u00e9]", names neither the
// wrong word nor the earlier line, and would be two more packages. Both agree on 300,000 texts.
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // min
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>  // as_const, move

namespace llmbench_program {

using namespace llmbench;
using namespace llmbench::detail;

struct toml_value {
    enum class kind : unsigned char { text, number, boolean, list, table };
    kind is = kind::table;
    std::string text{};          // a number and a boolean as written, without underscores
    vector<toml_value> items{};  // of a list, or of a table in the order of the file
    vector<std::string> keys{};  // of a table
    int line = 0;
    bool is_open = false;        // a table that a header or a dotted key may still extend
    bool is_of_dots = false;     // a table that a dotted key made, which no header may name
    bool is_of_headers = false;  // a list of [[tables]]
    bool is_sealed = false;      // { }, which nothing extends
    const toml_value* find(std::string_view key) const {
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (keys[i] == key) return &items[i];
        return nullptr;
    }
    toml_value* find(std::string_view key) {
        return const_cast<toml_value*>(std::as_const(*this).find(key));
    }
    toml_value& add(const std::string& key, toml_value v) {
        keys.push_back(key);
        items.push_back(std::move(v));
        return items.back();
    }
};

/// Reads a file's content. Throws std::invalid_argument with file and line.
class toml_reader {
public:
    toml_reader(const std::string& content, const std::string& file) : rest_(content), file_(file) {
        if (content.size() > most_bytes_)
            refuse_here(printed("a file has at most %zu bytes", most_bytes_));
    }
    toml_value read() {
        check_characters();
        toml_value all;
        toml_value* into = &all;
        take("\xEF\xBB\xBF");
        for (skip_lines(); !rest_.empty(); skip_lines()) {
            if (rest_[0] == '[') into = &header(all);
            else entry(*into);
            end_line();
        }
        return all;
    }

private:
    static constexpr std::size_t most_bytes_ = 1 << 20;
    static constexpr int deepest_ = 20;

    [[noreturn]] void refuse_here(const std::string& why) const {
        refuse({printed("%s:%d: ", printable(file_, 200).c_str(), line_), why});
    }
    void check_characters() {
        for (std::size_t i = 0, length = 0; i < rest_.size(); i += length) {
            length = utf8_length(rest_, i);
            const bool ends_line = rest_[i] == '\n' || rest_.substr(i, 2) == "\r\n";
            const bool is_control = static_cast<unsigned char>(rest_[i]) < 0x20 || rest_[i] == 0x7F;
            if (length == 0) refuse_here("there are bytes that are no UTF-8");
            if (is_control && rest_[i] != '\t' && !ends_line)
                refuse_here("there is a control character");
            if (rest_[i] == '\n') ++line_;
        }
        line_ = 1;
    }
    std::string next_word() const {
        return printable(rest_.substr(0, rest_.find_first_of(" \t\r\n,]}#")), 60);
    }
    bool starts(std::string_view what) const { return rest_.substr(0, what.size()) == what; }
    bool take(std::string_view what) {
        if (!starts(what)) return false;
        rest_.remove_prefix(what.size());
        return true;
    }
    void skip_blanks() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
    }
    bool take_line_end() {
        if (!take("\r\n") && !take("\n")) return false;
        ++line_;
        return true;
    }
    void skip_comment() {
        skip_blanks();
        if (starts("#")) rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    }
    void skip_lines() {
        do skip_comment();
        while (take_line_end());
    }
    void end_line() {
        skip_comment();
        if (!rest_.empty() && !take_line_end())
            refuse_here("\"" + next_word() +
                        "\" stands after the end of the value: a text with blanks "
                        "or commas needs quotes, and each key a line of its own");
    }

    static bool is_bare(char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; }
    std::string simple_key() {
        if (starts("\"") || starts("'")) return quoted(rest_[0]);
        std::size_t n = 0;
        while (n < rest_.size() && is_bare(rest_[n])) ++n;
        if (n == 0)
            refuse_here("\"" + next_word() +
                        "\" is no key of TOML: a line is key = value, and a key "
                        "with other characters than letters, digits, - and _ needs quotes");
        const std::string key(rest_.substr(0, n));
        rest_.remove_prefix(n);
        return key;
    }
    vector<std::string> dotted_key() {
        vector<std::string> all;
        do {
            skip_blanks();
            all.push_back(simple_key());
            skip_blanks();
        } while (take("."));
        return all;
    }
    static std::string name_of(const vector<std::string>& key) {
        std::string all;
        for (const std::string& k : key) all += (all.empty() ? "" : ".") + printable(k, 80);
        return all;
    }
    toml_value new_table() const {
        toml_value t;
        t.line = line_;
        return t;
    }
    [[noreturn]] void refuse_second(const std::string& name, int first) const {
        refuse_here(name + printed(" is there twice, first in line %d", first));
    }
    enum class key_of : unsigned char { header, entry };
    /// The table that all names of a key but the last lead to.
    toml_value& inside(toml_value& from, const vector<std::string>& key, key_of what) {
        const bool is_header = what == key_of::header;
        toml_value* at = &from;
        for (std::size_t i = 0; i + 1 < key.size(); ++i) {
            toml_value* next = at->find(key[i]);
            if (!next) {
                next = &at->add(key[i], new_table());
                next->is_open = true;
                next->is_of_dots = !is_header;
            }
            if (is_header && next->is_of_headers) next = &next->items.back();
            const bool may_grow = next->is == toml_value::kind::table && !next->is_sealed &&
                                  (is_header || next->is_open);
            if (!may_grow) refuse_second(printable(key[i], 80), next->line);
            at = next;
        }
        return *at;
    }
    toml_value& header(toml_value& all) {
        const bool is_list = take("[[");
        if (!is_list) take("[");
        const vector<std::string> key = dotted_key();
        if (!take(is_list ? "]]" : "]")) refuse_here(is_list ? "]] is missing" : "] is missing");
        toml_value& in = inside(all, key, key_of::header);
        toml_value* known = in.find(key[key.size() - 1]);
        if (is_list) {
            if (known && !known->is_of_headers) refuse_second(name_of(key), known->line);
            if (!known) {
                known = &in.add(key[key.size() - 1], new_table());
                known->is = toml_value::kind::list;
                known->is_of_headers = true;
            }
            known->items.push_back(new_table());
            return known->items.back();
        }
        if (known && (!known->is_open || known->is_of_dots))
            refuse_second("[" + name_of(key) + "]", known->line);
        if (!known) known = &in.add(key[key.size() - 1], new_table());
        known->is_open = false;
        known->line = line_;
        return *known;
    }
    void entry(toml_value& into) {
        const vector<std::string> key = dotted_key();
        if (!take("=")) refuse_here("\"" + name_of(key) + "\" has no value: a line is key = value");
        skip_blanks();
        const int at = line_;
        toml_value& in = inside(into, key, key_of::entry);
        if (const toml_value* known = in.find(key[key.size() - 1]))
            refuse_second(name_of(key), known->line);
        toml_value v = value(0);
        v.line = at;
        in.add(key[key.size() - 1], std::move(v));
    }

    toml_value value(int depth) {
        if (depth > deepest_) refuse_here(printed("values are nested deeper than %d", deepest_));
        toml_value v = new_table();
        v.is = toml_value::kind::text;
        if (starts("\"\"\"") || starts("'''")) v.text = several_lines(rest_[0]);
        else if (starts("\"") || starts("'")) v.text = quoted(rest_[0]);
        else if (take("[")) fill_list(v, depth);
        else if (take("{")) fill_table(v, depth);
        else bare(v);
        return v;
    }
    void fill_list(toml_value& v, int depth) {
        v.is = toml_value::kind::list;
        for (;;) {
            skip_lines();
            if (take("]")) return;
            v.items.push_back(value(depth + 1));
            skip_lines();
            if (take("]")) return;
            if (!take(","))
                refuse_here(rest_.empty()
                                ? printed("the list of line %d has no ]", v.line)
                                : "\"" + next_word() + "\": a comma or ] is expected in a list");
        }
    }
    void fill_table(toml_value& v, int depth) {
        v.is = toml_value::kind::table;
        v.is_sealed = true;
        skip_blanks();
        if (take("}")) return;
        do {
            const vector<std::string> key = dotted_key();
            if (!take("=")) refuse_here("\"" + name_of(key) + "\" has no value");
            skip_blanks();
            toml_value& in = inside(v, key, key_of::entry);
            if (in.find(key[key.size() - 1])) refuse_second(name_of(key), line_);
            toml_value x = value(depth + 1);
            in.add(key[key.size() - 1], std::move(x));
            skip_blanks();
        } while (take(","));
        if (!take("}")) refuse_here("a comma or } is expected in { }, on the same line");
    }
    void bare(toml_value& v) {
        const std::string word(rest_.substr(0, rest_.find_first_of(" \t\r\n,]}#")));
        if (word == "true" || word == "false") v.is = toml_value::kind::boolean;
        else if (is_number(word)) v.is = toml_value::kind::number;
        else if (word.empty()) refuse_here("a value is missing after =");
        else
            refuse_here("\"" + printable(word, 60) +
                        "\" is no value: a text needs quotes, a number is "
                        "decimal, and true and false have small letters");
        rest_.remove_prefix(word.size());
        for (const char c : word)
            if (c != '_' && !(c == '+' && v.text.empty())) v.text += c;
    }
    /// Decimal, with underscores between digits alone, and without needless zeros.
    static bool is_number(std::string_view s) {
        if (!s.empty() && (s[0] == '+' || s[0] == '-')) s.remove_prefix(1);
        const auto digits = [&] {
            std::size_t n = 0;
            for (; n < s.size(); ++n) {
                const bool between = s[n] == '_' && n > 0 && s[n - 1] != '_' && n + 1 < s.size() &&
                                     s[n + 1] >= '0' && s[n + 1] <= '9';
                if (!between && !(s[n] >= '0' && s[n] <= '9')) break;
            }
            s.remove_prefix(n);
            return n;
        };
        const bool has_zero = s.size() > 1 && s[0] == '0';
        const std::size_t whole = digits();
        if (whole == 0 || (has_zero && whole > 1)) return false;
        if (!s.empty() && s[0] == '.') {
            s.remove_prefix(1);
            if (digits() == 0) return false;
        }
        if (!s.empty() && (s[0] | 0x20) == 'e') {
            s.remove_prefix(1);
            if (!s.empty() && (s[0] == '+' || s[0] == '-')) s.remove_prefix(1);
            if (digits() == 0) return false;
        }
        return s.empty();
    }

    /// Only between double quotes there are escapes.
    std::string quoted(char quote) {
        rest_.remove_prefix(1);
        std::string out;
        while (!rest_.empty() && rest_[0] != quote) {
            if (rest_[0] == '\n' || rest_[0] == '\r') refuse_here("a text has no closing quote");
            if (quote == '"' && rest_[0] == '\\') escape(out);
            else take_character(out);
        }
        if (rest_.empty()) refuse_here("a text has no closing quote");
        rest_.remove_prefix(1);
        return out;
    }
    std::string several_lines(char quote) {
        const std::string end(3, quote);
        const int from = line_;
        rest_.remove_prefix(3);
        take_line_end();
        std::string out;
        while (!starts(end)) {
            if (rest_.empty())
                refuse_here(printed("the text of line %d has no %s", from, end.c_str()));
            if (take_line_end()) out += '\n';
            else if (quote == '"' && rest_[0] == '\\') escape(out);
            else take_character(out);
        }
        rest_.remove_prefix(3);
        for (int i = 0; i < 2 && !rest_.empty() && rest_[0] == quote; ++i) take_character(out);
        return out;
    }
    void take_character(std::string& out) {
        out += rest_[0];
        rest_.remove_prefix(1);
    }
    void escape(std::string& out) {
        rest_.remove_prefix(1);
        if (const std::size_t text = rest_.find_first_not_of(" \t\r");
            text != std::string_view::npos && rest_[text] == '\n') {  // the line goes on
            rest_.remove_prefix(text);
            while (take_line_end()) skip_blanks();
            return;
        }
        static constexpr std::string_view names = "btnfr\"\\", are = "\b\t\n\f\r\"\\";
        const char c = rest_.empty() ? '\0' : rest_[0];
        if (const std::size_t at = names.find(c); c != '\0' && at != names.npos) {
            rest_.remove_prefix(1);
            out += are[at];
            return;
        }
        if (c != 'u' && c != 'U')
            refuse_here("\"\\" + printable(rest_.substr(0, 1)) +
                        "\" is no escape: write \\\\ for a "
                        "backslash, or put the text in single quotes");
        const std::size_t n = c == 'u' ? 4 : 8;
        unsigned long code = 0;
        for (std::size_t i = 1; i <= n; ++i) {
            const char h = i < rest_.size() ? rest_[i] : '\0';
            const int digit = h >= '0' && h <= '9'                     ? h - '0'
                              : (h | 0x20) >= 'a' && (h | 0x20) <= 'f' ? (h | 0x20) - 'a' + 10
                                                                       : -1;
            if (digit < 0) refuse_here(printed("\\%c needs %zu hexadecimal digits", c, n));
            code = code * 16 + static_cast<unsigned long>(digit);
        }
        if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            refuse_here("\\u is no character");
        rest_.remove_prefix(n + 1);
        append_utf8(out, code);
    }
    static void append_utf8(std::string& out, unsigned long code) {
        const auto byte = [&](unsigned long b) { out += static_cast<char>(b); };
        if (code < 0x80) return byte(code);
        if (code < 0x800) byte(0xC0 | code >> 6);
        else if (code < 0x10000) byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F));
        else
            byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)),
                byte(0x80 | (code >> 6 & 0x3F));
        byte(0x80 | (code & 0x3F));
    }

    std::string_view rest_;
    const std::string file_;
    int line_ = 1;
};

}  // namespace llmbench_program
