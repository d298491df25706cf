// What each request says and asks for: lengths, words, prefixes.
#include "llmbench.hpp"
#include "core/traffic/requests.hpp"
#include "core/planning/planning.hpp"
#include "support/scenarios.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <utility>

using namespace llmbench;
using namespace llmbench::detail;
using namespace scenarios;
using doctest::Approx;

namespace {

std::size_t common_words(const std::string& a, const std::string& b) {
    const auto x = words(a), y = words(b);
    std::size_t n = 0;
    while (n < std::min(x.size(), y.size()) && x[n] == y[n]) ++n;
    return n;
}
/// Tokens of a text: words of over `longest` letters are two, and the text has one more before it.
auto counting(std::size_t longest, int before) {
    return [=](const std::string& text) {
        int n = before;
        for (const std::string& w : words(text)) n += w.size() > longest ? 2 : 1;
        return n;
    };
}
int unreported(const std::string&) { return -1; }
using quality = token_fit::quality;

}  // namespace

TEST_CASE("a request asks for the lengths of its place in the trace, in every repeat and arm") {
    const plan p = traffic();
    for (std::size_t i = 0; i < 50; ++i) {
        const trace_item item = item_of(p, i);
        CHECK((item.prompt_tokens >= 20 && item.prompt_tokens <= 60));
        for (const int repeat : {0, 1, 7})
            for (const run_variant variant : {run_variant::candidate, run_variant::baseline}) {
                const request_spec r = request_of(p, variant, repeat, i);
                CHECK(words(r.prompt).size() == static_cast<std::size_t>(item.prompt_tokens));
                CHECK(r.max_tokens == item.output_tokens);
                CHECK(r.force_length);
            }
    }
}

TEST_CASE("no two repeats, arms, seeds or places share the start of a prompt") {
    // Sixty-four words: two prompts agree in the first one by chance once in 64 times, and in a
    // prefix cache's block of 16 tokens never.
    const plan p = traffic(), other_seed = traffic(2);
    int pairs = 0, same_first_word = 0;
    std::size_t longest = 0;
    const auto compare = [&](const request_spec& a, const request_spec& b) {
        const std::size_t common = common_words(a.prompt, b.prompt);
        ++pairs;
        same_first_word += common > 0;
        longest = std::max(longest, common);
    };
    for (std::size_t i = 0; i < 300; ++i) {
        const request_spec base = request_of(p, run_variant::candidate, 0, i);
        compare(base, request_of(p, run_variant::candidate, 1, i));
        compare(base, request_of(p, run_variant::baseline, 0, i));
        compare(request_of(p, run_variant::baseline, 0, i), request_of(p, run_variant::candidate, 1, i));
        compare(base, request_of(other_seed, run_variant::candidate, 0, i));
        compare(base, request_of(p, run_variant::candidate, 0, i + 1));
    }
    CHECK(pairs == 1500);
    CHECK(same_first_word < pairs / 20);
    CHECK(longest <= 4);
}

