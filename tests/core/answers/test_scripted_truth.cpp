// Every API against scripts whose truth is known: what the metrics say is that truth, or they are
// refused with a reason. A server may hide its reasoning, count wrongly, repeat a piece, cut its
// answers off, or score something else than was asked.
#include "llmbench.hpp"
#include "core/answers/answer_reader.hpp"
#include "core/figures/outcomes.hpp"
#include "core/described/causes.hpp"
#include "core/judging/checks.hpp"
#include "core/measured/metrics.hpp"
#include "core/measured/columns.hpp"
#include "core/measured/request_log.hpp"
#include "support/texts.hpp"
#include "support/timelines.hpp"

#include <cmath>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace timelines;
using texts::holds;

namespace {

// ---- what a server does ------------------------------------------------------------------------

struct script {
    std::string piece = " word";  // of one token, the same in every event
    int events = 40, per_event = 1;
    int hidden = 0;       // tokens before the first event, in usage and never sent
    bool reports = false;  // how many tokens of usage are reasoning
    bool counts = false;  // tokens in each event, as far as the API can
    bool streams_reasoning = false;
    std::string finish = "stop";
    int streamed() const { return events * per_event; }
    int tokens() const { return streamed() + hidden; }
    std::string text() const {
        std::string t;
        for (int i = 0; i < per_event; ++i) t += piece;
        return json_quoted(t);
    }
};
constexpr double first_ms = 400, step_ms = 20;

std::string data(const std::string& json) { return "data: " + json + "\n\n"; }
std::string usage_of(const script& s, int tokens) {
    return "{\"prompt_tokens\":50,\"completion_tokens\":" + std::to_string(tokens) +
           (s.reports ? ",\"completion_tokens_details\":{\"reasoning_tokens\":" +
                          std::to_string(s.streams_reasoning ? s.tokens() / 2 : s.hidden) + "}"
                    : "") + "}";
}
std::string openai_event(const script& s, bool chat, int i, bool last) {
    const bool reasons = s.streams_reasoning && i < s.events / 2;
    const std::string said = last ? "" : s.text();
    const std::string running = s.counts ? usage_of(s, s.hidden + (i + 1) * s.per_event) : "null";
    return data("{\"choices\":[{\"index\":0," +
                (chat ? "\"delta\":{" +
                            (last      ? ""
                             : reasons ? "\"reasoning_content\":" + said
                                       : "\"content\":" + said) +
                            "}"
                      : "\"text\":" + (last ? "\"\"" : said)) +
                ",\"finish_reason\":" + (last ? json_quoted(s.finish) : "null") + "}],\"usage\":" +
                (last ? usage_of(s, s.tokens()) : running) + "}") +
           (last ? data("[DONE]") : "");
}
/// One event, or what follows the last of them.
std::string said_by(api_format api, const script& s, int i) {
    const bool last = i == s.events;
    const std::string text = last ? "\"\"" : s.text(), total = std::to_string(s.tokens());
    const std::string so_far = std::to_string(s.hidden + std::min(i + 1, s.events) * s.per_event);
    const std::string reason = json_quoted(s.finish);
    switch (api) {
    case openai_chat: return openai_event(s, true, i, last);
    case openai_completions: return openai_event(s, false, i, last);
    case tgi:
        return last ? data("{\"token\":{\"text\":\"</s>\",\"special\":true},"
                           "\"generated_text\":\"x\",\"details\":{\"finish_reason\":" + reason +
                           ",\"generated_tokens\":" +
                           total + ",\"input_length\":50}}")
                    : data("{\"token\":{\"text\":" + text + ",\"special\":false}}");
    case triton:
        return data("{\"text_output\":" + text + (s.counts && !last
                        ? ",\"num_output_tokens\":" +
                              std::to_string(s.per_event + (i == 0 ? s.hidden : 0))
                        : "") + (last ? ",\"finish_reason\":" + reason : "") + "}");
    case ollama:
    case ollama_generate:
        return (api == ollama ? "{\"message\":{\"content\":" + text + "}"
                              : "{\"response\":" + text) +
               (last ? ",\"done\":true,\"done_reason\":" + reason + ",\"eval_count\":" + total +
                           ",\"prompt_eval_count\":50}\n"
                     : ",\"done\":false}\n");
    case llama_cpp:
        return data("{\"content\":" + text + ",\"tokens_predicted\":" + so_far +
                    ",\"tokens_evaluated\":50" +
                    (last ? ",\"stop\":true,\"stop_type\":" + reason : ",\"stop\":false") + "}");
    case sglang:  // incremental, as every piece is the same
        return last ? data("[DONE]")
                    : data("{\"text\":" + text + ",\"output_ids\":[7],\"meta_info\":{"
                           "\"prompt_tokens\":50,\"completion_tokens\":" + so_far +
                           ",\"finish_reason\":" +
                           (i + 1 == s.events ? "{\"type\":" + reason + "}" : "null") + "}}");
    case anthropic:
        return last ? data("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" + reason +
                           "},\"usage\":{\"output_tokens\":" + total + "}}") +
                          data("{\"type\":\"message_stop\"}")
                    : (i == 0 ? data("{\"type\":\"message_start\",\"message\":{\"usage\":"
                                     "{\"input_tokens\":50,\"output_tokens\":1}}}")
                              : "") +
                          data("{\"type\":\"content_block_delta\",\"delta\":{\"text\":" + text +
                               "}}");
    case plain_text: {
        std::string words;
        for (int k = 0; k < s.per_event && !last; ++k) words += s.piece;
        return words;
    }
    case openai_responses: {
        const std::string stopped = s.finish == "stop" ? "\"completed\"" : "\"incomplete\"";
        return last ? data("{\"type\":\"response.completed\",\"response\":{\"status\":" + stopped +
                           ",\"incomplete_details\":{\"reason\":" + reason +
                           "},\"usage\":{\"input_tokens\":50,\"output_tokens\":" + total +
                           (s.reports ? ",\"output_tokens_details\":{\"reasoning_tokens\":" +
                                            std::to_string(s.hidden) + "}"
                                      : "") + "}}}")
                    : data("{\"type\":\"response.output_text.delta\",\"delta\":" + text + "}");
    }
    case api_format::openai_embeddings:
    case api_format::rerank:
    case api_format::score:
    case api_format::sglang_score: break;
    }
    return "";
}
const vector<api_format> generating = [] {
    vector<api_format> all;
    for (std::size_t i = 0; i < std::size(apis); ++i)
        if (apis[i].generates) all.push_back(static_cast<api_format>(i));
    return all;
}();

// ---- what the client makes of it ---------------------------------------------------------------

std::string in_chunk(const std::string& s) { return printed("%zx\r\n", s.size()) + s + "\r\n"; }
void add_answer(request_log& log, api_format api, const script& s, std::size_t index) {
    answer_reader reader;
    const api_traits& a = traits_of(api);
    reader.reset(a);
    const bool lines = a.framed == framing::lines, bare = a.framed == framing::pieces;
    reader.feed(std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: ") +
                    (lines ? "application/x-ndjson" : bare ? "text/plain" : "text/event-stream") +
                    "\r\n\r\n",
                at_ms(1));
    for (int i = 0; i <= s.events; ++i) {
        const std::string said = said_by(api, s, i);
        const double ms = first_ms + step_ms * std::min(i, s.events - 1);
        if (!said.empty()) reader.feed(in_chunk(said), at_ms(ms));
    }
    reader.feed("0\r\n\r\n", at_ms(first_ms + step_ms * s.events));
    record r;
    r.scheduled_ns = r.dispatched_ns = r.connected_ns = r.sent_ns = at_ms(0);
    reader.timeline().write_to(r);
    log.add(index, std::move(r), reader.timeline().gaps_us());
}
repeat_data heard(api_format api, const vector<script>& scripts) {
    request_log log;
    for (std::size_t i = 0; i < scripts.size(); ++i) add_answer(log, api, scripts[i], i);
    repeat_data d;
    log.move_into(d);
    d.window = time_interval::between(at_ms(0), at_ms(2000));
    return d;
}
repeat_data heard(api_format api, const script& s) { return heard(api, {s, s, s}); }
/// What the checks of answers from one to another find.
cause found_in(const repeat_data& d, const statistic_data& what, const char* first, const char* last) {
    const answer_counts counts = answer_counts_of({d});
    const measurements none;
    const judging_parameters by;
    const validity_checks on;
    slo s;
    s.statistic = what;
    objective_in_check o{none, by, on, s};
    o.part = &what;
    o.answers = &counts;
    for (std::size_t i = place_of_check(first); i <= place_of_check(last); ++i)
        if (cause why = checks[i].found_in(o)) return why;
    return {};
}
std::string refusal(const statistic_data& what, const repeat_data& d) {
    const cause why = found_in(d, what, "none_selected", "lacks_values");
    return described(why ? why : found_in(d, what, "in_a_burst", "comes_in_bursts"));
}
statistic_data one(statistic_kind kind, metric_id m) { return make_statistic(kind, m, 0); }

/// What the script's users saw: nothing of hidden tokens but the wait.
struct true_value {
    statistic_data what{};
    double value = 0;
};
vector<true_value> truth_of(const script& s, std::size_t answers) {
    const double spread = (s.events - 1) * step_ms * 1e-3, end = (first_ms + spread * 1e3) * 1e-3;
    const double paced = s.per_event == 1 || s.counts ? s.streamed() - s.per_event
                                                      : s.streamed() - 1;
    const auto n = static_cast<double>(s.streamed());
    return {{one(statistic_kind::mean, metric_id::tpot), spread / paced},
            {one(statistic_kind::mean, metric_id::decode_speed), paced / spread},
            {one(statistic_kind::mean, metric_id::normalized_latency), end / n},
            {one(statistic_kind::mean, metric_id::tokens_per_event), n / s.events},
            {one(statistic_kind::value, metric_id::output_throughput),
             static_cast<double>(answers) * n / 2}};
}
/// Whether each metric is the script's, or refused. True where some were refused.
bool check_truth(api_format api, const script& s) {
    const repeat_data d = heard(api, s);
    CAPTURE(std::string(traits_of(api).name));
    CAPTURE(s.hidden);
    CAPTURE(s.per_event);
    bool refused = false;
    for (const record& r : d.records) {
        CAPTURE(std::string(r.error));
        CHECK(r.status == request_status::ok);
        CHECK(r.events == s.events);
    }
    for (const true_value& t : truth_of(s, d.records.size())) {
        const std::string why = refusal(t.what, d);
        const double value = evaluate(t.what, d);
        CAPTURE(std::string(t.what.name));
        CAPTURE(why);
        const bool is_of_usage = t.what.metric == metric_id::tokens_per_event;
        if (is_of_usage && d.records[0].token_source == token_origin::events) {
            CHECK(holds(why, "tokens_per_event"));
            continue;
        }
        refused = refused || !why.empty();
        // Where no usage tells tokens, an event counts as one, as the definitions have it.
        if (why.empty() && d.records[0].token_source == token_origin::usage)
            CHECK(value == doctest::Approx(t.value).epsilon(0.011));
    }
    return refused;
}

}  // namespace

