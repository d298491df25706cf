// TLS
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "effects/system/files.hpp"

#include <algorithm>  // max, min
#include <memory>  // unique_ptr
#include <new>  // bad_alloc
#include <stdexcept>  // runtime_error, invalid_argument
#include <string>
#include <string_view>

#ifdef LLMBENCH_WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

namespace llmbench {
inline namespace v1 {
namespace detail {

[[noreturn]] inline void refuse_tls(const http_url& u) {
#ifdef LLMBENCH_ARCHIVE
    const char* const how = "Link OpenSSL: `llmbench flags --tls` prints how";
#else
    const char* const how =
        "Define LLMBENCH_WITH_TLS in the file that carries the implementation and link OpenSSL "
        "(-lssl -lcrypto), or build with CMake, which does both where it finds OpenSSL "
        "(libssl-dev)";
#endif
    throw std::invalid_argument("https://" + printable(u.authority()) +
                                ": this program was built without TLS. " + how);
}
#ifdef LLMBENCH_WITH_TLS
inline SSL_CTX* new_tls_context(const http_url& u) {
#ifdef LLMBENCH_ARCHIVE  // its programs are linked with OpenSSL or without it
    if (!SSL_CTX_new || !BIO_new) refuse_tls(u);
#endif
    SSL_CTX* const c = SSL_CTX_new(TLS_client_method());
    if (!c) throw std::runtime_error("OpenSSL cannot be started for https://" + u.authority());
    return c;
}
template <auto Free> struct freed_by {
    template <class T> void operator()(T* t) const { Free(t); }
};

/// The session of a thread's server, which makes the next handshake short.
using tls_session = std::unique_ptr<SSL_SESSION, freed_by<SSL_SESSION_free>>;

/// Shared by all TLS connections to one target: its name, and the trusted authorities.
class tls_client {
public:
    /// Throws std::invalid_argument if the options have no valid authorities.
    tls_client(const tls_options& o, const http_url& u)
        : host(u.host), verify(o.verify), context(new_tls_context(u)) {
        SSL_CTX* const c = context.get();
        SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
        SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        constexpr unsigned char http1[] = "\x08http/1.1";
        SSL_CTX_set_alpn_protos(c, http1, sizeof http1 - 1);
        SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
        SSL_CTX_sess_set_new_cb(c, [](SSL* s, SSL_SESSION* session) {
            auto* const last = static_cast<tls_session*>(SSL_get_app_data(s));
            if (last) last->reset(session);
            return last ? 1 : 0;  // 1: we own it now
        });
        SSL_CTX_set_verify(c, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
        const std::string file = str(o.ca_file);
        if (!verify && !file.empty())
            refuse({"endpoint.tls.ca_file is \"", printable(file),
                    "\" and endpoint.tls.verify is false: nothing would be verified with it"});
        take_own_certificate(o);
        if (file.empty()) { SSL_CTX_set_default_verify_paths(c); return; }
        file_content(file, "endpoint.tls.ca_file");  // throws if it cannot be read
        if (SSL_CTX_load_verify_locations(c, file.c_str(), nullptr) != 1)
            refuse({"endpoint.tls.ca_file is \"", printable(file),
                    "\": it holds no certificate in PEM format"});
    }

    /// Shown to servers that ask for one. Nothing of the key is in a refusal.
    void take_own_certificate(const tls_options& o) const {
        const std::string certificate = str(o.cert_file);
        const std::string key = o.key_file.empty() ? certificate : str(o.key_file);
        const char* const of_key =
            o.key_file.empty() ? "endpoint.tls.cert_file" : "endpoint.tls.key_file";
        if (certificate.empty() && key.empty()) return;
        if (certificate.empty())
            refuse({"endpoint.tls.key_file is \"", printable(key),
                    "\" and endpoint.tls.cert_file is empty: name the certificate that the key "
                    "belongs to"});
        SSL_CTX* const c = context.get();
        // Never asked at a terminal.
        SSL_CTX_set_default_passwd_cb(c, [](char*, int, int, void*) { return 0; });
        file_content(certificate, "endpoint.tls.cert_file");  // throws if it cannot be read
        file_content(key, of_key);
        if (SSL_CTX_use_certificate_chain_file(c, certificate.c_str()) != 1)
            refuse({"endpoint.tls.cert_file is \"", printable(certificate),
                    "\": it holds no certificate in PEM format"});
        if (SSL_CTX_use_PrivateKey_file(c, key.c_str(), SSL_FILETYPE_PEM) != 1) {
            const int why = ERR_GET_REASON(ERR_peek_last_error());
            ERR_clear_error();
            refuse({of_key, " is \"", printable(key), "\": ",
                    why == X509_R_KEY_VALUES_MISMATCH
                        ? "its key is not that of the certificate"
                        : "it holds no key in PEM format, or one with a passphrase"});
        }
    }

    const std::string host;
    const bool verify;
    const std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>> context;
};

/// Whether the bytes of a TLS stream so far end within a record (RFC 8446, 5.1).
class record_border {
public:
    void add(std::string_view bytes) {
        while (!bytes.empty()) {
            std::size_t n = 1;
            if (header_ < header_size) {
                if (header_++ >= 3) left_ = left_ * 256 + static_cast<unsigned char>(bytes[0]);
            } else {
                n = std::min(left_, bytes.size());
                left_ -= n;
            }
            if (header_ == header_size && left_ == 0) header_ = 0;
            bytes.remove_prefix(n);
        }
    }
    bool is_within() const { return header_ > 0; }

private:
    static constexpr int header_size = 5;  // the last two have the length
    int header_ = 0;
    std::size_t left_ = 0;
};

/// The TLS of one connection, without its socket: network bytes on one side, HTTP bytes on the
/// other. So one read takes all that the socket has, and is stamped right after it.
class tls_channel : not_copied {
public:
    /// `last`: the session to resume, replaced by the server's next one; may be null.
    tls_channel(const tls_client& client, tls_session* last)
        : client_(client), ssl_(SSL_new(client.context.get())) {
        BIO* const in = BIO_new(BIO_s_mem());
        BIO* const out = BIO_new(BIO_s_mem());
        if (!ssl_ || !in || !out) throw std::bad_alloc();
        BIO_set_mem_eof_return(in, -1);  // empty is not the end
        SSL_set_bio(ssl_.get(), in, out);
        SSL_set_connect_state(ssl_.get());
        X509_VERIFY_PARAM* const check = SSL_get0_param(ssl_.get());
        X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        // a name, not an address
        if (X509_VERIFY_PARAM_set1_ip_asc(check, client.host.c_str()) != 1) {
            ERR_clear_error();
            X509_VERIFY_PARAM_set1_host(check, client.host.c_str(), client.host.size());
            SSL_set_tlsext_host_name(ssl_.get(), client.host.c_str());
        }
        if (!last) return;
        SSL_set_app_data(ssl_.get(), last);
        if (*last) SSL_set_session(ssl_.get(), last->get());
    }
    /// Takes network bytes, answers TLS messages, and returns the complete HTTP bytes in `room`. An
    /// empty first call begins the handshake.
    std::string_view received(std::string_view bytes, vector<char>& room) {
        came_.add(bytes);
        BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
        room.resize(std::max(room.size(), bytes.size() + 2 * SSL3_RT_MAX_PLAIN_LENGTH));
        std::size_t held = 0, n = 0;
        ERR_clear_error();
        while (SSL_read_ex(ssl_.get(), room.data() + held, room.size() - held, &n) == 1) held += n;
        const int why = SSL_get_error(ssl_.get(), 0);
        if (why == SSL_ERROR_ZERO_RETURN) ended_ = true;
        else if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) fail();
        return {room.data(), held};
    }
    /// Whether the handshake is done.
    bool open() const { return SSL_is_init_finished(ssl_.get()) == 1; }
    /// Whether a part of a TLS message has come, whose rest is missing.
    bool holds_part() const { return came_.is_within(); }
    void send(std::string_view plain) {
        std::size_t n = 0;
        ERR_clear_error();
        if (!plain.empty() && SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &n) != 1) fail();
    }
    void say_goodbye() { if (open() && error_.empty()) SSL_shutdown(ssl_.get()); }
    /// Returns the bytes for the socket.
    std::string_view outgoing() const {
        char* data = nullptr;
        const long n = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &data);
        return {data, static_cast<std::size_t>(n)};
    }
    void sent(std::size_t n) {
        char taken[4096];
        while (n > 0) {
            const int most = static_cast<int>(std::min(n, sizeof taken));
            n -= static_cast<std::size_t>(BIO_read(SSL_get_wbio(ssl_.get()), taken, most));
        }
    }
    bool ended() const { return ended_; }
    const std::string& error() const { return error_; }
    bool distrusts() const { return distrusts_; }

    ~tls_channel() { SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }

private:
    void fail() {
        ended_ = true;
        const long verified = client_.verify ? SSL_get_verify_result(ssl_.get()) : X509_V_OK;
        const unsigned long error = ERR_get_error();
        const char* const reason = ERR_reason_error_string(error);
        const int why = ERR_GET_REASON(error);
        if (verified != X509_V_OK) { distrusts_ = true; error_ = certificate_text(verified); }
        else if (why == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
            error_ = "the server asks for a certificate of the client: endpoint.tls.cert_file "
                     "(--cert) and key_file (--key) name it";
        else if (why == SSL_R_TLSV1_ALERT_UNKNOWN_CA || why == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE)
            error_ = "the server does not accept the client's certificate";
        else if (why == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)
            error_ = "the server speaks no HTTP/1.1 over TLS, perhaps HTTP/2 only";
        else if (why == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE)
            error_ = "TLS failed: the server ended the handshake; it may ask for a certificate of "
                     "the client (endpoint.tls.cert_file, --cert)";
        else if (why == SSL_R_WRONG_VERSION_NUMBER && !open())
            error_ = "the server does not answer in TLS: is it http:// and not https://?";
        else error_ = std::string("TLS failed: ") + (reason ? reason : "OpenSSL does not say why");
        ERR_clear_error();
    }
    std::string certificate_text(long code) const {
        const std::string certificate = "the server's certificate ";
        switch (code) {
        case X509_V_ERR_CERT_HAS_EXPIRED: return certificate + "has expired";
        case X509_V_ERR_CERT_NOT_YET_VALID: return certificate + "is not valid yet";
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            return certificate + "is not for \"" + printable(client_.host) + "\"";
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            return certificate + "is self-signed (endpoint.tls.ca_file can name it as trusted)";
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            return certificate + "is signed by an authority that is not trusted here "
                                 "(endpoint.tls.ca_file can name it)";
        default:
            return certificate + "is not accepted: " + X509_verify_cert_error_string(code);
        }
    }

    const tls_client& client_;
    std::unique_ptr<SSL, freed_by<SSL_free>> ssl_;
    record_border came_{};
    std::string error_{};
    bool ended_ = false, distrusts_ = false;
};
#else
/// Without OpenSSL there is no TLS, and targets say so.
struct tls_client {
    tls_client(const tls_options&, const http_url& u) { refuse_tls(u); }
};
struct tls_session {};
struct tls_channel {
    tls_channel(const tls_client&, tls_session*) {}
    std::string_view received(std::string_view, vector<char>&) { return {}; }
    bool open() const { return false; }
    bool holds_part() const { return false; }
    void send(std::string_view) {}
    void say_goodbye() {}
    std::string_view outgoing() const { return {}; }
    void sent(std::size_t) {}
    bool ended() const { return true; }
    std::string error() const { return {}; }
    bool distrusts() const { return false; }
};
#endif
inline constexpr const char* tls_was_cut = "the connection was cut without an end of TLS";

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
