// questions and their keys
#pragma once

#include "api/workload.hpp"
#include "core/answers/grading.hpp"
#include "core/base/checked_json.hpp"
#include "core/base/text.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/datasets.hpp"

#include <cmath>  // isnan
#include <cstdint>  // uint64_t
#include <map>
#include <memory>  // make_shared
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <utility>  // move
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

inline const char* format_name(question_format f) { return name_at({"gsm8k", "qa_jsonl"}, f); }

/// The schema that a request's response_format holds (OpenAI's shape), or null.
inline picojson::value schema_of_requests(const request_options& o) {
    picojson::value v;
    if (!parse_json(str(o.extra_body), v)) return {};
    const picojson::value* asked = member(v, "response_format");
    const picojson::value* named = asked ? member(*asked, "json_schema") : nullptr;
    const picojson::value* schema = named ? member(*named, "schema") : nullptr;
    return schema ? *schema : picojson::value();
}

/// One line of a file of questions.
class question_reader {
public:
    question_reader(const byte_stream& in, const questions& q, const picojson::value& schema)
        : in_(in), asked_(q), schema_of_all_(schema) {}

    dialogue read(const picojson::value& v, long long line) const {
        if (!v.is<picojson::object>()) in_.refuse(line, "an object is expected here");
        const dialogue_reader fields(in_, line, 1);
        dialogue d;
        d.turns.push_back({.prompt = fields.text_of(v, "question")});
        const std::vector<std::string> choices = choices_of(v, line);
        for (std::size_t i = 0; i < choices.size(); ++i)
            d.turns[0].prompt += std::string("\n") + letter(i) + ". " + choices[i];
        d.turns[0].prompt = str(asked_.before) + d.turns[0].prompt + str(asked_.after);
        d.wanted = std::make_shared<const wanted_answer>(key_of(v, choices, line));
        return d;
    }

private:
    static char letter(std::size_t i) { return static_cast<char>('A' + static_cast<int>(i)); }
    std::vector<std::string> choices_of(const picojson::value& v, long long line) const {
        std::vector<std::string> choices;
        if (!member(v, "choices")) return choices;
        for (const picojson::value& c : array_member(v, "choices")) {
            if (!c.is<std::string>()) in_.refuse(line, "choices must be a list of strings");
            choices.push_back(c.get<std::string>());
        }
        if (choices.size() < 2 || choices.size() > 26)
            in_.refuse(line, printed("choices has %zu strings: 2 to 26 are allowed",
                                     choices.size()));
        return choices;
    }
    answer_grade grade_of(const picojson::value& v, bool has_choices) const {
        if (asked_.grade) return *asked_.grade;
        return asked_.format == gsm8k ? last_number
               : member(v, "pattern") ? pattern
               : member(v, "schema")  ? schema
               : has_choices          ? choice
                                      : exact;
    }
    wanted_answer key_of(const picojson::value& v, const std::vector<std::string>& choices,
                         long long line) const {
        wanted_answer w{.by = grade_of(v, !choices.empty()),
                        .choices = static_cast<int>(choices.size())};
        const std::string by = grade_name(w.by);
        if (w.by == pattern || w.by == schema) {
            const picojson::value* own = member(v, by.c_str());
            if (!own && w.by == schema && !schema_of_all_.is<picojson::null>())
                own = &schema_of_all_;
            if (!own)
                in_.refuse(line, by + " is missing: graded by " + by + ", a question needs one" +
                                     (w.by == schema ? ", its own or that of response_format in "
                                                       "options.extra_body" : ""));
            try {
                if (w.by == schema) {
                    check_schema(*own);
                    w.allowed = std::make_shared<const picojson::value>(*own);
                    w.key = own->serialize();
                } else {
                    w.key = own->is<std::string>() ? own->get<std::string>() : "";
                    if (w.key.empty()) refuse({"pattern is not a string with something in it"});
                    w.found = std::make_shared<const text_pattern>(w.key);
                }
            } catch (const std::invalid_argument& wrong) {
                in_.refuse(line, wrong.what());
            }
            return w;
        }
        const picojson::value* answer = member(v, "answer");
        if (answer && answer->is<std::string>()) w.key = answer->get<std::string>();
        else if (answer && !std::isnan(number_in(*answer))) w.key = json_number(number_in(*answer));
        if (without_space(w.key).empty())
            in_.refuse(line, "answer is missing or empty: a question without a key cannot be "
                             "graded");
        if (w.by == choice) w.key = chosen(*answer, w.key, choices, line);
        if (w.by == last_number) {
            w.key = std::string(last_number_in(w.key));
            if (!graded_number(w.key))
                in_.refuse(line, "answer has no number: graded by last_number, a key needs one");
        }
        return w;
    }
    /// The letter that the key is or stands for.
    std::string chosen(const picojson::value& answer, const std::string& key,
                       const std::vector<std::string>& choices, long long line) const {
        if (choices.empty())
            in_.refuse(line, "choices is missing: graded by choice, a question needs them");
        std::optional<std::size_t> place;
        if (!answer.is<std::string>()) {
            for (std::size_t i = 0; i < choices.size(); ++i)
                if (number_in(answer) == static_cast<double>(i)) place = i;
        } else {
            const std::string_view said = without_space(key);
            std::size_t alike = 0;
            for (std::size_t i = 0; i < choices.size(); ++i) {
                if (said != without_space(choices[i])) continue;
                place = i;
                ++alike;
            }
            const bool is_letter = said.size() == 1 && said[0] >= 'A' &&
                                   said[0] < 'A' + static_cast<int>(choices.size());
            if (alike > 1 || (is_letter && place && letter(*place) != said[0]))
                in_.refuse(line, "answer \"" + printable(said, 40) + "\" may be several of the "
                                 "choices: name one by its index, the first is 0");
            if (is_letter) place = static_cast<std::size_t>(said[0] - 'A');
        }
        if (!place)
            in_.refuse(line, "answer \"" + printable(key, 40) +
                                 printed("\" is none of the %zu choices: it is a letter from A "
                                         "on, an index from 0 on, or the text of one",
                                         choices.size()));
        return std::string(1, letter(*place));
    }

    const byte_stream& in_;
    const questions& asked_;
    const picojson::value& schema_of_all_;
};

/// The questions of a file: all of them, or so many, drawn by the seed, in an order of the seed's.
inline std::vector<dialogue> read_questions(byte_stream& in, const questions& q,
                                            const request_options& o, std::uint64_t seed) {
    constexpr std::size_t most = 1000000;
    dialogue_sampler sampler(q.max_items ? static_cast<std::size_t>(*q.max_items) : most, seed);
    const picojson::value of_requests = schema_of_requests(o);
    const question_reader reader(in, q, of_requests);
    std::map<std::string, long long> lines;
    each_json_line(in, [&](const std::string&, const picojson::value& v, long long line) {
        dialogue d = reader.read(v, line);
        const auto [first, is_new] = lines.emplace(d.turns[0].prompt, line);
        if (!is_new)
            in.refuse(line, printed("the question stands on line %lld already: asked twice, it "
                                    "would count twice", first->second));
        sampler.offer(std::move(d));
    });
    if (lines.empty()) refuse({in.name(), ": it holds no questions"});
    return sampler.take();
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
