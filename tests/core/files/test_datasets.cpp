// Datasets and traces.
#include "llmbench.hpp"
#include "core/base/bytes.hpp"
#include "core/files/datasets.hpp"
#include "core/files/traces.hpp"
#include "support/dialogues.hpp"
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
vector<dialogue> all_in(const std::string& text, const dataset& d,
                        const std::string& name = "file.json") {
    byte_stream in = stream_of(text, name);
    vector<dialogue> all;
    row_fields told;
    each_dialogue(in, d, told, {},
                  [&](dialogue&& x, long long) { all.push_back(std::move(x)); });
    return all;
}
/// What is said of the fields of its rows.
std::string in_context(const std::string& text, const dataset& d, const field_names& given = {}) {
    byte_stream in = stream_of(text);
    row_fields told;
    sampled_dialogues(in, d, 100, 1, told, given);
    return told.text();
}
/// The sentence that a file is refused with, "" where it is not.
std::string refusal(const std::string& text, const dataset& d,
                    const std::string& name = "file.json") {
    byte_stream in = stream_of(text, name);
    return texts::refusal_of([&] { dialogues::sample_of(in, d, 100, 1); });
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
        vector<std::pair<long long, std::string>> seen;
        each_json_value(in, [&](const std::string& key, const picojson::value& v, long long line) {
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
    vector<std::pair<long long, vector<std::string>>> rows;
    const auto keep = [&](const vector<std::string>& fields, long long line) {
        rows.emplace_back(line, fields);
    };
    each_csv_row(in, keep, keep);
    REQUIRE(rows.size() == 4);
    CHECK(rows[0].second == vector<std::string>{"a", "b"});
    CHECK(rows[1].second == vector<std::string>{"x, \"y\"\nz", "2"});
    CHECK(rows[1].first == 2);
    CHECK(rows[2].second == vector<std::string>{"", ""});
    CHECK(rows[2].first == 5);
    CHECK(rows[3].second == vector<std::string>{"", "q"});
}

TEST_CASE("lines end with or without a carriage return, the last one without either") {
    byte_stream in = stream_of("one\r\ntwo\n\nlast");
    vector<std::string> lines;
    for (std::string line; read_line(in, line);) lines.push_back(line);
    CHECK(lines == vector<std::string>{"one", "two", "", "last"});
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
    const auto first = all_in(text, {.format = sharegpt});
    REQUIRE(first.size() == 7);
    REQUIRE(first[0].turns.size() == 1);
    CHECK(first[0].turns[0].prompt == "How do I keep basil alive indoors?");
    CHECK(first[0].turns[0].output_tokens == 24);  // 93 bytes
    CHECK(first[6].turns.empty());                 // nobody asks anything there
    const auto played = all_in(text, {.format = sharegpt, .max_turns = 100});
    CHECK(played[0].turns.size() == 2);
    CHECK(played[0].turns[1].prompt == "And in winter?");
    CHECK(played[5].turns.size() == 3);
    CHECK(all_in(text, {.format = sharegpt, .max_turns = 2})[5].turns.size() == 2);
    REQUIRE(played[3].before.size() == 1);
    CHECK(played[3].before[0].role == "system");
    CHECK(played[3].before[0].content == "Answer in one sentence.");
}

TEST_CASE("ShareGPT: roles by other names, one conversation a line") {
    const auto d = all_in("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":"
                          "\"assistant\",\"content\":\"b\"}]}\n\n{\"conversations\":[{\"from\":"
                          "\"user\",\"value\":\"c\"},{\"from\":\"chatgpt\",\"value\":\"12345\"}]}",
                          {.format = sharegpt}, "f.jsonl");
    REQUIRE(d.size() == 2);
    CHECK(d[0].turns[0].prompt == "a");
    CHECK(d[1].turns[0].prompt == "c");
    CHECK(d[1].turns[0].output_tokens == 2);
}

TEST_CASE("Dolly: an instruction and its context, as long an answer as the recorded one") {
    const auto d = all_in(content_of("data/dolly.jsonl"), {.format = dolly});
    REQUIRE(d.size() == 6);
    CHECK(d[0].turns[0].prompt == "How do I keep basil alive indoors?\n\nYou are talking to a friend "
                                  "who has little time.");
    CHECK(d[1].turns[0].prompt == "Explain what a hash table is.");
    CHECK(d[0].turns[0].output_tokens == 24);
}

TEST_CASE("OpenAI JSONL: messages as they stand, prompts, batch lines, lengths") {
    const auto d = all_in(content_of("data/openai.jsonl"), {.format = openai_jsonl});
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
    const auto played = all_in(content_of("data/openai.jsonl"),
                               {.format = openai_jsonl, .max_turns = 10});
    CHECK(played[1].before.empty());
    CHECK(played[1].turns.size() == 2);
}

namespace {
/// A line of OpenAI's batch files, as its documentation has them.
const std::string batch_line =
    R"({"custom_id":"r1","method":"POST","url":"/v1/chat/completions","body":{"model":"m",)"
    R"("messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},)"
    R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],)"
    R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto",)"
    R"("response_format":{"type":"json_object"},"temperature":0.2,"max_completion_tokens":7,)"
    R"("n":2,"stream":true,"user":null}})" "\n";
}  // namespace

