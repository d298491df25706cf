// The life of a program with two gates, hindered or ended at a moment that is drawn: by a signal, a
// disk that is full, a lack of descriptors. Each is a process of its own whose load, files and
// exit code are the product's; its time and its disk are made up, so that a moment is a time of its
// load or a byte of its files, and the same in every run.
#pragma once

#include "simulated/drawn.hpp"
#include "support/descriptors.hpp"
#include "support/scratch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <picojson.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace virtual_world {

/// What a program is in for, and when: after so much of its time, or of its bytes and files.
struct calamity {
    enum class kind : unsigned char { nothing, signal, full_disk, no_descriptor, limits };
    kind what = kind::nothing;
    int signal = 0;
    bool comes_twice = false;
    double at_s = -1;        // of its load; below 0: by bytes
    long long at_byte = -1;  // of all that it writes
    long long at_open = -1;  // of the files that it opens
    long long calls = 0;     // that fail from then on, 0: all
    rlim_t descriptors = 0, file_bytes = 0;  // real limits, 0: none
    bool is_told_the_size = false;           // a file over the limit is an error, and no signal

    std::string text() const {
        constexpr const char* names[] = {"nothing", "signal", "full disk", "no descriptor",
                                         "limits"};
        return printed("%s (signal %d%s at %g s, byte %lld, file %lld, %lld calls, %llu "
                       "descriptors, %llu bytes a file%s)",
                       names[static_cast<std::size_t>(what)], signal, comes_twice ? " twice" : "",
                       at_s, at_byte, at_open, calls,
                       static_cast<unsigned long long>(descriptors),
                       static_cast<unsigned long long>(file_bytes),
                       is_told_the_size ? ", told" : "");
    }
};
/// What a life was, told by itself while it lasts.
struct life_facts {
    long long ns = 0, bytes = 0, opens = 0, largest = 0;
};

/// The disk of a program that is in for it.
class hindered_disk {
public:
    hindered_disk(const calamity& c, life_facts& facts) : c_(c), facts_(facts) {}
    int operator()(std::size_t& bytes) {
        using kind = calamity::kind;
        const bool opens = bytes == 0;
        const long long before = facts_.bytes, wanted = static_cast<long long>(bytes);
        facts_.opens += opens;
        const bool is_there = opens ? c_.at_open >= 0 && facts_.opens > c_.at_open
                                    : c_.at_byte >= 0 && before + wanted > c_.at_byte;
        if (is_there && (c_.calls == 0 || failed_ < c_.calls)) {
            if (c_.what == kind::signal && failed_++ == 0) {
                ::raise(c_.signal);
                if (c_.comes_twice) ::raise(c_.signal);
            }
            if (c_.what == kind::no_descriptor && opens) return ++failed_, EMFILE;
            if (c_.what == kind::full_disk && !opens) {
                bytes = static_cast<std::size_t>(std::max(0ll, c_.at_byte - before));
                if (bytes == 0) return ++failed_, ENOSPC;
            }
        }
        facts_.bytes += static_cast<long long>(bytes);
        facts_.largest = std::max(facts_.largest, static_cast<long long>(bytes));
        return 0;
    }

private:
    const calamity& c_;
    life_facts& facts_;
    long long failed_ = 0;
};

inline scenario gate_of_a_life(const virtual_server& at) {
    scenario s = some(24, 20);
    s.target = endpoint{.url = text(at.url())};
    s.slos = {mean(tpot) <= time_span::from_seconds(1)};
    return s;
}
/// Ends with the program's own exit code.
[[noreturn]] inline void live(const std::string& directory, const std::string& console,
                              const calamity& c, life_facts& facts) {
    ::setenv("LLMBENCH_REPORT_DIR", directory.c_str(), 1);
    for (const char* other : {"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"}) ::unsetenv(other);
    const bool is_redirected =
        std::freopen(console.c_str(), "w", stdout) && std::freopen(console.c_str(), "a", stderr);
    if (!is_redirected) std::_Exit(99);
    if (c.is_told_the_size) ::signal(SIGXFSZ, SIG_IGN);
    for (const auto& [limit, most] : {std::pair{RLIMIT_NOFILE, c.descriptors},
                                      std::pair{RLIMIT_FSIZE, c.file_bytes}}) {
        const rlimit soft{most, RLIM_INFINITY};
        rlimit both{};
        ::getrlimit(limit, &both);
        both.rlim_cur = std::min(soft.rlim_cur, both.rlim_max);
        both.rlim_max = both.rlim_cur;  // nobody raises it
        if (most > 0) ::setrlimit(limit, &both);
    }
    virtual_environment execution_environment;
    const inside_environment here(&execution_environment);
    virtual_server server(execution_environment, engine{});
    execution_environment.disk = hindered_disk(c, facts);
    const long long began = now_ns();
    if (c.at_s >= 0)
        execution_environment.at(began + ns_of(c.at_s), [&] {
            ::raise(c.signal);
            if (c.comes_twice) ::raise(c.signal);
        });
    for (int i = 0; i < 2; ++i) {
        try {
            executed(gate_execution(gate_of_a_life(server), __FILE__, __LINE__, "gate"));
        } catch (const std::exception&) {
            // It is in the reports, and in the exit code.
        }
        facts.ns = now_ns() - began;
    }
    std::exit(detail::session::of_this_program().exit_code());
}

