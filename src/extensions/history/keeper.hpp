// gates judged by the history of main, and added to it
#pragma once

#include "api/scenario.hpp"
#include "api/target.hpp"
#include "core/base/extension.hpp"
#include "core/base/vector.hpp"
#include "core/base/shared.hpp"
#include "core/base/text.hpp"
#include "core/bodies/result_data.hpp"
#include "core/judging/decision.hpp"
#include "core/planning/target_facts.hpp"
#include "core/reports/gate_report.hpp"
#include "core/reports/machine_facts.hpp"
#include "core/planning/plan.hpp"
#include "effects/gates/accelerators.hpp"
#include "effects/gates/run_mode.hpp"
#include "effects/load/load_target.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/machine.hpp"
#include "effects/system/environment.hpp"
#include "effects/targets/extension_server.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/server_pages.hpp"
#include "extensions/history/api.hpp"
#include "extensions/history/folder.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/history/core/history_judge.hpp"
#include "extensions/history/core/lines.hpp"

#include <algorithm>  // min
#include <cmath>  // ceil
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>  // cout
#include <map>
#include <memory>  // shared_ptr
#include <mutex>  // lock_guard
#include <string>
#include <system_error>  // error_code
#include <thread>  // hardware_concurrency
#include <utility>  // exchange, move