TEST_CASE("prompts are exact in tokens where the server tells which words are one token") {
    int asked = 0;
    const auto count = counting(3, 1), with_template = counting(3, 12);
    const token_fit fit = fitted_tokens([&](const std::string& t) { ++asked; return count(t); },
                                        with_template);
    CHECK(fit.lengths == quality::exact);
    CHECK(fit.words.size() >= 30);
    CHECK(fit.words.size() < std::size(prompt_words));
    CHECK(fit.overhead == 12);
    CHECK(asked < 2 * static_cast<int>(std::size(prompt_words)));
    const plan p = traffic();
    for (std::size_t i = 0; i < 300; ++i)
        for (const run_variant variant : {run_variant::candidate, run_variant::baseline})
            for (const int repeat : {0, 1, 7})
                REQUIRE(with_template(request_of(p, variant, repeat, i, {}, fit).prompt) ==
                        item_of(p, i).prompt_tokens);
    CHECK(request_of(p, run_variant::candidate, 0, 3, {}, fit).prompt !=
          request_of(p, run_variant::candidate, 1, 3, {}, fit).prompt);
    // A word at least, however long the template.
    const plan tiny = traffic(1, {.prompt_tokens = fixed(5)});
    CHECK(with_template(request_of(tiny, run_variant::candidate, 0, 0, {}, fit).prompt) == 13);
    // Lengths are called exact as far down as they are.
    CHECK(fit_text(fit, 13).find("prompt lengths exact in tokens: ") == 0);
    CHECK(fit_text(fit, shortest_prompt(tiny))
              .find("prompt lengths exact in tokens from 13 on (5 are asked for): ") == 0);
    // A shared prefix keeps its words, and the whole its length.
    const plan shared = traffic(1, {.prompt_tokens = uniform(50, 60), .shared_prefix = fixed(32)});
    const std::string first = request_of(shared, run_variant::candidate, 0, 0, {}, fit).prompt;
    for (std::size_t i = 1; i < 20; ++i) {
        const std::string s = request_of(shared, run_variant::candidate, 0, i, {}, fit).prompt;
        CHECK(with_template(s) == item_of(shared, i).prompt_tokens);
        CHECK(common_words(first, s) >= 32);
        CHECK(common_words(first, s) < 36);
    }
}

TEST_CASE("one question tells that every word is one token") {
    int asked = 0;
    const auto found = one_token_vocabulary([&](const std::string& t) {
        ++asked;
        return counting(100, 1)(t);
    });
    CHECK(found.size() == std::size(prompt_words));
    CHECK(asked == 2);
}

TEST_CASE("usage alone makes prompt lengths right on the average, or exact") {
    for (const std::size_t longest : {100u, 3u, 2u}) {
        const auto count = counting(longest, 12);
        int asked = 0;
        const token_fit exact =
            fitted_tokens(unreported, [&](const std::string& t) { ++asked; return count(t); });
        CHECK(exact.lengths == quality::exact);
        CHECK(exact.overhead == 12);
        CHECK(asked <= (longest == 100 ? 2 : longest == 3 ? 40 : 100));  // within 5 s in all
        CHECK(exact.words.size() >= 16);
        for (const std::size_t i : exact.words) CHECK(std::strlen(prompt_words[i]) <= longest);
    }
    const auto count = [](const std::string& text) { return static_cast<int>(text.size()) + 12; };
    const token_fit fit = fitted_tokens(unreported, count);
    CHECK(fit.lengths == quality::average);
    CHECK(fit.per_word > 3);
    CHECK(fit.overhead == doctest::Approx(12).epsilon(0.1));
    const plan p = traffic(1, {.prompt_tokens = fixed(200)});
    double sum = 0;
    for (std::size_t i = 0; i < 200; ++i)
        sum += count(request_of(p, run_variant::candidate, 0, i, {}, fit).prompt);
    CHECK(sum / 200 == doctest::Approx(200).epsilon(0.01));
}

TEST_CASE("lists of token ids are prompts where each is one token, and only there") {
    const auto count = [](const std::string& ids) {
        return 2 + static_cast<int>(std::count(ids.begin(), ids.end(), ' '));
    };
    const token_fit fit = fitted_ids(count);
    CHECK(fit.lengths == quality::exact);
    CHECK(fit.overhead == 1);
    const plan p = traffic(1, {.prompt_tokens = uniform(20, 60), .shared_prefix = fixed(16)});
    std::set<std::string> prompts;
    for (std::size_t i = 0; i < 50; ++i) {
        const request_spec r = request_of(p, run_variant::candidate, 0, i, {}, fit);
        picojson::value ids;
        REQUIRE(parse_json(r.token_ids, ids));
        REQUIRE(ids.is<picojson::array>());
        CHECK(ids.get<picojson::array>().size() + 1 ==
              static_cast<std::size_t>(item_of(p, i).prompt_tokens));
        for (const picojson::value& id : ids.get<picojson::array>()) {
            CHECK(id.get<double>() >= first_token_id);
            CHECK(id.get<double>() < first_token_id + std::size(prompt_words));
        }
        prompts.insert(r.token_ids);
        prompts.insert(request_of(p, run_variant::candidate, 1, i, {}, fit).token_ids);
    }
    CHECK(prompts.size() == 100);
    CHECK_FALSE(fitted_ids(unreported).as_ids);
    CHECK_FALSE(fitted_ids(counting(100, 1)).words.empty());
    // A server that reads the list as text.
    CHECK_FALSE(fitted_ids([](const std::string& ids) { return static_cast<int>(ids.size()); }).as_ids);
}

