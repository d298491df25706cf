// finds the properties of a server and its machine
#pragma once

#include "api/target.hpp"
#include "core/base/text.hpp"
#include "core/wire/url.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/machine.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/targets/extension_server.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/process.hpp"
#include "effects/targets/server_pages.hpp"
#include "extensions/history/core/fingerprint.hpp"

#include <algorithm>  // min
#include <cmath>  // ceil
#include <fstream>  // ifstream
#include <stdexcept>  // runtime_error
#include <string>
#include <thread>  // hardware_concurrency

#include <sys/utsname.h>  // the kernel
#include <unistd.h>  // unlink

namespace llmbench {
inline namespace v0 {
namespace detail {

inline constexpr double fingerprint_within_s = 2;

/// Cores that this program may use: by its affinity and its control group's quota.
inline int usable_cores() {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    std::ifstream in("/sys/fs/cgroup/cpu.max");
    double quota = 0, period = 0;
    if (!(in >> quota >> period) || !(quota > 0 && period > 0)) return cores;  // "max 100000"
    return std::min(cores, static_cast<int>(std::ceil(quota / period)));
}
/// The output of a command, "" if it fails or takes too long. Leaves no file.
inline std::string said_by(const char* command, double within_s) try {
    process p;
    p.command = command;
    const std::string log = report_directory() + "/machine.log";
    server_process running(p, 0, log, {});
    running.unlink_log();
    const long long until_ns = now_ns() + ns_of(within_s);
    while (running.how_it_ended().empty() && now_ns() < until_ns) sleep_s(0.005);
    return running.how_it_ended() == "exited with status 0" ? running.log_tail(65536) : "";
} catch (const std::runtime_error&) {
    return {};  // no resources for a process or its output
}

inline void ask_for_version(const live_target& of, fingerprint& f) {
    const load_target& to = of.load();
    const std::string api = to.api->name;
    f.server = of.pages().first_is_servers ? of.pages().of : "";
    if (f.server.empty())
        f.server = api == "tgi"                    ? "TGI"
                   : api == "triton"               ? "Triton"
                   : api.compare(0, 6, "ollama") == 0 ? "Ollama"
                   : api == "llama_cpp"            ? "llama.cpp"
                                                   : "";
    const long long until_ns = now_ns() + ns_of(fingerprint_within_s);
    for (const version_page& page : version_pages_of(f.server)) {
        const double left_s = static_cast<double>(until_ns - now_ns()) * 1e-9;
        if (left_s <= 0) return;
        const http_answer a = blocking_get(to, inquiry_path(to, page.path), to.fields, left_s);
        const std::string version = a.status == 200 ? reported_version(page, a.body) : "";
        if (version.empty()) continue;
        if (f.server.empty()) f.server = server_behind(page.path);
        f.version = printable(without_secrets(version, to.secrets));
        return;
    }
}
/// By the exporters' pages, or by this host if the server is on it; a virtual server is not.
inline void ask_machine(const live_target& of, fingerprint& f) {
    reported_cards cards;
    const server_pages& pages = of.pages();
    for (std::size_t i = pages.first_is_servers ? 1 : 0; i < pages.all.size(); ++i)
        read_cards(read_page(pages.all[i]).page, cards);
    f.accelerators = counted_names(cards.names);
    f.cards = hash_of_cards(cards.ids);
    if (!cards.drivers.empty()) f.driver = cards.drivers.front();
    if (current_environment || (!of.is_process() && !is_this_host(of.load().url))) return;
    if (f.accelerators.empty())
        read_nvidia_smi(said_by("nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,"
                                "power.limit --format=csv,noheader", fingerprint_within_s), f);
    f.cpu = printable(name_of_the_processor(), 60);
    f.cores = std::to_string(usable_cores());
    utsname u{};
    if (uname(&u) == 0) f.kernel = printable(u.release, 60);
}

/// The properties of a running server. Throws std::invalid_argument if its machine is unknown and
/// not named.
inline fingerprint fingerprint_of(const live_target& of, const std::string& machine) {
    fingerprint f;
    if (const extension_server* const own = of.of_extension()) {
        f.server = own->description();
        if (current_environment) return f;
    } else {
        ask_for_version(of, f);
        f.arguments = hash_of_arguments(of.command());
    }
    ask_machine(of, f);
    if (f.accelerators.empty() && f.cpu.empty() && machine.empty())
        refuse({"nothing tells which machine ", of.facts().url, " is, and only runs on one machine "
                "make a history: set LLMBENCH_MACHINE to a name for it, or name the page of its "
                "dcgm-exporter, endpoint{.telemetry = {\"http://host:9400/metrics\"}}"});
    return f;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
