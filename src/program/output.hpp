// whether what the program printed has arrived
#pragma once

#include <cstdio>
#include <iostream>  // cout

namespace llmbench_program {

/// The exit code of a verb that may have printed in vain. `has_reports`: files have it all, too.
inline int code_with_output(int code, bool has_reports) {
    if (std::cout.flush() && std::ferror(stdout) == 0) return code;
    std::fputs("llmbench: standard output could not be written, so it is not whole\n", stderr);
    return code == 0 && !has_reports ? 3 : code;
}

}  // namespace llmbench_program
