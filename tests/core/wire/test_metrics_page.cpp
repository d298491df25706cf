// Pages of metrics: Prometheus' text format 0.0.4 and OpenMetrics 1.0.
#include "core/wire/metrics_page.hpp"
#include "support/effort.hpp"
#include "support/texts.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

using namespace llmbench::detail;

namespace {

constexpr const char* text_type = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* openmetrics_type = "application/openmetrics-text; version=1.0.0";

metrics_page page_of(const std::string& body, const char* type = text_type) {
    const vector<char> copy(body.begin(), body.end());  // a read behind its end is seen
    parsed_page p = read_metrics_page({copy.data(), copy.size()}, type);
    CHECK_MESSAGE(p.problem == "", body);
    return p.page;
}
metrics_page openmetrics(const std::string& body) {
    return page_of(body + "# EOF\n", openmetrics_type);
}
/// Why there is no page; of one that is none, nothing is left.
std::string problem_of(const std::string& body, const char* type = text_type) {
    const parsed_page p = read_metrics_page(body, type);
    CHECK_MESSAGE(p.problem != "", body);
    CHECK(p.problem.find('\n') == std::string::npos);
    CHECK(p.page.samples.empty());
    CHECK(p.page.names.empty());
    return p.problem;
}
/// Each sample as name{label=value,...}=value.
vector<std::string> reported(const metrics_page& page) {
    vector<std::string> all;
    for (const page_sample& s : page.samples) {
        std::string labels;
        for (const page_label& l : labels_of(page, s))
            labels += (labels.empty() ? "" : ",") + std::string(l.name) + "=" +
                      std::string(l.value);
        all.push_back(std::string(s.name) + (labels.empty() ? "" : "{" + labels + "}") +
                      printed("=%g", s.value));
    }
    return all;
}
vector<std::string> reported(const std::string& body) { return reported(page_of(body)); }
using lines = vector<std::string>;

std::string label_in(const std::string& body) {
    const metrics_page page = page_of(body);
    REQUIRE(page.labels.size() == 1);
    return std::string(page.labels[0].value);
}

}  // namespace

TEST_CASE("rule 1: lines end with a line feed, and blanks stand anywhere between words") {
    CHECK(reported("a 1\n\n\nb 2\n") == lines{"a=1", "b=2"});
    CHECK(reported(" \ta \t 1 \t\n\t\n") == lines{"a=1"});
    CHECK(reported("a\t{ \tl\t = \"v\" ,\tm=\"w\" }\t1\t2 \n") == lines{"a{l=v,m=w}=1"});
    CHECK(reported("a{l=\"v\"}1\n") == lines{"a{l=v}=1"});
    CHECK(reported("a {} 1\n") == lines{"a=1"});
    CHECK_REFUSED(problem_of("b 1\na 1\r\n"), "line 2", "no number as its value", "a 1\\r");
    CHECK_REFUSED(problem_of("b 1\na+1\n"), "no name of a metric");
}

TEST_CASE("rule 2: of comments, HELP and TYPE name a metric, which may have no samples") {
    const metrics_page page = page_of("# a comment\n#\n#HELP a how many  there are \n"
                                      "#  TYPE \t a   gauge \na 1\nb 2\n# TYPE\n# TYPE c\n"
                                      "# UNIT d seconds\n# HELP \"e.f\" g\n# HELP \"h\n");
    CHECK(reported(page) == lines{"a=1", "b=2"});
    CHECK(page.names == vector<std::string_view>{"a", "b", "c", "e.f"});
}

