// commands of a scenario
#pragma once

#include "api/target.hpp"
#include "core/base/secrets.hpp"
#include "core/base/text.hpp"
#include "effects/system/clock.hpp"
#include "effects/system/signals.hpp"
#include "effects/load/order.hpp"
#include "effects/targets/process.hpp"

#include <filesystem>  // error_code
#include <memory>  // make_unique, unique_ptr
#include <mutex>  // lock_guard
#include <stdexcept>  // runtime_error
#include <string>
#include <string_view>
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Text of others on one line, with secrets masked.
inline std::string masked_words_of(std::string_view s, const load_target& to) {
    s = s.substr(0, s.find_last_not_of(" \t\r\n") + 1);
    return printable(without_secrets(std::string(s), to.secrets), 200);
}

/// Processes that commands left running; they end with this.
class kept_commands {
public:
    void keep(std::unique_ptr<server_process> p) {
        const std::lock_guard lock(mutex_);
        std::erase_if(all_, [](const auto& old) { return old->is_gone(); });
        if (!p->is_gone()) all_.push_back(std::move(p));
    }

private:
    std::mutex mutex_{};
    std::vector<std::unique_ptr<server_process>> all_{};
};

/// `{url}` as a shell variable, so that nothing in a URL is run: quoted outside of quotes; single
/// quotes are ended around it.
inline std::string with_url_of_shell(std::string_view line) {
    std::string out;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (line.substr(i, 5) == "{url}") {
            const std::string variable = "$LLMBENCH_URL", quoted = '"' + variable + '"';
            out += quote == '"' ? variable : quote ? "'" + quoted + "'" : quoted;
            i += 4;
            continue;
        }
        out += c;
        if (c == '\\' && quote != '\'' && i + 1 < line.size()) out += line[++i];
        else if (quote == 0 && (c == '"' || c == '\'')) quote = c;
        else if (c == quote) quote = 0;
    }
    return out;
}

/// The result of a command.
struct carried_command {
    std::unique_ptr<server_process> process{};  // ends with the processes it leaves
    std::string how{};   // "exited with status 0"; "" while it runs
    std::string said{};  // its last line
    std::string error{};  // why it did not run
    bool in_time = false;
    bool done() const { return how == "exited with status 0"; }
};
/// Runs the line in a shell with the server's URL, until a time or an interruption.
inline carried_command carried_out(const std::string& line, const load_target& to,
                                   const std::string& log, long long until_ns) {
    const bool was_interrupted = stop_asked.load();
    const process what{.command = with_url_of_shell(line),
                       .env = {{"LLMBENCH_URL", to.whole_url}}};
    const int port = parsed_number<int>(to.url.port).value_or(0);
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(log).parent_path(), ignored);
    carried_command c;
    try {
        c.process = std::make_unique<server_process>(what, port, log, to.secrets);
    } catch (const std::runtime_error& e) {
        c.error = masked_words_of(e.what(), to);
        return c;
    }
    while ((c.how = c.process->how_it_ended()).empty() && now_ns() < until_ns &&
           stop_asked.load() == was_interrupted)
        sleep_s(0.01);
    c.in_time = now_ns() < until_ns;
    const std::string all = c.process->log_tail();
    c.said = masked_words_of(
        std::string_view(all).substr(all.rfind('\n', all.find_last_not_of(" \t\r\n")) + 1), to);
    return c;
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
