// simulated server
#pragma once

#include "api/target.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/wire/http.hpp"
#include "core/simulated/answers.hpp"
#include "core/simulated/engine_model.hpp"
#include "core/simulated/vllm_page.hpp"
#include "core/simulated/questions.hpp"
#include "core/simulated/replies.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/threads.hpp"
#include "effects/simulated/asio.hpp"
#include "effects/simulated/session.hpp"

#include <chrono>
#include <cmath>  // isinf
#include <cstdint>  // uint64_t
#include <map>
#include <memory>  // make_shared, shared_ptr, weak_ptr
#include <mutex>  // lock_guard
#include <string>
#include <thread>
#include <utility>  // exchange, move, pair
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// The engine model behind real sockets on a thread of its own: every API, their lists of
/// models, /health, /tokenize, /metrics.
class simulated_host {
public:
    struct log_entry {
        std::string request_id{};
        long long received_ns = 0, first_write_ns = 0, last_write_ns = 0, done_ns = 0;
        int prompt_tokens = 0, output_tokens = 0;
        engine_model::times engine{};  // what the engine model knows of it
    };

    /// A profile that was asked for, or its end.
    struct profiler_entry {
        std::string path{};
        long long received_ns = 0;
        int status = 0;
    };

    explicit simulated_host(const engine& e, int port = 0)
        : settings_(e),
          model_(e),
          io_(1),
          acceptor_(io_),
          step_timer_(io_),
          accept_timer_(io_),
          faults_(static_cast<std::uint64_t>(static_cast<long long>(e.seed)), 99) {
        const asio::ip::tcp::endpoint at(asio::ip::address_v4::loopback(),
                                         static_cast<unsigned short>(port));
        acceptor_.open(at.protocol());
        acceptor_.set_option(asio::socket_base::reuse_address(true));
        acceptor_.bind(at);
        acceptor_.listen(4096);
        port_ = acceptor_.local_endpoint().port();
        start_ns_ = now_ns();
        accept_next();
        thread_ = contained_thread([this] { io_.run(); }, [this](const char*) { go_away(); });
    }
    ~simulated_host() {
        asio::post(io_, [this] { go_away(); });
        thread_.join();
    }
    simulated_host(const simulated_host&) = delete;
    simulated_host& operator=(const simulated_host&) = delete;

    int port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// Finished answers so far, as this side saw them.
    std::vector<log_entry> log() {
        const std::lock_guard lock(log_mutex_);
        return log_;
    }
    std::vector<profiler_entry> profiler_log() {
        const std::lock_guard lock(log_mutex_);
        return profiler_log_;
    }

private:
    enum class fault : unsigned char { none, reset, stall, garbage };
    /// An answer that is being given.
    struct generation {
        std::uint64_t id = 0;
        std::shared_ptr<simulated_session> to{};
        answer_facts facts{};
        log_entry entry{};
        fault after_content = fault::none;
        bool begun = false;
    };

    double now_s() const { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }

    // ---- connections

    void accept_next() {
        auto s = std::make_shared<simulated_session>(io_, handler_);
        acceptor_.async_accept(s->socket, [this, s](asio::error_code e) {
            if (away_ || e == asio::error::operation_aborted) return;
            if (e) return accept_later();
            asio::error_code ignored;
            s->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
            std::erase_if(all_, [](const auto& weak) { return weak.expired(); });
            all_.push_back(s);
            s->read();
            accept_next();
        });
    }
    /// No descriptor may be left: those who wait in the queue do so until there is one again.
    void accept_later() {
        accept_timer_.expires_at(time_point_of(now_ns() + 10000000));
        accept_timer_.async_wait([this](asio::error_code e) {
            if (!e && !away_) accept_next();
        });
    }
    void go_away() {
        asio::error_code ignored;
        acceptor_.close(ignored);
        step_timer_.cancel();
        accept_timer_.cancel();
        for (const auto& weak : all_)
            if (const auto s = weak.lock()) s->reset();
        generating_.clear();
        away_ = true;
    }

