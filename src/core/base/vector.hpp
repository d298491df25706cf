// the array of every type
#pragma once

#include "api/version.hpp"

#include <algorithm>  // equal, lexicographical_compare, max, rotate
#include <cstddef>  // ptrdiff_t, size_t
#include <cstring>  // memcpy
#include <initializer_list>
#include <iterator>  // reverse_iterator
#include <new>  // placement, operator delete
#include <stdexcept>  // length_error, out_of_range
#include <type_traits>  // is_trivially_copyable_v, is_trivially_destructible_v
#include <utility>  // exchange, forward, move, swap

namespace llmbench {
inline namespace v1 {
namespace detail {

#ifdef LLMBENCH_CHECK_BOUNDS  // set where sanitizers are
inline constexpr bool checks_bounds = true;
#else
inline constexpr bool checks_bounds = false;
#endif
inline void trap_if(bool is_beyond) {
    if (is_beyond) __builtin_trap();
}

/// Returns memory for `n` objects. Throws std::length_error if their size cannot be told.
inline void* memory_for(std::size_t n, std::size_t size) {
    if (n > static_cast<std::size_t>(-1) / 2 / size) throw std::length_error("vector");
    return ::operator new(n * size);
}

/// std::vector as far as this header uses it. Each type that std::vector holds brings a compiler
/// some fifty functions, this one twelve: without optimization the whole header compiles in two
/// thirds of the time.
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
    vector(std::initializer_list<T> items) : vector(items.begin(), items.end()) {}
    template <class It>
        requires requires(It i) { *i; ++i; }
    vector(It from, It to) : vector() { append(from, to); }
    vector(const vector& o) : vector(o.begin(), o.end()) {}
    vector(vector&& o) noexcept { swap(o); }
    vector& operator=(const vector& o) { return *this = vector(o); }
    vector& operator=(vector&& o) noexcept {
        vector old(std::move(*this));
        swap(o);
        return *this;
    }
    ~vector() {
        clear();
        ::operator delete(static_cast<void*>(begin_));
    }

    iterator begin() { return begin_; }
    iterator end() { return end_; }
    const_iterator begin() const { return begin_; }
    const_iterator end() const { return end_; }
    const_iterator cbegin() const { return begin_; }
    const_iterator cend() const { return end_; }
    std::reverse_iterator<iterator> rbegin() { return std::reverse_iterator(end_); }
    std::reverse_iterator<iterator> rend() { return std::reverse_iterator(begin_); }
    std::reverse_iterator<const_iterator> rbegin() const { return std::reverse_iterator(end()); }
    std::reverse_iterator<const_iterator> rend() const { return std::reverse_iterator(begin()); }

    std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
    std::size_t capacity() const { return static_cast<std::size_t>(room_ - begin_); }
    bool empty() const { return begin_ == end_; }
    T* data() { return begin_; }
    const T* data() const { return begin_; }
    T& operator[](std::size_t i) {
        if constexpr (checks_bounds) trap_if(i >= size());
        return begin_[i];
    }
    const T& operator[](std::size_t i) const {
        if constexpr (checks_bounds) trap_if(i >= size());
        return begin_[i];
    }
    const T& at(std::size_t i) const {
        if (i >= size()) throw std::out_of_range("vector");
        return begin_[i];
    }
    T& front() { return (*this)[0]; }
    const T& front() const { return (*this)[0]; }
    T& back() { return (*this)[size() - 1]; }
    const T& back() const { return (*this)[size() - 1]; }

    void reserve(std::size_t n) { if (n > capacity()) move_to_room_for(n); }
    void push_back(const T& item) { emplace_back(item); }
    void push_back(T&& item) { emplace_back(std::move(item)); }
    template <class... Args>
    T& emplace_back(Args&&... args) {
        if (end_ != room_) {
            ::new (static_cast<void*>(end_)) T(std::forward<Args>(args)...);
        } else {  // what it is made of may be in here
            T item(std::forward<Args>(args)...);
            grow_by(1);
            ::new (static_cast<void*>(end_)) T(std::move(item));
        }
        return *end_++;
    }
    void pop_back() { end_at(&back()); }
    void clear() { end_at(begin_); }
    void resize(std::size_t n) {
        if (n < size()) return end_at(begin_ + n);
        reserve(n);
        for (T* const to = begin_ + n; end_ != to; ++end_) ::new (static_cast<void*>(end_)) T();
    }
    void resize(std::size_t n, T value) {  // a copy, as it may be in here
        if (n < size()) return end_at(begin_ + n);
        reserve(n);
        while (size() < n) emplace_back(value);
    }
    void assign(std::size_t n, const T& value) { *this = vector(n, value); }
    template <class It>
        requires requires(It i) { *i; ++i; }
    void assign(It from, It to) { *this = vector(from, to); }
    template <class It>
    void append(It from, It to) {
        if constexpr (requires { to - from; }) grow_by(static_cast<std::size_t>(to - from));
        for (; from != to; ++from) emplace_back(*from);
    }
    iterator insert(const_iterator at, T item) {
        const std::ptrdiff_t i = at - begin_;
        emplace_back(std::move(item));
        return rotated(i, end_ - begin_ - 1);
    }
    template <class It>
        requires requires(It i) { *i; ++i; }
    iterator insert(const_iterator at, It from, It to) {
        const std::ptrdiff_t i = at - begin_, n = end_ - begin_;
        append(from, to);
        return rotated(i, n);
    }
    iterator insert(const_iterator at, std::initializer_list<T> items) {
        return insert(at, items.begin(), items.end());
    }
    iterator erase(const_iterator at) { return erase(at, at + 1); }
    iterator erase(const_iterator from, const_iterator to) {
        T* const first = begin_ + (from - begin_);
        T* end = first;
        for (T* kept = begin_ + (to - begin_); kept != end_; ++kept, ++end) *end = std::move(*kept);
        if (from != to) end_at(end);
        return first;
    }
    template <class F>
    friend std::size_t erase_if(vector& v, F&& f) {
        T* end = v.begin_;
        for (T& item : v) {
            if (f(item)) continue;
            if (end != &item) *end = std::move(item);
            ++end;
        }
        const std::size_t erased = static_cast<std::size_t>(v.end_ - end);
        v.end_at(end);
        return erased;
    }
    void swap(vector& o) noexcept {
        std::swap(begin_, o.begin_);
        std::swap(end_, o.end_);
        std::swap(room_, o.room_);
    }
    friend bool operator==(const vector& a, const vector& b) {
        return std::equal(a.begin_, a.end_, b.begin_, b.end_);
    }
    friend bool operator<(const vector& a, const vector& b) {
        return std::lexicographical_compare(a.begin_, a.end_, b.begin_, b.end_);
    }

private:
    iterator rotated(std::ptrdiff_t at, std::ptrdiff_t middle) {
        std::rotate(begin_ + at, begin_ + middle, end_);
        return begin_ + at;
    }
    void end_at(T* end) {
        if constexpr (std::is_trivially_destructible_v<T>) end_ = end;
        else while (end_ != end) (--end_)->~T();
    }
    void grow_by(std::size_t n) {
        if (n > capacity() - size()) move_to_room_for(std::max(2 * capacity(), size() + n));
    }
    [[gnu::noinline]] void move_to_room_for(std::size_t n) {
        T* const to = n > 0 ? static_cast<T*>(memory_for(n, sizeof(T))) : nullptr;
        T* const from = std::exchange(begin_, to);
        room_ = to + n;
        end_ = moved(from, std::exchange(end_, to), to);
        ::operator delete(static_cast<void*>(from));
    }
    /// To memory without objects. A move that throws would have to be undone, so it may not.
    static T* moved(T* from, T* const from_end, T* to) noexcept {
        if constexpr (std::is_trivially_copyable_v<T>) {
            if (from != from_end)
                std::memcpy(static_cast<void*>(to), from,
                            static_cast<std::size_t>(from_end - from) * sizeof(T));
            return to + (from_end - from);
        } else {
            for (; from != from_end; ++from, ++to) {
                ::new (static_cast<void*>(to)) T(std::move(*from));
                from->~T();
            }
            return to;
        }
    }

    T* begin_ = nullptr;
    T* end_ = nullptr;
    T* room_ = nullptr;  // the end of its memory
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
