// A server's side of TLS in memory, as a test wants it: certificates made on the spot, chosen
// versions, handshakes that break off, records cut into single bytes. Whoever has a channel carries
// its bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace tls {

/// A key and the certificate that tells whose it is.
struct identity {
    std::shared_ptr<EVP_PKEY> key{};
    std::shared_ptr<X509> certificate{};
};

struct certificate_options {
    std::string names = "DNS:localhost,IP:127.0.0.1";
    int from_days = -1, to_days = 10;  // counted from today
    bool is_authority = false;
};

/// Signed by `by`, by itself where there is none.
inline identity made(const std::string& name, const certificate_options& o = {},
                     const identity* by = nullptr) {
    static std::atomic<long> serial{1};
    identity made;
    made.key.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
    made.certificate.reset(X509_new(), X509_free);
    X509* const x = made.certificate.get();
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(x), o.from_days * 86400l);
    X509_gmtime_adj(X509_getm_notAfter(x), o.to_days * 86400l);
    X509_set_pubkey(x, made.key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    const identity& issuer = by ? *by : made;
    X509_set_issuer_name(x, X509_get_subject_name(issuer.certificate.get()));
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer.certificate.get(), x, nullptr, nullptr, 0);
    const auto extend = [&](int what, const std::string& value) {
        X509_EXTENSION* const e = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
        X509_add_ext(x, e, -1);
        X509_EXTENSION_free(e);
    };
    extend(NID_basic_constraints, o.is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    extend(NID_subject_key_identifier, "hash");
    if (!o.names.empty() && !o.is_authority) extend(NID_subject_alt_name, o.names);
    X509_sign(x, issuer.key.get(), EVP_sha256());
    return made;
}
inline identity authority(const std::string& name = "the authority of the tests") {
    return made(name, {.is_authority = true});
}
inline void write_pem(const identity& i, const std::string& file) {
    std::FILE* const f = std::fopen(file.c_str(), "w");
    PEM_write_X509(f, i.certificate.get());
    std::fclose(f);
}
/// The key behind the certificate, as servers like it.
inline void write_pem_with_key(const identity& i, const std::string& file) {
    write_pem(i, file);
    std::FILE* const f = std::fopen(file.c_str(), "a");
    PEM_write_PrivateKey(f, i.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(f);
}

/// How one connection is handled.
struct manner {
    const identity* who = nullptr;
    int version = 0;              // TLS1_2_VERSION or TLS1_3_VERSION alone; 0: either
    std::size_t record = 0;       // bytes of HTTP in one record; 0: as they come
    std::size_t piece = 0;        // bytes of TLS in one write; 0: as they come
    long cut_after = -1;          // closes after so many bytes of its own
    long spoil_byte = -1;         // this byte of its own is sent wrong
    bool says_goodbye = true;     // tells the end of TLS before it closes
    bool stalls = false;          // never says a word
};

/// What the connections of a server share.
class judging_parameters {
public:
    /// The n-th connection is handled in the n-th manner, all others in the last.
    explicit judging_parameters(std::vector<manner> manners) : manners_(std::move(manners)) {
        for (const manner& m : manners_) contexts_.push_back(context_of(m));
    }
    judging_parameters(const judging_parameters&) = delete;
    judging_parameters& operator=(const judging_parameters&) = delete;

    /// Handshakes that were completed, as this side counts them.
    int full() const { return full_; }
    int resumed() const { return resumed_; }
    /// What the last client named and offered.
    std::string server_name() const { const std::lock_guard l(mutex_); return server_name_; }
    std::string protocol() const { const std::lock_guard l(mutex_); return protocol_; }

private:
    friend class channel;

    std::shared_ptr<SSL_CTX> context_of(const manner& m) {
        std::shared_ptr<SSL_CTX> c(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
        if (m.who) {
            SSL_CTX_use_certificate(c.get(), m.who->certificate.get());
            SSL_CTX_use_PrivateKey(c.get(), m.who->key.get());
        }
        if (m.version) {
            SSL_CTX_set_min_proto_version(c.get(), m.version);
            SSL_CTX_set_max_proto_version(c.get(), m.version);
        }
        static constexpr unsigned char id[] = "tests";
        SSL_CTX_set_session_id_context(c.get(), id, sizeof id - 1);
        SSL_CTX_set_alpn_select_cb(
            c.get(),
            [](SSL*, const unsigned char** chosen, unsigned char* size,
               const unsigned char* offered, unsigned all, void* self) {
                *size = offered[0];
                *chosen = offered + 1;
                auto* const t = static_cast<judging_parameters*>(self);
                const std::lock_guard lock(t->mutex_);
                t->protocol_.assign(reinterpret_cast<const char*>(offered), all);
                return SSL_TLSEXT_ERR_OK;
            },
            this);
        return c;
    }
    void note_handshake(SSL* ssl) {
        ++(SSL_session_reused(ssl) ? resumed_ : full_);
        const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
        const std::lock_guard lock(mutex_);
        server_name_ = name ? name : "";
    }

    std::vector<manner> manners_;
    std::vector<std::shared_ptr<SSL_CTX>> contexts_{};
    std::atomic<int> connections_{0}, full_{0}, resumed_{0};
    mutable std::mutex mutex_{};
    std::string server_name_{}, protocol_{};
};

/// One connection.
class channel {
public:
    explicit channel(judging_parameters& t) : terms_(t) {
        const auto n = static_cast<std::size_t>(t.connections_++);
        const std::size_t i = std::min(n, t.manners_.size() - 1);
        manner_ = t.manners_[i];
        ssl_.reset(SSL_new(t.contexts_[i].get()), SSL_free);
        SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        BIO_set_mem_eof_return(SSL_get_rbio(ssl_.get()), -1);
        SSL_set_accept_state(ssl_.get());
    }
    bool stalls() const { return manner_.stalls; }
    /// The handshake is done.
    bool is_open() const { return is_open_; }
    /// What the client sent, and what that says. False where nothing can follow.
    bool take(std::string_view bytes, std::string& plain) {
        BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
        ERR_clear_error();
        if (!is_open_) {
            const int n = SSL_do_handshake(ssl_.get());
            if (n != 1) return SSL_get_error(ssl_.get(), n) == SSL_ERROR_WANT_READ;
            is_open_ = true;
            terms_.note_handshake(ssl_.get());
        }
        char buffer[16384];
        int n = 0;
        while ((n = SSL_read(ssl_.get(), buffer, sizeof buffer)) > 0)
            plain.append(buffer, static_cast<std::size_t>(n));
        return SSL_get_error(ssl_.get(), n) == SSL_ERROR_WANT_READ;
    }
    void say(std::string_view plain) {
        const std::size_t step = manner_.record ? manner_.record : plain.size();
        for (; !plain.empty(); plain.remove_prefix(std::min(step, plain.size())))
            SSL_write(ssl_.get(), plain.data(), static_cast<int>(std::min(step, plain.size())));
    }
    void say_goodbye() {
        if (manner_.says_goodbye) SSL_shutdown(ssl_.get());
    }
    /// Has all that is to be sent written, in pieces. False where one was the last.
    template <class Write> bool flush(Write&& write) {
        char buffer[65536];
        const int most = manner_.piece ? static_cast<int>(manner_.piece) : sizeof buffer;
        for (int n; (n = BIO_read(SSL_get_wbio(ssl_.get()), buffer, most)) > 0; sent_ += n) {
            if (manner_.cut_after >= 0 && sent_ + n > manner_.cut_after) {
                write(std::string_view(buffer,
                                       static_cast<std::size_t>(manner_.cut_after - sent_)));
                return false;
            }
            if (manner_.spoil_byte >= sent_ && manner_.spoil_byte < sent_ + n)
                buffer[manner_.spoil_byte - sent_] ^= 1;
            if (!write(std::string_view(buffer, static_cast<std::size_t>(n)))) return false;
        }
        return true;
    }

private:
    judging_parameters& terms_;
    manner manner_{};
    std::shared_ptr<SSL> ssl_{};
    long sent_ = 0;
    bool is_open_ = false;
};

}  // namespace tls
