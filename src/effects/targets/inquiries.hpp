// questions to a server before the load
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/wire/url.hpp"
#include "core/dialects/body_reader.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"
#include "core/answers/timeline.hpp"
#include "core/traffic/tokens.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/environment.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/load_target.hpp"

#include <algorithm>  // max
#include <atomic>
#include <cstddef>  // size_t
#include <functional>  // how a server is asked
#include <stdexcept>  // invalid_argument, runtime_error
#include <string>
#include <string_view>
#include <utility>  // move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Returns "GET /v1/models answered HTTP 401: no such key", shortened.
inline std::string quoted_answer(const load_target& to, const char* method,
                                 const std::string& path, const http_answer& a) {
    json_reader reader;
    const json_view* v = reader.read(a.body);
    const std::string reported = v ? refusal_message(*v) : "";
    const std::string words = excerpt_without_secrets(
        trimmed(reported.empty() ? a.body : reported), to.secrets, 160);
    return method + (" " + path) + " answered HTTP " + std::to_string(a.status) +
           (words.empty() ? " and nothing else" : ": " + words);
}

inline bool is_this_host(const http_url& u) {
    return !u.socket.empty() || u.host == "localhost" || u.host == "::1" ||
           u.host.compare(0, 4, "127.") == 0;
}
/// Whether two URLs name one host, by whatever name of this one.
inline bool are_on_one_host(const http_url& a, const http_url& b) {
    return a.host == b.host || (is_this_host(a) && is_this_host(b));
}
/// Returns a note on a proxy that the environment names for this server, as for curl, and that is
/// not used; "" if none.
inline std::string ignored_proxy(const http_url& u, const variable_lookup& look_up) {
    if (is_this_host(u)) return {};
    std::string set;
    for (const char* name : {u.tls ? "https_proxy" : "http_proxy", u.tls ? "HTTPS_PROXY" : "",
                             "all_proxy", "ALL_PROXY"})
        if (set.empty() && *name && !look_up(name).empty()) set = name;
    std::string without = look_up("no_proxy");
    if (without.empty()) without = look_up("NO_PROXY");
    for (std::string_view rest = without; !rest.empty();) {
        std::string_view name = trimmed(taken_part(rest, ","));
        if (name == "*" || name == u.host) return {};
        while (!name.empty() && (name.front() == '*' || name.front() == '.')) name.remove_prefix(1);
        if (!name.empty() && u.host.ends_with("." + std::string(name))) return {};
    }
    return set.empty() ? set : set + " is set and not used: " + u.authority() +
                                   " is asked directly, through no proxy";
}

/// Returns a note on a host with several addresses of one kind, such as replicas behind one name:
/// all connections go to the first, as long as it takes them; "" if there is one. The pages of the
/// server are read there, too, so that its counts are of the same requests.
inline std::string one_of_addresses(const http_url& u, const vector<address>& in_order) {
    std::size_t alike = 0;
    for (const address& a : in_order)
        alike += a.storage.ss_family == in_order.front().storage.ss_family;
    if (alike < 2) return {};
    return printable(u.host) + " has " + std::to_string(alike) + " addresses, and every request "
           "goes to one of them, " + digits_of(in_order.front()) + ": if they are replicas, one is "
           "measured; name a load balancer to measure all";
}

/// Returns advice on a refused key.
inline std::string key_hint(const load_target& to) {
    const std::string_view before = to.api->key_before;
    const std::string_view header = before.substr(0, before.find(':') + 1);
    bool was_sent = false;
    for (std::size_t at = 0; at < to.fields.size(); at = to.fields.find('\n', at) + 1)
        was_sent |= same_ignoring_case(std::string_view(to.fields).substr(at, header.size()),
                                       header);
    return was_sent ? "it does not take the key that was sent"
                    : "no key was sent: set LLMBENCH_API_KEY (of a baseline on another host "
                      "LLMBENCH_BASELINE_API_KEY), or name its variable in endpoint.api_key_env";
}
/// Returns advice on an unknown path: most often the address of an answer was pasted. "" without a
/// path.
inline std::string path_hint(const load_target& to, const std::string& url) {
    const std::string& path = to.url.path;
    if (path.empty() || is_at_whole_url(*to.api)) return {};
    if (names_whole_path(*to.api, path))
        return "the URL names the whole path, " + path + ": does this server have its API there?";
    for (const api_traits& a : apis)
        for (const std::string_view own : {std::string_view(a.path), std::string_view(a.whole_path),
                                           std::string_view(a.models)}) {
            if (own.empty() || !path.ends_with(own)) continue;
            const std::size_t end = url.rfind(own);
            return "the URL ends with " + std::string(own) + ", which is added to it: write " +
                   url.substr(0, end);
        }
    return "the URL's own path is " + path + ": is that where this server has its API? If it has " +
           "a path of its own, name it by endpoint.path";
}

