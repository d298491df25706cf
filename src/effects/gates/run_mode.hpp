// what the environment asks of a gate
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/judging/terms.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/stored/calibration.hpp"
#include "core/stored/stored.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/files.hpp"
#include "effects/system/settings.hpp"
#include "effects/gates/rehearsed.hpp"

#include <filesystem>  // error_code
#include <fstream>  // ifstream, ofstream
#include <iterator>  // istreambuf_iterator
#include <map>
#include <optional>
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the environment asks of a gate beside its verdicts.
struct run_mode {
    int calibrate = 0;  // repeats, 0: judge
    bool write_baseline = false;
    double time_budget_s = 0;
    long long deadline_ns = 0;  // 0: none
    std::map<std::string, double> noise{};
    std::string noise_file{};
    bool is_shard = false;
    history_settings history{};  // of a gate that is added to one, or held against it
    std::optional<rehearsal_model> model{};  // of all servers, in a rehearsal
    stored_gate stored{};  // what a stored baseline's file tells, or would

    std::optional<engine> stand_in(run_arm a) const {
        return model ? std::optional(model->of(a)) : std::nullopt;
    }
    bool appends() const { return history.appends(); }
    /// Whether its server's and machine's facts tell which nights are like it.
    bool compares(const plan& p) const { return (appends() || p.judged->has_history) && !model; }
    bool judges() const { return calibrate == 0 && !write_baseline && !is_shard; }
};
/// `began_ns`: when what LLMBENCH_TIME_BUDGET is of began, on the clock that the gate goes by.
inline run_mode mode_of(const plan& p, const settings& asked, long long began_ns) {
    run_mode mode;
    mode.calibrate = asked.calibrate;
    mode.write_baseline = asked.write_baseline && p.judged->has_stored_baseline;
    if (mode.calibrate != 0 && mode.write_baseline)
        refuse({"LLMBENCH_CALIBRATE and LLMBENCH_WRITE_BASELINE are both set: do one after the "
                "other"});
    if (mode.calibrate != 0 && p.judged->rule.traffic != replayed)
        refuse({"LLMBENCH_CALIBRATE: traffic is fresh, what is calibrated is the noise between "
                "repeats of the same traffic"});
    mode.is_shard = !asked.shard.is_whole();
    mode.time_budget_s = asked.time_budget_s;
    if (mode.time_budget_s > 0) mode.deadline_ns = began_ns + ns_of(mode.time_budget_s);
    if (!asked.calibration.empty())
        mode.noise = read_calibration(file_content(asked.calibration, "LLMBENCH_CALIBRATION"),
                                      asked.calibration, p.name);
    if (!mode.noise.empty()) mode.noise_file = asked.calibration;
    return mode;
}

/// What a gate's evidence is held against, but for a stored baseline.
inline terms terms_asked(const plan& p, const run_mode& mode) {
    terms t;
    t.slos = p.judged->slos;
    t.objectives_held = p.judged->search.objectives_held;
    t.rule = p.judged->rule;
    t.noise = mode.noise;
    t.noise_file = mode.noise_file;
    return t;
}
inline void check_images(const planned_traffic& p, const api_traits& api) {
    if (!api.takes_images && asks_about_images(p))
        refuse({"workload has images, and ", api.name, " takes none: use openai_chat"});
}

inline std::string stored_field(const std::string& file) {
    return "baseline is stored(\"" + file + "\"), which LLMBENCH_WRITE_BASELINE=1 would write";
}
/// What the file of a plan's stored baseline has of its gate.
inline stored_gate stored_gate_of(const plan& p) {
    const std::string file = str(p.judged->stored.file);
    return read_stored_gate(file_content(file, stored_field(file)), file, p.name);
}
/// A stored baseline is one gate's: another one's there would be lost. `written`: the gate of
/// this program that wrote the file, "" where none did.
inline void check_own_baseline(const std::string& file, const std::string& gate,
                               const std::string& written) {
    const auto refuse_for = [&](const std::string& other) {
        refuse({"baseline is stored(\"", file, "\"), which holds the gate \"",
                printable(other, 200), "\": each gate writes a file of its own, give \"", gate,
                "\" another one or remove that file"});
    };
    if (!written.empty()) refuse_for(written);
    std::ifstream in(file, std::ios::binary);
    const std::string json{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    picojson::value root;
    if (!in || !parse_json(json, root)) return;
    for (const picojson::value& g : array_member(root, "gates"))
        if (const std::string other = string_member(g, "name");
            unnumbered(other) != unnumbered(gate))
            refuse_for(other);
}
/// A file that cannot be written is told of before the load, not after it.
inline void check_writable(const std::string& file) {
    const std::filesystem::path path = file;
    std::error_code ignored;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
    const std::filesystem::path draft = file + ".tmp";
    const bool writable = !std::filesystem::is_directory(path, ignored) && path.has_filename() &&
                          static_cast<bool>(std::ofstream(draft));
    std::filesystem::remove(draft, ignored);
    if (!writable)
        refuse({"baseline is stored(\"", file, "\"): the file cannot be written"});
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
