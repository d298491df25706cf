// targets brought up
#pragma once

#include "api/result.hpp"
#include "api/target.hpp"
#include "api/text.hpp"
#include "core/base/json.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "core/wire/http.hpp"
#include "core/wire/url.hpp"
#include "core/dialects/body_reader.hpp"
#include "core/dialects/request_body.hpp"
#include "core/dialects/stream_event.hpp"
#include "core/dialects/table.hpp"
#include "core/traffic/plan.hpp"
#include "core/traffic/requests.hpp"
#include "core/traffic/target_facts.hpp"
#include "core/traffic/tokens.hpp"
#include "core/reports/gate_report.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/settings.hpp"
#include "effects/system/signals.hpp"
#include "effects/net/blocking_http.hpp"
#include "effects/net/process.hpp"
#include "effects/net/sockets.hpp"
#include "effects/net/tls.hpp"
#include "effects/load/order.hpp"
#include "effects/simulated/host.hpp"

#include <algorithm>  // min
#include <atomic>
#include <chrono>
#include <filesystem>  // error_code
#include <memory>  // make_unique, make_shared, unique_ptr
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <thread>  // this_thread
#include <utility>  // exchange
#include <vector>

#include <picojson.h>  // JSON of servers

namespace llmbench {
inline namespace v0 {
namespace detail {

/// No server where one was expected: with LLMBENCH_SKIP_WITHOUT_SERVER the gate is skipped.
struct no_server : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A target that answers, and what it takes to send requests to it.
class live_target {
public:
    explicit live_target(const any_target& t, run_arm arm) : arm_(arm) {
        const box& what = t.what();
        if (const auto* p = what.get<process>()) process_ = *p;
        else if (const auto* s = what.get<simulated_server>()) engine_ = s->settings;
        else if (const auto* e = what.get<endpoint>()) endpoint_ = *e;
        facts_.kind = what.get<process>()            ? target_kind::process
                      : what.get<simulated_server>() ? target_kind::simulated
                                                     : target_kind::endpoint;
        if (facts_.kind == target_kind::endpoint && endpoint_.url.empty()) {
            endpoint_.url = environment("LLMBENCH_URL");
            require(!endpoint_.url.empty(),
                    "no target: set LLMBENCH_URL, or give the scenario .target = endpoint{.url = "
                    "\"http://...\"}, or .target = simulated()");
        }
        if (facts_.kind == target_kind::process) {
            require(!process_.command.empty(), "process.command is empty: it must start a server");
            require(process_.ready_within.seconds() > 0, "process.ready_within must be above 0");
        }
        check_api();
    }

    /// `at_most_s`: however long a process may take to be ready by its own account.
    void bring_up(double at_most_s = infinity) {
        load_.secrets.clear();
        load_.fields = header_lines() + key_line();
        for (const name_value& v : process_.env)
            if (v.value.size() >= 8) add_secret(load_.secrets, str(v.value));
        if (facts_.kind == target_kind::process) start_process(at_most_s);
        if (facts_.kind == target_kind::simulated) {
            host_ = std::make_unique<simulated_host>(engine_);
            endpoint_.url = host_->url();
        }
        load_.url =
            parsed_url(str(endpoint_.url), facts_.kind == target_kind::endpoint &&
                                                   environment("LLMBENCH_URL") == str(endpoint_.url)
                                               ? "LLMBENCH_URL"
                                               : "endpoint.url");
        load_.tls.reset();
        if (load_.url.tls) load_.tls = std::make_shared<tls_client>(endpoint_.tls, load_.url);
        facts_.tls = !load_.url.tls           ? tls_trust::no_tls
                     : endpoint_.tls.verify ? tls_trust::verified
                                            : tls_trust::not_verified;
        load_.api = api_;
        try {
            load_.addresses = resolved(load_.url);
        } catch (const std::runtime_error& e) {
            throw no_server(str(endpoint_.url) + ": " + e.what());
        }
        facts_.url = str(endpoint_.url);
        facts_.api = api_->name;
        find_model();
        load_.path = request_path(*api_, api_->path, load_.url.path, load_.model);
        load_.whole_path = request_path(*api_, api_->whole_path, load_.url.path, load_.model);
    }
    /// A fresh process between repeats, where the scenario asks for it.
    bool restarts() const {
        return facts_.kind == target_kind::process && process_.restart_between_repeats;
    }
    void restart() {
        process_running_.reset();
        bring_up();
    }
    /// Why it is not there any more, "" while it is.
    std::string how_it_went() {
        if (!process_running_) return {};
        const std::string how = process_running_->how_it_ended();
        if (how.empty()) return {};
        const std::string tail = told(process_running_->log_tail());
        return "the server process " + how + "; its log ends: " + printable(tail, 500);
    }
    /// How long the words of made-up prompts are, once for all repeats, within 5 s.
    void learn_tokens(const plan& p, double at_most_s) {
        if (!makes_up_prompts(p)) return;
        const long long until = now_ns() + ns_of(std::min(5.0, at_most_s));
        const auto post = [&](const std::string& path, const std::string& body) {
            const double left_s = static_cast<double>(until - now_ns()) * 1e-9;
            return left_s <= 0 ? http_answer()
                               : blocking_post(load_.url, path, load_.fields, body, left_s,
                                               load_.tls.get());
        };
        bool tokenizes = true;
        const auto tokenized = [&](const std::string& body) {
            if (!tokenizes) return -1;
            const int n = counted_tokens(
                post(request_path(*api_, "/tokenize", below_the_path(), ""), body));
            tokenizes = n > 0;
            return tokenizes ? n : -1;
        };
        const auto of_text = [&](const std::string& text) {
            request_spec none;
            body_writer b(none);  // "content" is llama.cpp's
            return tokenized(b.string("model", load_.model)
                                 .string("prompt", text)
                                 .string("content", text)
                                 .finished());
        };
        const auto body_of = [&](request_spec r) {
            r.max_tokens = 1;
            return request_body(*api_, load_.model, r);
        };
        const auto used_by = [&](const std::string& body) {
            const bool stream = p.common.stream;
            return used_tokens(post(stream ? load_.path : load_.whole_path, body), stream);
        };
        const auto of_prompt = [&](const std::string& prompt) {
            request_spec r = p.common;
            r.prompt = prompt;
            const std::string body = body_of(r);
            const int n = tokenized(body);
            return n > 0 ? n : used_by(body);
        };
        const auto of_ids = [&](const std::string& ids) {
            request_spec r = p.common;
            r.token_ids = id_list(ids);
            return used_by(body_of(r));
        };
        load_.tokens = fitted_tokens(of_text, of_prompt);
        const bool may_be_ids =
            api_->takes_token_ids && p.stride == 1 && p.common.system_prompt.empty();
        if (may_be_ids && load_.tokens.lengths != token_fit::quality::exact)
            if (const token_fit ids = fitted_ids(of_ids); ids.as_ids) load_.tokens = ids;
        facts_.tokens = load_.tokens;
    }
    double take_startup_s() { return std::exchange(startup_s_, not_a_number); }
    const load_target& load() const { return load_; }
    const target_facts& facts() const { return facts_; }

private:
    void check_api() {
        const api_format named = facts_.kind == target_kind::process    ? process_.api
                                 : facts_.kind == target_kind::endpoint ? endpoint_.api
                                                             : openai_chat;
        require(static_cast<std::size_t>(named) < std::size(apis),
                "endpoint.api is no API: it is one of " + api_names());
        api_ = &traits_of(named);
        if (const std::string s = environment("LLMBENCH_API"); !s.empty() && named == openai_chat) {
            api_ = api_named(s);
            require(api_ != nullptr,
                    "LLMBENCH_API is \"" + printable(s) + "\": it is one of " + api_names());
        }
    }
    /// The server's words, fit to be written.
    std::string told(const std::string& words) const {
        return without_secrets(words, load_.secrets);
    }
    std::string header_lines() {
        std::string lines =
            std::string("User-Agent: llmbench\r\nContent-Type: application/json\r\n") +
            api_->fields;
        for (const name_value& h : endpoint_.headers) {
            const std::string name = str(h.name), value = str(h.value);
            require(is_token(name), "endpoint.headers has the name \"" + printable(name) +
                                        "\": it must be one word without a colon");
            require(is_header_safe(value), "endpoint.headers: the value of " + name +
                                               " holds a line break or another control character");
            for (const char* ours : {"host", "content-length", "content-type", "transfer-encoding",
                                     "connection", "x-request-id"})
                require(!same_ignoring_case(name, ours),
                        "endpoint.headers sets " + name + ": that header belongs to llmbench");
            lines += name + ": " + value + "\r\n";
            if (value.size() >= 8) add_secret(load_.secrets, value);  // "gzip" is none
        }
        return lines;
    }
    /// The header line with the key, "" where there is none. Where the gate names a header of that
    /// kind itself, LLMBENCH_API_KEY is for others.
    std::string key_line() {
        const std::string variable = str(endpoint_.api_key_env);
        const bool is_name = variable.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
                             std::string::npos;
        const std::string key =
            environment(variable.empty() ? "LLMBENCH_API_KEY" : variable.c_str());
        require(variable.empty() || !key.empty(),
                is_name ? "endpoint.api_key_env is \"" + variable + "\": that variable is not set"
                        : "endpoint.api_key_env names a variable that is not set; it is not "
                          "repeated here, for it looks like a key and not like a name");
        require(is_header_safe(key), "the API key in " +
                                         (variable.empty() ? "LLMBENCH_API_KEY" : variable) +
                                         " holds a line break or another control character");
        add_secret(load_.secrets, key);
        const std::string_view header = api_->key_before;
        for (const name_value& h : endpoint_.headers) {
            if (!same_ignoring_case(str(h.name), header.substr(0, header.find(':')))) continue;
            require(variable.empty(), "endpoint.headers sets " + str(h.name) + " and " +
                                          "endpoint.api_key_env names a key: give one of them");
            return {};
        }
        return key.empty() ? key : api_->key_before + key + "\r\n";
    }
    void start_process(double at_most_s) {
        const double ready_within_s = std::min(process_.ready_within.seconds(), at_most_s);
        const std::string directory = report_directory();
        std::error_code ignored;
        std::filesystem::create_directories(directory, ignored);
        static std::atomic<int> started{0};
        const int port = free_port();
        const std::string log = directory + "/" +
                                (arm_ == run_arm::baseline ? "baseline-" : "server-") +
                                std::to_string(++started) + ".log";
        const long long began = now_ns();
        process_running_ = std::make_unique<server_process>(process_, port, log);
        endpoint_.url = "http://127.0.0.1:" + std::to_string(port);
        const http_url url = parsed_url(str(endpoint_.url), "process");
        const std::string ready = process_.ready.empty() ? api_->ready : str(process_.ready);
        http_answer last;
        for (;;) {
            const double waited = static_cast<double>(now_ns() - began) * 1e-9;
            const auto give_up = [&](const std::string& why) {
                const std::string tail = told(process_running_->log_tail());
                process_running_.reset();
                return no_server("process \"" + printable(str(process_.command), 200) + "\" " +
                                 why + "; log " + log + " ends:\n" +
                                 (tail.empty() ? "(empty)" : tail));
            };
            if (const std::string how = process_running_->how_it_ended(); !how.empty())
                throw give_up(how + " before it was ready");
            if (waited > ready_within_s)
                throw give_up(
                    "was not ready within " + time_text(ready_within_s) + " (" +
                    ready + " answered: " +
                    (last.error.empty() ? "HTTP " + std::to_string(last.status) : last.error) +
                    ")");
            if (interrupted.load()) throw give_up("was interrupted while starting");
            last = blocking_get(url, ready, "", std::min(2.0, ready_within_s));
            if (last.status == 200) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        startup_s_ = static_cast<double>(now_ns() - began) * 1e-9;
    }
    /// The model named, else the only one that the server lists. An API that takes no model has its
    /// name for the reports, where it can be had.
    void find_model() {
        std::string wanted =
            facts_.kind == target_kind::process ? str(process_.model) : str(endpoint_.model);
        if (wanted.empty() && facts_.kind != target_kind::simulated)
            wanted = environment("LLMBENCH_MODEL");
        const char* const path = *api_->models ? api_->models : api_->ready;
        http_answer a = blocking_get(load_.url, request_path(*api_, path, below_the_path(), ""),
                                     load_.fields, 10, load_.tls.get());
        a.error = told(a.error);
        require(!a.distrusted, str(endpoint_.url) + ": " + a.error);
        if (a.status == 0)
            throw no_server("no server answers at " + str(endpoint_.url) + ": " + a.error);
        if (wanted.empty()) {
            const std::vector<std::string> models = listed_models(a);
            std::string names;
            for (const std::string& m : models)
                names += (names.empty() ? "" : ", ") + printable(told(m), 100);
            require(
                models.size() == 1 || !api_->needs_model,
                "no model is named and " + str(endpoint_.url) + " lists " +
                    (models.empty() ? "none" : std::to_string(models.size()) + " (" + names + ")") +
                    ": set .model or LLMBENCH_MODEL");
            if (models.size() == 1) wanted = models[0];
        }
        load_.model = wanted;
        facts_.model = told(wanted);
    }
    /// An answer of /tokenize: {"count"} or, of llama.cpp, {"tokens"} alone; -1 for any other.
    static int counted_tokens(const http_answer& a) {
        picojson::value v;
        if (a.status != 200 || !parse_json(a.body, v)) return -1;
        const picojson::value* all = member(v, "tokens");
        const bool listed = all && all->is<picojson::array>();
        return listed ? static_cast<int>(all->get<picojson::array>().size())
                      : count_member(v, "count");
    }
    /// The prompt's tokens by the usage of an answer; -1 where it does not say.
    int used_tokens(const http_answer& a, bool streamed) const {
        int n = -1;
        if (a.status != 200) return n;
        const auto note = [&](const stream_event& e) {
            if (e.prompt_tokens >= 0) n = e.prompt_tokens;
        };
        body_reader reader;
        reader.reset(*api_, streamed);
        if (reader.feed(a.body, note)) reader.end(note);
        return n;
    }
    /// A plain text server's URL names its one endpoint, and what else it answers is beside that.
    std::string below_the_path() const {
        return api_->framed == framing::pieces ? std::string() : load_.url.path;
    }
    std::vector<std::string> listed_models(const http_answer& a) const {
        std::vector<std::string> models;
        picojson::value v;
        if (!*api_->models || a.status != 200 || !parse_json(a.body, v)) return models;
        if (!*api_->models_in) {
            if (has_text(v, api_->model_as)) models.push_back(string_member(v, api_->model_as));
            return models;
        }
        if (const picojson::value* list = member(v, api_->models_in);
            list && list->is<picojson::array>())
            for (const picojson::value& m : list->get<picojson::array>())
                models.push_back(string_member(m, api_->model_as));
        return models;
    }

    run_arm arm_;
    endpoint endpoint_{};
    process process_{};
    engine engine_{};
    const api_traits* api_ = &apis[0];
    std::unique_ptr<server_process> process_running_{};
    std::unique_ptr<simulated_host> host_{};
    load_target load_{};
    target_facts facts_{};
    double startup_s_ = not_a_number;
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
