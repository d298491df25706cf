// the array of every type, and what is never copied
#pragma once

#include "api/version.hpp"

#include <algorithm>  // equal, lexicographical_compare, rotate
#include <cstddef>  // ptrdiff_t, size_t
#include <cstring>  // memcpy
#include <initializer_list>
#include <iterator>  // reverse_iterator
#include <new>  // placement, operator delete
#include <stdexcept>  // length_error, out_of_range
#include <type_traits>  // is_trivially_copyable_v and others

namespace llmbench {
inline namespace v1 {
namespace detail {

/// The base of classes whose objects stay one.
struct not_copied {
    not_copied() = default;
    not_copied(const not_copied&) = delete;
    not_copied& operator=(const not_copied&) = delete;
};

#ifdef LLMBENCH_CHECK_BOUNDS  // set where sanitizers are
inline constexpr bool checks_bounds = true;
#else
inline constexpr bool checks_bounds = false;
#endif

/// Returns memory for `n` objects. Throws std::length_error if their size cannot be told.
[[gnu::noinline]] inline void* memory_for(std::size_t n, std::size_t size) {
    if (n > static_cast<std::size_t>(-1) / 2 / size) throw std::length_error("vector");
    return ::operator new(n * size);
}

/// std::vector as far as this header uses it. Each type that std::vector holds brings a compiler
/// some ninety functions, this one twenty, most of them called and not inlined. Its items are moved
/// without exceptions. Assigning {} returns its memory.
template <class T>
class vector {
public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using reference = T&;
    using const_reference = const T&;
    using iterator = T*;
    using const_iterator = const T*;
    using allocator_type = void;  // a container, for types::list

    vector() = default;
    explicit vector(std::size_t n) : vector() { resize(n); }
    vector(std::size_t n, const T& value) : vector() { resize(n, value); }
    vector(std::initializer_list<T> items) : vector() { append(items.begin(), items.end()); }
    template <class It>
        requires requires(It i) { *i; ++i; }
    vector(It from, It to) : vector() { append(from, to); }
    [[gnu::noinline]] vector(const vector& o) : vector() { append(o.begin(), o.end()); }
    [[gnu::noinline]] vector(vector&& o) noexcept
        : items_(o.items_), size_(o.size_), room_(o.room_) {
        o.forget();
    }
    vector& operator=(const vector& o) { return *this = vector(o); }
    [[gnu::noinline]] vector& operator=(vector&& o) noexcept {
        const vector old(static_cast<vector&&>(*this));
        items_ = o.items_;
        size_ = o.size_;
        room_ = o.room_;
        o.forget();
        return *this;
    }
    [[gnu::noinline]] ~vector() {
        end_at(0);
        ::operator delete(static_cast<void*>(items_));
    }

    iterator begin() { return items_; }
    iterator end() { return items_ + size_; }
    const_iterator begin() const { return items_; }
    const_iterator end() const { return items_ + size_; }
    std::reverse_iterator<iterator> rbegin() { return std::reverse_iterator(end()); }
    std::reverse_iterator<iterator> rend() { return std::reverse_iterator(begin()); }
    std::reverse_iterator<const_iterator> rbegin() const { return std::reverse_iterator(end()); }
    std::reverse_iterator<const_iterator> rend() const { return std::reverse_iterator(begin()); }

    std::size_t size() const { return size_; }
    std::size_t capacity() const { return room_; }
    bool empty() const { return size_ == 0; }
    T* data() { return items_; }
    const T* data() const { return items_; }
    T& operator[](std::size_t i) {
        if (checks_bounds && i >= size_) __builtin_trap();
        return items_[i];
    }
    const T& operator[](std::size_t i) const {
        if (checks_bounds && i >= size_) __builtin_trap();
        return items_[i];
    }
    const T& at(std::size_t i) const {
        if (i >= size_) throw std::out_of_range("vector");
        return items_[i];
    }
    T& front() { return (*this)[0]; }
    const T& front() const { return (*this)[0]; }
    T& back() { return (*this)[size_ - 1]; }
    const T& back() const { return (*this)[size_ - 1]; }

    void reserve(std::size_t n) { if (n > room_) move_to_room_for(n); }
    void push_back(const T& item) { emplace_back(item); }
    void push_back(T&& item) { emplace_back(static_cast<T&&>(item)); }
    template <class... Args>
    [[gnu::noinline]] T& emplace_back(Args&&... args) {
        if (size_ < room_) {
            ::new (static_cast<void*>(end())) T(static_cast<Args&&>(args)...);
        } else {  // what it is made of may be in here
            T item(static_cast<Args&&>(args)...);
            grow_by(1);
            ::new (static_cast<void*>(end())) T(static_cast<T&&>(item));
        }
        return items_[size_++];
    }
    template <class... Args>
        requires std::is_trivially_copyable_v<T>  // cheap enough to be inlined
    T& emplace_back(Args&&... args) {
        const T item(static_cast<Args&&>(args)...);
        if (size_ == room_) grow_by(1);
        ::new (static_cast<void*>(end())) T(item);
        return items_[size_++];
    }
    void pop_back() {
        if (checks_bounds && size_ == 0) __builtin_trap();
        end_at(size_ - 1);
    }
    void clear() { end_at(0); }
    [[gnu::noinline]] void resize(std::size_t n) {
        if (n < size_) return end_at(n);
        grow_by(n - size_);
        for (; size_ < n; ++size_) ::new (static_cast<void*>(items_ + size_)) T();
    }
    [[gnu::noinline]] void resize(std::size_t n, T value) {  // a copy, as it may be in here
        if (n < size_) return end_at(n);
        grow_by(n - size_);
        while (size_ < n) emplace_back(value);
    }
    void assign(std::size_t n, const T& value) { *this = vector(n, value); }
    template <class It>
        requires requires(It i) { *i; ++i; }
    void assign(It from, It to) { *this = vector(from, to); }
    template <class It>  // not of its own items
    [[gnu::noinline]] void append(It from, It to) {
        if constexpr (requires { to - from; }) grow_by(static_cast<std::size_t>(to - from));
        if constexpr (std::is_trivially_copyable_v<T> && std::is_convertible_v<It, const T*>) {
            const auto n = static_cast<std::size_t>(to - from);
            if (n > 0) std::memcpy(static_cast<void*>(end()), from, n * sizeof(T));
            size_ += n;
        } else {
            for (; from != to; ++from) emplace_back(*from);
        }
    }
    iterator insert(const_iterator at, T item) {
        const std::ptrdiff_t i = at - items_;
        if (checks_bounds && (at < items_ || at > end())) __builtin_trap();
        emplace_back(static_cast<T&&>(item));
        return rotated(i, size_ - 1);
    }
    template <class It>
        requires requires(It i) { *i; ++i; }
    iterator insert(const_iterator at, It from, It to) {
        const std::ptrdiff_t i = at - items_;
        const std::size_t n = size_;
        append(from, to);
        return rotated(i, n);
    }
    iterator insert(const_iterator at, std::initializer_list<T> items) {
        return insert(at, items.begin(), items.end());
    }
    iterator erase(const_iterator at) { return erase(at, at + 1); }
    iterator erase(const_iterator from, const_iterator to) {
        if (checks_bounds && (from < items_ || from > to || to > end())) __builtin_trap();
        T* const first = items_ + (from - items_);
        T* kept = first;
        for (T* item = items_ + (to - items_); item != end(); ++item, ++kept)
            if (item != kept) *kept = static_cast<T&&>(*item);
        end_at(static_cast<std::size_t>(kept - items_));
        return first;
    }
    template <class F>
    friend std::size_t erase_if(vector& v, F&& f) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < v.size_; ++i) {
            if (f(v.items_[i])) continue;
            if (kept != i) v.items_[kept] = static_cast<T&&>(v.items_[i]);
            ++kept;
        }
        const std::size_t erased = v.size_ - kept;
        v.end_at(kept);
        return erased;
    }
    friend bool operator==(const vector& a, const vector& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }
    friend bool operator<(const vector& a, const vector& b) {
        return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    void forget() {
        items_ = nullptr;
        size_ = room_ = 0;
    }
    iterator rotated(std::ptrdiff_t at, std::size_t middle) {
        std::rotate(items_ + at, items_ + middle, end());
        return items_ + at;
    }
    void end_at(std::size_t n) {
        if constexpr (std::is_trivially_destructible_v<T>) size_ = n;
        else while (size_ > n) items_[--size_].~T();
    }
    [[gnu::noinline]] void grow_by(std::size_t n) {
        const std::size_t wanted = size_ + n;
        if (wanted > room_) move_to_room_for(wanted < 2 * room_ ? 2 * room_ : wanted);
    }
    [[gnu::noinline]] void move_to_room_for(std::size_t n) {
        static_assert(std::is_nothrow_move_constructible_v<T>, "half a move cannot be undone");
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        T* const to = static_cast<T*>(memory_for(n, sizeof(T)));
        if constexpr (std::is_trivially_copyable_v<T>) {
            if (size_ > 0) std::memcpy(static_cast<void*>(to), items_, size_ * sizeof(T));
        } else {
            for (std::size_t i = 0; i < size_; ++i) {
                ::new (static_cast<void*>(to + i)) T(static_cast<T&&>(items_[i]));
                items_[i].~T();
            }
        }
        ::operator delete(static_cast<void*>(items_));
        items_ = to;
        room_ = n;
    }

    T* items_ = nullptr;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
