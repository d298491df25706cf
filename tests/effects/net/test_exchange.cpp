// One request and its answer over one socket: what is read and when, what the socket does not take
// at once, how it ends, and TLS on top of it; and the client that waits for each of these.
#include "effects/net/blocking_http.hpp"
#include "effects/net/exchange.hpp"

#include "support/peer.hpp"
#include "support/scripted_server.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

using namespace llmbench::detail;
using peers::peer;
using peers::wait_for;

namespace {

http_url url_of(int port) { return {.host = "127.0.0.1", .port = std::to_string(port)}; }
address address_of(int port) { return resolved(url_of(port)).front(); }
http_server at(int port) { return server_at(url_of(port)); }

int fd_of(const exchange& wire) { return machine_network::fd(wire.socket()); }

/// Whoever is told of a socket, and counts.
struct reported final : socket_user {
    machine_network net{};
    int readable = 0, writable = 0;
    void on_readable() override { ++readable; }
    void on_writable() override { ++writable; }
    /// Waits until there are so many calls of a kind; false where they never come.
    bool until(const int& calls, int n) {
        return peers::turn_until([&] { return calls >= n; }, [this] { turn(); });
    }
    void turn() {
        net.wait(now_ns() + 20000000);
        net.each();
    }
};

/// An exchange that is connected to a peer, and what it reads with.
struct connected {
    peer other{};
    reported user{};
    exchange wire{};
    read_room room{};
    connected() {
        REQUIRE(wire.connect(address_of(other.port()), user.net, user));
        REQUIRE(user.until(user.writable, 1));
        REQUIRE(wire.connect_error() == 0);
        REQUIRE(other.accept());
    }
    arrival next() {
        REQUIRE(wait_for(fd_of(wire), POLLIN));
        return wire.read(room);
    }
};

bool is_end(const arrival& a) { return a.what == arrival::kind::end; }

/// What the client that waits makes of one answer.
http_answer answer_of(scripted::answer a, double within_s = 20) {
    const scripted::server server({std::move(a)});
    return blocking_post(at(server.port()), "/", "", "", within_s);
}

}  // namespace

// ---- connecting

TEST_CASE("an exchange is closed until it connects, and again once it was closed") {
    exchange wire;
    CHECK_FALSE(wire.is_open());
    connected c;
    CHECK(c.wire.is_open());
    CHECK_FALSE(c.wire.has_tls());
    c.wire.close();
    CHECK_FALSE(c.wire.is_open());
    CHECK(c.wire.unsent() == 0);
}

TEST_CASE("a port that nobody listens on is told by its errno") {
    reported user;
    exchange wire;
    if (wire.connect(address_of(free_port()), user.net, user)) {
        REQUIRE(user.until(user.writable, 1));
        CHECK(wire.connect_error() == ECONNREFUSED);
    } else {
        CHECK(errno == ECONNREFUSED);
    }
}

// ---- who is told

TEST_CASE("bytes are told of as long as they are not read, and room only when it was missing") {
    connected c;
    c.user.turn();
    CHECK(c.user.readable == 0);
    CHECK(c.user.writable == 1);  // it is connected
    c.other.say("one");
    CHECK(c.user.until(c.user.readable, 3));
    CHECK(c.next().bytes == "one");
    c.user.turn();  // the wait that was begun before the read
    const int so_far = c.user.readable;
    for (int i = 0; i < 3; ++i) c.user.turn();
    CHECK(c.user.readable == so_far);
    CHECK(c.user.writable == 1);
}

TEST_CASE("a socket that takes bytes again is told of, and those it brings are as before") {
    connected c;
    const std::string request(32 << 20, '.');
    c.wire.send(request);
    REQUIRE(c.wire.flush());
    REQUIRE(c.wire.unsent() > 0);
    CHECK(c.user.writable == 1);
    while (c.wire.unsent() > 0) {
        const int before = c.user.writable;
        while (c.user.writable == before) {
            REQUIRE(c.other.hear());
            c.user.net.wait(0);
            c.user.net.each();
        }
        REQUIRE(c.wire.flush());
    }
    const int room = c.user.writable;
    c.other.say("thanks");
    CHECK(c.user.until(c.user.readable, 1));
    CHECK(c.next().bytes == "thanks");
    c.user.turn();
    const int bytes = c.user.readable;
    for (int i = 0; i < 3; ++i) c.user.turn();
    CHECK(c.user.readable == bytes);  // no wait that comes back for nothing
    CHECK(c.user.writable == room);
}

