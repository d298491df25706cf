// One who goes through lists of fields in tests and draws every value that a list allows, its
// extremes above all.
#pragma once

#include "core/base/fields.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace drawn_fields {
using llmbench::detail::vector;

namespace lb = llmbench::detail;
using lb::field;

class drawer : public lb::field_visitor {
public:
    /// `beyond`: also numbers outside of their ranges, which a server may report.
    explicit drawer(lb::generator& random, bool beyond = false)
        : random_(random), beyond_(beyond) {}
    /// Whether what was drawn goes together.
    bool is_sound() const { return sound_; }

    void visit_flag(const field&, bool& b) override { b = coin(); }
    void visit_number(const field&, double& n, const lb::number_range& of) override {
        if (beyond_ && coin()) {
            n = coin() ? 1e300 : -1e300;
            return;
        }
        // The largest number that there is stands for infinity.
        switch (random_.below(5)) {
        case 0: n = of.with_infinity ? -lb::infinity : of.least; break;
        case 1: n = of.with_infinity ? lb::infinity : of.most; break;
        case 2: n = of.otherwise; break;
        case 3: n = of.least <= 0.1 && of.most >= 0.1 ? 0.1 : of.most; break;
        default: n = of.least / 2 + (of.most / 2 - of.least / 2) * random_.uniform();
        }
    }
    void exact(const field&, long long& n, const lb::whole_range&) override {
        const long long some[] = {0, 1, 9007199254740993, 1000000000000000000,
                                  static_cast<long long>(random_.below(1000000000000000000))};
        n = some[random_.below(5)];
    }
    void time_after(const field&, long long& ns, long long from_ns) override {
        ns = from_ns + offset();
    }
    void times_after(const field&, vector<long long>& ns, long long from_ns,
                     const lb::time_groups& g) override {
        if (ns.empty()) ns.resize(g.size * random_.below(4));
        for (std::size_t i = 0; i < ns.size(); ++i)
            ns[i] = offset() + (i % g.size < g.times ? from_ns : 0);
    }
    void numbers(const field& f, vector<double>& all, const lb::number_range& of,
                 lb::layout) override {
        if (all.empty()) all.resize(random_.below(4));
        for (double& n : all) number(f, n, of);
    }
    void visit_texts(const field&, vector<std::string>& all) override {
        all.resize(random_.below(4));
        for (std::string& t : all) t = some_text();
    }
    void misfit(const char*, const char*) override { sound_ = false; }
    bool has(const char*, bool) override { return true; }
    bool begin(const field& f) override {
        return f.is_there == lb::presence::always || coin();
    }
    /// In the order in which they are read.
    vector<std::string> names(const vector<std::string>&) override {
        vector<std::string> all;
        for (const char* name : {"a \"b\"", "p99(ttft)", "x{y=\"z\\n\"}"})
            if (coin()) all.push_back(name);
        return all;
    }

protected:
    bool visit_text(const field&, std::string_view, std::string& to) override {
        to = some_text();
        return true;
    }
    void visit_whole(const field&, long long& n, const lb::whole_range& of) override {
        const auto least = static_cast<long long>(of.least), most = static_cast<long long>(of.most);
        const auto span = static_cast<unsigned long long>(most) -
                          static_cast<unsigned long long>(least);
        const bool has_null = of.null != lb::whole_range::no_null;
        const long long some[] = {least, most, has_null ? of.null : most,
                                  static_cast<long long>(static_cast<unsigned long long>(least) +
                                                         random_.below(span))};
        n = some[random_.below(4)];
        if (beyond_ && coin()) n = coin() ? 2147483647 : -2147483647;
    }
    void visit_choice(const field&, int& k, int count, const char* (*)(int)) override {
        k = static_cast<int>(random_.below(static_cast<std::uint64_t>(count)));
    }
    std::size_t begin_list(const field&, std::size_t) override { return random_.below(4); }

private:
    bool coin() { return random_.below(2) == 0; }
    long long offset() {
        const long long some[] = {0, -9000000000000000, 9000000000000000,
                                  static_cast<long long>(random_.below(1000000000))};
        return some[random_.below(4)];
    }
    std::string some_text() {
        const char* some[] = {"", "a \"quoted\" word", "back\\slash", "\"end_ns\":7,\"id\": 8",
                              "{\"repeat\":9}", "tab\tand\nline\r", "caf\xC3\xA9 \xF0\x9F\x98\x80",
                              "\x01\x1F\x7F", "ttft", "18446744073709551615", "\\u0041", "null"};
        return some[random_.below(std::size(some))];
    }
    lb::generator& random_;
    const bool beyond_;
    bool sound_ = true;
};

}  // namespace drawn_fields
