// How many made-up cases a test tries.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LLMBENCH_TEST_IS_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LLMBENCH_TEST_IS_SANITIZED
#endif

/// `cases`, or an eighth of them under a sanitizer: each takes ten times as long there, and what it
/// looks for is in the code that they go through, not in how many do.
constexpr int effort(int cases) {
#ifdef LLMBENCH_TEST_IS_SANITIZED
    return cases / 8;
#else
    return cases;
#endif
}