TEST_CASE("a socket that was closed is not told of any more") {
    connected c;
    c.other.say("too late");
    REQUIRE(wait_for(fd_of(c.wire), POLLIN));
    c.user.net.wait(now_ns() + 1000000000);
    c.wire.close();
    c.user.net.each();
    c.user.turn();
    CHECK(c.user.readable == 0);
}

TEST_CASE("a wait ends at its time, and at once where that has passed") {
    machine_network net;
    const long long began = now_ns();
    for (long long now = began; now < began + 20000000; now = now_ns()) net.wait(began + 20000000);
    net.wait(began);
    net.wait(0, 1);
    CHECK(now_ns() - began < peers::patience_ms * 1000000ll);
}

// ---- the request

TEST_CASE("what the socket does not take waits for the next flush, and nothing of it is lost") {
    connected c;
    std::string request(32 << 20, '.');
    for (std::size_t i = 0; i < request.size(); i += 997)
        request[i] = static_cast<char>('a' + i % 26);
    c.wire.send(request);
    REQUIRE(c.wire.flush());
    REQUIRE(c.wire.unsent() > 0);
    REQUIRE(c.wire.unsent() < request.size());
    while (c.wire.unsent() > 0) {
        REQUIRE(c.other.hear());
        REQUIRE(c.wire.flush());
    }
    CHECK((c.other.heard(request.size()) == request));
}

TEST_CASE("a flush to whoever is gone fails, and what was said before can still be read") {
    connected c;
    c.other.say("HTTP/1.1 413 Too Large\r\n\r\n");
    REQUIRE(wait_for(fd_of(c.wire), POLLIN));
    c.other.hang_up();
    const std::string request(1 << 20, '.');
    c.wire.send(request);
    while (c.wire.flush()) REQUIRE(wait_for(fd_of(c.wire), POLLOUT));
    CHECK(c.wire.unsent() > 0);
    CHECK(c.wire.read(c.room).bytes == "HTTP/1.1 413 Too Large\r\n\r\n");
}

// ---- the answer

TEST_CASE("a read of nothing is neither bytes nor an end") {
    connected c;
    CHECK(c.wire.read(c.room).what == arrival::kind::nothing_yet);
    CHECK(c.wire.read(c.room).at_ns == 0);
}

TEST_CASE("bytes come with the time at which they left the socket") {
    connected c;
    c.other.say("one");
    REQUIRE(wait_for(fd_of(c.wire), POLLIN));
    const long long before = now_ns();
    const arrival a = c.wire.read(c.room);
    const long long after = now_ns();
    CHECK(a.what == arrival::kind::bytes);
    CHECK(a.bytes == "one");
    CHECK(a.at_ns >= before);
    CHECK(a.at_ns <= after);
    CHECK(c.wire.content(a.bytes, c.room).data() == a.bytes.data());
}

TEST_CASE("a read takes what the buffer holds, and the next one the rest") {
    connected c;
    c.room.network.resize(4);
    c.other.say("123456");
    CHECK(c.next().bytes == "1234");
    CHECK(c.next().bytes == "56");
}

TEST_CASE("an orderly end has no error, another one has") {
    connected orderly;
    orderly.other.say("last");
    orderly.other.hang_up();
    CHECK(orderly.next().bytes == "last");
    const arrival end = orderly.next();
    CHECK(is_end(end));
    CHECK(end.error == 0);
    CHECK(end.at_ns > 0);

    connected reset;
    reset.other.reset();
    const arrival lost = reset.next();
    CHECK(is_end(lost));
    CHECK(lost.error == ECONNRESET);
}

TEST_CASE("a connection is quiet as long as nobody says anything or goes") {
    connected c;
    CHECK(c.wire.is_quiet(c.room));
    c.other.say("unasked");
    REQUIRE(wait_for(fd_of(c.wire), POLLIN));
    CHECK_FALSE(c.wire.is_quiet(c.room));

    connected gone;
    gone.other.hang_up();
    REQUIRE(wait_for(fd_of(gone.wire), POLLIN));
    CHECK_FALSE(gone.wire.is_quiet(gone.room));
    gone.wire.close();
    CHECK_FALSE(gone.wire.is_quiet(gone.room));
}