TEST_CASE("token ids are of the whole vocabulary as far as a tokenizer shows it") {
    std::set<std::size_t> asked;
    const auto count = [&](const std::string& ids) {
        std::istringstream all(ids);
        int n = 1;
        for (std::size_t id = 0; all >> id; ++n) asked.insert(id);
        return n;
    };
    const token_fit fit = fitted_ids(count, 150000);
    CHECK(fit.as_ids);
    CHECK(*asked.begin() == first_token_id);
    CHECK(*asked.rbegin() == 150000);
    CHECK(fit_text(fit) ==
          "prompt lengths exact in tokens: lists of token ids from 2000 to 150000, 1 around a prompt");
    const plan p = traffic(1, {.prompt_tokens = fixed(101)});
    std::set<double> sent;
    for (std::size_t i = 0; i < 50; ++i) {
        picojson::value ids;
        REQUIRE(parse_json(request_of(p, run_variant::candidate, 0, i, {}, fit).token_ids, ids));
        REQUIRE(ids.get<picojson::array>().size() == 100);
        for (const picojson::value& id : ids.get<picojson::array>()) sent.insert(id.get<double>());
    }
    CHECK(*sent.begin() >= 2000);
    CHECK(*sent.begin() < 4000);
    CHECK(*sent.rbegin() > 148000);
    CHECK(*sent.rbegin() <= 150000);
    CHECK(sent.size() > 4800);  // of 5000 draws
}

TEST_CASE("ids are not taken from where a server does not count each as one token") {
    const auto count = [](const std::string& ids) {  // knows those below 30000
        std::istringstream all(ids);
        int n = 0;
        for (std::size_t id = 0; all >> id;) n += id < 30000;
        return n;
    };
    CHECK(fitted_ids(count, 29999).last_id == 29999);
    CHECK(fitted_ids(count, 31000).last_id == 0);
    CHECK(fitted_ids(count, 31000).as_ids);
    CHECK(fitted_ids(count, 1999).last_id == 0);  // a tiny vocabulary, whose ids the first look took
    CHECK(fitted_ids(count).last_id == 0);
}

TEST_CASE("the text that shows a vocabulary is well-formed, of one to three bytes a character") {
    const std::string text = text_of_many_scripts();
    std::size_t characters = 0;
    for (std::size_t i = 0; i < text.size(); ++characters) {
        REQUIRE(utf8_length(text, i) > 1);
        i += utf8_length(text, i);
    }
    CHECK(characters > 800);
    CHECK(characters < 2000);
}

TEST_CASE("too few words of one token are not enough for prompts") {
    const token_fit fit = fitted_tokens(counting(1, 1), counting(1, 12));
    CHECK(fit.lengths == quality::average);
    CHECK(fit.words.size() == std::size(prompt_words));
    CHECK(fit.per_word == 2);
}

TEST_CASE("counts that cannot be of the prompt are not believed") {
    const auto unknown = [](auto&& of_prompt) {
        const token_fit fit = fitted_tokens(unreported, of_prompt);
        CHECK(fit.lengths == quality::unknown);
        CHECK(fit.words.empty());
        const plan p = traffic();
        CHECK(request_of(p, run_variant::candidate, 1, 5, {}, fit).prompt ==
              request_of(p, run_variant::candidate, 1, 5).prompt);
    };
    unknown(unreported);
    unknown([](const std::string&) { return 5; });   // the same for every prompt
    unknown([](const std::string&) { return 0; });
    unknown([n = 70](const std::string&) mutable { return n += 30; });  // cached ones left out
    unknown([n = 0](const std::string&) mutable { return n += 5000; });
    // It stopped telling half-way.
    unknown([n = 0](const std::string&) mutable { return n++ == 0 ? 80 : -1; });
}

