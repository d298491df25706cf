// the sockets of `llmbench serve`
#pragma once

#include "effects/net/sockets.hpp"
#include "effects/system/limits.hpp"
#include "extensions/simulated/host.hpp"
#include "program/serve_service.hpp"
#include "program/serve_tls.hpp"
#include "program/values.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench_program {

class tls_session final : public socket_session {
public:
    tls_session(socket_host& host, const request_handler& handler, const tls_identity& who)
        : socket_session(host, handler), tls_(who) {}

private:
    void received(std::string_view bytes) override {
        const std::string plain = tls_.received(bytes);
        write({});  // answers of the handshake
        if (!plain.empty()) take(plain);
        if (tls_.ended()) gone();
    }
    std::string sealed(const std::string& bytes) override {
        tls_.send(bytes);
        return tls_.taken();
    }
    void end(int error) override {
        if (error == 0) {
            tls_.say_goodbye();
            give(tls_.taken());
        }
        socket_session::end(error);
    }
    tls_server_channel tls_;
};

/// Listens until it is destroyed.
class serving_host final : public socket_host {
public:
    /// Throws std::runtime_error if the port is not available.
    serving_host(const serving& what, const address& at, std::optional<tls_identity> tls)
        : socket_host(at), tls_(std::move(tls)), service_(what, carrier()) {
        raised_open_files(1 << 20);
        serve(service_);
    }
    ~serving_host() { stop(); }
    served_since take() { return service_.take(); }

private:
    std::shared_ptr<socket_session> new_session() override {
        if (tls_) return std::make_shared<tls_session>(*this, service_.handler(), *tls_);
        return socket_host::new_session();
    }
    std::optional<tls_identity> tls_;
    serving_service service_;
};

}  // namespace llmbench_program
