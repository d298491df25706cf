// Datasets and traces.
#include "llmbench.hpp"
#include "core/base/bytes.hpp"
#include "core/files/datasets.hpp"
#include "core/files/traces.hpp"
#include "support/memory.hpp"
#include "support/texts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;
using doctest::Approx;
using texts::content_of;

namespace {

/// The text as a file of this name, read in pieces of `piece` bytes.
byte_stream stream_of(std::string text, const std::string& name = "file.json",
                      std::size_t piece = 3) {
    auto at = std::make_shared<std::size_t>(0);
    auto all = std::make_shared<std::string>(std::move(text));
    return {[=](char* room, std::size_t n) {
                n = std::min({n, piece, all->size() - *at});
                std::memcpy(room, all->data() + *at, n);
                *at += n;
                return n;
            },
            name};
}
/// All conversations, in the file's order.
std::vector<dialogue> all_of(const std::string& text, const dataset& d,
                             const std::string& name = "file.json") {
    byte_stream in = stream_of(text, name);
    std::vector<dialogue> all;
    each_dialogue(in, d, {}, [&](dialogue&& x, long long) { all.push_back(std::move(x)); });
    return all;
}
/// The sentence that a file is refused with, "" where it is not.
std::string refusal(const std::string& text, const dataset& d,
                    const std::string& name = "file.json") {
    byte_stream in = stream_of(text, name);
    return texts::refusal_of([&] { sampled_dialogues(in, d, 100, 1); });
}
std::string refusal_of_trace(const std::string& text) {
    byte_stream in = stream_of(text, "trace");
    return texts::refusal_of([&] { read_trace(in); });
}

}  // namespace

// ---- values, lines, rows ------------------------------------------------------------------------

TEST_CASE("elements of an array are found whatever stands inside their strings") {
    const std::string text = "\xEF\xBB\xBF [ {\"a\": \"]},\\\"{\"} ,\n [1, [2]],\"x\", 3.5e1 ,null ] \n";
    for (const std::size_t piece : {1u, 2u, 7u, 1000u}) {
        byte_stream in = stream_of(text, "f", piece);
        std::vector<std::pair<long long, std::string>> seen;
        each_json_element(in, [&](const std::string& key, const picojson::value& v, long long line) {
            CHECK(key.empty());
            seen.emplace_back(line, v.serialize());
        });
        REQUIRE(seen.size() == 5);
        CHECK(seen[0] == std::pair{1ll, std::string("{\"a\":\"]},\\\"{\"}")});
        CHECK(seen[1] == std::pair{2ll, std::string("[1,[2]]")});
        CHECK(seen[2].second == "\"x\"");
        CHECK(seen[3].second == "35");
        CHECK(seen[4].second == "null");
    }
}

TEST_CASE("elements of all arrays of an object come with the array's name") {
    byte_stream in = stream_of(R"({"info": {"a": [1]}, "n": 5, "x": [1, 2], "y": [], "z": [3]})");
    std::string seen;
    each_json_element(in, [&](const std::string& key, const picojson::value& v, long long) {
        seen += key + v.serialize() + " ";
    });
    CHECK(seen == "x1 x2 z3 ");
}

TEST_CASE("rows of CSV hold commas, quotes and line ends where they are quoted") {
    byte_stream in = stream_of("a,b\r\n\"x, \"\"y\"\"\nz\",2\n\n,\n\"\",\"q\"");
    std::vector<std::pair<long long, std::vector<std::string>>> rows;
    const auto keep = [&](const std::vector<std::string>& fields, long long line) {
        rows.emplace_back(line, fields);
    };
    each_csv_row(in, keep, keep);
    REQUIRE(rows.size() == 4);
    CHECK(rows[0].second == std::vector<std::string>{"a", "b"});
    CHECK(rows[1].second == std::vector<std::string>{"x, \"y\"\nz", "2"});
    CHECK(rows[1].first == 2);
    CHECK(rows[2].second == std::vector<std::string>{"", ""});
    CHECK(rows[2].first == 5);
    CHECK(rows[3].second == std::vector<std::string>{"", "q"});
}

