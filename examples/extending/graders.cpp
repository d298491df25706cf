// A grader of your own: a function that holds an answer against its key.
//
// Both come as text of whatever kind the function takes. The answer is what follows the reasoning,
// without the space around it, and is never empty; the key is `answer` of the file's line as it
// stands there, and of an object or a list its JSON. The function gives a bool, or a
// `types::maybe<bool>`: one without a value says that nothing could be read, which counts as wrong
// and is told apart. It is called by several threads at once. An expression that backtracks may
// take years on an answer of some thousand bytes: cut it, and write one that does not.
#define LLMBENCH_MAIN
#include "llmbench.hpp"
#include "llmbench_answers.hpp"

#include <algorithm>
#include <regex>
#include <string>

#include <picojson.h>

using namespace llmbench;

namespace {

const std::string here = __FILE__;
const std::string sums = here.substr(0, here.rfind('/') + 1) + "../../tests/data/arithmetic.jsonl";

// By an expression: the last number of both.
types::maybe<bool> same_last_number(const std::string& answer, const std::string& key) {
    static const std::regex number("-?[0-9]+");
    const auto last = [](const std::string& text) {
        std::string found;
        for (std::sregex_iterator i(text.begin(), text.end(), number), end; i != end; ++i)
            found = i->str();
        return found;
    };
    const std::string end = answer.substr(answer.size() - std::min<std::size_t>(answer.size(), 4096));
    if (last(end).empty()) return {};
    return last(end) == last(key);
}

// By a library of JSON: an object that has all that the key has, such as
// {"question": "...", "answer": {"city": "Paris", "country": "France"}}.
types::maybe<bool> has_all_of(const std::string& answer, const std::string& key) {
    picojson::value said, wanted;
    if (!picojson::parse(said, answer).empty() || !said.is<picojson::object>()) return {};
    picojson::parse(wanted, key);
    for (const auto& [name, value] : wanted.get<picojson::object>())
        if (!said.contains(name) || said.get(name) != value) return false;
    return true;
}

}  // namespace

TEST_CASE("sums are right by their last number") {
    gate({
        .workload = questions{.path = sums, .format = gsm8k, .grade = same_last_number, .max_items = 60},
        .arrivals = closed_loop(8),
        .slos = {accuracy >= 90_pct},
        .options = {.max_tokens = 512},
    });
}

TEST_CASE("an object is held against what it must have") {
    const questions cities{.path = "cities.jsonl", .grade = has_all_of};
    const auto is_right = [&](const char* answer) {
        return cities.grade(answer, R"({"city":"Paris"})");
    };
    CHECK(*is_right(R"({"city": "Paris", "people": 2100000})"));
    CHECK(!*is_right(R"({"city": "Rome"})"));
    CHECK(!is_right("Paris, of course"));  // nothing that can be read
}