TEST_CASE("equal pieces are as many events as were sent, and take what they took, with every API") {
    for (const api_format api : generating)
        for (const int per_event : {1, 3})
            for (const bool counts : {false, true}) {
                // TGI and plain text know no event of several tokens; two tell each one's always.
                const bool always = api == llama_cpp || api == sglang || (api == triton && counts);
                const bool may = api == openai_chat || api == openai_completions;
                if (per_event > 1 && api == tgi) continue;
                script s{.per_event = per_event};
                s.counts = always || (counts && may);
                CAPTURE(std::string(traits_of(api).name));
                CAPTURE(per_event);
                CAPTURE(s.counts);
                CHECK_FALSE(check_truth(api, s));
            }
}

TEST_CASE("tokens that were never streamed are in no time per token, or decide nothing") {
    for (const api_format api : generating) {
        if (!traits_of(api).reports_usage && api != triton) continue;
        for (const int factor : {3, 9, 100})
            for (const bool counts : {false, true})
                for (const bool reports : {false, true}) {
                    const bool always = api == llama_cpp || api == sglang || api == triton;
                    const bool may = api == openai_chat || api == openai_completions;
                    script s{.piece = " ran", .hidden = 40 * factor};
                    s.counts = always || (counts && may);
                    s.reports = reports && (may || api == openai_responses);
                    const bool refused = check_truth(api, s);
                    CAPTURE(std::string(traits_of(api).name));
                    CAPTURE(factor);
                    CHECK(refused == !(s.counts || s.reports));
                }
    }
}