    void on_request(simulated_session& s) {
        const request_parser& asked = s.request();
        if (asked.method == "GET") {
            if (settings_.faults.metrics_hang && asked.path == "/metrics") return;
            return s.answer(about_server(asked.path, model_, tallies_));
        }
        if (is_of_profiler(asked.path)) return profile(s);
        const bool counts = asked.path == "/tokenize";
        const maybe<api_format> api = api_at(asked.path);
        if (!api && !counts) return s.answer(error_reply(404, "no such path"));
        picojson::value body;
        if (!parse_json(asked.body, body) || !body.is<picojson::object>())
            return s.answer(error_reply(400, "the body is not a JSON object"));
        if (counts) return s.answer(counted_tokens(body, settings_.max_model_len));
        generate(s, body, api_of(*api, body));
    }
    void profile(simulated_session& s) {
        const std::string path = s.request().path;
        const reply r = profiler_reply(path, profiler_);
        {
            const std::lock_guard lock(log_mutex_);
            profiler_log_.push_back({path, now_ns(), r.status});
        }
        s.answer(r);
    }
    void on_gone(std::uint64_t id) {
        if (model_.cancel(id)) tallies_.count(end_reason::abort);
        generating_.erase(id);
    }

    // ---- one answer from its request on

    void generate(simulated_session& s, const picojson::value& body, api_format api) {
        ++generations_;
        if (settings_.faults.stop_after > 0 && generations_ > settings_.faults.stop_after)
            return go_away();
        const long long restart = settings_.faults.restart_after;
        if (restart > 0 && generations_ == restart + 1)
            tallies_ = tallies(unix_s(), model_.totals());
        auto g = std::make_shared<generation>();
        g->entry.request_id = s.request().header("x-request-id");
        g->entry.received_ns = now_ns();
        if (faults_.uniform() < settings_.faults.error_rate.fraction)
            return s.answer(refusal(api, 500, "an error that was asked for", "server_error"));
        g->after_content = drawn_fault();
        g->facts.asked = question_of(api, s.request().path, body);
        g->facts.asked.reasoning_tokens = static_cast<int>(
            settings_.reasoning.fraction * g->facts.asked.output_tokens);
        g->facts.number = static_cast<unsigned long long>(g->entry.received_ns);
        g->entry.prompt_tokens = g->facts.asked.prompt_tokens;
        g->id = s.answering = ++next_id_;
        g->to = s.shared_from_this();
        generating_[g->id] = g;
        if (settings_.faults.delay.seconds() <= 0) return submit(*g);
        auto timer = std::make_shared<io_timer>(
            io_, std::chrono::nanoseconds(ns_of(settings_.faults.delay.seconds())));
        timer->async_wait([this, timer, g](asio::error_code e) {
            if (!e && generating_.contains(g->id)) submit(*g);
        });
    }
    fault drawn_fault() {
        fault drawn = fault::none;
        for (const auto& [one, rate] : {std::pair{fault::reset, settings_.faults.reset_rate},
                                        std::pair{fault::stall, settings_.faults.stall_rate},
                                        std::pair{fault::garbage, settings_.faults.garbage_rate}})
            if (faults_.uniform() < rate.fraction) drawn = one;
        return drawn;
    }
    void submit(generation& g) {
        catch_up();
        question& asked = g.facts.asked;
        const auto admission = model_.submit(
            now_s(), {g.id, asked.prompt_tokens, asked.output_tokens, std::move(asked.blocks)});
        if (admission == engine_model::admission::accepted) return arm_step_timer();
        forget(g);
        if (admission == engine_model::admission::queue_full)
            return g.to->answer(refusal(asked.api, 429, "the queue is full", "rate_limit"));
        g.to->answer(refusal(asked.api, 400, "the prompt and its answer do not fit",
                             "context_length_exceeded"));
    }
    /// Its connection is free for another one.
    void forget(generation& g) {
        g.to->answering = 0;
        generating_.erase(g.id);
    }