TEST_CASE("OpenAI JSONL: what is part of the load is sent as it is, and all else is told") {
    const dataset d = {.format = openai_jsonl};
    const auto read = all_in(batch_line, d);
    REQUIRE(read.size() == 1);
    CHECK(read[0].turns[0].prompt == "What is this?");
    CHECK(read[0].turns[0].image == "data:image/png;base64,AA==");
    CHECK(read[0].turns[0].output_tokens == 7);
    CHECK(read[0].temperature == 0.2);
    CHECK(read[0].fields == R"(,"response_format":{"type":"json_object"},"tool_choice":"auto",)"
                            R"("tools":[{"function":{"name":"f"},"type":"function"}])");
    CHECK(in_context(batch_line + batch_line, d) ==
          "sent as rows have them: response_format (2 rows), temperature (2 rows), "
          "tool_choice (2 rows), tools (2 rows); left out: model (2 rows), n (2 rows), "
          "stream (2 rows)");
    // What the options of all requests set is theirs.
    CHECK(in_context(batch_line, d, {"temperature", "tools"}) ==
          "sent as rows have them: response_format (1 row), tool_choice (1 row); left out: model "
          "(1 row), n (1 row), stream (1 row), temperature (1 row), tools (1 row)");
    // Of a line that is no request only what chat requests have is sent.
    const std::string line = R"({"id":"7","messages":[{"role":"user","content":"a"}],)"
                             R"("tools":[],"source":"x","prompt_id":4})" "\n";
    CHECK(all_in(line, d)[0].fields == R"(,"tools":[])");
    CHECK(in_context(line, d) ==
          "sent as rows have them: tools (1 row); left out: prompt_id (1 row), source (1 row)");
    CHECK(in_context(content_of("data/openai.jsonl"), d) == "left out: model (1 row)");
    // Numbers that no double holds keep their digits, wherever they stand.
    const std::string ids = R"({"logit_bias":{"7":-1},"seed":9007199254740993,"tools":[{"id": 12345678901234567890}],)";
    for (const std::string& text : {ids + R"("prompt":"q","temperature":0.5})",
                                    R"({"custom_id":"seed","body":)" + ids + R"("prompt":"q","temperature":0.5}})"})
        CHECK(all_in(text, d)[0].fields ==
              R"(,"logit_bias":{"7":-1},"seed":9007199254740993,"tools":[{"id": 12345678901234567890}])");
}

TEST_CASE("OpenAI JSONL: calls of tools are part of their messages") {
    const std::string line =
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,)"
        R"("tool_calls":[{"id":"c"}],"refusal":null,"audio":1},{"role":"tool","tool_call_id":"c",)"
        R"("content":"b"},{"role":"user","content":"d"},{"role":"assistant","content":"e"},)"
        R"({"role":"tool","content":"f"}]})" "\n";
    const auto read = all_in(line, {.format = openai_jsonl});
    REQUIRE(read[0].before.size() == 3);
    CHECK(read[0].before[1].fields == R"(,"tool_calls":[{"id":"c"}])");
    CHECK(read[0].before[1].content == "");
    CHECK(read[0].before[2].fields == R"(,"tool_call_id":"c")");
    CHECK(in_context(line, {.format = openai_jsonl}) ==
          "left out: audio of messages (1 row), messages behind the user's last (1 row)");
}

