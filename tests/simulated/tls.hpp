// The simulated server behind TLS in a made-up world: the client's TLS and its peer's, over a
// stream of bytes that a seed cuts, delays and breaks off.
#pragma once

#include "simulated/virtual_world.hpp"

#ifdef LLMBENCH_WITH_TLS
#include "support/scratch.hpp"
#include "support/tls_server.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/rand.h>

namespace virtual_world {
using llmbench::detail::vector;

/// A server's TLS: whose certificate it shows, which version it speaks (0: either).
inline std::shared_ptr<SSL_CTX> tls_of_server(const tls::identity& who, int version = 0) {
    std::shared_ptr<SSL_CTX> c(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    SSL_CTX_use_certificate(c.get(), who.certificate.get());
    SSL_CTX_use_PrivateKey(c.get(), who.key.get());
    static constexpr unsigned char id[] = "tests";
    SSL_CTX_set_session_id_context(c.get(), id, sizeof id - 1);
    if (version != 0) {
        SSL_CTX_set_min_proto_version(c.get(), version);
        SSL_CTX_set_max_proto_version(c.get(), version);
    }
    return c;
}

/// One connection: what the network brings is decrypted, what the session says is encrypted.
class virtual_tls_session final : public virtual_session {
public:
    virtual_tls_session(virtual_environment& w, const shared_link& l, const request_handler& handler,
                        SSL_CTX* context)
        : virtual_session(w, l, handler), ssl_(SSL_new(context), SSL_free) {
        SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        BIO_set_mem_eof_return(SSL_get_rbio(ssl_.get()), -1);
        SSL_set_accept_state(ssl_.get());
    }
    void on_bytes(std::string_view bytes) override {
        const auto keeps_this = shared_from_this();
        BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
        char plain[16384];
        std::size_t n = 0;
        ERR_clear_error();
        while (!is_over_ && SSL_read_ex(ssl_.get(), plain, sizeof plain, &n) == 1)
            virtual_session::on_bytes({plain, n});
        if (is_over_) return;
        const int why = SSL_get_error(ssl_.get(), 0);
        flush();
        if (why != SSL_ERROR_WANT_READ) gone();
    }
    void on_room() override {
        flush();
        virtual_session::on_room();
    }

private:
    /// TLS takes all; what the link does not take now goes when there is room.
    long long give(std::string_view bytes) override {
        std::size_t n = 0;
        if (is_over_ || SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n) != 1) return -1;
        return flush() ? static_cast<long long>(n) : -1;
    }
    void end(int error) override {
        if (!is_over_ && error == 0) {
            SSL_shutdown(ssl_.get());
            flush();
        }
        is_over_ = true;
        virtual_session::end(error);
    }
    bool flush() {
        char* data = nullptr;
        const long all = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &data);
        if (all <= 0) return true;
        const long long n = virtual_session::give({data, static_cast<std::size_t>(all)});
        vector<char> taken(static_cast<std::size_t>(std::max(n, 1ll)));
        if (n > 0) BIO_read(SSL_get_wbio(ssl_.get()), taken.data(), static_cast<int>(n));
        return n >= 0;
    }

    const std::shared_ptr<SSL> ssl_;
    bool is_over_ = false;
};

class virtual_tls_server final : public virtual_server {
public:
    virtual_tls_server(virtual_environment& w, const engine& e, std::shared_ptr<SSL_CTX> c,
                       service_observer* told = nullptr)
        : virtual_server(w, e, told), at_(w), context_(std::move(c)) {}

private:
    std::shared_ptr<virtual_session> session_on(const shared_link& l,
                                                const request_handler& handler) override {
        return std::make_shared<virtual_tls_session>(at_, l, handler, context_.get());
    }
    virtual_environment& at_;
    const std::shared_ptr<SSL_CTX> context_;
};

/// Certificates for the first server of any world, made once, and the file that names their
/// authority.
struct identities {
    tls::identity authority = tls::authority();
    tls::identity server = tls::made("server", {.names = "DNS:simulated-1"}, &authority);
    files::scratch folder{};
    std::string authority_file = folder.file("authority.pem");
    identities() { tls::write_pem(authority, authority_file); }
    static const identities& of_the_tests() {
        static const identities all;
        return all;
    }
};

/// All that OpenSSL leaves to chance is drawn from a seed as well, so that a load over TLS can be
/// run again with this OpenSSL. Other versions say other things: nothing of it is held elsewhere.
inline void draw_tls_from(std::uint64_t seed) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    static generator chance(1);
    chance = generator(seed, 3);
    static const auto fill = [](unsigned char* to, int n) {
        while (n-- > 0) *to++ = static_cast<unsigned char>(chance.next() >> 32);
        return 1;
    };
    static const RAND_METHOD drawn = {
        [](const void*, int) { return 1; }, fill, [] {},
        [](const void*, int, double) { return 1; }, fill, [] { return 1; }};
    RAND_set_rand_method(&drawn);
#pragma GCC diagnostic pop
}

inline endpoint tls_endpoint(const virtual_server& s) {
    const std::string host = s.url().substr(s.url().find("//"));
    return {.url = text("https:" + host),
            .tls = {.ca_file = text(identities::of_the_tests().authority_file)}};
}
/// The same repeat as repeat_of, with TLS between client and server.
inline repeat tls_repeat_of(const scenario& s, const engine& e, const hardships& h = {},
                            int version = 0) {
    hard_world execution_environment;
    const inside_environment here(&execution_environment);
    live::served_log log;
    virtual_tls_server server(execution_environment, e,
                              tls_of_server(identities::of_the_tests().server, version), &log);
    return repeat_at(execution_environment, log, tls_endpoint(server), s, h);
}

}  // namespace virtual_world
#endif
