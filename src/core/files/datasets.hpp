// datasets
#pragma once

#include "api/slo.hpp"
#include "api/workload.hpp"
#include "core/answers/grading.hpp"
#include "core/base/checked_json.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/dialects/request_body.hpp"
#include "core/files/byte_stream.hpp"

#include <initializer_list>  // .slos = {...}
#include <algorithm>  // min
#include <cstdint>  // uint64_t
#include <map>
#include <memory>  // shared_ptr
#include <string>
#include <string_view>
#include <utility>  // move, swap, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// What the user says in one turn, and how long the answer is.
struct dialogue_turn {
    std::string prompt{};
    std::string image{};    // a file, below the directory of images; once it was read, a data: URL
    int output_tokens = 0;  // 0: the file does not say
};
/// One conversation of a dataset; most have one turn.
struct dialogue {
    std::vector<chat_message> before{};  // what comes before the first turn
    std::vector<dialogue_turn> turns{};
    std::shared_ptr<const wanted_answer> wanted{};  // of a question
};

/// Without the model's vocabulary nobody knows; close for English, high for most other writing.
inline int estimated_tokens(std::string_view s) {
    std::size_t ascii = 0, others = 0;
    for (const char c : s) {
        const auto byte = static_cast<unsigned char>(c);
        ascii += byte < 0x80;
        others += byte >= 0xC0;  // the first byte of a longer character
    }
    return static_cast<int>(std::min<std::size_t>((ascii + 3) / 4 + others, 100000000));
}
inline int estimated_prompt_tokens(const dialogue& d) {
    int n = estimated_tokens(d.turns.front().prompt);
    for (const chat_message& m : d.before) n += estimated_tokens(m.content);
    return n;
}

/// Keeps `most` of all that it is shown, each set of them equally likely (algorithm R of Waterman,
/// in Knuth 1981), and in the end in an order of the seed's own.
class dialogue_sampler {
public:
    dialogue_sampler(std::size_t most, std::uint64_t seed) : most_(most), random_(seed, 7) {}
    void offer(dialogue&& d) {
        ++offered_;
        if (kept_.size() < most_) return kept_.push_back(std::move(d));
        const std::uint64_t place = random_.below(offered_);
        if (place < most_) kept_[place] = std::move(d);
    }
    std::vector<dialogue> take() {
        for (std::size_t i = kept_.size(); i > 1; --i)
            std::swap(kept_[i - 1], kept_[random_.below(i)]);
        return std::move(kept_);
    }

private:
    std::vector<dialogue> kept_{};
    std::size_t most_;
    std::uint64_t offered_ = 0;
    generator random_;
};

/// One conversation read out of a file: its fields, and the sentence where one is wrong.
class dialogue_reader {
public:
    dialogue_reader(const byte_stream& in, long long line, long long max_turns)
        : in_(in), line_(line), max_turns_(max_turns) {}

