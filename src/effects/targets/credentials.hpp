// credentials for a server
#pragma once

#include "api/scenario.hpp"
#include "api/side_task.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "api/workload.hpp"
#include "core/base/vector.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/wire/url.hpp"
#include "core/dialects/table.hpp"
#include "effects/system/environment.hpp"

#include <algorithm>  // min
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Header lines of all requests to a server, and the secrets in them.
struct credentials {
    std::string fields{};
    vector<std::string> secrets{};

    /// Adds the value of a header or variable. Short values ("gzip") are no secrets.
    void keep_secret(const std::string& value) {
        if (value.size() >= 8) add_secret(secrets, value);
    }
    /// Adds variables that are secret by their names; programs we start get them, too.
    void keep_secrets_of(const vector<std::string>& environment) {
        for (const std::string& v : environment)
            if (const std::size_t end = v.find('='); names_secret(v.substr(0, end)))
                keep_secret(v.substr(std::min(end, v.size() - 1) + 1));
    }
};

/// Adds possible keys in a URL's query. Short words are no secrets.
inline void add_query_secrets(vector<std::string>& secrets, std::string_view url) {
    for (const std::string_view s : query_secrets(url))
        if (s.size() >= 8) add_secret(secrets, std::string(s));
}

/// Whether a text is a variable's name, rather than the key itself by mistake.
inline bool looks_like_variable(std::string_view s) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return s.find_first_not_of(letters) == s.npos && (s.find('_') != s.npos || names_secret(s));
}

/// Adds the secrets in the texts of a scenario's servers, requests and commands.
inline void add_secrets_of(vector<std::string>& secrets, const any_target& t) {
    const auto add = [&](const text& s) {
        add_query_secrets(secrets, str(s));
        add_secrets_named_in(secrets, str(s));
    };
    const auto add_named = [&](const name_value& v) {
        if (v.is_secret && v.value.size() >= 8) add_secret(secrets, str(v.value));
        add_secrets_named_in(secrets, str(v.name) + ": " + str(v.value));
        add_secrets_named_in(secrets, str(v.value));
    };
    if (const auto* e = t.what().get<endpoint>()) {
        for (const text& s : {e->url, e->path, e->metrics_url, e->cold}) add(s);
        for (const text& s : e->telemetry) add(s);
        for (const name_value& h : e->headers) add_named(h);
        const std::string variable = str(e->api_key_env);
        if (!looks_like_variable(variable) && environment(variable.c_str()).empty())
            add_secret(secrets, variable);
    }
    if (const auto* p = t.what().get<process>()) {
        for (const text& s : {p->command, p->ready, p->path, p->metrics_url}) add(s);
        for (const text& s : p->telemetry) add(s);
        for (const name_value& v : p->env) add_named(v);
    }
}
inline void add_secrets_of(vector<std::string>& secrets, const scenario& s) {
    const auto add = [&](const text& of) { add_secrets_named_in(secrets, str(of)); };
    const auto add_step = [&](const task_step& step) {
        add_query_secrets(secrets, str(step.path));
        for (const text& of : {step.path, step.body, step.line}) add(of);
    };
    add_secrets_of(secrets, s.target);
    add_secrets_of(secrets, s.baseline.live());
    for (const task_step& step : s.prepare) add_step(step);
    for (const task_step& step : s.arrivals.data().held) add_step(step);
    for (const side_task& t : s.beside)
        for (const task_step& step : t.steps) add_step(step);
    if (s.on_fail)
        for (const text& of : {(*s.on_fail).start, (*s.on_fail).stop}) add(of);
    add(s.options.extra_body);
    if (s.baseline.asked().options) add((*s.baseline.asked().options).extra_body);
    if (const auto* m = s.workload.what().get<mix_of_parts>())
        for (const part& of : m->parts)
            if (of.options) add((*of.options).extra_body);
}

