// answers of the simulated server
// From facts to the bytes of each API, without a socket and without a clock.
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/tokens.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/questions.hpp"

#include <cstdint>  // uint64_t
#include <iterator>  // size
#include <string>
#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

struct answer_facts {
    question asked{};
    unsigned long long number = 0;  // in the answer's id
    int cached_tokens = 0;
    int output_tokens = 0;  // so far
    bool is_wrong = false;  // the result is off by one
    std::string text{};     // so far, for APIs that repeat it
};

/// The words of the next tokens. The last two are the result, if the answer is long enough. The
/// others depend on their position, and on the prompt with greedy decoding, else on the request's
/// id.
inline std::string next_words(const answer_facts& f, const engine_model::emission& e) {
    std::string words;
    const std::uint64_t drawn_by = f.asked.words ? f.asked.words : e.id;
    for (int i = 0; i < e.tokens; ++i) {
        const int left = f.asked.output_tokens - f.output_tokens - i;
        if (f.asked.result && f.asked.stops && left <= 2)
            words += left == 2 ? " ####" : printed(" %lld", *f.asked.result + f.is_wrong);
        else
            words += std::string(" ") +
                     prompt_words[(drawn_by * 7 + static_cast<std::uint64_t>(f.output_tokens + i)) %
                                  std::size(prompt_words)];
    }
    return words;
}
/// The blocks of the cache that these next words fill, as hashes. No step computes the last word
/// of an answer, so it fills none.
inline vector<std::uint64_t> filled_blocks(answer_facts& f, std::string_view words,
                                           int block_tokens) {
    vector<std::uint64_t> blocks;
    int tokens = f.output_tokens;
    for (const std::string_view word : words_of(words)) {
        f.asked.last_hash = continued_hash(f.asked.last_hash, word);
        if (++tokens < f.asked.output_tokens &&
            (f.asked.prompt_tokens + tokens) % block_tokens == 0)
            blocks.push_back(f.asked.last_hash);
    }
    return blocks;
}
inline void add_words(answer_facts& f, const std::string& words, const engine_model::emission& e) {
    f.output_tokens += e.tokens;
    f.cached_tokens = e.cached;
    if (!f.asked.streamed || f.asked.api == tgi || f.asked.api == sglang ||
        f.asked.api == openai_responses)
        f.text += words;
}

inline bool is_reasoning(const answer_facts& f) {
    return f.output_tokens <= f.asked.reasoning_tokens;
}

// ---- how the APIs say it

inline std::string event_bytes(const std::string& json, const char* type = nullptr) {
    return (type ? printed("event: %s\n", type) : "") + "data: " + json + "\n\n";
}
inline const char* quoted_reason_of(const answer_facts& f) {
    return f.asked.stops ? "\"stop\"" : "\"length\"";
}

/// The last piece of an answer says how it ended.
enum class piece : unsigned char { inner, last };

/// `object`: what a chat's answer is called.
inline std::string openai_identity(const answer_facts& f, const char* object) {
    const bool chat = f.asked.api == openai_chat;
    return printed(
        "\"id\":\"%s-%llu\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"simulated\"",
        chat ? "chatcmpl" : "cmpl", f.number, chat ? object : "text_completion");
}
inline std::string openai_usage(const answer_facts& f) {
    return printed("{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":%d}",
                   f.asked.prompt_tokens, f.output_tokens, f.asked.prompt_tokens + f.output_tokens,
                   f.cached_tokens) +
           (f.asked.reasoning_tokens > 0
                ? printed(",\"completion_tokens_details\":{\"reasoning_tokens\":%d}}",
                          f.asked.reasoning_tokens)
                : "}");
}
inline std::string openai_choice(const std::string& said, const char* reason = "null") {
    return "\"choices\":[{\"index\":0," + said + ",\"finish_reason\":" + reason + "}]";
}
inline std::string openai_chunk(const answer_facts& f, const std::string& more) {
    return event_bytes("{" + openai_identity(f, "chat.completion.chunk") + "," + more + "}");
}
inline std::string openai_ending(const answer_facts& f) {
    const char* said = f.asked.api == openai_chat ? "\"delta\":{}" : "\"text\":\"\"";
    return openai_chunk(f, openai_choice(said, quoted_reason_of(f))) +
           (f.asked.wants_usage
                ? openai_chunk(f, "\"choices\":[],\"usage\":" + openai_usage(f))
                : "") +
           event_bytes("[DONE]");
}
inline std::string openai_whole(const answer_facts& f) {
    const std::string text = json_quoted(f.text);
    const std::string said = f.asked.api == openai_chat
        ? "\"message\":{\"role\":\"assistant\",\"content\":" + text + "}"
        : "\"text\":" + text;
    return "{" + openai_identity(f, "chat.completion") + "," +
           openai_choice(said, quoted_reason_of(f)) + ",\"usage\":" + openai_usage(f) + "}";
}

