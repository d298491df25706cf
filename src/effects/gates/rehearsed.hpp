// gates on models of their servers, by an extension
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "core/base/text.hpp"
#include "core/judging/measurements.hpp"
#include "core/planning/planning.hpp"
#include "core/stored/stored.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/settings.hpp"

#include <cstddef>  // size_t
#include <memory>  // shared_ptr
#include <string>

namespace llmbench {
inline namespace v0 {
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
    virtual stored_gate stored_baseline(const scenario& s, const gate_report& who,
                                        const settings& asked, scenario_use use) const = 0;
    /// Marks verdicts on a model as none: each says what it would have been.
    virtual void mark(gate_report& g, const measurements& seen) const = 0;
};

/// Carries out LLMBENCH_REHEARSE. Throws std::invalid_argument.
class rehearsals {
public:
    /// Called before anything is written.
    virtual void check_asked(const std::string& rehearse) const = 0;
    /// `gate`: its name in the file that models are fitted to.
    virtual std::shared_ptr<const rehearsal> of_gate(const settings& asked, const std::string& gate,
                                                     const scenario& s) const = 0;

protected:
    ~rehearsals() = default;
};
/// Set by the extension before static objects are made.
inline constinit const rehearsals* rehearsals_of_program = nullptr;

inline const rehearsals& known_rehearsals() {
    if (!rehearsals_of_program)
        refuse({"LLMBENCH_REHEARSE needs llmbench_simulated.hpp: include it after llmbench.hpp "
                "where LLMBENCH_MAIN is"});
    return *rehearsals_of_program;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
