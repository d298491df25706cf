// bytes of files: whether they are text, base64, a hash
#pragma once

#include "core/base/text.hpp"

#include <cstdint>  // uint32_t, uint64_t
#include <cstring>  // memcpy
#include <string>
#include <string_view>
#include <utility>  // pair

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Why a file that begins like this cannot be read as text: "this is gzip ..."; "" if it may be.
inline std::string why_no_text(std::string_view start) {
    using namespace std::string_view_literals;
    for (const auto& [magic, name] :
         {std::pair{"\x1F\x8B"sv, "gzip"}, std::pair{"\x28\xB5\x2F\xFD"sv, "zstd"},
          std::pair{"BZh91AY"sv, "bzip2"}, std::pair{"\xFD" "7zXZ"sv, "xz"},
          std::pair{"PK\x03\x04"sv, "ZIP"}, std::pair{"PAR1\x15"sv, "Parquet"},
          std::pair{"\xFF\xFE"sv, "UTF-16"}, std::pair{"\xFE\xFF"sv, "UTF-16"}})
        if (start.starts_with(magic))
            return std::string("this is ") + name + ": unpack or convert it to plain text first";
    return {};
}

/// RFC 4648.
inline constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
inline std::string base64(std::string_view bytes) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k)
            three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k])
                                                       : 0u);
        for (std::size_t k = 0; k < 4; ++k)
            out += i + k <= bytes.size() ? base64_digits[three >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

/// FNV-1a, 64 bit: distinguishes files and traces, without security.
class fnv1a {
public:
    void add(const void* data, std::size_t n) {
        constexpr std::uint64_t prime = 0x100000001B3, square = prime * prime;
        constexpr std::uint64_t eighth_power = square * square * square * square;
        const auto* const bytes = static_cast<const unsigned char*>(data);
        std::uint64_t h = h_;  // a member would be written for each byte
        for (std::size_t i = 0; i < n;) {
            std::uint64_t next = 1;
            if (n - i >= 8) std::memcpy(&next, bytes + i, 8);
            if (next == 0) h *= eighth_power, i += 8;  // gaps of events that came together
            else h = (h ^ bytes[i++]) * prime;
        }
        h_ = h;
    }
    void add(long long v) {
        for (int i = 0; i < 8; ++i) {
            const auto byte =
                static_cast<unsigned char>(static_cast<unsigned long long>(v) >> (8 * i));
            add(&byte, 1);
        }
    }
    std::uint64_t value() const { return h_; }
    std::string text() const { return printed("%016llx", static_cast<unsigned long long>(h_)); }

private:
    std::uint64_t h_ = 0xCBF29CE484222325ull;
};
inline fnv1a hash_of(std::string_view bytes) {
    fnv1a h;
    h.add(bytes.data(), bytes.size());
    return h;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
