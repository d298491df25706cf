// extensions: one struct of hooks, and the list of those that the program has
// The header names no extension. It calls the hooks of all, or of the one that has a hook.
#pragma once

#include "api/scenario.hpp"
#include "api/text.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // find
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <exception>
#include <functional>
#include <memory>  // shared_ptr, unique_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

class execution_environment;
class extension_server;
class gate_run;
class live_target;
class past_judge;
class rehearsal;
class search_figures;
class server_switch;
struct analysis;
struct decision;
struct gate_report;
struct kept_text;
struct judging_parameters;
struct measured_gate;
struct measured_load;
struct measurements;
struct objective_columns;
struct plan;
struct planned_judging;
struct planned_task;
struct planned_traffic;
struct repeat_data;
struct report_parts;
struct run_mode;
struct settings;
struct workload_files;
enum class answers_shown : unsigned char;
enum class scenario_use : unsigned char;

/// What an extension adds to the program. A hook that it leaves out does nothing; whose values a
/// gate file has, has theirs. Hooks that check throw std::invalid_argument.
struct extension {
    const char* name;  // "history": of llmbench_history.hpp

    // ---- targets, workloads and baselines that name it in a gate file
    std::unique_ptr<extension_server> (*server)(const box& settings) = nullptr;
    /// The virtual environment of its servers; default: the machine.
    std::unique_ptr<execution_environment> (*new_environment)() = nullptr;
    /// Lets servers have one GPU in turns. Throws if the settings are unsound.
    std::unique_ptr<server_switch> (*new_switch)(const box& settings) = nullptr;
    /// Puts its read_workload and other data into `into`.
    void (*read)(const box& said, const scenario& s, std::uint64_t seed,
                 workload_files& into) = nullptr;
    bool plays_sessions = false;  // they cannot be in a mix, and both variants play the same ones

    // ---- the plan of a gate
    /// Adds its part to a plan, whose objectives and traffic are known. Throws if it is unsound.
    void (*add_to_plan)(const scenario& s, planned_traffic& sent,
                        planned_judging& judged) = nullptr;
    /// The posts of its step of `prepare`, to a server that is up.
    vector<task_step> (*posts_of_step)(const plan& p, const live_target& on) = nullptr;

    // ---- loads of up_to(...), which are searched, and objectives on a capacity
    /// What a search measures and judges. Throws if a scenario cannot be searched, or should be and
    /// is not.
    measured_load (*searched)(const scenario& s, const arrival_data& a,
                              scenario_use use) = nullptr;
    /// The scenario at one load, whose answers take so long.
    plan (*at_load)(const plan& p, double load, double answer_s) = nullptr;
    /// Probes loads until the capacity is known, or probes run out.
    void (*probe)(gate_run& g) = nullptr;
    /// Decides on capacities, and on other objectives if all of the search was at one load.
    analysis (*analyse_search)(const measurements& e, const judging_parameters& t) = nullptr;
    /// The measurements of tables and pooled numbers: those at the highest load shown to be
    /// carried, or else at the first measured one.
    measurements (*at_load_of_tables)(const measurements& e,
                                      const judging_parameters& t) = nullptr;
    /// Divides the objectives of a stored gate into capacities and what a load must hold.
    void (*divide)(const std::string& gate, const measurements& e,
                   judging_parameters& t) = nullptr;
    void (*add_search)(const plan& p, const measurements& e, const judging_parameters& t,
                       std::shared_ptr<search_figures>& into) = nullptr;

    // ---- answers compared
    /// Marks the candidate's answers that equal the baseline's, and keeps up to so many differences
    /// in its texts. `masked` makes an excerpt fit to be shown.
    void (*compare_answers)(repeat_data& mine, const repeat_data& theirs,
                            const vector<kept_text>& said, const vector<kept_text>& expected,
                            std::size_t max_shown,
                            const std::function<std::string(std::string)>& masked) = nullptr;

    // ---- counts of work
    /// Throws if a server that is up does not tell what objectives need.
    void (*check_counters)(const live_target& on, const plan& p) = nullptr;
    /// Sets what the requests of a load should have cost.
    void (*foresee)(const plan& p, const live_target& on, repeat_data& d) = nullptr;
    decision (*judge_work)(const measurements& e, const objective_columns& c,
                           const judging_parameters& t, const slo& s) = nullptr;

    // ---- tasks beside a load, and profiles after it
    /// Throws if `beside` or `on_fail` is unsound.
    vector<planned_task> (*tasks_of)(const scenario& s) = nullptr;
    /// Ends profiles that earlier gates left running on a server, or notes that they go on.
    void (*note_server)(const live_target& server, int gate,
                        vector<std::string>& notes) = nullptr;

    // ---- runs that are kept, and judge later ones
    /// Adds the past of a gate whose servers are up, if its baseline is the extension's or it is
    /// kept, and the judge of its relative objectives.
    void (*add_past)(const run_mode& mode, const live_target& candidate,
                     measured_gate& to) = nullptr;
    std::shared_ptr<past_judge> (*new_judge)() = nullptr;  // an empty one, to read fields into
    /// Writes the gates kept since the last call, of a program that began at `began_at`. Calls
    /// `lost` with the place and the reason if they cannot be written.
    void (*write_kept)(
        const std::string& began_at, const std::string& commit,
        const std::function<void(const std::string&, const std::exception&)>& lost) = nullptr;

    // ---- variables of the environment
    void (*read_settings)(const std::function<std::string(const char*)>& look_up,
                          settings& into) = nullptr;

    // ---- models in place of servers
    /// `gate`: its name in the file that models are fitted to.
    std::shared_ptr<const rehearsal> (*rehearsal_of)(const settings& asked, const std::string& gate,
                                                     const scenario& s) = nullptr;

    // ---- reports
    /// Adds what only the measurements show.
    void (*add_to_report)(const measurements& e, answers_shown show, gate_report& g) = nullptr;
    void (*show)(const gate_report& g, report_parts& into) = nullptr;
};

/// Those that are compiled in.
inline vector<const extension*>& extensions() {
    static vector<const extension*>& all = *new vector<const extension*>;  // outlives statics
    return all;
}
/// Called before static objects of other files are made, which may be gates.
inline void add(const extension& e) {
    vector<const extension*>& all = extensions();
    if (std::find(all.begin(), all.end(), &e) == all.end()) all.push_back(&e);
}

/// Calls a hook of all extensions.
template <class... Taken, class... Given>
void each(void (*extension::*hook)(Taken...), Given&&... given) {
    for (const extension* e : extensions())
        if (e->*hook) (e->*hook)(given...);
}
/// The extension that has a hook. Throws std::invalid_argument with `missing` if none has.
template <class F>
const extension& the_one_with(F* extension::*hook, const char* missing) {
    for (const extension* e : extensions())
        if (e->*hook) return *e;
    refuse({missing});
}
inline const extension& the_answers() {
    return the_one_with(&extension::compare_answers,
                        "objectives on answers need #include \"llmbench_answers.hpp\" where "
                        "LLMBENCH_MAIN is");
}
inline const extension& the_work() {
    return the_one_with(&extension::judge_work,
                        "objectives on the work of a server need #include \"llmbench_work.hpp\" "
                        "where LLMBENCH_MAIN is");
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
