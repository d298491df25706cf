// simulated server
#pragma once

#include "api/target.hpp"
#include "api/text.hpp"
#include "core/base/bytes.hpp"
#include "core/base/json.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/tokens.hpp"
#include "core/simulated/engine_model.hpp"
#include "effects/system/clock.hpp"
#include "effects/simulated/asio.hpp"

#include <initializer_list>  // .slos = {...}
#include <algorithm>  // min, max
#include <array>
#include <chrono>
#include <cmath>  // isinf
#include <cstdint>  // uint64_t
#include <cstdlib>  // strtoull
#include <deque>
#include <map>
#include <memory>  // enable_shared_from_this, make_shared, shared_ptr, weak_ptr
#include <mutex>  // lock_guard
#include <string>
#include <string_view>
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
    };

    explicit simulated_host(const engine& e, int port = 0)
        : settings_(e),
          model_(e),
          io_(1),
          acceptor_(io_),
          step_timer_(io_),
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
        thread_ = std::thread([this] { io_.run(); });
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

private:
    /// One connection: requests in, one answer at a time out.
    struct session : std::enable_shared_from_this<session> {
        explicit session(simulated_host& h) : host(h), socket(h.io_) {}

        void read() {
            socket.async_read_some(asio::buffer(buffer),
                                   [self = shared_from_this()](asio::error_code e, std::size_t n) {
                                       if (e) return self->gone();
                                       self->take({self->buffer.data(), n});
                                   });
        }
        void take(std::string_view bytes) {
            if (busy) early.append(bytes);
            else if (parser.feed(bytes)) host.on_request(*this);
            else if (parser.broken())
                return answer(400, "application/json",
                              R"({"error":{"message":"not an HTTP/1.1 request"}})");
            read();
        }
        /// An answer is complete: the next pipelined request may follow.
        void next() {
            busy = false;
            const bool keep = parser.keep_alive;
            parser.reset();
            const std::string held = std::exchange(early, {});
            if (!keep) close_when_written = true;
            else if (parser.feed(held)) host.on_request(*this);
            if (close_when_written && queue.empty()) close();
        }
        void write(std::string bytes) {
            queue.push_back(std::move(bytes));
            if (queue.size() == 1) write_more();
        }
        void write_more() {
            // Straight into the socket where it takes all: the stamp in the log is then the write's
            // own.
            asio::error_code error;
            socket.non_blocking(true, error);
            while (!queue.empty()) {
                const std::size_t n = socket.write_some(asio::buffer(queue.front()), error);
                if (error == asio::error::would_block) break;
                if (error) return gone();
                if (n == queue.front().size()) queue.pop_front();
                else queue.front().erase(0, n);
            }
            if (queue.empty()) {
                if (close_when_written) close();
                return;
            }
            socket.async_wait(asio::ip::tcp::socket::wait_write,
                              [self = shared_from_this()](asio::error_code e) {
                                  if (!e) self->write_more();
                              });
        }
        void answer(int status, const char* type, const std::string& body) {
            write(printed("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n",
                          status, status == 200 ? "OK" : "Error", type, body.size(),
                          status == 429 ? "Retry-After: 1\r\n" : "") +
                  body);
            next();
        }
        void chunk(const std::string& data) {
            write(printed("%zx\r\n", data.size()) + data + "\r\n");
        }
        void gone() {
            if (id != 0) host.on_gone(*this);
            close();
        }
        void close() {
            asio::error_code ignored;
            socket.close(ignored);
            queue.clear();
        }
        void reset() {
            asio::error_code ignored;
            socket.set_option(asio::socket_base::linger(true, 0), ignored);
            close();
        }

        simulated_host& host;
        asio::ip::tcp::socket socket;
        std::array<char, 16384> buffer{};
        request_parser parser{};
        std::string early{};  // bytes of the next request, come while this one is answered
        std::deque<std::string> queue{};
        log_entry entry{};
        std::uint64_t id = 0;  // in the engine, 0: none
        bool busy = false, close_when_written = false;
        api_format api = openai_chat;
        bool stream = true, usage = false, headed = false;
        int wanted = 0, cached = 0;
        enum class fault : unsigned char { none, reset, stall, garbage };
        fault after_content = fault::none;
        std::string finish = "length";
        std::string text{};  // of the whole answer, where the API repeats it
    };

    double now_s() const { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }

    void accept_next() {
        auto s = std::make_shared<session>(*this);
        acceptor_.async_accept(s->socket, [this, s](asio::error_code e) {
            if (e) return;
            asio::error_code ignored;
            s->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
            std::erase_if(all_, [](const auto& weak) { return weak.expired(); });
            all_.push_back(s);
            s->read();
            accept_next();
        });
    }
    void go_away() {
        asio::error_code ignored;
        acceptor_.close(ignored);
        step_timer_.cancel();
        for (const auto& weak : all_)
            if (const auto s = weak.lock()) s->reset();
        generating_.clear();
        away_ = true;
    }

    void on_request(session& s) {
        s.busy = true;
        const std::string& path = s.parser.path;
        if (s.parser.method == "GET") {
            for (const char* ready : {"/health", "/api/version", "/v2/health/ready", "/readyz"})
                if (path == ready) return s.answer(200, "application/json", "{}");
            if (path == "/v1/models")
                return s.answer(
                    200, "application/json",
                    R"({"object":"list","data":[{"id":"simulated","object":"model"}]})");
            if (path == "/api/tags")
                return s.answer(200, "application/json", R"({"models":[{"name":"simulated"}]})");
            if (path == "/info")
                return s.answer(200, "application/json", R"({"model_id":"simulated"})");
            if (path == "/metrics") return s.answer(200, "text/plain; version=0.0.4", metrics());
            return s.answer(404, "application/json", R"({"error":{"message":"no such path"}})");
        }
        picojson::value body;
        const maybe<api_format> api = api_at(path);
        if (!api && path != "/tokenize")
            return s.answer(404, "application/json", R"({"error":{"message":"no such path"}})");
        if (!parse_json(s.parser.body, body) || !body.is<picojson::object>())
            return s.answer(400, "application/json",
                            R"({"error":{"message":"the body is not a JSON object"}})");
        if (path == "/tokenize") {
            const std::size_t n = words_of(prompt_of(body)).size();
            return s.answer(200, "application/json",
                            printed(R"({"count":%zu,"max_model_len":%lld})", n,
                                    static_cast<long long>(settings_.max_model_len)));
        }
        generate(s, body, api_of(*api, body));
    }
    static maybe<api_format> api_at(std::string_view path) {
        if (path.substr(0, 11) == "/v2/models/") return triton;
        for (std::size_t i = 0; i < std::size(apis); ++i)
            if (path == apis[i].path || path == apis[i].whole_path)
                return static_cast<api_format>(i);
        return {};
    }
    /// Three of them have the path /generate; their requests differ.
    static api_format api_of(api_format at, const picojson::value& body) {
        if (at != tgi && at != sglang) return at;
        return member(body, "inputs") ? tgi : member(body, "text") ? sglang : plain_text;
    }

    static std::string prompt_of(const picojson::value& body) {
        std::string prompt;
        for (const char* name : {"prompt", "inputs", "text", "text_input", "system"})
            if (has_text(body, name)) prompt += string_member(body, name) + " ";
        if (const picojson::value* ids = member(body, "prompt"); ids && ids->is<picojson::array>())
            for (const picojson::value& id : ids->get<picojson::array>())
                prompt += id.serialize() + " ";
        if (const picojson::value* messages = member(body, "messages");
            messages && messages->is<picojson::array>())
            for (const picojson::value& m : messages->get<picojson::array>()) {
                prompt += string_member(m, "content") + " ";
                const picojson::value* parts = member(m, "content");
                if (parts && parts->is<picojson::array>())
                    for (const picojson::value& part : parts->get<picojson::array>())
                        prompt += string_member(part, "text") + " ";
            }
        return prompt;
    }
    static std::vector<std::string_view> words_of(std::string_view s) {
        std::vector<std::string_view> words;
        std::size_t at = 0;
        while ((at = s.find_first_not_of(" \t\n\r", at)) != std::string_view::npos) {
            const std::size_t end = std::min(s.find_first_of(" \t\n\r", at), s.size());
            words.push_back(s.substr(at, end - at));
            at = end;
        }
        return words;
    }

    /// A number at the top of the body, or where an API keeps its own; -1 where there is none.
    static int asked_count(const picojson::value& body, std::initializer_list<const char*> names) {
        int n = -1;
        const std::initializer_list<const picojson::value*> places = {
            &body, member(body, "parameters"), member(body, "options"),
            member(body, "sampling_params")};
        for (const picojson::value* at : places)
            for (const char* name : names)
                if (at) n = std::max(n, count_member(*at, name));
        return n;
    }
    static bool says_yes(const picojson::value* at, const char* name, bool otherwise = false) {
        const picojson::value* m = at ? member(*at, name) : nullptr;
        return m && m->is<bool>() ? m->get<bool>() : otherwise;
    }
    static bool streams(api_format api, std::string_view path, const picojson::value& body) {
        if (api == plain_text) return true;
        if (api == tgi || api == triton) return path.ends_with("generate_stream");
        return says_yes(&body, "stream", api == ollama || api == ollama_generate);
    }

    void generate(session& s, const picojson::value& body, api_format api) {
        ++generations_;
        if (settings_.faults.stop_after > 0 && generations_ > settings_.faults.stop_after)
            return go_away();
        s.entry = {std::string(s.parser.header("x-request-id")), now_ns(), 0, 0, 0, 0, 0};
        if (faults_.uniform() < settings_.faults.error_rate.fraction)
            return refuse(s, api, 500, "an error that was asked for", "server_error");
        s.after_content = session::fault::none;
        for (const auto& [fault, rate] :
             {std::pair{session::fault::reset, settings_.faults.reset_rate},
              std::pair{session::fault::stall, settings_.faults.stall_rate},
              std::pair{session::fault::garbage, settings_.faults.garbage_rate}})
            if (faults_.uniform() < rate.fraction) s.after_content = fault;
        s.api = api;
        s.headed = false;
        s.text.clear();
        s.stream = streams(api, s.parser.path, body);
        s.usage = api == triton ? says_yes(&body, "return_num_output_tokens")
                                : says_yes(member(body, "stream_options"), "include_usage");

        const std::string prompt = prompt_of(body);
        const std::vector<std::string_view> words = words_of(prompt);
        engine_model::request r;
        r.id = ++next_id_;
        r.prompt_tokens = std::max(1, static_cast<int>(words.size()));
        std::uint64_t hash = 0;
        for (std::size_t i = 0; i < words.size(); ++i) {
            fnv1a h;
            h.add(static_cast<long long>(hash));
            h.add(words[i].data(), words[i].size());
            hash = mixed(std::strtoull(h.text().c_str(), nullptr, 16));
            if ((i + 1) % engine_model::block_tokens == 0) r.blocks.push_back(hash);
        }
        int most = asked_count(body, {"max_tokens", "max_completion_tokens", "max_new_tokens",
                                      "n_predict", "num_predict"});
        if (most <= 0) most = 128;
        const bool forced = traits_of(api).forces_lengths &&
                            (says_yes(&body, "ignore_eos") ||
                             says_yes(member(body, "sampling_params"), "ignore_eos"));
        // Unforced answers end by themselves, always at the same place for the same prompt.
        const int natural = 16 + static_cast<int>(hash % 256);
        r.output_tokens = forced ? most : std::min(most, natural);
        s.finish = r.output_tokens < most ? "stop" : "length";
        s.wanted = r.output_tokens;
        s.entry.prompt_tokens = r.prompt_tokens;
        s.id = r.id;
        generating_[r.id] = s.shared_from_this();
        if (settings_.faults.delay.seconds() <= 0) return submit(s, std::move(r));
        auto timer = std::make_shared<asio::steady_timer>(
            io_, std::chrono::nanoseconds(ns_of(settings_.faults.delay.seconds())));
        timer->async_wait([this, timer, r, self = s.shared_from_this()](asio::error_code e) {
            if (!e && self->id == r.id) submit(*self, r);
        });
    }
    void submit(session& s, engine_model::request r) {
        catch_up();
        const auto admission = model_.submit(now_s(), std::move(r));
        if (admission == engine_model::admission::accepted) return arm_step_timer();
        generating_.erase(s.id);
        s.id = 0;
        if (admission == engine_model::admission::queue_full)
            return refuse(s, s.api, 429, "the queue is full", "rate_limit");
        refuse(s, s.api, 400, "the prompt and its answer do not fit", "context_length_exceeded");
    }
    static void refuse(session& s, api_format api, int status, const char* why, const char* code) {
        switch (api) {
        case plain_text: return s.answer(status, "text/plain", why);
        case tgi: case triton: case ollama: case ollama_generate:
            return s.answer(status, "application/json", printed(R"({"error":"%s"})", why));
        default:
            return s.answer(status, "application/json",
                            printed(R"({"type":"error","error":{"message":"%s","type":"%s",)"
                                    R"("code":"%s"}})",
                                    why, code, code));
        }
    }
    void on_gone(session& s) {
        model_.cancel(s.id);
        generating_.erase(s.id);
        s.id = 0;
    }

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
        const std::shared_ptr<session> s = found->second;
        std::string words;
        for (int i = 0; i < e.tokens; ++i)
            words +=
                std::string(" ") +
                prompt_words[(e.id * 7 + static_cast<std::uint64_t>(s->entry.output_tokens + i)) %
                             std::size(prompt_words)];
        const long long now = now_ns();
        if (s->entry.first_write_ns == 0) s->entry.first_write_ns = now;
        s->entry.last_write_ns = now;
        s->entry.output_tokens += e.tokens;
        s->cached = e.cached;
        if (!s->stream || s->api == tgi || s->api == sglang) s->text += words;
        if (s->stream) write_content(*s, words, e);
        if (s->after_content != session::fault::none) {
            model_.cancel(e.id);
            generating_.erase(e.id);
            s->id = 0;
            if (s->after_content == session::fault::reset) return s->reset();
            if (s->after_content == session::fault::garbage) s->write("\xFF\xFEno chunk\r\n");
            return;  // the client has to make an end
        }
        if (!e.finished) return;
        generating_.erase(e.id);
        s->id = 0;
        s->entry.done_ns = now_ns();
        {
            const std::lock_guard lock(log_mutex_);
            log_.push_back(s->entry);
        }
        if (s->stream) {
            write_end(*s);
            s->next();
        } else {
            s->answer(200, "application/json", whole(*s));
        }
    }

    // ---- what each API makes of it

    static std::string identity(const session& s, bool chunk) {
        const bool chat = s.api == openai_chat;
        const char* object =
            chat ? (chunk ? "chat.completion.chunk" : "chat.completion") : "text_completion";
        return printed(
            "\"id\":\"%s-%llu\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"simulated\"",
            chat ? "chatcmpl" : "cmpl", static_cast<unsigned long long>(s.entry.received_ns),
            object);
    }
    static std::string usage_of(const session& s) {
        return printed("{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,"
                       "\"prompt_tokens_details\":{\"cached_tokens\":%d}}",
                       s.entry.prompt_tokens, s.entry.output_tokens,
                       s.entry.prompt_tokens + s.entry.output_tokens, s.cached);
    }
    static std::string event(const std::string& json, const char* type = nullptr) {
        return (type ? printed("event: %s\n", type) : "") + "data: " + json + "\n\n";
    }
    static std::string llama_state(const session& s, bool stop) {
        return printed("\"stop\":%s,\"id_slot\":0,\"index\":0,\"tokens_predicted\":%d,"
                       "\"tokens_evaluated\":%d",
                       stop ? "true" : "false", s.entry.output_tokens, s.entry.prompt_tokens);
    }
    static std::string sglang_json(const session& s, bool finished) {
        const std::string reason =
            finished ? "{\"type\":\"" + s.finish + "\"}" : std::string("null");
        return "{\"text\":" + json_quoted(s.text) +
               printed(",\"meta_info\":{\"id\":\"%llu\",\"prompt_tokens\":%d,"
                       "\"completion_tokens\":%d,\"finish_reason\":",
                       static_cast<unsigned long long>(s.entry.received_ns), s.entry.prompt_tokens,
                       s.entry.output_tokens) +
               reason + "}}";
    }
    static std::string ollama_json(const session& s, const std::string& words, bool done) {
        const std::string text = json_quoted(words);
        return "{\"model\":\"simulated\",\"created_at\":\"2024-01-01T00:00:00Z\"," +
               (s.api == ollama ? "\"message\":{\"role\":\"assistant\",\"content\":" + text + "}"
                                : "\"response\":" + text) +
               (done ? ",\"done\":true,\"done_reason\":\"" + s.finish +
                           printed("\",\"prompt_eval_count\":%d,\"eval_count\":%d}",
                                   s.entry.prompt_tokens, s.entry.output_tokens)
                     : ",\"done\":false}");
    }
    static std::string tgi_details(const session& s) {
        return printed("{\"finish_reason\":\"%s\",\"generated_tokens\":%d,\"seed\":null,"
                       "\"input_length\":%d}",
                       s.finish == "stop" ? "eos_token" : "length", s.entry.output_tokens,
                       s.entry.prompt_tokens);
    }
    static const char* anthropic_reason(const session& s) {
        return s.finish == "stop" ? "end_turn" : "max_tokens";
    }
    static std::string anthropic_message(const session& s, const std::string& content,
                                         const std::string& reason, int output_tokens) {
        return printed("{\"id\":\"msg_%llu\",\"type\":\"message\",\"role\":\"assistant\",",
                       static_cast<unsigned long long>(s.entry.received_ns)) +
               "\"model\":\"simulated\",\"content\":" + content + ",\"stop_reason\":" + reason +
               printed(",\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}",
                       s.entry.prompt_tokens, output_tokens);
    }
    static std::string triton_json(const session& s, const std::string& words, int tokens) {
        return "{\"model_name\":\"simulated\",\"model_version\":\"1\",\"text_output\":" +
               json_quoted(words) +
               (s.usage ? printed(",\"num_input_tokens\":%d,\"num_output_tokens\":%d",
                                  s.entry.prompt_tokens, tokens)
                        : "") +
               "}";
    }

    static std::string opening(const session& s) {
        if (s.api == openai_chat)
            return event("{" + identity(s, true) +
                         ",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"
                         "\"\"},\"finish_reason\":null}]}");
        if (s.api == anthropic)
            return event("{\"type\":\"message_start\",\"message\":" +
                             anthropic_message(s, "[]", "null", 1) + "}",
                         "message_start") +
                   event(R"({"type":"content_block_start","index":0,)"
                         R"("content_block":{"type":"text","text":""}})",
                         "content_block_start") +
                   event(R"({"type":"ping"})", "ping");
        return {};
    }
    static std::string piece(const session& s, const std::string& words,
                             const engine_model::emission& e) {
        const std::string text = json_quoted(words);
        switch (s.api) {
        case openai_chat:
            return event("{" + identity(s, true) +
                         ",\"choices\":[{\"index\":0,\"delta\":{\"content\":" + text +
                         "},\"finish_reason\":null}]}");
        case openai_completions:
            return event("{" + identity(s, true) + ",\"choices\":[{\"index\":0,\"text\":" + text +
                         ",\"finish_reason\":null}]}");
        case tgi: {  // one event a token, and the last tells of all
            std::string events;
            const std::vector<std::string_view> tokens = words_of(words);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                const bool last = e.finished && i + 1 == tokens.size();
                events += "data:{\"token\":{\"id\":7,\"text\":" +
                          json_quoted(" " + std::string(tokens[i])) +
                          ",\"logprob\":-0.5,\"special\":false},\"generated_text\":" +
                          (last ? json_quoted(s.text) : "null") +
                          ",\"details\":" + (last ? tgi_details(s) : "null") + "}\n\n";
            }
            return events;
        }
        case triton: return event(triton_json(s, words, e.tokens));
        case ollama: case ollama_generate: return ollama_json(s, words, false) + "\n";
        case llama_cpp: return event("{\"content\":" + text + "," + llama_state(s, false) + "}");
        case sglang: return event(sglang_json(s, e.finished));
        case plain_text: return words;
        case anthropic:
            return event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
                         "\"text_delta\",\"text\":" + text + "}}",
                         "content_block_delta");
        }
        return {};
    }
    static std::string ending(const session& s) {
        switch (s.api) {
        case openai_chat: case openai_completions: {
            const char* piece = s.api == openai_chat ? "\"delta\":{}" : "\"text\":\"\"";
            return event("{" + identity(s, true) + ",\"choices\":[{\"index\":0," + piece +
                         ",\"finish_reason\":\"" + s.finish + "\"}]}") +
                   (s.usage ? event("{" + identity(s, true) + ",\"choices\":[],\"usage\":" +
                                    usage_of(s) + "}")
                            : "") +
                   event("[DONE]");
        }
        case ollama: case ollama_generate: return ollama_json(s, "", true) + "\n";
        case llama_cpp:
            return event("{\"content\":\"\"," + llama_state(s, true) + ",\"stop_type\":\"" +
                         (s.finish == "stop" ? "eos" : "limit") + "\"}");
        case sglang: return event("[DONE]");
        case anthropic:
            return event(R"({"type":"content_block_stop","index":0})", "content_block_stop") +
                   event(printed("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\"},"
                                 "\"usage\":{\"output_tokens\":%d}}",
                                 anthropic_reason(s), s.entry.output_tokens),
                         "message_delta") +
                   event(R"({"type":"message_stop"})", "message_stop");
        default: return {};
        }
    }
    static std::string whole(const session& s) {
        const std::string text = json_quoted(s.text);
        switch (s.api) {
        case tgi: return "{\"generated_text\":" + text + ",\"details\":" + tgi_details(s) + "}";
        case triton: return triton_json(s, s.text, s.entry.output_tokens);
        case ollama: case ollama_generate: return ollama_json(s, s.text, true);
        case llama_cpp:
            return "{\"content\":" + text + "," + llama_state(s, true) + ",\"stop_type\":\"" +
                   (s.finish == "stop" ? "eos" : "limit") + "\"}";
        case sglang: return sglang_json(s, true);
        case anthropic:
            return anthropic_message(s, "[{\"type\":\"text\",\"text\":" + text + "}]",
                                     printed("\"%s\"", anthropic_reason(s)),
                                     s.entry.output_tokens);
        default: break;
        }
        const std::string choice = s.api == openai_chat
            ? "\"message\":{\"role\":\"assistant\",\"content\":" + text + "}"
            : "\"text\":" + text;
        return "{" + identity(s, false) + ",\"choices\":[{\"index\":0," + choice +
               ",\"finish_reason\":\"" + s.finish + "\"}],\"usage\":" + usage_of(s) + "}";
    }

    void write_content(session& s, const std::string& words, const engine_model::emission& e) {
        if (!std::exchange(s.headed, true)) {
            const char* type = s.api == plain_text ? "text/plain; charset=utf-8"
                               : traits_of(s.api).framed == framing::lines
                                   ? "application/x-ndjson"
                                   : "text/event-stream; charset=utf-8";
            s.write(printed("HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n", type));
            if (const std::string first = opening(s); !first.empty()) s.chunk(first);
        }
        s.chunk(piece(s, words, e));
    }
    void write_end(session& s) {
        if (const std::string end = ending(s); !end.empty()) s.chunk(end);
        s.write("0\r\n\r\n");
    }
    /// Prometheus text with vLLM's names, so that dashboards made for it work.
    std::string metrics() const {
        const auto& t = model_.totals();
        const auto gauge = [](const char* name, const char* kind, double v) {
            return printed("# TYPE vllm:%s %s\nvllm:%s{model_name=\"simulated\"} %s\n", name, kind,
                           name, json_number(v).c_str());
        };
        return gauge("num_requests_running", "gauge", static_cast<double>(model_.running())) +
               gauge("num_requests_waiting", "gauge", static_cast<double>(model_.waiting())) +
               gauge("kv_cache_usage_perc", "gauge", model_.cache_usage()) +
               gauge("prompt_tokens_total", "counter", t.prompt_tokens) +
               gauge("generation_tokens_total", "counter", t.generated_tokens) +
               gauge("request_success_total", "counter", t.finished) +
               gauge("prefix_cache_queries_total", "counter", t.cache_queries) +
               gauge("prefix_cache_hits_total", "counter", t.cache_hits);
    }

    engine settings_;
    engine_model model_;
    asio::io_context io_;
    asio::ip::tcp::acceptor acceptor_;
    asio::steady_timer step_timer_;
    generator faults_;
    std::map<std::uint64_t, std::shared_ptr<session>> generating_{};
    std::vector<std::weak_ptr<session>> all_{};
    std::mutex log_mutex_{};
    std::vector<log_entry> log_{};
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
