// what the requests of a load should have cost
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/vector.hpp"
#include "core/measured/repeat.hpp"
#include "core/measured/request_log.hpp"
#include "core/planning/plan.hpp"
#include "core/server_metrics/quantities.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/table.hpp"
#include "effects/load/load_target.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/targets/inquiries.hpp"
#include "effects/targets/live_target.hpp"
#include "effects/targets/server_pages.hpp"
#include "extensions/work/core/model.hpp"
#include "extensions/work/core/objective.hpp"
#include "extensions/work/core/planned.hpp"

#include <algorithm>  // mismatch, min
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Ids of tokens, or why there are none.
struct told_ids {
    token_ids ids{};
    std::string problem{};
};
inline bool add_ids(const picojson::value* list, token_ids& to) {
    if (!list || !list->is<picojson::array>()) return false;
    for (const picojson::value& id : list->get<picojson::array>()) {
        if (!id.is<double>()) return false;
        to.push_back(static_cast<int>(id.get<double>()));
    }
    return !to.empty();
}
/// The tokens of the prompt of a request: those that it lists itself, or those that the server's
/// /tokenize makes of the same body, chat template included.
inline told_ids ids_of_prompt(const load_target& to, const std::string& body, double within_s) {
    told_ids told;
    picojson::value asked, answered;
    if (parse_json(body, asked) && add_ids(member(asked, "prompt"), told.ids)) return told;
    const http_answer a =
        blocking_post(to, inquiry_path(to, "/tokenize"), to.fields, body, within_s);
    if (a.status == 200 && parse_json(a.body, answered) &&
        add_ids(member(answered, "tokens"), told.ids))
        return told;
    told.ids.clear();
    told.problem = a.status == 0     ? "POST /tokenize has no answer"
                   : a.status != 200 ? printed("POST /tokenize answers HTTP %d", a.status)
                                     : "POST /tokenize lists no tokens";
    return told;
}

/// Where each request of a model's order is in the repeat's records.
struct request_in_order {
    std::size_t place = 0;  // among the records
    model_request what{};
};
/// Sets the ids of answers, as far as a later prompt of the same conversation has them: it begins
/// with the earlier one. Others have ids that no prompt has.
inline void add_answers(vector<request_in_order>& all, const vector<record>& records) {
    std::map<long long, std::size_t> next;  // of a conversation, from the last request backwards
    for (std::size_t i = all.size(); i-- > 0;) {
        model_request& r = all[i].what;
        const record& own = records[all[i].place];
        const auto later = next.find(own.conversation);
        if (later != next.end()) {
            const token_ids& prompt = all[later->second].what.prompt;
            const std::size_t n = r.prompt.size();
            const bool goes_on =
                prompt.size() > n && std::equal(r.prompt.begin(), r.prompt.end(), prompt.begin());
            const std::size_t said = static_cast<std::size_t>(own.output_tokens);
            for (std::size_t k = n; goes_on && k < std::min(prompt.size(), n + said); ++k)
                r.answer.push_back(prompt[k]);
        }
        while (r.answer.size() < static_cast<std::size_t>(own.output_tokens))
            r.answer.push_back(-1 - static_cast<int>(i));
        next[own.conversation] = i;
    }
}
inline double block_of(const repeat_data& d) {
    if (d.server.readings.empty()) return not_a_number;
    if (d.server.of == "llama.cpp") return 1;
    return d.server.readings.back().value(server_quantity::block_tokens);
}
/// Sets what the requests of a repeat should have cost, in the order in which they were sent.
inline void foresee(const live_target& on, repeat_data& d) {
    constexpr double within_s = 10;
    std::map<std::size_t, const std::string*> bodies;
    for (const kept_text& b : d.bodies) bodies[b.index] = &b.said;
    vector<request_in_order> all;
    foreseen_work& w = d.foreseen;
    const double block = block_of(d);
    if (!(block >= 1)) w.unknown = "its page does not tell the size of a block of its prefix cache";
    for (std::size_t i = 0; i < d.records.size() && w.unknown.empty(); ++i) {
        const auto body = bodies.find(index_of(d.records[i], i));
        if (body == bodies.end()) continue;
        told_ids told = ids_of_prompt(on.load(), *body->second, within_s);
        const int counted = d.records[i].prompt_tokens;
        if (told.problem.empty() && counted > 0 &&
            static_cast<std::size_t>(counted) != told.ids.size())
            told.problem = printed("POST /tokenize finds %zu tokens in the prompt of request %zu, "
                                   "and its answer's usage %d", told.ids.size(), i + 1, counted);
        w.unknown = told.problem;
        all.push_back({i, {std::move(told.ids), {}}});
    }
    d.bodies = {};
    if (!w.unknown.empty()) return;
    sort_by(all, [&](const request_in_order& r) { return d.records[r.place].sent_ns; });
    add_answers(all, d.records);
    vector<model_request> in_order;
    for (request_in_order& r : all) in_order.push_back(std::move(r.what));
    const vector<work_done> each = expected_work(in_order, static_cast<int>(block));
    w.prompt.resize(d.records.size(), 0);
    w.cached.resize(d.records.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
        w.prompt[all[i].place] = static_cast<double>(each[i].prefilled + each[i].cached);
        w.cached[all[i].place] = static_cast<double>(each[i].cached);
    }
}

/// Refuses objectives on what is expected of prompts, where the server does not tell their tokens
/// or the size of its blocks, or has a cache of another kind.
inline void check_counters(const live_target& on, const plan& p) {
    const planned_traffic& sent = *p.sent;
    for (const slo& s : p.judged->slos) {
        if (!is_expected(s) || !is_of_prompts(terms_of(s).what)) continue;
        const std::string given = "the SLO " + str(s.text()) + " is refused: ",
                          instead = "; a number or baseline in place of expected needs none of it";
        const api_traits& api = *on.load().api;
        const std::string_view name = api.name;
        if ((name != "openai_chat" && name != "openai_completions") || on.load().transport)
            refuse({given, "what is expected needs the tokens of each prompt, which are known of "
                           "openai_chat and openai_completions over HTTP, and the API is ",
                    api.name, instead});
        const std::string of = on.pages().of;
        const bool are_several = sent.is_open_loop() || users_of(sent) > 1;
        if (of == "llama.cpp" && are_several)
            refuse({given, "llama-server has a cache for each of its slots, and which slot takes a "
                           "request of several users depends on time: send one after the other, "
                           "closed_loop(1)"});
        if (of == "SGLang" && are_several)
            refuse({given, "SGLang caches a prompt when its request ends, so how many of several "
                           "users compute a shared prefix depends on time: send one after the "
                           "other, closed_loop(1)"});
        const double block = on.pages().first_is_servers
                                 ? reading_of_server(on.pages()).value(server_quantity::block_tokens)
                                 : not_a_number;
        if (of != "llama.cpp" && !(block >= 1))
            refuse({given, "what is expected needs the size of a block of the prefix cache, which "
                           "the server's page does not tell (vLLM and SGLang: cache_config_info)",
                    instead});
        const request_spec r = request_of(p, run_variant::candidate, 0, 0);
        const told_ids told = ids_of_prompt(on.load(), request_body(api, on.load().model, r), 10);
        if (!told.problem.empty())
            refuse({given, "what is expected needs the tokens of each prompt: ", told.problem,
                    instead});
        return;
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
