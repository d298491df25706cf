// TLS of `llmbench serve`
#pragma once

#include "core/base/text.hpp"
#include "effects/net/tls.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min
#include <cstddef>
#include <memory>
#include <new>  // bad_alloc
#include <string>
#include <string_view>

#ifdef LLMBENCH_WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

namespace llmbench_program {

#ifdef LLMBENCH_WITH_TLS
/// A certificate, with those that it is signed by behind it, and its key.
class tls_identity {
public:
    /// PEM files. Throws std::invalid_argument if they cannot be used.
    tls_identity(const std::string& certificate, const std::string& key)
        : context_(SSL_CTX_new(TLS_server_method())) {
        if (!context_) throw std::bad_alloc();
        SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
        // Without it OpenSSL would ask the terminal for the password of a key.
        SSL_CTX_set_default_passwd_cb(context_.get(), [](char*, int, int, void*) { return -1; });
        ERR_clear_error();
        if (SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()) != 1)
            refuse_file("--cert", certificate, "a certificate in PEM");
        if (SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
            refuse_file("--key", key, "the key of " + printable(certificate, 200) +
                                          " in PEM, without a password");
    }
    SSL_CTX* context() const { return context_.get(); }

private:
    [[noreturn]] static void refuse_file(const char* option, const std::string& file,
                                         const std::string& allowed) {
        ERR_clear_error();
        refuse({option, " is \"", printable(file, 200), "\": it must be a file with ", allowed});
    }
    std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>> context_;
};

/// The server's side of a connection: network bytes on one side, HTTP bytes on the other.
class tls_server_channel {
public:
    explicit tls_server_channel(const tls_identity& who) : ssl_(SSL_new(who.context())) {
        BIO *const in = BIO_new(BIO_s_mem()), *const out = BIO_new(BIO_s_mem());
        if (!ssl_ || !in || !out) throw std::bad_alloc();
        BIO_set_mem_eof_return(in, -1);  // empty is not the end
        SSL_set_bio(ssl_.get(), in, out);
        SSL_set_accept_state(ssl_.get());
    }
    /// Takes network bytes; returns the HTTP bytes in them.
    std::string received(std::string_view bytes) {
        BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
        std::string plain(bytes.size() + SSL3_RT_MAX_PLAIN_LENGTH, '\0');
        std::size_t held = 0, n = 0;
        ERR_clear_error();
        while (SSL_read_ex(ssl_.get(), plain.data() + held, plain.size() - held, &n) == 1)
            held += n;
        const int why = SSL_get_error(ssl_.get(), 0);
        ended_ = why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
        plain.resize(held);
        return plain;
    }
    void send(std::string_view plain) {
        std::size_t n = 0;
        ERR_clear_error();
        if (!plain.empty() && SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &n) != 1)
            ended_ = true;
    }
    void say_goodbye() {
        if (SSL_is_init_finished(ssl_.get()) == 1 && !ended_) SSL_shutdown(ssl_.get());
    }
    /// Returns the bytes for the socket, once.
    std::string taken() {
        char* data = nullptr;
        const long n = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &data);
        std::string bytes(data, static_cast<std::size_t>(std::max(n, 0l)));
        BIO_reset(SSL_get_wbio(ssl_.get()));
        return bytes;
    }
    bool ended() const { return ended_; }

private:
    std::unique_ptr<SSL, freed_by<SSL_free>> ssl_;
    bool ended_ = false;
};
#else
struct tls_identity {
    tls_identity(const std::string&, const std::string&) {
        refuse({"--cert needs OpenSSL, and this program was built without it: build with "
                "libssl-dev installed"});
    }
};
struct tls_server_channel {
    explicit tls_server_channel(const tls_identity&) {}
    std::string received(std::string_view) { return {}; }
    void send(std::string_view) {}
    void say_goodbye() {}
    std::string taken() { return {}; }
    bool ended() const { return true; }
};
#endif

}  // namespace llmbench_program
