// threads that throw nothing
#pragma once

#include "core/base/text.hpp"

#include <exception>  // exception
#include <stdexcept>  // runtime_error
#include <system_error>
#include <thread>
#include <utility>  // move

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Calls `work`, and `failed` with the text of an exception: one that leaves a thread or a
/// destructor would end the program.
template <class Work, class Failed>
void contained(Work&& work, Failed&& failed) noexcept {
    try {
        work();
    } catch (const std::exception& e) {
        failed(reason_in(e));
    } catch (...) {
        failed("something unknown was thrown");
    }
}

/// A thread of the client, beside the sending ones.
template <class Work, class Failed>
std::thread contained_thread(Work work, Failed failed) {
    try {
        return std::thread([work = std::move(work), failed = std::move(failed)]() mutable {
            contained(work, failed);
        });
    } catch (const std::system_error& e) {
        throw std::runtime_error(printed("client: a thread could not be started (%s): raise the "
                                         "limit on threads, ulimit -u", e.what()));
    }
}

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
