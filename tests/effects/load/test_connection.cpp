// One connection of the load, against a server in the same thread that says what it is told: what a
// request goes through, and what the connection's owner gets to know of it.
#include "core/measured/repeat.hpp"
#include "one_thread.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

using namespace one_thread;

namespace {

constexpr long long second = 1000000000;

vector<int> ports_of(const vector<address>& all) {
    vector<int> ports;
    for (const address& a : all) {
        sockaddr_in in{};
        std::memcpy(&in, &a.storage, sizeof in);
        ports.push_back(ntohs(in.sin_port));
    }
    return ports;
}

/// A connection to a peer.
struct pair_of_them {
    peer server{};
    thread owner;
    connection c;
    explicit pair_of_them(const llmbench::limits& l = {}, bool is_streamed = true)
        : owner(target_at({server.port()}), l, is_streamed), c(owner.io, owner) {}

    /// As far as the server having the whole request.
    void ask(std::size_t index = 0) {
        c.start(asking(index));
        REQUIRE(owner.turn_until([&] { return owner.io.connections_opened > 0; }));
        REQUIRE(server.accept());
        REQUIRE(hears());
    }
    bool hears() {
        const std::string& all = server.heard_until(request_end);
        return all.size() >= request_end.size() &&
               all.compare(all.size() - request_end.size(), request_end.size(), request_end) == 0;
    }
    bool delivers(std::size_t n = 1) {
        return owner.turn_until([&] { return owner.delivered.size() >= n; });
    }
    bool rests(int times = 1) { return owner.turn_until([&] { return owner.idle >= times; }); }
    bool ends(int times = 1) { return owner.turn_until([&] { return owner.retired >= times; }); }
    const record& last() const { return owner.delivered.back(); }
};

}  // namespace

// ---- requests that are answered

TEST_CASE("a connection that was opened ahead waits for its request") {
    pair_of_them p;
    p.c.open_ahead();
    REQUIRE(p.rests());
    CHECK(p.owner.delivered.empty());
    REQUIRE(p.server.accept());
    p.c.start(asking());
    CHECK(p.hears());
    p.server.say(healthy());
    REQUIRE(p.delivers());
    CHECK(p.last().status == request_status::ok);
    CHECK(p.last().connected_ns - p.last().dispatched_ns < second);
}

TEST_CASE("a request may be given to a connection that is still on its way") {
    pair_of_them p;
    p.c.open_ahead();
    p.c.start(asking());
    REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened == 1; }));
    REQUIRE(p.server.accept());
    CHECK(p.hears());
    CHECK(p.owner.idle == 0);
    p.server.say(healthy());
    CHECK(p.rests());
}

TEST_CASE("events of one read share its stamp and are counted as read together") {
    pair_of_them p;
    p.ask();
    p.server.say(scripted::chunked_head() + scripted::chunk(scripted::chat_chunk("a")));
    REQUIRE(p.owner.turn_until([&] { return p.owner.io.content_events == 1; }));
    CHECK(p.owner.io.coalesced_events == 0);
    p.server.say(scripted::chunk(scripted::chat_chunk("b") + scripted::chat_chunk("c")) +
                 scripted::chunk(scripted::finish() + scripted::done()) + scripted::last_chunk());
    REQUIRE(p.rests());
    CHECK(p.owner.io.content_events == 3);
    CHECK(p.owner.io.coalesced_events == 1);
    CHECK(p.last().events == 3);
    CHECK(p.last().first_token_ns < p.last().last_token_ns);
}

TEST_CASE("the words of an answer are kept where they are wanted") {
    for (const bool wanted : {false, true}) {
        pair_of_them p;
        p.c.start(asking(0, "{}", {.is_kept = wanted}));
        REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened == 1; }));
        REQUIRE(p.server.accept());
        p.server.say(healthy(2));
        REQUIRE(p.rests());
        CHECK(p.owner.words == vector<std::string>{wanted ? " word word" : ""});
    }
}

TEST_CASE("a long request goes out as the server takes it") {
    pair_of_them p;
    const std::string body(32 << 20, 'x');
    p.c.start(asking(0, body));
    REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened == 1; }));
    REQUIRE(p.server.accept());
    std::size_t heard = 0;
    while ((heard = p.server.heard(heard + 1).size()) < body.size()) p.owner.turn(0);
    p.server.say(healthy());
    REQUIRE(p.rests());
    CHECK(p.last().status == request_status::ok);
    CHECK(p.last().first_token_ns >= p.last().sent_ns);
}

