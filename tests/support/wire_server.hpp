// The answers of wire_cases.hpp, given by a scripted server of either kind.
#pragma once

#include <doctest/doctest.h>

#include "llmbench.hpp"

#include "support/wire_cases.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace wire {

/// Each prompt is the place of its answer among these.
template <class Server> class cases_server {
public:
    explicit cases_server(std::vector<wire_case> cases)
        : cases_(std::move(cases)),
          server_([this](const scripted::request& r) { return cases_[place_of(r)].script; }) {}

    llmbench::scenario asking() const {
        using namespace llmbench;
        std::vector<std::string> places;
        for (std::size_t i = 0; i < cases_.size(); ++i) places.push_back(std::to_string(i));
        scenario s;
        s.target = endpoint{.url = server_.url()};
        s.workload = prompts(places);
        s.warmup = 0;
        s.requests = static_cast<int>(cases_.size());
        s.repeats = 1;
        s.limits = {.connect = 20_s, .first_event = 20_s, .between_events = 20_s, .total = 40_s,
                    .drain = 20_s};
        return s;
    }
    const std::vector<wire_case>& cases() const { return cases_; }
    std::vector<scripted::request> log() const { return server_.log(); }
    static std::size_t place_of(const scripted::request& r) {
        const std::string before = R"("content":")";
        return std::stoul(r.body.substr(r.body.find(before) + before.size()));
    }

private:
    std::vector<wire_case> cases_;
    Server server_;
};

inline void check(const llmbench::record& r, expectation e) {
    // Among others that have a finish reason, one without it broke off.
    if (e.status == "ok" && e.finish.empty()) {
        e.status = "truncated";
        e.error = "the answer ended without a finish reason, which others have";
    }
    CHECK(std::string(llmbench::to_string(r.status)) == e.status);
    CHECK(r.http_status == e.http);
    const std::string error = r.error;
    if (e.error.empty()) CHECK(error == "");
    else if (error.find(e.error) == std::string::npos)
        FAIL_CHECK("the error is \"" << error << "\" and not \"" << e.error << "\"");
    CHECK(r.events == e.events);
    CHECK(r.output_tokens == e.tokens);
    CHECK(std::string(r.finish_reason) == e.finish);
    CHECK(r.end_ns >= r.sent_ns);
    CHECK(r.sent_ns >= r.scheduled_ns);
}

}  // namespace wire