TEST_CASE("lines end with or without a carriage return, the last one without either") {
    byte_stream in = stream_of("one\r\ntwo\n\nlast");
    std::vector<std::string> lines;
    for (std::string line; read_line(in, line);) lines.push_back(line);
    CHECK(lines == std::vector<std::string>{"one", "two", "", "last"});
}

TEST_CASE("tokens are estimated by four ASCII bytes or one other character") {
    CHECK(estimated_tokens("") == 0);
    CHECK(estimated_tokens("a") == 1);
    CHECK(estimated_tokens("abcd") == 1);
    CHECK(estimated_tokens("abcde") == 2);
    CHECK(estimated_tokens("\xE4\xBD\xA0\xE5\xA5\xBD") == 2);
    CHECK(estimated_tokens("abcd\xC3\xA9") == 2);
}

// ---- the formats, on the samples ----------------------------------------------------------------

TEST_CASE("ShareGPT: the first question, and all of them where conversations are played") {
    const std::string text = content_of("data/sharegpt.json");
    const auto first = all_of(text, {.format = sharegpt});
    REQUIRE(first.size() == 7);
    REQUIRE(first[0].turns.size() == 1);
    CHECK(first[0].turns[0].prompt == "How do I keep basil alive indoors?");
    CHECK(first[0].turns[0].output_tokens == 24);  // 93 bytes
    CHECK(first[6].turns.empty());                 // nobody asks anything there
    const auto played = all_of(text, {.format = sharegpt, .max_turns = 100});
    CHECK(played[0].turns.size() == 2);
    CHECK(played[0].turns[1].prompt == "And in winter?");
    CHECK(played[5].turns.size() == 3);
    CHECK(all_of(text, {.format = sharegpt, .max_turns = 2})[5].turns.size() == 2);
    REQUIRE(played[3].before.size() == 1);
    CHECK(played[3].before[0].role == "system");
    CHECK(played[3].before[0].content == "Answer in one sentence.");
}

TEST_CASE("ShareGPT: roles by other names, one conversation a line") {
    const auto d = all_of("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":"
                          "\"assistant\",\"content\":\"b\"}]}\n\n{\"conversations\":[{\"from\":"
                          "\"user\",\"value\":\"c\"},{\"from\":\"chatgpt\",\"value\":\"12345\"}]}",
                          {.format = sharegpt}, "f.jsonl");
    REQUIRE(d.size() == 2);
    CHECK(d[0].turns[0].prompt == "a");
    CHECK(d[1].turns[0].prompt == "c");
    CHECK(d[1].turns[0].output_tokens == 2);
}

TEST_CASE("Dolly: an instruction and its context, as long an answer as the recorded one") {
    const auto d = all_of(content_of("data/dolly.jsonl"), {.format = dolly});
    REQUIRE(d.size() == 6);
    CHECK(d[0].turns[0].prompt == "How do I keep basil alive indoors?\n\nYou are talking to a friend "
                                  "who has little time.");
    CHECK(d[1].turns[0].prompt == "Explain what a hash table is.");
    CHECK(d[0].turns[0].output_tokens == 24);
}

TEST_CASE("OpenAI JSONL: messages as they stand, prompts, batch lines, lengths") {
    const auto d = all_of(content_of("data/openai.jsonl"), {.format = openai_jsonl});
    REQUIRE(d.size() == 4);
    CHECK(d[0].before[0].content == "Be brief.");
    CHECK(d[0].turns[0].output_tokens == 12);
    // The given answer of the middle is part of the prompt, the last one is to be answered anew.
    REQUIRE(d[1].before.size() == 2);
    CHECK(d[1].before[1].role == "assistant");
    CHECK(d[1].turns[0].prompt == "What happens when two keys share a bucket?");
    CHECK(d[1].turns[0].output_tokens > 10);
    CHECK(d[2].turns[0].prompt == "Write one sentence about the sea.");
    CHECK(d[2].turns[0].output_tokens == 17);
    CHECK(d[3].turns[0].output_tokens == 9);
    const auto played = all_of(content_of("data/openai.jsonl"),
                               {.format = openai_jsonl, .max_turns = 10});
    CHECK(played[1].before.empty());
    CHECK(played[1].turns.size() == 2);
}

