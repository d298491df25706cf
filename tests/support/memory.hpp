// What the program holds of the heap.
#pragma once

#include <cstddef>

#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace memory {

/// Bytes that were asked for and not given back.
inline std::size_t held() {
#ifdef __APPLE__
    malloc_statistics_t all{};
    ::malloc_zone_statistics(nullptr, &all);
    return all.size_in_use;
#else
    return ::mallinfo2().uordblks;
#endif
}

/// Whether `held` knows: a sanitizer's own allocator tells the C library nothing.
inline bool is_counted() {
    return held() > 0;
}

}  // namespace memory
