// what the requests of a load should have cost
#pragma once

#include "api/result.hpp"
#include "api/side_task.hpp"
#include "api/slo.hpp"
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
#include "extensions/work/core/primed.hpp"

#include <algorithm>  // equal, max, min
#include <cmath>  // isnan
#include <cstddef>  // size_t
#include <map>
#include <string>
#include <utility>  // exchange, move

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
inline http_answer asked_of(const load_target& to, const char* path, const std::string& body) {
    constexpr double within_s = 10;
    return blocking_post(to, inquiry_path(to, path), to.fields, body, within_s);
}
inline told_ids tokenized(const load_target& to, const std::string& body) {
    told_ids told;
    picojson::value answered;
    const http_answer a = asked_of(to, "/tokenize", body);
    if (a.status == 200 && parse_json(a.body, answered) &&
        add_ids(member(answered, "tokens"), told.ids))
        return told;
    told.ids.clear();
    told.problem = a.status == 0     ? "POST /tokenize has no answer"
                   : a.status != 200 ? printed("POST /tokenize answers HTTP %d", a.status)
                                     : "POST /tokenize lists no tokens";
    return told;
}
/// The tokens of the prompt of a request: those that it lists itself, or those that the server's
/// /tokenize makes of the same body, chat template included. llama-server tokenizes texts alone,
/// and its /apply-template makes one of a chat.
inline told_ids ids_of_prompt(const load_target& to, const std::string& body) {
    told_ids told;
    picojson::value asked, answered;
    if (parse_json(body, asked) && add_ids(member(asked, "prompt"), told.ids)) return told;
    if (asked.is<picojson::object>())  // SGLang refuses to stream tokens of a prompt
        for (const char* field : {"stream", "stream_options"})
            asked.get<picojson::object>().erase(field);
    told = tokenized(to, asked.serialize());
    if (told.problem.empty()) return told;
    const http_answer a = asked_of(to, "/apply-template", asked.serialize());
    const bool is_text = a.status == 200 && parse_json(a.body, answered);
    const picojson::value* const text = is_text ? member(answered, "prompt") : nullptr;
    if (!text) return told;
    return tokenized(to, R"({"add_special":true,"parse_special":true,"content":)" +
                             text->serialize() + "}");
}

/// Whether the last step of the preparation is prime().
inline bool is_primed(const planned_traffic& sent) {
    return any_of(sent.prepare, [](const task_step& s) { return s.by != nullptr; });
}
inline vector<task_step> posts_of_prime(const plan& p, const live_target& on) {
    const load_target& to = on.load();
    vector<task_step> posts;
    for (const request_spec& r : primers_of(p, on.facts().tokens)) {
        const std::string body = request_body(*to.api, to.model, r);
        // {n} is a prompt's own, and no number of a repeat.
        posts.push_back(post(path_of(to, r), filled_in(body, "{n}", "\\u007bn}")));
    }
    return posts;
}

/// Where each request of a model's order is in the repeat's records.
struct request_in_order {
    std::size_t place = 0;  // among the records
    model_request what{};
};
inline bool goes_on(const token_ids& from, const token_ids& to) {
    return to.size() > from.size() && std::equal(from.begin(), from.end(), to.begin());
}
/// Sets the ids of answers, as far as a later prompt of the same conversation has them: it begins
/// with the earlier one, and no reasoning is left out. Others have ids that no prompt has.
inline void add_answers(vector<request_in_order>& all, const vector<record>& records) {
    std::map<long long, vector<std::size_t>> later;  // of a conversation, from its last request on
    for (std::size_t i = all.size(); i-- > 0;) {
        model_request& r = all[i].what;
        const record& own = records[all[i].place];
        const token_ids* next = nullptr;
        for (const std::size_t k : later[own.conversation])
            if (goes_on(r.prompt, all[k].what.prompt)) next = &all[k].what.prompt;
        if (std::max(own.reasoning_tokens, own.hidden_tokens) > 0) next = nullptr;
        const auto said = static_cast<std::size_t>(std::max(own.output_tokens, 0));
        const std::size_t n = r.prompt.size();
        for (std::size_t k = n; next && k < std::min(next->size(), n + said); ++k)
            r.answer.push_back((*next)[k]);
        while (r.answer.size() < said) r.answer.push_back(-1 - static_cast<int>(i));
        later[own.conversation].push_back(i);
    }
}
inline constexpr const char* no_block_size =
    "the server's page does not tell the size of a block of its prefix cache (vLLM: "
    "cache_config_info, SGLang: page_size)";
