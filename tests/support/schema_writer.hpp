// The JSON Schema of what a list of fields writes: whoever goes through it here says what it is of.
#pragma once

#include "core/base/fields.hpp"
#include "core/base/json.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace schemas {
using llmbench::detail::vector;

namespace lb = llmbench::detail;
using lb::field;

/// Describes fields one a line, objects of a kind of their own under `$defs`.
class schema_writer : public lb::field_visitor {
public:
    schema_writer() { open_.push_back({}); }
    /// The whole document.
    std::string document(const std::string& title, const std::string& about) const {
        std::string all = "{\n" + line("$schema", "https://json-schema.org/draft/2020-12/schema") +
                          line("title", title) + line("description", about) +
                          inside(open_.back()) + ",\n\"$defs\": {";
        const char* comma = "\n";
        for (const auto& [kind, schema] : kinds_) {
            all += comma + lb::json_quoted(kind) + ": " + schema;
            comma = ",\n";
        }
        return indented(all + "\n}\n}\n");
    }

    void visit_flag(const field& f, bool&) override { add(f, type("boolean")); }
    void visit_number(const field& f, double&, const lb::number_range& of) override {
        add(f, R"("type": ["number", "null"])" + range(of.least, of.most));
    }
    void exact(const field& f, long long&, const lb::whole_range& of) override {
        add(f, of.null == 0 ? R"("type": ["integer", "null"])" : type("integer"));
    }
    void time_after(const field& f, long long&, long long) override { add(f, type("integer")); }
    void times_after(const field& f, vector<long long>&, long long,
                     const lb::time_groups&) override {
        add(f, list_of(type("integer")));
    }
    void numbers(const field& f, vector<double>&, const lb::number_range& of,
                 lb::layout) override {
        add(f, list_of(R"("type": ["number", "null"])" + range(of.least, of.most)));
    }
    void visit_texts(const field& f, vector<std::string>&) override {
        add(f, list_of(type("string")));
    }
    bool has(const char*, bool) override { return true; }
    bool begin(const field& f) override {
        open_.push_back({f});
        return true;
    }
    void end() override {
        const object done = open_.back();
        open_.pop_back();
        if (!done.is_element) add_object(done.of, "{" + inside(done) + "}", false);
        else element_ = "{" + inside(done) + "}";
    }
    vector<std::string> names(const vector<std::string>&) override {
        open_.back().has_any_name = true;
        return {"*"};
    }

protected:
    bool visit_text(const field& f, std::string_view t, std::string&) override {
        const bool is_schema = std::string_view(f.name) == "schema";
        add(f, is_schema ? "\"const\": " + lb::json_quoted(t) : type("string"));
        return false;
    }
    bool visit_text_or_null(const field& f, std::string_view, std::string&) override {
        add(f, R"("type": ["string", "null"])");
        return false;
    }
    void visit_whole(const field& f, long long&, const lb::whole_range& of) override {
        const bool has_null = of.null != lb::whole_range::no_null;
        add(f, (has_null ? R"("type": ["integer", "null"])" : type("integer")) +
                   range(of.least, of.most));
    }
    void visit_choice(const field& f, int&, int count, const char* (*name)(int)) override {
        std::string all;
        for (int i = 0; i < count; ++i) {
            const std::string one = lb::json_quoted(name(i));
            if (one != "\"\"" && all.find(one) == std::string::npos)
                all += (all.empty() ? "" : ", ") + one;
        }
        add(f, "\"enum\": [" + all + "]");
    }
    std::size_t begin_list(const field& f, std::size_t) override {
        lists_.push_back(f);
        return 1;
    }
    void begin_element(std::size_t) override { open_.push_back({lists_.back(), true}); }
    void end_list() override {
        add_object(lists_.back(), element_, true);
        lists_.pop_back();
    }

private:
    struct object {
        field of{};
        bool is_element = false, has_any_name = false;
        bool is_uniform = true;  // as many as there are, all of them are alike
        std::string properties{}, names{}, any{}, required{};
    };
    static std::string type(const char* name) { return "\"type\": " + lb::json_quoted(name); }
    static std::string ref(const char* kind) {
        return "\"$ref\": " + lb::json_quoted(std::string("#/$defs/") + kind);
    }
    static std::string list_of(const std::string& items) {
        return "\"type\": \"array\", \"items\": {" + items + "}";
    }
    static std::string line(const char* name, const std::string& value) {
        return lb::json_quoted(name) + ": " + lb::json_quoted(value) + ",\n";
    }
    /// Bounds that mean something: the widest ones are those of any number.
    static std::string range(double least, double most) {
        std::string t;
        if (least > -1e6) t += ", \"minimum\": " + lb::json_number(least);
        if (most < 1e6) t += ", \"maximum\": " + lb::json_number(most);
        return t;
    }
    void add(const field& f, const std::string& what) {
        object& in = open_.back();
        const std::string about =
            *f.about ? ", \"description\": " + lb::json_quoted(f.about) : std::string();
        if (in.has_any_name) {
            in.any = "{" + what + about + "}";
            return;
        }
        const std::string name = lb::json_quoted(f.name);
        const std::string all = "{" + what + about + "}";
        in.is_uniform = in.is_uniform && f.is_there != lb::presence::always &&
                        (in.names.empty() || in.any == all);
        in.any = all;
        in.names += (in.names.empty() ? "" : ", ") + name;
        in.properties += (in.properties.empty() ? "\n" : ",\n") + name + ": " + all;
        if (f.is_there == lb::presence::always)
            in.required += (in.required.empty() ? "" : ", ") + name;
    }
    void add_object(const field& f, const std::string& schema, bool is_list) {
        std::string what = schema.substr(1, schema.size() - 2);
        if (*f.kind) {
            kinds_.try_emplace(f.kind, schema);
            what = ref(f.kind);
        }
        add(f, is_list ? list_of(what) : what);
    }
    static std::string inside(const object& o) {
        if (o.has_any_name) return "\"type\": \"object\", \"additionalProperties\": " + o.any;
        if (o.is_uniform && o.names.size() > 100)
            return "\"type\": \"object\",\n\"propertyNames\": {\"enum\": [" + o.names +
                   "]},\n\"additionalProperties\": " + o.any;
        return "\"type\": \"object\",\n\"properties\": {" + o.properties + "\n}" +
               (o.required.empty() ? "" : ",\n\"required\": [" + o.required + "]");
    }
    /// Two spaces for each brace that is open at the beginning of a line.
    static std::string indented(const std::string& text) {
        std::string out;
        int depth = 0;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = text.find('\n', at);
            const std::string one = text.substr(at, end - at);
            int opened = 0;
            bool quoted = false;
            for (std::size_t i = 0; i < one.size(); ++i) {
                if (one[i] == '\\') ++i;
                else if (one[i] == '"') quoted = !quoted;
                else if (!quoted) opened += (one[i] == '{') - (one[i] == '}');
            }
            const int closed_first = !one.empty() && one[0] == '}';
            out += std::string(2 * static_cast<std::size_t>(depth - closed_first), ' ') + one + "\n";
            depth += opened;
            at = end + 1;
        }
        return out;
    }

    vector<object> open_{};
    vector<field> lists_{};
    std::map<std::string, std::string> kinds_{};
    std::string element_{};
};

}  // namespace schemas