inline std::string llama_json(const answer_facts& f, const std::string& words, piece p) {
    const bool last = p == piece::last;
    return "{\"content\":" + json_quoted(words) +
           printed(",\"stop\":%s,\"id_slot\":0,\"index\":0,\"tokens_predicted\":%d,"
                   "\"tokens_evaluated\":%d",
                   last ? "true" : "false", f.output_tokens, f.asked.prompt_tokens) +
           (last ? printed(",\"stop_type\":\"%s\"}", f.asked.stops ? "eos" : "limit") : "}");
}

inline std::string sglang_json(const answer_facts& f, piece p) {
    return "{\"text\":" + json_quoted(f.text) +
           printed(",\"meta_info\":{\"id\":\"%llu\",\"prompt_tokens\":%d,"
                   "\"completion_tokens\":%d,\"finish_reason\":",
                   f.number, f.asked.prompt_tokens, f.output_tokens) +
           (p == piece::last ? printed("{\"type\":%s}", quoted_reason_of(f)) : "null") + "}}";
}

inline std::string ollama_json(const answer_facts& f, const std::string& words, piece p) {
    const bool last = p == piece::last;
    const std::string text = json_quoted(words);
    const std::string thought = last || !is_reasoning(f) ? "" : "\"thinking\":" + text;
    return "{\"model\":\"simulated\",\"created_at\":\"2024-01-01T00:00:00Z\"," +
           (f.asked.api == ollama
                ? "\"message\":{\"role\":\"assistant\"," +
                      (thought.empty() ? "\"content\":" + text : thought) + "}"
                : thought.empty() ? "\"response\":" + text : thought) +
           (last ? printed(",\"done\":true,\"done_reason\":%s,\"prompt_eval_count\":%d,"
                           "\"eval_count\":%d}",
                           quoted_reason_of(f), f.asked.prompt_tokens, f.output_tokens)
                 : ",\"done\":false}");
}

inline std::string tgi_details(const answer_facts& f) {
    return printed("{\"finish_reason\":\"%s\",\"generated_tokens\":%d,\"seed\":null,"
                   "\"input_length\":%d}",
                   f.asked.stops ? "eos_token" : "length", f.output_tokens, f.asked.prompt_tokens);
}
/// One event for each token; the last one also has totals.
inline std::string tgi_events(const answer_facts& f, std::string_view words, piece p) {
    std::string events;
    const vector<std::string_view> tokens = words_of(words);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool reports = p == piece::last && i + 1 == tokens.size();
        events += "data:{\"token\":{\"id\":7,\"text\":" +
                  json_quoted(" " + std::string(tokens[i])) +
                  ",\"logprob\":-0.5,\"special\":false},\"generated_text\":" +
                  (reports ? json_quoted(f.text) : "null") +
                  ",\"details\":" + (reports ? tgi_details(f) : "null") + "}\n\n";
    }
    return events;
}

inline std::string triton_json(const answer_facts& f, const std::string& words, int tokens) {
    return "{\"model_name\":\"simulated\",\"model_version\":\"1\",\"text_output\":" +
           json_quoted(words) +
           (f.asked.wants_usage ? printed(",\"num_input_tokens\":%d,\"num_output_tokens\":%d",
                                          f.asked.prompt_tokens, tokens)
                                : "") +
           "}";
}

