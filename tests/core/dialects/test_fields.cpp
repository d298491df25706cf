// Each row of data/fields.tsv: what a server sends, and what is read there.
#include "core/answers/answer_reader.hpp"
#include "core/dialects/table.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

using cells = std::vector<std::string>;

/// The rows under a heading.
std::vector<cells> rows_under(const std::string& heading) {
    std::ifstream in("data/fields.tsv");
    std::vector<cells> rows;
    bool inside = false;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("## ")) inside = line == "## " + heading;
        if (!inside || line.empty() || line.starts_with("#")) continue;
        cells& row = rows.emplace_back();
        for (std::size_t at = 0, end = 0; end < line.size(); at = end + 1) {
            end = std::min(line.find('\t', at), line.size());
            row.push_back(line.substr(at, end - at));
        }
    }
    return rows;
}
const api_traits& dialect(const std::string& name) {
    const api_traits* a = api_named(name.empty() ? "openai_chat" : name);
    REQUIRE(a);
    return *a;
}
stream_event event_of(const api_traits& a, std::string data) {
    stream_memory memory{.asked = {.is_kept = true}};
    if (a.read == read_openai && data.find("\"usage\"") == std::string::npos)
        data = R"({"choices":[{"index":0,"delta":)" + data + "}]}";
    json_reader json;
    return read_json_event("", data, json.read(data), a.read, memory);
}
std::string kind_of(const stream_event& e) {
    if (e.malformed) return "refused";
    if (!e.error.empty()) return "failure";
    if (!e.content)
        return std::string("nothing") + (e.hides_thought ? ", hidden thought" : e.has_media ? ", media" : "");
    return e.text_bytes >= stream_event::call_bytes ? "call" : e.answer ? "text" : "reasoning";
}
std::string shown(int n) { return n < 0 ? "" : std::to_string(n); }

}  // namespace

TEST_CASE("each field of a delta is read as the table of fields says") {
    const std::vector<cells> rows = rows_under("Output");
    CHECK(rows.size() > 60);
    for (const cells& row : rows) {
        CAPTURE(row[2]);
        REQUIRE(row.size() == 4);
        const stream_event e = event_of(dialect(row[1]), row[2]);
        const std::size_t of = row[3].find(" of ");
        CHECK(kind_of(e) == row[3].substr(0, of));
        if (of != std::string::npos)
            CHECK(std::to_string(e.text_bytes) + " bytes" == row[3].substr(of + 4));
    }
}

TEST_CASE("each usage is read as the table of fields says") {
    const std::vector<cells> rows = rows_under("Usage");
    CHECK(rows.size() > 20);
    for (const cells& row : rows) {
        REQUIRE(row.size() == 8);
        CAPTURE(row[3]);
        stream_timeline timeline;
        timeline.reset({.expects_usage = true});
        for (int i = 0; i < 40; ++i) {
            stream_event word;
            word.take(" word", row[2] == "thinks" && i < 20 ? taken_as::thought : taken_as::text);
            timeline.on_event(word, 1'000'000 * (i + 1));
        }
        timeline.on_event(event_of(dialect(row[1]), row[3]), 50'000'000);
        record r;
        timeline.write_to(r);
        CHECK((r.prompt_tokens > 0 ? std::to_string(r.prompt_tokens) : "") == row[4]);
        CHECK(shown(r.cached_tokens) == row[5]);
        CHECK(shown(r.output_tokens) == row[6]);
        CHECK((r.hidden_tokens == 0 ? "" : std::to_string(r.hidden_tokens)) == row[7]);
        CHECK(r.token_source == token_origin::usage);
    }
}

TEST_CASE("each finish reason is read as the table of fields says") {
    const std::vector<cells> rows = rows_under("Ends");
    CHECK(rows.size() > 25);
    for (const cells& row : rows) {
        REQUIRE(row.size() == 3);
        CAPTURE(row[1]);
        const std::string reason = finish_reason_of(row[1]);
        CHECK((stream_event::is_failure(reason)    ? "failure"
               : stream_event::is_filtered(reason) ? "filtered"
               : reason.empty()                    ? "nothing"
                                                   : reason) == row[2]);
    }
}
