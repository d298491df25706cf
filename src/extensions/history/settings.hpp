// the environment's settings for a history
#pragma once

#include "api/text.hpp"
#include "core/base/text.hpp"
#include "effects/system/settings.hpp"

#include <string>

namespace llmbench {
inline namespace v0 {
namespace detail {

enum class history_use : unsigned char { read, append, off };

/// The LLMBENCH_HISTORY variables.
struct history_settings {
    history_use use = history_use::read;
    std::string folder{};   // replaces the gate's own
    std::string at{};       // as of then
    std::string machine{};  // LLMBENCH_MACHINE
    bool appends() const { return use == history_use::append; }
    std::string folder_or(const types::text& own) const {
        return folder.empty() ? str(own) : folder;
    }
};

/// Throws std::invalid_argument with one sentence for the first invalid variable.
inline history_settings history_settings_of(const variable_lookup& look_up) {
    history_settings s;
    const std::string use = look_up("LLMBENCH_HISTORY");
    if (use == "append") s.use = history_use::append;
    else if (use == "off") s.use = history_use::off;
    else if (!use.empty())
        refuse({"LLMBENCH_HISTORY is \"", printable(use, 40), "\": it must be append or off, or "
                "not be set, to read"});
    s.folder = look_up("LLMBENCH_HISTORY_DIR");
    s.at = look_up("LLMBENCH_HISTORY_AT");
    s.machine = printable(trimmed(look_up("LLMBENCH_MACHINE")), 100);
    if (s.use == history_use::append && !s.at.empty())
        refuse({"LLMBENCH_HISTORY=append and LLMBENCH_HISTORY_AT are both set: nothing is added to "
                "the past"});
    return s;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
