// One thread of a load as its connections see it, driven turn by turn by a test.
#pragma once

#include "effects/net/machine_network.hpp"
#include "effects/load/connection.hpp"

#include "support/peer.hpp"
#include "support/scripted_server.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace one_thread {

using namespace llmbench;
using namespace llmbench::detail;
using peers::peer;

inline address address_of(int port) {
    return resolved({.host = "127.0.0.1", .port = std::to_string(port)}).front();
}

/// What a target at these ports of 127.0.0.1 is.
inline load_target target_at(const vector<int>& ports) {
    load_target t;
    t.url.host = "127.0.0.1";
    vector<address> all;
    for (const int port : ports) all.push_back(address_of(port));
    t.addresses = known_addresses(all);
    return t;
}

/// Keeps what it is told, and turns when it is asked to.
class thread final : public request_sink {
public:
    explicit thread(load_target t, const llmbench::limits& l = {}, bool is_streamed = true)
        : target(std::move(t)), limits(l), io(target, limits, is_streamed, {}, *sockets) {
        sockets->stamp_arrivals();
    }
    thread(const thread&) = delete;
    thread& operator=(const thread&) = delete;

    void on_delivered(const planned_request& w, record&& r, const answer_reader& a) override {
        places.push_back(w.index);
        delivered.push_back(std::move(r));
        words.push_back(a.words());
    }
    void on_idle(connection&) override { ++idle; }
    void on_retired(connection&) override { ++retired; }

    /// Waits for events and lets the connections have them, until it holds; false where it never
    /// does.
    template <class Holds>
    bool turn_until(Holds&& holds) {
        return peers::turn_until(holds, [this] { turn(20000000); });
    }
    /// As long as nobody has anything to say.
    void turn(long long at_most_ns) {
        io.sockets->wait(now_ns() + at_most_ns);
        io.woke_ns = io.seen_ns = now_ns();
        io.sockets->each();
    }

    load_target target;
    llmbench::limits limits;
    const std::unique_ptr<network> sockets = new_network();
    client_io io;
    vector<std::size_t> places{};
    vector<record> delivered{};
    vector<std::string> words{};
    int idle = 0, retired = 0;
};

inline const std::string request_end = "\r\n\r\n{}";
/// A request that is to be sent now.
inline dispatched_request asking(std::size_t index = 0, const std::string& body = "{}",
                                 const asked_answer& asked = {}) {
    const long long now = now_ns();
    return {{index, now, -1},
            request_text(http_method::post, "/v1/completions", "127.0.0.1", "", body),
            now,
            0,
            asked};
}
inline std::string healthy(int tokens = 3, const std::string& fields = "") {
    return scripted::sized_stream(scripted::healthy_events(tokens), fields);
}

}  // namespace one_thread
