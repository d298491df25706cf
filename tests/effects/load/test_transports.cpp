// A connection with a protocol of its own: after each read its transport says kept, over or broken,
// and the connection does what that asks, whatever the server goes on to send.
#include "one_thread.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

using namespace one_thread;

namespace {

/// Lines: "?" asks for a reply, "!" breaks the protocol, "bye" ends it, all others are an answer.
class line_transport final : public own_transport {
public:
    text name() const override { return "lines"; }
    text sent(const text&) override { return is_asked_ = true, "ask\n"; }
    carried received(const text& bytes) override {
        carried c;
        std::string reply;
        held_ += str(bytes);
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = held_.find('\n', begin)) != std::string::npos;) {
            const std::string line = held_.substr(begin, end - begin);
            begin = end + 1;
            if (line == "?") { reply += "here\n"; continue; }
            const bool ends = line == "!" || line == "bye";
            if (!ends) c.answer = text(healthy(1));
            if (ends && is_asked_) c.why = text("the server said " + line);
            if (ends) use_ = line == "!" ? socket_use::broken : socket_use::over;
            is_asked_ = false;
        }
        held_.erase(0, begin);
        c.reply = text(reply);
        c.use = use_;
        c.has_more = !held_.empty();
        return c;
    }
    text goodbye() override { return use_ == socket_use::kept ? "goodbye\n" : ""; }

private:
    std::string held_{};
    bool is_asked_ = false;
    socket_use use_ = socket_use::kept;
};

/// A network of one server, whose next reads and room to write a test says.
class told_network final : public network {
public:
    struct one final : network_socket {
        using network_socket::network_socket;
    };
    socket connect(const address&, const address*, socket_user& user) override {
        ++connected;
        return last = std::make_shared<one>(user);
    }
    int connect_error(const socket&) override { return 0; }
    long long read(const socket&, char* into, std::size_t bytes) override {
        ++reads;
        std::string next = always;
        if (next.empty() && !comes.empty()) {
            next = comes.front();
            comes.pop_front();
        }
        errno = EAGAIN;
        if (next.empty()) return -1;
        last->came_ns = stamp_ns;
        const std::size_t n = std::min(bytes, next.size());
        std::memcpy(into, next.data(), n);
        return static_cast<long long>(n);
    }
    long long write(const socket&, const char* from, std::size_t bytes) override {
        errno = EAGAIN;
        if (is_full) return -1;
        written.append(from, bytes);
        return static_cast<long long>(bytes);
    }
    void await_room(const socket&) override {}
    void close(socket) override { ++closed; }
    using network::wait;
    void wait(long long, long long) override {}
    long long full_turns(std::size_t) const override { return 0; }
    using network::each;
    void each(const std::function<void()>&) override {}

    std::deque<std::string> comes{};
    std::string always{}, written{};  // `always`: what each read has, without an end
    socket last{};
    long long stamp_ns = 0;  // of reads, by the kernel
    bool is_full = false;
    int reads = 0, connected = 0, closed = 0;
};

struct carried_connection final : request_sink {
    told_network net{};
    load_target target = [] {
        load_target t = target_at({1});
        t.transport = [](const char*) -> own_transport* { return new line_transport; };
        return t;
    }();
    llmbench::limits limits{};
    client_io io{target, limits, true, {}, net};
    connection c{io, *this};
    vector<record> delivered{};
    int idle = 0, retired = 0;

    void on_delivered(const planned_request&, record&& r, const answer_reader&) override {
        delivered.push_back(std::move(r));
    }
    void on_idle(connection&) override { ++idle; }
    void on_retired(connection&) override { ++retired; }

    void ask() {
        const int before = net.connected;
        c.start(asking());
        if (net.connected > before) net.last->user->on_writable();
    }
    void hear(const std::string& lines) {
        net.comes.push_back(lines);
        net.last->user->on_readable();
    }
    void ask_and_hear(const std::string& lines = "words\n") {
        ask();
        hear(lines);
    }
};

}  // namespace

