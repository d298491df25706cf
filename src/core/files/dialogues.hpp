// conversations in rows of files
#pragma once

#include "api/slo.hpp"
#include "api/workload.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/traffic/recorded.hpp"
#include "core/files/byte_stream.hpp"

#include <algorithm>  // min
#include <cstddef>  // ptrdiff_t, size_t
#include <initializer_list>  // names
#include <map>
#include <memory>  // shared_ptr
#include <set>
#include <string>
#include <string_view>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A message of a file, and the image that it is about.
struct recorded_message : chat_message {
    std::string image{};
};

/// Calls `each(name, value)` for the members of an object that are not null and none of these.
template <class Each>
void each_other_member(const picojson::value& of, std::initializer_list<std::string_view> known,
                       Each&& each) {
    if (!of.is<picojson::object>()) return;
    for (const auto& [name, value] : of.get<picojson::object>())
        if (!value.template is<picojson::null>() && !is_one_of(name, known)) each(name, value);
}

/// The body fields that the options of all requests set.
using field_names = std::set<std::string>;
inline field_names given_fields(const request_options& o) {
    field_names names;
    if (o.temperature) names.insert("temperature");
    picojson::value extra;
    if (parse_json(str(o.extra_body), extra) && extra.is<picojson::object>())
        for (const auto& [name, v] : extra.get<picojson::object>()) names.insert(name);
    return names;
}
/// Fields of chat requests that are sent unread, because they are part of the load.
inline bool is_field_of_a_chat(std::string_view name) {
    return is_one_of(
        name, {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call",
               "response_format", "temperature", "top_p", "top_k", "min_p", "stop", "seed",
               "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias",
               "logprobs", "top_logprobs", "reasoning_effort", "chat_template_kwargs",
               "modalities"});
}

/// Reads one conversation of a file, or refuses it. `fields` counts the fields that are sent and
/// those that are left out; `given` are those that all requests have.
class dialogue_reader {
public:
    dialogue_reader(const byte_stream& in, long long line, long long max_turns, row_fields& fields,
                    const field_names& given)
        : in_(in), line_(line), max_turns_(max_turns), fields_(fields), given_(given) {}

