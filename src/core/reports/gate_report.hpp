// gates in reports, and their headlines
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/metric/table.hpp"
#include "core/judging/decision.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/plan_text.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/gate_figures.hpp"
#include "core/reports/machine_facts.hpp"
#include "core/reports/profile.hpp"

#include <algorithm>  // find
#include <cstddef>  // size_t
#include <memory>  // shared_ptr
#include <string>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The result of a rehearsal, a gate on a model of its server.
struct rehearsal_report {
    struct objective {
        std::string slo{};
        verdict would_be = verdict::inconclusive;
        double shows_from = not_a_number;    // a true value that fails in nine runs of ten
        double inconclusive = not_a_number;  // a share of the runs
    };
    std::string model{};  // "" if it was no rehearsal
    vector<objective> objectives{};  // in the order of the verdicts
};

/// What a gate was to do, and on which servers.
struct gate_facts {
    plan what{};
    target_facts target{}, baseline{};
    vector<accelerator_facts> accelerators{};  // of the target, after its load
    judging_parameters judged_by{};
    std::shared_ptr<taken_profile> profile{};  // of the server of a failed gate
    std::string profile_text() const { return profile ? detail::profile_text(*profile) : ""; }
};

/// A question, the expected answer (or the baseline's) and the answers given.
struct shown_answer {
    std::string id{};  // of the first request that got the answer
    std::string is{};  // right, wrong, cut off, unreadable or different
    std::string question{}, wanted{}, read{}, answer{}, baseline_answer{};
    double same_characters = not_a_number;  // before the first difference
    long long times = 0, asked = 0;  // repeats with this result, and repeats that asked
};

/// One gate as every report shows it: measured, judged, all figures computed. It has no requests,
/// so that those of a gate can be freed.
struct gate_report : gate_facts {
    load_conditions under{};                // the load of the measurements
    gate_figures figures{};
    vector<slo_verdict> verdicts{};
    self_check_t self_check{};
    vector<calibrated> calibration{};  // of a calibration run
    std::string refusal{};                  // why nothing was measured
    std::string beside{};                   // the reason for a failure that is no objective's
    gate_outcome outcome = gate_outcome::unfinished;
    vector<shown_answer> answers{};    // for objectives on answers that did not pass
    rehearsal_report rehearsal{};
    /// Whether a model answered in the place of every server.
    bool is_modelled() const { return !rehearsal.model.empty(); }
    bool undecided_fails = false;           // LLMBENCH_INCONCLUSIVE=fail
    double took_s = 0;                      // including the start and stop of servers
    std::string not_kept{};                 // why the history does not have it
    vector<std::string> notes{};            // on the load and the servers, known before it is sent
};
/// What extensions show of a gate.
struct report_parts {
    vector<std::string> notes{};       // on its load
    vector<std::string> tasks[2]{};    // beside the load, of the candidate and the baseline
    std::string results{}, details{};  // HTML of the page, above the numbers and below them
};
inline report_parts parts_of_extensions(const gate_report& g) {
    report_parts all;
    each(&extension::show, g, all);
    return all;
}
inline vector<std::string> notes_before(const gate_facts& g, const load_conditions& under) {
    vector<std::string> notes = under.notes;
    for (const target_facts* f : {&g.target, &g.baseline})
        for (const std::string& note : f->notes)
            if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    for (const std::string& note : load_notes(*g.what.sent)) notes.push_back(note);
    return notes;
}

struct environment_facts {
    std::string os{}, cpu{}, compiler{};
    int cores = 0;
    machine_facts machine{};
    std::string started_at{};
    std::string commit{};  // of the tested software, "" if unknown
    std::string program{};  // as it was called
    std::string call{};     // with its arguments, for a shell and without secrets
};

/// A verb's part of the program's files, beside the gates. All its texts are escaped already.
class program_section : not_copied {
public:
    virtual ~program_section() = default;
    /// The lists in result.json.
    virtual void fields(field_visitor& v) = 0;
    /// The tables in summary.md, each as a whole or not at all.
    virtual vector<std::string> tables(const vector<gate_report>& gates) const = 0;
    /// The HTML above the gates.
    virtual std::string html(const vector<gate_report>& gates) const = 0;
    /// Names and contents of more files.
    virtual vector<std::pair<std::string, std::string>> files(
        const vector<gate_report>& gates) const = 0;
};
using all_sections = vector<program_section*>;

