// extensions that keep measurements of gates, and compare later ones with them
#pragma once

#include "api/scenario.hpp"
#include "core/judging/decision.hpp"
#include "core/planning/plan.hpp"
#include "core/planning/target_facts.hpp"

#include <exception>
#include <functional>
#include <memory>  // shared_ptr
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

class live_target;
struct run_mode;

/// The past of one gate whose servers are up.
class gate_past {
public:
    virtual ~gate_past() = default;
    /// Returns the judge of the gate's relative objectives, null if it is not the extension's.
    virtual std::shared_ptr<const past_judge> judge() const = 0;
};

/// One for the program. Its baselines are of the type extension_baseline; LLMBENCH_HISTORY asks it
/// to keep gates, whatever their baseline is.
class past_extension {
public:
    /// Throws std::invalid_argument if its baseline is unsound.
    virtual void check(const scenario& s) const = 0;
    /// Whether its variables ask to keep gates. Throws std::invalid_argument.
    virtual bool keeps(const std::function<std::string(const char*)>& look_up) const = 0;
    /// Changes a gate that is kept, before it is planned.
    virtual scenario as_kept(const scenario& s) const = 0;
    virtual std::shared_ptr<const gate_past> of_gate(const plan& p, const live_target& candidate,
                                                     const target_facts& facts,
                                                     const run_mode& mode) const = 0;
    /// Keeps a judged gate until the reports are written. Returns why it does not, "" if it does.
    /// `stopped`: why its repeats ended early, "" if they did not.
    virtual std::string keep(const gate_report& g, const gate_past* of,
                             const std::string& stopped) const = 0;
    /// Writes the gates kept since the last call, of a program that began at `began_at`. Calls
    /// `lost` with the place and the reason if they cannot be written.
    virtual void write_kept(
        const std::string& began_at, const std::string& commit,
        const std::function<void(const std::string&, const std::exception&)>& lost) const = 0;

protected:
    ~past_extension() = default;
};
/// The extension that is compiled in, or null.
inline constinit const past_extension* known_past = nullptr;

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