TEST_CASE("an answer that comes before the request is out counts, and ends the connection") {
    pair_of_them p;
    p.c.start(asking(0, std::string(32 << 20, 'x')));
    REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened == 1; }));
    REQUIRE(p.server.accept());
    REQUIRE(p.server.hear());
    p.server.say(scripted::json("413 Too Large", "{\"error\":\"too long\"}"));
    REQUIRE(p.ends());
    CHECK(p.last().status == request_status::http);
    CHECK(p.last().http_status == 413);
    CHECK(p.owner.idle == 0);
}

// ---- ends

TEST_CASE("none is kept of a server that closes right after the first answer, twice") {
    pair_of_them p;
    for (int i = 0; i < 3; ++i) {
        p.c.start(asking(static_cast<std::size_t>(i)));
        REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened == i + 1; }));
        REQUIRE(p.server.accept());
        REQUIRE(p.hears());
        p.server.say(healthy());
        REQUIRE(p.delivers(static_cast<std::size_t>(i + 1)));
        CHECK(p.owner.io.keeps_connections() == (i < 2));
        CHECK(p.owner.idle == std::min(i + 1, 2));  // the third is closed by ourselves
        if (i == 2) break;
        p.server.hang_up();
        REQUIRE(p.owner.turn_until([&] { return p.owner.retired == i + 1; }));
        CHECK(p.owner.io.connection_resets == i + 1);
        CHECK_FALSE(p.c.is_usable());  // which is no other time
        CHECK(p.owner.io.connection_resets == i + 1);
    }
    for (const record& r : p.owner.delivered) {
        CHECK(r.status == request_status::ok);
        CHECK(r.resends == 0);
    }
}

TEST_CASE("a server that closes a connection of many answers keeps the others") {
    pair_of_them p;
    for (int i = 0; i < 2; ++i) {
        if (i == 0) p.ask();
        else p.c.start(asking(1));
        if (i > 0) REQUIRE(p.hears());
        p.server.say(healthy());
        REQUIRE(p.rests(i + 1));
    }
    p.server.hang_up();
    REQUIRE(p.owner.turn_until([&] { return p.owner.retired == 1; }));
    CHECK(p.owner.io.connection_resets == 0);
}

TEST_CASE("a connection that waits for its second request is not used where the server keeps none") {
    pair_of_them p;
    p.ask();
    p.server.say(healthy());
    REQUIRE(p.rests());
    CHECK(p.c.is_usable());
    p.owner.io.connection_resets = resets_by_policy;  // other connections have seen them
    CHECK_FALSE(p.c.is_usable());
}

TEST_CASE("a new connection that ends without an answer is a failure") {
    pair_of_them p;
    p.ask();
    p.server.hang_up();
    REQUIRE(p.ends());
    REQUIRE(p.owner.delivered.size() == 1);
    CHECK(p.last().status == request_status::truncated);
    CHECK(str(p.last().error) ==
          "the connection was lost before an answer: the server closed it");
}

TEST_CASE("a kept connection that ends as the request goes out is replaced once") {
    pair_of_them p;
    p.ask(0);
    p.server.say(healthy());
    REQUIRE(p.rests());
    p.c.start(asking(1));
    p.server.hang_up();
    REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened == 2; }));
    CHECK(p.owner.delivered.size() == 1);
    REQUIRE(p.server.accept());
    REQUIRE(p.hears());  // the same request once more
    // It may have closed after the first answer whatever came: once more, and none is used twice.
    CHECK(p.owner.io.connection_resets == 1);
    SUBCASE("and its answer counts") {
        p.server.say(healthy());
        REQUIRE(p.delivers(2));
        CHECK(p.last().status == request_status::ok);
        CHECK(p.last().connected_ns > p.last().dispatched_ns);
        CHECK(p.last().sent_ns >= p.last().connected_ns);
        CHECK(p.last().resends == 1);
        CHECK(p.owner.delivered[0].resends == 0);
    }
    SUBCASE("but not twice") {
        p.server.hang_up();
        REQUIRE(p.ends());
        CHECK(p.last().status == request_status::truncated);
        CHECK(p.last().resends == 1);
        CHECK(p.owner.io.connections_opened == 2);
    }
    CHECK(p.owner.places == vector<std::size_t>{0, 1});
}

TEST_CASE("an idle connection that the server closes, or speaks on, is given up") {
    for (const bool speaks : {false, true}) {
        CAPTURE(speaks);
        pair_of_them p;
        p.c.open_ahead();
        REQUIRE(p.rests());
        REQUIRE(p.server.accept());
        CHECK(p.c.is_usable());
        if (speaks) p.server.say("HTTP/1.1 408 Request Timeout\r\n\r\n");
        else p.server.hang_up();
        REQUIRE(p.ends());
        CHECK_FALSE(p.c.is_usable());
        CHECK(p.owner.delivered.empty());
    }
}

