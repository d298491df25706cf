// recorded sessions
#pragma once

#include "api/text.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"

namespace llmbench {
inline namespace v1 {

namespace detail {
/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const extension* const include_llmbench_sessions_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

/// A recorded model name, and the model used instead.
struct model_name {
    types::text recorded{};
    types::text asked{};
};
/// Recorded sessions of agents, each a graph of model calls: a step waits for others, then for a
/// tool, and its prompt continues an earlier one. Read from JSON lines of {"session", "step",
/// "after", "wait", "keeps", "prompt_tokens", "output_tokens"}; `llmbench convert` makes them from
/// other tools' recordings. Arrivals start sessions; users play one after the other, in the seed's
/// order. Prompts are synthetic and share prefixes as the recorded ones did.
struct in_llmbench_sessions_hpp::sessions {
    types::text path{};           ///< a file, or a folder of them
    time_span max_wait = time_span::from_seconds(60);  ///< longer waits are cut to this
    types::whole max_context = 0; ///< tokens; sessions with more are left out; 0: no limit
    types::list<model_name> models{};  ///< replacements for recorded names
    types::maybe<int> max_items{};     ///< number of sessions; default: all
    bool force_output = true;          ///< by ignore_eos; false: lengths are upper limits

    operator any_workload() const {
        return detail::extension_value{
            detail::box::make(*this),
            detail::include_llmbench_sessions_hpp_where_LLMBENCH_MAIN_is};
    }
};

}  // inline namespace v1
}  // namespace llmbench