    /// Returns a string that must be there.
    std::string text_of(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || !m->is<std::string>())
            refuse(std::string(name) + (m ? " is not a string" : " is missing") +
                   ": it must be a string");
        return m->get<std::string>();
    }
    /// Returns "" if there is none.
    std::string text_if_any(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        return m && !m->is<picojson::null>() ? text_of(v, name) : "";
    }
    int count_if_any(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || m->is<picojson::null>()) return 0;
        return whole_from<int>("", *m, 1, 1e7, "a number of tokens", [&] { return here(name); });
    }
    /// Returns the number by which others of the file refer to it.
    long long id_of(const picojson::value& v, const char* name) const {
        static const picojson::value none;
        const picojson::value* m = member(v, name);
        return whole_from<long long>("", m ? *m : none, 0, max_count, "a whole number",
                                     [&] { return here(name); });
    }
    const picojson::array& array_of(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || !m->is<picojson::array>())
            refuse(std::string(name) + (m ? " is not an array" : " is missing") +
                   ": it must be an array of messages");
        return m->get<picojson::array>();
    }

    /// `{"from", "value"}` of ShareGPT, `{"role", "content"}` of everyone else.
    recorded_message message_of(const picojson::value& v) const {
        if (!v.is<picojson::object>()) refuse("a message is not an object");
        const bool by_role = member(v, "role") != nullptr;
        const std::string who = text_of(v, by_role ? "role" : "from");
        recorded_message m;
        m.role = who == "human" ? "user" : who == "gpt" || who == "chatgpt" || who == "bing"
                                               || who == "bard" || who == "model"
                                               ? "assistant" : who;
        const picojson::value* content = member(v, "content");
        if (by_role && content && content->is<picojson::array>())
            add_parts(m, content->get<picojson::array>());
        else if (!by_role || !content || !content->is<picojson::null>() || !member(v, "tool_calls"))
            m.content = text_of(v, by_role ? "content" : "value");
        for (const auto& [name, value] : v.get<picojson::object>()) {
            if (value.is<picojson::null>()) continue;
            if (by_role && (name == "tool_calls" || name == "tool_call_id" || name == "name"))
                m.fields += "," + json_quoted(name) + ":" + value.serialize();
            else if (name != "role" && name != "content" && name != "from" && name != "value")
                fields_.leave_out(name + " of messages", line_);
        }
        return m;
    }
    /// Adds OpenAI's parts: texts, one below the other, and an image.
    void add_parts(recorded_message& m, const picojson::array& parts) const {
        for (const picojson::value& p : parts) {
            const std::string type = text_of(p, "type");
            if (type == "text") {
                m.content += (m.content.empty() ? "" : "\n") + text_of(p, "text");
            } else if (type == "image_url") {
                static const picojson::value none;
                const picojson::value* of = member(p, "image_url");
                set_image(m.image, of && of->is<std::string>() ? of->get<std::string>()
                                                               : text_of(of ? *of : none, "url"));
            } else {
                refuse("content has a part of type \"" + printable(type, 40) +
                       "\": text and image_url are allowed");
            }
        }
    }
    void set_image(std::string& image, const std::string& is) const {
        if (!image.empty()) refuse("a message has two images: one is allowed");
        if (is.starts_with("http:") || is.starts_with("https:"))
            refuse("the image " + printable(is, 80) + " is elsewhere, and the server would load "
                   "it in its own time: a file below workload.images or a data: URL is allowed");
        image = is;
    }

    /// Returns the messages up to the user's last one, and the answer to that.
    dialogue as_it_stands(const vector<recorded_message>& messages) const {
        dialogue d;
        std::size_t last = messages.size();
        while (last > 0 && messages[last - 1].role != "user") --last;
        if (last == 0) return d;
        d.before.assign(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(last) - 1);
        for (std::size_t i = 0; i + 1 < last; ++i)
            if (!messages[i].image.empty())
                refuse("an image stands before the user's last message, which is sent with one "
                       "alone");
        const recorded_message& asked = messages[last - 1];
        d.turns.push_back({.prompt = asked.content, .image = asked.image});
        const bool is_answered = last < messages.size() && messages[last].role == "assistant";
        if (is_answered) d.turns.back().output_tokens = estimated_tokens(messages[last].content);
        if (last + is_answered < messages.size())
            fields_.leave_out("messages behind the user's last", line_);
        return d;
    }
    /// Returns the user's messages, to be answered one by one.
    dialogue to_be_played(const vector<recorded_message>& messages) const {
        dialogue d;
        for (const recorded_message& m : messages) {
            if (m.role == "user") {
                if (static_cast<long long>(d.turns.size()) == max_turns_) break;
                d.turns.push_back({.prompt = m.content, .image = m.image});
            } else if (m.role == "assistant") {
                if (!d.turns.empty() && d.turns.back().output_tokens == 0)
                    d.turns.back().output_tokens = estimated_tokens(m.content);
            } else if (d.turns.empty()) {
                d.before.push_back(m);
            } else {
                fields_.leave_out("messages of the role " + m.role, line_);
            }
        }
        return d;
    }
    /// Refuses an image if later turns follow, which would not have it.
    void check_images(const dialogue& d) const {
        if (d.turns.size() < 2) return;
        for (const dialogue_turn& t : d.turns)
            if (!t.image.empty())
                refuse("the conversation is about an image, which later turns would not have: "
                       "workload.max_turns = 1 is allowed");
    }

    /// LLaVA's rows have an image, and a placeholder in the text at its position.
    dialogue sharegpt_of(const picojson::value& v) const {
        const bool by_messages = !member(v, "conversations") && member(v, "messages");
        vector<recorded_message> messages;
        for (const picojson::value& m : array_of(v, by_messages ? "messages" : "conversations"))
            messages.push_back(message_of(m));
        dialogue d = to_be_played(messages);
        if (const std::string image = text_if_any(v, "image"); !image.empty() && !d.turns.empty()) {
            dialogue_turn& first = d.turns.front();
            set_image(first.image, image);
            for (const std::string_view mark : {"<image>\n", "\n<image>", "<image>"})
                if (const std::size_t at = first.prompt.find(mark); at != std::string::npos)
                    first.prompt.erase(at, mark.size());
        }
        check_images(d);
        leave_out_others(v, {"id", "image", "conversations", "messages"});
        return d;
    }
    dialogue dolly_of(const picojson::value& v) const {
        dialogue_turn t;
        t.prompt = text_of(v, "instruction");
        if (const std::string context = text_if_any(v, "context"); !context.empty())
            t.prompt += "\n\n" + context;
        t.output_tokens = estimated_tokens(text_of(v, "response"));
        leave_out_others(v, {"instruction", "context", "response", "category"});
        return {{}, {t}};
    }
    /// In a batch file a line is a request, and all fields of its body are read. Of other lines,
    /// the fields of chat requests and of vLLM's data sets are read.
    dialogue openai_of(const picojson::value& line) const {
        const picojson::value* body = member(line, "body");
        if (body && !body->is<picojson::object>()) refuse("body is not an object");
        const picojson::value& v = body ? *body : line;
        dialogue d;
        if (member(v, "messages")) {
            vector<recorded_message> messages;
            for (const picojson::value& m : array_of(v, "messages"))
                messages.push_back(message_of(m));
            d = max_turns_ > 1 ? to_be_played(messages) : as_it_stands(messages);
        } else if (member(v, "prompt")) {
            d.turns.push_back({.prompt = text_of(v, "prompt")});
            const char* answer = member(v, "completion") ? "completion" : "response";
            d.turns[0].output_tokens = estimated_tokens(text_if_any(v, answer));
        } else {
            refuse("neither messages nor prompt is there: each line needs one of them");
        }
        if (d.turns.empty()) return d;
        for (const char* name : {"output_tokens", "max_tokens", "max_completion_tokens"})
            if (const int n = count_if_any(v, name); n > 0)
                for (dialogue_turn& t : d.turns) t.output_tokens = n;
        if (const std::string image = text_if_any(v, "image"); !image.empty())
            set_image(d.turns.back().image, image);
        if (member(v, "image_files"))
            for (const picojson::value& image : array_of(v, "image_files")) {
                if (!image.is<std::string>()) refuse("image_files is not a list of files");
                set_image(d.turns.back().image, image.get<std::string>());
            }
        check_images(d);
        add_fields(d, line, body);
        if (body) leave_out_others(line, {"custom_id", "method", "url", "body"});
        return d;
    }
    dialogue image_question_of(const picojson::value& v) const {
        dialogue_turn t;
        t.image = text_of(v, "image");
        t.prompt = text_of(v, "question");
        t.output_tokens = estimated_tokens(text_if_any(v, "answer"));
        leave_out_others(v, {"id", "image", "question", "answer"});
        return {{}, {t}};
    }
    [[noreturn]] void refuse(const std::string& why) const { in_.refuse(line_, why); }

