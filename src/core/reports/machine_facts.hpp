// what makes runs on two machines unequal
#pragma once

#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/text.hpp"
#include "core/wire/series.hpp"

#include <algorithm>  // find, min
#include <cmath>  // ceil, floor, isfinite
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One card. 0 and "": unknown.
struct accelerator_facts {
    std::string id{};  // to join pages, not written
    std::string name{}, driver{};
    double clock_mhz = 0, max_clock_mhz = 0;
    double power_limit_w = 0;
    bool is_clock_fixed = false;  // by a setting
    std::string throttled{};      // reasons, "" if it is not
};

inline constexpr int most_cores = 8192;  // of a machine

/// What a machine may do, beside its processor and system. 0 and "": unknown, or not limited.
struct machine_facts {
    std::string name{};        // LLMBENCH_MACHINE, else the host's
    double quota = 0;          // cores that its control group may use
    std::string governor{};    // "powersave", or all that its cores have
    std::string smt{};         // "on", "off"
    std::string huge_pages{};  // "always", "madvise", "never"
};

inline void fields_of(field_visitor& v, accelerator_facts& a) {
    v.text({"name"}, a.name);
    v.text({"driver", "", if_any}, a.driver);
    v.number({"clock_mhz", "after the load", if_any}, a.clock_mhz, {0, most_of_few, 0});
    v.number({"max_clock_mhz", "", if_any}, a.max_clock_mhz, {0, most_of_few, 0});
    v.number({"power_limit_w", "", if_any}, a.power_limit_w, {0, most_of_few, 0});
    v.flag({"clock_fixed", "by a setting", if_any}, a.is_clock_fixed);
    v.text({"throttled", "reasons that lower its clock", if_any}, a.throttled);
}
inline void fields_of(field_visitor& v, machine_facts& m) {
    v.text({"name", "LLMBENCH_MACHINE, else the host's"}, m.name);
    v.number({"quota", "cores that its control group may use", if_any}, m.quota,
             {0, most_of_few, 0});
    v.text({"governor", "", if_any}, m.governor);
    v.text({"smt", "", if_any}, m.smt);
    v.text({"huge_pages", "", if_any}, m.huge_pages);
}

// ---- /proc and /sys

/// Returns the cores of a `cpu.max`, "150000 100000": 1.5. 0: no limit, as in "max 100000".
inline double quota_of(std::string_view cpu_max) {
    const auto quota = parsed_number<double>(taken_part(cpu_max, " "));
    const auto period = parsed_number<double>(trimmed(cpu_max));
    const bool is_one = quota && period && *quota > 0 && *period > 0;
    return is_one ? *quota / *period : 0;
}
/// Returns the folders below /sys/fs/cgroup that limit a process, by its `/proc/self/cgroup`: its
/// own and those above, "/a/b", "/a", "".
inline vector<std::string> control_groups(std::string_view of) {
    vector<std::string> all;
    while (!of.empty()) {
        const std::string_view line = taken_part(of, "\n");
        if (!line.starts_with("0::/")) continue;
        std::string path(line.substr(3));
        for (; path.size() > 1; path.resize(path.rfind('/'))) all.push_back(path);
    }
    all.push_back("");
    return all;
}
/// Returns the marked one of a list, "always [madvise] never".
inline std::string chosen_of(std::string_view list) {
    const std::size_t from = list.find('['), to = list.find(']');
    const bool is_one = from < to && to != std::string_view::npos;
    return is_one ? printable(list.substr(from + 1, to - from - 1), 30) : "";
}
/// Adds a word to a list of words, once.
inline void add_word(std::string& list, const std::string& word) {
    if (word.empty() || (", " + list + ", ").find(", " + word + ", ") != list.npos) return;
    list += (list.empty() ? "" : ", ") + word;
}

