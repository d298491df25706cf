// bodies of requests
#pragma once

#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <cmath>  // isnan
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// One message of a conversation.
struct chat_message {
    std::string role{};
    std::string content{};
};

/// An object of options.extra_body that an API may keep its own fields in.
struct extra_object {
    std::string name{};
    std::string fields{};  // ",\"name\":value" pairs
};

/// What a request asks for.
struct request_spec {
    std::string model{};  // another one than the target's
    std::string prompt{};
    std::string token_ids{};  // instead of the prompt, as a JSON array
    std::string image{};      // that the prompt is about, as a data: URL
    std::string system_prompt{};
    std::vector<chat_message> history{};  // messages before the prompt, after the system prompt
    int max_tokens = 0;  // 0: not said
    int documents = 1;   // of a prompt that is a query and those, or inputs of one that is these
    bool force_length = false;
    bool stream = true;
    double leaves_after_s = 0;  // the client closes the connection then; 0: it stays
    double temperature = not_a_number;
    std::string extra_fields{};  // ",\"name\":value" pairs, checked when planned
    std::vector<extra_object> extra_objects{};
};

/// What can come of a request, as far as what was sent bounds it.
struct asked_answer {
    int results = 0;             // vectors or scores; 0: it generates, or nobody knows
    int documents = 0;           // that are read with a query
    int characters = 0;          // of what it is about: usage that tells these counts no tokens
    int most_prompt_tokens = 0;  // that usage can tell; 0: nobody knows
};

/// The one prompt of an API that knows no roles.
inline std::string joined_prompt(const request_spec& r, bool with_system = true) {
    std::string all = !with_system || r.system_prompt.empty() ? "" : r.system_prompt + "\n";
    for (const chat_message& m : r.history) all += m.content + "\n";
    return all + r.prompt;
}

/// The body of a request. A field that was not asked for is not written.
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
        return asked_.max_tokens > 0 ? raw(name, std::to_string(asked_.max_tokens)) : *this;
    }
    body_writer& temperature() {
        const double t = asked_.temperature;
        return std::isnan(t) ? *this : raw("temperature", json_number(t));
    }
    /// No min_tokens beside it: it would add nothing but work for the sampler (in SGLang a penalty
    /// over the whole vocabulary in every step), and the tpot measured would be another one.
    body_writer& ignore_eos() { return asked_.force_length ? raw("ignore_eos", "true") : *this; }
    /// The system prompt, where there is one, what was said before, and the user's turn.
    body_writer& messages(std::string content(const request_spec&), bool with_system = true,
                          const char* name = "messages") {
        std::string turns = "[";
        if (with_system && !asked_.system_prompt.empty())
            turns += "{\"role\":\"system\",\"content\":" + json_quoted(asked_.system_prompt) + "},";
        for (const chat_message& m : asked_.history)
            turns += "{\"role\":" + json_quoted(m.role) + ",\"content\":" +
                     json_quoted(m.content) + "},";
        return raw(name, turns + "{\"role\":\"user\",\"content\":" + content(asked_) + "}]");
    }
    body_writer& system(const char* name) {
        return asked_.system_prompt.empty() ? *this : string(name, asked_.system_prompt);
    }
    /// What `write` adds stands in an object of this name, with the user's own fields for it.
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
}  // inline namespace v0
}  // namespace llmbench
