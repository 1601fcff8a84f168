#include "scenarios/pitfalls/reach/passed_by.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::FunctionRef;

namespace {

constexpr int kDeepestCall = 5;
constexpr int kMostSteps = 400;  // over call sites

class Ways {
 public:
  Ways(const Program& program, const ValueOf& value_of) : program_(program), value_of_(value_of) {}

  bool are_closed(Ref node, int depth) {
    if (++steps_ > kMostSteps) return false;
    for (const diagnose::Guard& guard : program_.guards(node)) {
      const auto holds = decided(program_, guard.condition, value_of_);
      if (holds == !guard.holds) return true;
    }
    const FunctionRef function = program_.enclosing_function(node);
    if (!function || depth > kDeepestCall) return false;
    const auto& sites = program_.call_sites(function);
    // In ranks, and perhaps in one process too: else: main(0, cfg).
    if (program_.is_spawned(function))
      return are_all_closed(program_.calls(Api::spawn), {}, depth) &&
             (sites.empty() || are_all_closed(sites, function, depth));
    return program_.handed_on(function).empty() && are_all_closed(sites, function, depth);
  }

 private:
  template <typename Calls>
  bool are_all_closed(const Calls& sites, FunctionRef inside, int depth) {
    bool any = false;
    for (const CallRef& site : sites) {
      if (inside && program_.enclosing_function(site.ref()) == inside) continue;
      any = true;
      if (!are_closed(site.ref(), depth + 1)) return false;
    }
    return any;
  }

  const Program& program_;
  const ValueOf& value_of_;
  int steps_ = 0;
};

}  // namespace

bool is_passed_by(const Program& program, Ref node, const ValueOf& value_of) {
  return Ways(program, value_of).are_closed(node, 0);
}

}  // namespace bench::pitfalls::facts
