// A dataset that only you can read: here a CSV file, whose columns no format of ours has. Any source will
// do: Parquet by a library, a database, a program's own binary file.
//
// The function is asked for the prompt of one request, by threads of the client and whenever it is
// needed again. What it gives follows from the index and from what it draws of `random`, which follows
// from the seed: so every repeat and both arms send the same, and reports name it by its hash. One
// that gives something else the second time is refused before the load; so is one that throws, as
// where the file is not there, or gives nothing. It captures nothing: what it reads is static.
// A line of five fresh words stands before each prompt, so that a prefix cache has seen none of them;
// `generated_prompts{.of = ticket, .salted = false}` sends them as they are.
#define LLMBENCH_MAIN
#include "llmbench.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace llmbench;

namespace {

using row = std::vector<std::string>;

// Values are set apart by commas, and may stand in quotes, which are then doubled.
std::vector<row> rows_of(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error(file + " cannot be read");
    std::vector<row> rows;
    for (std::string line; std::getline(in, line);) {
        row values(1);
        bool quoted = false;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (line[i] == '"' && quoted && line.substr(i + 1, 1) == "\"") values.back() += line[++i];
            else if (line[i] == '"') quoted = !quoted;
            else if (line[i] == ',' && !quoted) values.emplace_back();
            else values.back() += line[i];
        }
        rows.push_back(values);
    }
    rows.erase(rows.begin());  // the heads of the columns
    return rows;
}

prompt ticket(request_index, draw& random) {
    static const std::vector<row> tickets =
        rows_of((std::filesystem::path(__FILE__).parent_path() / "tickets.csv").string());
    const row& one = tickets[static_cast<std::size_t>(
        random.below(static_cast<long long>(tickets.size())))];
    return {.text = "Answer this ticket, \"" + one.at(0) + "\": " + one.at(1),
            .output_tokens = std::stoi(one.at(2))};
}

}  // namespace

TEST_CASE("tickets are answered in time") {
    gate({
        .workload = generated(ticket),
        .arrivals = closed_loop(8),
        .requests = 120,
        .slos = {p90(ttft) <= 1_s, mean(tpot) <= 60_ms},
    });
}
