#include "llmbench.hpp"
#include "extensions/history/core/entry.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "core/wire/metrics_page.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

std::string version_at(const char* path, const std::string& body) {
    for (const version_page& p : version_pages)
        if (std::string(p.path) == path) return reported_version(p, body);
    return "no such page";
}

}  // namespace

TEST_CASE("servers tell their versions") {
    CHECK(version_at("/version", R"({"version":"0.33.0"})") == "0.33.0");
    CHECK(version_at("/props", R"({"build_info":"b4567-0a1b2c3","n_ctx":8})") == "b4567-0a1b2c3");
    CHECK(version_at("/info", R"({"version":"3.1.0","sha":"4d5e6f"})") == "3.1.0 (4d5e6f)");
    CHECK(version_at("/v2", R"({"name":"triton","version":"2.50.0"})") == "2.50.0");
    CHECK(version_at("/version", "<html>") == "");
    CHECK(version_at("/version", R"({"version":7})") == "");
    CHECK(version_at("/props", R"({"version":"1"})") == "");
}
TEST_CASE("a known server is asked on its own path, another one on each path once") {
    REQUIRE(version_pages_of("SGLang").size() == 2);
    CHECK(std::string(version_pages_of("SGLang")[0].path) == "/server_info");
    CHECK(version_pages_of("LMDeploy").empty());
    CHECK(version_pages_of("").size() == 7);
    CHECK(server_behind("/version") == "vLLM or TensorRT-LLM");
    CHECK(server_behind("/props") == "llama.cpp");
    CHECK(server_behind("/info") == "TGI or TEI");
}
TEST_CASE("of a command its addresses, paths, keys and seeds are no matter") {
    const std::string was = hash_of_arguments("vllm serve m --port 8000 --max-num-seqs 64");
    CHECK(was.size() == 8);
    CHECK(was == hash_of_arguments("/opt/bin/x vllm  serve m --port 9 --api-key=k --max-num-seqs 64 "
                                   "--seed 4 --download-dir /tmp"));
    CHECK(was != hash_of_arguments("vllm serve m --port 8000 --max-num-seqs 65"));
    CHECK(was != hash_of_arguments("vllm serve m --port 8000 --max-num-seqs 64 --enforce-eager"));
    CHECK(hash_of_arguments("vllm --seed --eager") == hash_of_arguments("vllm --eager"));
    CHECK(hash_of_arguments("") == "");
}
TEST_CASE("cards by nvidia-smi") {
    fingerprint f;
    read_nvidia_smi("NVIDIA L4, GPU-b, 570.86.10, 23034 MiB, 72.00 W\n"
                    "NVIDIA L4, GPU-a, 570.86.10, 23034 MiB, 72.00 W\n", f);
    CHECK(f.accelerators == "2 x NVIDIA L4");
    CHECK(f.driver == "570.86.10");
    CHECK(f.power == "72.00 W");
    fingerprint turned, other, none;
    read_nvidia_smi("NVIDIA L4, GPU-a, 570.86.10, 23034 MiB, 72.00 W\n"
                    "NVIDIA L4, GPU-b, 570.86.10, 23034 MiB, 72.00 W\n", turned);
    CHECK(turned.cards == f.cards);
    read_nvidia_smi("NVIDIA L4, GPU-c, 570.86.10, 23034 MiB, 72.00 W\n", other);
    CHECK(other.cards != f.cards);
    read_nvidia_smi("No devices were found\n", none);
    CHECK(none.accelerators == "");
    CHECK(watched_facts(none).empty());
}
TEST_CASE("cards by a page of dcgm-exporter, each once") {
    const auto sample = [](const char* family, const char* card) {
        return printed("%s{gpu=\"0\",UUID=\"%s\",modelName=\"NVIDIA H100 80GB HBM3\","
                       "DCGM_FI_DRIVER_VERSION=\"570.86\"} 5\n", family, card);
    };
    const std::string page = sample("DCGM_FI_DEV_GPU_UTIL", "GPU-1") +
                             sample("DCGM_FI_DEV_GPU_UTIL", "GPU-2") +
                             sample("DCGM_FI_DEV_POWER_USAGE", "GPU-1");
    reported_cards cards;
    read_cards(read_metrics_page(page, "text/plain").page, cards);
    read_cards(read_metrics_page(page, "text/plain").page, cards);
    CHECK(counted_names(cards.names) == "2 x NVIDIA H100 80GB HBM3");
    CHECK(cards.drivers == vector<std::string>{"570.86", "570.86"});
}
TEST_CASE("an engine is what its speed depends on") {
    const engine usual;
    engine seeded = usual, slower = usual;
    seeded.seed = 7;
    seeded.faults.delay = time_span::from_seconds(1);
    slower.decode_step = time_span::from_seconds(0.013);
    CHECK(engine_text(seeded) == engine_text(usual));
    CHECK(engine_text(slower) != engine_text(usual));
}