// ---- the client that waits

// The scripted server answers a GET by itself: with its list of models.

TEST_CASE("a GET and a POST come with what was asked, and bring the answer") {
    const scripted::server server(
        {{scripted::send(scripted::json("200 OK", "{\"ok\":true}")), scripted::close()}});
    const http_server there = at(server.port());
    const http_answer got = blocking_get(there, "/v1/models", "X-A: 1\r\n", 20);
    CHECK(got.status == 200);
    CHECK(got.body.find("{\"object\":\"list\"") == 0);
    CHECK(got.error == "");
    CHECK_FALSE(got.distrusted);
    REQUIRE(server.model_lists().size() == 1);
    const scripted::request get = server.model_lists().front();
    CHECK(get.path == "/v1/models");
    CHECK(get.header("x-a") == "1");
    CHECK(get.header("connection") == "close");
    CHECK(get.header("host") == server.authority());

    const http_answer posted =
        blocking_post(there, "/tokenize", "X-B: 2\r\n", "{\"prompt\":1}", 20);
    CHECK(posted.status == 200);
    CHECK(posted.body == "{\"ok\":true}");
    REQUIRE(server.log().size() == 1);
    const scripted::request post = server.log().front();
    CHECK(post.method == "POST");
    CHECK(post.path == "/tokenize");
    CHECK(post.header("x-b") == "2");
    CHECK(post.header("connection") == "close");
    CHECK(post.body == "{\"prompt\":1}");
}

TEST_CASE("an answer may come in pieces, in chunks, or up to the end of the connection") {
    const auto body_of = [](scripted::answer a) {
        const http_answer got = answer_of(std::move(a));
        CHECK(got.error == "");
        CHECK(got.status == 200);
        return got.body;
    };
    const std::string body = "some words, and more of them";
    CHECK(body_of({scripted::cut(3), scripted::send(scripted::sized("200 OK", "text/plain", body)),
                   scripted::close()}) == body);
    CHECK(body_of({scripted::cut(1),
                   scripted::send(scripted::chunked_head() + scripted::chunk(body) +
                                  scripted::last_chunk())}) == body);
    CHECK(body_of({scripted::send(scripted::until_close_head() + body), scripted::close()}) ==
          body);
}

TEST_CASE("a body that does not fit is sent whole, also where something comes before its end") {
    for (const char* first : {"", "HTTP/1.1 100 Continue\r\n\r\n"}) {
        CAPTURE(first);
        peer other;
        const http_server there = at(other.port());
        const std::string body(16 << 20, '.');
        plain_request one(there, request_text(http_method::post, "/", "x", "", body), 20);
        one.advance(now_ns() + 20000000);
        REQUIRE(other.accept());
        one.advance(now_ns() + 20000000);
        other.say(first);
        std::size_t heard = 0;
        while (heard < body.size() && one.answer().error.empty()) {
            one.advance(now_ns() + 5000000);
            while (wait_for(other.fd(), POLLIN, 0)) heard += other.hear_on();
        }
        CHECK(heard >= body.size());
        other.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        while (!one.advance(now_ns() + 20000000)) {}
        CHECK(one.answer().status == 200);
        CHECK(one.answer().error == "");
    }
}

TEST_CASE("whether a server stays after its answer is seen where the request lets it") {
    scripted::answer once = scripted::healthy();
    const auto reset_by_server = [](const scripted::answer& a) {
        const scripted::server server({a});
        const http_server there = at(server.port());
        CHECK_FALSE(blocking_post(there, "/", "", "", 20).reset_by_server);
        const http_answer kept = answer_to(
            there, request_text(http_method::post, "/", there.url.authority(), ""), 20);
        CHECK(kept.status == 200);
        CHECK(server.log()[0].header("Connection") == "close");
        CHECK(server.log()[1].header("Connection") == "");
        return kept.reset_by_server;
    };
    CHECK_FALSE(reset_by_server(once));
    once.push_back(scripted::close());
    CHECK(reset_by_server(once));
    // It says so: nothing to be seen.
    CHECK_FALSE(reset_by_server({scripted::send(scripted::sized_stream(scripted::healthy_events(1),
                                                               "Connection: close\r\n")),
                         scripted::close()}));
}

