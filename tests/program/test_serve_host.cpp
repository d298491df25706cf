// The log of `llmbench serve` against two others: of a relay before it, with a clock of its own, and of our
// client, with the kernel's stamps. A thing comes after what it follows from, whatever the machine does.
#include "llmbench.hpp"
#include "core/planning/planning.hpp"
#include "effects/gates/slot.hpp"
#include "effects/targets/live_target.hpp"
#include "program/serve.hpp"
#include "program/truth_log.hpp"
#include "support/relay.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace llmbench_program;

namespace {

/// Bytes that were there when the relay took them, and not with the other side before it gave them.
struct passed {
    bool is_answer = false;
    std::string bytes{};
    long long taken_ns = 0, given_ns = 0;
};
/// A request and its answer.
struct exchanged {
    std::string asked{}, answered{};
    long long taken_ns = 0, given_ns = 0;  // when the request's first bytes came, and its last ones went on
    std::vector<passed> pieces{};          // of the answer
    /// The piece that brought the last byte of each event with content.
    std::vector<const passed*> contents() const {
        std::vector<const passed*> all;
        std::size_t piece = 0, before = 0;
        for (std::size_t i = 0; (i = answered.find("\"content\":\" ", i)) != answered.npos; ++i) {
            const std::size_t end = answered.find("\n\n", i) + 2;
            while (before + pieces[piece].bytes.size() < end) before += pieces[piece++].bytes.size();
            all.push_back(&pieces[piece]);
        }
        return all;
    }
};
/// Passes bytes on and writes down when.
class logging_relay {
public:
    explicit logging_relay(int port)
        : listener_(relay::ipv4_listener()),
          acceptor_(listener_, [this, port](int fd, int going) { pass_on(fd, going, port); }) {}
    int port() const { return relay::port_of(listener_); }
    /// By X-Request-Id.
    std::map<std::string, exchanged> log() const {
        const std::lock_guard lock(mutex_);
        std::map<std::string, exchanged> all;
        for (const auto& connection : connections_) {
            exchanged now;
            for (const passed& p : connection) {
                if (!p.is_answer && !now.pieces.empty()) keep(all, std::exchange(now, {}));
                if (p.is_answer) {
                    now.pieces.push_back(p);
                    now.answered += p.bytes;
                    continue;
                }
                if (now.asked.empty()) now.taken_ns = p.taken_ns;
                now.asked += p.bytes;
                now.given_ns = p.given_ns;
            }
            keep(all, now);
        }
        return all;
    }

private:
    static void keep(std::map<std::string, exchanged>& all, const exchanged& e) {
        const std::string name = "X-Request-Id: ";
        const std::size_t at = e.asked.find(name);
        if (at == e.asked.npos) return;
        const std::size_t from = at + name.size();
        all[e.asked.substr(from, e.asked.find("\r\n", from) - from)] = e;
    }
    void pass_on(int from, int going, int port) {
        std::vector<passed>* log = nullptr;
        {
            const std::lock_guard lock(mutex_);
            log = &connections_.emplace_back();
        }
        const int to = relay::connected_to(port);
        pollfd p[3] = {{going, POLLIN, 0}, {from, POLLIN, 0}, {to, POLLIN, 0}};
        char buffer[65536];
        bool is_open = to >= 0;
        while (is_open && ::poll(p, 3, -1) > 0 && !p[0].revents)
            for (const auto& [in, out] : {std::pair{1, 2}, std::pair{2, 1}}) {
                if (!p[in].revents) continue;
                const ssize_t n = ::recv(p[in].fd, buffer, sizeof buffer, 0);
                const long long taken = now_ns();
                if (n > 0) {
                    const std::lock_guard lock(mutex_);
                    log->push_back({in == 2, {buffer, static_cast<std::size_t>(n)}, taken, now_ns()});
                }
                is_open = n > 0 && ::send(p[out].fd, buffer, static_cast<std::size_t>(n),
                                          sockets::no_signal) == n;
                if (!is_open) break;
            }
        if (to >= 0) ::close(to);
    }

    mutable std::mutex mutex_{};
    std::list<std::vector<passed>> connections_{};
    int listener_;
    relay::acceptor acceptor_;
};

}  // namespace

TEST_CASE("the log of a paced server agrees with a relay before it, and with the kernel's stamps") {
    constexpr int users = 4, tokens = 8;
    constexpr long long first_ns = 5000000, every_ns = 2000000;
    serving what;
    what.paced = pace{time_span::from_seconds(1e-9 * first_ns), time_span::from_seconds(1e-9 * every_ns)};
    serving_host server(what, listening_address({"--host", "127.0.0.1"}, 0), {});
    repeat_data d;
    std::map<std::string, exchanged> passed_on;
    {
        logging_relay between(server.port());
        const scenario s{
            .target = endpoint{.url = "http://127.0.0.1:" + std::to_string(between.port())},
            .workload = synthetic{.prompt_tokens = fixed(16), .output_tokens = fixed(tokens)},
            .arrivals = closed_loop(users),
            .warmup = 0,
            .requests = 60,
            .repeats = 1};
        live_target target(s.target, run_variant::candidate);
        target.bring_up();
        const plan p = planned(s, 1);
        d = run_slot({.what = p, .candidate = target}, {.is_kept = false}).repeats[0];
        passed_on = between.log();
    }
    server.stop();
    std::string log = printed("{\"schema\":\"%s\",\"server\":\"paced\"}\n", truth_schema);
    for (const served_request& r : server.take().requests) log += truth_line(r);
    const true_requests truth = read_truth(log, "truth.jsonl");

    std::map<std::string, record> measured;
    for (const record& r : d.records)
        if (r.status == request_status::ok) measured[r.id] = r;
    CHECK(measured.size() == 60);
    std::size_t compared = 0;
    for (const timed_request& t : truth.requests) {
        const auto client = measured.find(t.what.id);
        if (client == measured.end()) continue;  // the check before the load
        CAPTURE(t.what.id);
        ++compared;
        REQUIRE(passed_on.contains(t.what.id));
        const exchanged& e = passed_on[t.what.id];
        const std::vector<const passed*> contents = e.contents();
        REQUIRE(contents.size() == tokens);
        REQUIRE(t.gaps_s.size() == tokens - 1);
        // What the kernel stamps is known by this clock to so much.
        constexpr long long known_ns = kernel_clock::noticed_ns;
        const record& ours = client->second;
        CHECK(ours.sent_ns <= e.taken_ns);
        CHECK(e.given_ns <= t.what.sent_ns + known_ns);  // received, of the server
        long long handed_ns = t.what.first_token_ns;
        for (std::size_t k = 0; k < tokens; ++k) {
            if (k > 0) handed_ns += static_cast<long long>(t.gaps_s[k - 1] * 1e9 + 0.5);
            CHECK(handed_ns >= t.what.sent_ns + first_ns + every_ns * static_cast<long long>(k));
            CHECK(handed_ns <= contents[k]->taken_ns);
        }
        CHECK(handed_ns == t.what.last_token_ns);
        CHECK(contents.front()->given_ns <= ours.first_token_ns + known_ns);
        CHECK(contents.back()->given_ns <= ours.last_token_ns + known_ns);
        CHECK(t.what.end_ns <= e.pieces.back().taken_ns);
        CHECK(e.pieces.back().given_ns <= ours.end_ns + known_ns);
        CHECK(t.what.output_tokens == ours.output_tokens);
    }
    CHECK(compared == measured.size());
}
