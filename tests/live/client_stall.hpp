// What the machine did to a live test: where one fails, and the client of a gate in it says that it was
// stalled too much for a verdict, nothing was shown of what is tested. That is told and counted.
#pragma once

#include "support/listener.hpp"

#include <doctest/doctest.h>

#include <iostream>
#include <mutex>
#include <streambuf>
#include <string>

namespace live {

/// What gates say in a test case, which goes where it went before.
class account final : public std::streambuf {
public:
    account() : to_(std::cout.rdbuf(this)) {}
    ~account() override { std::cout.rdbuf(to_); }
    void begin() {
        const std::lock_guard guard(mutex_);
        said_.clear();
    }
    bool is_of_a_stalled_client() const {
        const std::lock_guard guard(mutex_);
        std::string words;  // wherever its lines are broken
        for (const char c : said_)
            if (c != '\n' && (c != ' ' || words.empty() || words.back() != ' ')) words += c;
            else if (c == '\n' && !words.empty() && words.back() != ' ') words += ' ';
        for (const char* reported : {"NOT OK: client", "measured again: client", "client: it lost"})
            if (words.find(reported) != std::string::npos) return true;
        return false;
    }

private:
    int overflow(int c) override {
        const char one = traits_type::to_char_type(c);
        return xsputn(&one, 1) == 1 ? c : traits_type::eof();
    }
    std::streamsize xsputn(const char* s, std::streamsize n) override {
        const std::lock_guard guard(mutex_);
        said_.append(s, static_cast<std::size_t>(n));
        return to_->sputn(s, n);
    }
    int sync() override { return to_->pubsync(); }

    mutable std::mutex mutex_;
    std::string said_;
    std::streambuf* to_;
};

/// Which of the test cases that failed were stalled.
class stalls final : public listener {
public:
    explicit stalls(const doctest::ContextOptions&) {}
    static int exit_code(int of_doctest) {
        return of_doctest != 0 && stalled_ > 0 && failed_ == 0 ? 77 : of_doctest;
    }

    void test_case_start(const doctest::TestCaseData& t) override {
        name_ = t.m_name;
        account_.begin();
    }
    void test_case_end(const doctest::CurrentTestCaseStats& s) override {
        if (s.testCaseSuccess) return;
        const bool was = account_.is_of_a_stalled_client();
        ++(was ? stalled_ : failed_);
        if (was) std::cout << "stalled by the machine: " << name_ << std::endl;
    }

private:
    account account_{};
    std::string name_{};
    inline static int stalled_ = 0, failed_ = 0;
};

}  // namespace live

DOCTEST_REGISTER_LISTENER("stalls", 1, live::stalls);
