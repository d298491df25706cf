// whether two targets are one server, and two variants one
#pragma once

#include "api/result.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "core/measured/server_metrics.hpp"
#include "effects/system/clock.hpp"
#include "effects/net/listeners.hpp"
#include "effects/net/sockets.hpp"
#include "effects/load/load_target.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/server_pages.hpp"

#include <algorithm>  // min
#include <cmath>  // isnan
#include <cstring>  // memcmp, memcpy
#include <filesystem>  // equivalent
#include <string>
#include <system_error>  // error_code

#include <arpa/inet.h>  // ntohs
#include <netinet/in.h>  // sockaddr_in6

namespace llmbench {
inline namespace v1 {
namespace detail {

/// An address and port in IPv6 form, so that IPv4 addresses equal their mapped ones, and loopbacks
/// equal each other.
inline sockaddr_in6 comparable(const address& a) {
    sockaddr_in6 out{};
    out.sin6_family = AF_INET6;
    unsigned char* const bytes = out.sin6_addr.s6_addr;
    if (a.storage.ss_family == AF_INET) {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        out.sin6_port = in.sin_port;
        bytes[10] = bytes[11] = 0xFF;
        std::memcpy(bytes + 12, &in.sin_addr, 4);
    } else {
        sockaddr_in6 in{};
        std::memcpy(&in, &a.storage, sizeof in);
        out.sin6_port = in.sin6_port;
        out.sin6_addr = in.sin6_addr;
    }
    static constexpr unsigned char loopback_of_ipv4[16] = {0, 0,    0,    0,   0, 0, 0, 0,
                                                           0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
    if (std::memcmp(bytes, loopback_of_ipv4, 16) == 0) out.sin6_addr = in6addr_loopback;
    return out;
}
inline bool is_same_address(const address& a, const address& b) {
    if (a.storage.ss_family == AF_UNIX || b.storage.ss_family == AF_UNIX) return false;
    const sockaddr_in6 x = comparable(a), y = comparable(b);
    return x.sin6_port == y.sin6_port &&
           std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
}
/// Whether two targets lead to one listening socket, whatever their names.
inline bool is_same_place(const load_target& a, const load_target& b) {
    if (a.url.socket.empty() != b.url.socket.empty()) return false;
    if (!a.url.socket.empty()) {
        std::error_code ignored;
        return a.url.socket == b.url.socket ||
               std::filesystem::equivalent(a.url.socket, b.url.socket, ignored);
    }
    const vector<address> mine = a.addresses.in_order(), others = b.addresses.in_order();
    return any_of(mine, [&](const address& x) {
        return any_of(others, [&](const address& y) {
            return is_same_address(x, y) || have_one_listener(x, y);
        });
    });
}

/// Whether both are sent the same requests: a gateway tells models, paths and headers apart, and a
/// server its transports.
inline bool are_asked_alike(const load_target& a, const load_target& b) {
    return a.path == b.path && a.model == b.model && a.fields == b.fields &&
           a.transport == b.transport;
}
inline bool are_one_server(const load_target& a, const load_target& b) {
    return is_same_place(a, b) && are_asked_alike(a, b);
}

/// Returns why a candidate and its baseline are one server, "" if they are two.
inline std::string same_server_reason(const load_target& candidate, const std::string& its_url,
                                      const load_target& baseline, const std::string& other_url) {
    if (!are_one_server(candidate, baseline)) return {};
    return "target is " + printable(its_url) + " and baseline is " + printable(other_url) +
           ", which is one server and would be compared with itself: give the baseline a URL of "
           "its own (LLMBENCH_BASELINE_URL, where the scenario names none), another model, path or "
           "header, or say .baseline = otherwise{.same = true}";
}

// ---- two addresses of one process, as where a port is forwarded to the other's server

/// Whether both report the same served requests, and at least one.
inline bool count_alike(const page_reading& a, const page_reading& b) {
    bool is_reported = false, differ = false;
    for (const server_quantity q : {server_quantity::requests_done, server_quantity::prompt_tokens,
                                    server_quantity::generation_tokens}) {
        is_reported = is_reported || !std::isnan(a.value(q));
        differ = differ || a.value(q) < b.value(q) || b.value(q) < a.value(q) ||
                 std::isnan(a.value(q)) != std::isnan(b.value(q));
    }
    return is_reported && !differ;
}
/// Whether both pages show one process: they report the same start, or the same counts before and
/// after a request for one token to one of them.
inline bool lead_to_one_process(const load_target& a, const server_pages& its,
                                const load_target& b, const server_pages& other,
                                const request_spec& common) {
    if (!its.first_is_servers || !other.first_is_servers || !are_asked_alike(a, b) ||
        is_same_place(a, b))
        return false;
    const page_reading mine = reading_of_server(its), theirs = reading_of_server(other);
    const bool one_beginning = mine.began == theirs.began;
    const bool two_beginnings = mine.began < theirs.began || theirs.began < mine.began;
    if (two_beginnings || !(one_beginning || count_alike(mine, theirs))) return false;
    ask_for_one_token(a, common);
    constexpr int looks = 10;  // some servers count a little later
    for (int i = 0; i < looks; ++i) {
        const page_reading mine_now = reading_of_server(its);
        const page_reading theirs_now = reading_of_server(other);
        if (have_fallen(mine_now, mine)) {
            if (!have_fallen(theirs_now, theirs)) return false;
            if (one_beginning || count_alike(mine_now, theirs_now)) return true;
        }
        sleep_s(0.05);
    }
    return false;
}
inline std::string one_process_text(const std::string& one, const std::string& its_url,
                                    const std::string& other, const std::string& other_url) {
    return one + " at " + printable(its_url) + " and " + other + " at " + printable(other_url) +
           " lead to one process, whose page counts what either of them is asked";
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
