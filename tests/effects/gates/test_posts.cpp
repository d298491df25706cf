// A server that holds a burst is told to go on, whatever becomes of the load.
#include "effects/gates/posts.hpp"
#include "effects/system/signals.hpp"
#include "extensions/faults/api.hpp"
#include "extensions/simulated/bodies.hpp"

#include "support/scripted_server.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

namespace {

scripted::answer says(const std::string& status) {
    return {scripted::send(scripted::sized(status, "text/plain", "")), scripted::close()};
}
/// A burst of which nothing is sent, and what its server is asked.
struct burst_of_none {
    explicit burst_of_none(const std::string& of_hold, const std::string& of_release = "200 OK",
                           const std::string& afterwards = "200 OK")
        : server({says(of_hold), says(of_release), says(afterwards)}) {
        target.bring_up();
        planned_traffic sent;
        sent.arrivals = all_at_once().held(post("/hold?repeat={n}"), post("/release")).data();
        what.sent = new_shared<const planned_traffic>(sent);
        order.what = &what;
        order.last = 8;
    }
    std::string asked() const {
        std::string paths;
        for (const scripted::request& r : server.log()) paths += r.method + " " + r.path + "; ";
        return paths;
    }

    scripted::server server;
    live_target target{endpoint{.url = server.url(), .model = "m"}, run_variant::candidate};
    plan what{};
    load_order order{};
    load_state state{};
};
const char* const both = "POST /hold?repeat=1; POST /release; ";

}  // namespace

TEST_CASE("a burst that did not begin asks nothing") {
    burst_of_none b("200 OK");
    { held_burst held(b.order, b.state, b.target); }
    CHECK(b.asked() == "");
}

TEST_CASE("a load that ends before all is sent, as one that is interrupted, is released once") {
    for (const bool is_interrupted : {false, true}) {
        CAPTURE(is_interrupted);
        burst_of_none b("200 OK");
        held_burst held(b.order, b.state, b.target);
        held.begin();
        CHECK(b.asked() == "POST /hold?repeat=1; ");
        stop_asked = is_interrupted;
        held.end();
        stop_asked = false;
        CHECK(b.asked() == both);
        held.end();
        CHECK(b.asked() == both);
    }
}

TEST_CASE("a server that refuses to go on is told once more") {
    const std::string refused = "500 Oops";
    for (const bool is_late : {true, false}) {
        CAPTURE(is_late);
        burst_of_none b("200 OK", refused, is_late ? "200 OK" : refused);
        held_burst held(b.order, b.state, b.target);
        held.begin();
        const std::string why = "arrivals, held in repeat 1 on " + b.server.url() +
                                ": POST /release was answered with HTTP 500";
        const char* const still = is_late ? "" : "; the server may hold its requests still";
        CHECK_THROWS_WITH_AS(held.end(), (why + still).c_str(), std::runtime_error);
        CHECK(b.asked() == std::string(both) + "POST /release; ");
    }
}

TEST_CASE("a server is released where the load or the hold itself fails") {
    burst_of_none thrown("200 OK");
    CHECK_THROWS_AS(([&] {
                        held_burst held(thrown.order, thrown.state, thrown.target);
                        held.begin();
                        throw std::runtime_error("no thread could be started");
                    }()),
                    std::runtime_error);
    CHECK(thrown.asked() == both);

    burst_of_none refused("500 Oops");
    CHECK_THROWS_WITH_AS(([&] { held_burst(refused.order, refused.state, refused.target).begin(); }()),
                         ("arrivals, held in repeat 1 on " + refused.server.url() +
                          ": POST /hold?repeat=1 was answered with HTTP 500").c_str(),
                         std::runtime_error);
    CHECK(refused.asked() == both);
}
