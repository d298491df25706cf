// A file of gates as scenarios, and the sentence with file, line, table and key that each mistake gets.
#include "llmbench.hpp"
#include "program/config/blind_spots.hpp"
#include "program/config/gates_file.hpp"
#include "support/histories.hpp"  // where history() is
#include "support/scratch.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench_program;

namespace {

constexpr const char* server = "url = \"http://127.0.0.1:1\"\n";
constexpr const char* chat = "[chat]\nslo = \"p90(ttft) <= 1 s\"\n";

class gates_at {
public:
    explicit gates_at(const std::string& content) : path(folder_.file("gates.toml")) {
        std::ofstream(path) << content;
    }
    gates_in_file read(const given_options& called = {}, const vector<std::string>& named = {}) const {
        return gates_reader(path).read(called, named);
    }
    /// The refusal after the path, "" where there is none.
    std::string refusal(const given_options& called = {}, const vector<std::string>& named = {}) const {
        try {
            read(called, named);
        } catch (const std::invalid_argument& e) {
            const std::string why = e.what();
            return why.rfind(path, 0) == 0 ? why.substr(path.size()) : why;
        }
        return "";
    }

private:
    files::scratch folder_{};

public:
    const std::string path;
};
std::string refusal_of(const std::string& content) { return gates_at(content).refusal(); }

}  // namespace

TEST_CASE("each table is a gate, and what stands above them is of all") {
    const gates_at file(std::string(server) + "output-tokens = 16\n"
                                              "users = 4\n"
                                              "think = \"2s\"\n"
                                              "report = \"perf\"\n"
                                              "[chat]\n"
                                              "slo = [\n"
                                              "  \"p90(ttft) <= 1 s\",\n"
                                              "  \"advisory(mean(tpot) <= 25 ms)\",\n"
                                              "]\n"
                                              "[\"two words\"]\n"
                                              "rate = 0.5\n"
                                              "prompt-tokens = 64\n"
                                              "insecure = true\n"
                                              "no-stream = false\n"
                                              "slo = \"mean(e2e) <= 9 s\"\n");
    const gates_in_file all = file.read();
    REQUIRE(all.gates.size() == 2);
    CHECK(all.common["--report"] == "perf");
    const scenario& a = all.gates[0].what;
    CHECK(str(a.name) == "chat");
    CHECK(all.gates[0].line == 6);
    CHECK(a.arrivals.data().users == 4);
    CHECK(a.arrivals.data().think.a == 2);
    REQUIRE(a.slos.size() == 2);
    CHECK((a.slos.begin() + 1)->is_advisory);
    CHECK((a.slos.begin() + 1)->at.line == 9);
    CHECK(std::string(a.slos.begin()->at.file) == file.path);
    // A rate is another load, so the pauses of the users are none of its.
    const scenario& b = all.gates[1].what;
    CHECK(b.arrivals.data().kind == arrival_kind::poisson);
    CHECK(b.arrivals.data().rate == 0.5);
    CHECK(b.workload.what().get<synthetic>()->prompt_tokens.a == 64);
    CHECK(b.workload.what().get<synthetic>()->output_tokens.a == 16);
    CHECK_FALSE(b.target.what().get<endpoint>()->tls.verify);
    CHECK(b.options.stream);
}

TEST_CASE("a gate's own false wins over the file's true, for each flag and each part of a mix") {
    const std::string gate = "slo = \"p50(e2e) <= 1 s\"\nusers = 4\n";
    const gates_at file(server + std::string("insecure = true\nno-stream = true\n"
                                             "[as-the-file]\n") + gate + "[own]\n" + gate +
                        "insecure = false\nno-stream = false\n");
    const gates_in_file all = file.read();
    REQUIRE(all.gates.size() == 2);
    for (const bool own : {false, true}) {
        const scenario& s = all.gates[own ? 1 : 0].what;
        CAPTURE(own);
        CHECK(s.target.what().get<endpoint>()->tls.verify == own);
        CHECK(s.options.stream == own);
    }
    const gates_at mixed(server + std::string("no-stream = true\n[mixed]\n") + gate +
                         "[[mixed.part]]\nname = \"a\"\nno-stream = false\n"
                         "[[mixed.part]]\nname = \"b\"\nno-stream = false\ntemperature = 0\n"
                         "[silent]\n" + gate + "[[silent.part]]\nname = \"a\"\ntemperature = 0\n");
    const gates_in_file both = mixed.read();
    REQUIRE(both.gates.size() == 2);
    for (const gate_in_file& g : both.gates)
        for (const part& p : g.what.workload.what().get<mix_of_parts>()->parts)
            CHECK((*p.options).stream == (g.name == "mixed"));
    // Each flag of a gate, by the table of options.
    for (const option_group& g : run_groups())
        for (const option_row& row : g.options) {
            if (row.values != takes::nothing) continue;
            given_options of_file, of_gate;
            of_file.texts[row.name] = {""};
            of_gate.off.insert(row.name);
            CAPTURE(row.name);
            CHECK(merged(of_file, {}).has(row.name));
            CHECK_FALSE(merged(of_file, of_gate).has(row.name));
        }
    // The command line's flag and a gate's own false are no agreement.
    given_options called;
    called.texts["--insecure"] = {""};
    CHECK_THROWS_WITH_AS(gates_reader(file.path).read(called),
                         doctest::Contains("insecure is here, and --insecure on the command line"),
                         std::invalid_argument);
}