/// The answer of an API that generates nothing: `each(i)` for each result asked for.
template <class Each>
std::string scored_json(const answer_facts& f, const char* list, Each&& each) {
    std::string all;
    for (int i = 0; i < f.asked.documents; ++i) all += (i > 0 ? "," : "") + each(i);
    return printed("{\"id\":\"%llu\",\"object\":\"list\",\"model\":\"simulated\",\"%s\":[",
                   f.number, list) +
           all +
           printed("],\"usage\":{\"prompt_tokens\":%d,\"total_tokens\":%d}}", f.asked.prompt_tokens,
                   f.asked.prompt_tokens);
}
/// Eight fixed numbers: nobody reads them.
inline std::string embeddings_json(const answer_facts& f) {
    return scored_json(f, "data", [](int i) {
        return printed(R"({"object":"embedding","index":%d,)"
                       R"("embedding":[0.25,-0.5,0.125,0.0,0.75,-0.25,0.5,-0.125]})", i);
    });
}
inline std::string scores_json(const answer_facts& f, const char* list, const char* score_name) {
    return scored_json(f, list, [&](int i) {
        return printed(R"({"index":%d,"%s":%g})", i, score_name, 1.0 / (i + 1));
    });
}
inline std::string sglang_scores_json(const answer_facts& f) {
    return scored_json(f, "scores", [](int i) {
        return printed("[%g,%g]", 1.0 / (i + 1), 1 - 1.0 / (i + 1));
    });
}

/// An event of OpenAI's responses, with rising numbers.
inline std::string responses_event(const answer_facts& f, const char* type, int beside,
                                   const std::string& more) {
    return event_bytes(printed("{\"type\":\"%s\",\"sequence_number\":%d,", type,
                               f.output_tokens + beside) +
                           more + "}",
                       type);
}
inline std::string response_id(const answer_facts& f) { return printed("resp_%llu", f.number); }
inline std::string response_json(const answer_facts& f, piece p) {
    const bool ended = p == piece::last;
    const char* status = !ended ? "in_progress" : f.asked.stops ? "completed" : "incomplete";
    const std::string message =
        R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":)" +
        json_quoted(f.text) + "}]}";
    return printed("{\"id\":\"%s\",\"object\":\"response\",\"status\":\"%s\","
                   "\"model\":\"simulated\",\"error\":null,\"incomplete_details\":%s,",
                   response_id(f).c_str(), status,
                   ended && !f.asked.stops ? R"({"reason":"max_output_tokens"})" : "null") +
           "\"output\":[" + (ended ? message : "") + "],\"usage\":" +
           (ended ? printed("{\"input_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%d},"
                            "\"output_tokens\":%d,\"output_tokens_details\":"
                            "{\"reasoning_tokens\":%d}}",
                            f.asked.prompt_tokens, f.cached_tokens, f.output_tokens,
                            f.asked.reasoning_tokens)
                  : "null") +
           "}";
}
inline std::string responses_opening(const answer_facts& f) {
    const std::string response = "\"response\":" + response_json(f, piece::inner);
    return responses_event(f, "response.created", -1, response) +
           responses_event(f, "response.in_progress", 0, response) +
           responses_event(f, "response.output_item.added", 1,
                           R"("output_index":0,"item":{"type":"message","content":[]})") +
           responses_event(f, "response.content_part.added", 2,
                           R"("output_index":0,"part":{"type":"output_text","text":""})");
}
/// The last event says "completed", as vLLM's does, and its status has the reason.
inline std::string responses_ending(const answer_facts& f) {
    const std::string text = "\"text\":" + json_quoted(f.text);
    return responses_event(f, "response.output_text.done", 3, "\"output_index\":0," + text) +
           responses_event(f, "response.content_part.done", 4,
                           "\"output_index\":0,\"part\":{\"type\":\"output_text\"," + text + "}") +
           responses_event(f, "response.completed", 5,
                           "\"response\":" + response_json(f, piece::last));
}

inline std::string anthropic_reason(const answer_facts& f) {
    return f.asked.stops ? "\"end_turn\"" : "\"max_tokens\"";
}
inline std::string anthropic_message(const answer_facts& f, const std::string& content,
                                     const std::string& reason, int output_tokens) {
    return printed("{\"id\":\"msg_%llu\",\"type\":\"message\",\"role\":\"assistant\",", f.number) +
           "\"model\":\"simulated\",\"content\":" + content + ",\"stop_reason\":" + reason +
           printed(",\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}",
                   f.asked.prompt_tokens, output_tokens);
}
inline std::string anthropic_opening(const answer_facts& f) {
    return event_bytes("{\"type\":\"message_start\",\"message\":" +
                           anthropic_message(f, "[]", "null", 1) + "}",
                       "message_start") +
           event_bytes(R"({"type":"content_block_start","index":0,)"
                       R"("content_block":{"type":"text","text":""}})",
                       "content_block_start") +
           event_bytes(R"({"type":"ping"})", "ping");
}
inline std::string anthropic_ending(const answer_facts& f) {
    return event_bytes(R"({"type":"content_block_stop","index":0})", "content_block_stop") +
           event_bytes("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" +
                           anthropic_reason(f) +
                           printed("},\"usage\":{\"output_tokens\":%d}}", f.output_tokens),
                       "message_delta") +
           event_bytes(R"({"type":"message_stop"})", "message_stop");
}