    /// A string that must be there.
    std::string text_of(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || !m->is<std::string>())
            refuse(std::string(name) + (m ? " is not a string" : " is missing") +
                   ": it must be a string");
        return m->get<std::string>();
    }
    /// A string or nothing.
    std::string text_if_any(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        return m && !m->is<picojson::null>() ? text_of(v, name) : "";
    }
    int count_if_any(const picojson::value& v, const char* name) const {
        const picojson::value* m = member(v, name);
        if (!m || m->is<picojson::null>()) return 0;
        return whole_from<int>("", *m, 1, 1e7, "a number of tokens", [&] { return here(name); });
    }
    /// The number that others of the file refer to.
    long long id_of(const picojson::value& v, const char* name) const {
        static const picojson::value none;
        const picojson::value* m = member(v, name);
        return whole_from<long long>("", m ? *m : none, 0, most_count, "a whole number",
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
    chat_message message_of(const picojson::value& v) const {
        if (!v.is<picojson::object>()) refuse("a message is not an object");
        const bool by_role = member(v, "role") != nullptr;
        const std::string who = text_of(v, by_role ? "role" : "from");
        chat_message m;
        m.role = who == "human" ? "user" : who == "gpt" || who == "chatgpt" || who == "bing"
                                               || who == "bard" || who == "model"
                                               ? "assistant" : who;
        m.content = text_of(v, by_role ? "content" : "value");
        return m;
    }

    /// The messages up to the last one that the user says, and the answer behind it.
    dialogue as_it_stands(const std::vector<chat_message>& messages) const {
        dialogue d;
        std::size_t last = messages.size();
        while (last > 0 && messages[last - 1].role != "user") --last;
        if (last == 0) return d;
        d.before.assign(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(last) - 1);
        d.turns.push_back({.prompt = messages[last - 1].content});
        if (last < messages.size() && messages[last].role == "assistant")
            d.turns.back().output_tokens = estimated_tokens(messages[last].content);
        return d;
    }
    /// The user's messages from the first one on, to be answered one by one.
    dialogue to_be_played(const std::vector<chat_message>& messages) const {
        dialogue d;
        for (const chat_message& m : messages) {
            if (m.role == "user") {
                if (static_cast<long long>(d.turns.size()) == max_turns_) break;
                d.turns.push_back({.prompt = m.content});
            } else if (m.role == "assistant") {
                if (!d.turns.empty() && d.turns.back().output_tokens == 0)
                    d.turns.back().output_tokens = estimated_tokens(m.content);
            } else if (d.turns.empty()) {
                d.before.push_back(m);
            }
        }
        return d;
    }

    dialogue sharegpt_of(const picojson::value& v) const {
        const bool by_messages = !member(v, "conversations") && member(v, "messages");
        std::vector<chat_message> messages;
        for (const picojson::value& m : array_of(v, by_messages ? "messages" : "conversations"))
            messages.push_back(message_of(m));
        return to_be_played(messages);
    }
    dialogue dolly_of(const picojson::value& v) const {
        dialogue_turn t;
        t.prompt = text_of(v, "instruction");
        if (const std::string context = text_if_any(v, "context"); !context.empty())
            t.prompt += "\n\n" + context;
        t.output_tokens = estimated_tokens(text_of(v, "response"));
        return {{}, {t}};
    }
    dialogue openai_of(const picojson::value& line) const {
        const picojson::value* body = member(line, "body");
        const picojson::value& v = body ? *body : line;
        dialogue d;
        if (member(v, "messages")) {
            std::vector<chat_message> messages;
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
        for (const char* name : {"max_tokens", "max_completion_tokens"})
            if (const int n = count_if_any(v, name); n > 0)
                for (dialogue_turn& t : d.turns) t.output_tokens = n;
        return d;
    }
    dialogue image_question_of(const picojson::value& v) const {
        dialogue_turn t;
        t.image = text_of(v, "image");
        t.prompt = text_of(v, "question");
        t.output_tokens = estimated_tokens(text_if_any(v, "answer"));
        return {{}, {t}};
    }
    [[noreturn]] void refuse(const std::string& why) const { in_.refuse(line_, why); }

private:
    std::string here(const char* name) const {
        return printed("%s:%lld: %s", in_.name().c_str(), line_, name);
    }
    const byte_stream& in_;
    long long line_;
    long long max_turns_;
};

/// `offer(dialogue, line)` for each row of a table, whose first row names the columns.
template <class Offer> void each_csv_dialogue(byte_stream& in, Offer&& offer) {
    std::size_t prompt = 0, answer = 0, length = 0;
    const auto column = [](const std::vector<std::string>& header,
                           std::initializer_list<const char*> names) {
        for (const char* name : names)
            for (std::size_t i = 0; i < header.size(); ++i)
                if (same_ignoring_case(trimmed(header[i]), name)) return i;
        return header.size();
    };
    const auto on_header = [&](const std::vector<std::string>& names, long long line) {
        prompt = column(names, {"prompt", "question", "instruction", "text", "input"});
        answer = column(names, {"answer", "response", "completion", "output"});
        length = column(names, {"output_tokens", "max_tokens"});
        if (prompt == names.size())
            in.refuse(line, "no column is named prompt, question, instruction, text or "
                            "input: the first row must name the columns");
    };
    each_csv_row(in, on_header, [&](const std::vector<std::string>& fields, long long line) {
        dialogue_turn t{.prompt = fields[prompt]};
        if (answer < fields.size()) t.output_tokens = estimated_tokens(fields[answer]);
        if (length < fields.size()) {
            const std::string_view given = trimmed(fields[length]);
            t.output_tokens = parsed_number<int>(given).value_or(0);
            if (t.output_tokens < 1 || t.output_tokens > 10000000)
                in.refuse(line, "output_tokens is \"" + printable(given, 40) +
                                    "\": it must be a whole number from 1 to 10000000");
        }
        offer(dialogue{{}, {t}}, line);
    });
}

/// How long answers are, by the question's id.
using answer_lengths = std::map<int, int>;
/// Of VQA's file of annotations: the answer that most people gave.
inline answer_lengths read_vqa_answers(byte_stream& in) {
    answer_lengths tokens;
    each_json_element(in, [&](const std::string& key, const picojson::value& v, long long line) {
        if (key != "annotations") return;
        const int id = count_member(v, "question_id");
        if (id < 0 || !has_text(v, "multiple_choice_answer"))
            in.refuse(line, "question_id and multiple_choice_answer are expected here");
        tokens[id] = estimated_tokens(string_member(v, "multiple_choice_answer"));
    });
    if (tokens.empty()) refuse({in.name(), ": it holds no annotations"});
    return tokens;
}
/// `offer(dialogue, line)` for each of VQA's questions. Its images are COCO's, which are named by
/// their split and id; all files of the test split are about one set of images.
template <class Offer>
void each_vqa_question(byte_stream& in, const answer_lengths& answers, Offer&& offer) {
    std::string split;
    const auto on_member = [&](const std::string& key, const picojson::value& v) {
        if (key != "data_subtype" || !v.is<std::string>()) return;
        split = v.get<std::string>();
        if (split.starts_with("test")) split = "test2015";
    };
    const auto on_question = [&](const std::string& key, const picojson::value& v,
                                 long long line) {
        if (key != "questions") return;
        const int image = count_member(v, "image_id"), id = count_member(v, "question_id");
        if (image < 0 || id < 0 || !has_text(v, "question"))
            in.refuse(line, "image_id, question_id and question are expected here");
        if (split.empty())
            in.refuse(line, "data_subtype must stand before the questions: it names the images");
        dialogue_turn t{.prompt = string_member(v, "question"),
                        .image = printed("COCO_%s_%012d.jpg", split.c_str(), image)};
        const auto answer = answers.find(id);
        if (!answers.empty() && answer == answers.end())
            in.refuse(line, printed("question_id %d has no annotation in workload.answers", id));
        if (answer != answers.end()) t.output_tokens = answer->second;
        offer(dialogue{{}, {t}}, line);
    };
    each_json_element(in, on_question, on_member);
}

/// `offer(dialogue, line)` for each conversation of the file.
template <class Offer>
void each_dialogue(byte_stream& in, const dataset& d, const answer_lengths& answers,
                   Offer&& offer) {
    const long long max_turns = d.max_turns;
    const bool by_line = in.name().ends_with("l") || d.format == dolly || d.format == openai_jsonl;
    const auto each_value = [&](auto&& on_value) {
        const auto checked = [&](const std::string& key, const picojson::value& v, long long line) {
            if (!v.is<picojson::object>()) in.refuse(line, "an object is expected here");
            on_value(key, v, dialogue_reader(in, line, max_turns), line);
        };
        if (by_line) each_json_line(in, checked);
        else each_json_element(in, checked);
    };
    std::map<long long, std::string> images;  // of COCO, where the captions come after all of them
    switch (d.format) {
    case sharegpt:
        return each_value([&](const auto&, const auto& v, const auto& reader, long long line) {
            offer(reader.sharegpt_of(v), line);
        });
    case dolly:
        return each_value([&](const auto&, const auto& v, const auto& reader, long long line) {
            offer(reader.dolly_of(v), line);
        });
    case openai_jsonl:
        return each_value([&](const auto&, const auto& v, const auto& reader, long long line) {
            offer(reader.openai_of(v), line);
        });
    case coco_captions:
        return each_value([&](const auto& key, const auto& v, const auto& reader, long long line) {
            if (key.empty()) return offer(reader.image_question_of(v), line);
            if (key == "images") {
                images[reader.id_of(v, "id")] = reader.text_of(v, "file_name");
            } else if (key == "annotations") {
                const auto found = images.find(reader.id_of(v, "image_id"));
                if (found == images.end())
                    reader.refuse("image_id is not the id of one of the images, which must stand "
                                  "before the annotations");
                dialogue_turn t{.prompt = "Describe this image in one sentence.",
                                .image = found->second};
                t.output_tokens = estimated_tokens(reader.text_of(v, "caption"));
                offer(dialogue{{}, {t}}, line);
            }
        });
    case vqa: return each_vqa_question(in, answers, offer);
    case text_lines: {
        std::string text;
        for (long long line = in.line(); read_line(in, text); line = in.line())
            if (!trimmed(text).empty()) offer(dialogue{{}, {{.prompt = text}}}, line);
        return;
    }
    case csv: return each_csv_dialogue(in, offer);
    }
}

/// The sample that a dataset asks for, `most` conversations where it does not say how many.
inline std::vector<dialogue> sampled_dialogues(byte_stream& in, const dataset& d, std::size_t most,
                                               std::uint64_t seed,
                                               const answer_lengths& answers = {}) {
    const std::size_t wanted = d.max_items ? static_cast<std::size_t>(*d.max_items) : most;
    dialogue_sampler sampler(wanted, seed);
    long long seen = 0, fitting = 0;
    const auto outside = [](long long n, long long least, long long limit) {
        return n < least || (limit > 0 && n > limit);
    };
    each_dialogue(in, d, answers, [&](dialogue&& x, long long) {
        ++seen;
        if (x.turns.empty() || trimmed(x.turns.front().prompt).empty()) return;
        const int answer = x.turns.front().output_tokens;
        if (outside(estimated_prompt_tokens(x), d.min_prompt_tokens, d.max_prompt_tokens)) return;
        if (answer > 0 && outside(answer, d.min_output_tokens, d.max_output_tokens)) return;
        ++fitting;
        sampler.offer(std::move(x));
    });
    if (seen == 0) refuse({in.name(), ": it holds no prompts"});
    if (fitting == 0)
        refuse({in.name(), printed(": none of its %lld prompts has a length that the dataset asks "
                                   "for (min_prompt_tokens and so on)", seen)});
    return sampler.take();
}

/// The media type of an image file, "" where its name has none of the usual ends.
inline const char* image_type(std::string_view file) {
    const std::string_view end = file.substr(std::min(file.size(), file.find_last_of('.')));
    for (const auto& [known, type] :
         {std::pair{".jpg", "image/jpeg"}, std::pair{".jpeg", "image/jpeg"},
          std::pair{".png", "image/png"}, std::pair{".webp", "image/webp"},
          std::pair{".gif", "image/gif"}})
        if (same_ignoring_case(end, known)) return type;
    return "";
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
