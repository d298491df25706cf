// properties of a server and its machine, for a history
#pragma once

#include "api/target.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/wire/series.hpp"
#include "extensions/history/core/lines.hpp"

#include <algorithm>  // find, find_if, min, sort, unique
#include <cstddef>  // size_t
#include <string>
#include <string_view>
#include <utility>  // exchange
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Unknown properties are "".
struct fingerprint {
    std::string server{}, version{};  // "vLLM", "0.33.0"
    std::string arguments{};          // a hash
    std::string accelerators{};       // "8 x NVIDIA H100 80GB HBM3"
    std::string cards{};              // a hash of the cards' ids
    std::string driver{}, power{}, kernel{};
    std::string cpu{}, cores{};
};

inline std::string short_hash(std::string_view s) {
    fnv1a hash;
    hash.add(s.data(), s.size());
    return hash.text().substr(8);
}

// ---- its software

/// Where a server reports its version, and the fields that identify it.
struct version_page {
    const char *server, *path, *version, *more;  // "": no more fields
};
inline constexpr version_page version_pages[] = {
    {"vLLM", "/version", "version", ""},        {"TensorRT-LLM", "/version", "version", ""},
    {"SGLang", "/server_info", "version", ""},  {"SGLang", "/get_server_info", "version", ""},
    {"llama.cpp", "/props", "build_info", ""},  {"Ollama", "/api/version", "version", ""},
    {"TGI", "/info", "version", "sha"},         {"TEI", "/info", "version", "sha"},
    {"Triton", "/v2", "version", ""}};

/// The pages to ask, in turn: those of a known server, else all paths, each once.
inline std::vector<version_page> version_pages_of(const std::string& server) {
    std::vector<version_page> pages;
    for (const version_page& p : version_pages)
        if (server == p.server) pages.push_back(p);
    if (!server.empty()) return pages;
    for (const version_page& p : version_pages) {
        const auto same = [&](const version_page& x) { return std::string_view(x.path) == p.path; };
        if (std::find_if(pages.begin(), pages.end(), same) == pages.end()) pages.push_back(p);
    }
    return pages;
}
/// Returns "0.33.0", "3.1.0 (4d5e6f70)"; "" if the answer is another server's.
inline std::string reported_version(const version_page& p, const std::string& body) {
    picojson::value v;
    if (!parse_json(body, v)) return {};
    const std::string version = printable(string_member(v, p.version), 60);
    const std::string more = *p.more ? printable(string_member(v, p.more), 12) : "";
    return version.empty() || more.empty() ? version : version + " (" + more + ")";
}
/// The name of a server whose metrics page does not say it: by its API, or by the path that it
/// answers, which two servers may share.
inline std::string server_behind(const std::string& path) {
    std::string names;
    for (const version_page& p : version_pages)
        if (path == p.path) names += (names.empty() ? "" : " or ") + std::string(p.server);
    return names;
}

/// Hashes the parts of a command that matter: not addresses, file locations, keys and seeds.
inline std::string hash_of_arguments(std::string_view command) {
    constexpr std::string_view idle[] = {"host", "port", "path", "dir",  "file",
                                         "root", "seed", "key",  "token"};
    const auto ends_with = [](std::string_view s, std::string_view end) {
        return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
    };
    std::string kept;
    bool passes_value = false;
    while (!command.empty()) {
        const std::size_t n = std::min(command.find_first_of(" \t\n"), command.size());
        const std::string_view word = command.substr(0, n);
        command.remove_prefix(std::min(n + 1, command.size()));
        if (word.empty()) continue;
        const bool is_option = word.front() == '-';
        const bool is_value = std::exchange(passes_value, false) && !is_option;
        const std::size_t sign = word.find('=');
        const std::string_view name = word.substr(0, sign);
        bool is_idle = is_value || (!is_option && name.find('/') != std::string_view::npos);
        for (const std::string_view end : idle)
            if (is_option && ends_with(name, end)) {
                is_idle = true;
                passes_value = sign == std::string_view::npos;
            }
        if (!is_idle) kept.append(word).append(" ");
    }
    return kept.empty() ? "" : short_hash(kept);
}

// ---- its accelerators

/// "2 x NVIDIA L4, NVIDIA T4": the names of all, counted.
inline std::string counted_names(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::string words;
    for (std::size_t i = 0, n = 0; i < names.size(); i += n) {
        for (n = 1; i + n < names.size() && names[i + n] == names[i];) ++n;
        words += (words.empty() ? "" : ", ") + printed("%zu x ", n) + names[i];
    }
    return words;
}
/// Each card once, in any order.
inline std::string hash_of_cards(std::vector<std::string> ids) {
    std::sort(ids.begin(), ids.end());
    std::string all;
    for (const std::string& id : ids) all += id + "\n";
    return ids.empty() ? "" : short_hash(all);
}

/// Adds cards on a dcgm-exporter page to those of other pages.
struct reported_cards {
    std::vector<std::string> ids{}, names{}, drivers{};
};
inline void read_cards(const metrics_page& page, reported_cards& to) {
    for (const page_sample& s : page.samples) {
        const std::string id = printable(label_of(page, s, "UUID"), 60);
        const std::string name = printable(label_of(page, s, "modelName"), 60);
        if (id.empty() || name.empty()) continue;
        if (std::find(to.ids.begin(), to.ids.end(), id) != to.ids.end()) continue;
        to.ids.push_back(id);
        to.names.push_back(name);
        const std::string_view driver = label_of(page, s, "DCGM_FI_DRIVER_VERSION");
        if (!driver.empty()) to.drivers.push_back(printable(driver, 30));
    }
}
/// Reads `nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,power.limit
/// --format=csv,noheader`: a line for each card; no cards in other text.
inline void read_nvidia_smi(std::string_view csv, fingerprint& to) {
    std::vector<std::string> names, cards, powers;
    while (!csv.empty()) {
        const std::size_t end = std::min(csv.find('\n'), csv.size());
        std::string_view line = csv.substr(0, end);
        csv.remove_prefix(std::min(end + 1, csv.size()));
        std::vector<std::string> cells;
        for (std::size_t n = 0; !line.empty(); line.remove_prefix(std::min(n + 1, line.size()))) {
            n = std::min(line.find(','), line.size());
            cells.push_back(printable(trimmed(line.substr(0, n)), 60));
        }
        if (cells.size() != 5 || cells[1].compare(0, 4, "GPU-") != 0) continue;
        names.push_back(cells[0]);
        cards.push_back(cells[1] + " " + cells[3]);
        powers.push_back(cells[4]);
        to.driver = cells[2];
    }
    if (names.empty()) return;
    to.accelerators = counted_names(names);
    to.cards = hash_of_cards(cards);
    std::sort(powers.begin(), powers.end());
    powers.erase(std::unique(powers.begin(), powers.end()), powers.end());
    to.power = powers.size() == 1 ? powers[0] : "";
}

/// Properties that are watched, and named if they change at a step.
inline std::vector<named_text> watched_facts(const fingerprint& f) {
    std::vector<named_text> all;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) all.emplace_back(name, value);
    };
    add("arguments", f.arguments);
    add("card", f.cards);
    add("driver", f.driver);
    add("kernel", f.kernel);
    add("power", f.power);
    add("server", f.version.empty() ? "" : f.server + " " + f.version);
    return all;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
