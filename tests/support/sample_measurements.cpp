#include "support/sample_measurements.hpp"

#include "core/judging/calibration.hpp"
#include "core/judging/judge.hpp"
#include "core/described/described.hpp"

namespace sample_measurements {

namespace {
lb::sought which_of(bool to_the_end) { return to_the_end ? lb::sought::last : lb::sought::first; }
}  // namespace

llmbench::slo_verdict judge_measurements(const measurement& m, const llmbench::slo& s, bool to_the_end) {
    const lb::objective_columns c = lb::columns_of(m, s);
    return lb::described(lb::estimated(lb::decision_by_numbers(c, m, s, which_of(to_the_end)), c));
}
llmbench::slo_verdict judge_values(const measurement& m, const llmbench::slo& s, bool to_the_end) {
    const lb::objective_columns c = lb::columns_of(m, s);
    return lb::described(lb::estimated(lb::walked(lb::by_values(c, m, s), which_of(to_the_end)), c));
}
llmbench::slo_verdict judge_counts(const measurement& m, const llmbench::slo& s, bool to_the_end) {
    const lb::objective_columns c = lb::columns_of(m, s);
    return lb::described(lb::estimated(lb::walked(lb::by_counts(c, m, s), which_of(to_the_end)), c));
}
llmbench::slo_verdict judged(const measurement& m, const llmbench::slo& s, bool guard) {
    const lb::measurements e = m;
    const lb::validity_checks g = lb::validity_checks_of(e);
    lb::decision d = guard ? lb::decision_without_client(e, m, g, s, lb::sought::guards_first)
                           : lb::decision_on(e, m, g, s);
    return lb::described(d);
}
vector<llmbench::slo_verdict> judge_all(const measurement& m) {
    return lb::described(lb::analyse(m, m).verdicts);
}
llmbench::self_check_t self_check_of(const measurement& m) {
    return lb::described(lb::analyse(m, m).on.self_check);
}
std::string slo_invalid_reason(const measurement& m, const llmbench::slo& s) {
    const lb::objective_columns c = lb::columns_of(m, s);
    const lb::cause why = lb::fault_of_verdict(
        m, m, lb::validity_checks_of(m), lb::estimated(lb::decision_by_numbers(c, m, s), c));
    return lb::described(why, s);
}
double prior_sd_of(const measurement& m, const llmbench::slo& s) {
    return lb::prior_sd_of(m, s, !m.baseline.empty());
}
vector<lb::calibrated> calibration_of(const measurement& m) {
    return lb::calibration_of(m, m);
}

}  // namespace measurements
