// what all files of a program have in common
// Linkers know names alone, so names say what must agree: the version, the standard library, and
// doctest's version or none.
#pragma once

#include "api/doctest.hpp"
#include "api/version.hpp"

#define LLMBENCH_TEXT_(tokens) #tokens
#define LLMBENCH_NUMBER_(macro) LLMBENCH_TEXT_(macro)
#define LLMBENCH_RELEASE_                                                                          \
    "llmbench_" LLMBENCH_NUMBER_(LLMBENCH_VERSION_MAJOR) "." LLMBENCH_NUMBER_(                     \
        LLMBENCH_VERSION_MINOR) "." LLMBENCH_NUMBER_(LLMBENCH_VERSION_PATCH) LLMBENCH_VERSION_PRE
#ifdef _LIBCPP_VERSION
#define LLMBENCH_STD_ "_libcpp"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define LLMBENCH_STD_ "_old_ABI"
#else
#define LLMBENCH_STD_ ""
#endif
#ifdef LLMBENCH_NO_DOCTEST
#define LLMBENCH_MADE_AS_ LLMBENCH_RELEASE_ "_without_doctest" LLMBENCH_STD_
#else
#define LLMBENCH_MADE_AS_ LLMBENCH_RELEASE_ "_with_doctest_" DOCTEST_VERSION_STR LLMBENCH_STD_
#endif
// What `llmbench flags` prints defines LLMBENCH_PREBUILT: the implementation is in libllmbench.a.
#ifdef LLMBENCH_PREBUILT
#define LLMBENCH_BELONGS_ "libllmbench.a_and_these_headers_are_not_of_one_build_of_"
#else
#define LLMBENCH_BELONGS_ "LLMBENCH_MAIN_belongs_in_one_file_with_"
#endif

namespace llmbench {
inline namespace v1 {
namespace detail {

struct char_and_double {
    char c;
    double d;
};
static_assert(sizeof(char_and_double) > sizeof(char) + sizeof(double),
              "llmbench's files must agree on the layout of structs: compile without -fpack-struct "
              "and include llmbench.hpp where no #pragma pack is in force");

/// Defined by the implementation.
bool implementation() asm(LLMBENCH_BELONGS_ LLMBENCH_MADE_AS_);
// Before all other functions, so that a linker without the implementation says this first.
#ifndef __clang__
[[gnu::no_reorder]]
#endif
[[gnu::used]] static bool need_implementation() { return !implementation(); }

// Each file has the one name for the other, which linkers drop with the same other name: files that
// differ define it twice. Compilers name what is dropped in their own ways.
#if defined(__ELF__) && !defined(LLMBENCH_ARCHIVE)  // which serves files with doctest, or not
#ifdef __clang__
#define LLMBENCH_FILES_AGREE_ "all_files_of_a_program_have_the_same_llmbench_"
#else
#define LLMBENCH_FILES_AGREE_ "all_files_of_a_program_have_the_same_llmbench"
#endif
[[gnu::used]] inline const char made_as asm(LLMBENCH_MADE_AS_) = 0;
[[gnu::used]] extern const char files_agree asm(LLMBENCH_FILES_AGREE_)
    __attribute__((alias(LLMBENCH_MADE_AS_)));
#endif

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
