// the simulated server's connections, and its handling of requests
#pragma once

#include "api/target.hpp"
#include "core/base/vector.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/shared.hpp"
#include "core/wire/http.hpp"
#include "effects/system/clock.hpp"
#include "extensions/simulated/api.hpp"
#include "extensions/simulated/core/answers.hpp"
#include "extensions/simulated/core/engine_model.hpp"
#include "extensions/simulated/core/questions.hpp"
#include "extensions/simulated/core/replies.hpp"

#include <algorithm>  // max
#include <cerrno>  // ECONNRESET
#include <cmath>  // isinf
#include <cstddef>  // size_t
#include <cstdint>  // uint64_t
#include <ctime>  // gmtime_r
#include <functional>  // what stands behind connections, what is to be done at a time
#include <map>
#include <memory>  // enable_shared_from_this, shared_ptr, weak_ptr
#include <set>  // adapters by name
#include <string>
#include <string_view>
#include <utility>  // exchange, move, pair

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v1 {
namespace detail {

/// A Date header for these Unix seconds.
inline std::string http_date_of(std::time_t unix_s) {
    std::tm t{};
    ::gmtime_r(&unix_s, &t);
    return printed("%.3s, %02d %.3s %d %02d:%02d:%02d GMT", &"SunMonTueWedThuFriSat"[3 * t.tm_wday],
                   t.tm_mday, &month_names[3 * static_cast<std::size_t>(t.tm_mon)],
                   t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

class simulated_session;

struct request_handler {
    /// Called for each request, which one answer must follow, now or later.
    std::function<void(simulated_session&)> on_request{};
    /// The client left during this answer.
    std::function<void(std::uint64_t)> on_gone{};
};

/// One connection: requests in, one answer at a time out. Derived classes carry its bytes.
class simulated_session : public std::enable_shared_from_this<simulated_session> {
public:
    explicit simulated_session(const request_handler& handler) : handler_(handler) {}
    virtual ~simulated_session() = default;
    simulated_session(const simulated_session&) = delete;
    simulated_session& operator=(const simulated_session&) = delete;

    const request_parser& request() const { return parser_; }
    /// When the last byte of the request arrived.
    virtual long long arrived_ns() const { return now_ns(); }

    /// Writes a whole answer with a Date header.
    void answer(const reply& r) {
        std::string bytes = reply_bytes(r);
        if (parser_.method == "HEAD") bytes.resize(bytes.find("\r\n\r\n") + 4);
        bytes.insert(bytes.find("\r\n"),
                     "\r\nDate: " + http_date_of(static_cast<std::time_t>(unix_s())));
        write(bytes);
        next();
    }
    /// Writes a part of an answer, which next() ends. A client that does not read is given up.
    void write(const std::string& bytes) {
        if (has_ended_) return;
        if (out_.size() > most_unread) return gone();
        const bool is_first = out_.empty();
        out_ += sealed(bytes);
        if (is_first) on_written();
    }
    /// Ends an answer: the next pipelined request may follow.
    void next() {
        busy_ = false;
        ++answered_;
        if (!parser_.keep_alive) close_when_written_ = true;
        parser_.reset();
        if (!close_when_written_ && !is_feeding_) feed(std::exchange(early_, {}));
        if (close_when_written_ && out_.empty()) close();
    }
    void reset() { close(ECONNRESET); }

    std::uint64_t answering = 0;  // the handler's id of the current answer, 0: none

protected:
    /// The connection is kept after an answer and idle.
    bool is_kept() const { return answered_ > 0 && !busy_; }
    /// Takes bytes; those behind the last request, or behind what is none, are dropped.
    void take(std::string_view bytes) {
        if (close_when_written_) return;
        if (!busy_) return feed(bytes);
        if (early_.size() + bytes.size() > most_early) return gone();
        early_.append(bytes);
    }
    void write_more() {
        while (!out_.empty()) {
            const long long n = give(out_);
            if (n < 0) return gone();
            if (n == 0) return;
            out_.erase(0, static_cast<std::size_t>(n));
        }
        if (close_when_written_) close();
    }
    void gone() {
        if (answering != 0) handler_.on_gone(std::exchange(answering, 0));
        close();
    }

private:
    /// Returns the number of bytes taken; 0: write_more() is called later; below 0: closed.
    virtual long long give(std::string_view bytes) = 0;
    /// 0, or ECONNRESET: what the client finds.
    virtual void end(int error) = 0;
    /// There are bytes to write, now or after others that wait.
    virtual void on_written() { write_more(); }
    /// As they are sent: TLS's.
    virtual std::string sealed(const std::string& bytes) { return bytes; }

    static constexpr std::size_t most_unread = 4 << 20, most_early = 1 << 18;

    /// Many requests may be answered at once: one after the other, not one inside of the other.
    void feed(std::string_view bytes) {
        is_feeding_ = true;
        for (bool more = parser_.feed(bytes); more;) {
            serve();
            more = !busy_ && !close_when_written_ && parser_.feed(std::exchange(early_, {}));
        }
        is_feeding_ = false;
        if (busy_ || close_when_written_) return;
        if (parser_.waits_to_continue()) return write("HTTP/1.1 100 Continue\r\n\r\n");
        if (!parser_.broken()) return;
        parser_.keep_alive = false;
        answer(error_reply(400, "not an HTTP/1.1 request"));
    }
    void serve() {
        busy_ = true;
        handler_.on_request(*this);
    }
    void close(int error = 0) {
        if (std::exchange(has_ended_, true)) return;
        close_when_written_ = true;
        out_.clear();
        end(error);
    }

    const request_handler& handler_;
    request_parser parser_{};
    std::string early_{};  // bytes of the next request during an answer
    std::string out_{};    // bytes that the carrier has not taken
    long long answered_ = 0;
    bool busy_ = false;
    bool is_feeding_ = false;
    bool has_ended_ = false;
    bool close_when_written_ = false;
};

/// How an answer ended; `left`: its client did.
enum class answer_end : unsigned char { open, ok, refused, reset, stalled, garbage, left };

/// What carries a service's connections and gives it time. `at` runs an action, in the only thread
/// that calls the service, and may drop pending ones at the end; `send` sends all that was written,
/// and then calls on_sent(); `on_away`: no connections from now on.
struct service_carrier {
    std::function<void(long long ns, std::function<void()> what)> at;
    std::function<void()> send, on_away;
};

/// One request for tokens, as the server saw it.
struct service_entry {
    std::string request_id{};
    long long received_ns = 0, first_write_ns = 0, last_write_ns = 0, done_ns = 0;
    int prompt_tokens = 0, output_tokens = 0;
    engine_model::times engine{};  // of the engine model
    vector<long long> writes{};    // of content, each; on_tokens() keeps them
    answer_end ended = answer_end::open;
    int status = 200;
};
/// Is told what a service did, in its thread.
struct service_observer {
    virtual ~service_observer() = default;
    virtual void on_end(const service_entry& e) = 0;
    virtual void on_profiler(const std::string& path, int status) = 0;
};

/// The engine model with HTTP: every API, lists of models, /health, /tokenize, /metrics.
/// `llmbench serve` derives a server with a log.
class simulated_service {
public:
    simulated_service(const engine& e, service_carrier c, service_observer* told = nullptr)
        : carrier_(std::move(c)),
          settings_(e),
          told_(told),
          model_(e),
          faults_(static_cast<std::uint64_t>(static_cast<long long>(e.seed)), 99),
          stored_(static_cast<std::size_t>(static_cast<long long>(e.keeps_responses))) {}
    simulated_service(const simulated_service&) = delete;
    simulated_service& operator=(const simulated_service&) = delete;
    virtual ~simulated_service() = default;

    const request_handler& handler() const { return handler_; }
    void add(const std::shared_ptr<simulated_session>& s) {
        erase_if(all_, [](const auto& weak) { return weak.expired(); });
        all_.push_back(s);
    }
    void go_away() {
        away_ = true;
        carrier_.on_away();
        for (const auto& weak : all_)
            if (const auto s = weak.lock()) s->reset();
        for (const auto& [id, g] : generating_) on_end(*g);
        generating_.clear();
    }
    virtual void on_sent() {}
    /// A connection takes no bytes now.
    virtual void note_waiting() {}

protected:
    struct generation {
        std::uint64_t id = 0;
        std::shared_ptr<simulated_session> to{};
        answer_facts facts{};
        service_entry entry{};
        std::string to_store{};  // what was said before the answer, if the response is stored
        answer_end after_content = answer_end::open;  // a fault, if it is not open
        bool begun = false;
    };

    /// Gives a request to the engine, which answers it by emit().
    virtual void submit(generation& g) {
        catch_up();
        question& asked = g.facts.asked;
        const auto admission = model_.submit(
            now_s(), {g.id, asked.prompt_tokens, asked.output_tokens,
                      blocks_of(std::exchange(asked.hashes, {}), model_.block_tokens())});
        if (admission == engine_model::admission::accepted) return arm_step_timer();
        forget(g);
        if (admission == engine_model::admission::queue_full)
            return refuse_request(g, 429, "the queue is full", "rate_limit");
        refuse_request(g, 400, "the prompt and its answer do not fit", "context_length_exceeded");
    }
    /// Whether it was waiting or running.
    virtual bool cancel(std::uint64_t id) { return model_.cancel(id); }
    virtual engine_state state() const { return model_; }
    /// Tokens are about to be written.
    virtual void on_tokens(generation& g, const engine_model::emission&, long long now) {
        if (told_) g.entry.writes.push_back(now);
    }
    /// Called once for each request for tokens.
    virtual void on_end(generation& g) {
        if (told_) told_->on_end(g.entry);
    }
    /// The status of the requests that `faults.error_rate` refuses.
    virtual int error_status() const { return 500; }

    const service_carrier carrier_;
    const long long start_ns_ = now_ns();  // the engine's time 0
    std::map<std::uint64_t, std::shared_ptr<generation>> generating_{};

    void emit(const engine_model::emission& e) {
        carrier_.send();  // so that the time of each is that of its own send
        const auto found = generating_.find(e.id);
        if (found == generating_.end()) return;
        // A copy: a write may find the client gone, which erases the answer.
        const std::shared_ptr<generation> g = found->second;
        tallies_.count(e);
        if (e.finished)
            tallies_.count(g->facts.asked.stops ? end_reason::stop : end_reason::length);
        g->entry.engine = e.when;
        const std::string words = next_words(g->facts, e);
        const long long now = now_ns();
        if (g->entry.first_write_ns == 0) g->entry.first_write_ns = now;
        g->entry.last_write_ns = now;
        on_tokens(*g, e, now);
        if (settings_.prefix_cache)
            for (const std::uint64_t block : filled_blocks(g->facts, words, model_.block_tokens()))
                model_.keep_block(block);
        add_words(g->facts, words, e);
        if (g->facts.asked.streamed) write_content(*g, words, e);
        if (g->after_content != answer_end::open) return break_off(*g);
        if (e.finished) finish(*g);
    }

private:
    /// Rounded nanoseconds may lie just before a step's end that has passed.
    double now_s() const {
        return std::max(static_cast<double>(now_ns() - start_ns_) * 1e-9, reached_s_);
    }

    void on_request(simulated_session& s) {
        const request_parser& asked = s.request();
        if (asked.method == "GET" || asked.method == "HEAD") {
            if (settings_.faults.metrics_hang && asked.path == "/metrics") return;
            return s.answer(about_server(asked.path, state(), tallies_));
        }
        if (is_of_profiler(asked.path)) {
            const reply r = profiler_reply(asked.path, profiler_);
            if (told_) told_->on_profiler(asked.path, r.status);
            return s.answer(r);
        }
        if (const auto order = order_at(asked.path)) {
            catch_up();
            s.answer(reply_to_order(*order, model_, now_s()));
            return arm_step_timer();
        }
        const bool adapts = is_of_adapters(asked.path), counts = asked.path == "/tokenize";
        const maybe<api_format> api = api_at(asked.path);
        if (!api && !counts && !adapts) return s.answer(error_reply(404, "no such path"));
        picojson::value body;
        if (!parse_json(asked.body, body) || !body.is<picojson::object>())
            return s.answer(error_reply(400, "the body is not a JSON object"));
        if (counts) return s.answer(counted_tokens(body, settings_.max_model_len));
        if (adapts) return adapt(s, adapter_reply(asked.path, body, adapters_));
        generate(s, body, api_of(*api, body));
    }
    void adapt(simulated_session& s, const reply& r) {
        const double takes_s = settings_.adapter_load.seconds();
        const bool loads = s.request().path.find("unload") == std::string::npos;
        if (r.status != 200 || !loads || takes_s <= 0) return s.answer(r);
        model_.hold_up(takes_s);
        carrier_.at(now_ns() + ns_of(takes_s), [r, to = s.weak_from_this()] {
            if (const auto known = to.lock()) known->answer(r);
        });
    }
    void on_gone(std::uint64_t id) {
        if (cancel(id)) tallies_.count(end_reason::abort);
        const auto found = generating_.find(id);
        if (found == generating_.end()) return;
        end_request(*found->second, answer_end::left);
        generating_.erase(found);
    }
    void end_request(generation& g, answer_end how) {
        if (g.entry.ended != answer_end::open) return;  // a write has found the client gone
        g.entry.ended = how;
        g.entry.done_ns = now_ns();
        g.entry.output_tokens = g.facts.output_tokens;
        on_end(g);
    }
    void refuse_request(generation& g, int status, const char* why, const char* code) {
        g.entry.status = status;
        end_request(g, answer_end::refused);
        g.to->answer(refusal(g.facts.asked.api, status, why, code));
    }

    // ---- one answer from its request on

    void generate(simulated_session& s, const picojson::value& body, api_format api) {
        ++generations_;
        if (settings_.faults.stop_after > 0 && generations_ > settings_.faults.stop_after)
            return go_away();
        const long long restart = settings_.faults.restart_after;
        if (restart > 0 && generations_ == restart + 1)
            tallies_ = tallies(unix_s(), model_.totals());
        auto g = new_shared<generation>();
        g->entry.request_id = s.request().header("x-request-id");
        g->entry.received_ns = s.arrived_ns();
        g->to = s.shared_from_this();
        g->facts.asked.api = api;
        if (faults_.uniform() < settings_.faults.error_rate.value)
            return refuse_request(*g, error_status(), "an error that was asked for",
                                  "server_error");
        g->after_content = drawn_fault();
        const maybe<std::string> before =
            api == openai_responses ? history_of(body) : maybe<std::string>("");
        if (!before)
            return refuse_request(*g, 404, "the previous response is not known",
                                  "previous_response_not_found");
        const picojson::value whole = with_history(body, *before);
        g->facts.asked = question_of(api, s.request().path, whole);
        if (api == openai_responses && flag_in(&body, "store") != false)
            g->to_store = input_of(whole);
        g->facts.asked.reasoning_tokens = static_cast<int>(
            settings_.reasoning.value * g->facts.asked.output_tokens);
        const engine_faults& f = settings_.faults;
        const double wrong = f.wrong_answers.value +
                             (generating_.empty() ? 0 : f.wrong_in_batch.value);
        g->facts.is_wrong = g->facts.asked.rank < wrong;
        // Two that come at once in virtual time still have ids of their own.
        g->facts.number = last_number_ = std::max(
            last_number_ + 1, static_cast<unsigned long long>(g->entry.received_ns));
        g->entry.prompt_tokens = g->facts.asked.prompt_tokens;
        g->id = s.answering = ++next_id_;
        generating_[g->id] = g;
        if (settings_.faults.delay.seconds() <= 0) return submit(*g);
        carrier_.at(now_ns() + ns_of(settings_.faults.delay.seconds()), [this, g] {
            if (generating_.contains(g->id)) submit(*g);
        });
    }
    /// What was said before, "" at the start of a conversation; none if it is not known.
    maybe<std::string> history_of(const picojson::value& body) {
        const std::string id = string_member(body, "previous_response_id");
        if (id.empty() || settings_.faults.ignores_history) return std::string();
        const double forgets = settings_.faults.forgets.value;
        if (forgets > 0 && faults_.uniform() < forgets) return {};
        return stored_.find(id);
    }
    answer_end drawn_fault() {
        using enum answer_end;
        answer_end drawn = open;
        for (const auto& [one, rate] : {std::pair{reset, settings_.faults.reset_rate},
                                        std::pair{stalled, settings_.faults.stall_rate},
                                        std::pair{garbage, settings_.faults.garbage_rate}})
            if (faults_.uniform() < rate.value) drawn = one;
        return drawn;
    }
    /// Frees its connection for another answer.
    void forget(generation& g) {
        g.to->answering = 0;
        generating_.erase(g.id);
    }

    // ---- the engine's steps

    void arm_step_timer() {
        const double end = model_.step_end();
        if (away_ || std::isinf(end) || end == armed_for_) return;
        armed_for_ = end;
        carrier_.at(start_ns_ + ns_of(end), [this, end] {
            if (end != armed_for_) return;  // the timer was for another step
            armed_for_ = 0;
            reached_s_ = std::max(reached_s_, end);
            if (away_) return;
            catch_up();
            arm_step_timer();
        });
    }
    /// Ends every step that is over. A request after a stall of this thread must not join a step
    /// that began before it.
    void catch_up() {
        if (catching_up_) return;  // an answer that ends here may bring the next request at once
        catching_up_ = true;
        while (!away_ && model_.step_end() <= now_s())
            for (const auto& emission : model_.finish_step()) emit(emission);
        catching_up_ = false;
    }
    void write_content(generation& g, const std::string& words, const engine_model::emission& e) {
        if (!std::exchange(g.begun, true)) {
            g.to->write(stream_head(g.facts.asked.api));
            write_chunk(g, answer_opening(g.facts));
        }
        write_chunk(g, answer_piece(g.facts, words, e));
    }
    /// An empty chunk would end the body.
    static void write_chunk(generation& g, const std::string& data) {
        if (!data.empty()) g.to->write(chunk_of(data));
    }
    void break_off(generation& g) {
        carrier_.send();  // a reset drops what is not sent
        if (cancel(g.id)) tallies_.count(end_reason::error);
        forget(g);
        end_request(g, g.after_content);
        if (g.after_content == answer_end::reset) g.to->reset();
        if (g.after_content == answer_end::garbage) g.to->write("\xFF\xFEno chunk\r\n");
        // The client must end it.
    }
    void finish(generation& g) {
        forget(g);
        if (!g.to_store.empty()) stored_.add(response_id(g.facts), g.to_store + g.facts.text);
        end_request(g, answer_end::ok);
        if (!g.facts.asked.streamed)
            return g.to->answer({200, "application/json", whole_answer(g.facts)});
        write_chunk(g, answer_ending(g.facts));
        g.to->write(last_chunk);
        g.to->next();
    }

    const engine settings_;
    service_observer* const told_;
    engine_model model_;
    tallies tallies_{unix_s()};
    generator faults_;
    const request_handler handler_{[this](simulated_session& s) { on_request(s); },
                                   [this](std::uint64_t id) { on_gone(id); }};
    vector<std::weak_ptr<simulated_session>> all_{};
    simulated_profiler profiler_{};
    std::set<std::string> adapters_{};
    stored_responses stored_;
    unsigned long long last_number_ = 0;
    long long generations_ = 0;
    std::uint64_t next_id_ = 0;
    double armed_for_ = 0;  // the step's end, 0: none
    double reached_s_ = 0;  // the last step's end that was reached
    bool away_ = false;
    bool catching_up_ = false;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