TEST_CASE("a header without a colon may hold a key, so it is not repeated") {
    for (const char* key : {"header = \"X-Api-Key sk-12345678\"\n", "header = [\"X-Team: a\", \"sk-12345678\"]\n"}) {
        const std::string why = refusal_of(server + std::string(chat) + key);
        CHECK_MESSAGE(why.find("header has no colon behind a name") != std::string::npos, why);
        CHECK(why.find("12345678") == std::string::npos);
    }
}

TEST_CASE("a server that keeps the history, on one socket a conversation") {
    const std::string kept = "[agents]\n"
                             "api = \"openai_responses\"\n"
                             "users = 4\n"
                             "turns = 3\n"
                             "slo = \"mean(later_turn_ttft) <= 1 s\"\n"
                             "server-history = true\n"
                             "websocket = true\n";
    const gates_at file(server + kept);
    const gates_in_file all = file.read();
    REQUIRE(all.gates.size() == 1);
    CHECK(all.gates[0].what.options.server_history);
    CHECK((all.gates[0].what.target.what().get<endpoint>()->transport == websocket()));
    const std::string of_chat = refusal_of(server + std::string(chat) + "websocket = true\n");
    CHECK_MESSAGE(of_chat.find("websocket") != std::string::npos, of_chat);
}

TEST_CASE("mixes, side tasks and steps before a repeat") {
    const gates_at file(std::string(server) +
                        "[mixed]\n"
                        "rate = 8\n"
                        "requests = 200\n"
                        "temperature = 0.5\n"
                        "cost = 2.5\n"
                        "slo = \"p90(ttft).of(\\\"long\\\") <= 1 s\"\n"
                        "prepare = [{post = \"/reset_prefix_cache\"}]\n"
                        "[[mixed.part]]\n"
                        "name = \"short\"\n"
                        "weight = 3\n"
                        "prompt-tokens = 16\n"
                        "[[mixed.part]]\n"
                        "name = \"long\"\n"
                        "model = \"other\"\n"
                        "prompt-tokens = \"uniform(200, 400)\"\n"
                        "system-prompt = \"Be short.\"\n"
                        "[[mixed.task]]\n"
                        "name = \"reload\"\n"
                        "every = \"2s\"\n"
                        "may-fail = true\n"
                        "steps = [{post = \"/v1/load\", body = '{\"n\": {n}}'}]\n");
    const scenario s = file.read().gates[0].what;
    const auto* m = s.workload.what().get<mix_of_parts>();
    REQUIRE(m);
    REQUIRE(m->parts.size() == 2);
    const part &first = *m->parts.begin(), &second = *(m->parts.begin() + 1);
    CHECK(first.weight == 3);
    CHECK_FALSE(first.options);
    CHECK(str(second.model) == "other");
    REQUIRE(second.options);
    CHECK(str((*second.options).system_prompt) == "Be short.");
    CHECK(*(*second.options).temperature == 0.5);  // the gate's
    REQUIRE(s.beside.size() == 1);
    CHECK(s.beside.begin()->every.seconds() == 2);
    CHECK(s.beside.begin()->may_fail);
    CHECK(str(s.beside.begin()->steps.begin()->body) == "{\"n\": {n}}");
    REQUIRE(s.prepare.size() == 1);
    CHECK(str(s.prepare.begin()->path) == "/reset_prefix_cache");
    CHECK((*s.cost).usd == 2.5);
}

