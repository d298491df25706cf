// libllmbench.a: the names that files ask for which belong to this build (src/api/linking.hpp). A file
// of another one misses its name, and that is the sentence that the linker prints.
#define LLMBENCH_ARCHIVE
#include "llmbench.hpp"

#define WITH_DOCTEST LLMBENCH_RELEASE_ "_with_doctest_" DOCTEST_VERSION_STR LLMBENCH_STD_
#define WITHOUT LLMBENCH_RELEASE_ "_without_doctest" LLMBENCH_STD_
#define PREBUILT "libllmbench.a_and_these_headers_are_not_of_one_build_of_"
#define OF_HEADER "LLMBENCH_MAIN_belongs_in_one_file_with_"

bool prebuilt_with_doctest() asm(PREBUILT WITH_DOCTEST);
bool prebuilt_without_doctest() asm(PREBUILT WITHOUT);
bool header_with_doctest() asm(OF_HEADER WITH_DOCTEST);
bool header_without_doctest() asm(OF_HEADER WITHOUT);

bool prebuilt_with_doctest() { return true; }
bool prebuilt_without_doctest() { return true; }
bool header_with_doctest() { return true; }
bool header_without_doctest() { return true; }
