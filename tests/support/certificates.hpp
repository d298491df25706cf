// Certificates of the tests: an authority, what it signed, and what nobody should trust.
#pragma once

#include "llmbench.hpp"

#include "support/scratch.hpp"
#include "support/tls_channel.hpp"

#include <string>

namespace live {

struct certificates {
    tls::identity authority = tls::authority();
    tls::identity good = tls::made("good", {}, &authority);
    tls::identity expired = tls::made("expired", {.from_days = -10, .to_days = -1}, &authority);
    tls::identity early = tls::made("early", {.from_days = 1, .to_days = 10}, &authority);
    tls::identity elsewhere = tls::made("else", {.names = "DNS:elsewhere.example"}, &authority);
    tls::identity self_signed = tls::made("self-signed");
    tls::identity other_authority = tls::authority("another authority");
    tls::identity unknown = tls::made("unknown", {}, &other_authority);
    files::scratch directory{};
    std::string ca_file = directory.file("ca.pem");
    certificates() { tls::write_pem(authority, ca_file); }
    static const certificates& of_the_tests() {
        static const certificates c;
        return c;
    }
};
inline const certificates& known() { return certificates::of_the_tests(); }

inline llmbench::endpoint trusted(const std::string& url) {
    return {.url = url, .tls = {.ca_file = known().ca_file}};
}

}  // namespace live