TEST_CASE("a gate on work is primed before its load") {
    const gates_at file(std::string(server) +
                        "[counted]\n"
                        "users = 4\n"
                        "requests = 24\n"
                        "prefix-tokens = 256\n"
                        "slo = \"cached_tokens == expected\"\n"
                        "prepare = [{post = \"/flush_cache\"}, {prime = true}]\n");
    const scenario s = file.read().gates[0].what;
    REQUIRE(s.prepare.size() == 2);
    CHECK(str((s.prepare.begin() + 1)->path) == "prime()");
}

TEST_CASE("a mistake is refused with file, line, table, key, value and what is allowed") {
    const std::string up = server;
    const struct { std::string content, why; } cases[] = {
        {"", " has no gate: a gate is a table, as [chat]"},
        {up + "[chat]\nrate = 8\n", ":2: [chat] has no slo: a gate without an objective"},
        {up + "[chat]\nslo = []\n", ":3: [chat] slo is an empty list"},
        {up + "[chat]\nslo = \"\"\n", ":3: [chat] slo is empty"},
        {up + "[chat]\nslo = 5\n",
         ":3: [chat] slo is 5: it must be a text in quotes, or a list of them"},
        {up + "[chat]\nslo = [\n\"p90(ttft) <= 1 s\",\n\"p90(ttft) <= 500\"]\n",
         ":5: [chat] slo: the SLO \"p90(ttft) <= 500\" cannot be read from character 17"},
        {up + chat + "[chat]\n", ":4: [chat] is there twice"},
        {up + chat + "usrs = 8\n", ":4: [chat] usrs is no key of a gate, is users meant?"},
        {up + chat + "name = \"x\"\n", ":4: [chat] name is no key: the name of a gate is that of"},
        {up + chat + "users = true\n",
         ":4: [chat] users is true: it must be a number, or a text in quotes"},
        {up + chat + "users = 0\n", ":4: [chat] users is \"0\": it must be a whole number from 1"},
        {up + chat + "users = [1, 2]\n", ":4: [chat] users is a list: it must be a number"},
        {up + chat + "duration = 30\n",
         ":4: [chat] duration is 30: it must be a text such as \"30s\""},
        {up + chat + "insecure = \"yes\"\n", ":4: [chat] insecure is \"yes\": it must be true or false"},
        {up + chat + "rate = 8\nthink = \"2s\"\n", ":5: [chat] think needs users"},
        {up + chat + "rate = 8\nusers = 8\n", ":2: [chat] two of users, rate and arrivals are given"},
        {up + chat + "report = \"x\"\n", ":4: [chat] report is of all gates: it belongs above"},
        {up + "reprot = \"x\"\n" + chat, ":2: reprot is no key of a gate, is report meant?"},
        {up + "[[chat]]\n", ":2: [[chat]] is a list of tables: a gate is [chat]"},
        {up + "[\" \"]\n", ":2: [ ] has no name"},
        {chat, ":1: [chat] no server is named: url, command, or LLMBENCH_URL"},
        {up + chat + "output-tokens = 8\nmax-tokens = 8\n", ":2: [chat] options.max_tokens is 8: a"},
        {up + "[chat]\nrequests = 20\nslo = \"p99(ttft) <= 1 s\"\n", ":2: [chat] the SLO p99(ttft) <= 1 s is"},
        {up + chat + "task = 1\n", ":4: [chat] task is 1: side tasks are [[chat.task]]"},
        {up + chat + "[[chat.task]]\nslo = \"x\"\n",
         ":5: [[chat.task]] slo is no key of a task: it is one of a gate, and belongs above"},
        {up + chat + "[[chat.task]]\nname = \"x\"\nsteps = [{get = \"/x\"}]\n",
         ":6: [[chat.task]] steps has a step that is none: it must be a list such as"},
        {up + chat + "[[chat.task]]\nevery = 10\n", ":5: [[chat.task]] every is 10: it must be"},
        {up + chat + "[[chat.task]]\nname = \"x\"\n", ":4: [[chat.task]] has no steps"},
        {up + chat + "prepare = \"/x\"\n", ":4: [chat] prepare is \"/x\": it must be a list"},
        {up + chat + "prepare = [{prime = 1}]\n", ":4: [chat] prepare has a step that is none"},
        {up + chat + "prepare = [{command = \"true\"}]\n", ":4: [chat] prepare has a command(...)"},
        {up + chat + "[[chat.part]]\nweight = 1\n", ":4: [[chat.part]] has no name"},
        {up + chat + "[[chat.part]]\nname = \"a\"\nweight = 1.5\n",
         ":6: [[chat.part]] weight is \"1.5\": it must be a whole number from 1 to 1000"},
        {up + chat + "[[chat.part]]\nname = \"a\"\nusers = 1\n",
         ":6: [[chat.part]] users is no key of a part: it is one of a gate"},
        {up + chat + "prompt-tokens = 8\n[[chat.part]]\nname = \"a\"\n",
         ":4: [chat] prompt-tokens is of one workload: write it into each part"},
        {up + "[chat]\nslo = p90(ttft)\n", ":3: \"p90(ttft)\" is no value: a text needs quotes"}};
    for (const auto& c : cases) {
        CAPTURE(c.content);
        CHECK(refusal_of(c.content).substr(0, c.why.size()) == c.why);
    }
}

