// the hooks of counts of work
#pragma once

#include "core/base/extension.hpp"
#include "extensions/work/foresee.hpp"
#include "extensions/work/core/judged.hpp"
#include "extensions/work/core/planned.hpp"
#include "extensions/work/core/reports.hpp"
#include "extensions/work/core/words.hpp"

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constinit const extension work_counted{.name = "work",
                                              .add_to_plan = add_counts_to_plan,
                                              .posts_of_step = posts_of_prime,
                                              .check_counters = check_counters,
                                              .foresee = foresee,
                                              .judge_work = judge_work,
                                              .show = show_work};
constinit const extension* const include_llmbench_work_hpp_where_LLMBENCH_MAIN_is =
    &work_counted;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_counts_of_work() { add(work_counted); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