/// Returns the socket that listens on a TCP port, by /proc/net/tcp or tcp6; "" if none does.
inline std::string listening_socket(std::string_view table, int port) {
    const std::string ending = printed(":%04X", static_cast<unsigned>(port));
    while (!table.empty()) {
        std::string_view line = taken_part(table, "\n");
        vector<std::string_view> cells;
        while (!(line = trimmed(line)).empty()) cells.push_back(taken_part(line, " "));
        if (cells.size() > 9 && cells[1].ends_with(ending) && cells[3] == "0A")
            return std::string(cells[9]);
    }
    return {};
}
/// Returns the cores of a list, "0-2,5": 0, 1, 2, 5. None of a list that is none.
inline vector<int> cores_of_list(std::string_view list) {
    vector<int> all;
    for (list = trimmed(taken_part(list, "\n")); !list.empty();) {
        const std::string_view part = taken_part(list, ",");
        const std::size_t dash = std::min(part.find('-'), part.size());
        const auto first = parsed_number<int>(part.substr(0, dash));
        const auto last = dash < part.size() ? parsed_number<int>(part.substr(dash + 1)) : first;
        if (!first || !last || *first < 0 || *last >= most_cores) return {};
        for (int i = *first; i <= *last; ++i) all.push_back(i);
    }
    return all;
}
/// Returns the same list of cores in order.
inline std::string list_of_cores(const vector<int>& cores) {
    std::string list;
    for (std::size_t i = 0, end = 0; i < cores.size(); i = end) {
        for (end = i + 1; end < cores.size() && cores[end] == cores[end - 1] + 1;) ++end;
        list += (i > 0 ? "," : "") + std::to_string(cores[i]);
        if (end > i + 1) list += "-" + std::to_string(cores[end - 1]);
    }
    return list;
}
/// Returns the cores that a process may use, by its /proc/PID/status.
inline vector<int> allowed_cores(std::string_view status) {
    constexpr std::string_view name = "Cpus_allowed_list:";
    const std::size_t at = status.find(name);
    return at == status.npos ? vector<int>{} : cores_of_list(status.substr(at + name.size()));
}

// ---- accelerators

/// Bits of NVML's reasons for a clock under its maximum. Bit 0, an idle card, and bit 4, which
/// only joins the clocks of several cards, are no fault.
struct clock_reason {
    unsigned bit;
    const char* name;
};
inline constexpr clock_reason clock_reasons[] = {
    {0x4, "power limit"},    {0x8, "hardware slowdown"}, {0x20, "heat"},
    {0x40, "heat"},          {0x80, "power brake"}};
inline constexpr unsigned clock_set_by_user = 0x2;

inline void set_reasons(accelerator_facts& a, double mask) {
    if (!(mask > 0 && mask < 4294967296.0)) return;
    const auto bits = static_cast<unsigned>(mask);
    a.is_clock_fixed = (bits & clock_set_by_user) != 0;
    for (const clock_reason& r : clock_reasons)
        if (bits & r.bit) add_word(a.throttled, r.name);
}
/// What read_accelerators reads. "[N/A]" stands for a number that a card does not tell.
inline constexpr const char* nvidia_smi_query =
    "nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,power.limit,"
    "clocks_throttle_reasons.active --format=csv,noheader,nounits";