/// The tokens of a block, 1 of a cache that finds single ones; NaN: unknown.
inline double block_of(const std::string& server, const page_reading& page) {
    constexpr double most = 1 << 20;  // more is no size of a block
    const double block =
        server == "llama.cpp" ? 1 : page.value(server_quantity::block_tokens);
    return block >= 1 && block <= most ? block : not_a_number;
}
/// Sets what the requests of a repeat should have cost, in the order in which they were sent.
inline void foresee(const plan& p, const live_target& on, repeat_data& d) {
    foreseen_work& w = d.foreseen;
    std::map<std::size_t, std::string> bodies;
    for (kept_text& b : std::exchange(d.bodies, {})) bodies[b.index] = std::move(b.said);
    const double block = d.server.readings.empty()
                             ? not_a_number
                             : block_of(d.server.of, d.server.readings.back());
    if (std::isnan(block)) {
        w.unknown = no_block_size;
        return;
    }
    const auto ids_of = [&](const std::string& body) {
        if (!w.unknown.empty()) return token_ids();
        told_ids told = ids_of_prompt(on.load(), body);
        w.unknown = std::move(told.problem);
        return std::move(told.ids);
    };
    vector<model_request> in_order;
    if (is_primed(*p.sent))
        for (const task_step& s : posts_of_prime(p, on))
            in_order.push_back({ids_of(str(s.body)), {}});
    const std::size_t primed = in_order.size();
    vector<request_in_order> all;
    for (std::size_t i = 0; i < d.records.size(); ++i) {
        const auto body = bodies.find(index_of(d.records[i], i));
        if (body == bodies.end()) continue;
        token_ids ids = ids_of(body->second);
        const int counted = d.records[i].prompt_tokens;
        if (w.unknown.empty() && counted > 0 && static_cast<std::size_t>(counted) != ids.size())
            w.unknown = printed("POST /tokenize finds %zu tokens in the prompt of request %zu, "
                                "and its answer's usage %d", ids.size(), i + 1, counted);
        all.push_back({i, {std::move(ids), {}}});
    }
    if (!w.unknown.empty()) return;
    sort_by(all, [&](const request_in_order& r) { return d.records[r.place].sent_ns; });
    add_answers(all, d.records);
    for (request_in_order& r : all) in_order.push_back(std::move(r.what));
    const vector<work_done> each = expected_work(in_order, static_cast<int>(block));
    w.prompt.resize(d.records.size(), 0);
    w.cached.resize(d.records.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const work_done& done = each[primed + i];
        w.prompt[all[i].place] = static_cast<double>(done.prefilled + done.cached);
        w.cached[all[i].place] = static_cast<double>(done.cached);
    }
}

/// Refuses a count of prompts that is exact, if it depends on time on this server.
inline void check_users(const std::string& of, const planned_traffic& sent,
                        const std::string& given) {
    if (!sent.is_open_loop() && users_of(sent) == 1) return;
    if (of == "llama.cpp")
        refuse({given, "llama-server has a cache for each of its slots, and which slot takes a "
                       "request of several users depends on time: send one after the other, "
                       "closed_loop(1)"});
    if (of == "SGLang" && !is_primed(sent))
        refuse({given, "SGLang caches a prompt once it is computed, so how many of several users "
                       "compute what they share depends on time: end .prepare with prime(), or "
                       "send one after the other, closed_loop(1)"});
}
inline double slots_of_llama(const load_target& to) {
    constexpr double within_s = 10;
    picojson::value props;
    const http_answer a = blocking_get(to, inquiry_path(to, "/props"), to.fields, within_s);
    const picojson::value* const slots =
        a.status == 200 && parse_json(a.body, props) ? member(props, "total_slots") : nullptr;
    return slots && slots->is<double>() ? slots->get<double>() : not_a_number;
}
/// Refuses what is expected of prompts, if the server does not tell their tokens or the size of its
/// blocks, or has not one cache of this kind.
inline void check_model(const live_target& on, const plan& p, const std::string& given) {
    const auto cannot = [&](const std::string& why) {
        refuse({given, why, "; a number or baseline in place of expected needs none of it"});
    };
    const load_target& to = on.load();
    const std::string api = to.api->name;
    if ((api != "openai_chat" && api != "openai_completions") || to.transport)
        cannot("what is expected needs the tokens of each prompt, which are known of openai_chat "
               "and openai_completions over HTTP, and the API is " + api);
    const page_reading page =
        on.pages().first_is_servers ? reading_of_server(on.pages()) : page_reading();
    if (std::isnan(block_of(on.pages().of, page))) cannot(no_block_size);
    const auto& engines = page.places[static_cast<std::size_t>(server_quantity::prompt_tokens)];
    if (engines.size() > 1)
        cannot(printed("the server has %zu engines, each with a prefix cache of its own, and which "
                       "of them takes a request nobody knows", engines.size()));
    // llama-server counts drafts also where there are none, and computes no block again.
    const bool is_llama = on.pages().of == "llama.cpp";
    if (is_llama && slots_of_llama(to) != 1)
        cannot("llama-server has a prefix cache for each of its slots, and its /props does not say "
               "that it has one: start it with --parallel 1");
    if (!is_llama && !std::isnan(page.value(server_quantity::drafts)))
        cannot("the server drafts tokens, and then some (EAGLE, MTP) compute the last block of a "
               "prompt again");
    const request_spec r = request_of(p, run_variant::candidate, 0, 0);
    const told_ids told = ids_of_prompt(to, request_body(*to.api, to.model, r));
    if (!told.problem.empty())
        cannot("what is expected needs the tokens of each prompt: " + told.problem);
}
/// Refuses objectives that the server, as it is, cannot be held to.
inline void check_counters(const live_target& on, const plan& p) {
    for (const slo& s : p.judged->slos) {
        if (!is_of_work(s.statistic.metric)) continue;
        const std::string given = "the SLO " + str(s.text()) + " is refused: ";
        const work_terms t = terms_of(s);
        if (!p.shard.is_whole())
            refuse({given, "several programs share the load, and none of them has all requests "
                           "whose work is counted: run one"});
        if (!is_of_prompts(t.what)) continue;
        if (is_expected(s) || t.side == work_side::equal)
            check_users(on.pages().of, *p.sent, given);
        if (is_expected(s)) check_model(on, p, given);
    }
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
