// targets
#pragma once

#include "api/metrics.hpp"
#include "api/text.hpp"
#include "api/units.hpp"
#include "api/workload.hpp"

namespace llmbench {
inline namespace v0 {

/// How requests are written and answers read. LLMBENCH_API takes the same names.
enum class api_format : unsigned char {
    openai_chat,         ///< /v1/chat/completions: vLLM, SGLang, llama.cpp, LMDeploy, LiteLLM ...
    openai_completions,  ///< /v1/completions
    tgi,                 ///< /generate_stream of Hugging Face's Text Generation Inference
    triton,              ///< /v2/models/MODEL/generate_stream (vLLM, TensorRT-LLM); name the model
    ollama,              ///< /api/chat
    ollama_generate,     ///< /api/generate
    llama_cpp,           ///< /completion of llama-server
    sglang,              ///< /generate of SGLang
    plain_text,          ///< `prompt` in, a stream of bare text out, at the URL's path or /generate
    anthropic,           ///< /v1/messages; without max_tokens at most 1024 tokens are asked for
    // Those that generate nothing: answers come in one piece, output lengths mean nothing.
    openai_embeddings,   ///< /v1/embeddings: the prompt is options.documents inputs, one by default
    /// /v1/rerank, or the URL itself where it ends in /rerank (vLLM, llama.cpp, Jina, Cohere): a
    /// prompt is cut into a query and options.documents documents of about as many words each.
    rerank,
    score,               ///< /v1/score of vLLM, cut in the same way
    sglang_score,        ///< the same of SGLang; options.extra_body has its label_token_ids
    openai_responses     ///< /v1/responses, which generates: vLLM, SGLang, OpenAI
};
using enum api_format;

struct name_value {
    types::text name{};
    types::text value{};
};
/// How an https:// server is trusted: TLS 1.2 or 1.3, its certificate signed by an authority that
/// is known here and made for the URL's host. Needs LLMBENCH_WITH_TLS.
struct tls_options {
    bool verify = true;      ///< false: any certificate will do, and every report says so
    types::text ca_file{};   ///< the authorities to trust, PEM; default: those of the system
};

/// A server that runs already. `url` may end in a path, `http://host:8000` and
/// `http://host:8000/v1` mean the same; of plain_text it is the whole address.
/// `unix:/run/server.sock` is a Unix-domain socket, named by its full path of at most 107 bytes.
struct endpoint {
    types::text url{};
    types::text model{};  ///< default: LLMBENCH_MODEL, else the only model the server lists
    api_format api = openai_chat;
    /// Name of the variable that holds the key; default LLMBENCH_API_KEY.
    types::text api_key_env{};
    /// `{session}` in a value is an id of each agent of a session, or of a conversation: for
    /// routers that keep one on a server.
    types::list<name_value> headers{};
    /// The page of the server's own metrics, Prometheus text or OpenMetrics; "/path" is one of this
    /// server. Default: the one that servers of this API have, if it is there. "off": none is read,
    /// as of several servers behind one address, whose pages tell of one of them each.
    types::text metrics_url{};
    tls_options tls{};
    /// Pages of exporters that tell what its accelerators do, such as dcgm-exporter's.
    types::list<types::text> telemetry{};
    /// For first_answer_time: a command that leaves the server cold, as by scaling it to zero. It
    /// is run before each repeat, as that of a side task is.
    types::text cold{};
};

/// A server that the gate starts and stops itself. `{port}` in the command becomes a free port; the
/// command runs in a shell, in a process group of its own, which is ended with the gate.
struct process {
    types::text command{};
    types::text ready{};  ///< path polled until it answers 200; default: the API's, "/health"
    types::list<name_value> env{};
    types::text working_directory{};
    bool restart_between_repeats = false;
    time_span ready_within = time_span::from_seconds(120);
    api_format api = openai_chat;
    types::text model{};
    types::text metrics_url{};             ///< as of an endpoint; `{port}` is the server's
    types::list<types::text> telemetry{};  ///< as of an endpoint
};

/// Memory for attention keys and values. A token takes 2 x layers x kv_heads x head_size x
/// bytes_per_value bytes.
struct kv_cache {
    types::whole layers = 32;
    types::whole kv_heads = 8;
    types::whole head_size = 128;
    types::whole bytes_per_value = 2;
    double memory_bytes = 16e9;
};

/// Faults of the simulated server, off by default.
struct engine_faults {
    time_span delay{};            ///< added to every answer's first byte
    fraction error_rate{};        ///< fraction of requests answered with HTTP 500
    fraction reset_rate{};        ///< fraction of answers cut by a reset after the first content
    fraction stall_rate{};        ///< fraction of answers that say nothing more after it
    fraction garbage_rate{};      ///< fraction of answers that go on in bytes that are no HTTP
    fraction wrong_answers{};     ///< of the questions that it could answer, always the same ones
    fraction wrong_in_batch{};    ///< the same of those that share their batch with others
    types::whole stop_after = 0;  ///< after so many requests the server is gone; 0: never
    /// After so many requests its metrics begin anew, as those of a restarted server; 0: never.
    types::whole restart_after = 0;
    bool metrics_hang = false;  ///< its page of metrics is never answered
    bool leaks_slots = false;   ///< a request that runs as its client leaves keeps its slot
};

/// The simulated server's engine: continuous batching in steps. A step takes
/// `decode_step + step_per_sequence * running + prefill_per_token * prompt tokens`, and gives every
/// running sequence its next token.
struct engine {
    types::whole slots = 32;  ///< sequences that run together at most
    time_span decode_step = time_span::from_seconds(0.012);
    time_span step_per_sequence = time_span::from_seconds(0.0001);
    time_span prefill_per_token = time_span::from_seconds(0.00006);
    types::whole prefill_budget = 2048;  ///< tokens a step, running sequences included
    bool chunked_prefill = true;   ///< false: whole prompts only; one over the budget gets HTTP 400
    bool static_batching = false;  ///< true: a new batch starts when the old one has ended
    types::whole queue_limit = 0;  ///< waiting requests at most, HTTP 429 beyond; 0: no limit
    types::whole max_model_len = 32768;  ///< prompt + output tokens of one request
    kv_cache kv{};
    bool prefix_cache =
        true;  ///< shared prompt starts (blocks of 16 tokens) are not computed again
    types::whole tokens_per_event = 1;   ///< speculative decoding: tokens a sequence gains a step
    fraction reasoning{};                ///< of an answer's tokens, which come before the others
    /// POST /v1/load_lora_adapter is answered after so long, in which no step begins.
    time_span adapter_load{};
    double jitter = 0.02;                ///< relative standard deviation of a step's time
    types::whole seed = 1;
    engine_faults faults{};
};
struct simulated_server {
    engine settings{};
};
/// The built-in server, its compute modelled. A load on it runs in virtual time, in which nothing
/// is waited for, and is the same every time; beside a baseline or a setting that is not simulated,
/// and by serve_simulated(), it has real sockets.
inline simulated_server simulated(const engine& e = {}) { return {e}; }

struct stored_result {
    types::text file{};
    fraction day_to_day{0.05};
};
/// The result.json of an earlier run, as a baseline. It must be of the same traffic and model.
/// `day_to_day` is the relative standard deviation between two days' runs of an unchanged server;
/// nothing below twice that can fail. LLMBENCH_WRITE_BASELINE=1 writes the file and compares
/// nothing.
inline stored_result stored(const types::text& file, fraction day_to_day = fraction(0.05)) {
    return {file, day_to_day};
}

struct history_baseline {
    types::text folder{};
    fraction night_to_night{0};
};
/// The nights of the main branch as a baseline: LLMBENCH_HISTORY=append adds what main does to the
/// folder, and a run is held against it, with the spread between nights learned from them, from 3
/// nights on. `night_to_night`, a relative standard deviation up to 50 %, makes a baseline of the
/// first one; it counts until there are ten, and nothing below twice that fails meanwhile. The
/// nights tell the noise of repeats, too: objectives without a baseline need fewer of them.
inline history_baseline history(const types::text& folder = "perf-history",
                                fraction night_to_night = fraction(0)) {
    return {folder, night_to_night};
}

/// The target itself, measured as its own baseline.
struct same_server_t {};
/// An A/A run: what the machine, the load and the verdicts make of a server and itself. Two arms
/// that are one server are refused unless this says that they are meant to be.
inline same_server_t same_server() { return {}; }

/// The target itself with another load as the baseline: what a schema, a list of tools, a longer
/// system prompt, a LoRA adapter or a prefix cache makes of it, as `mean(tpot) <= 1.2 * baseline`.
/// What is left out is the scenario's. Times, order and seed are the same; lengths are where their
/// distributions are. Loads that do not differ are refused.
struct otherwise {
    types::maybe<request_options> options{};  ///< all that the baseline's requests have
    types::text model{};                      ///< another one of the server's
    any_workload workload{};
    bool alone = false;                       ///< without what the scenario does beside its load
};
inline otherwise other_options(const request_options& options, const types::text& model = "") {
    return {.options = options, .model = model};
}

/// endpoint, process or simulated server. The default is the server at LLMBENCH_URL.
class any_target {
public:
    any_target() = default;
    any_target(const endpoint& e) : what_(detail::box::make(e)) {}
    any_target(const process& p) : what_(detail::box::make(p)) {}
    any_target(const simulated_server& s) : what_(detail::box::make(s)) {}
    const detail::box& what() const { return what_; }

private:
    detail::box what_{};
};
/// Any live target, the target itself, a stored result, or nights of main. The default is none. An
/// endpoint without a URL is the server at LLMBENCH_BASELINE_URL.
class any_baseline {
public:
    any_baseline() = default;
    template <class T>
        requires detail::gives<any_target, T>
    any_baseline(const T& t) : live_(t), given_(true) {}
    any_baseline(const same_server_t&) : given_(true), is_same_server_(true) {}
    any_baseline(const otherwise& o) : asked_(o), given_(true), is_asked_otherwise_(true) {}
    any_baseline(const stored_result& s) : stored_(s), is_stored_(true) {}
    any_baseline(const history_baseline& h) : history_(h), is_history_(true) {}
    const any_target& live() const { return live_; }
    const stored_result& stored() const { return stored_; }
    bool is_live() const { return given_; }
    bool is_same_server() const { return is_same_server_; }
    /// What the target itself is asked with, where is_asked_otherwise().
    const otherwise& asked() const { return asked_; }
    bool is_asked_otherwise() const { return is_asked_otherwise_; }
    bool is_stored() const { return is_stored_; }
    const history_baseline& nights() const { return history_; }
    bool is_history() const { return is_history_; }

private:
    any_target live_{};
    stored_result stored_{};
    history_baseline history_{};
    otherwise asked_{};
    bool given_ = false, is_same_server_ = false, is_asked_otherwise_ = false;
    bool is_stored_ = false, is_history_ = false;
};

}  // inline namespace v0
}  // namespace llmbench