// ---- an answer from its head to its end

inline std::string stream_head(api_format api) {
    const char* type = api == plain_text ? "text/plain; charset=utf-8"
                       : traits_of(api).framed == framing::lines
                           ? "application/x-ndjson"
                           : "text/event-stream; charset=utf-8";
    return printed("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
                   type);
}
/// The bytes before the first words, "" if none.
inline std::string answer_opening(const answer_facts& f) {
    if (f.asked.api == openai_chat)
        return openai_chunk(
            f, openai_choice("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}"));
    if (f.asked.api == anthropic) return anthropic_opening(f);
    if (f.asked.api == openai_responses) return responses_opening(f);
    return {};
}
/// The engine's words, which the facts already contain.
inline std::string answer_piece(const answer_facts& f, const std::string& words,
                                const engine_model::emission& e) {
    switch (f.asked.api) {
    case openai_chat:
        return openai_chunk(
            f, openai_choice((is_reasoning(f) ? "\"delta\":{\"reasoning_content\":"
                                              : "\"delta\":{\"content\":") +
                             json_quoted(words) + "}"));
    case openai_completions:
        return openai_chunk(f, openai_choice("\"text\":" + json_quoted(words)));
    case tgi: return tgi_events(f, words, e.finished ? piece::last : piece::inner);
    case triton: return event_bytes(triton_json(f, words, e.tokens));
    case ollama: case ollama_generate: return ollama_json(f, words, piece::inner) + "\n";
    case llama_cpp: return event_bytes(llama_json(f, words, piece::inner));
    case sglang: return event_bytes(sglang_json(f, e.finished ? piece::last : piece::inner));
    case plain_text: return words;
    case anthropic:
        return event_bytes("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":" +
                               std::string(is_reasoning(f) ? "\"thinking_delta\",\"thinking\":"
                                                           : "\"text_delta\",\"text\":") +
                               json_quoted(words) + "}}",
                           "content_block_delta");
    case openai_responses:
        return responses_event(f,
                               is_reasoning(f) ? "response.reasoning_text.delta"
                                               : "response.output_text.delta",
                               2, "\"output_index\":0,\"delta\":" + json_quoted(words));
    case api_format::openai_embeddings: case api_format::rerank: case api_format::score: case api_format::sglang_score: break;  // in one piece
    }
    return {};
}
/// The bytes after the last words, "" if none.
inline std::string answer_ending(const answer_facts& f) {
    switch (f.asked.api) {
    case openai_chat: case openai_completions: return openai_ending(f);
    case ollama: case ollama_generate: return ollama_json(f, "", piece::last) + "\n";
    case llama_cpp: return event_bytes(llama_json(f, "", piece::last));
    case sglang: return event_bytes("[DONE]");
    case anthropic: return anthropic_ending(f);
    case openai_responses: return responses_ending(f);
    case tgi: case triton: case plain_text: case api_format::openai_embeddings: case api_format::rerank: case api_format::score:
    case api_format::sglang_score: break;
    }
    return {};
}
inline std::string whole_answer(const answer_facts& f) {
    switch (f.asked.api) {
    case tgi:
        return "{\"generated_text\":" + json_quoted(f.text) + ",\"details\":" + tgi_details(f) +
               "}";
    case triton: return triton_json(f, f.text, f.output_tokens);
    case ollama: case ollama_generate: return ollama_json(f, f.text, piece::last);
    case llama_cpp: return llama_json(f, f.text, piece::last);
    case sglang: return sglang_json(f, piece::last);
    case anthropic:
        return anthropic_message(f, "[{\"type\":\"text\",\"text\":" + json_quoted(f.text) + "}]",
                                 anthropic_reason(f), f.output_tokens);
    case api_format::openai_embeddings: return embeddings_json(f);
    case api_format::rerank: return scores_json(f, "results", "relevance_score");
    case api_format::score: return scores_json(f, "data", "score");
    case api_format::sglang_score: return sglang_scores_json(f);
    case openai_responses: return response_json(f, piece::last);
    case openai_chat: case openai_completions: case plain_text: break;
    }
    return openai_whole(f);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