TEST_CASE("[DONE] delivers, and what follows only frees the connection") {
    pair_of_them p;
    p.ask();
    p.server.say(scripted::chunked_head() +
                 scripted::chunk(scripted::chat_chunk("a") + scripted::done()));
    REQUIRE(p.delivers());
    CHECK(p.c.is_delivered());
    CHECK(p.owner.idle == 0);
    SUBCASE("at the end of the body") {
        p.server.say(scripted::last_chunk());
        REQUIRE(p.rests());
        CHECK(p.owner.retired == 0);
    }
    SUBCASE("or by its end, a second later") {
        p.c.check_limits(now_ns() + second / 2);
        CHECK(p.owner.retired == 0);
        p.c.check_limits(now_ns() + 2 * second);
        CHECK(p.owner.retired == 1);
    }
    CHECK(p.owner.delivered.size() == 1);
    CHECK(p.last().status == request_status::ok);
}

TEST_CASE("a request that is abandoned ends with what its owner says") {
    pair_of_them p;
    p.ask();
    p.c.abandon(request_status::cancelled, "interrupted");
    REQUIRE(p.owner.delivered.size() == 1);
    CHECK(p.last().status == request_status::cancelled);
    CHECK(str(p.last().error) == "interrupted");
    CHECK(p.last().end_ns > 0);
    CHECK(p.owner.retired == 1);
    CHECK_FALSE(p.server.hear());  // the connection is closed
}

// ---- addresses

TEST_CASE("an address that refuses leaves the request to the next one, which is remembered") {
    peer server;
    thread owner(target_at({free_port(), server.port()}));
    connection c(owner.io, owner);
    c.start(asking());
    REQUIRE(owner.turn_until([&] { return owner.io.connections_opened == 1; }));
    CHECK(owner.io.good_address == 1);
    REQUIRE(server.accept());
    server.say(healthy());
    REQUIRE(owner.turn_until([&] { return owner.idle == 1; }));
    CHECK(owner.delivered.at(0).status == request_status::ok);

    // The next repeat begins with it, and so does whoever else asks this server.
    const client_io later(owner.target, owner.limits, true, {}, *owner.sockets);
    CHECK(later.good_address == 0);
    CHECK(ports_of(later.addresses).front() == server.port());
}

TEST_CASE("where all addresses refuse there is no connection") {
    thread owner(target_at({free_port(), free_port()}));
    connection c(owner.io, owner);
    c.start(asking());
    REQUIRE(owner.turn_until([&] { return owner.retired == 1; }));
    CHECK(owner.delivered.at(0).status == request_status::connect);
    CHECK(str(owner.delivered.at(0).error) == "cannot connect: Connection refused");
    CHECK(owner.io.connections_opened == 0);

    thread ahead(target_at({free_port()}));
    connection nobodys(ahead.io, ahead);
    nobodys.open_ahead();
    REQUIRE(ahead.turn_until([&] { return ahead.retired == 1; }));
    CHECK(ahead.delivered.empty());
}

TEST_CASE("an address that does not answer is left after its share of limits.connect") {
    peer silent, server;
    thread owner(target_at({silent.port(), server.port()}));
    connection c(owner.io, owner);
    c.start(asking());  // nobody has turned yet: it is on its way
    c.check_limits(now_ns() + 2 * second);
    CHECK(owner.delivered.empty());
    c.check_limits(now_ns() + 3 * second);  // of 5 s for two addresses
    REQUIRE(owner.turn_until([&] { return owner.io.connections_opened == 1; }));
    CHECK(owner.io.good_address == 1);
    CHECK(server.accept());
}

TEST_CASE("an address that is only slow has what is left of limits.connect where the others refuse") {
    peer slow;
    thread owner(target_at({slow.port(), free_port()}));
    connection c(owner.io, owner);
    c.start(asking());  // nobody has turned yet: it is on its way
    c.check_limits(now_ns() + 3 * second);  // of 5 s for two addresses
    REQUIRE(owner.turn_until([&] { return owner.io.connections_opened == 1; }));
    CHECK(owner.delivered.empty());
    CHECK(owner.io.good_address == 0);
    c.check_limits(now_ns() + 6 * second);  // sent by now
    CHECK(owner.delivered.empty());
}

// ---- limits, at times that the test makes up

