// where a gate's server stood
#pragma once

#include "core/traffic/tokens.hpp"

#include <string>
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What a gate was measured on, or compared with.
enum class target_kind : unsigned char {
    none, endpoint, process, simulated, stored, same, otherwise, files
};
inline const char* to_string(target_kind k) {
    switch (k) {
    case target_kind::endpoint: return "endpoint";
    case target_kind::process: return "process";
    case target_kind::simulated: return "simulated";
    case target_kind::stored: return "stored";
    case target_kind::same: return "same server";
    case target_kind::otherwise: return "other options";
    case target_kind::files: return "files";
    case target_kind::none: break;
    }
    return "";
}

/// What is known of the server at the other end of a connection.
enum class tls_trust : unsigned char { no_tls, verified, not_verified };
inline const char* to_string(tls_trust t) {
    switch (t) {
    case tls_trust::verified: return "verified";
    case tls_trust::not_verified: return "not verified";
    case tls_trust::no_tls: break;
    }
    return "";
}

/// Where a gate's server stood and what it was.
struct target_facts {
    target_kind kind = target_kind::none;
    std::string url{};  // of what is stored, its file; of files, their names
    std::string model{};
    std::string api{};
    tls_trust tls = tls_trust::no_tls;
    token_fit tokens{};  // of made-up prompts
    std::string options{};      // where the arms differ in them: what this one's requests say
    std::vector<std::string> notes{};  // what is to be said of it before the load
    std::string measured_by{};  // the tool whose files these are, "" where it was this program
    bool is_virtual = false;  // simulated, in virtual time
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
