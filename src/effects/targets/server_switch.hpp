// servers that have one GPU in turns, by an extension
#pragma once

#include "api/result.hpp"
#include "core/dialects/request_body.hpp"

#include <string>

namespace llmbench {
inline namespace v1 {
namespace detail {

class live_target;

/// The part of one server among those of its gate that have a GPU in turns. All throw
/// std::runtime_error if a server does not sleep or wake.
class server_switch {
public:
    virtual ~server_switch() = default;
    /// The others sleep: there is room for its server to start.
    virtual void make_room(double at_most_s) = 0;
    /// Its server is there, which outlives this; `is_new`: it has just been started.
    virtual void found(const live_target& server, bool is_new) = 0;
    /// Its server was ended.
    virtual void ended() = 0;
    /// The others sleep, its server wakes and answers a request like this. Returns a note on the
    /// first switch, else "". `v`: what is loaded next; a baseline if nothing is.
    virtual std::string begin_turn(run_variant v, const request_spec& like,
                                   double at_most_s) = 0;
    /// Its server was loaded. Returns why the load does not count, "" if it does.
    virtual std::string end_turn() = 0;
    /// Whether its server is to be started anew before its next load.
    virtual bool is_due() const = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
