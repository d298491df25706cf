// where a gate's server stood
#pragma once

#include "core/base/text.hpp"
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
    return name_at({"", "endpoint", "process", "simulated", "stored", "same server",
                    "other options", "files"}, k);
}

/// What is known of the server at the other end of a connection.
enum class tls_trust : unsigned char { no_tls, verified, not_verified };
inline const char* to_string(tls_trust t) {
    return name_at({"", "verified", "not verified"}, t);
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
    bool is_rehearsal = false;  // and instead of another server
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