TEST_CASE("COCO captions: an image for each caption, or questions about images") {
    const auto captions = all_of(content_of("data/captions.json"), {.format = coco_captions});
    REQUIRE(captions.size() == 3);
    CHECK(captions[0].turns[0].image == "green.png");
    CHECK(captions[1].turns[0].image == "blue.png");
    CHECK(captions[2].turns[0].image == "green.png");
    CHECK(captions[1].turns[0].output_tokens == 8);
    const auto asked = all_of(content_of("data/image_questions.jsonl"), {.format = coco_captions},
                              "image_questions.jsonl");
    REQUIRE(asked.size() == 2);
    CHECK(asked[1].turns[0].prompt == "Is this square green?");
    CHECK(asked[1].turns[0].image == "blue.png");
}

TEST_CASE("VQA v2: questions about COCO's images, and annotations that say how long answers are") {
    const std::string questions = content_of("data/vqa_questions.json");
    const auto asked = all_of(questions, {.format = vqa});
    REQUIRE(asked.size() == 3);
    CHECK(asked[0].turns[0].prompt == "What colour is this square?");
    CHECK(asked[0].turns[0].image == "COCO_val2014_000000000007.jpg");
    CHECK(asked[2].turns[0].image == "COCO_val2014_000000000009.jpg");
    CHECK(asked[0].turns[0].output_tokens == 0);
    byte_stream reported = stream_of(content_of("data/vqa_annotations.json"));
    const answer_lengths answers = read_vqa_answers(reported);
    CHECK(answers == answer_lengths{{7000, 2}, {7001, 1}, {9000, 3}});
    byte_stream again = stream_of(questions);
    std::multiset<int> lengths;
    for (const dialogue& d : sampled_dialogues(again, {.format = vqa}, 10, 1, answers))
        lengths.insert(d.turns[0].output_tokens);
    CHECK(lengths == std::multiset<int>{1, 2, 3});
    // All files of the test split are about one set of images.
    const auto tested = all_of(R"({"data_subtype": "test-dev2015", "questions": [
        {"image_id": 262144, "question": "Why?", "question_id": 262144005}]})", {.format = vqa});
    CHECK(tested[0].turns[0].image == "COCO_test2015_000000262144.jpg");
}

TEST_CASE("VQA: what is wrong is refused by its line and field") {
    const dataset d = {.format = vqa};
    CHECK_REFUSED(refusal(R"({"questions": [{"image_id": 1, "question": "a", "question_id": 2}]})",
                          d), "data_subtype must stand before the questions");
    CHECK_REFUSED(refusal("{\"data_subtype\": \"val2014\",\n\"questions\": [{\"image_id\": 1}]}", d),
                  "file.json:2: ", "image_id, question_id and question are expected");
    CHECK_REFUSED(refusal(R"({"data_subtype": "val2014", "annotations": []})", d),
                  "it holds no prompts");
    byte_stream of_questions = stream_of(content_of("data/vqa_questions.json"));
    std::string why;
    try {
        sampled_dialogues(of_questions, d, 10, 1, {{7000, 2}});
    } catch (const std::invalid_argument& e) {
        why = e.what();
    }
    CHECK(why.find("question_id 7001 has no annotation in workload.answers") != std::string::npos);
}

