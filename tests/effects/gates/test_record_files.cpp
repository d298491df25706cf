// records.jsonl and events.bin beside each other.
#include "effects/gates/record_files.hpp"
#include "effects/net/virtual_network.hpp"
#include "effects/net/virtual_world.hpp"
#include "support/scratch.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

using namespace llmbench;
using namespace llmbench::detail;

TEST_CASE("no line is written without its gaps, however long the disk was full") {
    for (const long long full_at : {1, 2, 3, 4}) {
        const files::scratch folder;
        virtual_world world;
        const inside_world here(&world);
        record_files both(folder.file("reports"));
        both.open();
        long long writes = 0;
        world.disk = [&](std::size_t&) { return ++writes == full_at ? ENOSPC : 0; };
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
