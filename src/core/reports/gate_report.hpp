// gates in reports, and the sections of verbs over several gates
#pragma once

#include "api/result.hpp"
#include "api/text.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/judging/calibrated.hpp"
#include "core/judging/measurements.hpp"
#include "core/judging/outcome.hpp"
#include "core/judging/judging_parameters.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/target_facts.hpp"
#include "core/figures/shown_answers.hpp"
#include "core/figures/gate_figures.hpp"

#include <cstddef>  // size_t
#include <string>
#include <utility>  // pair
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// A request to the server's profiler, by HTTP or by a command.
struct profile_step {
    std::string asked{};  // "POST /start_profile", or the command; "" if not sent
    std::string came{};   // "answered HTTP 200", "exited with status 0", or why neither
    std::string said{};   // the answer, or the last line that the command wrote
    bool heard = false;   // it was answered, or the command ended
    bool done = false;    // and that with success
};
/// The texts of servers and commands in it are printable, and without secrets.
struct taken_profile {
    bool wanted = false;
    std::string none{};  // why there is none, "" if there is one
    bool goes_on = false;  // started, and not known to have ended
    profile_step start{}, stop{};
    double load_s = 0;  // under load; `requests` were sent or cut off
    std::size_t requests = 0;
    std::string files{};  // its place, if that is known
};

inline std::string step_text(const profile_step& s) {
    return s.asked + " " + s.came + (s.said.empty() ? "" : ": " + s.said);
}
/// Returns one sentence, "" if no profile was wanted.
inline std::string profile_text(const taken_profile& t) {
    if (!t.wanted) return {};
    if (!t.none.empty())
        return "no profile: " + t.none +
               (t.goes_on ? "; it may go on, and slows down whatever this server does next" : "");
    return "profile: " + time_text(t.load_s) + printed(" of the same load, %zu requests; ",
                                                       t.requests) +
           step_text(t.start) + "; " + step_text(t.stop) +
           (t.files.empty() ? "" : "; " + t.files);
}

/// The result of a rehearsal, a gate on a model of its server.
struct rehearsal_report {
    struct objective {
        std::string slo{};
        verdict would_be = verdict::inconclusive;
        double shows_from = not_a_number;    // a true value that fails in nine runs of ten
        double inconclusive = not_a_number;  // a share of the runs
    };
    std::string model{};  // "" if it was no rehearsal
    std::vector<objective> objectives{};  // in the order of the verdicts
};

/// One gate as every report shows it: measured, judged, all figures computed. It has no requests,
/// so that those of a gate can be freed.
struct gate_report {
    plan what{};
    target_facts target{};
    target_facts baseline{};
    judging_parameters judged_by{};
    load_conditions under{};                // the load of the measurements
    gate_figures figures{};
    std::vector<slo_verdict> verdicts{};
    self_check_t self_check{};
    std::vector<calibrated> calibration{};  // of a calibration run
    std::string refusal{};                  // why nothing was measured
    taken_profile profile{};                // of the server of a failed gate
    std::string beside{};                   // the reason for a failure that is no objective's
    gate_outcome outcome = gate_outcome::unfinished;
    std::vector<shown_answer> answers{};    // for objectives on answers that did not pass
    rehearsal_report rehearsal{};
    bool undecided_fails = false;           // LLMBENCH_INCONCLUSIVE=fail
    double took_s = 0;                      // including the start and stop of servers
    std::string not_kept{};                 // why the history does not have it
};

struct environment_facts {
    std::string os{}, cpu{}, compiler{};
    int cores = 0;
    std::string started_at{};
    std::string commit{};  // of the tested software, "" if unknown
    std::string program{};  // as it was called
};

/// A verb's part of the program's files, beside the gates. All its texts are escaped already.
class program_section {
public:
    program_section() = default;
    program_section(const program_section&) = delete;
    program_section& operator=(const program_section&) = delete;
    virtual ~program_section() = default;
    /// The lists in result.json.
    virtual void fields(field_visitor& v) = 0;
    /// The tables in summary.md, each as a whole or not at all.
    virtual std::vector<std::string> tables(const std::vector<gate_report>& gates) const = 0;
    /// The HTML above the gates.
    virtual std::string html(const std::vector<gate_report>& gates) const = 0;
    /// Whether it draws this gate over its load, so that the page does not.
    virtual bool draws(const gate_report& g) const = 0;
    /// Names and contents of more files.
    virtual std::vector<std::pair<std::string, std::string>> files(
        const std::vector<gate_report>& gates) const = 0;
};
using all_sections = std::vector<program_section*>;

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
