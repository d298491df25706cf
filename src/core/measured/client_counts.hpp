// what the client counts of its connections and reads
#pragma once

#include <string_view>

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The prefix of errors where the client lacked a resource.
inline constexpr std::string_view client_lacks = "client: ";
/// A server may close a connection that was idle this long at any moment, even during a send.
/// Servers keep connections for a few seconds, and users think as long.
inline constexpr long long tires_after_ns = 1'000'000'000;

/// Whether at most one read in a hundred lacks a kernel stamp.
inline bool is_mostly_stamped(long long stamped_reads, long long reads) {
    return stamped_reads > 0 && (reads - stamped_reads) * 100 <= reads;
}

/// What a client counts: one thread, or all of a repeat.
struct client_counts {
    long long connections_opened = 0, content_events = 0, coalesced_events = 0;
    long long connection_resets = 0;  // connections closed by the server after one answer
    long long reads = 0, stamped_reads = 0;  // with bytes; of these, with kernel stamps
    long long disturbed_requests = 0;  // while a thread without stamps lost over 20 ms

    void add(const client_counts& o) {
        connections_opened += o.connections_opened;
        content_events += o.content_events;
        coalesced_events += o.coalesced_events;
        connection_resets += o.connection_resets;
        reads += o.reads;
        stamped_reads += o.stamped_reads;
        disturbed_requests += o.disturbed_requests;
    }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
