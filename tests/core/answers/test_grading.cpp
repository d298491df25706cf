// Whether an answer is right: each grade, and the answers that fool graders.
#include "llmbench.hpp"
#include "extensions/answers/core/questions.hpp"
#include "core/base/json.hpp"

#include "support/texts.hpp"

#include <map>
#include <memory>
#include <sstream>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

std::string number_read(const std::string& text) {
    return graded(text, {.by = last_number, .key = "42"}).read;
}
graded_as by_number(const std::string& text, const std::string& key) {
    return graded(text, {.by = last_number, .key = key}).is;
}
std::string letter_read(const std::string& text, int choices = 4) {
    return graded(text, {.by = choice, .key = "B", .choices = choices}).read;
}

}  // namespace

TEST_CASE("what can be read in no way, or in several, is nothing") {
    CHECK(number_read("2 and 3,4").empty());  // a list or a decimal comma: nobody can say
    CHECK(number_read("5-3") == "3");         // a difference, and no sign
    CHECK(number_read("#### 7\nno: #### 8") == "8");
    CHECK(number_read("first 5, then ####") == "5");
    CHECK(by_number("nan", "42") == graded_as::unreadable);
    CHECK(by_number("inf 0x", "0") == graded_as::right);  // of which 0 is the last number
    CHECK(by_number(std::string(400, '9'), "42") != graded_as::right);
    CHECK(letter_read("A or B").empty());
    CHECK(letter_read("The answer is E", 4).empty());
    CHECK(letter_read("The answer is E", 5) == "E");
    CHECK(letter_read("Because apples do. Can't say").empty());
    CHECK(graded("dogs", {.by = choice, .key = "B", .choices = 4}).is == graded_as::unreadable);
}

// tests/data/answer_forms.jsonl has ways in which models write an answer, what is truly right, and
// which of them are known to be missed. The guide publishes the shares.
TEST_CASE("answers as models write them are read right, but for those that are known to be missed") {
    struct share { int right = 0, of = 0, fooled = 0, wrong = 0; };
    std::map<std::string, share> shares;
    std::istringstream lines(texts::content_of("data/answer_forms.jsonl"));
    for (std::string line; std::getline(lines, line);) {
        picojson::value v;
        REQUIRE_MESSAGE(parse_json(line, v), line);
        const std::string by = string_member(v, "grade");
        const bool is_right = true_member(v, "right");
        const answer_key wanted{.by = by == "choice" ? choice : by == "exact" ? exact : last_number,
                                .key = string_member(v, "key"), .choices = 4};
        const graded_answer g = graded(string_member(v, "answer"), wanted);
        const bool is_taken = g.is == graded_as::right;
        INFO(line << ": read as \"" << g.read << "\"");
        CHECK((is_taken == is_right) != true_member(v, "missed"));
        share& s = shares[by];
        ++(is_right ? s.of : s.wrong);
        if (is_taken) ++(is_right ? s.right : s.fooled);
    }
    const std::string guide = texts::content_of("../guides/answers.md");
    for (const auto& [by, s] : shares) {
        const std::string row = printed("| `%s` | %d of %d | %d of %d |", by.c_str(), s.right, s.of,
                                        s.fooled, s.wrong);
        INFO("guides/answers.md, under Right answers, lacks the row " << row);
        CHECK(texts::holds(guide, row));
    }
}

TEST_CASE("a model that thinks and never answers is unreadable, whatever grades it") {
    for (const answer_grade by : {exact, last_number, choice})
        CHECK(graded("", {.by = by, .key = "4", .choices = 4}).is == graded_as::unreadable);
}

TEST_CASE("a function of the gate's says whether an answer is right, or that it cannot be read") {
    const auto by = [](const answer_grader& g, const std::string& said) {
        return graded(said, {.key = "4", .own = std::make_shared<const answer_grader>(g)});
    };
    const answer_grader ends = [](std::string_view answer, std::string_view key) {
        return answer.ends_with(key);
    };
    CHECK(by(ends, " it is 4\n").is == graded_as::right);
    CHECK(by(ends, "it is 4").read == "it is 4");
    CHECK(by(ends, "4 it is").is == graded_as::wrong);
    CHECK(by(ends, " ").is == graded_as::unreadable);  // nothing was said
    const std::string mark = "####";
    const answer_grader marked = [mark](const std::string& answer,
                                        const std::string& key) -> types::maybe<bool> {
        const std::size_t at = answer.rfind(mark);
        if (at == std::string::npos) return {};
        return answer.substr(at + mark.size()) == key;
    };
    CHECK(by(marked, "####4").is == graded_as::right);
    CHECK(by(marked, "####5").is == graded_as::wrong);
    CHECK(by(marked, "4").is == graded_as::unreadable);
}