private:
    /// Counts the fields of a row that are not read.
    void leave_out_others(const picojson::value& v,
                          std::initializer_list<std::string_view> known) const {
        each_other_member(v, known, [&](const std::string& name, const auto&) {
            fields_.leave_out(name, line_);
        });
    }
    void add_fields(dialogue& d, const picojson::value& line, const picojson::value* body) const {
        const std::string_view row = in_.value_text(),
                               text = body ? member_text(row, "body") : row;
        for (const auto& [name, value] : (body ? *body : line).get<picojson::object>()) {
            if (value.is<picojson::null>() ||
                is_one_of(name, {"messages", "prompt", "completion", "response", "output_tokens",
                                 "max_tokens", "max_completion_tokens", "image", "image_files"}) ||
                (!body && is_one_of(name, {"id", "custom_id"})))
                continue;
            const bool may_be_sent =
                given_.count(name) == 0 && (body || is_field_of_a_chat(name));
            if (may_be_sent && name == "temperature") {
                d.temperature = number_from("", value, 0, 10, "a number",
                                            [&] { return here("temperature"); });
            } else if (may_be_sent && fault_of_field("", name, value).empty()) {
                d.fields += "," + json_quoted(name) + ":" +
                            exact_json(value, member_text(text, name));
            } else {
                fields_.leave_out(name, line_);
                continue;
            }
            fields_.send(name, line_);
        }
    }
    std::string here(const char* name) const {
        return printed("%s:%lld: %s", in_.name().c_str(), line_, name);
    }
    const byte_stream& in_;
    long long line_;
    long long max_turns_;
    row_fields& fields_;
    const field_names& given_;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