TEST_CASE("an answer that is not there is told by why") {
    const auto error_of = [](scripted::answer a, double within_s = 20) {
        const http_answer got = answer_of(std::move(a), within_s);
        CHECK(got.status == 0);
        return got.error;
    };
    CHECK(error_of({scripted::close()}) == "the connection was closed inside the answer");
    CHECK(error_of({scripted::reset()}) == "the connection was closed inside the answer");
    CHECK(error_of({scripted::send("SSH-2.0-x\r\n"), scripted::close()}) ==
          "not an HTTP/1.x answer: \"SSH-2.0-x\"");
    CHECK(error_of({scripted::stall()}, 0.2) == "no answer within 200 ms");
}

TEST_CASE("a server that is not there is told by why") {
    CHECK(blocking_get(at(free_port()), "/", "", 20).error ==
          "cannot connect: Connection refused");
    const std::string unknown =
        blocking_get(server_at({.host = "no-such-host.invalid", .port = "80"}), "/", "", 20).error;
    CHECK(unknown.find("the host \"no-such-host.invalid\" cannot be resolved") == 0);
}

// ---- addresses

TEST_CASE("a name is resolved once for all that go there, and again where that failed") {
    int asked = 0;
    const known_addresses there([&] {
        if (++asked == 1) throw std::runtime_error("the name server is away");
        return vector<address>{address_of(1), address_of(2)};
    });
    const known_addresses copy = there;
    CHECK_THROWS_AS(there.in_order(), std::runtime_error);
    CHECK(there.in_order().size() == 2);
    CHECK(copy.in_order().size() == 2);
    CHECK(asked == 2);
}

TEST_CASE("the address that answered last comes first, for whoever asks") {
    const known_addresses there({address_of(1), address_of(2), address_of(3)});
    const known_addresses copy = there;
    const auto ports = [&] {
        std::string text;
        for (const address& a : there.in_order()) {
            sockaddr_in in{};
            std::memcpy(&in, &a.storage, sizeof in);
            text += std::to_string(ntohs(in.sin_port));
        }
        return text;
    };
    CHECK(ports() == "123");
    copy.answered(address_of(3));
    CHECK(ports() == "312");
    copy.answered(address_of(3));
    CHECK(ports() == "312");
    there.answered(address_of(2));
    CHECK(ports() == "231");
    there.answered(address_of(4));  // nobody's
    CHECK(ports() == "231");
}

TEST_CASE("the client that waits asks once which addresses there are, and of a dead one once") {
    scripted::server silent;
    silent.stop_accepting();
    const scripted::server server;
    int asked = 0;
    const http_server there{.url = url_of(server.port()), .addresses = known_addresses([&] {
        ++asked;
        return vector<address>{address_of(silent.port()), address_of(server.port())};
    })};
    // Half of the time that there is goes to the first of the two.
    CHECK(blocking_get(there, "/v1/models", "", 2).status == 200);
    for (int i = 0; i < 3; ++i) {
        const long long began = now_ns();
        CHECK(blocking_get(there, "/v1/models", "", 20).status == 200);
        CHECK(now_ns() - began < 10000000000);
    }
    CHECK(asked == 1);
}

#ifdef LLMBENCH_WITH_TLS
#include "support/tls_server.hpp"

// ---- TLS