/// Throws std::invalid_argument if a gate cannot send such a header.
inline void check_header(const std::string& name, const std::string& value) {
    if (!is_token(name))
        refuse({"endpoint.headers has the name \"", printable(name),
                "\": it must be one word without a colon"});
    if (!is_header_safe(value))
        refuse({"endpoint.headers: the value of ", name,
                " holds a line break or another control character"});
    for (const char* ours : {"host", "content-length", "content-type", "transfer-encoding",
                             "connection", "x-request-id"})
        if (same_ignoring_case(name, ours))
            refuse({"endpoint.headers sets ", name, ": that header belongs to llmbench"});
}

/// The variable that holds the key. `usual`: the one of endpoints that name none.
inline std::string key_variable(const endpoint& e, const char* usual = "LLMBENCH_API_KEY") {
    return e.api_key_env.empty() ? usual : str(e.api_key_env);
}

/// Throws std::invalid_argument if a requested key is missing, or cannot be sent.
inline void check_key(const endpoint& e, const std::string& key, const std::string& variable) {
    if (!e.api_key_env.empty() && key.empty()) {
        if (looks_like_variable(variable))
            refuse({"endpoint.api_key_env is \"", variable, "\": that variable is not set"});
        refuse({"endpoint.api_key_env names a variable that is not set; it is not repeated here, "
                "for it looks like a key and not like a name"});
    }
    if (!is_header_safe(key))
        refuse({"the API key in ", variable, " holds a line break or another control character"});
}

inline bool sets_header(const endpoint& e, std::string_view name) {
    return any_of(e.headers,
                  [&](const name_value& h) { return same_ignoring_case(str(h.name), name); });
}

/// The header line of a URL with user and password, "http://user:password@host".
inline std::string login_of(const endpoint& e) {
    if (login_in(str(e.url)).empty()) return {};
    for (const bool is_key : {true, false})
        if (is_key ? !e.api_key_env.empty() : sets_header(e, "Authorization"))
            refuse({"endpoint.url has a user and a password, and ",
                    is_key ? "endpoint.api_key_env names a key"
                           : "endpoint.headers sets Authorization",
                    ": give one of them"});
    return login_line(parsed_url(str(e.url), "endpoint.url"));
}

/// The header line with the key, "" if none. If the gate sets that header itself, LLMBENCH_API_KEY
/// is not used.
inline std::string key_line(const endpoint& e, const api_traits& api, const std::string& key) {
    const std::string_view header = api.key_before;
    for (const name_value& h : e.headers) {
        if (!same_ignoring_case(str(h.name), header.substr(0, header.find(':')))) continue;
        if (!e.api_key_env.empty())
            refuse({"endpoint.headers sets ", str(h.name), " and ",
                    "endpoint.api_key_env names a key: give one of them"});
        return {};
    }
    return key.empty() ? key : api.key_before + key + "\r\n";
}

/// `key`: value of key_variable(), "" if not set. Throws std::invalid_argument.
inline credentials credentials_of(const endpoint& e, const api_traits& api,
                                  const std::string& key,
                                  const char* usual = "LLMBENCH_API_KEY") {
    credentials c;
    const std::string ours = joined({"\r\nUser-Agent: llmbench\r\n"
                                     "Content-Type: application/json\r\n", api.fields});
    for_each_field(ours.substr(0, ours.size() - 2),
                   [&](std::string_view name, std::string_view, std::string_view line) {
                       if (!sets_header(e, name)) c.fields.append(line).append("\r\n");
                   });
    for (const name_value& h : e.headers) {
        const std::string name = str(h.name), value = str(h.value);
        check_header(name, value);
        c.fields += name + ": " + value + "\r\n";
        c.keep_secret(value);
    }
    check_key(e, key, key_variable(e, usual));
    add_secret(c.secrets, key);
    const std::string login = login_of(e);
    add_secrets_named_in(c.secrets, str(e.url) + " " + login);
    c.fields += login;
    const bool is_same = !login.empty() &&
                         std::string_view(api.key_before).starts_with("Authorization:");
    if (!is_same) c.fields += key_line(e, api, key);
    return c;
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
