// One fuzzer; LLMBENCH_FUZZ_TARGET says which.
#include "targets.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::LLMBENCH_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
    return 0;
}