TEST_CASE("plain lines and CSV") {
    const auto lines = all_of(content_of("data/prompts.txt"), {.format = text_lines});
    REQUIRE(lines.size() == 6);
    CHECK(lines[5].turns[0].prompt == "Give me three names for a grey cat.");
    CHECK(lines[5].turns[0].output_tokens == 0);
    const auto rows = all_of(content_of("data/prompts.csv"), {.format = csv});
    REQUIRE(rows.size() == 7);
    CHECK(rows[6].turns[0].prompt == "A prompt of \"two\"\nlines, and a comma");
    CHECK(rows[6].turns[0].output_tokens == 1);
    const auto reported = all_of("Output_Tokens, Question\n7,a\n 12 ,b\n", {.format = csv});
    CHECK(reported[0].turns[0].output_tokens == 7);
    CHECK(reported[1].turns[0].output_tokens == 12);
    CHECK(reported[1].turns[0].prompt == "b");
}

TEST_CASE("images become data URLs of their type") {
    // The test vectors of RFC 4648, section 10.
    const std::pair<const char*, const char*> vectors[] = {
        {"", ""},         {"f", "Zg=="},         {"fo", "Zm8="},        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    for (const auto& [plain, coded] : vectors) CHECK(base64(plain) == coded);
    CHECK(base64("\xFF\xFE\xFD") == "//79");
    CHECK(std::string(image_type("a.b/c.JPG")) == "image/jpeg");
    CHECK(std::string(image_type("c.png")) == "image/png");
    CHECK(std::string(image_type("png")) == "");
}

// ---- refusals -----------------------------------------------------------------------------------

TEST_CASE("a file that is wrong is refused by its line and field") {
    const dataset share = {.format = sharegpt}, lines = {.format = dolly},
                  open = {.format = openai_jsonl}, images = {.format = coco_captions},
                  rows = {.format = csv};
    CHECK_REFUSED(refusal("[\n{\"conversations\":[]},\n{\"id\":1}]", share), "file.json:3: ",
                  "conversations is missing", "an array of messages");
    CHECK_REFUSED(refusal("[{\"conversations\":7}]", share), "file.json:1: ",
                  "conversations is not an array");
    CHECK_REFUSED(refusal("[{\"conversations\":[{\"from\":\"human\"}]}]", share),
                  "value is missing", "must be a string");
    CHECK_REFUSED(refusal("[{\"conversations\":[{\"from\":\"human\",\"value\":3}]}]", share),
                  "value is not a string");
    CHECK_REFUSED(refusal("[{\"conversations\":[3]}]", share), "a message is not an object");
    CHECK_REFUSED(refusal("[\n\n3]", share), "file.json:3: ", "an object is expected");
    CHECK_REFUSED(refusal("[\n{\"a\":}]", share), "file.json:2: ", "not JSON");
    CHECK_REFUSED(refusal("[{\"a\":1}\n{\"a\":2}]", share), "conversations is missing");
    CHECK_REFUSED(refusal("[{\"conversations\":[]}\n{\"a\":2}]", share), "file.json:2: ",
                  "']' is expected");
    CHECK_REFUSED(refusal("[{\"conversations\":[]}", share), "']' is expected");
    CHECK_REFUSED(refusal("[\n{\"conversations\":[", share), "file.json:2: ",
                  "the file ends inside");
    CHECK_REFUSED(refusal("[] []", share), "behind the end");
    CHECK_REFUSED(refusal("", share), "file.json:1: ", "'{' is expected");
    CHECK_REFUSED(refusal("[]", share), "it holds no prompts");
    CHECK_REFUSED(refusal("{\"instruction\":\"a\",\"response\":\"b\"}\n{\"instruction\":\"a\"}",
                          lines),
                  "file.json:2: ", "response is missing");
    CHECK_REFUSED(refusal("{}\nnothing", lines), "file.json:1: ", "instruction is missing");
    CHECK_REFUSED(refusal("\nnothing", lines), "file.json:2: ", "not JSON: nothing");
    CHECK_REFUSED(refusal("{\"text\":\"a\"}", open), "neither messages nor prompt");
    CHECK_REFUSED(refusal("{\"prompt\":\"a\",\"max_tokens\":0}", open), "max_tokens is 0",
                  "from 1 to 10000000");
    CHECK_REFUSED(refusal("{\"annotations\":[{\"image_id\":1,\"caption\":\"a\"}]}", images),
                  "image_id is not the id");
    CHECK_REFUSED(refusal("{\"images\":[{\"id\":1}]}", images), "file_name is missing");
    CHECK_REFUSED(refusal("[{\"image\":\"a.png\"}]", images), "question is missing");
    CHECK_REFUSED(refusal("a,b\n1,2\n", rows), "file.json:1: ", "no column is named prompt");
    CHECK_REFUSED(refusal("prompt,b\n1,2\n\n1\n", rows), "file.json:4: ", "1 fields", "2 columns");
    CHECK_REFUSED(refusal("prompt,output_tokens\na,many\n", rows), "file.json:2: ",
                  "output_tokens is \"many\"", "from 1 to 10000000");
    CHECK_REFUSED(refusal("prompt\na\n\"b\n", rows), "file.json:3: ", "does not end");
    // Deep brackets must not exhaust the stack.
    CHECK_REFUSED(refusal("[" + std::string(100000, '[') + std::string(100000, ']') + "]", share),
                  "not JSON");
}

TEST_CASE("what no length fits is refused with their number") {
    CHECK_REFUSED(refusal("one\ntwo\n", {.format = text_lines, .min_prompt_tokens = 5}),
                  "none of its 2 prompts", "min_prompt_tokens");
    CHECK(refusal("one\ntwo\n", {.format = text_lines, .min_prompt_tokens = 1}) == "");
}

// ---- samples ------------------------------------------------------------------------------------

namespace {
std::string numbered(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += std::to_string(i) + "\n";
    return text;
}
std::vector<int> sample(int n, const dataset& d, std::size_t most, std::uint64_t seed) {
    byte_stream in = stream_of(numbered(n), "f.txt", 4096);
    std::vector<int> out;
    for (const dialogue& x : sampled_dialogues(in, d, most, seed))
        out.push_back(std::stoi(x.turns[0].prompt));
    return out;
}
}  // namespace

TEST_CASE("a sample holds each prompt at most once, in an order of its seed") {
    const dataset d = {.format = text_lines};
    const std::vector<int> some = sample(1000, d, 100, 1);
    CHECK(some.size() == 100);
    CHECK(std::set<int>(some.begin(), some.end()).size() == 100);
    CHECK(some == sample(1000, d, 100, 1));
    CHECK(some != sample(1000, d, 100, 2));
    CHECK_FALSE(std::is_sorted(some.begin(), some.end()));
    const std::vector<int> all = sample(50, d, 100, 1);
    CHECK(std::set<int>(all.begin(), all.end()).size() == 50);
    CHECK_FALSE(std::is_sorted(all.begin(), all.end()));
    CHECK(sample(1000, {.format = text_lines, .max_items = 7}, 100, 1).size() == 7);
}

TEST_CASE("every prompt has the same chance, in the sample and of every place in it") {
    // 40 prompts, 10 of them kept, 4000 seeds: 1000 times each, standard deviation 27.4; each of
    // them first 100 times, standard deviation 9.9.
    std::map<int, int> kept, first;
    for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
        dialogue_sampler sampler(10, seed);
        for (int i = 0; i < 40; ++i) sampler.offer({{}, {{.prompt = std::to_string(i)}}});
        const std::vector<dialogue> sample = sampler.take();
        for (const dialogue& x : sample) ++kept[std::stoi(x.turns[0].prompt)];
        ++first[std::stoi(sample[0].turns[0].prompt)];
    }
    for (int i = 0; i < 40; ++i) {
        CAPTURE(i);
        CHECK(std::abs(kept[i] - 1000) < 4 * 27.4);
        CHECK(std::abs(first[i] - 100) < 4 * 9.9);
    }
}