TEST_CASE("vLLM's own data sets: output_tokens, and an image for each prompt") {
    const dataset d = {.format = openai_jsonl};
    const auto read = all_in(R"({"prompt": "How many?", "image_files": ["a/b.jpg"], )"
                             R"("output_tokens": 12})" "\n", d);
    CHECK(read[0].turns[0].image == "a/b.jpg");
    CHECK(read[0].turns[0].output_tokens == 12);
    CHECK_REFUSED(refusal(R"({"prompt": "a", "image_files": ["a.jpg", "b.jpg"]})", d),
                  "file.json:1: ", "two images");
    CHECK_REFUSED(refusal(R"({"prompt": "a", "output_tokens": "NaN"})", d),
                  "file.json:1: output_tokens is \"NaN\"", "from 1 to 10000000");
    CHECK_REFUSED(refusal(R"({"prompt": "a", "temperature": "inf"})", d),
                  "file.json:1: temperature is \"inf\"", "from 0 to 10");
}

TEST_CASE("ShareGPT: LLaVA's rows are about an image, whose mark is no text") {
    const std::string row =
        R"([{"id":"1","image":"coco/a.jpg","model":"x","conversations":[{"from":"human",)"
        R"("value":"<image>\nWhat is this?"},{"from":"gpt","value":"A cat."},)"
        R"({"from":"human","value":"Where?"}]}])";
    const auto read = all_in(row, {.format = sharegpt});
    CHECK(read[0].turns[0].prompt == "What is this?");
    CHECK(read[0].turns[0].image == "coco/a.jpg");
    CHECK(in_context(row, {.format = sharegpt}) == "left out: model (1 row)");
    CHECK_REFUSED(refusal(row, {.format = sharegpt, .max_turns = 2}), "file.json:1: ",
                  "workload.max_turns = 1 is allowed");
}

