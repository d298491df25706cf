// where requests go
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "effects/system/clock.hpp"
#include "effects/net/exchange.hpp"

#include <cstddef>  // size_t
#include <cstdint>  // uint32_t
#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The number of this program's run in the ids that it sends, so that a server's log tells runs
/// apart. All virtual runs are alike.
inline std::uint32_t run_in_ids() {
    static const auto own = static_cast<std::uint32_t>(entropy());
    return current_environment ? virtual_run : own;
}

/// Common data of all requests of one load.
struct load_target : http_server {
    std::string whole_url{};  // as the gate gives it; may contain a key
    std::string path{}, whole_path{};  // for streams, and for answers in one piece
    std::string own_path{};  // the same if the gate names it
    std::string fields{};  // header lines of all requests, authorization included
    bool says_accept = false;  // they have their own "Accept"
    std::string session_fields{};  // the same if one has "{session}", else ""
    vector<std::string> secrets{};  // parts of them; never written
    std::string model{};
    const api_traits* api = &apis[0];
    new_transport transport = nullptr;  // null: HTTP
    int connection_resets = 0;  // in the check before the load, which is over HTTP

    /// What they tell of this load's connections: nothing of those of another protocol.
    int resets_before() const { return transport ? 0 : connection_resets; }
};
/// The path of a request, which may contain the model.
inline std::string path_of(const load_target& to, const request_spec& r) {
    if (r.model.empty() || !to.own_path.empty()) return r.stream ? to.path : to.whole_path;
    return request_path(*to.api, r.stream ? to.api->path : to.api->whole_path, to.url.path,
                        r.model) +
           to.url.query;
}
/// Number of times that a server closes a connection right after its first answer, against its
/// promise, until this counts as its policy: from then on no connection is used twice, because
/// requests would be lost. Once is an accident, such as a restarted gateway.
inline constexpr int resets_by_policy = 2;

/// A request of the trace, its due time, and its user in a closed loop.
struct planned_request {
    std::size_t index = 0;
    long long scheduled_ns = 0;
    int user = -1;  // -1: open loop
    bool warms_caches = false;  // caches: it belongs before the load
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
