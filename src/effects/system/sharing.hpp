// programs that send one load together, by an extension
#pragma once

#include "api/scenario.hpp"
#include "core/base/text.hpp"
#include "core/traffic/shard.hpp"
#include "effects/system/environment.hpp"

#include <cstddef>  // size_t
#include <deque>
#include <functional>
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct slot;
struct variant_repeat;
struct plan;
struct settings;
/// The loads of one slot: of one variant, or of both at once.
using variant_repeats = std::deque<variant_repeat>;

/// The part of this program in a load. It sends the whole, unless an extension shares the load:
/// either the programs of a run communicate, and the first one judges, reports and has the exit
/// code; or each is a shard without verdicts. Throws std::invalid_argument if it cannot share.
class load_sharing {
public:
    /// The number of this program in the run.
    virtual int rank() { return 0; }
    /// This program's part of a load, if verdicts are on all parts.
    virtual load_shard part() { return {}; }
    /// Sets the action, which does not return, for when other programs are lost.
    virtual void when_lost(std::function<void(const std::string& why)>) {}
    /// Called before a gate is prepared.
    virtual void check(const scenario&, const settings&) {}
    /// All programs of a run do this, or all throw.
    virtual void all_or_none(const std::function<void()>& act) { act(); }
    /// Reduces the plan of a gate to this program's part.
    virtual void take_part(plan&, const scenario&, const settings&, std::size_t /*gate*/) {}
    /// Sends its part of a slot by `load()`. Rank 0 tells the others to send theirs.
    virtual void send(const slot&, variant_repeats&, const std::function<void()>& load) { load(); }
    virtual void end_gate() {}
    /// Other ranks run their parts of slots until then. Returns why they have no verdicts.
    virtual std::string follow(const std::function<void(const slot&)>& /*run*/) { return {}; }
};
inline constinit load_sharing sends_whole_loads{};
inline constinit load_sharing* sharing_of_program = &sends_whole_loads;  // set by an extension
inline load_sharing& the_sharing() { return *sharing_of_program; }

inline int rank_of_program() { return the_sharing().rank(); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
