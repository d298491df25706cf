// A server that speaks TLS in front of one that does not, in the world of the test.
#pragma once

#include "support/tls_channel.hpp"
#include "virtual/execution_environment.hpp"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tls {

class front {
public:
    /// The n-th connection is handled in the n-th manner, all others in the last.
    front(int port_behind, std::vector<manner> manners)
        : terms_(std::move(manners)),
          port_([this, port_behind](const std::shared_ptr<virtual_world::end>& e) {
              return std::make_shared<connection>(terms_, e, port_behind);
          }) {}
    int port() const { return port_.number(); }
    std::string url(const std::string& host = "localhost") const {
        return "https://" + host + ":" + std::to_string(port());
    }
    int full() const { return terms_.full(); }
    int resumed() const { return terms_.resumed(); }
    std::string server_name() const { return terms_.server_name(); }
    std::string protocol() const { return terms_.protocol(); }

private:
    class connection final : public virtual_world::talk, public std::enable_shared_from_this<connection> {
    public:
        connection(judging_parameters& t, const std::shared_ptr<virtual_world::end>& e, int port_behind)
            : tls_(t), client_(e), port_behind_(port_behind) {}
        void on_bytes(std::string_view bytes) override {
            if (tls_.stalls() || is_over_) return;
            std::string plain;
            const bool goes_on = tls_.take(bytes, plain);
            if (tls_.is_open() && !behind_)
                behind_ = virtual_world::connected_to(port_behind_,
                                                std::make_shared<answers>(weak_from_this()));
            if (!plain.empty()) behind_->send(plain);
            flush();
            if (!goes_on) finish();
        }
        void on_end() override { finish(); }

    private:
        /// What comes from the server behind.
        struct answers final : virtual_world::talk {
            explicit answers(std::weak_ptr<connection> c) : to(std::move(c)) {}
            void on_bytes(std::string_view bytes) override {
                const auto c = to.lock();
                if (!c || c->is_over_) return;
                c->tls_.say(bytes);
                c->flush();
            }
            void on_end() override {
                const auto c = to.lock();
                if (!c || c->is_over_) return;
                c->tls_.say_goodbye();
                c->flush();
                c->finish();
            }
            const std::weak_ptr<connection> to;
        };
        void flush() {
            const bool goes_on = tls_.flush([this](std::string_view bytes) {
                pieces_.emplace_back(bytes);
                return true;
            });
            if (!is_writing_) write_next();
            if (!goes_on) finish();
        }
        /// Pieces that came at one time would be read as one.
        void write_next() {
            const auto e = client_.lock();
            is_writing_ = e && !pieces_.empty();
            if (is_writing_) {
                e->send(pieces_.front());
                pieces_.pop_front();
                virtual_world::after(1000, [me = shared_from_this()] { me->write_next(); });
            } else if (e && is_over_) e->close();
        }
        void finish() {
            is_over_ = true;
            if (const auto b = std::exchange(behind_, nullptr)) b->close();
            if (!is_writing_) write_next();
        }

        channel tls_;
        const std::weak_ptr<virtual_world::end> client_;
        const int port_behind_;
        std::shared_ptr<virtual_world::end> behind_{};
        std::deque<std::string> pieces_{};
        bool is_writing_ = false, is_over_ = false;
    };

    judging_parameters terms_;
    virtual_world::port port_;
};

}  // namespace tls