TEST_CASE("lengths outside the limits are left out, ends included in them") {
    std::string text;
    for (int n = 1; n <= 20; ++n) text += std::string(static_cast<std::size_t>(4 * n), 'x') + "\n";
    byte_stream in = stream_of(text, "f.txt");
    const auto kept = sampled_dialogues(
        in, {.format = text_lines, .min_prompt_tokens = 5, .max_prompt_tokens = 8}, 100, 1);
    std::set<std::size_t> lengths;
    for (const dialogue& d : kept) lengths.insert(d.turns[0].prompt.size() / 4);
    CHECK(lengths == std::set<std::size_t>{5, 6, 7, 8});
    byte_stream answers = stream_of("prompt,output_tokens\na,5\nb,6\nc,9\n");
    CHECK(sampled_dialogues(answers, {.format = csv, .min_output_tokens = 6, .max_output_tokens = 8},
                            100, 1)
              .size() == 1);
}

TEST_CASE("of a large file no more is held than one value and the sample") {
    // 8 MB of conversations of about 1 KB that exist nowhere as a whole.
    const std::string value = "{\"conversations\":[{\"from\":\"human\",\"value\":\"" +
                              std::string(700, 'q') + "\"},{\"from\":\"gpt\",\"value\":\"" +
                              std::string(200, 'a') + "\"}]}";
    std::size_t left = 8000, most_held = 0;
    const std::size_t before = memory::held();
    std::string next = "[" + value;
    byte_stream in(
        [&](char* room, std::size_t n) {
            most_held = std::max(most_held, memory::held() - before);
            if (next.empty() && left > 0) next = --left == 0 ? "]" : "," + value;
            n = std::min(n, next.size());
            std::memcpy(room, next.data(), n);
            next.erase(0, n);
            return n;
        },
        "generated");
    const auto sample = sampled_dialogues(in, {.format = sharegpt, .max_items = 100}, 0, 1);
    CHECK(sample.size() == 100);
    CHECK(most_held < 1000000);
}