TEST_CASE("images and parts of messages that cannot be sent are refused") {
    const dataset d = {.format = openai_jsonl};
    const auto with = [&](const std::string& part) {
        return refusal(R"({"messages":[{"role":"user","content":[)" + part + "]}]}", d);
    };
    CHECK_REFUSED(with(R"({"type":"input_audio"})"), "file.json:1: ", "\"input_audio\"",
                  "text and image_url are allowed");
    CHECK_REFUSED(with(R"({"type":"image_url","image_url":{"url":"https://x/a.png"}})"),
                  "file.json:1: ", "https://x/a.png", "a data: URL is allowed");
    CHECK_REFUSED(with(R"({"type":"image_url","image_url":7})"), "file.json:1: ", "url is missing");
    CHECK_REFUSED(with("7"), "file.json:1: ", "type is missing");
    CHECK_REFUSED(refusal(R"({"messages":[{"role":"user","content":[{"type":"image_url",)"
                          R"("image_url":"a.png"}]},{"role":"user","content":"b"}]})", d),
                  "file.json:1: ", "before the user's last message");
}

TEST_CASE("a file of another format is refused with the one that it looks like") {
    const std::string chats = "[\n{\"id\": 1,\n\"conversations\": []}]";
    CHECK_REFUSED(refusal(chats, {.format = openai_jsonl}), "it looks like a file of the format "
                  "sharegpt, and workload.format is openai_jsonl");
    CHECK_REFUSED(refusal(R"([{"id": 1, "conversations": []}])", {.format = openai_jsonl}),
                  "it looks like a file of the format sharegpt");
    CHECK_REFUSED(refusal(content_of("data/dolly.jsonl"), {.format = openai_jsonl}),
                  "it looks like a file of the format dolly");
    CHECK_REFUSED(refusal(content_of("data/openai.jsonl"), {.format = dolly}),
                  "it looks like a file of the format openai_jsonl");
    for (const char* other : {"", "hello", "{\"a\": 1}"})
        CHECK(refusal(other, {.format = openai_jsonl}).find("looks like") == std::string::npos);
    // Behind a row that was read it is that row's format.
    CHECK(refusal("{\"prompt\": \"a\"}\n{\"instruction\": 1}", {.format = openai_jsonl})
              .find("looks like") == std::string::npos);
}

TEST_CASE("COCO captions: an image for each caption, or questions about images") {
    const auto captions = all_in(content_of("data/captions.json"), {.format = coco_captions});
    REQUIRE(captions.size() == 3);
    CHECK(captions[0].turns[0].image == "green.png");
    CHECK(captions[1].turns[0].image == "blue.png");
    CHECK(captions[2].turns[0].image == "green.png");
    CHECK(captions[1].turns[0].output_tokens == 8);
    const auto asked = all_in(content_of("data/image_questions.jsonl"), {.format = coco_captions},
                              "image_questions.jsonl");
    REQUIRE(asked.size() == 2);
    CHECK(asked[1].turns[0].prompt == "Is this square green?");
    CHECK(asked[1].turns[0].image == "blue.png");
}

TEST_CASE("plain lines") {
    const auto lines = all_in(content_of("data/prompts.txt"), {.format = text_lines});
    REQUIRE(lines.size() == 6);
    CHECK(lines[5].turns[0].prompt == "Give me three names for a grey cat.");
    CHECK(lines[5].turns[0].output_tokens == 0);
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
                  open = {.format = openai_jsonl}, images = {.format = coco_captions};
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
    CHECK_REFUSED(refusal("", share), "it holds no prompts");
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
    // Deep brackets must not exhaust the stack.
    CHECK_REFUSED(refusal("[" + std::string(100000, '[') + std::string(100000, ']') + "]", share),
                  "its JSON nests deeper than 100 levels");
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
vector<int> sample(int n, const dataset& d, std::size_t most, std::uint64_t seed) {
    byte_stream in = stream_of(numbered(n), "f.txt", 4096);
    vector<int> out;
    for (const dialogue& x : dialogues::sample_of(in, d, most, seed))
        out.push_back(std::stoi(x.turns[0].prompt));
    return out;
}
}  // namespace

TEST_CASE("a sample holds each prompt at most once, in an order of its seed") {
    const dataset d = {.format = text_lines};
    const vector<int> some = sample(1000, d, 100, 1);
    CHECK(some.size() == 100);
    CHECK(std::set<int>(some.begin(), some.end()).size() == 100);
    CHECK(some == sample(1000, d, 100, 1));
    CHECK(some != sample(1000, d, 100, 2));
    CHECK_FALSE(std::is_sorted(some.begin(), some.end()));
    const vector<int> all = sample(50, d, 100, 1);
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
        const vector<dialogue> sample = sampler.take();
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
    const auto kept = dialogues::sample_of(
        in, {.format = text_lines, .min_prompt_tokens = 5, .max_prompt_tokens = 8}, 100, 1);
    std::set<std::size_t> lengths;
    for (const dialogue& d : kept) lengths.insert(d.turns[0].prompt.size() / 4);
    CHECK(lengths == std::set<std::size_t>{5, 6, 7, 8});
    byte_stream answers = stream_of("{\"prompt\": \"a\", \"output_tokens\": 5}\n"
                                    "{\"prompt\": \"b\", \"output_tokens\": 6}\n"
                                    "{\"prompt\": \"c\", \"output_tokens\": 9}\n");
    CHECK(dialogues::sample_of(
              answers, {.format = openai_jsonl, .min_output_tokens = 6, .max_output_tokens = 8}, 100, 1)
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
    const auto sample = dialogues::sample_of(in, {.format = sharegpt, .max_items = 100}, 0, 1);
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

TEST_CASE("a trace's prompts share blocks of the one size that all rows fit") {
    const auto row = [](int tokens, int blocks, int first = 1) {
        std::string ids;
        for (int i = 0; i < blocks; ++i) ids += (i > 0 ? "," : "") + std::to_string(first + i);
        return printed("{\"timestamp\":1,\"input_length\":%d,\"output_length\":5,\"hash_ids\":[", tokens) +
               ids + "]}\n";
    };
    const auto common = [](const std::string& text) {
        byte_stream in = stream_of(text, "trace");
        const recorded_trace t = read_trace(in);
        return std::pair{t.block_tokens, t.tree.common(t.prompts[0], t.prompts[1])};
    };
    // 320 tokens with 20 ids are blocks of 16: of 2 shared ones come 32 tokens, not 320.
    CHECK(common(row(320, 20) + row(32, 2) + row(320, 20)) == std::pair{16, 32});
    CHECK(common(row(1300, 3) + row(700, 2)) == std::pair{512, 700});
    CHECK(common(row(100, 2) + row(130, 3)) == std::pair{64, 100});
    CHECK(common(row(20064, 313) + row(29372, 458)) == std::pair{64, 20032});  // no partly full ones
    CHECK(common(row(30, 3) + row(31, 4)) == std::pair{10, 30});               // the only one
    CHECK(common(row(9, 1) + row(9, 0)) == std::pair{512, 0});
    CHECK_REFUSED(refusal_of_trace(row(1300, 3) + row(320, 20)), "trace:2: ", "input_length is 320",
                  "20 blocks", "ceil(input_length / size)");
    CHECK_REFUSED(refusal_of_trace(row(5, 7)), "trace:1: ", "input_length is 5", "7 blocks");
    CHECK_REFUSED(refusal_of_trace(row(3000, 30) + row(3030, 30)), "trace: ",
                  "do not show how many tokens a block has");
}

TEST_CASE("columns of a trace that are not read, and rows without an answer, are counted") {
    const auto left_out = [](const std::string& text) {
        byte_stream in = stream_of(text, "trace");
        const recorded_trace t = read_trace(in);
        return t.fields.text() + printed("; %lld", t.left_out);
    };
    CHECK(left_out("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
                   "2024-10-15 00:00:00.1,0,5,5\n2024-10-15 00:00:00.2,2,9,5\n") ==
          "left out: NumImages (1 row); 0");
    CHECK(left_out(content_of("data/burstgpt.csv")) ==
          "left out: Log Type (10 rows), Model (10 rows); 1");
    CHECK(left_out("{\"timestamp\":1,\"input_length\":5,\"output_length\":5,\"type\":\"image\",\"x\":null}\n"
                   "{\"timestamp\":2,\"input_length\":5,\"output_length\":0,\"type\":\"text\"}") ==
          "left out: type (1 row); 1");
}

TEST_CASE("a packed file is refused as what it is, by its first bytes") {
    using namespace std::string_literals;
    for (const auto& [bytes, name] : {std::pair{"\x1F\x8B\x08\0\0"s, "gzip"}, std::pair{"\x28\xB5\x2F\xFD\x24"s, "zstd"},
                                      std::pair{"PK\x03\x04"s, "ZIP"}, std::pair{"\xFF\xFET\0"s, "UTF-16"}}) {
        CHECK_REFUSED(texts::refusal_of([&, b = bytes] { stream_of(b, "t.csv"); }), "t.csv:1: this is ", name);
        CHECK(texts::holds(why_no_text(bytes), name));
    }
    CHECK(why_no_text("PK") == "");
}

TEST_CASE("rows are read alike from a list and from lines, whatever the file's name ends in") {
    const std::string a = R"({"timestamp":1,"input_length":5,"output_length":5})",
                      b = R"({"timestamp":1,"input_length":6,"output_length":5})";
    for (const std::string& text : {a + "\n" + b, "[" + a + ",\n" + b + "]\n", texts::replaced(a, "{", "{\n ") + b}) {
        byte_stream in = stream_of(text, "trace.csv");
        CHECK(read_trace(in).rows.size() == 2);
    }
    CHECK_REFUSED(refusal_of_trace("[" + a + "," + b), "trace:1: ", "']' is expected here");
    CHECK_REFUSED(refusal_of_trace(a + ",\n" + b), "trace:1: a JSON value is expected here");
    const std::string row = R"({"id":"1","conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]})";
    const std::string openai = R"({"prompt":"q","output_tokens":7})", coco = R"({"image":"a.jpg","question":"q"})";
    for (const auto& [format, one] : {std::pair{sharegpt, row}, std::pair{openai_jsonl, openai}, std::pair{coco_captions, coco},
                                      std::pair{dolly, std::string(R"({"instruction":"q","response":"a"})")}})
        for (const std::string& text : {one + "\n" + one + "\n", "[" + one + ",\n" + one + "]"})
            for (const char* name : {"rows.json", "rows.jsonl"}) {
                dataset d{.path = name, .format = format};
                byte_stream in = stream_of(text, name);
                CHECK(dialogues::sample_of(in, d, 100, 1).size() == 2);
            }
    // A conversation that is longer than what shows of a file, and lists in an object.
    const std::string longer = texts::replaced(row, "\"q\"", '"' + std::string(9000, 'q') + '"');
    for (const std::string& text : {longer + "\n" + row, "{\"data\":[" + row + "," + longer + "]}"}) {
        byte_stream in = stream_of(text, "rows.json");
        CHECK(dialogues::sample_of(in, dataset{.path = "rows.json"}, 100, 1).size() == 2);
    }
}