TEST_CASE("rule 3: a label's value is any text, in quotes and with escapes") {
    CHECK(label_in("a{l=\"}\"} 1\n") == "}");
    CHECK(label_in("a{l=\",#{=\"} 1\n") == ",#{=");
    CHECK(label_in("a{l=\"# HELP\"} 1\n") == "# HELP");
    CHECK(label_in("a{l=\"\"} 1\n") == "");
    CHECK(label_in("a{l=\"x\\\\y\\\"z\\nw\"} 1\n") == "x\\y\"z\nw");
    CHECK(label_in("a{l=\"\\\\\"} 1\n") == "\\");
    CHECK(label_in("a{l=\"\\\\n\"} 1\n") == "\\n");
    CHECK(label_in("a{l=\"\\t\"} 1\n") == "\\t");  // no escape of the format
    CHECK(label_in("a{l=\"\xC3\xA9 \xF0\x9F\x90\xA2\"} 1\n") == "\xC3\xA9 \xF0\x9F\x90\xA2");
    CHECK(reported("a{l=\"v\",} 1\n") == lines{"a{l=v}=1"});
    CHECK(reported("a{} 1\n") == lines{"a=1"});
    CHECK(reported("a{l=\"x\\\"\",m=\"y\\\\\"} 1\n") == lines{"a{l=x\",m=y\\}=1"});
    for (const char* labels : {"{,}", "{l=\"v\",,}", "{l=\"v\" m=\"w\"}", "{l=\"v\"", "{", "{l}",
                               "{l=v}", "{l=\"v}", "{l=\"v\\\"}", "{1=\"v\"}", "{a:b=\"v\"}",
                               "{=\"v\"}", "{l=}", "{l"})
        CHECK_REFUSED(problem_of("b 1\na" + std::string(labels) + " 1\n"), "line 2");
}

TEST_CASE("rule 4: a metric's name has colons") {
    CHECK(reported("vllm:a_b 1\n:c 2\n_d:9 3\n") == lines{":c=2", "_d:9=3", "vllm:a_b=1"});
    for (const char* name : {"1a", "a-b", "a.b", "\xC3\xA9", "%", "-"})
        CHECK_REFUSED(problem_of("b 1\n" + std::string(name) + " 1\n"), "line 2", "no name");
}

TEST_CASE("rule 5: values are what Go reads as numbers") {
    const double huge = std::numeric_limits<double>::max();
    const std::pair<const char*, double> numbers[] = {
        {"8.128902e+06", 8128902}, {"1", 1}, {"+1", 1}, {"-1.5E-3", -0.0015}, {".5", 0.5},
        {"5.", 5}, {"+Inf", infinity}, {"-Inf", -infinity}, {"inf", infinity}, {"INF", infinity},
        {"-infinity", -infinity}, {"4.9e-324", 4.9e-324}, {"1.7976931348623157e308", huge},
        {"0e999", 0}};
    for (const auto& [text, number] : numbers) {
        CHECK_MESSAGE(go_float(text) == number, text);
        CHECK(page_of("a " + std::string(text) + "\n").samples[0].value == number);
    }
    for (const char* text : {"NaN", "Nan", "nan", "NAN"}) {
        REQUIRE_MESSAGE(go_float(text), text);
        CHECK(std::isnan(*go_float(text)));
    }
    for (const char* none : {"", "+", "-", ".", "1e", "1e+", "0x", "0x1", "0xp1", "0x1p", "1_0",
                             "1e999", "-1e400", "123456789e302", "1,5", "one", "+nan", "-nan",
                             "nan(1)", "--1", "+-1", "-+1", "infinit", "0x1p2"})
        CHECK_MESSAGE(!go_float(none), none);
    CHECK_REFUSED(problem_of("b 1\na\n"), "no number as its value");
    CHECK_REFUSED(problem_of("b 1\na ten\n"), "line 2", "a ten");
}

TEST_CASE("rule 5: a time of its own is a number, which is not used") {
    for (const char* sample : {"a 1 1395066363500", "a 1 -3982045", "a{} 1 +1000"})
        CHECK(reported(std::string(sample) + "\n") == lines{"a=1"});
    for (const char* sample : {"a 1 1520879607.789\n", "a 1 -1.5e3\n"})
        CHECK(reported(openmetrics(sample)) == lines{"a=1"});
    for (const char* time : {"soon", "NaN", "+Inf", "1 2", "0x1"})
        CHECK_REFUSED(problem_of("b 1\na 1 " + std::string(time) + "\n"), "line 2");
    CHECK_REFUSED(problem_of("b 1\na 1 NaN\n# EOF\n", openmetrics_type), "no time");
}

TEST_CASE("rule 6: a histogram is its sum and its count") {
    const metrics_page page = page_of("# TYPE t histogram\n"
                                      "t_sum 9.5\n"  // vLLM has it first
                                      "t_bucket{le=\"+Inf\"} 4\n"
                                      "t_bucket{le=\"1.0\"} 3\n"
                                      "t_bucket{le=\"0.5\"} 1\n"
                                      "t_count 4\n");
    const auto totals = totals_of(page, "t");
    REQUIRE(totals);
    CHECK(totals->sum == 9.5);
    CHECK(totals->count == 4);
    CHECK(!totals_of(page, "other"));
    CHECK(!totals_of(page_of("t_sum 1\n"), "t"));
}

