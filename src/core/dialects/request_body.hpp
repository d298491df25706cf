// bodies of requests
#pragma once

#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <cmath>  // isnan
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// One message of a conversation.
struct chat_message {
    std::string role{};
    std::string content{};
    std::string fields{};  // ",\"name\":value" pairs such as tool_calls
};

/// An object of options.extra_body for an API's own fields.
struct extra_object {
    std::string name{};
    std::string fields{};  // ",\"name\":value" pairs
};

struct request_spec {
    std::string model{};  // instead of the target's
    std::string prompt{};
    std::string token_ids{};  // instead of the prompt, as a JSON array
    std::string image{};      // as a data: URL
    std::string system_prompt{};
    vector<chat_message> history{};  // between system prompt and prompt
    int max_tokens = 0;  // 0: no limit
    int documents = 1;   // into which the prompt is split, besides a query
    bool force_length = false;
    bool events_are_tokens = false;  // without usage
    bool include_usage = true;
    bool continuous_usage = false;    // in each event
    bool server_history = false;      // the server keeps what was said before
    std::string previous_response{};  // then the id of the answer to go on from, "" at the start
    std::string max_tokens_field{};  // "": the API's
    bool stream = true;
    double cancel_after_s = 0;  // when the client closes the connection; 0: never
    double temperature = not_a_number;
    std::string extra_fields{};  // ",\"name\":value" pairs, checked when planned
    vector<extra_object> extra_objects{};
};

/// Why a field may not be set in a request's body, "" if it may: it would be duplicate, or change
/// the measurement. `who` sets it.
inline std::string fault_of_field(const std::string& who, const std::string& name,
                                  const picojson::value& value) {
    const std::string given = who + " sets \"" + name + "\"";
    const std::string_view n = name;
    if (n == "stream_options")
        return given + ": that field belongs to llmbench: use options.include_usage and "
                       "options.continuous_usage";
    for (const std::string_view ours :
         {"model", "messages", "prompt", "stream", "inputs", "text", "text_input",
          "system", "input", "query", "documents", "text_1", "text_2", "items", "instructions",
          "store", "previous_response_id"})
        if (n == ours) return given + ": that field belongs to llmbench";
    for (const std::string_view option : {"max_tokens", "temperature", "ignore_eos"})
        if (n == option) return given + ": use options." + name + ", a field must not stand twice";
    for (const std::string_view option : {"max_new_tokens", "max_output_tokens", "num_predict",
                                          "n_predict", "max_completion_tokens"})
        if (n == option) return given + ": use options.max_tokens, a field must not stand twice";
    for (const std::string_view choices : {"n", "best_of", "num_return_sequences"})
        if (n == choices && value.is<double>() && !(value.get<double>() <= 1))
            return given + " to " + value.serialize() +
                   ": several choices share one stream and one usage, which do not separate their "
                   "tokens; ask for one";
    return {};
}

/// What an answer to a request may hold, and how it is read.
struct asked_answer {
    int results = 0;             // vectors or scores; 0: generated text, or unknown
    int documents = 0;           // read with a query
    int characters = 0;          // of the input: usage with this number counts characters
    int most_prompt_tokens = 0;  // in usage; 0: unknown; negative: beside a history of the server
    int most_output_tokens = 0;  // asked for; 0: no limit
    bool expects_usage = false;  // expected, since tokens are unknown without it
    bool is_streamed = true;     // else one document
    bool is_kept = false;        // its text, for grading, comparison or a conversation's next turn
};

/// The prompt for an API without roles, without the system prompt or with it.
inline std::string joined_turns(const request_spec& r) {
    std::string all;
    for (const chat_message& m : r.history) all += m.content + "\n";
    return all + r.prompt;
}
inline std::string joined_prompt(const request_spec& r) {
    return (r.system_prompt.empty() ? "" : r.system_prompt + "\n") + joined_turns(r);
}

/// The body of a request, with only the fields asked for.
class body_writer {
public:
    explicit body_writer(const request_spec& r) : asked_(r) {}

    body_writer& raw(const char* name, std::string_view json) {
        if (out_.back() != '{') out_ += ',';
        out_ += '"';
        out_ += name;
        out_ += "\":";
        out_ += json;
        return *this;
    }
    body_writer& string(const char* name, std::string_view s) { return raw(name, json_quoted(s)); }
    body_writer& flag(const char* name, bool b) { return raw(name, b ? "true" : "false"); }
    body_writer& max_tokens(const char* name) {
        if (!asked_.max_tokens_field.empty()) name = asked_.max_tokens_field.c_str();
        return asked_.max_tokens > 0 ? raw(name, std::to_string(asked_.max_tokens)) : *this;
    }
    body_writer& temperature() {
        const double t = asked_.temperature;
        return std::isnan(t) ? *this : raw("temperature", json_number(t));
    }
    /// Without min_tokens: it adds only sampler work (in SGLang a penalty over the whole vocabulary
    /// in each step), and so changes tpot.
    body_writer& ignore_eos() { return asked_.force_length ? raw("ignore_eos", "true") : *this; }
    /// The system prompt, if any, the history and the user's message.
    body_writer& messages(std::string content(const request_spec&)) {
        const std::string& said = asked_.system_prompt;
        return turns(content, "messages", said.empty() ? "" : "{\"role\":\"system\",\"content\":" +
                                                                  json_quoted(said) + "},");
    }
    /// Those behind others.
    body_writer& turns(std::string content(const request_spec&), const char* name,
                       const std::string& others = {}) {
        std::string turns = "[" + others;
        for (const chat_message& m : asked_.history)
            turns += "{\"role\":" + json_quoted(m.role) + ",\"content\":" +
                     json_quoted(m.content) + m.fields + "},";
        return raw(name, turns + "{\"role\":\"user\",\"content\":" + content(asked_) + "}]");
    }
    body_writer& system(const char* name) {
        return asked_.system_prompt.empty() ? *this : string(name, asked_.system_prompt);
    }
    /// Adds an object of this name with the fields of `write` and the user's own.
    template <class Write>
    body_writer& object(const char* name, Write&& write) {
        raw(name, "{");
        write(*this);
        object_ = name;
        for (const extra_object& o : asked_.extra_objects)
            if (o.name == name) add(o.fields);
        out_ += '}';
        return *this;
    }
    std::string finished() {
        for (const extra_object& o : asked_.extra_objects) {
            if (o.name == object_) continue;
            raw(o.name.c_str(), "{");
            add(o.fields);
            out_ += '}';
        }
        add(asked_.extra_fields);
        return std::move(out_) + "}";
    }

private:
    void add(const std::string& fields) {
        out_ += fields.substr(!fields.empty() && out_.back() == '{');
    }
    const request_spec& asked_;
    std::string out_ = "{";
    std::string object_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
