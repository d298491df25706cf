// what runs must have in common to be nights of one history
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/checked_json.hpp"
#include "core/base/field_json.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/history/line.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr const char* cohort_schema = "llmbench/cohort/1";

/// What is equal in all runs of a cohort, in words; "" where it is not known or there is none.
struct cohort {
    std::string gate{}, definitions{}, model{}, api{};
    std::string arrivals{}, workload{}, extent{}, options{}, seed{}, trace_hash{};
    std::string server{};        // its kind, "vLLM", or a simulated one's settings
    std::string accelerators{};  // "8 x NVIDIA H100 80GB HBM3"
    std::string cpu{}, cores{};  // of the server's machine; cores that it may use
    std::string machine{};       // LLMBENCH_MACHINE
};

inline void fields_of(field_visitor& v, cohort& c) {
    v.quoted({"gate"}, c.gate, false);
    v.quoted({"definitions"}, c.definitions, false);
    v.quoted({"model"}, c.model, false);
    v.quoted({"api"}, c.api, false);
    v.quoted({"arrivals"}, c.arrivals, false);
    v.quoted({"workload"}, c.workload, false);
    v.quoted({"extent"}, c.extent, false);
    v.quoted({"options"}, c.options, false);
    v.quoted({"seed"}, c.seed, false);
    v.quoted({"trace_hash"}, c.trace_hash, false);
    v.quoted({"server"}, c.server, false);
    v.quoted({"accelerators"}, c.accelerators, false);
    v.quoted({"cpu"}, c.cpu, false);
    v.quoted({"cores"}, c.cores, false);
    v.quoted({"machine"}, c.machine, false);
}

/// Goes through texts alone, in their order.
class text_reader : public field_visitor {
public:
    text_reader() : field_visitor(false) {}
    std::vector<named_text> all{};

protected:
    bool visit_text(const field& f, std::string_view t, std::string&) override {
        all.emplace_back(f.name, t);
        return false;
    }
};
inline std::vector<named_text> facts_of(const cohort& c) {
    text_reader r;
    fields_of(r, const_cast<cohort&>(c));  // nothing is assigned
    return r.all;
}

/// 16 hexadecimal digits: a hash of every fact and its name.
inline std::string id_of(const cohort& c) {
    fnv1a hash;
    for (const auto& [name, value] : facts_of(c))
        for (const std::string& part : {name, value}) {
            hash.add(part.data(), part.size());
            hash.add("", 1);  // so that no two lists of facts are the same bytes
        }
    return hash.text();
}

/// Of a machine as a sentence names it: "2 x NVIDIA L4", "AMD EPYC 7763, 4 cores", "bench-7".
inline std::string machine_text(const cohort& c) {
    std::string words = c.accelerators;
    if (words.empty() && !c.cpu.empty())
        words = c.cpu + (c.cores.empty() ? "" : ", " + c.cores + " cores");
    if (words.empty() && c.cpu.empty()) words = c.machine.empty() ? c.server : "";
    if (c.machine.empty()) return words;
    return words.empty() ? c.machine : c.machine + " (" + words + ")";
}

/// Where two cohorts differ, "cpu \"AMD EPYC 7763\", there \"AMD EPYC 9V74\"", "" where nowhere.
inline std::string first_difference(const cohort& is, const cohort& there) {
    const std::vector<named_text> a = facts_of(is), b = facts_of(there);
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].second != b[i].second)
            return joined({a[i].first, " \"", printable(a[i].second, 100), "\", there \"",
                           printable(b[i].second, 100), "\""});
    return {};
}

/// cohorts/<id>.json.
inline std::string cohort_json(const cohort& c) {
    json_writer j;
    j.open('{').key("schema").value(std::string_view(cohort_schema));
    write_fields(j, c);
    return j.close().text() + "\n";
}
/// Throws std::invalid_argument where the text is none.
inline cohort read_cohort(const std::string& json, const std::string& file) {
    picojson::value root;
    if (!parse_json(json, root) || string_member(root, "schema") != cohort_schema)
        refuse({file, " is no cohort of a history (", cohort_schema, ")"});
    cohort c;
    document_digits digits(json);
    read_fields(checked_object(root, file, ""), digits, c);
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