TEST_CASE("the next limit of a request is known, and passes right after that") {
    for (const int events : {0, 1}) {
        pair_of_them p;
        p.c.start(asking());
        CHECK(p.c.next_limit_ns() == 0);  // on its way: looked at each time
        REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened > 0; }));
        REQUIRE(p.server.accept());
        REQUIRE(p.hears());
        p.server.say(scripted::chunked_head());
        if (events > 0) p.server.say(scripted::chunk(scripted::chat_chunk("a")));
        REQUIRE(p.owner.turn_until([&] { return p.owner.io.content_events == events; }));
        const long long limit = p.c.next_limit_ns(), longest = (events > 0 ? 30 : 60) * second;
        CHECK(limit <= now_ns() + longest);
        CHECK(limit > now_ns() + longest - 20 * second);
        p.c.check_limits(limit);
        CHECK(p.owner.delivered.empty());
        p.c.check_limits(limit + 1);
        CHECK(p.owner.delivered.size() == 1);
    }
    pair_of_them p({}, false);
    p.ask();
    p.c.check_limits(p.c.next_limit_ns());
    CHECK(p.owner.delivered.empty());
    p.c.check_limits(p.c.next_limit_ns() + 1);
    REQUIRE(p.owner.delivered.size() == 1);
    CHECK(str(p.last().error) == "not complete within 300 s (limits.total)");
}

TEST_CASE("who leaves closes the connection then, with what came until then") {
    for (const int events : {0, 2}) {
        pair_of_them p;
        dispatched_request r = asking();
        r.cancel_after_s = 0.5;
        p.c.start(r);
        REQUIRE(p.owner.turn_until([&] { return p.owner.io.connections_opened > 0; }));
        REQUIRE(p.server.accept());
        REQUIRE(p.hears());
        p.server.say(scripted::chunked_head());
        for (int i = 0; i < events; ++i)
            p.server.say(scripted::chunk(scripted::chat_chunk("a")));
        REQUIRE(p.owner.turn_until([&] { return p.owner.io.content_events == events; }));
        p.c.check_limits(r.dispatched_ns + 499'000'000);
        CHECK(p.owner.delivered.empty());
        p.c.check_limits(r.dispatched_ns + 500'000'000);
        REQUIRE(p.owner.delivered.size() == 1);
        CHECK(p.last().status == request_status::left);
        CHECK(str(p.last().error) == "after 500 ms");
        CHECK(p.last().events == events);
        CHECK(p.last().output_tokens == events);
        CHECK(p.owner.retired == 1);
    }
}

// ---- turns

TEST_CASE("what was found of a socket that was closed since is not its successor's") {
    pair_of_them p;
    p.ask(0);
    p.server.say(healthy());
    // The answer is found, and nobody told yet.
    for (int i = 0; i < 5; ++i) p.owner.io.sockets->wait(now_ns() + 20000000);
    p.c.abandon(request_status::cancelled, "interrupted");
    p.c.start(asking(1));
    p.owner.io.sockets->each();
    CHECK(p.owner.io.connections_opened == 1);
    CHECK(p.owner.delivered.size() == 1);
    CHECK(p.owner.turn_until([&] { return p.owner.io.connections_opened == 2; }));
}

#ifdef LLMBENCH_WITH_TLS
#include "support/tls_server.hpp"

// ---- TLS

namespace {

/// A certificate, a server behind it, and a thread that asks there.
struct behind_tls {
    tls::identity good = tls::made("good");
    scripted::server server;
    tls::front front;
    thread owner;
    explicit behind_tls(tls::manner how = {}, bool verify = false)
        : front(server.port(), {with_identity(how)}), owner(target(verify)) {}
    tls::manner with_identity(tls::manner how) const {
        how.who = &good;
        return how;
    }
    load_target target(bool verify) const {
        load_target t = target_at({front.port()});
        t.tls = std::make_shared<tls_client>(tls_options{.verify = verify}, t.url);
        return t;
    }
};

}  // namespace

TEST_CASE("a request goes through TLS, and a later connection goes on with the session") {
    behind_tls t;
    connection first(t.owner.io, t.owner), later(t.owner.io, t.owner);
    first.start(asking(0));
    REQUIRE(t.owner.turn_until([&] { return t.owner.idle == 1; }));
    later.start(asking(1));
    REQUIRE(t.owner.turn_until([&] { return t.owner.idle == 2; }));
    for (const record& r : t.owner.delivered) {
        CHECK(r.status == request_status::ok);
        CHECK(r.events == 3);
        CHECK(r.connected_ns >= r.dispatched_ns);
        CHECK(r.sent_ns >= r.connected_ns);
    }
    CHECK(t.front.full() == 1);
    CHECK(t.front.resumed() == 1);
    CHECK(t.owner.io.connections_opened == 2);
    first.close();
    CHECK_FALSE(first.is_usable());
}

