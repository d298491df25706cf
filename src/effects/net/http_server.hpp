// an HTTP server and the way to it
#pragma once

#include "core/wire/url.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"

#include <algorithm>  // find_if, rotate
#include <cstring>  // memcmp
#include <functional>  // how a name is resolved
#include <memory>  // make_shared, shared_ptr
#include <mutex>  // lock_guard
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The addresses of a server: the name is resolved once for all users, and the address that
/// answered last comes first, so that one that never answers is waited for once, not in every
/// repeat. Copies share their state.
class known_addresses {
public:
    using resolver = std::function<std::vector<address>()>;

    explicit known_addresses(std::vector<address> all = {})
        : known_(std::make_shared<known>()) { known_->all = std::move(all); }
    /// Resolves at the first use, and again after an exception.
    explicit known_addresses(resolver ask)
        : known_(std::make_shared<known>()) { known_->ask = std::move(ask); }

    /// Throws the resolver's exceptions.
    std::vector<address> in_order() const {
        const std::lock_guard lock(known_->mutex);
        if (known_->ask) {
            known_->all = known_->ask();
            known_->ask = nullptr;
        }
        return known_->all;
    }
    void answered(const address& a) const {
        const std::lock_guard lock(known_->mutex);
        std::vector<address>& all = known_->all;
        const auto at = std::find_if(all.begin(), all.end(), [&](const address& x) {
            return x.size == a.size && std::memcmp(&x.storage, &a.storage, a.size) == 0;
        });
        if (at != all.end()) std::rotate(all.begin(), at, at + 1);
    }

private:
    struct known {
        std::mutex mutex{};
        std::vector<address> all{};
        resolver ask{};  // null: `all` is known
    };
    std::shared_ptr<known> known_;
};

struct http_server {
    http_url url{};
    known_addresses addresses{};
    std::shared_ptr<tls_client> tls{};  // null: plain HTTP
};
inline http_server server_at(const http_url& u, std::shared_ptr<tls_client> tls = {}) {
    return {u, known_addresses([u] { return resolved(u); }), std::move(tls)};
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
