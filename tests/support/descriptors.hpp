// Tests that take all descriptors away.
#pragma once

/// UBSan looks at objects through a pipe, so that without a descriptor it takes each for a broken one.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
#define TESTS_NEED_DESCRIPTORS
#endif
#endif
#ifdef TESTS_NEED_DESCRIPTORS
inline constexpr bool a_sanitizer_needs_descriptors = true;
#else
inline constexpr bool a_sanitizer_needs_descriptors = false;
#endif