/// Returns "" if no file has the gate.
inline std::string place_of(const gate_identity& g) {
    return g.line > 0 ? filled("{file}:{line}", {{"file", g.file}, {"line", g.line}}) : "";
}
/// The outcome of a gate, with several kinds of pass; exit codes have only the outcome. The most
/// urgent is first.
enum class headline : unsigned char {
    failed, refused, invalid, inconclusive, skipped, calibrated, rehearsed, measured, passed
};
inline const char* to_string(headline h) {
    return name_at({"failed", "refused", "invalid", "inconclusive", "skipped", "calibrated",
                    "rehearsed", "measured", "passed"}, h);
}
/// Returns the verdict whose colour a headline has.
inline verdict verdict_like(headline h) {
    if (h == headline::failed) return verdict::fail;
    if (h == headline::inconclusive) return verdict::inconclusive;
    if (h == headline::passed) return verdict::pass;
    const bool has_no_data = h == headline::refused || h == headline::invalid;
    return has_no_data ? verdict::invalid : verdict::skipped;
}

/// Whether a user wrote it and it can fail the gate. Nobody writes the guard on errors.
inline bool is_own_objective(const slo_verdict& v) {
    const bool is_guard =
        v.objective.statistic.metric == metric_id::error_rate && v.objective.at.line == 0;
    return !v.objective.is_advisory && !is_guard;
}
inline std::size_t count_of(const gate_report& g, verdict outcome) {
    std::size_t n = 0;
    for (const slo_verdict& v : g.verdicts) n += v.outcome == outcome && !v.objective.is_advisory;
    return n;
}

inline headline headline_of(const gate_report& g) {
    if (g.outcome == gate_outcome::failed) return headline::failed;
    if (g.outcome == gate_outcome::refused) return headline::refused;
    if (g.outcome == gate_outcome::invalid || g.outcome == gate_outcome::unfinished)
        return headline::invalid;
    if (!g.calibration.empty()) return headline::calibrated;
    if (g.is_modelled()) return headline::rehearsed;
    if (count_of(g, verdict::inconclusive) > 0) return headline::inconclusive;
    if (g.outcome == gate_outcome::skipped) return headline::skipped;
    const bool shows_any = any_of(g.verdicts, is_own_objective);
    return shows_any ? headline::passed : headline::measured;
}
inline std::size_t count_of(const vector<gate_report>& gates, headline h) {
    std::size_t n = 0;
    for (const gate_report& g : gates) n += headline_of(g) == h;
    return n;
}
inline vector<const gate_report*> most_urgent_first(const vector<gate_report>& gates) {
    vector<const gate_report*> sorted;
    for (int h = 0; h <= static_cast<int>(headline::passed); ++h)
        for (const gate_report& g : gates)
            if (headline_of(g) == static_cast<headline>(h)) sorted.push_back(&g);
    return sorted;
}
/// "inconclusive, 1 of 4 objectives"
inline std::string headline_text(const gate_report& g) {
    const headline h = headline_of(g);
    if (h != headline::inconclusive) return to_string(h);
    const std::size_t open = count_of(g, verdict::inconclusive);
    std::size_t all = 0;
    for (const slo_verdict& v : g.verdicts)
        all += is_own_objective(v) ||
               (v.outcome == verdict::inconclusive && !v.objective.is_advisory);
    return filled("inconclusive, {open} of {all} objective{all:s}", {{"open", open}, {"all", all}});
}

/// Returns the note on a rehearsed gate.
inline std::string rehearsal_text(const gate_report& g) {
    return filled(
        "a REHEARSAL on {model}, in virtual time: nothing was sent, and nothing is shown of any "
                  "server; on one it takes {took:t}, and what it takes to start",
                  {{"model", g.rehearsal.model}, {"took", g.took_s}});
}
/// Returns the same for a whole program, "" if it rehearsed nothing.
inline std::string rehearsal_of_all(const vector<gate_report>& gates) {
    std::size_t n = 0;
    double took_s = 0;
    for (const gate_report& g : gates) {
        if (!g.is_modelled()) continue;
        ++n;
        if (g.refusal.empty()) took_s += g.took_s;
    }
    return filled(
        "[{gates?}REHEARSAL of {gates} gate{gates:s} on a model: nothing was sent, and nothing is "
                  "shown of any server; on servers it takes {took:t}, and what they take to start]",
                  {{"gates", n}, {"took", took_s}});
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