/// How it ended, and what it left.
struct past_life {
    int code = -1, signal = 0;  // 0: by its own hand
    life_facts facts{};
    std::map<std::string, std::string> files{};
    std::string console{};
    bool has(const char* name) const { return files.count(name) > 0; }
};
inline std::string content_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline past_life lived(const calamity& c) {
    const files::scratch folder;
    const std::string directory = folder.file("reports"), console = folder.file("console");
    void* const shared = ::mmap(nullptr, sizeof(life_facts), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* const facts = new (shared) life_facts;
    past_life l;
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) live(directory, console, c, *facts);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) l.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) l.signal = WTERMSIG(status);
    l.facts = *facts;
    ::munmap(shared, sizeof(life_facts));
    std::error_code none;
    for (const auto& f : std::filesystem::directory_iterator(directory, none))
        l.files[f.path().filename().string()] = content_of(f.path().string());
    l.console = content_of(console);
    return l;
}

// ---- what must hold of all of them

inline bool ends_with(const std::string& s, std::string_view end) {
    return s.size() >= end.size() &&
           std::string_view(s).substr(s.size() - end.size()) == end;
}
/// A report that is there is whole.
inline void check_whole(const past_life& l, checked& c) {
    for (const auto& [name, end] :
         {std::pair{"junit.xml", "</testsuites>\n"}, std::pair{"metrics.txt", "# EOF\n"},
          std::pair{"report.html", "</html>\n"}, std::pair{"summary.md", "\n"}})
        c.must(!l.has(name) || ends_with(l.files.at(name), end), std::string(name) + " is cut off");
    picojson::value json;
    c.must(!l.has("result.json") || picojson::parse(json, l.files.at("result.json")).empty(),
           "result.json is cut off");
    for (const auto& [name, content] : l.files)
        c.must(l.signal != 0 || l.code > 127 || !ends_with(name, ".tmp"), name + " is left behind");
}
/// What a report says of the program is what the program says of itself, or worse.
inline void check_colour(const past_life& l, checked& c) {
    const bool is_green = l.code == 0;
    if (l.has("result.json")) {
        picojson::value json;
        picojson::parse(json, l.files.at("result.json"));
        const double reported = json.get("exit_code").get<double>();
        c.must(is_green ? reported == 0 : reported != 0,
               printed("the program ends with %d, by signal %d; result.json says %g", l.code,
                       l.signal, reported));
    }
    if (l.has("junit.xml")) {
        const std::string& junit = l.files.at("junit.xml");
        const bool has_none = junit.substr(0, junit.find('>', junit.find("<testsuites")))
                                  .find("failures=\"0\" errors=\"0\"") != std::string::npos;
        c.must(has_none == is_green, printed("the program ends with %d, by signal %d; junit.xml "
                                             "is %s", l.code, l.signal,
                                             has_none ? "green" : "red"));
    }
    for (const char* name : {"result.json", "junit.xml", "summary.md", "metrics.txt",
                             "report.html", "records.jsonl", "events.bin"})
        c.must(!is_green || l.has(name), std::string("a green program leaves no ") + name);
}