/// Returns the value of "0x0000000000000044", 0 for other text.
inline double hexadecimal(std::string_view text) {
    if (!text.starts_with("0x")) return 0;
    double value = 0;
    for (const char c : text.substr(2)) {
        const std::size_t digit = std::string_view("0123456789abcdef").find(c);
        if (digit == std::string_view::npos) return 0;
        value = value * 16 + static_cast<double>(digit);
    }
    return value;
}
/// A line for each card; no cards in other text, such as an error.
inline vector<accelerator_facts> read_accelerators(std::string_view csv) {
    vector<accelerator_facts> all;
    const auto number = [](const std::string& s) {
        const double n = parsed_number<double>(s).value_or(0);
        return std::isfinite(n) && n > 0 ? std::min(n, most_of_few) : 0;
    };
    while (!csv.empty()) {
        std::string_view line = taken_part(csv, "\n");
        vector<std::string> cells;
        while (!line.empty()) cells.push_back(printable(trimmed(taken_part(line, ",")), 60));
        if (cells.size() != 6) continue;
        accelerator_facts a{.name = cells[0], .driver = cells[1], .clock_mhz = number(cells[2]),
                            .max_clock_mhz = number(cells[3]),
                            .power_limit_w = number(cells[4])};
        set_reasons(a, hexadecimal(cells[5]));
        all.push_back(std::move(a));
    }
    return all;
}
/// Adds the cards on a page of dcgm-exporter.
inline void read_accelerators(const metrics_page& page, vector<accelerator_facts>& to) {
    for (const page_sample& s : page.samples) {
        const std::string id = printable(label_of(page, s, "UUID"), 60);
        const std::string name = printable(label_of(page, s, "modelName"), 60);
        if (id.empty() || name.empty()) continue;
        const auto is_it = [&](const accelerator_facts& a) { return a.id == id; };
        auto at = std::find_if(to.begin(), to.end(), is_it);
        if (at == to.end()) {
            const std::string_view driver = label_of(page, s, "DCGM_FI_DRIVER_VERSION");
            to.push_back({.id = id, .name = name, .driver = printable(driver, 30)});
            at = to.end() - 1;
        }
        const double value = s.value > 0 ? std::min(s.value, most_of_few) : 0;
        if (s.name == "DCGM_FI_DEV_SM_CLOCK") at->clock_mhz = value;
        if (s.name == "DCGM_FI_DEV_MAX_SM_CLOCK") at->max_clock_mhz = value;
        if (s.name == "DCGM_FI_DEV_POWER_MGMT_LIMIT") at->power_limit_w = value;
        if (is_one_of(s.name, {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
                               "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}))
            set_reasons(*at, s.value);
    }
}

// ---- for readers

/// "quota of 1.5 cores, governor powersave, SMT on, huge pages madvise", "" if nothing is known.
inline std::string machine_words(const machine_facts& m) {
    std::string words;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) words += (words.empty() ? "" : ", ") + std::string(name) + value;
    };
    if (m.quota > 0) add("quota of ", printed("%.3g cores", m.quota));
    add("governor ", m.governor);
    add("SMT ", m.smt);
    add("huge pages ", m.huge_pages);
    return words;
}
/// "NVIDIA H200 (driver 570.86.15, clock 1980 of 1980 MHz, limit 700 W)".
inline std::string accelerator_text(const accelerator_facts& a) {
    std::string words;
    const auto add = [&](const std::string& s) { words += (words.empty() ? "" : ", ") + s; };
    if (!a.driver.empty()) add("driver " + a.driver);
    if (a.clock_mhz > 0)
        add(printed("clock %.0f", a.clock_mhz) +
            (a.max_clock_mhz > 0 ? printed(" of %.0f", a.max_clock_mhz) : "") + " MHz" +
            (a.is_clock_fixed ? " (set)" : ""));
    if (a.power_limit_w > 0) add(printed("limit %.0f W", a.power_limit_w));
    if (!a.throttled.empty()) add("throttled: " + a.throttled);
    return words.empty() ? a.name : a.name + " (" + words + ")";
}
/// Equal cards are counted: "8 x NVIDIA H200 (...)".
inline std::string accelerators_text(const vector<accelerator_facts>& all) {
    std::string words;
    for (std::size_t i = 0, n = 0; i < all.size(); i += n) {
        const std::string one = accelerator_text(all[i]);
        for (n = 1; i + n < all.size() && accelerator_text(all[i + n]) == one;) ++n;
        words += (words.empty() ? "" : ", ") + (n > 1 ? printed("%zu x ", n) : "") + one;
    }
    return words;
}

// ---- what to mend

/// What makes runs of one machine unequal, and the command against it.
struct unequal_runs {
    std::string why{}, mend{};
};
inline vector<unequal_runs> what_makes_unequal(const machine_facts& m,
                                               const vector<accelerator_facts>& cards) {
    vector<unequal_runs> all;
    if (!m.governor.empty() && m.governor != "performance")
        all.push_back({"the governor is " + m.governor + ", so the clock follows the load",
                       "sudo cpupower frequency-set -g performance"});
    if (m.quota > 0 && m.quota != std::floor(m.quota))
        all.push_back({printed("the quota is %.3g cores, so the last core stops within each period",
                               m.quota),
                       printed("docker run --cpuset-cpus 0-%.0f, or a limit of whole cores",
                               std::ceil(m.quota) - 1)});
    bool is_free = false;
    for (const accelerator_facts& a : cards) {
        if (!a.throttled.empty())
            all.push_back({a.name + " is throttled: " + a.throttled,
                           "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER shows the cause"});
        is_free = is_free || (a.max_clock_mhz > 0 && !a.is_clock_fixed);
    }
    if (is_free)
        all.push_back({"no clock of an accelerator is set, so it follows load and heat",
                       "sudo nvidia-smi --lock-gpu-clocks=MHZ with a clock that it holds under "
                       "load"});
    return all;
}

/// A server's process on this machine, 0: not seen; and the cores that it may use.
struct local_server {
    long long pid = 0;
    vector<int> cores{};
};
/// A server that may use every core of the client.
inline vector<unequal_runs> shared_cores(const local_server& s, const vector<int>& clients) {
    vector<int> own, client = clients;
    const auto has = [](const vector<int>& v, int core) {
        return std::find(v.begin(), v.end(), core) != v.end();
    };
    for (const int core : clients)
        if (!has(s.cores, core)) return {};
    if (s.pid == 0 || clients.empty() || s.cores.size() < 2) return {};
    if (client.size() == s.cores.size()) client = {client.back()};
    for (const int core : s.cores)
        if (!has(client, core)) own.push_back(core);
    return {{printed("the server, process %lld, may use each core of this client", s.pid),
             "sudo taskset -acp " + list_of_cores(own) + printed(" %lld, and taskset -c ", s.pid) +
                 list_of_cores(client) + " llmbench ..."}};
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
