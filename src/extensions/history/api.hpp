// the main branch's runs as a baseline
#pragma once

#include "api/target.hpp"
#include "api/text.hpp"
#include "api/units.hpp"

namespace llmbench {
inline namespace v1 {

namespace detail {
/// If this is not found, the file with LLMBENCH_MAIN or LLMBENCH_IMPLEMENT lacks the header in the
/// name.
extern const extension* const include_llmbench_history_hpp_where_LLMBENCH_MAIN_is;
}  // namespace detail

struct history_baseline {
    types::text folder{};
    fraction run_to_run{0};
    operator any_baseline() const {
        return detail::extension_value{
            detail::box::make(*this), detail::include_llmbench_history_hpp_where_LLMBENCH_MAIN_is};
    }
};
/// The main branch's runs (the last one of each UTC date) as a baseline: LLMBENCH_HISTORY=append adds them to the
/// folder. A run is compared with them and the spread between them, from 3 on. With
/// `run_to_run`, a relative standard deviation up to 50 %, the first one is enough; it counts
/// until there are ten, and nothing below twice that fails meanwhile. The runs also give the noise
/// of repeats: objectives without a baseline need fewer repeats.
inline history_baseline history(const types::text& folder = "perf-history",
                                fraction run_to_run = fraction(0)) {
    return {folder, run_to_run};
}

}  // inline namespace v1
}  // namespace llmbench
