// A server that does exactly what a test tells it, byte by byte, in the world of the test. It
// answers by itself the list of models and the check before a load; every other request gets the
// next answer of the script.
#pragma once

#include "support/script.hpp"
#include "virtual/execution_environment.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scripted {

class server {
public:
    /// Answers are given in the order in which requests come; the last one is used again and again.
    explicit server(std::vector<answer> answers = {healthy()}, afterwards then = afterwards::listen)
        : server(script(std::move(answers), {}), then) {}
    /// What is answered depends on the request.
    explicit server(std::function<answer(const request&)> choose)
        : server(script({}, std::move(choose)), afterwards::listen) {}
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    int port() const { return port_->number(); }
    std::string authority() const { return "127.0.0.1:" + std::to_string(port()); }
    std::string url() const { return "http://" + authority(); }

    /// Requests that the script answered, in the order in which they came.
    std::vector<request> log() const { return script_->log; }
    std::vector<request> model_lists() const { return script_->model_lists; }

    /// What its page of metrics says; without it there is none. Not in the log.
    void report(std::function<std::string(const request&)> page) const { script_->page = std::move(page); }
    /// What GET has at a path.
    void tell(const std::string& path, const std::string& json) const { script_->told[path] = json; }
    /// The model that it lists.
    void list_model(const std::string& name) const { script_->model = name; }
    /// What comes of the request that is sent before a load; a healthy answer, where this is not told.
    void answer_check(answer a) const { script_->checks = {std::move(a)}; }
    void on_check(std::function<void()> done) const { script_->on_check = std::move(done); }
    /// From now on nobody listens there.
    void leave() const { port_->refuse(); }
    void tell_of_sleep(std::function<bool()> is_sleeping) const {
        script_->is_sleeping = std::move(is_sleeping);
    }

private:
    server(script s, afterwards then) : script_(std::make_unique<script>(std::move(s))) {
        const auto answering = [this, then](const request& r) {
            if (r.method == "GET" && then == afterwards::refuse) port_->refuse();
            if (r.method == "GET" && then == afterwards::ignore) port_->ignore();
            return script::is_of_page(r) ? script::page_answer(script_->page, r)
                                         : script_->answer_to(r);
        };
        port_ = std::make_unique<virtual_world::port>(
            [this, answering](const std::shared_ptr<virtual_world::end>& e) {
                return std::make_shared<connection>(e, answering, connections_++);
            });
    }

    class connection final : public virtual_world::talk, public std::enable_shared_from_this<connection> {
    public:
        connection(const std::shared_ptr<virtual_world::end>& e,
                   std::function<answer(const request&)> answering, int number)
            : end_(e), answering_(std::move(answering)), number_(number) {}
        void on_bytes(std::string_view bytes) override {
            held_ += bytes;
            if (!plays_) answer_next();
        }
        void on_end() override { plays_ = true; }

    private:
        void answer_next() {
            auto r = taken_from(held_);
            if (!r) return;
            r->received_ns = virtual_world::now_ns();
            r->connection = number_;
            r->place = place_++;
            steps_ = answering_(*r);
            at_ = sent_ = 0;
            piece_ = 0;
            plays_ = true;
            play();
        }
        void play() {
            const auto e = end_.lock();
            while (e && at_ < steps_.size()) {
                const step& s = steps_[at_];
                switch (s.what) {
                    case step::kind::send:
                        if (send_next(*e, s.bytes)) return;
                        break;
                    case step::kind::wait: ++at_; return go_on_after(s.time);
                    case step::kind::cut:
                        piece_ = s.size;
                        pause_ = s.time;
                        break;
                    case step::kind::stall: return;
                    case step::kind::close: return e->close();
                    case step::kind::reset: return e->reset();
                }
                ++at_;
            }
            plays_ = false;
            answer_next();
        }
        /// True where the rest goes later: pieces that came at one time would be read as one.
        bool send_next(virtual_world::end& e, const std::string& bytes) {
            const std::size_t n = piece_ == 0 ? bytes.size() : std::min(piece_, bytes.size() - sent_);
            e.send(std::string_view(bytes).substr(sent_, n));
            sent_ += n;
            const bool is_all = sent_ >= bytes.size();
            if (is_all) sent_ = 0;
            if (piece_ == 0) return false;
            at_ += is_all;
            go_on_after(std::max<std::chrono::nanoseconds>(pause_, std::chrono::microseconds(1)));
            return true;
        }
        void go_on_after(std::chrono::nanoseconds t) {
            virtual_world::after(t.count(), [known = weak_from_this()] {
                if (const auto still = known.lock()) still->play();
            });
        }

        const std::weak_ptr<virtual_world::end> end_;
        const std::function<answer(const request&)> answering_;
        const int number_;
        std::string held_{};
        answer steps_{};
        std::size_t at_ = 0, sent_ = 0, piece_ = 0;
        milliseconds pause_{0};
        int place_ = 0;
        bool plays_ = false;
    };

    const std::unique_ptr<script> script_;
    int connections_ = 0;
    std::unique_ptr<virtual_world::port> port_{};
};

}  // namespace scripted
