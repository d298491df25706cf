// Three reports of your own. A report is a function that gets the contents of the program's files, and is
// called once, after they are written. `r.result` has the gates with their verdicts, `r.json` is
// result.json, `r.directory` the report directory. A function that throws ends the program with 3. A chat
// that does not answer changes no verdict: post() tells it in one line, and waits for 5 seconds at most.
//   write_news       news.md, for a comment or an issue: only objectives that are worse than on main
//   tell_chat        the same to the webhook of a chat (Slack, Mattermost, Teams): CHAT_WEBHOOK
//   feed_dashboard   result.json to a dashboard: DASHBOARD_URL
#define LLMBENCH_MAIN
#include "llmbench.hpp"

#include <picojson.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

using namespace llmbench;

namespace {

// Each objective that failed or is invalid, with its numbers (seconds, tokens per second, ratios), and
// each gate that was not measured.
std::map<std::string, std::string> red_lines(const past_result& r) {
    std::map<std::string, std::string> lines;
    for (const past_gate& g : r.gates) {
        const std::string name = g.name, outcome = g.outcome;
        if (g.slos.empty() && outcome != "passed" && outcome != "skipped") lines[name + ": " + outcome];
        for (const past_slo& s : g.slos) {
            if (s.advisory || (s.outcome != verdict::fail && s.outcome != verdict::invalid)) continue;
            char numbers[80];
            std::snprintf(numbers, sizeof numbers, ", measured %.4g, limit %.4g", s.measured, s.limit);
            lines[name + ": " + std::string(s.slo)] = numbers;
        }
    }
    return lines;
}

// Without those that were red on main, whose result.json LAST_RESULT names.
std::string news_of(const report_view& r) {
    const char* file = std::getenv("LAST_RESULT");
    const auto before = file ? red_lines(read_result(file)) : std::map<std::string, std::string>{};
    std::string news;
    for (const auto& [line, numbers] : red_lines(r.result))
        if (!before.contains(line)) news += line + numbers + "\n";
    return news;
}

// An empty file where there is no news: `test -s news.md` tells the step that sends it.
void write_news(const report_view& r) {
    std::ofstream file(std::string(r.directory) + "/news.md");
    if (const std::string news = news_of(r); !news.empty()) file << "Worse than main:\n```\n" << news << "```\n";
    if (!file.flush()) throw std::runtime_error("news.md was not written");
}

// curl reads the JSON from its input: no word of a report is part of a command.
void post(const char* variable, const std::string& json) {
    if (!std::getenv(variable)) return;
    const std::string command = "curl -sf -m 5 -o /dev/null -H 'Content-Type: application/json' --data-binary @- \"$" +
                                std::string(variable) + "\"";
    std::FILE* curl = popen(command.c_str(), "w");
    if (curl) std::fwrite(json.data(), 1, json.size(), curl);
    const int status = curl ? pclose(curl) : -1;
    if (status != 0)  // 7: nobody is there, 22: it refused, 28: it did not answer in time
        std::fprintf(stderr, "%s was not told: curl ended with %d\n", variable, status / 256);
}

void tell_chat(const report_view& r) {
    const std::string news = news_of(r);
    if (!news.empty()) post("CHAT_WEBHOOK", "{\"text\": " + picojson::value(news).serialize() + "}");
}

void feed_dashboard(const report_view& r) { post("DASHBOARD_URL", r.json); }

const bool are_told = on_report(write_news) && on_report(tell_chat) && on_report(feed_dashboard);

}  // namespace

TEST_CASE("chat answers in time") {
    gate({
        .workload = synthetic{.prompt_tokens = fixed(64), .output_tokens = fixed(10)},
        .arrivals = closed_loop(8),
        .requests = 60,
        .slos = {p90(ttft) <= 1_s, mean(tpot) <= 60_ms},
    });
}