/// Returns advice on a refused field of ours, "" if the answer names none.
inline std::string field_hint(const http_answer& a) {
    constexpr std::pair<std::string_view, const char*> fields[] = {
        {"stream_options", "options.include_usage = false leaves it out"},
        {"max_completion_tokens", "options.max_tokens_field = \"max_completion_tokens\" sends it"},
        {"ignore_eos", ".force_output = false of the workload leaves it out"}};
    for (const auto& [name, advice] : fields)
        if (a.body.find(name) != std::string::npos) return advice;
    return {};
}
/// Returns why a server with this answer cannot take the load, "" if it may.
inline std::string why_not_served(const load_target& to, const char* method,
                                  const std::string& path, const http_answer& a,
                                  const std::string& url) {
    std::string hint;
    switch (a.status) {
    case 401:
    case 403: hint = key_hint(to); break;
    case 404:
    case 405:
    case 501: hint = path_hint(to, url); break;
    case 400:
    case 422:
        hint = field_hint(a);
        if (a.status == 422 || !hint.empty()) break;
        return {};
    default: return {};
    }
    const bool takes_api = a.status == 400 || a.status == 422;
    return url + (takes_api ? " refuses such requests: " : " does not serve this API: ") +
           quoted_answer(to, method, path, a) +
           (hint.empty() ? "" : "; " + hint);
}

/// No server answers: with LLMBENCH_SKIP_WITHOUT_SERVER the gate is skipped.
struct no_server : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// Calls `ask`. An interruption leaves answers out: what a server then seems to lack is no refusal.
template <class F>
auto unless_interrupted(F&& ask) {
    try {
        return ask();
    } catch (const std::invalid_argument& e) {
        if (!stop_asked.load()) throw;
        throw no_server(std::string("the run was interrupted while servers were asked: ") +
                        e.what());
    }
}

/// The path of a request outside the load. The URL of a plain_text server names its only endpoint;
/// other paths are beside it.
inline std::string inquiry_path(const load_target& to, const char* path) {
    const bool is_whole = is_at_whole_url(*to.api);
    const std::string own = to.own_path.substr(0, to.own_path.find('?'));
    const std::string base = is_whole                        ? std::string()
                             : names_whole_path(*to.api, own) ? own
                                                              : to.url.path;
    const std::string whole = request_path(*to.api, path, base, ""), query = to.url.query;
    const bool joins = !query.empty() && whole.find('?') != std::string::npos;
    return whole + (joins ? "&" + query.substr(1) : query);
}

// ---- which models it has

/// A model, and the maximum of its prompt and answer tokens; 0: unknown.
struct listed_model {
    std::string name{};
    int room = 0;
};
/// Returns the models in an answer.
inline vector<listed_model> listed_models(const api_traits& api, const http_answer& a) {
    vector<listed_model> models;
    picojson::value v;
    if (!*api.models || a.status != 200 || !parse_json(a.body, v)) return models;
    if (!*api.models_in) {
        if (has_text(v, api.model_as)) models.push_back({string_member(v, api.model_as)});
        return models;
    }
    for (const picojson::value& m : array_member(v, api.models_in))
        models.push_back({string_member(m, api.model_as),
                          std::max(0, count_member(m, "max_model_len"))});
    return models;
}
inline bool is_named(const vector<listed_model>& models, const std::string& name) {
    return any_of(models, [&](const listed_model& m) { return m.name == name; });
}

inline std::string names_of(const vector<listed_model>& models, const load_target& to) {
    std::string names;
    for (const listed_model& m : models)
        names += (names.empty() ? "" : ", ") + excerpt_without_secrets(m.name, to.secrets, 100);
    return names;
}
/// Whether the server is probably starting.
inline bool is_on_its_way(const http_answer& a) {
    return a.status == 0 || a.status == 502 || a.status == 503 || a.status == 504;
}
/// The first path asked: the list of models, or readiness.
inline std::string first_path(const load_target& to) {
    return inquiry_path(to, *to.api->models ? to.api->models : to.api->ready);
}