#include <sys/utsname.h>  // the kernel

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Cores that this program may use: by its affinity and its control group's quota.
inline int usable_cores() {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const double quota = quota_of(line_of_file("/sys/fs/cgroup/cpu.max"));
    return quota > 0 ? std::min(cores, static_cast<int>(std::ceil(quota))) : cores;
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
    const long long until_ns = now_ns() + ns_of(machine_within_s);
    for (const version_page& page : version_pages_of(f.server)) {
        const double left_s = static_cast<double>(until_ns - now_ns()) * 1e-9;
        if (left_s <= 0) return;
        const http_answer a = blocking_get(to, inquiry_path(to, page.path), to.fields, left_s);
        const std::string version = a.status == 200 ? reported_version(page, a.body) : "";
        if (version.empty()) continue;
        if (f.server.empty()) f.server = server_behind(page.path);
        f.version = excerpt_without_secrets(version, to.secrets);
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
    if (!runs_here(of)) return;
    if (f.accelerators.empty())
        read_nvidia_smi(said_by("nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,"
                                "power.limit --format=csv,noheader", machine_within_s), f);
    f.cpu = printable(name_of_the_processor(), 60);
    f.cores = std::to_string(usable_cores());
    utsname u{};
    if (uname(&u) == 0) f.kernel = printable(u.release, 60);
}

/// The properties of a running server. Throws std::invalid_argument if its machine is unknown and
/// not named.
inline fingerprint fingerprint_of(const live_target& of, const std::string& machine) {
    fingerprint f;
    f.machine = machine.empty() && runs_here(of) ? name_of_this_machine() : machine;
    if (const extension_server* const own = of.of_extension()) {
        f.server = own->description();
        if (current_environment) return f;
    } else {
        ask_for_version(of, f);
        f.arguments = hash_of_arguments(of.command());
    }
    ask_machine(of, f);
    if (!f.is_hardware_known() && machine.empty())
        refuse({"nothing tells which machine ", of.facts().url, " is, and only runs on one machine "
                "make a history: set LLMBENCH_MACHINE to a name for it, or name the page of its "
                "dcgm-exporter, endpoint{.telemetry = {\"http://host:9400/metrics\"}}"});
    return f;
}

/// The history baseline of a plan, or the default.
inline history_baseline history_of(const plan& p) {
    const auto* own = p.judged->past.what.get<history_baseline>();
    return own ? *own : history();
}
/// Throws std::invalid_argument with a sentence for the first fault.
inline void check_history(const scenario&, planned_traffic&, planned_judging& judged) {
    const auto* const own = judged.past.what.get<history_baseline>();
    if (!own) return;
    if (own->folder.empty()) refuse({"baseline is history(\"\"): it must name a folder"});
    const double reported = own->run_to_run.value;
    if (!(reported >= 0 && reported <= 0.5))
        refuse(
            {printed("baseline is history(...): the standard deviation between runs is %g %%: "
                     "it runs from above 0 to 50 %%, or is left out and learned",
                     reported * 100)});
}
/// All baseline runs have the same number of repeats: ending at a clear verdict would bias them.
inline scenario as_a_history_run(const scenario& given) {
    scenario s = given;
    if (s.baseline.is_live())
        refuse({"LLMBENCH_HISTORY=append, and the baseline is a server: a history is of what main "
                "does alone; gates with such a baseline are for pull requests"});
    if (s.repeats == 0) s.repeats = repeats_of_a_run;
    return s;
}

inline constexpr double runs_count_for_s = 30 * 86400.0;  // after the newest one

inline history_parameters parameters_for(const plan& p, const target_facts& target,
                                         const fingerprint& print, const run_mode& mode,
                                         const history_settings& asked) {
    const history_baseline own = history_of(p);
    const std::string folder = asked.folder_or(own.folder);
    history_parameters none;
    none.folder = folder;
    none.appends = mode.appends();
    std::error_code unread;
    const bool begins = mode.appends() && !std::filesystem::exists(folder, unread);
    none.none = mode.model                      ? "a rehearsal has no history"
                : asked.use == history_use::off ? "LLMBENCH_HISTORY is off"
                : begins                        ? "the history begins with this run"
                                                : "";
    if (!none.none.empty()) return none;
    history_store store = history_of_gate(folder, p.name, asked.at);
    // The last run of a date counts: this one replaces earlier ones of today.
    const std::string today = utc_text(machine_unix_s()).substr(0, 10);
    if (mode.appends())
        erase_if(store.lines.runs,
                      [&](const history_run& r) { return r.at.substr(0, 10) == today; });
    const std::string oldest =
        asked.at.empty() ? utc_text(machine_unix_s() - runs_count_for_s) : "";
    const planned_judging& j = *p.judged;
    const run_series mine = series_of_run(p, target, print);
    store.all_series[id_of(mine)] = mine;
    join_older_series(store.lines, store.all_series);
    return history_parameters_of(store.lines, mine, store.all_series, j.slos,
                                 {folder, own.run_to_run.value, mode.appends(), oldest,
                                  print.cards, print.machine});
}

/// The server and machine of one gate.
struct gate_on_machine final : gate_past {
    fingerprint print{};
};
inline void add_history(const run_mode& mode, const live_target& candidate, measured_gate& to) {
    const plan& p = to.what;
    const bool judges = p.judged->past.what.get<history_baseline>();
    if (!judges && !mode.appends()) return;
    const auto on = new_shared<gate_on_machine>();
    const history_settings asked = history_settings_of(environment);
    if (!mode.model) on->print = fingerprint_of(candidate, asked.machine);
    if (judges)
        to.judged_by.past =
            new_shared<history_judge>(parameters_for(p, to.target, on->print, mode, asked));
    to.past = on;
}

inline std::shared_ptr<past_judge> new_history_judge() { return new_shared<history_judge>(); }

struct runs_to_add {
    std::mutex mutex{};
    std::map<std::string, vector<history_entry>> runs{};
};
inline runs_to_add& waiting_runs() {
    static runs_to_add* const all = new runs_to_add;  // outlives every static object
    return *all;
}
inline std::string keep_run(const gate_report& g, const gate_past* of, const std::string& stopped) {
    const history_settings asked = history_settings_of(environment);
    const plan& p = g.what;
    const fingerprint print =
        of ? static_cast<const gate_on_machine*>(of)->print : fingerprint();
    history_entry e = history_entry_of(p, series_of_run(p, g.target, print), print,
                                       g.figures, g.verdicts, stopped);
    if (!e.why_not.empty()) return e.why_not;
    const std::lock_guard guard(waiting_runs().mutex);
    waiting_runs().runs[asked.folder_or(history_of(p).folder)].push_back(std::move(e));
    return {};
}
inline constexpr kept_runs kept_for_history{as_a_history_run, keep_run};
inline void read_history_settings(const variable_lookup& look_up, settings& into) {
    if (history_settings_of(look_up).appends()) into.keeps = &kept_for_history;
}
inline void write_runs(
    const std::string& began_at, const std::string& commit,
    const std::function<void(const std::string&, const std::exception&)>& lost) {
    std::map<std::string, vector<history_entry>> runs;
    {
        const std::lock_guard guard(waiting_runs().mutex);
        runs = std::exchange(waiting_runs().runs, {});
    }
    for (const auto& [folder, gates] : runs) try {
            const std::string file = append_history(folder, gates, began_at, commit);
            std::cout << "history: " << plural(gates.size(), "gate") << " added, " << file
                      << std::endl;
        } catch (const std::exception& e) { lost(folder, e); }
}
inline constinit const extension history_kept{.name = "history",
                                              .add_to_plan = check_history,
                                              .add_past = add_history,
                                              .new_judge = new_history_judge,
                                              .write_kept = write_runs,
                                              .read_settings = read_history_settings};
constinit const extension* const include_llmbench_history_hpp_where_LLMBENCH_MAIN_is =
    &history_kept;
/// Before static objects of other files, which may be gates.
[[gnu::constructor(101)]] static void add_history_kept() { add(history_kept); }

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