TEST_CASE("a handshake that fails is told as such, and nobody is told of one without a request") {
    behind_tls t({}, true);
    connection asked(t.owner.io, t.owner), ahead(t.owner.io, t.owner);
    asked.start(asking());
    REQUIRE(t.owner.turn_until([&] { return t.owner.retired == 1; }));
    REQUIRE(t.owner.delivered.size() == 1);
    CHECK(t.owner.delivered[0].status == request_status::tls);
    CHECK(str(t.owner.delivered[0].error).find("the server's certificate ") == 0);
    CHECK(t.owner.delivered[0].sent_ns == 0);
    ahead.open_ahead();
    REQUIRE(t.owner.turn_until([&] { return t.owner.retired == 2; }));
    CHECK(t.owner.delivered.size() == 1);
}

#endif

// ---- what the client itself lacks

TEST_CASE("a client without a descriptor left says so, and not that the server is away") {
    pair_of_them p;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const int next = ::dup(0);
    REQUIRE(next >= 0);
    ::close(next);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(next);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    p.c.start(asking());
    ::setrlimit(RLIMIT_NOFILE, &before);
    REQUIRE(p.owner.delivered.size() == 1);
    CHECK(p.last().status == request_status::connect);
    CHECK(std::string(p.last().error.c_str()) ==
          "client: no file descriptor is left (EMFILE): raise its limit, ulimit -n");
    CHECK(failed_by_client(p.last()));
}

TEST_CASE("each want of the client has its remedy, and a refusal is none") {
    for (const int error : {EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS, ENOMEM, ENOSPC})
        CHECK_FALSE(missing_resource(error).empty());
    for (const int error : {ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT, EAGAIN})
        CHECK(missing_resource(error).empty());
}

TEST_CASE("time in which the client did not run is none that the server was given") {
    pair_of_them both({.first_event = 10_s});
    both.ask();
    const long long sent = now_ns();
    both.owner.io.alert.begin(sent);
    both.owner.io.alert.on_step(sent + 8 * second);  // stopped meanwhile
    both.c.check_limits(sent + 15 * second);
    CHECK(both.owner.delivered.empty());
    both.c.check_limits(sent + 19 * second);
    REQUIRE(both.owner.delivered.size() == 1);
    CHECK(both.last().status == request_status::timeout);
}

// ---- a socket whose queue is full

namespace {
/// A Unix-domain socket that takes one connection and accepts none.
struct full_queue {
    std::string path = "/tmp/llmbench-full-" + std::to_string(::getpid());
    address at = resolved({.host = "localhost", .socket = path}).front();
    descriptor listener = new_socket(AF_UNIX);
    vector<descriptor> queued{};
    full_queue() {
        ::unlink(path.c_str());
        REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) == 0);
        REQUIRE(::listen(listener.get(), 0) == 0);
        do queued.push_back(connecting_socket(at));
        while (queued.back().get() >= 0);
        REQUIRE(errno == EAGAIN);
    }
    ~full_queue() { ::unlink(path.c_str()); }
    load_target target() const {
        load_target t;
        t.addresses = known_addresses({at});
        return t;
    }
};
}  // namespace

TEST_CASE("a connection that a full queue has no room for is asked for again, and soon") {
    full_queue full;
    thread owner(full.target());
    connection c(owner.io, owner);
    c.start(asking());
    CHECK(owner.io.asks_again);
    owner.io.asks_again = false;
    c.ask_again();
    CHECK(owner.io.asks_again);
    vector<descriptor> accepted;
    for (std::size_t i = 1; i < full.queued.size(); ++i)
        accepted.emplace_back(::accept(full.listener.get(), nullptr, nullptr));
    owner.io.asks_again = false;
    c.ask_again();
    CHECK_FALSE(owner.io.asks_again);
    CHECK(owner.turn_until([&] { return owner.io.connections_opened == 1; }));
}

TEST_CASE("a request that is given up as its connection is asked for again is delivered once") {
    full_queue full;
    thread owner(full.target(), {.connect = 3600_s, .total = 1_ms});
    connection c(owner.io, owner);
    c.start(asking());
    ::unlink(full.path.c_str());  // nobody is there any more
    c.check_limits(now_ns() + second);
    CHECK(owner.delivered.size() == 1);
    CHECK(owner.retired == 1);
    CHECK(owner.delivered.at(0).status == request_status::connect);
}