namespace {

/// A server with a certificate of this manner, in front of one that gives the script's answers.
struct tls_behind {
    tls::identity authority = tls::authority();
    tls::identity good = tls::made("good", {}, &authority);
    scripted::server server;
    tls::front front;
    explicit tls_behind(tls::manner how = {}) : front(server.port(), {with_identity(how)}) {}
    tls::manner with_identity(tls::manner how) const {
        how.who = &good;
        return how;
    }
    http_url url() const {
        return {.host = "localhost", .port = std::to_string(front.port()), .tls = true};
    }
    http_server asked_by(const llmbench::tls_options& o) const {
        return server_at(url_of(front.port()), std::make_shared<tls_client>(o, url()));
    }
};

/// As far as the handshake goes when somebody waits for it.
handshake shaken(exchange& wire, reported& user, const tls_client& client, tls_session* last,
                 int port) {
    read_room room;
    REQUIRE(wire.connect(address_of(port), user.net, user));
    REQUIRE(user.until(user.writable, user.writable + 1));
    REQUIRE(wire.connect_error() == 0);
    handshake hands = wire.begin_handshake(client, last, room);
    while (hands.is == handshake::state::going_on) {
        REQUIRE(wait_for(fd_of(wire), POLLIN));
        const arrival a = wire.read(room);
        if (is_end(a)) return {handshake::state::failed, closed_in_handshake};
        if (a.what == arrival::kind::bytes) hands = wire.shake_hands(a.bytes, room);
    }
    return hands;
}
/// All HTTP up to these bytes, or to the end.
std::string content_until(exchange& wire, const std::string& end) {
    read_room room;
    std::string all;
    while (all.find(end) == std::string::npos && wait_for(fd_of(wire), POLLIN)) {
        const arrival a = wire.read(room);
        if (is_end(a)) break;
        all += wire.content(a.bytes, room);
        if (wire.tls_ended()) break;
    }
    return all;
}

const llmbench::tls_options trusting{.verify = false};

}  // namespace

TEST_CASE("a request and its answer go through TLS, and a second handshake is a short one") {
    const tls_behind server;
    const tls_client client(trusting, server.url());
    tls_session session;
    const std::string request =
        request_text(http_method::post, "/v1/completions", "localhost", "", "{}");
    for (const bool resumed : {false, true}) {
        CAPTURE(resumed);
        reported user;
        exchange wire;
        REQUIRE(shaken(wire, user, client, &session, server.front.port()).is ==
                handshake::state::done);
        CHECK(wire.has_tls());
        wire.send(request);
        REQUIRE(wire.flush());
        CHECK(wire.unsent() == 0);
        CHECK(content_until(wire, "[DONE]").find("HTTP/1.1 200 OK") == 0);
        CHECK(server.front.resumed() == (resumed ? 1 : 0));
        wire.close();
    }
    CHECK(server.server.log().size() == 2);
    CHECK(server.server.log().at(0).body == "{}");
}

TEST_CASE("a server that speaks no TLS, or goes, ends the handshake with a reason") {
    const tls_client client(trusting, url_of(1));
    peer other;
    for (const bool speaks : {true, false}) {
        CAPTURE(speaks);
        reported user;
        exchange wire;
        read_room room;
        REQUIRE(wire.connect(address_of(other.port()), user.net, user));
        REQUIRE(user.until(user.writable, 1));
        CHECK(wire.begin_handshake(client, nullptr, room).is == handshake::state::going_on);
        REQUIRE(other.accept());
        REQUIRE(other.hear());
        if (speaks) other.say("HTTP/1.1 400 Bad Request\r\n\r\n");
        other.hang_up();
        REQUIRE(wait_for(fd_of(wire), POLLIN));
        const arrival a = wire.read(room);
        CHECK(is_end(a) == !speaks);
        if (!speaks) continue;
        const handshake hands = wire.shake_hands(a.bytes, room);
        CHECK(hands.is == handshake::state::failed);
        CHECK(hands.why == "the server does not answer in TLS: is it http:// and not https://?");
        CHECK_FALSE(wire.distrusts());
    }
}

TEST_CASE("the client that waits asks through TLS, too") {
    const tls_behind server;
    const http_answer a =
        blocking_post(server.asked_by(trusting), "/v1/completions", "", "{}", 20);
    CHECK(a.status == 200);
    CHECK(a.error == "");
    const http_answer b = blocking_get(server.asked_by({}), "/", "", 20);
    CHECK(b.status == 0);
    CHECK(b.distrusted);
    CHECK(b.error.find("the server's certificate ") == 0);
}

TEST_CASE("TLS that breaks off before it is open is told as such") {
    const tls_behind server(tls::manner{.cut_after = 100});
    const http_answer a = blocking_get(server.asked_by(trusting), "/", "", 20);
    CHECK(a.status == 0);
    CHECK(a.error == closed_in_handshake);
}
#endif
