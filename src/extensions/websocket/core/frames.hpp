// WebSocket frames (RFC 6455)
// Without extensions and subprotocols. Bytes in, messages out; no socket, no clock.
#pragma once

#include "core/base/bytes.hpp"
#include "core/base/text.hpp"

#include <array>
#include <bit>  // rotl
#include <cstddef>  // size_t
#include <cstdint>  // uint32_t, uint64_t
#include <string>
#include <string_view>
#include <utility>  // exchange, move

namespace llmbench {
inline namespace v1 {
namespace detail {

inline std::uint8_t octet(char c) { return static_cast<std::uint8_t>(c); }

/// SHA-1 (RFC 3174), which a server proves with that it speaks the protocol. Not for secrets.
inline std::string sha1(std::string_view s) {
    std::array<std::uint32_t, 5> h{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    std::string m(s);
    m += '\x80';
    m.append((120 - m.size() % 64) % 64, '\0');
    for (int shift = 56; shift >= 0; shift -= 8)
        m += static_cast<char>((s.size() * 8ull >> shift) & 0xFF);
    for (std::size_t at = 0; at < m.size(); at += 64) {
        std::array<std::uint32_t, 80> w{};
        for (std::size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | octet(m[at + i]);
        for (std::size_t i = 16; i < 80; ++i)
            w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        auto [a, b, c, d, e] = h;
        for (std::size_t i = 0; i < 80; ++i) {
            const std::uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                                    : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                                    : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                             : (b ^ c ^ d) + 0xCA62C1D6;
            const std::uint32_t next = std::rotl(a, 5) + f + e + w[i];
            e = d; d = c; c = std::rotl(b, 30); b = a; a = next;
        }
        h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
    }
    std::string digest;
    for (const std::uint32_t word : h)
        for (int shift = 24; shift >= 0; shift -= 8)
            digest += static_cast<char>((word >> shift) & 0xFF);
    return digest;
}
/// The answer to a Sec-WebSocket-Key.
inline std::string accepted_key(const std::string& key) {
    return base64(sha1(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

enum class opcode : unsigned char { more = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };
inline bool is_control(opcode o) { return static_cast<int>(o) >= 8; }

/// A whole frame of a client, which masks it.
inline std::string masked_frame(opcode what, std::string_view payload, std::uint32_t mask) {
    std::string f(1, static_cast<char>(0x80 | static_cast<int>(what)));
    const std::uint64_t n = payload.size();
    const int bytes = n < 126 ? 0 : n < 65536 ? 2 : 8;
    f += static_cast<char>(0x80 | (bytes == 0 ? static_cast<int>(n) : bytes == 2 ? 126 : 127));
    for (int i = bytes - 1; i >= 0; --i) f += static_cast<char>(n >> (8 * i) & 0xFF);
    std::array<char, 4> key{};
    for (std::size_t i = 0; i < 4; ++i) key[i] = static_cast<char>(mask >> (24 - 8 * i) & 0xFF);
    f.append(key.data(), key.size());
    const std::size_t at = f.size();
    f += payload;
    for (std::size_t i = 0; i < payload.size(); ++i)
        f[at + i] = static_cast<char>(f[at + i] ^ key[i % 4]);
    return f;
}

/// Puts the frames of a server together to messages, of at most 16 MiB.
class frame_reader {
public:
    static constexpr std::size_t max_message = std::size_t{16} << 20;
    static constexpr std::size_t max_control = 125;

    /// Calls `on(opcode, payload)` for each message and each control frame. Returns why the bytes
    /// are no frames of a server, "" if they are; nothing is read after that.
    template <class On>
    std::string feed(std::string_view bytes, On&& on) {
        if (!fault_.empty()) return fault_;
        held_ += bytes;
        std::size_t at = 0;
        while (const std::size_t used = take(std::string_view(held_).substr(at), on)) at += used;
        held_.erase(0, at);
        return fault_;
    }

    /// Whether a part of a frame, or of a message, has come.
    bool holds_part() const { return !held_.empty() || within_ != opcode::more; }

private:
    /// Returns the bytes of one frame, 0 if it is not complete, or none.
    template <class On>
    std::size_t take(std::string_view s, On&& on) {
        if (s.size() < 2 || !fault_.empty()) return 0;
        const std::uint8_t first = octet(s[0]), second = octet(s[1]);
        const auto what = static_cast<opcode>(first & 15);
        const bool is_last = first & 0x80;
        const std::size_t wide = (second & 127) == 126 ? 2 : (second & 127) == 127 ? 8 : 0;
        if (first & 0x70) return broken("a frame has a reserved bit, and no extension was agreed on");
        if (second & 0x80) return broken("a frame of the server is masked");
        if (!is_known(what)) return broken(printed("a frame has opcode %d", first & 15));
        if (is_control(what) && (!is_last || wide > 0))
            return broken("a control frame is in fragments, or over 125 bytes");
        if ((what == opcode::more) != (within_ != opcode::more) && !is_control(what))
            return broken(what == opcode::more ? "a message goes on that has not begun"
                                               : "a message begins within another");
        if (s.size() < 2 + wide) return 0;
        std::uint64_t n = second & 127;
        if (wide > 0) n = 0;
        for (std::size_t i = 0; i < wide; ++i) n = n << 8 | octet(s[2 + i]);
        if (wide > 0 && n < (wide == 2 ? 126u : 65536u))
            return broken("the length of a frame takes more bytes than it needs");
        if (n > max_message - message_.size()) return broken("a message is over 16 MiB");
        const auto size = static_cast<std::size_t>(n);
        if (s.size() - 2 - wide < size) return 0;
        const std::string_view payload = s.substr(2 + wide, size);
        if (is_control(what)) {
            on(what, payload);
        } else if (is_last && message_.empty() && what != opcode::more) {
            on(what, payload);
        } else {
            message_ += payload;
            if (what != opcode::more) within_ = what;
            if (is_last) {
                const std::string whole = std::move(message_);
                message_.clear();
                on(std::exchange(within_, opcode::more), whole);
            }
        }
        return 2 + wide + size;
    }
    static bool is_known(opcode o) {
        const int n = static_cast<int>(o);
        return n <= 2 || (n >= 8 && n <= 10);
    }
    std::size_t broken(const std::string& why) {
        fault_ = why;
        return 0;
    }

    std::string held_{}, message_{}, fault_{};
    opcode within_ = opcode::more;  // of the message that has begun; more: none has
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
