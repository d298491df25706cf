// Whether a candidate and its baseline are one server by two names.
#include "effects/targets/same_server.hpp"

#include "support/scratch.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace llmbench::detail;
using texts::holds;

namespace {
load_target at(const std::string& url) {
    load_target t;
    static_cast<http_server&>(t) = server_at(parsed_url(url, "endpoint.url"));
    t.model = "m";
    t.path = t.url.path + "/v1/chat/completions";
    return t;
}
std::string reason(const load_target& a, const load_target& b) {
    return same_server_reason(a, "http://one", b, "http://other");
}
bool same(const std::string& a, const std::string& b) { return !reason(at(a), at(b)).empty(); }
}  // namespace

TEST_CASE("one address and port is one server, by whatever name") {
    CHECK(same("http://127.0.0.1:8000", "http://127.0.0.1:8000"));
    CHECK(same("http://127.0.0.1:8000", "http://127.0.0.1:8000/"));
    CHECK(same("http://127.0.0.1", "http://127.0.0.1:80"));
    CHECK(same("http://127.0.0.1:8000", "http://localhost:8000"));
    CHECK(same("http://127.0.0.1:8000", "http://[::1]:8000"));
    CHECK(same("http://127.0.0.1:8000", "http://[::ffff:127.0.0.1]:8000"));
    CHECK(same("http://10.1.2.3:8000", "http://[::ffff:10.1.2.3]:8000"));
    CHECK(same("http://[::1]:8000", "http://[0:0:0:0:0:0:0:1]:8000"));
    CHECK_FALSE(same("http://127.0.0.1:8000", "http://127.0.0.1:8001"));
    CHECK_FALSE(same("http://127.0.0.1:8000", "http://127.0.0.2:8000"));
    CHECK_FALSE(same("http://10.1.2.3:8000", "http://10.1.2.4:8000"));
    CHECK_FALSE(same("http://127.0.0.1:8000", "unix:/run/a.socket"));
    const std::string why = reason(at("http://127.0.0.1:8000"), at("http://localhost:8000"));
    for (const char* words : {"http://one", "http://other", "LLMBENCH_BASELINE_URL",
                              "same_server()", "model", "header"})
        CHECK(holds(why, words));
}

TEST_CASE("a Unix-domain socket is one server through links as well") {
    const files::scratch files;
    const std::string socket = files.file("server.sock"), link = files.file("link.sock");
    std::ofstream{socket} << "";  // what is asked is only whether both names are one file
    std::filesystem::create_symlink(socket, link);
    CHECK(same("unix:" + socket, "unix:" + socket));
    CHECK(same("unix:" + socket, "unix://" + socket));
    CHECK(same("unix:" + socket, "unix:" + link));
    CHECK_FALSE(same("unix:" + socket, "unix:" + files.file("another.sock")));
}

TEST_CASE("two models, paths or routes of one gateway are compared") {
    const load_target one = at("http://127.0.0.1:8000");
    load_target other = one;
    CHECK_FALSE(reason(one, other).empty());
    other.model = "m-lora";
    CHECK(reason(one, other).empty());
    other = one;
    other.path = "/v1/completions";
    CHECK(reason(one, other).empty());
    other = one;
    other.fields = "X-Route: canary\r\n";
    CHECK(reason(one, other).empty());
    CHECK(same("http://127.0.0.1:8000/a", "http://localhost:8000/a/"));
    CHECK_FALSE(same("http://127.0.0.1:8000/a", "http://127.0.0.1:8000/b"));
}
