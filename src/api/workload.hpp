// workloads
#pragma once

#include "api/text.hpp"
#include "api/traffic.hpp"
#include "api/units.hpp"

#include <initializer_list>  // .slos = {...}

namespace llmbench {
inline namespace v1 {

/// Synthetic prompts with forced output lengths. No two prompts have the same words, so that prefix
/// caches help only with `shared_prefix`.
///
/// A prompt's length is what the server counts, with chat template and system prompt; if these
/// alone are as long, the prompt is one word. Before the load, the server's `/tokenize` (vLLM,
/// SGLang, llama.cpp) or the usage of requests of one output token shows which words are one token,
/// so that every length is exact. If few are, `/v1/completions` gets lists of token ids, if it
/// takes them; otherwise lengths are right on average. A server that reports nothing within 5 s
/// gets one word for a token. The gate announces which of these holds.
struct synthetic {
    length_distribution prompt_tokens = lognormal(512, 0.6);
    length_distribution output_tokens = fixed(128);
    length_distribution shared_prefix = fixed(0);  ///< first tokens, shared within a group
    types::whole prefix_groups = 1;  ///< number of prefixes, drawn evenly; 1 to 1000000
    fraction prefix_fraction{1.0};                 ///< fraction of the prompts with a prefix
    bool force_output = true;  ///< by ignore_eos; false: lengths are upper limits
};

/// Synthetic conversations. Each turn's prompt has all earlier turns and the server's answers.
/// Arrivals start conversations; users play one after the other.
struct conversations {
    length_distribution turns = fixed(4);             ///< messages of the user, 1 to 1000
    length_distribution user_tokens = fixed(64);      ///< of each of them
    length_distribution output_tokens = fixed(128);   ///< of each answer
    time_distribution think{};                        ///< between an answer and the next message
    length_distribution system_tokens = fixed(0);     ///< of a system prompt
    bool shared_system_prompt = true;                 ///< false: each conversation has its own
    bool force_output = true;  ///< by ignore_eos; false: lengths are upper limits
    /// The fraction of the turns before the last that start `helpers` side by side (1 to 64), of
    /// `helper_turns` each (1 to 1000): they have the system prompt and no history, and the next
    /// turn waits for all of them.
    fraction subagents{};
    length_distribution helpers{}, helper_turns{};
};

/// The format of a dataset's file. A conversation's first message of the user is the prompt; the
/// length of the answer behind it is the output length.
enum class dataset_format : unsigned char {
    sharegpt,       ///< JSON array (or JSONL) of {"conversations": [{"from": "human", "value"}...]}
    dolly,          ///< databricks-dolly-15k, JSONL of {"instruction", "context", "response"}
    openai_jsonl,   ///< JSONL of {"messages": [...]} or {"prompt"}, as in batch files or without;
                    ///< tools, response_format, temperature, an image and so on are sent, too
    coco_captions,  ///< COCO captions JSON, or JSONL of {"image", "question", "answer"}
    text_lines      ///< one prompt a line
};
using enum dataset_format;

/// Prompts from a local file, sampled by the seed without replacement, sent in the sample's order
/// and again from its start if it is too small. Only the sample is held in memory. Tokens are
/// estimated (one for four ASCII bytes, one for any other character); records have the server's.
struct dataset {
    types::text path{};
    dataset_format format = sharegpt;
    types::maybe<int> max_items{};       ///< in the sample; default: as many as there are requests
    types::whole min_prompt_tokens = 0;  ///< shorter first prompts are left out
    types::whole max_prompt_tokens = 0;  ///< longer ones are left out; 0: no limit
    types::whole min_output_tokens = 0;  ///< as above, of first answers in the file
    types::whole max_output_tokens = 0;
    types::whole max_turns = 1;   ///< over 1: conversations are played, with the server's answers
    time_distribution think{};    ///< between an answer and the next turn
    bool force_output = true;     ///< answers get the file's lengths (ignore_eos)
    bool salted = true;           ///< a first line of five words, new in every repeat
    types::text images{};         ///< directory of the images; default: that of the file
};

/// Prompts that are sent as they are; prompts() makes it.
struct prompt_list {
    types::list<types::text> items{};
};
/// The given prompts, in turn.
inline prompt_list prompts(const types::list<types::text>& items) { return {items}; }
inline prompt_list prompts(std::initializer_list<types::text> items) {
    return {types::list<types::text>(items)};
}

/// Position of a request in a repeat, from 0; warm-up requests are first.
using request_index = long long;
namespace detail {
class generator;
}  // namespace detail
/// Random numbers of one request, from the seed.
class draw {
public:
    explicit draw(detail::generator& random) : random_(random) {}
    double uniform();  ///< between 0 and 1
    /// A number from 0 to n - 1; 0 if n is 0.
    long long below(long long n);
    /// As in synthetic{}: `random.length(lognormal(512, 0.6))`, at least 1.
    types::whole length(const length_distribution& d);

private:
    detail::generator& random_;
};
/// A prompt of your own function.
struct prompt {
    types::text text{};              ///< not empty
    types::whole output_tokens = 0;  ///< 0: options.max_tokens, or as many as the server sends
};
/// Prompts of your own function: any file, any format. Every repeat and both variants send the
/// same, so the prompt may depend only on the index and the draws.
struct generated_prompts {
    prompt (*of)(request_index, draw&) = nullptr;
    bool force_output = true;  ///< answers get the given length (ignore_eos)
    bool salted = true;        ///< a first line of five words, new in every repeat
};
/// `generated([](request_index i, draw& random) { return prompt{text_of(i)}; })`
inline generated_prompts generated(prompt (*of)(request_index, draw&)) { return {.of = of}; }

struct mix_of_parts;

/// Workloads of extensions. Compiler messages show the namespace, which names the file to include
/// after llmbench.hpp.
inline namespace in_llmbench_answers_hpp { struct questions; }
inline namespace in_llmbench_sessions_hpp { struct sessions; }

/// The format of a file of questions.
enum class question_format : unsigned char {
    gsm8k,    ///< GSM8K, JSONL of {"question", "answer": "... #### 42"}
    qa_jsonl  ///< JSONL of {"question", "answer"}, perhaps with "choices"
};
using enum question_format;

/// How an answer is compared with its key; only text after the reasoning is graded.
enum class answer_grade : unsigned char {
    exact,        ///< the same text, except for space around it
    last_number,  ///< the number in \boxed{}, behind ####, "answer is" or "answer:", else the last
    choice        ///< a letter: alone on the first line, announced as those, else the last
};
using enum answer_grade;

namespace detail {
struct extension;
/// A workload, target or baseline of an extension: its data, and whose it is.
struct extension_value {
    box what{};
    const extension* by = nullptr;
};
}  // namespace detail

/// A workload of any kind.
class any_workload {
public:
    any_workload() = default;  ///< synthetic{}
    any_workload(const synthetic& s) : what_(detail::box::make(s)) {}
    any_workload(const conversations& c) : what_(detail::box::make(c)) {}
    any_workload(const dataset& d) : what_(detail::box::make(d)) {}
    any_workload(const detail::extension_value& e) : what_(detail::box::make(e)) {}
    any_workload(const prompt_list& p) : what_(detail::box::make(p)) {}
    any_workload(const generated_prompts& g) : what_(detail::box::make(g)) {}
    any_workload(const mix_of_parts& m);
    const detail::box& what() const { return what_; }

private:
    detail::box what_{};
};

/// Fields of every request body.
struct request_options {
    types::maybe<int> max_tokens{};  ///< for workloads without output lengths
    types::maybe<double> temperature{};  ///< 0 to 10; default: the server's
    types::text system_prompt{};         ///< before every prompt; "": none
    bool ignore_eos = false;  ///< workloads that force lengths send it anyway
    bool stream = true;       ///< false: an answer comes in one piece and has no ttft
    /// Each event of a stream is one token, for a server without usage; else metrics that need the
    /// number of tokens are invalid. Reported usage has precedence.
    bool events_are_tokens = false;
    /// OpenAI's APIs ask for usage by `stream_options`; false leaves that out.
    bool include_usage = true;
    /// With OpenAI's APIs: usage in each event (`stream_options.continuous_usage_stats` of vLLM and
    /// SGLang). It tells when tokens without text came, and how many of them an event brings.
    bool continuous_usage = false;
    /// With openai_responses: the server keeps the history, and a later turn of a conversation
    /// sends its own input and `previous_response_id`. Default: it sends the whole history.
    bool server_history = false;
    /// The field of the most tokens, such as "max_completion_tokens"; "": the API's own.
    types::text max_tokens_field{};
    /// Documents behind the query of `rerank`, `score` and `sglang_score` (0: 8), or inputs of
    /// `openai_embeddings` (0: 1).
    types::whole documents = 0;
    types::text extra_body{};  ///< a JSON object whose fields are added to every request
    /// The client closes the connection this long after the request is due; 0: never. Such a
    /// request is only load: no failure, and in no latency or goodput.
    time_span cancel_after{};
};

/// One part of a mix, whose name is the label of its requests: `p90(ttft).of("sql")`.
struct part {
    types::text name{};
    types::whole weight = 1;  ///< 1 to 1000
    any_workload workload{};  ///< default: synthetic{}
    types::text model{};      ///< another one of the server's; default: the target's
    types::maybe<request_options> options{};  ///< instead of all of the scenario's
};
/// A workload of several parts; mix() makes it.
struct mix_of_parts {
    types::list<part> parts{};  ///< 1 to 64
};
/// Several workloads at once. Of each sequence of starts (requests, or conversations) as long as
/// the sum of the weights, each part has exactly its weight, in an order from the seed:
/// `mix({{.name = "base", .weight = 70}, {.name = "sql", .weight = 30, .model = "sql-lora"}})`.
inline mix_of_parts mix(const types::list<part>& parts) { return {parts}; }
inline mix_of_parts mix(std::initializer_list<part> parts) { return {types::list<part>(parts)}; }
inline any_workload::any_workload(const mix_of_parts& m) : what_(detail::box::make(m)) {}

}  // inline namespace v1
}  // namespace llmbench
