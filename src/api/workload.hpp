// workloads
#pragma once

#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"

#include <initializer_list>  // .slos = {...}

namespace llmbench {
inline namespace v0 {

/// Made-up prompts and forced output lengths. Every prompt is made of other words, so that prefix
/// caches help only where `shared_prefix` asks for it.
///
/// A prompt's length is what the server counts, chat template and system prompt included; where
/// these alone are as long, the prompt is one word. Before the load the server's `/tokenize` (vLLM,
/// SGLang, llama.cpp), or else the usage of requests of one output token, tells which words are one
/// token, so that every length is exact. Where few are, `/v1/completions` gets lists of token ids,
/// if it takes them, and elsewhere lengths are right on the average. A server that tells nothing
/// within 5 s gets a word for a token. Which of these holds is announced.
struct synthetic {
    length_distribution prompt_tokens = lognormal(512, 0.6);
    length_distribution output_tokens = fixed(128);
    length_distribution shared_prefix = fixed(0);  ///< leading tokens that prompts of a group share
    types::whole prefix_groups = 1;                ///< so many prefixes, drawn evenly; 1 to 1000000
    fraction prefix_fraction{1.0};                 ///< of the prompts that start with one
    fraction prefix_share{-1.0};  ///< deprecated, say prefix_fraction; counts where it is set
    bool force_output = true;  ///< by ignore_eos; false: answers are as long at most
};

/// Made-up conversations. The server's answers are fed back, so each turn's prompt is all that was
/// said before. Arrivals start conversations; users play one after the other.
struct conversations {
    length_distribution turns = fixed(4);             ///< messages of the user, 1 to 1000
    length_distribution user_tokens = fixed(64);      ///< of each of them
    length_distribution output_tokens = fixed(128);   ///< of each answer
    time_distribution think{};                        ///< between an answer and the next message
    length_distribution system_tokens = fixed(0);     ///< of a system prompt
    bool shared_system_prompt = true;                 ///< false: each conversation has its own
    bool force_output = true;  ///< by ignore_eos; false: answers are as long at most
    /// Of the turns that another follows, the part that starts `helpers` side by side (1 to 64), of
    /// `helper_turns` each (1 to 1000): they have the system prompt and no history, and the next
    /// turn waits for all of them.
    fraction helped{};
    length_distribution helpers{}, helper_turns{};
};

/// How a dataset's file is written. A conversation's first message of the user is the prompt, and
/// the answer behind it says how long the server's is to be.
enum class dataset_format : unsigned char {
    sharegpt,       ///< JSON array (or JSONL) of {"conversations": [{"from": "human", "value"}...]}
    dolly,          ///< databricks-dolly-15k, JSONL of {"instruction", "context", "response"}
    openai_jsonl,   ///< JSONL of {"messages": [...]} or {"prompt"}, as in batch files or without
    coco_captions,  ///< COCO captions JSON, or JSONL of {"image", "question", "answer"}
    vqa,            ///< VQA v2: a file of questions about COCO's images; see `answers`
    text_lines,     ///< one prompt a line
    csv             ///< a header with a column prompt, and perhaps answer or output_tokens
};
using enum dataset_format;

/// Prompts from a local file, sampled by the seed without putting back, sent in the sample's order
/// and again from its start where it is too small. What is held in memory is the sample. Tokens are
/// estimated (one for four ASCII bytes, one for any other character); records have the server's.
struct dataset {
    types::text path{};
    dataset_format format = sharegpt;
    types::maybe<int> max_items{};       ///< in the sample; default: as many as there are requests
    types::whole min_prompt_tokens = 0;  ///< shorter first prompts are left out
    types::whole max_prompt_tokens = 0;  ///< longer ones are left out; 0: no limit
    types::whole min_output_tokens = 0;  ///< as above, of first answers, where the file has them
    types::whole max_output_tokens = 0;
    types::whole max_turns = 1;   ///< over 1: conversations are played, with the server's answers
    time_distribution think{};    ///< between an answer and the next turn
    bool force_output = true;     ///< answers get the length of the file's (ignore_eos)
    bool salted = true;           ///< a line of five words first, fresh in every repeat
    types::text images{};         ///< directory of a dataset's images; default: that of the file
    types::text answers{};        ///< of `vqa`: the annotations, which say how long answers are
};

/// How a file of questions is written.
enum class question_format : unsigned char {
    gsm8k,    ///< GSM8K, JSONL of {"question", "answer": "... #### 42"}
    qa_jsonl  ///< JSONL of {"question", "answer"}, perhaps with "choices", "pattern" or "schema"
};
using enum question_format;

/// How an answer is held against its key; a graded answer is what follows the reasoning.
enum class answer_grade : unsigned char {
    exact,        ///< the same text, but for space around it
    last_number,  ///< the number behind the last ####, else the last one, compared as numbers
    choice,       ///< a letter: alone on the first line, after "answer is", in \boxed{}, the last
    pattern,      ///< an ECMAScript expression found in the last 4096 bytes
    schema        ///< JSON that the line's schema, or that of response_format, allows
};
using enum answer_grade;

/// Questions whose answers are known. Each is asked once a repeat, as it stands there, at
/// temperature 0 unless `options` say otherwise; its answer is as long as it gets, or
/// `options.max_tokens`. The share of right answers is `accuracy`; a failed request is wrong.
struct questions {
    types::text path{};
    question_format format = qa_jsonl;
    types::maybe<answer_grade> grade{};  ///< default: last_number of gsm8k, else what a line has
    types::text before{};                ///< stands before each question: examples, the form wanted
    types::text after{};
    types::maybe<int> max_items{};       ///< drawn by the seed; default: all of them
};

/// A model of a recording, and the one that is asked in its place.
struct model_name {
    types::text recorded{};
    types::text asked{};
};
/// Recorded sessions of agents, each a graph of model calls: a step waits for others, then for a
/// tool, and its prompt goes on from one of them. Told apart by content: Weka, Bailian, Mooncake,
/// spans of OpenTelemetry's GenAI conventions, and JSON lines of {"session", "step", "after",
/// "wait", "keeps", "prompt_tokens", "output_tokens"}. Arrivals start sessions; users play one
/// after the other, in the seed's order. Prompts are made-up words that have in common what the
/// recorded ones had.
struct sessions {
    types::text path{};           ///< of a file, or of a folder of them
    time_span most_wait = time_span::from_seconds(60);  ///< longer waits are cut to this
    types::whole max_context = 0; ///< tokens; sessions with more are left out; 0: no limit
    types::list<model_name> models{};  ///< recorded names that the server has others for
    types::maybe<int> max_items{};     ///< sessions that are played; default: all
    bool force_output = true;          ///< by ignore_eos; false: answers are as long at most
};

struct prompt_list {
    types::list<types::text> items{};
};
/// The given prompts, in turn.
inline prompt_list prompts(const types::list<types::text>& items) { return {items}; }
inline prompt_list prompts(std::initializer_list<types::text> items) {
    return {types::list<types::text>(items)};
}

struct mix_of_parts;

class any_workload {
public:
    any_workload() = default;  ///< synthetic{}
    any_workload(const synthetic& s) : what_(detail::box::make(s)) {}
    any_workload(const conversations& c) : what_(detail::box::make(c)) {}
    any_workload(const dataset& d) : what_(detail::box::make(d)) {}
    any_workload(const questions& q) : what_(detail::box::make(q)) {}
    any_workload(const sessions& s) : what_(detail::box::make(s)) {}
    any_workload(const prompt_list& p) : what_(detail::box::make(p)) {}
    any_workload(const mix_of_parts& m);
    const detail::box& what() const { return what_; }

private:
    detail::box what_{};
};

/// Fields of every request body.
struct request_options {
    types::maybe<int> max_tokens{};  ///< of workloads that do not say their output length
    types::maybe<double> temperature{};
    types::text system_prompt{};
    bool ignore_eos = false;  ///< workloads that force the lengths of answers send it anyhow
    bool stream = true;
    /// What a prompt is cut into: documents behind the query of `rerank`, `score`, `sglang_score`,
    /// or inputs of `openai_embeddings`; 0: 8 of the former, 1 of the latter.
    types::whole documents = 0;
    types::text extra_body{};  ///< a JSON object whose fields are added to every request
    /// The client closes the connection then, after its request is due to go out; 0: it stays. Such
    /// a request is load and no evidence: neither a failure nor in any latency or goodput.
    time_span leaves_after{};
};

/// One part of a mix, whose name is the label of its requests: `p90(ttft).of("sql")`.
struct part {
    types::text name{};
    types::whole weight = 1;  ///< 1 to 1000
    any_workload workload{};  ///< default: synthetic{}
    types::text model{};      ///< another one of the server's; default: the target's
    types::maybe<request_options> options{};  ///< all that its requests have, not the scenario's
    /// Its own, instead of a weight: of all parts or of none, and `.duration` ends them together.
    arrival_pattern arrivals{};
};
struct mix_of_parts {
    types::list<part> parts{};
};
/// Several workloads at once. Of as many starts (requests, or conversations) as the weights add up
/// to, each part has its weight exactly, in an order of the seed's:
/// `mix({{.name = "base", .weight = 70}, {.name = "sql", .weight = 30, .model = "sql-lora"}})`. Or
/// each has arrivals of its own: `mix({{.name = "chat", .arrivals = poisson(4_rps)},
/// {.name = "batch", .arrivals = closed_loop(32)}})`.
inline mix_of_parts mix(const types::list<part>& parts) { return {parts}; }
inline mix_of_parts mix(std::initializer_list<part> parts) { return {types::list<part>(parts)}; }
inline any_workload::any_workload(const mix_of_parts& m) : what_(detail::box::make(m)) {}

}  // inline namespace v0
}  // namespace llmbench