TEST_CASE("a server that never pauses gets one read a look, between requests and within them") {
    carried_connection x;
    x.ask_and_hear();
    REQUIRE(x.idle == 1);
    x.net.always = "?\n";
    for (int i = 1; i <= 100; ++i) {
        const int before = x.net.reads;
        CHECK(x.c.use() == socket_use::kept);
        CHECK(x.net.reads == before + 1);
    }
    x.c.start(asking());
    x.net.last->user->on_readable();
    CHECK(x.delivered.size() == 1);
    // Its limits count all the time.
    x.c.check_limits(now_ns() + ns_of(x.io.limits.first_event.seconds()) + 1'000'000'000);
    REQUIRE(x.delivered.size() == 2);
    CHECK(x.delivered[1].status == request_status::timeout);
    CHECK(x.retired == 1);
}

TEST_CASE("a server that asks for replies and reads none is given up before they fill the memory") {
    for (const bool is_idle : {true, false}) {
        CAPTURE(is_idle);
        carried_connection x;
        x.ask_and_hear();
        if (!is_idle) x.ask();
        x.net.is_full = true;
        for (int i = 0; i < 20000; ++i) x.net.always += "?\n";
        int looks = 0;
        while (looks < 1000 && x.retired == 0) {
            x.net.last->user->on_readable();
            ++looks;
        }
        CHECK(looks > 5);
        CHECK(looks < 20);  // of 100 kB each, for 1 MiB
        REQUIRE(x.retired == 1);
        if (is_idle) continue;
        REQUIRE(x.delivered.size() == 2);
        CHECK(x.delivered[1].status == request_status::protocol);
        CHECK(str(x.delivered[1].error) ==
              "the server asks for replies and reads none: over 1 MiB of them waits");
    }
}

TEST_CASE("replies that a server reads are no backlog, however many") {
    carried_connection x;
    x.ask_and_hear();
    for (int i = 0; i < 20000; ++i) x.net.always += "?\n";
    for (int i = 0; i < 100; ++i) CHECK(x.c.use() == socket_use::kept);
}

TEST_CASE("a request that meets the end of its socket goes over another one, once") {
    carried_connection x;
    x.ask_and_hear();
    x.ask_and_hear("bye\n");
    CHECK(x.delivered.size() == 1);
    REQUIRE(x.net.connected == 2);
    x.net.last->user->on_writable();
    SUBCASE("and its answer counts") {
        x.hear("words\n");
        REQUIRE(x.delivered.size() == 2);
        CHECK(x.delivered[1].status == request_status::ok);
        CHECK(x.delivered[1].resends == 1);
    }
    SUBCASE("but not twice") {
        x.hear("bye\n");
        REQUIRE(x.delivered.size() == 2);
        CHECK(x.delivered[1].status == request_status::server);
        CHECK(str(x.delivered[1].error) == "the server said bye");
        CHECK(x.delivered[1].resends == 1);
        CHECK(x.retired == 1);
        CHECK(x.net.connected == 2);
    }
}

TEST_CASE("a new socket that ends, and one that breaks its protocol, fail their request") {
    carried_connection fresh;
    fresh.ask_and_hear("bye\n");
    REQUIRE(fresh.delivered.size() == 1);
    CHECK(fresh.delivered[0].status == request_status::server);
    CHECK(fresh.delivered[0].resends == 0);
    carried_connection x;
    x.ask_and_hear();
    x.ask_and_hear("!\n");
    REQUIRE(x.delivered.size() == 2);
    CHECK(x.delivered[1].status == request_status::protocol);
    CHECK(str(x.delivered[1].error) == "the server said !");
    CHECK(x.net.connected == 1);
    CHECK(x.retired == 1);
}

TEST_CASE("what comes behind an answer, or between two, ends the socket and no request") {
    for (const std::string last : {"bye\n", "!\n", "words\n"}) {
        CAPTURE(last);
        carried_connection behind;
        behind.ask_and_hear("words\n" + last);
        REQUIRE(behind.delivered.size() == 1);
        CHECK(behind.delivered[0].status == request_status::ok);
        if (last != "words\n") CHECK(behind.retired == 1);
        carried_connection between;
        between.ask_and_hear();
        between.hear(last);
        CHECK(between.delivered.size() == 1);
        CHECK(between.retired == 1);
    }
}

TEST_CASE("a transport says goodbye once, where the socket takes it") {
    const auto said = [](const told_network& n) { return n.written.ends_with("goodbye\n"); };
    carried_connection x;
    x.ask_and_hear();
    CHECK_FALSE(said(x.net));
    x.c.close();
    CHECK(x.net.written == "ask\ngoodbye\n");
    x.c.close();
    CHECK(x.net.written == "ask\ngoodbye\n");
    CHECK(x.net.closed == 1);
    carried_connection busy;
    busy.ask();
    busy.c.abandon(request_status::cancelled, "interrupted");
    CHECK(said(busy.net));
    carried_connection opening;
    opening.c.open_ahead();
    opening.c.close();
    CHECK(opening.net.written == "");
    carried_connection over;
    over.ask_and_hear("words\nbye\n");
    CHECK_FALSE(said(over.net));
}

TEST_CASE("a server whose HTTP closes unannounced keeps its sockets of another protocol") {
    load_target both = target_at({1});
    both.connection_resets = resets_by_policy;  // in the check before the load, over HTTP
    const llmbench::limits usual;
    told_network net;
    CHECK_FALSE(client_io(both, usual, true, {}, net).keeps_connections());
    both.transport = [](const char*) -> own_transport* { return new line_transport; };
    CHECK(client_io(both, usual, true, {}, net).keeps_connections());
}

TEST_CASE("an event that came with a part of the next message has no time of its own, if it was read late") {
    for (const std::string behind : {"", "wo"}) {
        CAPTURE(behind);
        carried_connection x;
        x.ask();
        const long long asked = now_ns(), late = 50'000'000;
        x.io.on_wake(asked + 2 * late, asked, asked);  // the thread slept too long
        x.net.stamp_ns = asked + late;
        x.hear("words\n" + behind);
        REQUIRE(x.delivered.size() == 1);
        CHECK(x.delivered[0].status == request_status::ok);
        CHECK((x.delivered[0].first_early_ns > 0) == !behind.empty());
    }
}
