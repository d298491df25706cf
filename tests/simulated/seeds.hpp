// Loads on made-up networks, servers and clients, each drawn from a seed, and what must hold of all
// of them, whatever was drawn:
//   every planned request has one record, and what reports add up is what records say;
//   a stamp of an event, and so each gap, is late by what the network was told to add and the
//   client knows of itself, at most;
//   nothing waits for longer than the plan's own limits;
//   a server well within a limit never fails on it, and one twice over it never passes; what is
//   invalid names what went wrong;
//   the same seed gives the same to the byte, with every compiler: tests/golden/simulated.txt;
//   an interruption at any moment leaves a record of each request;
//   all of this holds over TLS, too;
//   a signal, a full disk or a lack of descriptors at any moment leaves whole reports or none, and
//   none that is greener than the program.
//     seeds [--seeds N] [--lives N] [--golden FILE]   1000 and 80 of them, or those that are named; says
//                                         which fail, and exits with 1
//     seeds --seed K                      this one alone, and what was drawn
//                                         (lives: programs that are hindered)
//     seeds --life K                      this one alone
// It looks inside llmbench: live/implementation.cpp includes it behind the implementation.
#pragma once

#include "simulated/main.hpp"

#include "simulated/drawn.hpp"
#include "simulated/lives.hpp"
#include "simulated/stamps.hpp"
#include "simulated/sums.hpp"
#include "simulated/tls.hpp"
#include "simulated/verdicts.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace virtual_world {
namespace {

void check_repeat(const drawn& d, const repeat& r, checked& c) {
    check_records(d, r, c);
    check_stamps(d, r, c);
    check_time(d, r, c);
}

/// All that a repeat says, to the byte.
void add_repeat(fnv1a& hash, const repeat& r) {
    const std::string records = r.records();
    hash.add(records.data(), records.size());
    r.seen.gaps.for_each_block([&](const vector<std::uint32_t>& b) {
        for (const std::uint32_t gap : b) hash.add(static_cast<long long>(gap));
    });
    hash.add(static_cast<long long>(1e9 * r.seen.lost_fraction));
    hash.add(r.seen.disturbed_requests);
}
/// Its outcome, and its words with all the digits that people are shown.
void add_verdict(fnv1a& hash, const slo_verdict& v) {
    const std::string words = str(v.line());
    hash.add(static_cast<long long>(v.outcome));
    hash.add(words.data(), words.size());
}
/// Every bit of its numbers: what libm gives is in them.
void add_bits(fnv1a& hash, const slo_verdict& v) {
    for (const double x : {v.measured, v.estimate.value, v.estimate.low, v.estimate.high})
        hash.add(&x, sizeof x);
}

struct digests {
    fnv1a records{}, verdicts{}, bits{};
};
/// What does not hold of this seed; what it gave goes into the digests.
std::string fault_of(std::uint64_t seed, digests& all_digests, party_counts& invalid) {
    const drawn d = virtual_world::draw(seed);
    checked c;
    try {
        const vector<repeat> all = repeats_of(d, 2);
        for (const repeat& r : all) {
            check_repeat(d, r, c);
            add_repeat(all_digests.records, r);
        }
        check_sums(d, all, c);
        judged_seed judged;
        if (d.interrupted_after_s == 0) check_verdicts(d, all, judged, c);
        for (const slo_verdict& v : judged.verdicts) {
            add_verdict(all_digests.verdicts, v);
            add_bits(all_digests.bits, v);
        }
        for (std::size_t i = 0; i < parties; ++i) invalid[i] += judged.invalid[i];
        const bool again = seed % 8 == 0;
        c.must(!again || repeats_of(d, 1)[0].records() == all[0].records(), "it is not the same");
    } catch (const std::exception& e) {
        c.must(false, std::string("it ends with: ") + e.what());
    }
    return c.why;
}
/// The same over TLS. Its bytes are OpenSSL's, and so in no digest.
#ifdef LLMBENCH_WITH_TLS
std::string fault_over_tls(std::uint64_t seed) {
    drawn d = virtual_world::draw(seed);
    d.interrupted_after_s = 0;
    checked c;
    try {
        draw_tls_from(seed);
        const int version = seed % 3 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
        const repeat r = tls_repeat_of(d.what, d.served_by, of_repeat(d, 0), version);
        check_repeat(d, r, c);
    } catch (const std::exception& e) {
        c.must(false, std::string("it ends with: ") + e.what());
    }
    return c.why.empty() ? "" : "over TLS: " + c.why;
}
#else
std::string fault_over_tls(std::uint64_t) { return {}; }
#endif

bool fails(std::uint64_t seed, const std::string& why) {
    if (why.empty()) return false;
    const auto k = static_cast<unsigned long long>(seed);
    std::printf("seed %llu: %s\n  again: tests/simulated/run --seed %llu\n", k, why.c_str(), k);
    return true;
}

/// A few seeds and what they give, to be held against other compilers and machines.
bool is_kept(std::uint64_t seed) { return seed % 20 == 0 && seed <= 1000; }
int compared(const std::string& file, const std::string& now) {
    if (file.empty()) return 0;
    if (std::getenv("LLMBENCH_APPROVE")) {
        std::ofstream(file) << now;
        return 0;
    }
    std::ifstream in(file);
    const std::string kept{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (kept == now) return 0;
    std::size_t at = 0;
    while (at < kept.size() && at < now.size() && kept[at] == now[at]) ++at;
    at = at == 0 ? 0 : now.rfind('\n', at - 1) + 1;
    std::printf("%s has another: %s\n  LLMBENCH_APPROVE=1 writes it anew\n", file.c_str(),
                now.substr(at, now.find('\n', at) - at).c_str());
    return 1;
}

/// Each of them was met: what never happens cannot fail.
int unmet(const party_counts& invalid) {
    int n = 0;
    for (const party by : {party::client, party::server, party::way, party::plan}) {
        const long long times = invalid[static_cast<std::size_t>(by)];
        std::printf("invalid by the %s: %lld\n", name_of(by), times);
        n += times == 0;
    }
    return n;
}

int run_seeds(std::uint64_t from, std::uint64_t to, const std::string& golden) {
    int failed = 0;
    party_counts invalid{};
    digests all;
    std::string kept;
    for (std::uint64_t seed = from; seed <= to; ++seed) {
        digests own;
        failed += fails(seed, fault_of(seed, own, invalid));
        if (seed % 10 == 0 || from == to) failed += fails(seed, fault_over_tls(seed));
        all.records.add(static_cast<long long>(own.records.value()));
        all.verdicts.add(static_cast<long long>(own.verdicts.value()));
        all.bits.add(static_cast<long long>(own.bits.value()));
        if (is_kept(seed))
            kept += printed("seed %llu: records %s, verdicts %s\n",
                            static_cast<unsigned long long>(seed), own.records.text().c_str(),
                            own.verdicts.text().c_str());
    }
    std::printf("%llu seeds, %d failed; all records: %s, verdicts: %s, to the bit: %s\n",
                static_cast<unsigned long long>(to - from + 1), failed,
                all.records.text().c_str(), all.verdicts.text().c_str(), all.bits.text().c_str());
    const bool are_many = from == 1 && to >= 1000;
    if (are_many) failed += unmet(invalid) + compared(golden, kept);
    return failed == 0 ? 0 : 1;
}

int run_lives(std::uint64_t from, std::uint64_t to) {
    usual_life usual;
    usual.seen = lived({});
    checked c;
    check_whole(usual.seen, c);
    check_colour(usual.seen, c);
    check_code(usual.seen, {}, true, c);
    usual.records = lines_of(usual.seen, c);
    c.must(usual.records.size() == 96, "the undisturbed life has another number of records");
    int failed = !c.why.empty();
    if (failed > 0) std::printf("undisturbed: %s\n%s", c.why.c_str(), usual.seen.console.c_str());
    for (std::uint64_t number = from; c.why.empty() && number <= to; ++number) {
        const std::string why = fault_of_life(number, usual);
        if (why.empty()) continue;
        ++failed;
        const auto k = static_cast<unsigned long long>(number);
        std::printf("life %llu: %s\n  again: tests/simulated/run --life %llu\n", k, why.c_str(), k);
    }
    std::printf("%llu lives of %.3f s, %lld bytes and %lld files, %d failed\n",
                static_cast<unsigned long long>(to - from + 1),
                static_cast<double>(usual.seen.facts.ns) * 1e-9, usual.seen.facts.bytes,
                usual.seen.facts.opens, failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace

int seeds_main(int argc, char** argv) {
    std::map<std::string, std::uint64_t> asked;
    std::string golden;
    bool is_understood = argc % 2 == 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--golden") { golden = argv[i + 1]; continue; }
        char* end = nullptr;
        const std::uint64_t n = std::strtoull(argv[i + 1], &end, 10);
        is_understood = is_understood && !*end && n > 0 &&
                        (name == "--seeds" || name == "--lives" || name == "--seed" || name == "--life");
        asked[name] = n;
    }
    if (asked.contains("--seed") || asked.contains("--life"))
        is_understood = is_understood && asked.size() == 1;
    if (!is_understood) {
        std::fprintf(stderr,
                     "usage: %s [--seeds N] [--lives N] [--golden FILE] | --seed K | --life K\n", argv[0]);
        return 2;
    }
    if (asked.empty()) asked = {{"--seeds", 1000}, {"--lives", 80}};
    int code = 0;
    for (const auto& [name, n] : asked) {
        if (name == "--seed") report(n);
        if (name == "--seed" || name == "--life")
            code |= name == "--seed" ? run_seeds(n, n, golden) : run_lives(n, n);
        else code |= name == "--seeds" ? run_seeds(1, n, golden) : run_lives(1, n);
    }
    return code;
}

}  // namespace virtual_world