TEST_CASE("hidden tokens that usage tells are taken out whatever each event brings") {
    for (const int per_event : {1, 2, 4})
        for (const int hidden : {1, 20, 40, 400})
            CHECK_FALSE(check_truth(openai_chat, {.events = 30,
                                                  .per_event = per_event,
                                                  .hidden = hidden,
                                                  .reports = true}));
    // Reasoning that is streamed is output as any other.
    const script open{.events = 60, .reports = true, .streams_reasoning = true};
    CHECK_FALSE(check_truth(openai_chat, open));
    CHECK(heard(openai_chat, open).records[0].hidden_tokens == 0);
    // Two tokens an event, one of them never sent, and nothing that tells: as many bytes a token as
    // some languages have. What cannot be told from an honest answer stands.
    CHECK(heard(openai_chat, {.piece = " word", .hidden = 40}).records[0].hidden_tokens == 0);
    // A summary of the reasoning: what of it came is not told.
    script summary{.events = 60, .hidden = 600, .reports = true, .streams_reasoning = true};
    CHECK(heard(openai_chat, summary).records[0].hidden_tokens == -1);
}

TEST_CASE("a server that counts its own reasoning apart from the output loses none of it") {
    const script s{};
    record r;
    answer_reader reader;
    reader.reset(traits_of(openai_chat));
    std::string body;
    for (int i = 0; i < s.events; ++i) body += openai_event(s, true, i, false);
    body += data("{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{"
                 "\"completion_tokens\":40,"
                 "\"completion_tokens_details\":{\"reasoning_tokens\":30}}}") +
            data("[DONE]");
    reader.feed("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body,
                at_ms(400));
    reader.timeline().write_to(r);
    CHECK(r.output_tokens == 40);
    CHECK(r.hidden_tokens == 0);
}

