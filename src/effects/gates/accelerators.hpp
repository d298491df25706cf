// the accelerators of a server, as they are after its load
#pragma once

#include "core/base/vector.hpp"
#include "core/reports/machine_facts.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/report_directory.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/server_pages.hpp"

#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>

#include <unistd.h>  // access

namespace llmbench {
inline namespace v1 {
namespace detail {

inline constexpr double machine_within_s = 2;  // for a command that tells of this machine

/// The output of a command, "" if it fails or takes too long. Leaves no file.
inline std::string said_by(const char* command, double within_s) try {
    process p;
    p.command = command;
    const std::string log = report_directory() + "/machine.log";
    server_process running(p, 0, log, {});
    running.unlink_log();
    comes_by([&] { return !running.how_it_ended().empty(); }, now_ns() + ns_of(within_s), 0.005);
    return running.how_it_ended() == "exited with status 0" ? running.log_tail(65536) : "";
} catch (const std::runtime_error&) {
    return {};  // no resources for a process or its output
}
/// Whether a shell would find a program.
inline bool is_installed(const char* program) {
    const std::string path = environment("PATH");
    for (std::string_view rest = path; !rest.empty();) {
        const std::string folder(taken_part(rest, ":"));
        if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
    }
    return false;
}
/// Those of this host.
inline vector<accelerator_facts> accelerators_here() {
    if (!is_installed("nvidia-smi")) return {};
    return read_accelerators(said_by(nvidia_smi_query, machine_within_s));
}

/// Whether a server runs on this host, in real time.
inline bool runs_here(const live_target& of) {
    return !current_environment && (of.is_process() || is_this_host(of.load().url));
}
/// By the pages of its dcgm-exporters, or by this host if the server is on it.
inline vector<accelerator_facts> accelerators_of(const live_target& of) {
    vector<accelerator_facts> all;
    const server_pages& pages = of.pages();
    for (std::size_t i = pages.first_is_servers ? 1 : 0; i < pages.all.size(); ++i)
        read_accelerators(read_page(pages.all[i]).page, all);
    const bool asks_host = all.empty() && runs_here(of) && !of.of_extension();
    return asks_host ? accelerators_here() : all;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
