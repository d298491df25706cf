// the array of every type, and what is never copied
#pragma once

#include "api/version.hpp"

#include <algorithm>  // equal, lexicographical_compare, rotate
#include <cstddef>  // ptrdiff_t, size_t
#include <cstring>  // memcpy
#include <initializer_list>
#include <iterator>  // reverse_iterator
#include <new>  // placement, operator new and delete
#include <stdexcept>  // length_error, out_of_range
#include <type_traits>  // is_trivially_copyable_v
#include <utility>  // swap

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

/// The memory of a vector, whatever its items are: compiled once.
class vector_memory {
public:
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return room_; }
    bool empty() const { return size_ == 0; }

protected:
    /// Moves `n` items to other memory, and ends them where they were.
    using mover = void (*)(void* to, void* from, std::size_t n);

    vector_memory() = default;
    [[gnu::noinline]] vector_memory(vector_memory&& o) noexcept
        : at_(o.at_), size_(o.size_), room_(o.room_) {
        o.at_ = nullptr;
        o.size_ = o.room_ = 0;
    }
    [[gnu::noinline]] void swap(vector_memory& o) noexcept {
        std::swap(at_, o.at_);
        std::swap(size_, o.size_);
        std::swap(room_, o.room_);
    }
    /// Makes room for `n` items of a size. Without a `move` they are moved as bytes. Throws
    /// std::length_error if their size cannot be told.
    [[gnu::noinline]] void make_room(std::size_t n, std::size_t size, mover move) {
        if (n <= room_) return;
        if (n > static_cast<std::size_t>(-1) / 2 / size) throw std::length_error("vector");
        void* const to = ::operator new(n * size);
        if (move) move(to, at_, size_);
        else if (size_ > 0) std::memcpy(to, at_, size_ * size);
        ::operator delete(at_);
        at_ = to;
        room_ = n;
    }
    [[gnu::noinline]] void grow_by(std::size_t n, std::size_t size, mover move) {
        const std::size_t wanted = size_ + n;
        if (wanted > room_) make_room(wanted < 2 * room_ ? 2 * room_ : wanted, size, move);
    }
    [[gnu::noinline]] void append_bytes(const void* from, std::size_t n, std::size_t size) {
        grow_by(n, size, nullptr);
        if (n > 0) std::memcpy(static_cast<char*>(at_) + size_ * size, from, n * size);
        size_ += n;
    }

    void* at_ = nullptr;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

/// std::vector as far as this header uses it. Each type that std::vector holds brings a compiler
/// some ninety functions, this one twenty, most of them called and not inlined. Its items are moved
/// without exceptions. Assigning {} returns its memory.
template <class T>
class vector : public vector_memory {
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
    vector(vector&&) noexcept = default;
    vector& operator=(const vector& o) { return *this = vector(o); }
    [[gnu::noinline]] vector& operator=(vector&& o) noexcept {
        vector here(static_cast<vector&&>(o));
        swap(here);
        return *this;
    }
    ~vector() {
        if constexpr (are_bytes()) ::operator delete(at_);
        else end_all();
    }

    iterator begin() { return data(); }
    iterator end() { return data() + size_; }
    const_iterator begin() const { return data(); }
    const_iterator end() const { return data() + size_; }
    std::reverse_iterator<iterator> rbegin() { return std::reverse_iterator(end()); }
    std::reverse_iterator<iterator> rend() { return std::reverse_iterator(begin()); }
    std::reverse_iterator<const_iterator> rbegin() const { return std::reverse_iterator(end()); }
    std::reverse_iterator<const_iterator> rend() const { return std::reverse_iterator(begin()); }

    T* data() { return static_cast<T*>(at_); }
    const T* data() const { return static_cast<const T*>(at_); }
    T& operator[](std::size_t i) {
        if (checks_bounds && i >= size_) __builtin_trap();
        return data()[i];
    }
    const T& operator[](std::size_t i) const {
        if (checks_bounds && i >= size_) __builtin_trap();
        return data()[i];
    }
    const T& at(std::size_t i) const {
        if (i >= size_) throw std::out_of_range("vector");
        return data()[i];
    }
    T& front() { return (*this)[0]; }
    const T& front() const { return (*this)[0]; }
    T& back() { return (*this)[size_ - 1]; }
    const T& back() const { return (*this)[size_ - 1]; }

