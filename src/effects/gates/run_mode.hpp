// the environment's settings for a gate
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "core/base/extension.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/judging/measurements.hpp"
#include "core/traffic/plan.hpp"
#include "core/planning/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/target_facts.hpp"
#include "core/stored/calibration.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/gate_report.hpp"
#include "core/bodies/result_data.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/files.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/sharing.hpp"
#include "effects/targets/live_target.hpp"

#include <filesystem>  // a baseline, and where reports go
#include <memory>  // shared_ptr
#include <optional>
#include <stdexcept>  // runtime_error
#include <string>
#include <system_error>  // error_code
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The models that replace the servers of one gate.
class rehearsal {
public:
    virtual ~rehearsal() = default;
    /// Describes the models.
    virtual std::string model() const = 0;
    /// Returns a target for each server; they differ only in their random numbers.
    virtual any_target stand_in(std::size_t server) const = 0;
    /// Returns a stored baseline as another such model would have left it.
    virtual stored_gate stored_baseline(const scenario& s, const gate_identity& who,
                                        const settings& asked, scenario_use use) const = 0;
    /// Marks verdicts on a model as none: each says what it would have been.
    virtual void mark(gate_report& g, const measurements& seen) const = 0;
};

inline const extension& the_rehearsals() {
    return the_one_with(&extension::rehearsal_of,
                        "LLMBENCH_REHEARSE needs llmbench_simulated.hpp: include it after "
                        "llmbench.hpp where LLMBENCH_MAIN is");
}

/// Refuses a file that the rehearsal's own reports would overwrite.
inline void check_stays(const std::string& rehearse) {
    const std::filesystem::path file = rehearse;
    std::error_code none;
    const auto folder = [&](const std::filesystem::path& p) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(p, none), none);
    };
    if (std::filesystem::is_regular_file(file, none) &&
        folder(file).parent_path() == folder(report_directory()))
        refuse({"LLMBENCH_REHEARSE is ", printable(rehearse, 200), ", which the rehearsal's own "
                "reports would be written over: name another LLMBENCH_REPORT_DIR"});
}

/// What a run does with the measurements of a gate. An appended gate is judged.
enum class run_kind : unsigned char {
    judge,
    calibrate,
    write_baseline,
    send_shard,  // of a load that several programs send
    append       // to a history
};

/// The environment's settings for a gate, except those of verdicts.
struct run_mode : known_noise {
    run_kind kind = run_kind::judge;
    double time_budget_s = 0;
    bool ends_at_first_miss = false;  // also of gates that do not ask for it
    long long deadline_ns = 0;  // 0: none
    std::string no_noise{};  // why a calibration that is named has none
    std::shared_ptr<const rehearsal> model{};  // of all servers, in a rehearsal
    answers_shown answers = answers_shown::open;
    std::shared_ptr<const stored_gate> stored{};  // of a stored baseline's file, or of its model

    /// `began_ns`: start of LLMBENCH_TIME_BUDGET, on the gate's clock.
    void begin(long long began_ns) {
        if (time_budget_s > 0) deadline_ns = began_ns + ns_of(time_budget_s);
    }
    bool appends() const { return kind == run_kind::append; }
    bool judges() const { return kind == run_kind::judge || appends(); }
    /// The repeats that are measured whatever they show (plan_use).
    std::optional<int> all_repeats(const settings& asked) const {
        if (kind == run_kind::calibrate) return asked.calibrate;
        return kind == run_kind::write_baseline ? std::optional<int>(0) : std::nullopt;
    }
};
inline run_kind kind_of_run(const any_baseline& baseline, const settings& asked) {
    const bool writes = asked.write_baseline && baseline.is_stored();
    if (asked.calibrate != 0 && writes)
        refuse({"LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are both set: do one after the "
                "other"});
    return asked.calibrate != 0 ? run_kind::calibrate
           : writes             ? run_kind::write_baseline
           : asked.is_shard     ? run_kind::send_shard
                                : run_kind::judge;
}
inline void read_noise(run_mode& into, const std::string& file, const std::string& gate) {
    if (file.empty()) return;
    gate_calibration known =
        read_calibration(file_content(file, "LLMBENCH_CALIBRATION"), file, gate);
    into.noise = std::move(known.noise);
    into.noise_repeats = known.repeats;
    into.no_noise = std::move(known.why_none);
    if (!into.noise.empty()) into.noise_file = file;
}
/// Its time has not begun yet. `gate`: its name in the file of a calibration.
inline run_mode mode_of(const any_baseline& baseline, const std::string& gate,
                        const settings& asked) {
    run_mode mode;
    mode.kind = kind_of_run(baseline, asked);
    mode.answers = asked.answers;
    mode.time_budget_s = asked.time_budget_s;
    mode.ends_at_first_miss = asked.ends_at_first_miss;
    read_noise(mode, asked.calibration, gate);
    return mode;
}

