// questions to a server before the load
#pragma once

#include "core/base/json.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/answers/timeline.hpp"
#include "core/dialects/body_reader.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/tokens.hpp"
#include "effects/system/clock.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/first_words.hpp"

#include <algorithm>  // any_of, max
#include <functional>  // how a server is asked
#include <stdexcept>  // runtime_error
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// No server answers: with LLMBENCH_SKIP_WITHOUT_SERVER the gate is skipped.
struct no_server : std::runtime_error {
    using std::runtime_error::runtime_error;
};

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
inline std::vector<listed_model> listed_models(const api_traits& api, const http_answer& a) {
    std::vector<listed_model> models;
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
inline bool is_named(const std::vector<listed_model>& models, const std::string& name) {
    return std::any_of(models.begin(), models.end(),
                       [&](const listed_model& m) { return m.name == name; });
}

inline std::string names_of(const std::vector<listed_model>& models, const load_target& to) {
    std::string names;
    for (const listed_model& m : models)
        names += (names.empty() ? "" : ", ") + printable(without_secrets(m.name, to.secrets), 100);
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
inline std::string only_model(const load_target& to, const http_answer& a,
                              const std::string& url) {
    const std::vector<listed_model> models = listed_models(*to.api, a);
    if (models.size() == 1) return models[0].name;
    if (!to.api->needs_model) return {};
    const std::string why = why_not_served(to, "GET", first_path(to), a, url);
    if (!why.empty() && *to.api->models)
        refuse({why, "; or name a model by .model or LLMBENCH_MODEL"});
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
    const std::vector<listed_model> models = listed_models(*to.api, a);
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
inline int used_tokens(const api_traits& api, const http_answer& a, bool streamed,
                       const asked_answer& asked = {}) {
    int n = -1;
    if (a.status != 200) return n;
    const auto note = [&](const stream_event& e) {
        if (e.prompt_tokens >= 0) n = e.prompt_tokens;
    };
    body_reader reader;
    reader.reset(api, streamed, false, asked);
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

    /// `may_be_ids`: a prompt may be a list of token ids.
    token_fit fit(bool may_be_ids) {
        const token_fit words = fitted_tokens([&](const std::string& t) { return of_text(t); },
                                              [&](const std::string& p) { return of_prompt(p); });
        if (!may_be_ids || words.lengths == token_fit::quality::exact) return words;
        const token_fit ids = fitted_ids([&](const std::string& list) { return of_ids(list); },
                                         tokenizes_ ? known_id() : 0);
        return ids.as_ids ? ids : words;
    }

private:
    std::size_t known_id() {
        return largest_id(
            post_(inquiry_path(to_, "/tokenize"), body_of_text(text_of_many_scripts())));
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
        const int n = counted_tokens(post_(inquiry_path(to_, "/tokenize"), body));
        tokenizes_ = n > 0;
        return tokenizes_ ? n : -1;
    }
    int used_by(const request_spec& r, const std::string& body) {
        return used_tokens(*to_.api, post_(r.stream ? to_.path : to_.whole_path, body), r.stream,
                           asked_by(*to_.api, r, body.size()));
    }
    std::string body_of(request_spec r) const {
        r.max_tokens = 1;
        return request_body(*to_.api, to_.model, r);
    }
    int of_text(const std::string& text) { return tokenized(body_of_text(text)); }
    int of_prompt(const std::string& prompt) {
        request_spec r = common_;
        r.prompt = prompt;
        const std::string body = body_of(r);
        const int n = tokenized(body);
        return n > 0 ? n : used_by(r, body);
    }
    int of_ids(const std::string& ids) {
        request_spec r = common_;
        r.token_ids = id_list(ids);
        return used_by(r, body_of(r));
    }

    const load_target& to_;
    const request_spec& common_;
    post_t post_;
    bool tokenizes_ = true;
};

/// Sends one short request. Its id differs from those of a load.
inline http_answer ask_for_one_token(const load_target& to, request_spec r, double within_s = 3) {
    r.prompt = "Hello";
    r.max_tokens = 1;
    return blocking_post_kept(to, path_of(to, r),
                              to.fields + "X-Request-Id: " + id_of_check() + "\r\n",
                              request_body(*to.api, to.model, r), within_s);
}
/// Returns why an answer cannot be read as the load's are, "" if it can: it has at least one token,
/// perhaps without text.
inline std::string why_no_answer(const load_target& to, const request_spec& r,
                                 const http_answer& a) {
    if (a.status == 0) return printable(without_secrets(a.error, to.secrets), 200);
    if (a.status / 100 != 2) return printed("HTTP %d", a.status);
    body_reader reader;
    reader.reset(*to.api, r.stream);
    if (!reader.takes(a.content_type))
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
/// Refuses a server that cannot take the load. Returns how often it closed the connection after an
/// answer without notice; after one close it is asked again.
inline int resets_of_check(const load_target& to, const request_spec& common,
                             const std::string& url) {
    for (int seen = 0; seen < resets_by_policy; ++seen) {
        const http_answer a = ask_for_one_token(to, common);
        const std::string why =
            why_not_served(to, "POST", path_of(to, common), a, url);
        if (!why.empty()) refuse({why});
        if (!a.reset_by_server) return seen;
    }
    return resets_by_policy;
}

/// Finds the word lengths of synthetic prompts, within `within_s`.
inline token_fit learned_tokens(const plan& p, const load_target& to, double within_s) {
    const long long until = now_ns() + ns_of(within_s);
    const auto post = [&](const std::string& path, const std::string& body) {
        const double left_s = static_cast<double>(until - now_ns()) * 1e-9;
        return left_s <= 0 ? http_answer()
                           : blocking_post(to, path, to.fields, body, left_s);
    };
    const bool may_be_ids =
        to.api->takes_token_ids && p.sent->stride == 1 && p.sent->common.system_prompt.empty() &&
        p.sent->parts.empty();
    return token_inquiry(to, p.sent->common, post).fit(may_be_ids);
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
