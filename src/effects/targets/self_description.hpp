// what a server says of its version and its settings
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/metric/filled.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/table.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/inquiries.hpp"

#include <algorithm>  // min, replace
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

struct self_description {
    std::string version{};   // "vllm 0.11.0", "" if unknown
    std::string settings{};  // "n_ctx=4096, total_slots=4"
};

/// The page on which the owner of a list of models describes itself. Only that server is asked for
/// it, because others would log an unknown path.
struct description_page {
    const char *owner, *name, *path;
};
inline constexpr description_page description_pages[] = {{"vllm", "vllm", "/version"},
                                                         {"sglang", "sglang", "/get_server_info"},
                                                         {"llamacpp", "llama.cpp", "/props"},
                                                         {"library", "ollama", "/api/version"}};
/// Returns the page of the server with this list of models; null if none is known.
inline const description_page* page_of_owner(const api_traits& api, const http_answer& models) {
    picojson::value v;
    if (!*api.models_in || models.status != 200 || !parse_json(models.body, v)) return nullptr;
    for (const picojson::value& m : array_member(v, api.models_in))
        for (const description_page& p : description_pages)
            if (string_member(m, "owned_by") == p.owner) return &p;
    return nullptr;
}

/// Reads such a page: the version, and other short values by their names without secret ones.
inline self_description described_by(const char* server, const http_answer& a,
                                     const vector<std::string>& secrets) {
    constexpr std::size_t longest_value = 120, longest = 3000;
    picojson::value v;
    if (a.status != 200 || !parse_json(a.body, v) || !v.is<picojson::object>()) return {};
    self_description d;
    for (const auto& [name, value] : v.get<picojson::object>()) {
        if (value.is<picojson::object>() || value.is<picojson::array>() ||
            value.is<picojson::null>() || names_secret(name))
            continue;
        const std::string text = value.to_str();
        if (text.empty() || text.size() > longest_value) continue;
        const std::string words = printable(without_secrets(text, secrets));
        if (name == "version" || name == "build_info")
            d.version = filled("{server} {words}", {{"server", server}, {"words", words}});
        else if (d.settings.size() < longest)
            fill(d.settings, "{,}{name}={words}", {{"name", printable(name)}, {"words", words}});
    }
    return d;
}
inline self_description description_of(const load_target& to, const http_answer& models) {
    const description_page* const page = page_of_owner(*to.api, models);
    if (!page) return {};
    return described_by(page->name, blocking_get(to, inquiry_path(to, page->path), to.fields, 3),
                        to.secrets);
}

/// A command line for reports: known secrets are masked, and so are the values of options whose
/// names tell of one, `--api-key x` or `--api-key=x`.
inline std::string command_for_reports(const std::string& command,
                                       const vector<std::string>& secrets) {
    std::string out;
    bool is_secret = false;
    for (std::size_t at = 0; at < command.size();) {
        const std::size_t end = std::min(command.find_first_of(" \t\n", at), command.size());
        const std::string_view word = std::string_view(command).substr(at, end - at);
        std::string name(word.substr(0, word.find('=')));
        std::replace(name.begin(), name.end(), '-', '_');
        const bool has_value = name.size() < word.size(), names_one = names_secret(name);
        if (is_secret && !word.empty()) out += "***";
        else if (names_one && has_value) out += std::string(word.substr(0, name.size())) + "=***";
        else out += word;
        if (!word.empty()) is_secret = names_one && !has_value && word.front() == '-';
        if (end < command.size()) out += command[end];
        at = end + 1;
    }
    return printable(without_secrets(out, secrets), 1000);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