TEST_CASE("messages of conversations are exact in tokens, too") {
    const auto count = counting(3, 0);
    const token_fit fit = fitted_tokens(counting(3, 1), counting(3, 12));
    const plan p = planned({.workload = conversations{.user_tokens = uniform(5, 40),
                                                      .system_tokens = fixed(30)},
                            .arrivals = poisson(8_rps),
                            .requests = 20},
                           1);
    for (std::size_t i = 0; i < 2 * p.sent->stride; ++i) {
        const request_spec r = request_of(p, run_variant::candidate, 0, i, {}, fit);
        CHECK(count(r.prompt) == item_of(p, i).prompt_tokens);
        CHECK(count(r.system_prompt) == 30);
    }
}

TEST_CASE("a shared prefix is common to one repeat of one arm and to nothing else") {
    const plan p = traffic(1, {.prompt_tokens = uniform(40, 60), .shared_prefix = fixed(32)});
    const request_spec first = request_of(p, run_variant::candidate, 0, 0);
    std::size_t longest = 0;
    for (std::size_t i = 1; i < 50; ++i) {
        const request_spec r = request_of(p, run_variant::candidate, 0, i);
        const std::size_t common = common_words(first.prompt, r.prompt);
        CHECK(common >= 32);
        longest = std::max(longest, common);
        CHECK(words(r.prompt).size() == static_cast<std::size_t>(item_of(p, i).prompt_tokens));
        CHECK(common_words(r.prompt, request_of(p, run_variant::candidate, 1, i).prompt) < 4);
        CHECK(common_words(r.prompt, request_of(p, run_variant::baseline, 0, i).prompt) < 4);
    }
    CHECK(longest < 36);
}

TEST_CASE("a shared prefix longer than a prompt is cut to the prompt") {
    const plan p = traffic(1, {.prompt_tokens = uniform(5, 10), .shared_prefix = fixed(100)});
    const std::string longest_prompt = [&] {
        std::string best;
        for (std::size_t i = 0; i < 50; ++i) {
            const std::string s = request_of(p, run_variant::candidate, 0, i).prompt;
            if (s.size() > best.size()) best = s;
        }
        return best;
    }();
    for (std::size_t i = 0; i < 50; ++i) {
        const std::string s = request_of(p, run_variant::candidate, 0, i).prompt;
        CHECK(words(s).size() == static_cast<std::size_t>(item_of(p, i).prompt_tokens));
        CHECK(longest_prompt.substr(0, s.size()) == s);
    }
}

TEST_CASE("given prompts are sent in turn and as they are") {
    scenario s = {.workload = prompts({"one", "two", "three"}),
                  .requests = 30,
                  .options = {.max_tokens = 9,
                              .temperature = 0.0,
                              .system_prompt = "be brief",
                              .ignore_eos = true,
                              .extra_body = "{\"top_k\":1}"}};
    const plan p = planned(s, 1);
    for (const int repeat : {0, 1}) {
        CHECK(request_of(p, run_variant::candidate, repeat, 0).prompt == "one");
        CHECK(request_of(p, run_variant::baseline, repeat, 1).prompt == "two");
        CHECK(request_of(p, run_variant::candidate, repeat, 5).prompt == "three");
    }
    const request_spec r = request_of(p, run_variant::candidate, 0, 0);
    CHECK(r.max_tokens == 9);
    CHECK(r.temperature == 0);
    CHECK(r.system_prompt == "be brief");
    CHECK(r.force_length);
    CHECK(r.extra_fields == ",\"top_k\":1");
}
