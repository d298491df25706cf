// A server's words in summary.md, which is a comment on a pull request: nobody is mentioned, no issue
// is referred to, nothing is linked.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "virtual/scripted_server.hpp"

#include <string>

using namespace llmbench;
using namespace live;

namespace {
/// Words that GitHub would act on, with a tag that tells where they came from.
std::string acting(const std::string& tag) {
    return tag + " @you/team #12 me/it#3 GH-4 https://evil.example/" + tag + " www.evil.example m@il.x $x$";
}
/// Words of summary.md that would act. A fully quoted tag tells that the words are there at all.
void check_summary(std::initializer_list<const char*> tags) {
    const std::string md = content_of(report_file("summary.md"));
    CAPTURE(md);
    for (const char* tag : tags) {
        CAPTURE(tag);
        CHECK(holds(md, tag));
    }
    const std::string seen = texts::outside_of_code(
        md.substr(0, md.find("### ")) + texts::replaced(md.substr(md.find("### ")), "### ", ""));
    for (const char* live : {"@", "#12", "#3", "GH-4", "://", "www.", "$x"}) {
        CAPTURE(live);
        CHECK(!holds(seen, live));
    }
}
}  // namespace

TEST_CASE("no words of a server act in a comment: errors, ends, models, versions, headers, metrics") {
    const scripted::server server([n = 0](const scripted::request&) mutable -> scripted::answer {
        const auto failing = [](const std::string& body) {
            return scripted::send(scripted::json("500 Internal Server Error", body));
        };
        const std::string said = R"({"error":{"message":")";
        switch (n++ % 8) {
        case 0: return {failing(said + acting("failed") + "\"}}")};
        case 1: return {scripted::send(scripted::sized_stream(scripted::chat_chunk("a") +
                                                              scripted::sse_event(said + acting("midway") + "\"}}")))};
        case 2: return {scripted::send(scripted::sized("200 OK", acting("typed"), "a"))};
        case 3: return {scripted::send(acting("bare") + "\r\n"), scripted::close()};
        default:
            return {scripted::send(scripted::sized_stream(
                scripted::chat_chunk("a") + scripted::finish(acting("ended")) + scripted::usage(5, 1) +
                    scripted::done(), "Server: " + acting("header") + "\r\n"))};
        }
    });
    server.list_model(acting("model"));
    server.report([](const scripted::request&) {
        return "# HELP x " + acting("help") + "\nvllm:num_requests_running{model_name=\"" + acting("label") +
               "\"} 1\n" + acting("broken") + " 1\n";
    });
    scenario s = asking(endpoint{.url = server.url()}, 40);
    s.repeats = 2;
    s.slos = {p90(ttft) <= 1_s, max(server_metric("acting")) <= 1, mean(tpot) <= 1_s};
    heard_of(s);
    check_summary({"ended", "failed", "midway", "typed", "broken"});
}

TEST_CASE("nor do those of a list of models, or of an answer to the check") {
    const scripted::server server;
    server.list_model(acting("listed"));
    server.answer_check({scripted::send(scripted::json(
        "422 Unprocessable", R"({"error":{"message":")" + acting("refused") + "\"}}"))});
    refusal_of(asking(endpoint{.url = server.url(), .model = "another"}));
    check_summary({"list of models"});
}
