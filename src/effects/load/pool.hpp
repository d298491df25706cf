// the connections of one client thread
#pragma once

#include "core/base/vector.hpp"
#include "effects/load/client_io.hpp"
#include "effects/load/connection.hpp"

#include <memory>  // unique_ptr, make_unique
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// All connections of one thread, each in one of four lists: busy, idle, opening, closed. Closed
/// ones stay until drop_retired(), because one of them may be the caller.
class connection_pool : not_copied {
public:
    connection_pool(client_io& io, request_sink& sink) : io_(io), sink_(sink) {}

    void open_ahead() { made_in(opening_).open_ahead(); }
    /// Returns a connection for a request: an idle one, else one that is opening, else a new one.
    /// `conversation`: only that one's own, or one that has none.
    connection& take(std::size_t conversation = connection::nobody) {
        connection& c = taken(conversation);
        c.conversation = conversation;
        return c;
    }
    void set_idle(connection& c) { move(c, idle_); }
    void retire(connection& c) { move(c, retired_); }
    void drop_retired() { retired_.clear(); }

    std::size_t busy() const { return busy_.size(); }
    std::size_t idle() const { return idle_.size(); }
    std::size_t opening() const { return opening_.size(); }
    std::size_t size() const { return busy_.size() + idle_.size() + opening_.size(); }
    /// `f` may retire its argument: the last one, already visited, takes its place.
    template <class F>
    void for_each_busy(F&& f) { from_the_back(busy_, f); }
    template <class F>
    void for_each_opening(F&& f) { from_the_back(opening_, f); }
    void close_all() {
        for (auto* list : {&busy_, &idle_, &opening_})
            for (const auto& c : *list) c->close();
    }

private:
    using connections = vector<std::unique_ptr<connection>>;

    connection& taken(std::size_t conversation) {
        for (const std::size_t of : {conversation, connection::nobody})
            for (std::size_t i = idle_.size(); i-- > 0;) {
                connection& c = *idle_[i];
                if (c.conversation != of) continue;
                const bool is_usable = c.is_usable();
                if (!is_usable) c.close();
                move(c, is_usable ? busy_ : retired_);
                if (is_usable) return c;
            }
        if (opening_.empty()) return made_in(busy_);
        connection& c = *opening_.back();
        move(c, busy_);
        return c;
    }
    template <class F>
    static void from_the_back(const connections& list, F&& f) {
        for (std::size_t i = list.size(); i-- > 0;) f(*list[i]);
    }
    connection& made_in(connections& list) {
        return put(std::make_unique<connection>(io_, sink_), list);
    }
    static void move(connection& c, connections& to) {
        connections& from = *c.list;
        std::unique_ptr<connection> p = std::move(from[c.slot]);
        if (c.slot + 1 < from.size()) {
            from[c.slot] = std::move(from.back());
            from[c.slot]->slot = c.slot;
        }
        from.pop_back();
        put(std::move(p), to);
    }
    static connection& put(std::unique_ptr<connection> p, connections& to) {
        p->list = &to;
        p->slot = to.size();
        to.push_back(std::move(p));
        return *to.back();
    }

    client_io& io_;
    request_sink& sink_;
    connections busy_{}, idle_{}, opening_{}, retired_{};
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