/// Returns the only model that the server lists, for a gate that names none. An API without models
/// uses it in reports, "" if unknown.
inline std::string only_model(const load_target& to, const http_answer& a, const std::string& url) {
    const vector<listed_model> models = listed_models(*to.api, a);
    if (models.size() == 1) return models[0].name;
    if (!to.api->needs_model) return {};
    const std::string why = why_not_served(to, "GET", first_path(to), a, url);
    if (!why.empty() && *to.api->models)  // another path may be served, but not without a key
        refuse({why, a.status == 401 ? "" : "; or name a model by .model or LLMBENCH_MODEL"});
    if (!models.empty() || !*to.api->models)
        refuse({"no model is named and ", url, " lists ",
                models.empty() ? "none"
                               : std::to_string(models.size()) + " (" + names_of(models, to) + ")",
                ": set .model or LLMBENCH_MODEL"});
    refuse({"no model is named and ", url, " lists none: ",
            quoted_answer(to, "GET", first_path(to), a), "; ",
            is_on_its_way(a) ? "endpoint.ready_within waits for one whose model still loads"
                             : "is it a server of the API " + std::string(to.api->name) +
                                   "? if so, set .model or LLMBENCH_MODEL"});
}
/// Returns a note on a named model that is not listed, else "".
inline std::string unlisted_text(const load_target& to, const http_answer& a) {
    const vector<listed_model> models = listed_models(*to.api, a);
    return models.empty() || is_named(models, to.model) ? std::string()
                     : "the server does not list this model; it lists " + names_of(models, to);
}

/// Returns the first answer: the list of models, or readiness. Throws no_server if there is none.
inline http_answer first_answer(const load_target& to, const std::string& url,
                                const std::string& proxy = "") {
    http_answer a = blocking_get(to, first_path(to), to.fields, 10);
    a.error = without_secrets(a.error, to.secrets);
    if (a.distrusted) refuse({url, ": ", a.error});
    if (a.status == 0)
        throw no_server("no server answers at " + url + ": " + a.error +
                        (proxy.empty() ? "" : "; " + proxy));
    return a;
}

// ---- how many tokens a text has

/// Reads an answer of /tokenize: {"count"}, or {"tokens"} of llama.cpp; -1 for others.
inline int counted_tokens(const http_answer& a) {
    picojson::value v;
    if (a.status != 200 || !parse_json(a.body, v)) return -1;
    const picojson::value* all = member(v, "tokens");
    const bool listed = all && all->is<picojson::array>();
    return listed ? static_cast<int>(all->get<picojson::array>().size())
                  : count_member(v, "count");
}
/// The largest id in an answer of /tokenize, 0: none.
inline std::size_t largest_id(const http_answer& a) {
    picojson::value v;
    if (a.status != 200 || !parse_json(a.body, v)) return 0;
    const picojson::value* all = member(v, "tokens");
    double largest = 0;
    if (all && all->is<picojson::array>())
        for (const picojson::value& id : all->get<picojson::array>())
            if (id.is<double>()) largest = std::max(largest, id.get<double>());
    return largest < 1e9 ? static_cast<std::size_t>(largest) : 0;
}
/// Prompt tokens in an answer's usage; -1: not reported.
inline int used_tokens(const api_traits& api, const http_answer& a, const asked_answer& asked) {
    int n = -1;
    if (a.status != 200) return n;
    const auto note = [&](const stream_event& e) {
        if (e.prompt_tokens >= 0) n = e.prompt_tokens;
    };
    body_reader reader;
    reader.reset(api, asked);
    if (reader.feed(a.body, note)) reader.end(note);
    return n;
}

/// Finds how a server counts synthetic prompts: by /tokenize, else by the usage of requests for one
/// token.
class token_inquiry {
public:
    using post_t = std::function<http_answer(const std::string& path, const std::string& body)>;

    /// `common`: shared by all requests of the load.
    token_inquiry(const load_target& to, const request_spec& common, post_t post)
        : to_(to), common_(common), post_(std::move(post)) {}

    /// Of prompts that are words.
    token_fit fit() {
        return marked(fitted_tokens(
            [&](const std::string& text) { return tokenized(body_of_text(text)); },
            [&](const std::string& prompt) {
                request_spec r = common_;
                r.prompt = prompt;
                return of_request(r);
            }));
    }
    /// Of prompts that may be lists of token ids.
    token_fit fit_with_ids() {
        const token_fit words = fit();
        if (words.lengths == token_fit::quality::exact) return words;
        const std::size_t known_id =
            tokenizes_ ? largest_id(answer_to(inquiry_path(to_, "/tokenize"),
                                              body_of_text(text_of_many_scripts())))
                       : 0;
        const token_fit ids = fitted_ids(
            [&](const std::string& list) {
                request_spec r = common_;
                r.token_ids = id_list(list);
                return of_request(r);
            },
            known_id);
        return marked(ids.as_ids ? ids : words);
    }

private:
    token_fit marked(token_fit found) const {
        found.is_unanswered = is_unanswered_ && found.lengths != token_fit::quality::exact;
        return found;
    }
    http_answer answer_to(const std::string& path, const std::string& body) {
        http_answer a = post_(path, body);
        is_unanswered_ |= a.status == 0;
        return a;
    }
    std::string body_of_text(const std::string& text) const {
        request_spec none;
        body_writer b(none);  // "content" is for llama.cpp
        b.string("model", to_.model).string("prompt", text).string("content", text);
        return b.finished();
    }
    /// After a failure it is not asked again.
    int tokenized(const std::string& body) {
        if (!tokenizes_) return -1;
        const int n = counted_tokens(answer_to(inquiry_path(to_, "/tokenize"), body));
        tokenizes_ = n > 0;
        return tokenizes_ ? n : -1;
    }
    int of_request(const request_spec& r) {
        request_spec short_one = r;
        short_one.max_tokens = 1;
        const std::string body = request_body(*to_.api, to_.model, short_one);
        if (const int n = r.token_ids.empty() ? tokenized(body) : -1; n > 0) return n;
        return used_tokens(*to_.api, answer_to(r.stream ? to_.path : to_.whole_path, body),
                           asked_by(*to_.api, r, body.size()));
    }

