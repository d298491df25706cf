// text and lists
// <string> and <vector> would make every gate file two to three times as slow to compile, so the
// public structs hold the types of this section. Text and lists convert from and to the std types
// if those are included. What every gate calls is not inlined: its file compiles sooner.
#pragma once

#include "api/doctest.hpp"

#include <initializer_list>  // .slos = {...}

namespace llmbench {
inline namespace v1 {
namespace detail {
using size_type = decltype(sizeof 0);

template <class T>
concept integer = requires(T t) { static_cast<unsigned long long>(t); t % 2; };
template <class D>
concept duration_like = requires(const D& d) { d.count(); D::period::num; D::period::den; };
}  // namespace detail

/// The types of public structs, in a namespace of their own, so that `using namespace llmbench` and
/// `using namespace std` go together.
namespace types {

/// An owned, zero-terminated string.
class text {
public:
    text() = default;
    text(const char* s);
    text(const char* s, detail::size_type n);
    template <class S>
        requires requires(const S& s) { s.data(); s.size(); s.substr(0); }
    text(const S& s) : text(s.data(), s.size()) {}
    [[gnu::noinline]] text(const text& o) : text(o.c_str(), o.size_) {}
    [[gnu::noinline]] text(text&& o) noexcept : data_(o.data_), size_(o.size_) {
        o.data_ = nullptr;
        o.size_ = 0;
    }
    [[gnu::noinline]] text& operator=(const text& o) { text copy(o); swap(copy); return *this; }
    [[gnu::noinline]] text& operator=(text&& o) noexcept { swap(o); return *this; }
    [[gnu::noinline]] ~text() { delete[] data_; }

    const char* c_str() const { return data_ ? data_ : ""; }
    const char* data() const { return c_str(); }
    detail::size_type size() const { return size_; }
    bool empty() const { return size_ == 0; }

    template <class S>
        requires requires(const S& s) { typename S::traits_type; s.substr(0); }
    operator S() const { return S(c_str(), size_); }

    friend text operator+(const text& a, const text& b) { return join(a, b); }
    friend bool operator==(const text& a, const text& b) { return same(a, b); }
    template <class Stream>
        requires requires(Stream& o) { o.rdbuf(); }
    friend Stream& operator<<(Stream& o, const text& t) { o << t.c_str(); return o; }
#ifndef LLMBENCH_NO_DOCTEST
    friend doctest::String toString(const text& t) { return t.c_str(); }
#endif

private:
    static text join(const text& a, const text& b);
    static bool same(const text& a, const text& b);
    void swap(text& o) noexcept {
        char* d = data_; data_ = o.data_; o.data_ = d;
        const detail::size_type n = size_; size_ = o.size_; o.size_ = n;
    }
    char* data_ = nullptr;
    detail::size_type size_ = 0;
};

/// A growing array with value semantics.
template <class T>
class list {
public:
    using value_type = T;
    list() = default;
    list(std::initializer_list<T> items) : list(items.begin(), items.size()) {}
    template <class C>
        requires requires(const C& c) {
            typename C::allocator_type;
            c.begin();
            c.end();
            T(*c.begin());
        }
    list(const C& items) : list() { for (const auto& x : items) push_back(T(x)); }
    list(const list& o) : list(o.data_, o.size_) {}
    [[gnu::noinline]] list(list&& o) noexcept : data_(o.data_), size_(o.size_), room_(o.room_) {
        o.forget();
    }
    [[gnu::noinline]] list& operator=(const list& o) { list copy(o); swap(copy); return *this; }
    [[gnu::noinline]] list& operator=(list&& o) noexcept { swap(o); return *this; }
    [[gnu::noinline]] ~list() { delete[] data_; }

    [[gnu::noinline]] void push_back(const T& x) {
        T copy = x;  // x may be an element of this list, which growing moves
        if (size_ == room_) grow();
        data_[size_++] = static_cast<T&&>(copy);
    }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    const T* data() const { return data_; }
    detail::size_type size() const { return size_; }
    bool empty() const { return size_ == 0; }
    const T& operator[](detail::size_type i) const { return data_[i]; }
    const T& front() const { return data_[0]; }
    const T& back() const { return data_[size_ - 1]; }

private:
    [[gnu::noinline]] list(const T* from, detail::size_type n) : list() {
        if (n > 0) data_ = new T[n];
        size_ = room_ = n;
        for (detail::size_type i = 0; i < n; ++i) data_[i] = from[i];
    }
    void grow() {
        const detail::size_type room = room_ ? 2 * room_ : 4;
        T* bigger = new T[room];
        for (detail::size_type i = 0; i < size_; ++i) bigger[i] = static_cast<T&&>(data_[i]);
        delete[] data_;
        data_ = bigger;
        room_ = room;
    }
    void forget() { data_ = nullptr; size_ = room_ = 0; }
    void swap(list& o) noexcept {
        T* d = data_; data_ = o.data_; o.data_ = d;
        detail::size_type n = size_; size_ = o.size_; o.size_ = n;
        n = room_; room_ = o.room_; o.room_ = n;
    }
    T* data_ = nullptr;
    detail::size_type size_ = 0;
    detail::size_type room_ = 0;
};

/// A whole number that takes any integer type without narrowing or sign warnings.
class whole {
public:
    constexpr whole() = default;
    template <detail::integer I>
    constexpr whole(I n) : value_(static_cast<long long>(n)) {}
    constexpr operator long long() const { return value_; }

private:
    long long value_ = 0;
};

/// A value or nothing.
template <class T>
class maybe {
public:
    constexpr maybe() = default;
    constexpr maybe(T v) : value_(v), has_(true) {}
    constexpr explicit operator bool() const { return has_; }
    constexpr const T& operator*() const { return value_; }

private:
    T value_{};
    bool has_ = false;
};

}  // namespace types

namespace detail {
using types::list;
using types::maybe;
using types::text;
using types::whole;

/// An immutable, shared, typed box: a std::shared_ptr<const any> without <memory>.
class box {
    template <class T>
    static inline char type{};  // its address identifies T, also without RTTI
    struct holder {
        explicit holder(const char* t) : type_of_value(t) {}
        virtual ~holder() = default;
        const char* type_of_value;
        int refs = 1;
    };
    template <class T>
    struct holder_of : holder {
        T value;
        explicit holder_of(T&& v) : holder(&type<T>), value(static_cast<T&&>(v)) {}
    };

public:
    box() = default;
    template <class T>
    static box make(T v) {
        box b;
        b.held_ = new holder_of<T>(static_cast<T&&>(v));
        return b;
    }
    [[gnu::noinline]] box(const box& o) : held_(o.held_) {
        if (held_) __atomic_add_fetch(&held_->refs, 1, __ATOMIC_RELAXED);
    }
    box(box&& o) noexcept : held_(o.held_) { o.held_ = nullptr; }
    [[gnu::noinline]] box& operator=(box o) noexcept {
        holder* const h = held_; held_ = o.held_; o.held_ = h;
        return *this;
    }
    [[gnu::noinline]] ~box() {
        if (held_ && __atomic_sub_fetch(&held_->refs, 1, __ATOMIC_ACQ_REL) == 0) delete held_;
    }

    bool empty() const { return held_ == nullptr; }
    /// Returns the value, or null if the box holds another type or nothing.
    template <class T>
    const T* get() const {
        const bool is_it = held_ && held_->type_of_value == &type<T>;
        return is_it ? &static_cast<const holder_of<T>*>(held_)->value : nullptr;
    }

private:
    holder* held_ = nullptr;
};

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