/// The judging parameters of a gate, without a stored baseline.
inline judging_parameters parameters_asked(const plan& p, const run_mode& mode) {
    judging_parameters t;
    t.slos = p.judged->slos;
    t.objectives_held = p.judged->search.objectives_held;
    t.rule = p.judged->rule;
    t.rule.is_single_analysis = mode.kind == run_kind::calibrate;  // numbers of all its repeats
    static_cast<known_noise&>(t) = mode;
    return t;
}
inline void check_images(const planned_traffic& p, const api_traits& api) {
    if (!api.takes_images && asks_about_images(p))
        refuse({"workload has images, and ", api.name, " takes none: use openai_chat"});
}

inline std::string stored_field(const std::string& file) {
    return "baseline is stored(\"" + file + "\"), which LLMBENCH_WRITE_BASELINE=1 would write";
}
/// Returns the gate in the file of a plan's stored baseline.
inline stored_gate stored_gate_of(const plan& p) {
    const std::string file = str(p.judged->stored.file);
    return read_stored_gate(file_content(file, stored_field(file)), file, p.name);
}
/// Finds a file that cannot be written before the load, not after it.
inline void check_writable(const std::string& file) {
    const std::filesystem::path path = file;
    std::error_code ignored;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
    bool writable = !std::filesystem::is_directory(path, ignored) && path.has_filename();
    if (writable) try {
            drafted_files().add(path, "");  // a draft, removed with the others
        } catch (const std::runtime_error&) {
            writable = false;
        }
    if (!writable) refuse({"baseline is stored(\"", file, "\"): the file cannot be written"});
}
/// A stored baseline belongs to one gate: another one in the file would be lost. `written`: the
/// gate of this program that wrote the file, "" if none.
inline void check_own_baseline(const plan& p, const std::string& written) {
    const std::string file = str(p.judged->stored.file);
    check_writable(file);
    const auto refuse_for = [&](const std::string& other) {
        refuse({"baseline is stored(\"", file, "\"), which holds the gate \"",
                printable(other, 200), "\": each gate writes a file of its own, give \"", p.name,
                "\" another one or remove that file"});
    };
    if (!written.empty()) refuse_for(written);
    std::error_code none;
    if (!std::filesystem::exists(file, none)) return;
    const std::string json = file_content(file, stored_field(file));
    if (json.empty()) return;
    json_reader reader;
    const json_view* const root = reader.read(json);
    if (!root || !string_member(*root, "schema").starts_with("llmbench/result/"))
        refuse({"baseline is stored(\"", file, "\"), which is no result of llmbench and would be "
                "lost: name another file"});
    for (const json_view& g : array_member(*root, "gates"))
        if (const std::string other(string_member(g, "name"));
            unnumbered(other) != unnumbered(p.name))
            refuse_for(other);
}
/// Adds what an extension knows of earlier runs, and a stored baseline. Refuses one that is not
/// comparable with this run.
inline void add_earlier_runs(measured_gate& m, const live_target& candidate,
                             const run_mode& mode) {
    const plan& p = m.what;
    const bool judges = rank_of_program() == 0;
    if (judges) each(&extension::add_past, mode, candidate, m);
    if (!p.judged->has_stored_baseline) return;
    const std::string file = str(p.judged->stored.file);
    m.baseline.kind = target_kind::stored;
    m.baseline.url = file;
    if (mode.kind == run_kind::write_baseline) return;
    if (!mode.model) check_comparable(*mode.stored, file, p, m.target);
    m.judged_by.stored = {file, p.judged->stored.day_to_day.value, mode.stored->statistics};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
