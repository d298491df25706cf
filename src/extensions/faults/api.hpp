// side tasks under a load, and profiles of servers
#pragma once

#include "api/side_task.hpp"

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Defined in this extension's implementation. If it is missing, the linker shows the name.
extern const bool include_llmbench_faults_hpp_where_LLMBENCH_MAIN_is;

template <class T>
struct include_llmbench_faults_hpp {
    template <class Given>
    static Given taken(const Given& what) {
        return include_llmbench_faults_hpp_where_LLMBENCH_MAIN_is ? what : Given();
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