    const load_target& to_;
    const request_spec& common_;
    post_t post_;
    bool tokenizes_ = true;
    bool is_unanswered_ = false;
};

/// Returns an id that no request of a load has, and no other check of this program.
inline std::string next_id_of_check() {
    static std::atomic<std::size_t> asked{0};
    return id_of_check(current_environment ? 0 : asked++, run_in_ids());
}
/// Sends one short request like those of a load, on a connection that may be kept.
inline http_answer ask_for_one_token(const load_target& to, request_spec r, double within_s = 3) {
    r.prompt = "Hello";
    r.max_tokens = 1;
    return answer_to(to,
                     request_text(http_method::post, path_of(to, r), to.url.authority(),
                                  to.fields + "X-Request-Id: " + next_id_of_check() + "\r\n",
                                  request_body(*to.api, to.model, r)),
                     within_s);
}
/// Returns why an answer cannot be read as the load's are, "" if it can: it has at least one token,
/// perhaps without text.
inline std::string why_no_answer(const load_target& to, const request_spec& r,
                                 const http_answer& a) {
    if (a.status == 0) return excerpt_without_secrets(a.error, to.secrets, 200);
    if (a.status / 100 != 2) return printed("HTTP %d", a.status);
    body_reader reader;
    reader.reset(*to.api, {.is_streamed = r.stream});
    if (!reader.takes(a.content_type) && !reader.begins_as_asked(a.body).value_or(false))
        return "\"" + printable(a.content_type, 60) + "\" is not " + reader.wanted();
    stream_timeline seen;
    const auto note = [&](const stream_event& e) { seen.on_event(e, 1); };
    const std::string wrong = reader.feed(a.body, note) ? reader.end(note) : "it is too long";
    if (!wrong.empty()) return wrong;
    seen.on_body_end(1);
    record x;
    seen.write_to(x);
    const bool brought = x.status == request_status::ok ||
                         (x.status == request_status::empty && x.output_tokens > 0);
    return brought ? "" : without_secrets(str(x.error), to.secrets);
}
/// Returns a note on an answer whose content type is not that of its bytes, else "".
inline std::string mistyped_text(const load_target& to, const request_spec& r,
                                 const http_answer& a) {
    body_reader reader;
    reader.reset(*to.api, {.is_streamed = r.stream});
    if (a.status / 100 != 2 || reader.takes(a.content_type) ||
        !reader.begins_as_asked(a.body).value_or(false))
        return {};
    return joined({"answers are read as ", reader.wanted(), ", which their bytes are; their "
                   "content type is \"", printable(a.content_type, 60), "\""});
}
/// What the check before a load found.
struct load_check {
    int resets = 0;      // times the server closed the connection after an answer without notice
    std::string note{};  // "" for none
};
/// Refuses a server that cannot take the load. After an unnoticed close it is asked again.
inline load_check checked_load(const load_target& to, const request_spec& common,
                               const std::string& url) {
    load_check found;
    for (; found.resets < resets_by_policy; ++found.resets) {
        const http_answer a = ask_for_one_token(to, common);
        const std::string why = why_not_served(to, "POST", path_of(to, common), a, url);
        if (!why.empty()) refuse({why});
        found.note = mistyped_text(to, common, a);
        if (!a.reset_by_server) break;
    }
    return found;
}

/// Finds the word lengths of synthetic prompts, within `within_s`. `may_be_ids`: no request has
/// text around its prompt.
inline token_fit learned_tokens(const request_spec& common, bool may_be_ids, const load_target& to,
                                double within_s) {
    const long long until = now_ns() + ns_of(within_s);
    const auto post = [&](const std::string& path, const std::string& body) {
        const double left_s = static_cast<double>(until - now_ns()) * 1e-9;
        return left_s <= 0 ? http_answer()
                           : blocking_post(to, path, to.fields, body, left_s);
    };
    token_inquiry asked(to, common, post);
    return to.api->takes_token_ids && may_be_ids ? asked.fit_with_ids() : asked.fit();
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