TEST_CASE("rule 9: OpenMetrics has the same samples, and exemplars behind a #") {
    const metrics_page page = openmetrics(
        "# TYPE t_seconds histogram\n# UNIT t_seconds seconds\n# HELP t_seconds a \\\"b\\\"\n"
        "t_seconds_bucket{le=\"1\"} 3 # {trace_id=\"x} # {\"} 0.67 1.2\n"
        "t_seconds_bucket{le=\"+Inf\"} 4 1520879607.789 # {} 9\n"
        "t_seconds_sum 5\nt_seconds_count 4\n");
    CHECK(reported(page) == lines{"t_seconds_bucket{le=1}=3", "t_seconds_bucket{le=+Inf}=4",
                             "t_seconds_count=4", "t_seconds_sum=5"});
    CHECK(reported("a 1\n# EOF") == lines{"a=1"});
    CHECK(reported("a 1 2000\n# EOF\nb 2\n# UNIT a seconds\n# EOF\n") == lines{"a=1", "b=2"});
}

TEST_CASE("rule 10: half a page is none") {
    CHECK_REFUSED(problem_of("a 1\nb 22"), "cut", "its last line does not end");
    CHECK_REFUSED(problem_of("a 1"), "cut");
    CHECK_REFUSED(problem_of("a 1\n# HELP"), "cut");
    CHECK_REFUSED(problem_of("a 1\n# EO", openmetrics_type), "cut");
    CHECK_REFUSED(problem_of("a 1\n", openmetrics_type), "cut", "# EOF");
    CHECK(reported(page_of("a 1\n# EOF", openmetrics_type)) == lines{"a=1"});  // may end so
}

TEST_CASE("rule 11: a body that is compressed unasked is told as such") {
    CHECK_REFUSED(problem_of("\x1F\x8B\x08rest"), "compressed");
}

TEST_CASE("rule 12: what a page has twice is there twice, and summed where somebody asks") {
    const metrics_page page = page_of("a{e=\"0\",m=\"x\"} 1\nb 7\na{e=\"0\",m=\"x\"} 2\n"
                                      "a{e=\"1\",m=\"x\"} 4\na{e=\"1\"} 8\n");
    CHECK(samples_named(page, "a").size() == 4);
    CHECK(samples_of(page, "a", {{"e", "0"}}).size() == 2);
    CHECK(samples_of(page, "a", {{"m", "x"}, {"e", "1"}})[0]->value == 4);
    CHECK(samples_of(page, "a", {{"m", ""}})[0]->value == 8);  // as an absent one
    CHECK(sum_of(page, "a") == 15.0);
    CHECK(sum_of(page, "a", {{"e", "0"}}) == 3.0);
    CHECK(!sum_of(page, "a", {{"e", "2"}}));
    CHECK(!sum_of(page, "c"));
    CHECK(samples_named(page, "").empty());
}

TEST_CASE("rule 13: a body that is no page of metrics says what it is") {
    CHECK_REFUSED(problem_of("<!DOCTYPE html>\n<html>x</html>"), "HTML", "<!DOCTYPE html>");
    CHECK_REFUSED(problem_of("\n  <html>\n"), "HTML");
    for (const char* json : {"{\"detail\":\"Not Found\"}", "[]", "[{\"iter\":1}]\n", "{}", "{}\n",
                             "{\n  \"a\": 1\n}\n", "\"a 1\"", "{ \"a\\\"b\" : 1}", "{\"\":1}",
                             "{\"a\"\t:1}\n"})
        CHECK_REFUSED(problem_of(json), "JSON");
    CHECK_REFUSED(problem_of("null", "application/json"), "JSON");
    CHECK_REFUSED(problem_of("", ""), "empty");
    CHECK_REFUSED(problem_of("\n \r\n"), "empty");
    CHECK_REFUSED(problem_of("", "text/html; charset=utf-8"), "empty");
    CHECK_REFUSED(problem_of("\n", "text/plain; charset=utf-8"), "empty");
    CHECK_REFUSED(problem_of("", "application/openmetrics-text; version=1.0.0"), "empty");
    CHECK(page_of("").samples.empty());  // of processes that have counted nothing yet
    CHECK(page_of("", "text/plain; charset=utf-8").samples.empty());  // TGI's says no version
    CHECK_REFUSED(problem_of("404 page not found\n"), "no metrics", "404 page not found");
    CHECK_REFUSED(problem_of("Not Found"), "no metrics", "Not Found");
    CHECK_REFUSED(problem_of("\n\nok\n"), "no metrics", "\"ok\"");
    CHECK_REFUSED(problem_of("%PDF \x1b[31m##[error]x\n"), "no metrics", "\\x1b[31m#\\x23[error]x");
    CHECK(page_of("# nothing is measured yet\n").samples.empty());
}

