// A gateway in the world of the test: it passes requests on to a server behind it a known time later,
// and answers as they come; until it ends.
#pragma once

#include "virtual/execution_environment.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace virtual_world {

class gateway {
public:
    /// `hides_page`: it has no metrics page, and does not pass on the server's.
    gateway(int port_behind, long long added_ns, bool hides_page = false)
        : port_([=, this](const std::shared_ptr<end>& client) {
              const auto c = std::make_shared<way_in>(added_ns, hides_page ? client : nullptr);
              c->server = connected_to(port_behind, std::make_shared<way_out>(client));
              clients_.push_back(client);
              return c;
          }) {}
    /// As a process that is killed: it resets its connections, and takes no others.
    void end_now() {
        port_.refuse();
        for (const std::weak_ptr<end>& c : clients_)
            if (const auto client = c.lock()) client->reset();
    }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_.number()); }

private:
    struct way_in final : talk {
        way_in(long long added, const std::shared_ptr<end>& hidden_from)
            : added_ns(added), client(hidden_from) {}
        void on_bytes(std::string_view bytes) override {
            const auto asks = client.lock();
            if (asks && bytes.substr(0, 12) == "GET /metrics")
                return asks->send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            after(added_ns, [to = server, text = std::string(bytes)] { to->send(text); });
        }
        void on_end() override { server->close(); }
        const long long added_ns;
        const std::weak_ptr<end> client;
        std::shared_ptr<end> server{};
    };
    struct way_out final : talk {
        explicit way_out(const std::shared_ptr<end>& to) : client(to) {}
        void on_bytes(std::string_view bytes) override {
            if (const auto to = client.lock()) to->send(bytes);
        }
        void on_end() override {
            if (const auto to = client.lock()) to->close();
        }
        const std::weak_ptr<end> client;
    };
    std::vector<std::weak_ptr<end>> clients_{};
    port port_;
};

}  // namespace virtual_world
