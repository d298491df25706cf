// What must be known to the server alone: keys and the values of headers, wherever they may come
// back from. What the gate's author writes cannot become a line of its own in a request.
#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/live.hpp"
#include "llmbench_compare.hpp"
#include "virtual/scripted_server.hpp"
#include "llmbench_faults.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace live;

namespace {
std::string message(const std::string& words) {
    return R"({"error":{"message":")" + words + R"("}})";
}
}  // namespace

TEST_CASE("a server that repeats every header brings none into a file or on the console") {
    const std::string key = "sk-7c21-of-the-environment", token = "t0ken-of-a-gateway";
    const std::string cookie = "session=\xC3\xA9-5511-cookie", quoted = "a\\\"quoted-4410\\\"one";
    const variable set("SECRETS_KEY", key);
    const std::string all = key + " " + token + " " + cookie + " " + quoted;
    const std::string cut = std::string(170, 'x') + token;
    const scripted::server server(
        {{scripted::send(scripted::json("401 Unauthorized", message("who is " + all + "?")))},
         {scripted::send(scripted::sized("502 Bad Gateway", "text/plain", all + cut))},
         {scripted::send(scripted::sized("502 Bad Gateway", "text/plain", cut + token))},
         {scripted::send(scripted::sized_stream(scripted::chat_chunk("a") +
                                                scripted::sse_event(message("is it " + all))))},
         {scripted::send(scripted::sized_stream(scripted::chat_chunk("a") +
                                                scripted::finish("error " + token)))},
         {scripted::send(scripted::head("302 Found", "Location: http://h/?token=" + token + "\r\n"
                                                     "Content-Length: 0\r\n"))},
         {scripted::send(scripted::sized("200 OK", token, "a"))},
         {scripted::send("HTTP/1.1 200 OK\r\nContent-Length: " + token + "\r\n\r\n")},
         {scripted::send(all + "\r\n"), scripted::close()},
         scripted::healthy()});
    const endpoint e{.url = server.url(),
                     .model = "m",
                     .api_key_env = "SECRETS_KEY",
                     .headers = {{"X-Gateway", "Token " + token},
                                 {"Cookie", cookie},
                                 {"api-key", "a\"quoted-4410\"one"}}};
    const scenario s = asking(e, 10);
    std::string console, errors;
    {
        const heard heard;
        const result r = run(s);
        CHECK(r.requests().size() == 10);
        for (const record& x : r.requests()) errors += std::string(x.error) + "\n";
        console = heard.text();
    }
    REQUIRE(server.log().size() == 10);
    CHECK(server.log()[0].header("X-Gateway") == "Token " + token);
    CHECK(server.log()[0].header("api-key") == "a\"quoted-4410\"one");
    CHECK(holds(errors, "who is ***"));
    CHECK(holds(console, "10 requests"));
    for (const std::string secret : {"sk-7c21", "t0ken", "5511-cookie", "quoted-44"}) {
        CAPTURE(secret);
        CHECK(!holds(errors, secret));
        CHECK(!holds(console, secret));
        CHECK(report_files_with(secret) == "");
    }
}

TEST_CASE("no model and no prompt becomes a line of a request") {
    const scripted::server server;
    scenario s = asking(
        endpoint{.url = server.url(), .model = "m\r\nX-Admin: yes\r\n\r\nGET / HTTP/1.1"});
    s.workload = prompts({"hi\r\nX-Admin: yes\r\n\r\nPOST / HTTP/1.1"});
    s.options.system_prompt = "be\r\nX-Admin: yes";
    run(s);
    REQUIRE(server.log().size() == 1);
    CHECK(server.log()[0].header("X-Admin") == "");
    CHECK(server.log()[0].body.find('\n') == std::string::npos);
}

namespace {
/// What is planted, each time another one. In a URL it is percent-encoded.
class planted {
public:
    static constexpr const char* mark = "pl4nted-";
    std::string secret() { return mark + std::to_string(++count_) + "+/x=\"" + "\xC3\xA9"; }
    std::string in_json() { return mark + std::to_string(++count_) + "+/x=\\\"\xC3\xA9"; }
    std::string in_header() { return mark + std::to_string(++count_) + "+/x="; }
    std::string in_url() { return mark + std::to_string(++count_) + "%2B%2Fx%3D%22%C3%A9"; }
    int count() const { return count_; }

private:
    int count_ = 0;
};
std::string decoded(const std::string& url) {
    std::string out;
    for (std::size_t i = 0; i < url.size(); ++i)
        if (url[i] != '%') out += url[i];
        else out += static_cast<char>(std::stoi(url.substr((i += 2) - 1, 2), nullptr, 16));
    return out;
}
/// Says what it was asked, as it came and decoded, where a load or a side task asks.
scripted::server echo(std::function<bool(const scripted::request&)> is_refused) {
    return scripted::server([=](const scripted::request& r) -> scripted::answer {
        if (!is_refused(r)) return scripted::healthy();
        std::string all = r.path + " " + decoded(r.path) + " " + r.body;
        for (const auto& [name, value] : r.headers) all += " " + name + ": " + value;
        return {scripted::send(scripted::sized("500 Oh", "text/plain", all)),
                scripted::send(scripted::sized("500 Oh", "application/json", message("x")))};
    });
}
}  // namespace

