// What servers say of themselves, and what of it is for reports.
#include "effects/targets/self_description.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {
http_answer ok(const std::string& body) { return {.status = 200, .body = body}; }
std::string page_for(const std::string& models) {
    const auto* const page = page_of_owner(traits_of(openai_chat), ok(models));
    return page ? page->path : "";
}
}  // namespace

TEST_CASE("the list of models tells which page a server has on itself") {
    const auto owned_by = [](const std::string& who) {
        return R"({"object":"list","data":[{"id":"m","owned_by":")" + who + "\"}]}";
    };
    CHECK(page_for(owned_by("vllm")) == "/version");
    CHECK(page_for(owned_by("sglang")) == "/get_server_info");
    CHECK(page_for(owned_by("llamacpp")) == "/props");
    CHECK(page_for(owned_by("library")) == "/api/version");
    for (const std::string& other : {owned_by("somebody"), std::string("{}"), std::string("<html>"),
                                    std::string(R"({"data":[{"id":"m"}]})")})
        CHECK(page_for(other) == "");  // nobody is asked for a page that it may not have
    CHECK(page_of_owner(traits_of(openai_chat), {.status = 500, .body = owned_by("vllm")}) ==
          nullptr);
}

TEST_CASE("a version and short settings are told, without secrets") {
    const self_description vllm = described_by("vllm", ok(R"({"version":"0.11.0"})"), {});
    CHECK(vllm.version == "vllm 0.11.0");
    CHECK(vllm.settings == "");
    const self_description d = described_by(
        "llama.cpp", ok(R"({"build_info":"b11434\n","total_slots":4,"is_sleeping":false,
            "model_path":"/m/a.gguf","api_key":"sesame1","admin":"pa55word","chat_template":")" +
            std::string(200, 'x') + R"(","params":{"n_ctx":1},"list":[1],"none":null})"),
        {"pa55word"});
    CHECK(d.version == "llama.cpp b11434\\n");
    CHECK(d.settings == "admin=***, is_sleeping=false, model_path=/m/a.gguf, total_slots=4");
    for (const std::string bad : {"", "[]", "1", "{", "<html>"})
        CHECK(described_by("vllm", ok(bad), {}).version == "");
    CHECK(described_by("vllm", {.status = 404, .body = R"({"version":"1"})"}, {}).version == "");
}

TEST_CASE("a command is told without its secrets") {
    const auto told = [](const std::string& command) {
        return command_for_reports(command, {"hf_12345"});
    };
    CHECK(told("vllm serve m --port {port}") == "vllm serve m --port {port}");
    CHECK(told("serve --api-key sesame --max-len=4") == "serve --api-key *** --max-len=4");
    CHECK(told("serve --api-key=sesame  -x") == "serve --api-key=***  -x");
    CHECK(told("HF_TOKEN=abc serve --hub hf_12345") == "HF_TOKEN=*** serve --hub ***");
    CHECK(told("a\n--tokens 5") == "a\\n--tokens 5");
    CHECK(told("") == "");
}