    void reserve(std::size_t n) { make_room(n, sizeof(T), how_moved()); }
    void push_back(const T& item) { emplace_back(item); }
    void push_back(T&& item) { emplace_back(static_cast<T&&>(item)); }
    template <class... Args>
    [[gnu::noinline]] T& emplace_back(Args&&... args) {
        T item(static_cast<Args&&>(args)...);  // what it is made of may be in here
        grow_by(1);
        ::new (static_cast<void*>(end())) T(static_cast<T&&>(item));
        return data()[size_++];
    }
    template <class... Args>
        requires std::is_trivially_copyable_v<T>  // cheap enough to be inlined
    T& emplace_back(Args&&... args) {
        const T item(static_cast<Args&&>(args)...);
        if (size_ == room_) grow_by(1);
        ::new (static_cast<void*>(end())) T(item);
        return data()[size_++];
    }
    void pop_back() {
        if (checks_bounds && size_ == 0) __builtin_trap();
        end_at(size_ - 1);
    }
    void clear() { end_at(0); }
    [[gnu::noinline]] void resize(std::size_t n) {
        if (n < size_) return end_at(n);
        grow_by(n - size_);
        for (; size_ < n; ++size_) ::new (static_cast<void*>(end())) T();
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
    void append(It from, It to) {
        if constexpr (are_bytes() && requires(const T* items) { items = from; })
            append_bytes(from, static_cast<std::size_t>(to - from), sizeof(T));
        else append_each(from, to);
    }
    iterator insert(const_iterator at, T item) {
        const std::ptrdiff_t i = at - begin();
        if (checks_bounds && (at < begin() || at > end())) __builtin_trap();
        emplace_back(static_cast<T&&>(item));
        return rotated(i, size_ - 1);
    }
    template <class It>
        requires requires(It i) { *i; ++i; }
    iterator insert(const_iterator at, It from, It to) {
        const std::ptrdiff_t i = at - begin();
        const std::size_t n = size_;
        append(from, to);
        return rotated(i, n);
    }
    iterator insert(const_iterator at, std::initializer_list<T> items) {
        return insert(at, items.begin(), items.end());
    }
    iterator erase(const_iterator at) { return erase(at, at + 1); }
    iterator erase(const_iterator from, const_iterator to) {
        if (checks_bounds && (from < begin() || from > to || to > end())) __builtin_trap();
        T* const first = begin() + (from - begin());
        T* kept = first;
        for (T* item = begin() + (to - begin()); item != end(); ++item, ++kept)
            if (item != kept) *kept = static_cast<T&&>(*item);
        end_at(static_cast<std::size_t>(kept - begin()));
        return first;
    }
    template <class F>
    friend std::size_t erase_if(vector& v, F&& f) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < v.size_; ++i) {
            if (f(v.data()[i])) continue;
            if (kept != i) v.data()[kept] = static_cast<T&&>(v.data()[i]);
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
    static constexpr bool are_bytes() { return std::is_trivially_copyable_v<T>; }
    iterator rotated(std::ptrdiff_t at, std::size_t middle) {
        std::rotate(begin() + at, begin() + middle, end());
        return begin() + at;
    }
    template <class It>
    [[gnu::noinline]] void append_each(It from, It to) {
        if constexpr (requires { to - from; }) grow_by(static_cast<std::size_t>(to - from));
        for (; from != to; ++from) emplace_back(*from);
    }
    void end_at(std::size_t n) {
        if constexpr (are_bytes()) size_ = n;
        else while (size_ > n) data()[--size_].~T();
    }
    [[gnu::noinline]] void end_all() {
        end_at(0);
        ::operator delete(at_);
    }
    static void move_items(void* to, void* from, std::size_t n) {
        T *at = static_cast<T*>(from), *const end = at + n;
        for (T* into = static_cast<T*>(to); at != end; ++at, ++into) {
            static_assert(noexcept(::new (static_cast<void*>(into)) T(static_cast<T&&>(*at))),
                          "half a move cannot be undone");
            ::new (static_cast<void*>(into)) T(static_cast<T&&>(*at));
            at->~T();
        }
    }
    static constexpr mover how_moved() {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        if constexpr (are_bytes()) return nullptr;
        else return move_items;
    }
    void grow_by(std::size_t n) { vector_memory::grow_by(n, sizeof(T), how_moved()); }
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