// ---- traces -------------------------------------------------------------------------------------

TEST_CASE("the three published traces are told by their first line and read the same") {
    for (const std::string file : {"azure.csv", "burstgpt.csv", "mooncake.jsonl"}) {
        CAPTURE(file);
        byte_stream in = stream_of(content_of("data/" + file), file);
        const recorded_trace t = read_trace(in);
        REQUIRE(t.rows.size() == 10);
        const double seconds = file == "burstgpt.csv" ? 10 : 1;
        const double times[] = {0, 0.13, 0.31, 0.36, 0.80, 1.02, 1.10, 1.55, 1.71, 1.90};
        for (std::size_t i = 0; i < 10; ++i)
            CHECK(t.rows[i].at_s == Approx(seconds * times[i]).epsilon(1e-5));
        CHECK(t.rows[9].output_tokens == 17);
        CHECK(t.left_out == (file == "burstgpt.csv" ? 1 : 0));
        CHECK(t.prompts.size() == (file == "mooncake.jsonl" ? 10 : 0));
    }
    byte_stream azure = stream_of(content_of("data/azure.csv"));
    const recorded_trace t = read_trace(azure);
    CHECK(t.format == "Azure");
    CHECK(t.rows[2].prompt_tokens == 112);
    byte_stream mooncake = stream_of(content_of("data/mooncake.jsonl"));
    const recorded_trace m = read_trace(mooncake);
    CHECK(m.prompts[0].kept == 0);
    CHECK(m.tree.common(m.prompts[0], m.prompts[2]) == 1024);
    CHECK(m.tree.common(m.prompts[0], m.prompts[1]) == 0);
}