TEST_CASE("every finish reason is counted, and answers that a filter cut off decide nothing") {
    for (const api_format api : generating) {
        if (traits_of(api).ends_with_body && api != triton) continue;  // some of its servers do
        CAPTURE(std::string(traits_of(api).name));
        const script whole{.finish = "stop"}, cut{.events = 2, .finish = "content_filter"},
            refused{.events = 2, .finish = api == anthropic ? "refusal" : "SAFETY"};
        const repeat_data d = heard(api, {whole, cut, whole, refused, whole, {.finish = "length"}});
        const auto reasons = finish_reasons({d});
        REQUIRE(reasons.size() == 4);
        CHECK(reasons[0] == std::pair<std::string, std::size_t>("stop", 3));
        for (const auto& [reason, n] : reasons) CHECK(n == (reason == "stop" ? 3 : 1));
        for (const metric_id m : {metric_id::tpot, metric_id::e2e, metric_id::ttft})
            CHECK(holds(refusal(one(statistic_kind::mean, m), d),
                        "2 of 6 completed requests were cut off by a content filter"));
        CHECK(refusal(one(statistic_kind::mean, metric_id::e2e),
                      heard(api, {whole, {.finish = "length"}, {.finish = "tool_calls"}})) == "");
    }
}

// ---- prompts -----------------------------------------------------------------------------------