/// The lines of records.jsonl that are whole, by their ids.
using record_lines = std::map<std::string, std::string>;
inline record_lines lines_of(const past_life& l, checked& c) {
    record_lines all;
    if (!l.has("records.jsonl")) return all;
    std::istringstream in(l.files.at("records.jsonl"));
    std::string gate;
    std::size_t gaps = 0;
    for (std::string line; std::getline(in, line);) {
        if (in.eof()) break;  // cut off
        // No two runs send the same words.
        const std::size_t sent = line.find(",\"most_prompt_tokens\":");
        if (sent != std::string::npos) line.replace(sent, line.find(",\"most_output_tokens\"") - sent,
                                                    ",\"most_prompt_tokens\":0");
        try {
            const record r = read_record(line, gate);
            gaps += gap_count(r);
            c.must(all.emplace(str(r.id), line).second, "two records have one id");
        } catch (const std::exception& e) {
            c.must(false, std::string("records.jsonl: ") + e.what());
        }
    }
    const std::size_t held = l.has("events.bin") ? l.files.at("events.bin").size() : 0;
    c.must(held >= 4 * gaps, printed("events.bin has %zu bytes for %zu gaps", held, gaps));
    return all;
}
/// Every request that had ended by then has its record, as it would have had otherwise.
inline void check_records_until(const record_lines& own, const record_lines& all,
                                long long until_ns, checked& c) {
    std::string gate;
    for (const auto& [id, line] : all) {
        if (read_record(line, gate).end_ns >= until_ns) continue;
        const auto at = own.find(id);
        c.must(at != own.end() && at->second == line,
               id + (at == own.end() ? " has no record" : " has another record: " + at->second));
    }
}

/// As the README has it: 0, 1, 2, 3 and 77 by its own hand; 128 and the signal of a second one.
inline void check_code(const past_life& l, const calamity& c, bool measured_all, checked& ch) {
    using kind = calamity::kind;
    const std::string reported = printed("it ends with %d, by signal %d", l.code, l.signal);
    switch (c.what) {
    case kind::nothing: return ch.must(l.code == 0, reported);
    case kind::signal:
        // Whom no gate listens to is ended by it; who was interrupted is invalid, unless all was
        // over but the writing of it.
        return ch.must(l.signal == c.signal || l.code == 3 || l.code == 128 + c.signal ||
                           (l.code == 0 && measured_all),
                       reported);
    case kind::full_disk:
    case kind::no_descriptor: return ch.must(l.code == 2 || l.code == 3, reported);
    case kind::limits:
        return ch.must(l.code == 0 || l.code == 2 || l.code == 3 || l.signal == SIGXFSZ, reported);
    }
}

/// The undisturbed life, and the moments that it has.
struct usual_life {
    past_life seen{};
    record_lines records{};
};
inline calamity drawn_calamity(std::uint64_t number, const life_facts& usual) {
    using kind = calamity::kind;
    constexpr kind kinds[] = {kind::signal, kind::full_disk, kind::no_descriptor, kind::limits};
    generator g(number, 11);
    calamity c;
    c.what = kinds[number % 4];
    c.signal = (const int[]){SIGINT, SIGTERM, SIGKILL}[g.below(3)];
    c.comes_twice = g.uniform() < 0.3;
    const auto some_of = [&](long long all) {
        return static_cast<long long>(g.below(static_cast<std::uint64_t>(all)));
    };
    if (c.what == kind::signal && g.uniform() < 0.5)
        c.at_s = 1e-9 * static_cast<double>(some_of(usual.ns));
    else if (c.what == kind::signal || c.what == kind::full_disk) c.at_byte = some_of(usual.bytes);
    if (c.what == kind::no_descriptor) c.at_open = some_of(usual.opens);
    if (c.what != kind::signal && g.uniform() < 0.5) c.calls = 1 + some_of(4);
    const bool of_descriptors = g.uniform() < 0.5 && !a_sanitizer_needs_descriptors;
    if (c.what == kind::limits && of_descriptors) c.descriptors = 3 + g.below(8);
    else if (c.what == kind::limits) {
        c.file_bytes = 1 + static_cast<rlim_t>(some_of(usual.largest));
        c.is_told_the_size = g.uniform() < 0.7;
    }
    return c;
}
inline std::string fault_of_life(std::uint64_t number, const usual_life& usual) {
    const calamity c = drawn_calamity(number, usual.seen.facts);
    checked ch;
    const past_life l = lived(c);
    check_whole(l, ch);
    check_colour(l, ch);
    const record_lines own = lines_of(l, ch);
    check_code(l, c, own.size() == usual.records.size(), ch);
    // Five times a second what has come in is written; whoever is not ended writes the rest.
    const bool is_ended = l.signal != 0 || l.code > 127;
    const long long until_ns = 1000000000000 + ns_of(c.at_s) - (is_ended ? 400000000 : 0);
    check_records_until(own, usual.records, c.at_s >= 0 ? until_ns : 0, ch);
    return ch.why.empty() ? "" : c.text() + ": " + ch.why + "\n" + l.console;
}

}  // namespace virtual_world
