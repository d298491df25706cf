// shared repeats
#pragma once

#include "core/measured/repeat.hpp"

#include <cstddef>  // size_t, ptrdiff_t
#include <initializer_list>
#include <iterator>  // forward_iterator_tag
#include <memory>  // shared_ptr, make_shared
#include <utility>  // move
#include <vector>

namespace llmbench {
inline namespace v0 {
namespace detail {

/// Repeats in order. They are constant once listed, so that copies and parts of a list share them
/// across threads.
class repeat_list {
public:
    using shared_repeat = std::shared_ptr<const repeat_data>;

    class iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = const repeat_data;
        using difference_type = std::ptrdiff_t;
        using pointer = const repeat_data*;
        using reference = const repeat_data&;

        iterator() = default;
        explicit iterator(const shared_repeat* at) : at_(at) {}
        reference operator*() const { return **at_; }
        iterator& operator++() { ++at_; return *this; }
        iterator operator++(int) { return iterator(at_++); }
        bool operator==(const iterator&) const = default;

    private:
        const shared_repeat* at_ = nullptr;
    };

    repeat_list() = default;
    repeat_list(std::vector<repeat_data> all) {
        for (repeat_data& d : all) push_back(std::move(d));
    }
    repeat_list(std::initializer_list<repeat_data> all)
        : repeat_list(std::vector<repeat_data>(all)) {}

    std::size_t size() const { return all_.size(); }
    bool empty() const { return all_.empty(); }
    const repeat_data& operator[](std::size_t i) const { return *all_[i]; }
    const repeat_data& front() const { return *all_.front(); }
    const repeat_data& back() const { return *all_.back(); }
    iterator begin() const { return iterator(all_.data()); }
    iterator end() const { return iterator(all_.data() + all_.size()); }

    const shared_repeat& shared(std::size_t i) const { return all_[i]; }
    /// Returns the repeats that satisfy `f`.
    template <class F>
    repeat_list those(F&& f) const {
        repeat_list part;
        for (const shared_repeat& d : all_)
            if (f(*d)) part.push_back(d);
        return part;
    }

    void push_back(repeat_data d) {
        all_.push_back(std::make_shared<const repeat_data>(std::move(d)));
    }
    void push_back(shared_repeat d) { all_.push_back(std::move(d)); }
    void pop_back() { all_.pop_back(); }
    void erase(std::size_t i) { all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i)); }
    void move_last_to(std::size_t i) {
        shared_repeat last = std::move(all_.back());
        all_.pop_back();
        all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(i), std::move(last));
    }
    /// Replaces a repeat by a copy that `f` has changed.
    template <class F>
    void change(std::size_t i, F&& f) {
        repeat_data d = *all_[i];
        f(d);
        all_[i] = std::make_shared<const repeat_data>(std::move(d));
    }

    template <class F>
    void change_last(F&& f) { change(size() - 1, f); }

private:
    std::vector<shared_repeat> all_{};
};

}  // namespace detail
}  // inline namespace v0
}  // namespace llmbench
