// records.jsonl and events.bin beside each other.
#include "effects/gates/record_files.hpp"
#include "extensions/simulated/virtual_environment.hpp"
#include "support/scratch.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

TEST_CASE("no line is written without its gaps, however long the disk was full") {
    for (const long long full_at : {1, 2, 3, 4}) {
        const files::scratch folder;
        virtual_environment execution_environment;
        const inside_environment here(&execution_environment);
        record_files both(folder.file("reports"));
        both.open();
        long long writes = 0;
        execution_environment.disk = [&](std::size_t&) { return ++writes == full_at ? ENOSPC : 0; };
        for (int i = 0; i < 3; ++i) {
            record r;
            r.events = 3;
            both.write({{r}, {1000, 2000}}, "gate");
        }
        CHECK_FALSE(both.are_whole());
        const std::string lines = file_content(folder.file("reports/records.jsonl"), "records");
        const std::string gaps = file_content(folder.file("reports/events.bin"), "events");
        const auto written = std::count(lines.begin(), lines.end(), '\n');
        CHECK(written == (full_at - 1) / 2);
        CHECK(static_cast<long long>(gaps.size()) == 8 * (full_at / 2));
    }
}

TEST_CASE("what a disk cannot keep up with is left out, and counted, before it takes all memory") {
    outbox box;
    delivered_requests many, one, taken;
    many.records.resize(outbox::max_waiting + 1);
    box.put(many);
    one.records.resize(1);
    box.put(one);
    CHECK(one.records.empty());
    one.records.resize(2);
    CHECK(box.try_put(one));
    CHECK(box.take(taken) == 3);
    CHECK(taken.records.size() == outbox::max_waiting + 1);
}