TEST_CASE("prompt tokens of usage are no more than what was sent can be, with every API") {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "many words ";
    for (const api_traits& a : apis) {
        CAPTURE(std::string(a.name));
        request_spec r;
        r.prompt = text;
        r.documents = 16;
        r.stream = a.generates;
        const auto judged = [&](const request_spec& asked, int prompt_tokens) {
            record x = answered(0, 900, 20).record();
            x.prompt_tokens = prompt_tokens;
            x.most_prompt_tokens =
                asked_by(a, asked, request_body(a, "m", asked).size()).most_prompt_tokens;
            repeat_data d = repeat_of({answered(0, 900, 20)});
            d.records[0] = x;
            return described(found_in(d, one(statistic_kind::value, metric_id::input_throughput),
                                      "no_usage", "usage_over_prompt"));
        };
        // Of a reranker each document is read with the query and a template.
        const int honest = a.documents > 1 ? 600 + 16 * (40 + 120) : 600 + 300;
        CHECK(judged(r, honest) == "");
        CHECK(judged(r, 0) == "");
        CHECK(judged(r, 3301) == "");  // a byte each
        CHECK(holds(judged(r, 600'000),
                    "1 of 1 completed requests have more prompt tokens in usage than what was"));
        r.history = {{"user", text}, {"assistant", text}};
        if (a.generates) CHECK(judged(r, 3 * honest) == "");
        if (a.takes_images) {
            r.image = "data:image/png;base64,AAAA";
            CHECK(judged(r, honest + 16384) == "");
        }
        if (a.takes_token_ids) {
            r = {};
            for (int i = 0; i < 600; ++i) r.token_ids += (i > 0 ? ",7" : "[7");
            r.token_ids += "]";
            CHECK(judged(r, 600) == "");
        }
        CHECK(holds(judged(r, 600'000), "more prompt tokens"));
    }
}

TEST_CASE("wrong prompt tokens spoil what is counted in them, and nothing else") {
    repeat_data d = repeat_of({answered(0, 900, 20)});
    d.records[0].prompt_tokens = 100'000;
    const auto why = [&](metric_id m) {
        return described(
            found_in(d, one(statistic_kind::mean, m), "no_usage", "usage_over_prompt"));
    };
    CHECK(why(metric_id::prefill_throughput) == "");  // of older records nothing is known
    d.records[0].most_prompt_tokens = 99'999;
    for (const metric_id m : {metric_id::prefill_throughput, metric_id::input_throughput,
                              metric_id::total_throughput, metric_id::prefill_speed,
                              metric_id::ttft_per_prompt_token})
        CHECK(holds(why(m), "more prompt tokens in usage than what was sent can be"));
    for (const metric_id m : {metric_id::ttft, metric_id::tpot, metric_id::output_throughput})
        CHECK(why(m) == "");
}

// ---- scores ------------------------------------------------------------------------------------

namespace {
record scored(api_format api, const std::string& body, int documents = 16,
              const std::string& extra = "") {
    request_spec r{.stream = false};
    for (int i = 0; i < 40; ++i) r.prompt += "word ";
    r.documents = documents;
    r.extra_fields = extra;
    answer_reader reader;
    reader.reset(traits_of(api), asked_by(traits_of(api), r, 500));
    reader.feed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body,
                at_ms(10));
    record x;
    reader.timeline().write_to(x);
    return x;
}
std::string embedding(const std::string& vector) {
    return "{\"data\":[{\"index\":0,\"embedding\":" + vector +
           "}],\"usage\":{\"prompt_tokens\":8,\"total_tokens\":8}}";
}
std::string scores(int n, const std::string& first = "0.5", const char* name = "relevance_score",
                   int first_index = 0) {
    std::string all;
    for (int i = 0; i < n; ++i)
        all += (i > 0 ? "," : "") + std::string("{\"index\":") +
               std::to_string(i > 0 ? i : first_index) + ",\"" + name + "\":" +
               (i > 0 ? "0.25" : first) + "}";
    return "{\"results\":[" + all + "],\"usage\":{\"total_tokens\":8}}";
}
}  // namespace

TEST_CASE("an embedding is one finite vector, or the request failed") {
    for (const char* sound : {"[0.5,-1e-3,2]", "[0]", "[[0.1,0.2],[0.3,0.4]]", "\"AAAAPw==\"",
                              "\"AACAPwAAgD8=\""}) {
        CAPTURE(sound);
        CHECK(scored(api_format::openai_embeddings, embedding(sound), 1).status == request_status::ok);
    }
    for (const char* empty :
         {"[]", "null", "[null]", "[0.5,null]", "[\"x\"]", "[[]]", "[[0.5],[]]", "\"\"", "\"?\"",
          "{}", "true", "0.5", "\"AADAfw==\"", "\"AACA/w==\"", "\"AADAfwAA\"", "[0.5,{}]"}) {
        CAPTURE(empty);
        const record r = scored(api_format::openai_embeddings, embedding(empty), 1);
        CHECK(r.status == request_status::protocol);
        CHECK(holds(std::string(r.error), "embedding 1 of 1 of the answer is no finite one"));
    }
    for (const char* bad : {"[NaN]", "[0.5,Infinity]", "[-Infinity]"}) {
        const record r = scored(api_format::openai_embeddings, embedding(bad), 1);
        CHECK(r.status == request_status::protocol);
        CHECK(holds(std::string(r.error), "among its numbers"));
    }
    CHECK(scored(api_format::openai_embeddings, embedding("[1e999]"), 1).status == request_status::protocol);
    const std::string two = R"({"data":[{"embedding":[1]},{"embedding":[2]}]})";
    CHECK(holds(std::string(scored(api_format::openai_embeddings, two, 1).error),
                "the answer has 2 embeddings, 1 were asked for"));
    CHECK(scored(api_format::openai_embeddings, two, 2).status == request_status::ok);
    CHECK(holds(std::string(scored(api_format::openai_embeddings, two, 50).error),
                "the answer has 2 embeddings, 40 were asked for"));  // of 40 words
    for (const char* none : {R"({"data":[]})", R"({"data":null})", R"({"usage":{}})"})
        CHECK(scored(api_format::openai_embeddings, none).status != request_status::ok);
}

TEST_CASE("a reranker gives one score for each document, or the request failed") {
    CHECK(scored(api_format::rerank, scores(16)).status == request_status::ok);
    CHECK(scored(api_format::rerank, scores(16, "-3", "score")).status == request_status::ok);
    CHECK(scored(api_format::rerank, scores(39), 50).status == request_status::ok);  // of 40 words
    CHECK(scored(api_format::rerank, scores(3), 16, ",\"top_n\":3").status == request_status::ok);
    CHECK(scored(api_format::rerank, scores(16), 16, ",\"top_n\":3").status == request_status::ok);
    CHECK(scored(api_format::rerank, scores(4), 16, ",\"top_n\":3").status == request_status::protocol);
    for (const int n : {1, 15, 17, 32}) {
        const record r = scored(api_format::rerank, scores(n));
        CHECK(r.status == request_status::protocol);
        CHECK(std::string(r.error) ==
              "the answer has " + std::to_string(n) + " scores, 16 were asked for");
    }
    for (const char* bad : {"null", "\"0.5\"", "[]", "true"}) {
        const record r = scored(api_format::rerank, scores(16, bad));
        CHECK(r.status == request_status::protocol);
        CHECK(holds(std::string(r.error), "score 1 of 16 of the answer is no finite one"));
    }
    CHECK(scored(api_format::rerank, scores(16, "0.5", "relevance")).status == request_status::protocol);
    CHECK(scored(api_format::rerank, scores(16, "0.5", "relevance_score", 1)).status ==
          request_status::protocol);  // one twice, another one not at all
    CHECK(holds(std::string(scored(api_format::rerank, scores(16, "NaN")).error), "it has NaN among its"));
    CHECK(scored(api_format::rerank, R"({"results":[]})").status == request_status::empty);
}

TEST_CASE("vLLM's and SGLang's scores are one for each document, or the request failed") {
    const auto vllm = [](int n, const std::string& first = "0.5") {
        std::string all = scores(n, first, "score");
        return all.replace(all.find("results"), 7, "data");
    };
    const auto sglang = [](int n, const std::string& first = "[0.9,0.1]") {
        std::string all = first;
        for (int i = 1; i < n; ++i) all += ",[0.5,0.5]";
        return "{\"scores\":[" + all + "],\"object\":\"scoring\",\"usage\":{\"prompt_tokens\":8}}";
    };
    for (const api_format api : {api_format::score, api_format::sglang_score}) {
        const auto of = [&](int n) { return api == api_format::score ? vllm(n) : sglang(n); };
        const record whole = scored(api, of(16));
        CHECK(whole.status == request_status::ok);
        CHECK(whole.prompt_tokens == 8);
        CHECK(whole.output_tokens == 0);
        for (const int n : {1, 15, 17})
            CHECK(std::string(scored(api, of(n)).error) ==
                  "the answer has " + std::to_string(n) + " scores, 16 were asked for");
    }
    for (const char* bad : {"null", "\"0.5\"", "true"})
        for (const record& r : {scored(api_format::score, vllm(16, bad)),
                                scored(api_format::sglang_score, sglang(16, bad)),
                                scored(api_format::sglang_score, sglang(16, "[" + std::string(bad) + "]"))})
            CHECK(holds(std::string(r.error), "score 1 of 16 of the answer is no finite one"));
    for (const char* bad : {"[]", "0.5", "[[0.5]]"})
        CHECK(scored(api_format::sglang_score, sglang(16, bad)).status == request_status::protocol);
    CHECK(holds(std::string(scored(api_format::sglang_score, sglang(16, "[NaN]")).error), "it has NaN among"));
    CHECK(scored(api_format::sglang_score, R"({"scores":[],"object":"scoring"})").status ==
          request_status::empty);
}
