#include "llmbench.hpp"
#include "core/reports/machine_facts.hpp"
#include "core/wire/metrics_page.hpp"

#include <string>

using namespace llmbench;
using namespace llmbench::detail;

TEST_CASE("a quota is read from the control groups of a program and those above") {
    CHECK(quota_of("150000 100000") == 1.5);
    for (const char* none : {"max 100000", "", "150000", "-1 100000", "150000 0", "x y"})
        CHECK(quota_of(none) == 0);
    CHECK(control_groups("12:cpu:/old\n0::/user.slice/run-7.scope\n") ==
          vector<std::string>{"/user.slice/run-7.scope", "/user.slice", ""});
    CHECK(control_groups("0::/") == vector<std::string>{""});
    CHECK(control_groups("") == vector<std::string>{""});
}
TEST_CASE("the chosen one of a kernel's list stands in brackets") {
    CHECK(chosen_of("always [madvise] never") == "madvise");
    CHECK(chosen_of("") == "");
    CHECK(chosen_of("] always [") == "");
    std::string governors;
    for (const char* core : {"powersave", "performance", "powersave", "", "power"})
        add_word(governors, core);
    CHECK(governors == "powersave, performance, power");
}
TEST_CASE("nvidia-smi tells clocks, the limit of power and why a clock is low") {
    const vector<accelerator_facts> cards = read_accelerators(
        "NVIDIA H200, 570.86.15, 1305, 1980, 700.00, 0x0000000000000064\n"
        "NVIDIA H200, 570.86.15, 345, 1980, 700.00, 0x0000000000000001\n"
        "NVIDIA T4, 535.1, [N/A], 1590, [N/A], 0x0000000000000002\n"
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
    REQUIRE(cards.size() == 3);
    CHECK(accelerator_text(cards[0]) == "NVIDIA H200 (driver 570.86.15, clock 1305 of 1980 MHz, "
                                        "limit 700 W, throttled: power limit, heat)");
    CHECK(cards[1].throttled == "");  // an idle card is at rest
    CHECK(!cards[1].is_clock_fixed);
    CHECK(cards[2].clock_mhz == 0);
    CHECK(cards[2].power_limit_w == 0);
    CHECK(cards[2].is_clock_fixed);
    CHECK(hexadecimal("0x1fz") == 0);
    CHECK(accelerators_text({{.name = "A"}, {.name = "A"}, {.name = "B"}}) == "2 x A, B");
}
TEST_CASE("dcgm-exporter tells the same of each card once") {
    const std::string labels = "{gpu=\"0\",UUID=\"GPU-1\",modelName=\"NVIDIA L4\","
                               "DCGM_FI_DRIVER_VERSION=\"550.1\"}";
    vector<accelerator_facts> cards;
    read_accelerators(read_metrics_page("DCGM_FI_DEV_SM_CLOCK" + labels + " 1200\n" +
                                            "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" + labels + " 8\n" +
                                            "DCGM_FI_DEV_POWER_MGMT_LIMIT" + labels + " 72\n" +
                                            "DCGM_FI_DEV_SM_CLOCK 7\n",
                                        "text/plain")
                          .page,
                      cards);
    REQUIRE(cards.size() == 1);
    CHECK(accelerators_text(cards) == "NVIDIA L4 (driver 550.1, clock 1200 MHz, limit 72 W, "
                                      "throttled: hardware slowdown)");
}
TEST_CASE("a machine of which little is known has few words") {
    CHECK(machine_words({.name = "bench-7"}) == "");
    CHECK(machine_words({"bench-7", 1.5, "powersave", "on", "madvise"}) ==
          "quota of 1.5 cores, governor powersave, SMT on, huge pages madvise");
}
TEST_CASE("what makes runs unequal is named with the command that mends it") {
    const auto named = [](const machine_facts& m, const vector<accelerator_facts>& cards) {
        std::string all;
        for (const unequal_runs& u : what_makes_unequal(m, cards))
            all += u.why + " -> " + u.mend + "\n";
        return all;
    };
    CHECK(named({.quota = 2, .governor = "performance"}, {{.max_clock_mhz = 1, .is_clock_fixed = true}})
          == "");
    CHECK(named({.governor = "powersave"}, {}) ==
          "the governor is powersave, so the clock follows the load -> "
          "sudo cpupower frequency-set -g performance\n");
    CHECK(named({.quota = 1.5}, {}) ==
          "the quota is 1.5 cores, so the last core stops within each period -> "
          "docker run --cpuset-cpus 0-1, or a limit of whole cores\n");
    const std::string card = named({}, {{.name = "L4", .max_clock_mhz = 9, .throttled = "heat"}});
    CHECK(card.find("L4 is throttled: heat -> nvidia-smi -q") != std::string::npos);
    CHECK(card.find("sudo nvidia-smi --lock-gpu-clocks=MHZ") != std::string::npos);
}
TEST_CASE("the socket of a server is that which listens on its port") {
    const std::string table =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
        "inode\n"
        "   0: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 "
        "11 1 0 20 4 30 10 -1\n"
        "   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
        "12 1 0 100 0 0 10 0\n";
    CHECK(listening_socket(table, 8080) == "12");
    CHECK(listening_socket(table, 8081) == "");
    CHECK(listening_socket("0: a", 8080) == "");
}
TEST_CASE("cores are read from their list") {
    CHECK(cores_of_list("0-2,5\n") == vector<int>{0, 1, 2, 5});
    CHECK(cores_of_list("\t7") == vector<int>{7});
    for (const char* none : {"", "a", "1-", "0-99999", "-1"}) {
        CAPTURE(none);
        CHECK(cores_of_list(none).empty());
    }
}
TEST_CASE("a server is told to be pinned if it may use each core of the client") {
    const vector<unequal_runs> all = shared_cores({7, {0, 1, 2, 3}}, {0, 1, 2, 3});
    REQUIRE(all.size() == 1);
    CHECK(all[0].why == "the server, process 7, may use each core of this client");
    CHECK(all[0].mend == "sudo taskset -acp 0-2 7, and taskset -c 3 llmbench ...");
    CHECK(shared_cores({7, {0, 1, 2, 3}}, {1}).at(0).mend ==
          "sudo taskset -acp 0,2-3 7, and taskset -c 1 llmbench ...");
    CHECK(shared_cores({7, {0, 1, 2}}, {2, 3}).empty());
    CHECK(shared_cores({}, {0, 1}).empty());
    CHECK(shared_cores({7, {0}}, {0}).empty());
    CHECK(allowed_cores("Name:\tvllm\nCpus_allowed_list:\t0-1\nMems_allowed:\t1\n") ==
          vector<int>{0, 1});
    CHECK(allowed_cores("Name:\tvllm\n").empty());
}