TEST_CASE("rule 14: Prometheus 3 has names in quotes") {
    const metrics_page page = page_of("# HELP \"my.metric\" some\n# TYPE \"my.metric\" counter\n"
                                      "{\"my.metric\",a=\"b\"} 1\n{a=\"c\", \"my.metric\" , } 2\n"
                                      "{\"x\\\"y\"} 3\nz{\"l.m\"=\"v\"} 4\n");
    CHECK(reported(page) == lines{"my.metric{a=b}=1", "my.metric{a=c}=2", "x\"y=3", "z{l.m=v}=4"});
    CHECK(page.names[0] == "my.metric");
    CHECK(reported("{\"a\"} 1\n") == lines{"a=1"});  // and no JSON
    CHECK(reported("{\"a:b\",c=\"d\"} 1\n") == lines{"a:b{c=d}=1"});
    for (const char* line : {"{a=\"b\"} 1", "{} 1", "{\"\"} 1", "{\"a\",\"b\"} 1", "c{\"a\"} 1"})
        CHECK_REFUSED(problem_of("b 1\n" + std::string(line) + "\n"), "line 2");
}

TEST_CASE("rule 15: a page of 5 MB is read at once, whatever is on it") {
    const auto seconds_for = [](const std::string& body) {
        const std::clock_t before = std::clock();
        const parsed_page p = read_metrics_page(body, text_type);
        CHECK(p.problem == "");
        for (int i = 0; i < 100; ++i) sum_of(p.page, "vllm:series_of_a_long_name_7");
        return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    };
    constexpr std::size_t size = effort(5000000);
    std::string usual, all_names, one_line = "a{", buckets = "# TYPE t histogram\n";
    for (int i = 0; usual.size() < size; ++i)
        usual += "vllm:series_of_a_long_name_" + std::to_string(i / 100) +
                 "{engine=\"" + std::to_string(i % 100) + "\",model_name=\"some/model\"} 1.5e+06\n";
    for (int i = 0; all_names.size() < size; ++i)
        all_names += "# TYPE n" + std::to_string(i) + " gauge\nn" + std::to_string(i) + " 1\n";
    for (int i = 0; one_line.size() < size; ++i) one_line += "l" + std::to_string(i) + "=\"\\n\",";
    one_line += "} 1\n";
    while (buckets.size() < size) buckets += "t_bucket{le=\"1\"} 1\nt_sum 1\n";
    // Ten times the text takes ten times the time, not a hundred times; what is added is for a slow compiler.
    const double limit = 5 + 30 * seconds_for(usual.substr(0, usual.find('\n', size / 10) + 1));
    for (const std::string& body : {usual, all_names, one_line, buckets, "a 1\n" + std::string(size, '\n')})
        CHECK(seconds_for(body) < limit);
}

TEST_CASE("a page owns its text, and so do its copies") {
    metrics_page copy;
    {
        std::string body = "a{l=\"v\"} 1\n";
        const metrics_page page = page_of(body);
        copy = page;
        body.assign(body.size(), 'x');
    }
    CHECK(reported(copy) == lines{"a{l=v}=1"});
}

TEST_CASE("samples of one name stay in the order of the page") {
    CHECK(reported("b{i=\"2\"} 1\na 1\nb{i=\"1\"} 2\nb{i=\"0\"} 3\n") ==
          lines{"a=1", "b{i=2}=1", "b{i=1}=2", "b{i=0}=3"});
}