TEST_CASE("dates are counted through months, years and leap days") {
    const double day = 86400;
    CHECK(seconds_of_date("2024-03-01 00:00:00") - seconds_of_date("2024-02-28 00:00:00") == 2 * day);
    CHECK(seconds_of_date("2023-03-01 00:00:00") - seconds_of_date("2023-02-28 00:00:00") == day);
    CHECK(seconds_of_date("2024-01-01 00:00:00") - seconds_of_date("2023-01-01 00:00:00") ==
          365 * day);
    CHECK(seconds_of_date("2023-11-16T18:15:46.25+00:00") -
              seconds_of_date("2023-11-16 18:15:45.75") == Approx(0.5));
    for (const char* none : {"", "2023", "2023-13-01 00:00:00", "2023-11-16", "16.11.2023 00:00:00",
                             "2023-11-16 18:15:46,5", "2023-11-16 18:61:00"})
        CHECK(std::isnan(seconds_of_date(none)));
}

TEST_CASE("a trace is sorted by its time stamps") {
    byte_stream in = stream_of("Timestamp,Request tokens,Response tokens\n9,1,1\n5,2,1\n7,3,1\n");
    const recorded_trace t = read_trace(in);
    CHECK(t.rows[0].prompt_tokens == 2);
    CHECK(t.rows[0].at_s == 0);
    CHECK(t.rows[2].prompt_tokens == 1);
    CHECK(t.rows[2].at_s == 4);
}

TEST_CASE("a trace of one time is a batch, and one of no time or of ages is refused") {
    byte_stream in = stream_of("Timestamp,Request tokens,Response tokens\n9,1,1\n9,2,1\n9,3,1\n");
    for (const trace_row& r : read_trace(in).rows) CHECK(r.at_s == 0);
    const std::string burst = "Timestamp,Request tokens,Response tokens\n1,1,1\n";
    CHECK_REFUSED(refusal_of_trace(burst + "1e300,1,1\n"), "trace:3: ", "1e+300 s", "up to 1e+11");
    CHECK_REFUSED(refusal_of_trace(burst + "-1e300,1,1\n"), "trace:3: ", "-1e+300 s");
    CHECK_REFUSED(refusal_of_trace(burst + "1e10,1,1\n"), "takes 1e+10 s", "up to 1e+08 s");
    CHECK_REFUSED(refusal_of_trace("{\"timestamp\":1e308,\"input_length\":5,\"output_length\":5}"),
                  "trace:1: ", "up to 1e+11");
    CHECK_REFUSED(refusal_of_trace("{\"timestamp\":1,\"input_length\":5,\"output_length\":5,"
                                   "\"hash_ids\":[1e308]}"),
                  "trace:1: one of hash_ids is 1e+308");
}

TEST_CASE("a trace that is wrong is refused by its line") {
    CHECK_REFUSED(refusal_of_trace("a,b\n1,2\n"), "trace:1: ", "no known trace begins so", "Azure",
                  "BurstGPT", "Mooncake");
    CHECK_REFUSED(refusal_of_trace(""), "the trace holds no requests");
    const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    CHECK_REFUSED(refusal_of_trace(azure), "the trace holds no requests");
    CHECK_REFUSED(refusal_of_trace(azure + "2023-11-16 18:15:46,5,5\nyesterday,5,5\n"), "trace:3: ",
                  "not a time");
    CHECK_REFUSED(refusal_of_trace(azure + "2023-11-16 18:15:46,5\n"), "trace:2: ", "2 fields",
                  "3 columns");
    CHECK_REFUSED(refusal_of_trace(azure + "2023-11-16 18:15:46,-5,5\n"), "trace:2: ",
                  "the prompt length");
    CHECK_REFUSED(refusal_of_trace(azure + "2023-11-16 18:15:46,5,many\n"), "trace:2: ",
                  "the output length");
    CHECK_REFUSED(refusal_of_trace("{\"timestamp\":1,\"input_length\":5}"), "trace:1: ",
                  "output_length is not there");
    CHECK_REFUSED(refusal_of_trace("{\"timestamp\":1,\"input_length\":5,\"output_length\":5,"
                                   "\"hash_ids\":7}"),
                  "hash_ids is not an array");
    CHECK_REFUSED(refusal_of_trace("{\"timestamp\":1}\nx"), "trace:1: ", "input_length");
}