TEST_CASE("the command line is of all gates, and in no silent conflict with one") {
    const gates_at file(std::string(server) + chat + "requests = 40\n");
    given_options called;
    called.texts["--url"] = {"http://127.0.0.1:2"};
    CHECK(str(file.read(called).gates[0].what.target.what().get<endpoint>()->url) ==
          "http://127.0.0.1:2");
    called.texts["--requests"] = {"50"};
    CHECK(file.refusal(called) == ":4: [chat] requests is here, and --requests on the command line: "
                                  "one of the two must go");
    called.texts.erase("--requests");
    // Of two ways to say when requests are sent, one would be left out in silence.
    const gates_at paced(std::string(server) + "[chat]\nrate = 6\nslo = [\"p90(ttft) <= 1 s\"]\n");
    given_options users;
    users.texts["--users"] = {"3"};
    CHECK(paced.refusal(users).find("[chat] rate is here, and --users on the command line: one of the two "
                                    "must go") != std::string::npos);
    called.texts["--slo"] = {"p90(ttft) <= 2 s"};
    CHECK(file.refusal(called).find("--slo is of one gate: with --config, write it into ") == 0);
}

TEST_CASE("--gate needs what the named gates need, and the whole file is TOML") {
    const std::string lacks = "[answers]\ndataset = \"nowhere.jsonl\"\nslo = \"p90(e2e) <= 1 s\"\n"
                              "[agents]\nusers = 3\nslo = \"p90(ttft) <= 1 s\"\n";
    const gates_at file(std::string(server) + chat + lacks);
    CHECK(file.refusal().find(":4: [answers] ") == 0);
    CHECK(file.refusal({}, {"chat", "answers"}).find(":4: [answers] ") == 0);
    const gates_in_file two = file.read({}, {"agents", "chat"});
    REQUIRE(two.gates.size() == 2);
    CHECK(two.gates[0].name == "agents");
    CHECK(two.gates[1].line == 2);
    CHECK(file.refusal({}, {"agent"}) ==
          "--gate is \"agent\": it must be a gate of " + file.path + ": chat, answers and agents");
    CHECK(gates_at(std::string(server) + chat + "[broken\n").refusal({}, {"chat"}).find(":4: ") == 0);
}

TEST_CASE("a gate knows what it cannot see") {
    const auto ids = [](const std::string& keys) {
        std::string all;
        for (const blind_spot& b : blind_spots(gates_at(server + ("[a]\n" + keys)).read().gates[0].what))
            all += std::string(b.id) + " ";
        return all;
    };
    CHECK(ids("slo = \"p90(ttft) <= 1 s\"\n") ==
          "decoding tail answers queue capacity prefix_cache regression ");
    CHECK(ids("rate = 8\nslo = [\"goodput(ttft <= 1 s && tpot <= 30 ms) >= 95 %\"]\n") ==
          "answers capacity prefix_cache regression ");
    const auto tail = gates_at(std::string(server) + "[a]\nslo = \"mean(e2e) <= 1 s\"\n").read().gates[0];
    CHECK(blind_spots(tail.what)[0].text == "the slowest answers: no objective is on p95 or beyond");
    CHECK(ids("slo = \"advisory(p90(ttft) <= 1 s)\"\n").find("advisory first_token decoding") == 0);
    CHECK(ids("rate = 8\nslo = \"p95(e2e) <= 9 s\"\nprefix-tokens = 64\n"
              "baseline-url = \"http://127.0.0.1:2\"\n") == "answers capacity ");
}

