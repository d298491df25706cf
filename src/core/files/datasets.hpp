// datasets
#pragma once

#include "api/workload.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/traffic/recorded.hpp"
#include "core/files/byte_stream.hpp"
#include "core/files/dialogues.hpp"

#include <algorithm>  // min
#include <cstdint>  // uint64_t
#include <initializer_list>  // names of columns
#include <map>
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>
#include <utility>  // move, swap, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Keeps a sample of `most`, each set equally likely (algorithm R of Waterman, in Knuth 1981). The
/// seed gives the order of the sample.
class dialogue_sampler {
public:
    dialogue_sampler(std::size_t most, std::uint64_t seed) : most_(most), random_(seed, 7) {}
    void offer(dialogue&& d) {
        ++offered_;
        if (kept_.size() < most_) return kept_.push_back(std::move(d));
        const std::uint64_t place = random_.below(offered_);
        if (place < most_) kept_[place] = std::move(d);
    }
    vector<dialogue> take() {
        for (std::size_t i = kept_.size(); i > 1; --i)
            std::swap(kept_[i - 1], kept_[random_.below(i)]);
        return std::move(kept_);
    }

private:
    vector<dialogue> kept_{};
    std::size_t most_;
    std::uint64_t offered_ = 0;
    generator random_;
};

/// Whether an object that begins like this has lists of rows, as COCO's, and is no row itself. The
/// name of a file does not tell: JSON lines end in .json, too.
inline bool has_rows(std::string_view start, dataset_format format) {
    if (format != sharegpt && format != coco_captions) return false;
    int depth = 0;
    bool has_list = false;
    for (std::size_t i = start.find('{'); i < start.size(); ++i) {
        const char c = start[i];
        has_list |= depth == 1 && c == '[';
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (c != '"') continue;
        const std::string_view name = start.substr(i + 1);
        for (++i; i < start.size() && start[i] != '"'; ++i) i += start[i] == '\\';
        for (const std::string_view of_a_row :
             {"id\"", "conversations\"", "messages\"", "image\"", "question\"", "answer\""})
            if (depth == 1 && name.starts_with(of_a_row)) return false;
    }
    return has_list;
}

/// Calls `offer(dialogue, line)` for each conversation. `given`: fields that all requests have.
template <class Offer>
void each_dialogue(byte_stream& in, const dataset& d, row_fields& fields, const field_names& given,
                   Offer&& offer) {
    const long long max_turns = d.max_turns;
    const auto each_value = [&](auto&& on_value) {
        const auto checked = [&](const std::string& key, const picojson::value& v, long long line) {
            if (!v.is<picojson::object>()) in.refuse(line, "an object is expected here");
            on_value(key, v, dialogue_reader(in, line, max_turns, fields, given), line);
        };
        in.skip_space();
        if (in.peek() == '{' && has_rows(in.start(), d.format)) each_json_element(in, checked);
        else each_json_value(in, checked);
    };
    const auto each_row = [&](dialogue (dialogue_reader::*read)(const picojson::value&) const) {
        each_value([&](const auto&, const auto& v, const dialogue_reader& reader, long long line) {
            offer((reader.*read)(v), line);
        });
    };
    std::map<long long, std::string> images;  // of COCO, where captions come later
    switch (d.format) {
    case sharegpt: return each_row(&dialogue_reader::sharegpt_of);
    case dolly: return each_row(&dialogue_reader::dolly_of);
    case openai_jsonl: return each_row(&dialogue_reader::openai_of);
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
    case text_lines:
        for (std::string text; in.peek() >= 0;) {
            const long long line = in.line();
            if (read_line(in, text) && !trimmed(text).empty())
                offer(dialogue{{}, {{.prompt = text}}}, line);
        }
    }
}

/// Returns the format of a file that begins like this, if its beginning shows it.
inline std::optional<dataset_format> likely_format(std::string_view start) {
    if (start.substr(0, 3) == "\xEF\xBB\xBF") start.remove_prefix(3);
    const std::size_t first = start.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (start[first] != '{' && start[first] != '[')) return {};
    for (const auto& [mark, format] :
         {std::pair{"\"conversations\"", sharegpt}, std::pair{"\"instruction\"", dolly},
          std::pair{"\"annotations\"", coco_captions},
          std::pair{"\"messages\"", openai_jsonl}, std::pair{"\"prompt\"", openai_jsonl},
          std::pair{"\"question\"", coco_captions}})
        if (start.find(mark) != std::string_view::npos) return format;
    return {};
}
inline const char* format_name(dataset_format f) {
    return name_at({"sharegpt", "dolly", "openai_jsonl", "coco_captions", "text_lines"}, f);
}

/// Returns the sample of a dataset, `most` conversations if it has no number of its own.
inline vector<dialogue> sampled_dialogues(byte_stream& in, const dataset& d, std::size_t most,
                                          std::uint64_t seed, row_fields& fields,
                                          const field_names& given) {
    const std::size_t wanted = d.max_items ? static_cast<std::size_t>(*d.max_items) : most;
    dialogue_sampler sampler(wanted, seed);
    long long seen = 0, fitting = 0;
    const auto outside = [](long long n, long long least, long long limit) {
        return n < least || (limit > 0 && n > limit);
    };
    try {
        each_dialogue(in, d, fields, given, [&](dialogue&& x, long long) {
            ++seen;
            if (x.turns.empty() || trimmed(x.turns.front().prompt).empty()) return;
            const int answer = x.turns.front().output_tokens;
            if (outside(estimated_prompt_tokens(x), d.min_prompt_tokens, d.max_prompt_tokens))
                return;
            if (answer > 0 && outside(answer, d.min_output_tokens, d.max_output_tokens)) return;
            ++fitting;
            sampler.offer(std::move(x));
        });
        if (seen == 0) refuse({in.name(), ": it holds no prompts"});
    } catch (const std::invalid_argument& e) {
        const std::optional<dataset_format> likely = likely_format(in.start());
        if (seen > 0 || !likely || *likely == d.format) throw;
        refuse({e.what(), "; it looks like a file of the format ", format_name(*likely),
                ", and workload.format is ", format_name(d.format)});
    }
    if (fitting == 0)
        refuse({in.name(), printed(": none of its %lld prompts has a length that the dataset asks "
                                   "for (min_prompt_tokens and so on)", seen)});
    return sampler.take();
}
/// Returns the media type of an image file, "" if its name has no known extension.
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
}  // inline namespace v1
}  // namespace llmbench
