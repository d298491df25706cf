// fields as JSON
#pragma once

#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // clamp
#include <cmath>  // copysign, fabs, isinf, isnan
#include <cstddef>  // size_t
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>
#include <utility>  // move

namespace llmbench {
inline namespace v1 {
namespace detail {

/// Writes fields into the open object.
class field_writer : public field_visitor {
public:
    explicit field_writer(json_writer& j) : j_(j) { assigns_ = false; }
    void visit_flag(const field& f, bool& b) override {
        j_.key(f.name).raw(b ? "true" : "false");
    }
    void visit_number(const field& f, double& n, const number_range& of) override {
        j_.key(f.name).value(finite(n, of));
    }
    void exact(const field& f, long long& n, const whole_range& of) override {
        j_.key(f.name);
        if (n == of.null) j_.raw("null");
        else j_.value(n);
    }
    void time_after(const field& f, long long& ns, long long from_ns) override {
        j_.key(f.name).value(ns - from_ns);
    }
    void times_after(const field& f, vector<long long>& ns, long long from_ns,
                     const time_groups& g) override {
        std::string line;
        for (std::size_t i = 0; i < ns.size(); ++i) {
            if (i > 0) line += ',';
            line += std::to_string(i % g.size < g.times ? ns[i] - from_ns : ns[i]);
        }
        j_.key(f.name).raw("[" + line + "]");
    }
    void numbers(const field& f, vector<double>& all, const number_range& of, layout on) override {
        j_.key(f.name);
        std::string line;
        if (on == layout::lines) j_.open('[');
        for (const double n : all) {
            if (on == layout::lines) j_.value(finite(n, of));
            else line += (line.empty() ? "" : ",") + json_number(finite(n, of));
        }
        if (on == layout::lines) j_.close();
        else j_.raw("[" + line + "]");
    }
    void visit_texts(const field& f, vector<std::string>& all) override {
        j_.key(f.name).open('[');
        for (const std::string& t : all) j_.value(std::string_view(t));
        j_.close();
    }
    bool begin(const field& f) override {
        j_.key(f.name).open('{');
        return true;
    }
    void end() override { j_.close(); }

protected:
    bool visit_text(const field& f, std::string_view t, std::string&) override {
        j_.key(f.name).value(t);
        return false;
    }
    bool visit_text_or_null(const field& f, std::string_view t, std::string& to) override {
        if (!t.empty()) return visit_text(f, t, to);
        j_.key(f.name).raw("null");
        return false;
    }
    void visit_whole(const field& f, long long& n, const whole_range& of) override {
        if (n != of.null)  // a copy
            n = std::clamp(n, static_cast<long long>(of.least), static_cast<long long>(of.most));
        exact(f, n, of);
    }
    void visit_choice(const field& f, int& k, int, const char* (*name)(int)) override {
        j_.key(f.name).value(std::string_view(name(k)));
    }
    std::size_t begin_list(const field& f, std::size_t n) override {
        j_.key(f.name).open('[');
        return n;
    }
    void begin_element(std::size_t) override { j_.open('{'); }
    void end_list() override { j_.close(); }

private:
    /// A number of a server may be any: one that no reader takes would lose the whole file.
    static double finite(double n, const number_range& of) {
        if (std::isinf(n)) return of.with_infinity ? std::copysign(largest_number, n) : n;
        return std::isnan(n) ? n : std::clamp(n, of.least, of.most);
    }
    json_writer& j_;
};

/// field_writer assigns nothing, so the const cast is safe.
template <class T, class... More>
void write_fields(json_writer& j, const T& of, const More&... more) {
    field_writer w(j);
    fields_of(w, const_cast<T&>(of), const_cast<More&>(more)...);
}

/// Fields may be missing, as in older versions; or all are there that always are; or those stand
/// in the order in which they are written, too, so that none is searched.
enum class reads : unsigned char { any, whole, in_order };

/// Reads fields of an object. Throws std::invalid_argument with the field, its value and what is
/// allowed.
class field_reader : public field_visitor {
public:
    explicit field_reader(const stored_object& of, reads how = reads::any)
        : how_(how), next_(&of.value() + 1), in_{of} {}
    /// Once all fields of a flat object are read: each member was one, so none has a name twice.
    bool has_read_all() const { return read_ == items_of(at().value()).size(); }

    void visit_flag(const field& f, bool& b) override {
        const json_view* v = present(f);
        if (v && v->is != json_view::kind::boolean) at().refuse(f.name, "true or false is allowed");
        b = v && is_true(*v);
    }
    void visit_number(const field& f, double& n, const number_range& of) override {
        const json_view* v = present(f);
        n = v ? meant(at().number_of(*v, f.name, of.least, of.most), of) : of.otherwise;
    }
    void exact(const field& f, long long& n, const whole_range& of) override {
        const json_view* v = known(f);
        if (!v) return;
        const double about = is_null(*v) ? 0 : at().whole_of<double>(*v, f.name, 0, of.most);
        const auto exactly = parsed_number<long long>(v->text);
        if (about > max_count && !exactly)
            at().refuse(f.name, "a whole number in plain digits is allowed");
        n = about > max_count ? *exactly : static_cast<long long>(about);
    }
    void time_after(const field& f, long long& ns, long long from_ns) override {
        ns = from_ns + at().whole(f.name, -max_count, max_count, 0ll);
    }
    void times_after(const field& f, vector<long long>& ns, long long from_ns,
                     const time_groups& g) override {
        ns.clear();
        at().numbers(f.name, -max_count, max_count, [&](std::size_t i, double t) {
            ns.push_back((i % g.size < g.times ? from_ns : 0) +
                         (std::isnan(t) ? 0 : static_cast<long long>(t)));
        });
    }
    void numbers(const field& f, vector<double>& all, const number_range& of, layout) override {
        all.clear();
        at().numbers(f.name, of.least, of.most, [&](std::size_t, double n) {
            all.push_back(std::isnan(n) ? of.otherwise : meant(n, of));
        });
    }
    void visit_texts(const field& f, vector<std::string>& all) override {
        all.clear();
        for (const json_view& t : array_member(at().value(), f.name))
            all.emplace_back(string_in(&t));
    }
    void misfit(const char* name, const char* allowed) override { at().refuse(name, allowed); }
    bool has(const char* name, bool) override {
        const json_view* v = found(name);
        return v && !is_null(*v);
    }
    bool begin(const field& f) override {
        const bool there = present(f) != nullptr;
        if (there) in_.push_back(at().at(f.name));
        return there;
    }
    void end() override {
        next_ = at().value().end();
        in_.pop_back();
    }
    vector<std::string> names(const vector<std::string>&) override {
        vector<std::string> all;
        const auto counting = members_of(at().value());
        if (counting.empty()) return all;
        for (const json_view& m : items_of(at().value()))  // in the order of the file
            if (counting.at(m.name) == &m) all.emplace_back(m.name);
        return all;
    }

protected:
    bool visit_text(const field& f, std::string_view, std::string& to) override {
        const json_view* v = present(f);
        if (v && !v->is_string()) at().refuse(f.name, "a text is allowed");
        if (v) to = v->text;
        return v != nullptr;
    }
    void visit_whole(const field& f, long long& n, const whole_range& of) override {
        const json_view* v = known(f);
        if (v && !is_null(*v))
            n = at().whole_of<long long>(*v, f.name, of.least, of.most);
        else if (v && of.null != whole_range::no_null) n = of.null;
    }
    void visit_choice(const field& f, int& k, int count, const char* (*name)(int)) override {
        const json_view* v = present(f);
        if (!v) return;
        for (int i = 0; v->is_string() && i < count; ++i)
            if (v->text == name(i)) { k = i; return; }
        std::string allowed;
        for (int i = 0; i < count; ++i) allowed += (i == 0 ? "" : ", ") + std::string(name(i));
        at().refuse(f.name, "one of " + allowed + " is allowed");
    }
    std::size_t begin_list(const field& f, std::size_t) override {
        lists_.push_back(at().each(f.name));
        return lists_.back().size();
    }
    void begin_element(std::size_t i) override { in_.push_back(lists_.back()[i]); }
    void end_list() override { lists_.pop_back(); }

private:
    const stored_object& at() const { return in_.back(); }
    const json_view* found(std::string_view name) const {
        const json_view& of = at().value();
        const bool is_next = how_ == reads::in_order && next_ != of.end() && next_->name == name;
        return is_next ? next_ : member(of, name);
    }
    /// The value, possibly null, or nullptr if missing.
    const json_view* known(const field& f) {
        const json_view* v = found(f.name);
        if (!v && how_ != reads::any && f.is_there == presence::always) at().refuse_without(f.name);
        if (v) next_ = v->end();
        read_ += v != nullptr;
        return v;
    }
    /// The value, or nullptr if missing or null.
    const json_view* present(const field& f) {
        const json_view* v = known(f);
        return v && !is_null(*v) ? v : nullptr;
    }
    static double meant(double n, const number_range& of) {
        return of.with_infinity && std::fabs(n) == largest_number ? std::copysign(infinity, n) : n;
    }

    const reads how_;
    const json_view* next_;
    int read_ = 0;
    vector<stored_object> in_;
    vector<vector<stored_object>> lists_{};
};

template <class T, class... More>
void read_fields(const stored_object& from, T& to, More&... more) {
    field_reader r(from);
    fields_of(r, to, more...);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
