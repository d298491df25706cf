// one line of records.jsonl, and the index of events.bin
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/field_json.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"
#include "core/base/fields.hpp"
#include "core/measured/repeat_fields.hpp"

#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Refuses impossible times: durations are differences of two of them. A completed answer has all
/// times, except that it may lack a second event or an answer after its reasoning.
inline void check_order(const record& r) {
    if (r.status != request_status::ok) return;
    const char* before = "scheduled_ns";
    long long at_ns = r.scheduled_ns;
    const auto follows = [&](const char* name, long long ns) {
        if (ns < at_ns || ns == 0)
            refuse({printed("%s is %lld, before its %s, which is %lld", name, ns, before, at_ns)});
        before = name;
        at_ns = ns;
    };
    follows("sent_ns", r.sent_ns);
    follows("first_token_ns", r.first_token_ns);
    if (r.second_token_ns != 0) follows("second_token_ns", r.second_token_ns);
    follows("last_token_ns", r.last_token_ns);
    follows("end_ns", r.end_ns);
    const bool is_inside = r.first_answer_ns >= r.first_token_ns && r.first_answer_ns <= r.end_ns;
    if (r.first_answer_ns != 0 && !is_inside)
        refuse({printed("first_answer_ns is %lld, not between its first_token_ns, %lld, and its "
                        "end_ns, %lld", r.first_answer_ns, r.first_token_ns, r.end_ns)});
}

/// Returns one line of records.jsonl, with its end.
inline std::string record_json(const record& r, const std::string& gate) {
    json_writer j(layout::one_line);
    j.open('{');
    write_fields(j, r, gate);
    return j.close().text() + "\n";
}
/// Reads a line as record_json writes it, without a tree. What is written otherwise is odd and left
/// to field_reader, which knows what is allowed and says what is not.
class line_reader : public field_visitor {
public:
    explicit line_reader(const json_view& line) : next_(&line + 1), line_(line) {}
    /// Once all fields are read: each member was one, so that none has a name twice.
    bool is_odd() const { return is_odd_ || read_ != items_of(line_).size(); }

    bool has(const char* name, bool) override {
        const json_view* const v = at(name);
        return v && v->is != json_view::kind::null;
    }

protected:
    bool visit_text(const field& f, std::string_view, std::string& to) override {
        const json_view* const v = find(f);
        if (!v || v->is == json_view::kind::null) return false;
        is_odd_ = is_odd_ || !v->is_string();
        to = v->text;
        return true;
    }
    void visit_flag(const field& f, bool& b) override {
        const json_view* const v = find(f);
        is_odd_ = is_odd_ || !v || v->is != json_view::kind::boolean;
        b = v && v->text == "true";
    }
    void visit_whole(const field& f, long long& n, const whole_range& of) override {
        const json_view* const v = find(f);
        if (!v) return;
        const bool is_null = v->is == json_view::kind::null && of.null != of.no_null;
        const auto read = v->is_number() ? parsed_number<long long>(v->text) : std::nullopt;
        const double about = read ? static_cast<double>(*read) : not_a_number;
        is_odd_ = is_odd_ || (!is_null && !(about >= of.least && about <= of.most));
        n = is_null ? of.null : read.value_or(0);
    }
    void visit_choice(const field& f, int& k, int count, const char* (*name)(int)) override {
        const json_view* const v = find(f);
        int i = 0;
        while (v && i < count && v->text != name(i)) ++i;
        is_odd_ = is_odd_ || !v || !v->is_string() || i == count;
        k = i;
    }

private:
    /// Members are in the order of the fields.
    const json_view* at(std::string_view name) const {
        return next_ != line_.end() && next_->name == name ? next_ : member(line_, name);
    }
    const json_view* find(const field& f) {
        const json_view* const v = at(f.name);
        is_odd_ = is_odd_ || (!v && f.is_there == presence::always);
        read_ += v != nullptr;
        if (v) next_ = v->end();
        return v;
    }
    const json_view* next_;
    const json_view& line_;
    bool is_odd_ = false;
    int read_ = 0;
};
/// Reads a line, and the name of its gate. Throws std::invalid_argument.
inline record read_record(const std::string& line, std::string& gate, json_reader& json) {
    const json_view* const view = json.read(line);
    if (!view || !view->is_object()) refuse({"it is not a JSON object"});
    line_reader lines(*view);
    record r;
    fields_of(lines, r, gate);
    if (lines.is_odd()) {
        const picojson::value v = tree_of(*view);
        document_digits digits(line);
        field_reader reader(checked_object(v, "", ""), digits, 0, true);
        r = {};
        fields_of(reader, r, gate);
    }
    check_order(r);
    return r;
}
inline record read_record(const std::string& line, std::string& gate) {
    json_reader json;
    return read_record(line, gate, json);
}

/// The offset of each record's gaps in events.bin, its length, and the hash of so many bytes.
struct event_index {
    vector<long long> offsets{};
    std::string hash{};
    long long bytes = 0;
};
inline void fields_of(field_visitor& v, event_index& i) {
    std::string file = "events.bin", unit = "microseconds, uint32 little-endian";
    v.text({"file"}, file);
    v.text({"unit"}, unit);
    v.whole({"bytes", "of the file that are of this result"}, i.bytes);
    v.text({"fnv1a_64", "of those"}, i.hash);
    v.times_after({"offsets", "of each line of records.jsonl into the file, bytes"}, i.offsets, 0,
                  {1, 0});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
