// facts about a gate's server
#pragma once

#include "core/base/vector.hpp"
#include "core/base/text.hpp"
#include "core/traffic/tokens.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

enum class target_kind : unsigned char {
    none, endpoint, process, simulated, stored, same, otherwise, files
};
inline const char* to_string(target_kind k) {
    return name_at({"", "endpoint", "process", "simulated", "stored", "same server",
                    "other options", "files"}, k);
}

enum class tls_trust : unsigned char { no_tls, verified, not_verified };
inline const char* to_string(tls_trust t) {
    return name_at({"", "verified", "not verified"}, t);
}

struct target_facts {
    target_kind kind = target_kind::none;
    std::string url{};  // a file for stored results, several for other tools' files
    std::string model{};
    std::string api{};
    std::string transport{};  // "" for HTTP
    tls_trust tls = tls_trust::no_tls;
    token_fit tokens{};  // of synthetic prompts
    std::string command{};   // of a process, without secrets
    std::string options{};      // of this variant's requests, if the variants differ in them
    vector<std::string> notes{};  // notes that are known before the load
    std::string measured_by{};  // the tool that wrote the files, "" if it was this program
    bool is_virtual = false;  // simulated, in virtual time
    bool is_rehearsal = false;  // simulated in place of another server
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
