// What live tests use of parts two and three of the header, which live/implementation.cpp compiles.
#pragma once
#include "llmbench.hpp"
#include "llmbench_simulated.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace live {

struct server_log_entry {
    std::string request_id{};
    long long received_ns = 0, first_write_ns = 0, last_write_ns = 0;
    int prompt_tokens = 0, output_tokens = 0;
    double queue_s = 0, prefill_s = 0, decode_s = 0;  // in the engine's own time
};

struct profiler_log_entry {
    std::string path{};
    long long received_ns = 0;
    int status = 0;
};

/// The simulated server in the world of the test: in a made-up one, or in real time on a port of its
/// own. It stays as long as that. On simulated() a gate makes up a world of its own.
llmbench::endpoint endpoint_of(const llmbench::engine& e);

/// The simulated server with its own log of what it wrote when.
class logging_server {
public:
    explicit logging_server(const llmbench::engine& e);
    ~logging_server();
    int port() const;
    std::string url() const;
    /// Without what a gate asks before its load, unless that is wanted, too.
    std::vector<server_log_entry> log(bool with_check = false) const;
    std::vector<profiler_log_entry> profiler_log() const;
    /// What it answers to GET /metrics within so many seconds, "" where it does not.
    std::string page_of_metrics(double within_s = 20) const;

private:
    struct host;
    std::unique_ptr<host> host_;
};

/// Seconds of the time budget that are spent so far.
double budget_spent_s();
/// LLMBENCH_TIME_BUDGET so that so many are left.
inline std::string budget_from_now(double s) { return std::to_string(budget_spent_s() + s); }

/// When an open loop's requests are due, in seconds after its start, for a gate's first repeat.
std::vector<double> open_loop_times(const llmbench::open_loop& o, long long requests);

/// An API that generates, by its row of the table. `name` is LLMBENCH_API's.
struct spoken_api {
    llmbench::api_format api{};
    std::string name{};
    bool forces = false, reports_usage = false, tells_reason = false, only_streams = false,
         takes_images = false;
};
std::vector<spoken_api> spoken_apis();
/// An API's name in LLMBENCH_API, and the path that it is asked at.
std::string name_of(llmbench::api_format api);
std::string path_asked_for(llmbench::api_format api, const std::string& model);

/// As result.json and junit.xml write them.
std::string fnv1a_64(const std::string& bytes);
std::string escaped(const std::string& text);
/// What a server of WebSockets says to a key.
std::string accepted_key_of(const std::string& key);

/// Why a scenario is refused once its files were read, or "".
std::string refusal_to_plan(const llmbench::scenario& s);

/// As long as it lives, the program has no room for more gaps to be kept one by one.
class gaps_used_up {
public:
    gaps_used_up();
    ~gaps_used_up();
    gaps_used_up(const gaps_used_up&) = delete;
    gaps_used_up& operator=(const gaps_used_up&) = delete;
};

/// Interrupts the run, as Ctrl-C does, until it goes.
class interruption {
public:
    interruption() = default;
    ~interruption();
    interruption(const interruption&) = delete;
    interruption& operator=(const interruption&) = delete;
    void come();
};

/// Why a load is refused when it is about to begin, or "".
std::string refusal_to_run(const llmbench::scenario& s);

/// A port for a server that is still to be started.
int free_port();

/// Why a target cannot be brought up, or "".
std::string refusal_to_bring_up(const llmbench::any_target& t);

/// The records of one repeat, of which no report is written.
std::vector<llmbench::record> unreported_records_of(const llmbench::scenario& s);

/// The records of one repeat against a target that is said to have these addresses, host and port.
std::vector<llmbench::record>
records_over(const std::vector<std::pair<std::string, int>>& addresses,
             const llmbench::scenario& s);

}  // namespace live