TEST_CASE("dates are counted through months, years and leap days") {
    CHECK(std::isnan(seconds_of_date("2024-03-01 24:00:00")));
    const double day = 86400;
    CHECK(seconds_of_date("2024-03-01 00:00:00") - seconds_of_date("2024-02-28 00:00:00") == 2 * day);
    CHECK(seconds_of_date("2023-03-01 00:00:00") - seconds_of_date("2023-02-28 00:00:00") == day);
    CHECK(seconds_of_date("2024-01-01 00:00:00") - seconds_of_date("2023-01-01 00:00:00") ==
          365 * day);
    CHECK(seconds_of_date("2023-11-16T18:15:46.25+00:00") -
              seconds_of_date("2023-11-16 18:15:45.75") == Approx(0.5));
    for (const char* same : {"2023-11-16 18:15:46Z", "2023-11-16T18:15:46+00:00", "2023-11-16 20:15:46+0200",
                             "2023-11-16T12:45:46-05:30", "2023-11-17 03:15:46 +09", "2023-11-16 18:15:46 UTC"})
        CHECK(seconds_of_date(same) == seconds_of_date("2023-11-16 18:15:46"));
    for (const char* none : {"", "2023", "2023-11-16 18:15:46 CET", "2023-11-16 18:15:46+2", "2023-13-01 00:00:00", "2023-11-16", "16.11.2023 00:00:00",
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

TEST_CASE("a trace in another unit than its format's is refused until somebody says which") {
    const auto lines = [](double unit, int n, double first = 0) {
        std::string all;
        for (int i = 0; i < n; ++i)
            all += "{\"timestamp\":" + json_number(first + i * unit) +
                   ",\"input_length\":5,\"output_length\":5}\n";
        return all;
    };
    // 15 requests in 15 seconds: in seconds, their halves, and as the format has them.
    CHECK_REFUSED(refusal_of_trace(lines(1, 15)), "trace: 15 requests in 0.014 s",
                  "over 1000 a second", "replay(...).unit(1_s)", ".unit(1_ms)");
    CHECK_REFUSED(refusal_of_trace(lines(0.5, 15)), "trace:2: timestamp is 0.5",
                  "a fraction of a millisecond", "replay(...).unit(1_s)");
    CHECK(refusal_of_trace(lines(1000, 15)) == "");
    CHECK(refusal_of_trace(lines(0, 15)) == "");  // all at once
    const auto last = [](const std::string& text, double unit_s) {
        byte_stream in = stream_of(text, "trace");
        return read_trace(in, unit_s).rows.back().at_s;
    };
    CHECK(last(lines(1, 15, 1.7e9), 1) == Approx(14));
    CHECK(last(lines(0.5, 15), 1) == Approx(7));
    CHECK(last(lines(1, 15), 1e-3) == Approx(0.014));
    CHECK(last("Timestamp,Request tokens,Response tokens\n5,1,1\n9,2,1\n", 1e-3) ==
          Approx(0.004));
    const std::string dates = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                              "2023-11-16 18:15:46,5,5\n2023-11-16 18:15:49,5,5\n";
    CHECK(last(dates, 1e-3) == Approx(3));
}
