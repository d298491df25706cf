// one line of records.jsonl, and the index of events.bin
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/field_json.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/text.hpp"
#include "core/base/fields.hpp"
#include "core/measured/record_fields.hpp"

#include <stdexcept>  // invalid_argument
#include <string>

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
    if (r.textless_ns > r.end_ns - r.last_token_ns)
        refuse({printed("textless_ns is %lld, and end_ns is only %lld after last_token_ns",
                        r.textless_ns, r.end_ns - r.last_token_ns)});
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
/// Reads a line, and the name of its gate. Throws std::invalid_argument.
inline record read_record(const std::string& line, std::string& gate, json_reader& json) {
    const json_view* const view = json.read(line);
    if (!view || !view->is_object()) refuse({"it is not a JSON object"});
    record r;
    field_reader lines(*view, reads::in_order);
    fields_of(lines, r, gate);
    if (!lines.has_read_all()) {  // of another version, or with a name twice: the last one counts
        r = {};
        field_reader any(*view, reads::whole);
        fields_of(any, r, gate);
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
