// Which connection gets the next request, and what becomes of those that are given up.
#include "effects/load/pool.hpp"

#include "one_thread.hpp"

using namespace one_thread;

namespace {

/// A thread whose pool does what its connections tell it.
struct pooled final : request_sink {
    peer server{};
    load_target target = target_at({server.port()});
    llmbench::limits limits{};
    const std::unique_ptr<network> sockets = new_network();
    client_io io{target, limits, true, {}, *sockets};
    connection_pool pool{io, *this};
    int delivered = 0;

    void on_delivered(const planned_request&, record&&, const answer_reader&) override {
        ++delivered;
    }
    void on_idle(connection& c) override { pool.set_idle(c); }
    void on_retired(connection& c) override { pool.retire(c); }

    void open(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) pool.open_ahead();
        turn_until([&] { return pool.idle() == n; });
    }
    template <class Holds>
    void turn_until(Holds&& holds) {
        REQUIRE(peers::turn_until(holds, [this] {
            io.sockets->wait(now_ns() + 20000000);
            io.sockets->each();
        }));
    }
    vector<connection*> busy() {
        vector<connection*> all;
        pool.for_each_busy([&](connection& c) { all.push_back(&c); });
        return all;
    }
};

}  // namespace

TEST_CASE("a request is given an idle connection before one on its way") {
    pooled p;
    p.open(1);
    p.pool.open_ahead();
    CHECK(p.pool.idle() == 1);
    CHECK(p.pool.opening() == 1);
    connection& idle = p.pool.take();
    CHECK(p.pool.idle() == 0);
    CHECK(idle.is_usable());
    connection& opening = p.pool.take();
    CHECK(p.pool.opening() == 0);
    CHECK(&opening != &idle);
    CHECK(p.io.connections_opened == 1);
    connection& fresh = p.pool.take();
    CHECK(p.busy() == vector<connection*>{&fresh, &opening, &idle});
}

TEST_CASE("an idle connection that the server has closed is passed over") {
    pooled p;
    p.open(2);
    REQUIRE(p.server.accept());
    REQUIRE(p.server.accept());  // which closes the first one
    connection& c = p.pool.take();
    CHECK(c.is_usable());
    p.server.hang_up();
    connection& fresh = p.pool.take();
    CHECK(&fresh != &c);
    CHECK(p.pool.idle() == 0);
    p.pool.drop_retired();
    CHECK(p.busy().size() == 2);
}

TEST_CASE("connections can be retired while all are looked at, and live on until dropped") {
    pooled p;
    vector<connection*> taken;
    for (int i = 0; i < 5; ++i) taken.push_back(&p.pool.take());
    vector<connection*> seen;
    p.pool.for_each_busy([&](connection& c) {
        seen.push_back(&c);
        if (&c != taken[2]) p.pool.retire(c);
    });
    CHECK(seen.size() == 5);
    CHECK(p.busy() == vector<connection*>{taken[2]});
    CHECK_FALSE(taken[0]->is_usable());  // it can still be asked
    p.pool.drop_retired();
    CHECK(p.busy() == vector<connection*>{taken[2]});
}

TEST_CASE("all connections are closed at the end") {
    pooled p;
    p.open(1);
    connection& c = p.pool.take();
    p.pool.open_ahead();
    REQUIRE(p.server.accept());
    p.pool.close_all();
    CHECK_FALSE(c.is_usable());
    CHECK_FALSE(p.server.hear());  // the end of the connection
}