TEST_CASE("every field of a request, a limit, a level and a server has its key") {
    const gates_in_file all = gates_at(std::string("url = \"http://127.0.0.1:1\"\n"
                                                   "telemetry-url = [\"http://127.0.0.1:2/m\"]\n"
                                                   "[chat]\n"
                                                   "prompt = \"Say yes.\"\n"
                                                   "max-tokens = 64\n"
                                                   "ignore-eos = true\n"
                                                   "no-usage = true\n"
                                                   "events-are-tokens = true\n"
                                                   "max-tokens-field = \"max_completion_tokens\"\n"
                                                   "connect-timeout = \"1s\"\n"
                                                   "first-event-timeout = \"2s\"\n"
                                                   "event-timeout = \"3s\"\n"
                                                   "drain = \"4s\"\n"
                                                   "false-pass = \"10%\"\n"
                                                   "false-fail = \"2%\"\n"
                                                   "holm = true\n"
                                                   "spin = true\n"
                                                   "client-threads = 2\n"
                                                   "from = \"127.0.0.1\"\n"
                                                   "profile = true\n"
                                                   "baseline-url = \"http://127.0.0.1:3\"\n"
                                                   "baseline-model = \"alias\"\n"
                                                   "slo = \"p90(ttft) <= 1.1 * baseline\"\n"))
                                  .read();
    const scenario& s = all.gates[0].what;
    CHECK(s.options.ignore_eos);
    CHECK_FALSE(s.options.include_usage);
    CHECK(s.options.events_are_tokens);
    CHECK(str(s.options.max_tokens_field) == "max_completion_tokens");
    CHECK(s.limits.connect.seconds() == 1);
    CHECK(s.limits.first_event.seconds() == 2);
    CHECK(s.limits.between_events.seconds() == 3);
    CHECK((*s.limits.drain).seconds() == 4);
    CHECK(s.judging.false_pass.value == doctest::Approx(0.1));
    CHECK(s.judging.false_fail.value == doctest::Approx(0.02));
    CHECK(s.judging.holm);
    CHECK(s.client.spin);
    CHECK(s.client.threads == 2);
    CHECK(s.client.from.size() == 1);
    CHECK(bool(s.on_fail));
    const endpoint& mine = *s.target.what().get<endpoint>();
    const endpoint& its = *s.baseline.live().what().get<endpoint>();
    CHECK(mine.model.empty());
    CHECK(str(its.model) == "alias");
    CHECK(mine.telemetry.size() == 1);
}

TEST_CASE("every field of a workload has its key, and says what it needs") {
    const gates_at file(std::string(server) + "[turns]\n"
                                              "turns = 3\n"
                                              "turn-pause = \"uniform(1s, 2s)\"\n"
                                              "prefix-tokens = 64\n"
                                              "own-prefix = true\n"
                                              "subagents = \"50%\"\n"
                                              "helpers = 2\n"
                                              "helper-turns = 3\n"
                                              "slo = \"p90(ttft) <= 1 s\"\n");
    const gates_in_file all = file.read();
    const conversations& c = *all.gates[0].what.workload.what().get<conversations>();
    CHECK(c.think.a == 1);
    CHECK_FALSE(c.shared_system_prompt);
    CHECK(c.subagents.value == 0.5);
    CHECK(c.helpers.a == 2);
    CHECK(c.helper_turns.a == 3);

    CHECK(refusal_of(std::string(server) + "[a]\nturn-pause = \"1s\"\nslo = \"p90(ttft) <= 1 s\"\n") ==
          ":3: [a] turn-pause needs turns");
    CHECK(refusal_of(std::string(server) + "[a]\nhelpers = 2\nslo = \"p90(ttft) <= 1 s\"\n") ==
          ":3: [a] helpers needs subagents");
    CHECK(refusal_of(std::string(server) + "[a]\nimages = \"x\"\nslo = \"p90(ttft) <= 1 s\"\n") ==
          ":3: [a] images needs dataset");
    CHECK(refusal_of(std::string(server) + "[a]\nbaseline-model = \"x\"\nslo = \"p90(ttft) <= 1 s\"\n") ==
          ":3: [a] baseline-model needs baseline-url");
}
