// programs that send one load together, by an extension
#pragma once

#include "api/result.hpp"
#include "api/scenario.hpp"
#include "core/base/text.hpp"

#include <cstddef>  // size_t
#include <functional>
#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

class gate_servers;
class live_target;
class progress_meter;
struct plan;
struct repeat_data;
struct repeat_parameters;
struct settings;

/// Returns the value of a variable, "" if not set.
using variable_lookup = std::function<std::string(const char* name)>;

/// A repeat or probe of which all programs send their parts.
struct shared_repeat_order {
    run_arm variant = run_arm::candidate;
    int number = 0;
    double load = 0, answer_s = 0;  // of a probe
    double left_s = 0;              // until the time budget is used up, 0: none
};

/// The part of this program in a shared load. Either the programs of a run communicate, and the
/// first one judges, reports and has the exit code; or each is a shard without verdicts. Throws
/// std::invalid_argument if it cannot share.
class load_sharing {
public:
    /// The number of this program in the run.
    virtual int rank() = 0;
    /// Sets the action, which does not return, for when other programs are lost.
    virtual void when_lost(std::function<void(const std::string& why)> act) = 0;
    /// Whether it is a shard.
    virtual bool is_shard(const variable_lookup& look_up) const = 0;
    /// Called before a gate is prepared.
    virtual void check(const scenario& s, const settings& asked) = 0;
    /// All programs of a run do this, or all throw.
    virtual void all_or_none(const std::function<void()>& act) = 0;
    /// Reduces the plan of a gate to this program's part.
    virtual void take_part(plan& p, const scenario& s, const settings& asked,
                           std::size_t gate) = 0;
    /// Returns this program's part of a repeat, or the whole.
    virtual repeat_data sent(const plan& p, live_target& target, run_arm variant, int number,
                             int gate, const repeat_parameters& parameters) = 0;
    /// Rank 0 tells the others the next repeat, until their gate is over.
    virtual void ask(const shared_repeat_order& next) = 0;
    virtual void end_gate() = 0;
    /// Other ranks send their parts until then. Returns why they have no verdicts.
    virtual std::string follow(const plan& p, gate_servers& servers, progress_meter& meter) = 0;

protected:
    ~load_sharing() = default;
};
/// Set by the extension before static objects are made; null: not shared.
inline constinit load_sharing* load_sharing_of_program = nullptr;

inline int rank_of_program() {
    return load_sharing_of_program ? load_sharing_of_program->rank() : 0;
}
/// Whether this program is a shard of a load.
inline bool is_shard(const variable_lookup& look_up) {
    if (load_sharing_of_program) return load_sharing_of_program->is_shard(look_up);
    std::string asked;
#ifdef LLMBENCH_WITH_MPI
    asked = "LLMBENCH_WITH_MPI";
#endif
    for (const char* name : {"LLMBENCH_RANK_WAIT", "LLMBENCH_START_AT", "LLMBENCH_SHARD"})
        if (!look_up(name).empty()) asked = name;
    if (!asked.empty())
        refuse({asked, " needs llmbench_machines.hpp: include it after llmbench.hpp where "
                       "LLMBENCH_MAIN is"});
    return false;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
