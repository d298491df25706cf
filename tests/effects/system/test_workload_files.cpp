// What a scenario names in files: images, and where they may stand; workloads of extensions beside traces.
#include "core/planning/planning.hpp"
#include "effects/system/workload_files.hpp"
#include "extensions/answers/api.hpp"
#include "extensions/sessions/api.hpp"
#include "support/scratch.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;
using texts::refusal_of;

namespace {

/// What becomes of an image that a data set names.
std::string image(const dataset& d, const std::string& name) {
    vector<dialogue> sample(1);
    sample[0].turns.push_back({.prompt = "a", .image = name});
    read_images(d, sample);
    return sample[0].turns[0].image;
}

}  // namespace

TEST_CASE("images stand below their folder, whatever a data set names") {
    const files::scratch at;
    const std::filesystem::path root = at.file("");
    for (const char* folder : {"set/images/more", "other"})
        std::filesystem::create_directories(root / folder);
    for (const char* file : {"set/images/a.png", "set/images/more/b.png", "other/secret.png"})
        write_file(root / file, "x");
    std::filesystem::create_symlink(root / "other/secret.png", root / "set/images/link.png");
    std::filesystem::create_directory_symlink(root / "set/images", root / "linked");
    const dataset named{.path = (root / "set/d.jsonl").string().c_str(),
                        .images = (root / "set/images").string().c_str()};
    const dataset beside{.path = (root / "set/d.jsonl").string().c_str()};
    const dataset linked{.path = "d.jsonl", .images = (root / "linked").string().c_str()};
    const std::string read = "data:image/png;base64,eA==";
    CHECK(image(named, "a.png") == read);
    CHECK(image(named, "more/../a.png") == read);
    CHECK(image(beside, "images/more/b.png") == read);
    CHECK(image(linked, "more/b.png") == read);
    CHECK(image(named, read) == read);
    const vector<std::string> elsewhere = {
        "../../other/secret.png", "more/../../../other/secret.png",
        (root / "other/secret.png").string(), "link.png", "../images2/a.png"};
    for (const std::string& outside : elsewhere) {
        CAPTURE(outside);
        CHECK_REFUSED(refusal_of([&] { image(named, outside); }), "d.jsonl: the image \"" + outside + "\" lies outside of",
                      "below workload.images");
    }
    CHECK_REFUSED(refusal_of([&] { image(linked, "../other/secret.png"); }), "lies outside of");
    CHECK_REFUSED(refusal_of([&] { image(named, "/etc/passwd"); }), "must end in .jpg");
    CHECK_REFUSED(refusal_of([&] { image(named, "none.png"); }), "d.jsonl: an image of it");
}

TEST_CASE("questions are asked at the times of a trace, and sessions begin when they did") {
    const files::scratch at;
    const std::string asked = at.file("asked.jsonl"), times = at.file("times.csv"),
                      played = at.file("played.jsonl");
    write_file(asked, "{\"question\": \"6 and 1?\", \"answer\": 7}\n{\"question\": \"6 and 2?\", \"answer\": 8}\n");
    write_file(times, "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.0,9,9\n"
                      "2023-11-16 18:15:46.5,9,9\n2023-11-16 18:15:49.0,9,9\n");
    write_file(played, "{\"session\": \"s\", \"step\": \"a\", \"prompt_tokens\": 9, \"output_tokens\": 9}\n");
    const workload_files both = read_workload_files(
        {.workload = questions{.path = asked.c_str()}, .arrivals = replay(times.c_str())}, 1);
    CHECK(both.dialogues.size() == 2);
    CHECK(both.trace.rows.size() == 3);
    CHECK(both.trace.rows.back().at_s == 3);
    CHECK_REFUSED(refusal_of([&] {
                      read_workload_files({.workload = sessions{.path = played.c_str()},
                                           .arrivals = replay(times.c_str())}, 1);
                  }),
                  "workload is sessions of ", "sessions begin when their own recording says");
}

TEST_CASE("sessions have lengths of their own, and questions are answered up to max_tokens") {
    const files::scratch at;
    const std::string asked = at.file("asked.jsonl"), played = at.file("played.jsonl");
    write_file(asked, "{\"question\": \"6 and 1?\", \"answer\": 7}\n");
    write_file(played, "{\"session\": \"s\", \"step\": \"a\", \"prompt_tokens\": 9, \"output_tokens\": 9}\n");
    const auto refusal = [](const any_workload& w) {
        const scenario s{.workload = w, .warmup = 0, .requests = 1, .options = {.max_tokens = 64}};
        return refusal_of([&] { planned(s, 1, read_workload_files(s, 1)); });
    };
    CHECK(refusal(questions{.path = asked.c_str()}) == "");
    CHECK_REFUSED(refusal(sessions{.path = played.c_str()}), "options.max_tokens is 64");
}
