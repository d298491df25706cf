// fields as JSON
#pragma once

#include "core/base/vector.hpp"
#include "core/base/fields.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"

#include <algorithm>  // clamp
#include <cmath>  // copysign, fabs, isinf, isnan
#include <cstddef>  // size_t
#include <map>
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <string_view>
#include <utility>  // move

#include <picojson.h>  // JSON of servers

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

/// The integers under each key of a document, in order: picojson has only doubles.
class document_digits {
public:
    explicit document_digits(std::string_view json) : json_(json) {}
    std::optional<long long> of(const char* key, std::size_t place) {
        auto [at, is_new] = found_.try_emplace(key);
        if (is_new) at->second = whole_numbers(json_, key);
        return place < at->second.size() ? at->second[place] : std::nullopt;
    }

private:
    std::string_view json_;
    std::map<std::string, vector<std::optional<long long>>> found_{};
};

/// Reads fields of an object. Throws std::invalid_argument with the field, its value and what is
/// allowed.
class field_reader : public field_visitor {
public:
    /// `place`: this object's index among the document's numbers of each name.
    field_reader(const checked_object& of, document_digits& digits, std::size_t place = 0,
                 bool insists = false)
        : digits_(digits), place_(place), insists_(insists), in_{of} {}

    void visit_flag(const field& f, bool& b) override {
        const picojson::value* v = present(f);
        if (v && !v->is<bool>()) at().refuse(f.name, "true or false is allowed");
        b = v && v->get<bool>();
    }
    void visit_number(const field& f, double& n, const number_range& of) override {
        const picojson::value* v = present(f);
        n = v ? meant(at().number_of(*v, f.name, of.least, of.most), of) : of.otherwise;
    }
    void exact(const field& f, long long& n, const whole_range& of) override {
        const picojson::value* v = known(f);
        if (v) n = v->is<picojson::null>() ? 0 : at().exact_of(*v, f.name, of.most, [&] {
            return digits_.of(f.name, place_ + element_);
        });
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
        for (const picojson::value& t : array_member(at().value(), f.name))
            all.push_back(t.is<std::string>() ? t.get<std::string>() : "");
    }
    void misfit(const char* name, const char* allowed) override { at().refuse(name, allowed); }
    bool has(const char* name, bool) override { return at().has(name); }
    bool begin(const field& f) override {
        const bool there = present(f) != nullptr;
        if (there) in_.push_back(at().at(f.name));
        return there;
    }
    void end() override { in_.pop_back(); }
    vector<std::string> names(const vector<std::string>&) override {
        vector<std::string> all;
        if (at().value().is<picojson::object>())
            for (const auto& named : at().value().get<picojson::object>())
                all.push_back(named.first);
        return all;
    }

protected:
    bool visit_text(const field& f, std::string_view, std::string& to) override {
        const picojson::value* v = present(f);
        if (v && !v->is<std::string>()) at().refuse(f.name, "a text is allowed");
        if (v) to = v->get<std::string>();
        return v != nullptr;
    }
    void visit_whole(const field& f, long long& n, const whole_range& of) override {
        const picojson::value* v = known(f);
        if (v && !v->is<picojson::null>())
            n = at().whole_of<long long>(*v, f.name, of.least, of.most);
        else if (v && of.null != whole_range::no_null) n = of.null;
    }
    void visit_choice(const field& f, int& k, int count, const char* (*name)(int)) override {
        const picojson::value* v = present(f);
        if (!v) return;
        for (int i = 0; v->is<std::string>() && i < count; ++i)
            if (v->get<std::string>() == name(i)) { k = i; return; }
        std::string allowed;
        for (int i = 0; i < count; ++i) allowed += (i == 0 ? "" : ", ") + std::string(name(i));
        at().refuse(f.name, "one of " + allowed + " is allowed");
    }
    std::size_t begin_list(const field& f, std::size_t) override {
        lists_.push_back(at().each(f.name));
        return lists_.back().size();
    }
    void begin_element(std::size_t i) override {
        if (lists_.size() == 1) element_ = i;  // one number of each name per element
        in_.push_back(lists_.back()[i]);
    }
    void end_list() override { lists_.pop_back(); }

private:
    const checked_object& at() const { return in_.back(); }
    /// The value, possibly null, or nullptr if missing.
    const picojson::value* known(const field& f) const {
        const picojson::value* v = member(at().value(), f.name);
        if (!v && insists_ && f.is_there == presence::always) refuse({"it has no field ", f.name});
        return v;
    }
    /// The value, or nullptr if missing or null.
    const picojson::value* present(const field& f) const {
        const picojson::value* v = known(f);
        return v && !v->is<picojson::null>() ? v : nullptr;
    }
    static double meant(double n, const number_range& of) {
        return of.with_infinity && std::fabs(n) == largest_number ? std::copysign(infinity, n) : n;
    }

    document_digits& digits_;
    const std::size_t place_;
    std::size_t element_ = 0;
    const bool insists_;
    vector<checked_object> in_;
    vector<vector<checked_object>> lists_{};
};

template <class T, class... More>
void read_fields(const checked_object& from, document_digits& digits, T& to, More&... more) {
    field_reader r(from, digits);
    fields_of(r, to, more...);
}

}  // namespace detail
}  // inline namespace v1
}  // namespace llmbench