    // ---- the engine's steps

    void arm_step_timer() {
        const double end = model_.step_end();
        if (std::isinf(end) || away_) return;
        step_timer_.expires_at(time_point_of(start_ns_ + ns_of(end)));
        step_timer_.async_wait([this](asio::error_code e) {
            if (e || away_) return;
            catch_up();
            arm_step_timer();
        });
    }
    /// Ends every step that is over by now. A request that comes after a stall of this thread must
    /// not join a step that began before it.
    void catch_up() {
        if (catching_up_) return;  // an answer that ends here may bring the next request at once
        catching_up_ = true;
        while (!away_ && model_.step_end() <= now_s())
            for (const auto& emission : model_.finish_step()) emit(emission);
        catching_up_ = false;
    }
    void emit(const engine_model::emission& e) {
        const auto found = generating_.find(e.id);
        if (found == generating_.end()) return;
        // Not by reference: a write tells that the client is gone, and then it is forgotten.
        const std::shared_ptr<generation> g = found->second;
        tallies_.count(e);
        if (e.finished)
            tallies_.count(g->facts.asked.stops ? end_reason::stop : end_reason::length);
        g->entry.engine = e.when;
        const std::string words = next_words(g->facts, e);
        const long long now = now_ns();
        if (g->entry.first_write_ns == 0) g->entry.first_write_ns = now;
        g->entry.last_write_ns = now;
        add_words(g->facts, words, e);
        if (g->facts.asked.streamed) write_content(*g, words, e);
        if (g->after_content != fault::none) return break_off(*g);
        if (e.finished) finish(*g);
    }
    void write_content(generation& g, const std::string& words, const engine_model::emission& e) {
        if (!std::exchange(g.begun, true)) {
            g.to->write(stream_head(g.facts.asked.api));
            write_chunk(g, answer_opening(g.facts));
        }
        write_chunk(g, answer_piece(g.facts, words, e));
    }
    /// An empty chunk would be the last.
    static void write_chunk(generation& g, const std::string& data) {
        if (!data.empty()) g.to->write(chunk_of(data));
    }
    void break_off(generation& g) {
        if (model_.cancel(g.id)) tallies_.count(end_reason::error);
        forget(g);
        if (g.after_content == fault::reset) g.to->reset();
        if (g.after_content == fault::garbage) g.to->write("\xFF\xFEno chunk\r\n");
        // The client has to make an end.
    }
    void finish(generation& g) {
        forget(g);
        g.entry.done_ns = now_ns();
        g.entry.output_tokens = g.facts.output_tokens;
        {
            const std::lock_guard lock(log_mutex_);
            log_.push_back(g.entry);
        }
        if (!g.facts.asked.streamed)
            return g.to->answer({200, "application/json", whole_answer(g.facts)});
        write_chunk(g, answer_ending(g.facts));
        g.to->write(last_chunk);
        g.to->next();
    }

    engine settings_;
    engine_model model_;
    tallies tallies_{unix_s()};
    asio::io_context io_;
    tcp_acceptor acceptor_;
    io_timer step_timer_, accept_timer_;
    generator faults_;
    request_handler handler_{[this](simulated_session& s) { on_request(s); },
                             [this](std::uint64_t id) { on_gone(id); }};
    std::map<std::uint64_t, std::shared_ptr<generation>> generating_{};
    std::vector<std::weak_ptr<simulated_session>> all_{};
    std::mutex log_mutex_{};
    std::vector<log_entry> log_{};
    std::vector<profiler_entry> profiler_log_{};
    simulated_profiler profiler_{};
    std::thread thread_{};
    long long start_ns_ = 0, generations_ = 0;
    std::uint64_t next_id_ = 0;
    int port_ = 0;
    bool away_ = false;
    bool catching_up_ = false;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
