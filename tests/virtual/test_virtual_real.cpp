// What real servers said, byte for byte (tests/data/real), through the client: what was once true of
// them stays tested where none of them is at hand. Each answer comes whole, and in small pieces.
#include "support/live.hpp"
#include "virtual/scripted_server.hpp"

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace live;

namespace {

struct answered {
    const char* file;
    api_format api;
    int prompt_tokens, output_tokens, events;
    const char* finish_reason;
};
/// Answers of as many tokens as were asked for. Of some streams the middle was left out: events that
/// are like those around them.
const answered answers[] = {
    {"bentoml-1.4.40/plain_text.stream.http", plain_text, 0, 8, 8, ""},
    // Its last event but those of usage and the end has a role again, and no content.
    {"dynamo-1.4.2/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"dynamo-1.4.2/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // 12 characters, which are not those of what is asked here.
    {"infinity-0.0.78/openai_embeddings.whole.http", api_format::openai_embeddings, 12, 0, 1, "stop"},
    // 13 characters, which are: no count of tokens.
    {"infinity-0.0.78/rerank.whole.http", api_format::rerank, 0, 0, 1, "stop"},
    // Its event of usage has a choice that says nothing.
    {"litellm-1.106.2/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"litellm-1.106.2/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // Asked for 8 tokens, it asks the server behind it for 16, the least that /v1/responses takes,
    // and calls their end one of the turn. Its first event has no count, its last one has.
    {"litellm-1.106.2/anthropic.stream.http", anthropic, 18, 16, 3, "stop"},
    {"litellm-1.106.2/anthropic.whole.http", anthropic, 18, 16, 1, "stop"},
    // The role stands in each of its events.
    {"lmdeploy-0.18.0/openai_chat.stream.http", openai_chat, 18, 8, 3, "length"},
    {"lmdeploy-0.18.0/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // Without a count in its streams.
    {"llama-cpp-python-0.3.36/openai_chat.stream.http", openai_chat, 0, 4, 4, "length"},
    {"llama-cpp-python-0.3.36/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // Its role has null for a content, and comes in one chunk with the first token.
    {"llama-server-11434/openai_chat.stream.http", openai_chat, 18, 8, 5, "length"},
    {"llama-server-11434/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    {"llama-server-11434/openai_completions.stream.http", openai_completions, 4, 8, 3, "length"},
    {"llama-server-11434/openai_completions.whole.http", openai_completions, 4, 8, 1, "length"},
    {"llama-server-11434/llama_cpp.stream.http", llama_cpp, 4, 8, 3, "length"},
    {"llama-server-11434/llama_cpp.whole.http", llama_cpp, 4, 8, 1, "length"},
    {"llama-server-11434/openai_embeddings.whole.http", api_format::openai_embeddings, 4, 0, 1, "stop"},
    {"llama-server-11434/rerank.whole.http", api_format::rerank, 9, 0, 1, "stop"},
    {"max-26.7.0/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"max-26.7.0/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    {"mlc-llm-0.26.dev0/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"mlc-llm-0.26.dev0/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // Asked for 8 tokens that no end token ends: it takes ignore_eos in debug_config alone. The end
    // token is in its usage, and has an event without text.
    {"mlc-llm-0.26.dev0/openai_completions.stream.http", openai_completions, 4, 4, 3, "stop"},
    {"mlc-llm-0.26.dev0/openai_completions.whole.http", openai_completions, 4, 4, 1, "stop"},
    // Usage in the last event of a chat; none in a stream of completions.
    {"mistralrs-0.8.1/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"mistralrs-0.8.1/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    {"mistralrs-0.8.1/openai_completions.stream.http", openai_completions, 0, 4, 4, "length"},
    {"mistralrs-0.8.1/openai_completions.whole.http", openai_completions, 4, 8, 1, "length"},
    {"ollama-0.17.4/ollama.stream.http", ollama, 18, 8, 8, "length"},
    {"ollama-0.17.4/ollama.whole.http", ollama, 18, 8, 1, "length"},
    {"ollama-0.17.4/ollama_generate.stream.http", ollama_generate, 18, 8, 3, "length"},
    {"ollama-0.17.4/ollama_generate.whole.http", ollama_generate, 18, 8, 1, "length"},
    {"ollama-0.17.4/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"ollama-0.17.4/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // It tells a usage of 0, and the true one after it; a prompt is put into the model's template.
    {"ollama-0.17.4/openai_completions.stream.http", openai_completions, 18, 8, 4, "length"},
    {"ollama-0.17.4/openai_completions.whole.http", openai_completions, 18, 8, 1, "length"},
    // Events that were 50 ms apart come in one chunk.
    {"ray-serve-2.60.0/openai_chat.stream.http", openai_chat, 18, 8, 8, "length"},
    {"ray-serve-2.60.0/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // It was busy: two tokens came in one event.
    {"sglang-0.5.23/openai_chat.stream.http", openai_chat, 18, 8, 7, "length"},
    {"sglang-0.5.23/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    // Each event has all of the text so far.
    {"sglang-0.5.23/sglang.stream.http", sglang, 4, 8, 4, "length"},
    {"sglang-0.5.23/sglang.whole.http", sglang, 4, 8, 1, "length"},
    {"tei-1.9.3/openai_embeddings.whole.http", api_format::openai_embeddings, 4, 0, 1, "stop"},
    // What it tells of a prompt's tokens is not in an answer in one piece, but for its headers.
    {"tgi-3.3.7/tgi.stream.http", tgi, 4, 8, 4, "length"},
    {"tgi-3.3.7/tgi.whole.http", tgi, 0, 8, 1, "length"},
    {"tgi-3.3.7/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"tgi-3.3.7/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    {"tgi-3.3.7/openai_completions.stream.http", openai_completions, 4, 8, 4, "length"},
    {"tgi-3.3.7/openai_completions.whole.http", openai_completions, 4, 8, 1, "length"},
    // No [DONE], but for a reason and usage in the last event.
    {"transformers-5.24.0/openai_chat.stream.http", openai_chat, 18, 8, 4, "length"},
    {"transformers-5.24.0/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    {"transformers-5.24.0/openai_completions.stream.http", openai_completions, 4, 8, 8, "length"},
    {"transformers-5.24.0/openai_completions.whole.http", openai_completions, 4, 8, 1, "length"},
    // Nothing but the pieces: neither a reason nor an end of its own.
    {"triton-2.51/triton.stream.http", triton, 0, 4, 4, ""},
    {"vllm-0.33.0/openai_chat.stream.http", openai_chat, 18, 8, 8, "length"},
    {"vllm-0.33.0/openai_chat.whole.http", openai_chat, 18, 8, 1, "length"},
    {"vllm-0.33.0/openai_completions.stream.http", openai_completions, 4, 8, 4, "length"},
    {"vllm-0.33.0/openai_completions.whole.http", openai_completions, 4, 8, 1, "length"},
    {"vllm-0.33.0/openai_embeddings.whole.http", api_format::openai_embeddings, 4, 0, 1, "stop"},
    {"vllm-0.33.0/rerank.whole.http", api_format::rerank, 9, 0, 1, "stop"},
};

struct refused {
    const char* file;
    api_format api;
    int http_status;
    const char* words;
};
const refused refusals[] = {
    {"bentoml-1.4.40/wrong_model.http", openai_chat, 404, "`no-such-model` does not exist"},
    {"bentoml-1.4.39/plain_error_early.http", plain_text, 500, "check the server log"},
    {"bentoml-1.4.39/plain_overload.http", plain_text, 429, "Too many requests"},
    {"dynamo-1.4.2/wrong_model.http", openai_chat, 404, "HTTP 404: Model not found"},
    {"dynamo-1.4.2/overflow.http", openai_chat, 400, "maximum context length is 2048"},
    {"dynamo-1.4.2/no_engine.http", openai_chat, 500, "Failed to generate completions"},
    // Its engine was killed in mid-stream: an error, and behind it [DONE].
    {"dynamo-1.4.2/engine_killed.http", openai_chat, 200, "Internal server error"},
    {"infinity-0.0.78/wrong_model.http", api_format::openai_embeddings, 400, "Engine for model name"},
    {"infinity-0.0.78/wrong_key.http", api_format::openai_embeddings, 401, "HTTP 401: Unauthorized"},
    {"litellm-1.106.2/wrong_model.http", openai_chat, 400, "Invalid model name"},
    {"litellm-1.106.2/overflow.http", openai_chat, 400,
     "exceeds the available context size"},
    // Its words for a key that it does not know, where it has no database to look for one.
    {"litellm-1.106.2/wrong_key.http", openai_chat, 400, "No connected db."},
    {"litellm-1.106.2/upstream_down.http", openai_chat, 429, "No deployments available"},
    {"litellm-1.106.2/messages_wrong_model.http", anthropic, 400, "Invalid model name"},
    // A prompt that is too long ends its stream before anything of it is there.
    {"llama-cpp-python-0.3.36/overflow.http", openai_chat, 200, "the answer ended before any content"},
    {"llama-server-11434/wrong_key.http", openai_chat, 401, "Invalid API Key"},
    {"llama-server-11434/overflow.http", openai_chat, 400, "exceeds the available context size"},
    {"lmdeploy-0.18.0/wrong_model.http", openai_chat, 404, "'no-such-model' does not exist"},
    {"lmdeploy-0.18.0/wrong_key.http", openai_chat, 401, "HTTP 401: Unauthorized."},
    // Its engine failed in mid-stream: an error, and behind it [DONE].
    {"lmdeploy-0.18.0/engine_error.http", openai_chat, 200, "An internal server error occurred."},
    {"max-26.7.0/wrong_model.http", openai_chat, 400, "HTTP 400: Value error."},
    {"mistralrs-0.8.1/wrong_model.http", openai_chat, 500,
     "HTTP 500: Requested model 'no-such-model' is not available"},
    // Its refusals are a string of JSON, with the object in it.
    {"mlc-llm-0.26.dev0/overflow.http", openai_chat, 400,
     "HTTP 400: Request prompt has 6159 tokens in total"},
    // Its engine gave the request up: a reason of its own, usage of 0 and [DONE], or no end at all.
    {"mlc-llm-0.26.dev0/given_up_completions.http", openai_completions, 200, "finish reason \"preempt\""},
    {"mlc-llm-0.26.dev0/given_up_chat.http", openai_chat, 200, "without a finish reason or [DONE]"},
    {"ollama-0.17.4/wrong_model.http", ollama, 404, "HTTP 404: model 'no-such-model' not found"},
    // Its front end says so itself; what its engine says is told in an error object.
    {"ray-serve-2.60.0/wrong_model.http", openai_chat, 404, "Could not find base model with ID"},
    {"ray-serve-2.60.0/overflow.http", openai_chat, 400, "maximum context length is 2048"},
    // A router whose worker was killed in mid-stream, and then is away.
    {"sglang-router-0.3.2/worker_killed.http", openai_chat, 200, "without a finish reason or [DONE]"},
    {"sglang-router-0.3.2/no_worker.http", openai_chat, 500, "error sending request for url"},
    // Its own API tells it in the stream: an error, and behind it [DONE].
    {"sglang-0.5.23/sglang_overflow.http", sglang, 200, "longer than the model's context length"},
    {"smg-1.13.0/no_worker.http", openai_chat, 404, "No worker available for model 'tiny'"},
    {"tei-1.9.3/overflow.http", api_format::openai_embeddings, 422, "must have less than 2048 tokens"},
    {"tei-1.9.3/overloaded.http", api_format::openai_embeddings, 429, "HTTP 429: Model is overloaded"},
    // Its /rerank takes another form.
    {"tei-1.9.3/rerank_documents.http", api_format::rerank, 422, "missing field `texts`"},
    {"tgi-3.3.7/wrong_key.http", tgi, 401, "HTTP 401"},
    // A stream has begun before it is refused: status 200, and no more than the one event.
    {"tgi-3.3.7/overflow.http", tgi, 200, "`inputs` tokens + `max_new_tokens` must be <= 2048"},
    {"tgi-3.3.7/overflow.whole.http", tgi, 422, "`max_new_tokens` must be <= 2048"},
    {"tgi-3.3.7/openai_chat_overflow.http", openai_chat, 200, "must be <= 2048"},
    {"tgi-3.3.7/overloaded.whole.http", tgi, 429, "HTTP 429: Model is overloaded"},
    // Its engine failed in mid-stream: an error, and behind that of a chat [DONE].
    {"tgi-3.3.7/engine_error.http", tgi, 200, "Request failed during generation"},
    {"tgi-3.3.7/openai_chat_engine_error.http", openai_chat, 200, "Request failed during generation"},
    {"tgi-3.3.7/engine_error.whole.http", tgi, 424, "HTTP 424: Request failed during generation"},
    {"transformers-5.24.0/ignore_eos.http", openai_chat, 422,
     "HTTP 422: Unexpected fields in the request: {'ignore_eos'}"},
    {"transformers-5.24.0/wrong_model.http", openai_chat, 400,
     "HTTP 400: Server is pinned to 'tiny'"},
    {"triton-2.51/wrong_model.http", triton, 404, "HTTP 404: Request for unknown model"},
    {"triton-2.51/overflow.http", triton, 400, "HTTP 400: Traceback (most recent call last)"},
    {"vllm-router-0.1.17/no_worker.http", openai_chat, 500, "Request failed: error sending request"},
    {"vllm-0.33.0/wrong_model.http", openai_chat, 404, "`no-such-model` does not exist"},
    {"vllm-0.33.0/wrong_key.http", openai_chat, 401, "HTTP 401: Unauthorized"},
};

std::string bytes_of(const char* file) {
    std::ifstream in(std::string("data/real/") + file, std::ios::binary);
    CAPTURE(file);
    REQUIRE(in.good());
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}
/// The record of the one request that is answered so, whole or in pieces of n bytes.
record record_of(const char* file, api_format api, int tokens, std::size_t n,
                 bool streams = true) {
    scripted::answer a;
    if (n > 0) a.push_back(scripted::cut(n));
    a.push_back(scripted::send(bytes_of(file)));
    a.push_back(scripted::close());  // each said so, or answered a request that asked for it
    const scripted::server server({a});
    scenario s = asking(endpoint{.url = server.url(), .model = "tiny", .api = api});
    if (api == api_format::rerank) {
        s.workload = prompts({"the way home"});  // what was asked, a query and two documents
        s.options.documents = 2;
    } else if (api != api_format::openai_embeddings) {
        s.options.max_tokens = tokens;
    }
    s.options.stream = streams;
    return only_record(s);
}
bool is_whole(const std::string& file) { return file.find(".whole.") != std::string::npos; }

}  // namespace

TEST_CASE("real answers are read as their servers counted them") {
    for (const answered& x : answers)
        for (const std::size_t pieces : {std::size_t(0), std::size_t(7)}) {
            CAPTURE(x.file);
            CAPTURE(pieces);
            const record r = record_of(x.file, x.api, x.output_tokens, pieces, !is_whole(x.file));
            CAPTURE(r.error);
            // None of these reasons: a model of random weights has nothing to think about.
            CHECK(r.first_answer_ns == r.first_token_ns);
            CHECK(r.reasoning_tokens <= 0);
            CHECK((r.second_token_ns > 0) == (r.events > 1));
            CHECK(r.status == request_status::ok);
            CHECK(r.prompt_tokens == x.prompt_tokens);
            // A token of bare text is what one read brings, and what cuts it may be read apart.
            const bool counts_reads = x.api == plain_text && pieces > 0;
            CHECK((counts_reads ? r.output_tokens >= x.output_tokens
                                : r.output_tokens == x.output_tokens));
            CHECK((counts_reads ? r.events >= x.events : r.events == x.events));
            CHECK(r.finish_reason == x.finish_reason);
        }
}

TEST_CASE("a real answer that reasons first has its own first token after that") {
    // By a template that opens what this model would not, and a budget that closes it: the tokens of
    // the closing words are counted, and are no content.
    const char* stream = "llama-server-11434/reasoning.stream.http";
    const scripted::server server({{scripted::cut(64, scripted::milliseconds(1)),
                                    scripted::send(bytes_of(stream)), scripted::close()}});
    scenario s = asking(endpoint{.url = server.url(), .model = "tiny"});
    s.options.max_tokens = 16;
    const record slow = only_record(s);
    CHECK(slow.first_token_ns < slow.second_token_ns);
    CHECK(slow.second_token_ns < slow.first_answer_ns);
    CHECK(slow.first_answer_ns < slow.last_token_ns);
    for (const char* file : {stream, "llama-server-11434/reasoning.whole.http"}) {
        CAPTURE(file);
        const record r = record_of(file, openai_chat, 16, 0, !is_whole(file));
        CHECK(r.status == request_status::ok);
        CHECK(r.prompt_tokens == 24);
        CHECK(r.output_tokens == 16);
        CHECK(r.events == (is_whole(file) ? 1 : 6));
        CHECK(r.reasoning_tokens == -1);  // its usage does not tell them apart
        CHECK(r.first_answer_ns >= r.first_token_ns);
    }
}

TEST_CASE("real refusals are told in the server's words") {
    for (const refused& x : refusals)
        for (const std::size_t pieces : {std::size_t(0), std::size_t(7)}) {
            CAPTURE(x.file);
            CAPTURE(pieces);
            const record r = record_of(x.file, x.api, 8, pieces);
            CAPTURE(r.error);
            CHECK(r.status != request_status::ok);
            CHECK(r.http_status == x.http_status);
            CHECK(error(r).find(x.words) != std::string::npos);
        }
}

TEST_CASE("a real answer that breaks off is no answer") {
    for (const answered& x : answers) {
        if (is_whole(x.file) || x.api == plain_text) continue;
        CAPTURE(x.file);
        const std::string all = bytes_of(x.file);
        const scripted::server server(
            {{scripted::send(all.substr(0, all.size() / 2)), scripted::close()}});
        scenario s = asking(endpoint{.url = server.url(), .model = "tiny", .api = x.api});
        s.options.max_tokens = x.output_tokens;
        CHECK(only_record(s).status != request_status::ok);
    }
}

TEST_CASE("a service of bare text that fails in mid-stream cannot be told from one that is done") {
    const record r = record_of("bentoml-1.4.39/plain_error_late.http", plain_text, 8, 0);
    CHECK(r.status == request_status::ok);
    CHECK(r.output_tokens == 3);
}

TEST_CASE("a server whose engine has died, and which does not see it, fails by the client's limits") {
    // MLC-LLM's lists its model all the same.
    const char* file = "mlc-llm-0.26.dev0/engine_dead.http";
    const scripted::server server({{scripted::send(bytes_of(file)), scripted::stall()}});
    scenario s = asking(endpoint{.url = server.url(), .model = "tiny"});
    s.options.max_tokens = 8;
    const record r = only_record(s);
    CHECK(r.status == request_status::timeout);
    CHECK(r.events == 3);
}
