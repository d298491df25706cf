// the secrets that this program was told, and what it says without them
#pragma once

#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"

#include <algorithm>  // all_of, any_of
#include <mutex>  // lock_guard
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Thread-safe.
class known_secrets {
public:
    static known_secrets& of_this_program() {
        static known_secrets* const all = new known_secrets;  // outlives every static object
        return *all;
    }
    /// Of secrets with all their forms.
    void add(const vector<std::string>& more) {
        const std::lock_guard lock(mutex_);
        for (const std::string& s : more) {
            add_form(all_, s);
            if (is_no_word_of_ours(s)) add_form(in_output_, s);
        }
    }
    /// Values of headers may be secrets, which is no reason to mask them in another gate.
    void add_sent(const vector<std::string>& more) {
        const std::lock_guard lock(mutex_);
        for (const std::string& s : more) add_form(sent_, s);
    }
    vector<std::string> all() const {
        const std::lock_guard lock(mutex_);
        return all_;
    }
    /// A text of others, or one that quotes the scenario or the command line.
    std::string without(std::string_view s) const {
        const std::lock_guard lock(mutex_);
        return without_secrets(without_secrets(s, sent_), all_);
    }
    /// A whole file or text of ours: what may be a word or a number of its own stays.
    std::string masked(std::string_view s) const {
        const std::lock_guard lock(mutex_);
        return without_secrets(s, in_output_);
    }

private:
    static bool is_no_word_of_ours(std::string_view s) {
        const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
        const auto is_of_words = [](char c) {
            return (c >= 'a' && c <= 'z') || c == '_' || c == ' ';
        };
        return s.size() >= 8 && std::any_of(s.begin(), s.end(), is_letter) &&
               !std::all_of(s.begin(), s.end(), is_of_words);
    }
    mutable std::mutex mutex_{};
    vector<std::string> all_{}, sent_{}, in_output_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