TEST_CASE("a secret in any field of a scenario is in no file, on no console and in no refusal") {
    planted plant;
    const variable key("PLANTED_VARIABLE", plant.in_header()),
        token("SOME_OTHER_TOKEN", plant.secret()), own("LLMBENCH_API_KEY", plant.in_header()),
        its("LLMBENCH_BASELINE_API_KEY", plant.in_header());
    std::string said;
    const auto run_of = [&](const scenario& s) {
        said += refusal_by([&] {
            try {
                run(s);
            } catch (const std::runtime_error& e) { said += std::string(e.what()) + "\n"; }
        }) + "\n";
    };
    {
        const heard console;
        const auto is_load = [](const scripted::request&) { return true; };
        const scripted::server server = echo(is_load), other = echo(is_load);
        endpoint e{.url = server.url() + "/v1?key=" + plant.in_url(), .model = "m"};
        e.api_key_env = "PLANTED_VARIABLE";
        e.path = "/v1/chat/completions?sig=" + plant.in_url();
        e.headers = {{"X-Api-Key", plant.in_header()},
                     {"X-Gateway", "Token " + plant.in_header()},
                     {"Cookie", "session=" + plant.in_header()}};
        e.metrics_url = "/page?token=" + plant.in_url();
        run_of(asking(e));
        e.metrics_url = "off";
        scenario s = asking(e, 10);
        s.name = "planted";
        s.repeats = 4;
        s.options.extra_body = R"({"auth":{"password":")" + plant.in_json() + R"("}})";
        s.beside = {{.name = "load",
                     .every = 10_ms,
                     .steps = {post("/adapter?key=" + plant.in_url(),
                                    R"({"token":")" + plant.in_json() + R"("})")},
                     .first = 0_ms,
                     .may_fail = true}};
        s.baseline = endpoint{.url = other.url() + "/v1?code=" + plant.in_url(), .model = "m"};
        s.slos = {mean(e2e) <= 2 * baseline};
        run_of(s);
        s = asking(e);
        s.prepare = {post("/flush?key=" + plant.in_url(),
                          R"({"credential":")" + plant.in_json() + R"("})")};
        run_of(s);
        s.prepare = {};
        s.workload = mix({{.name = "part",
                           .workload = prompts({"hi"}),
                           .options = request_options{.extra_body = R"({"api_key":")" +
                                                                    plant.in_json() + R"("})"}}});
        run_of(s);
        // What is refused is quoted.
        for (const std::string broken : {R"({"api_key":")", R"({"api_key": ")", R"(api_key=")"}) {
            scenario r = asking(endpoint{.url = server.url()});
            r.options.extra_body = broken + plant.in_header();
            run_of(r);
        }
        for (const std::string& url :
             {"http://anna:" + plant.in_url() + "@h", "http://h/ ?key=" + plant.in_url(),
              "ftp://h/?key=" + plant.in_url()}) {
            run_of(asking(endpoint{.url = url}));
            run_of(asking(endpoint{.url = server.url(), .metrics_url = url}));
            run_of(asking(endpoint{.url = server.url(), .telemetry = {url}}));
            run_of(asking(endpoint{.url = server.url(), .path = url}));
            run_of(asking(process{.command = "curl " + url}));
        }
        run_of(asking(endpoint{.url = server.url(), .headers = {{"Auth orization", plant.secret()}}}));
        run_of(asking(endpoint{.url = server.url(), .headers = {{"X", plant.secret() + "\n"}}}));
        run_of(asking(process{.command = "serve --api-key " + plant.in_header()}));
        run_of(asking(process{.command = "HF_TOKEN=" + plant.in_header() + " serve"}));
        said += refusal_by([&] {
            s = asking({});
            s.target = any_target();
            s.repeats = 2;
            compare(s, {{"one", endpoint{.url = server.url() + "?key=" + plant.in_url()}},
                                 {"two", endpoint{.url = other.url(),
                                                  .headers = {{"Authorization",
                                                               "Bearer " + plant.in_header()}}}}});
        });
        exit_code();  // writes every file
        said += console.text();
    }
    CHECK(plant.count() > 25);
    CHECK(holds(said, "***"));
    const std::size_t at = said.find(plant.mark);
    CHECK(said.substr(at == said.npos ? said.size() : at - std::min<std::size_t>(at, 200), 300) == "");
    CHECK(report_files_with(plant.mark) == "");
}
