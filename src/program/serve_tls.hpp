// TLS of `llmbench serve`, with a certificate that it makes itself
#pragma once

#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "effects/net/tls.hpp"
#include "effects/system/errors.hpp"
#include "program/values.hpp"

#include <algorithm>  // max, min
#include <cerrno>  // errno
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>  // bad_alloc
#include <string>
#include <string_view>

#ifdef LLMBENCH_WITH_TLS
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

namespace llmbench_program {

#ifdef LLMBENCH_WITH_TLS
/// A key, which never leaves the memory, and a certificate for ten days, signed by itself. It is for
/// localhost, 127.0.0.1, ::1 and the address that is listened at.
class tls_identity {
public:
    /// Writes the certificate, for clients to trust, as PEM. Throws std::invalid_argument if it
    /// cannot.
    tls_identity(const std::string& file, const std::string& address)
        : context_(SSL_CTX_new(TLS_server_method())) {
        const std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>> key(EVP_PKEY_Q_keygen(
            nullptr, nullptr, "EC", "P-256"));
        const std::unique_ptr<X509, freed_by<X509_free>> x(X509_new());
        if (!context_ || !key || !x) throw std::bad_alloc();
        X509_set_version(x.get(), 2);  // the third
        ASN1_INTEGER_set(X509_get_serialNumber(x.get()), static_cast<long>(entropy() >> 34));
        X509_gmtime_adj(X509_getm_notBefore(x.get()), -86400l);
        X509_gmtime_adj(X509_getm_notAfter(x.get()), 10 * 86400l);
        X509_set_pubkey(x.get(), key.get());
        X509_NAME* const name = X509_get_subject_name(x.get());
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>("llmbench serve"), -1, -1,
                                   0);
        X509_set_issuer_name(x.get(), name);
        add(x.get(), NID_basic_constraints, "critical,CA:TRUE");
        add(x.get(), NID_subject_alt_name,
            "DNS:localhost,IP:127.0.0.1,IP:::1" +
                (address == "0.0.0.0" || address == "::" ? "" : ",IP:" + address));
        if (X509_sign(x.get(), key.get(), EVP_sha256()) == 0 ||
            SSL_CTX_use_certificate(context_.get(), x.get()) != 1 ||
            SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1)
            throw std::runtime_error("OpenSSL makes no certificate here");
        SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
        write(x.get(), file);
    }
    SSL_CTX* context() const { return context_.get(); }

private:
    static void add(X509* x, int what, const std::string& value) {
        X509V3_CTX c;
        X509V3_set_ctx_nodb(&c);
        X509V3_set_ctx(&c, x, x, nullptr, nullptr, 0);
        const std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>> e(
            X509V3_EXT_conf_nid(nullptr, &c, what, value.c_str()));
        if (!e || X509_add_ext(x, e.get(), -1) != 1)
            throw std::runtime_error("OpenSSL makes no certificate here");
    }
    static void write(X509* x, const std::string& file) {
        std::FILE* const f = std::fopen(file.c_str(), "we");
        if (!f)
            refuse({"--tls is ", printable(file, 200), ", which cannot be written: ",
                    error_text(errno)});
        const bool is_written = PEM_write_X509(f, x) == 1;
        if (std::fclose(f) != 0 || !is_written)
            refuse({"--tls is ", printable(file, 200), ", which cannot be written"});
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
        refuse({"--tls needs OpenSSL, and this program was built without it: build with "
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
