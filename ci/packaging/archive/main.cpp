// libllmbench_main.a: the main() of LLMBENCH_MAIN
#define LLMBENCH_ARCHIVE
#include "llmbench.hpp"

namespace llmbench {
inline namespace v1 {
namespace detail {
int doctest_main(int argc, char** argv);
}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
int main(int argc, char** argv) { return llmbench::detail::doctest_main(argc, argv); }
