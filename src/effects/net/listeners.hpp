// which socket of this machine listens behind an address
#pragma once

#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/net/sockets.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <cstdio>  // sscanf
#include <cstring>  // memcpy
#include <fstream>  // getline, ifstream
#include <string>

#include <arpa/inet.h>  // ntohs
#include <netinet/in.h>  // sockaddr_in, sockaddr_in6
#include <sys/socket.h>  // AF_INET, AF_UNIX

namespace llmbench {
inline namespace v1 {
namespace detail {

inline int port_number_of(const address& a) {
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    std::memcpy(&v6, &a.storage, sizeof v6);
    std::memcpy(&v4, &a.storage, sizeof v4);
    return ntohs(a.storage.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}
inline address without_port(address a) {
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    std::memcpy(&v6, &a.storage, sizeof v6);
    std::memcpy(&v4, &a.storage, sizeof v4);
    v4.sin_port = v6.sin6_port = 0;
    if (a.storage.ss_family == AF_INET) std::memcpy(&a.storage, &v4, sizeof v4);
    else std::memcpy(&a.storage, &v6, sizeof v6);
    return a;
}

/// The inode of the socket that listens to this address and port in a table of Linux, "" if none
/// does. Addresses are words of 32 bits as they stand in memory.
inline std::string listener_in(const char* table, const std::string& words, int port) {
    std::ifstream in(table);
    std::string line;
    while (std::getline(in, line)) {
        char local[33] = {}, inode[24] = {};
        unsigned at = 0, state = 0;
        const int read = std::sscanf(line.c_str(),
                                     " %*d: %32[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %23[0-9]",
                                     local, &at, &state, inode);
        constexpr unsigned listens = 10;
        if (read == 4 && state == listens && static_cast<int>(at) == port && words == local)
            return inode;
    }
    return {};
}
/// The socket of this machine that takes connections to an address, "" where none is known: the one
/// that is bound to it, or else to all addresses.
inline std::string listener_of(const address& a) {
    if (a.storage.ss_family == AF_UNIX || current_environment) return {};
    if (!is_of_this_machine(without_port(a))) return {};
    const int port = port_number_of(a);
    const auto words_of = [](const unsigned char* bytes, std::size_t n) {
        std::string all;
        for (std::size_t i = 0; i < n; i += 4) {
            std::uint32_t word = 0;
            std::memcpy(&word, bytes + i, 4);
            all += printed("%08X", word);
        }
        return all;
    };
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    std::memcpy(&v6, &a.storage, sizeof v6);
    std::memcpy(&v4, &a.storage, sizeof v4);
    const bool is_v4 = a.storage.ss_family == AF_INET;
    unsigned char bytes[16] = {};
    if (is_v4) {
        bytes[10] = bytes[11] = 0xFF;
        std::memcpy(bytes + 12, &v4.sin_addr, 4);
    } else {
        std::memcpy(bytes, v6.sin6_addr.s6_addr, 16);
    }
    const unsigned char all[16] = {};
    for (const unsigned char* at : {static_cast<const unsigned char*>(bytes), all}) {
        std::string found;
        const unsigned char* const v4_bytes = at == all ? all : at + 12;
        if (is_v4) found = listener_in("/proc/net/tcp", words_of(v4_bytes, 4), port);
        if (found.empty()) found = listener_in("/proc/net/tcp6", words_of(at, 16), port);
        if (!found.empty()) return found;
    }
    return {};
}
/// Whether two addresses lead to one listening socket of this machine.
inline bool have_one_listener(const address& a, const address& b) {
    if (port_number_of(a) != port_number_of(b)) return false;
    const std::string mine = listener_of(a);
    return !mine.empty() && mine == listener_of(b);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
