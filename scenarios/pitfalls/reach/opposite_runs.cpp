#include "scenarios/pitfalls/reach/opposite_runs.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::Op;
using diagnose::Source;

namespace {

constexpr int kCallDepth = 5;

bool is_plain_test(Ref condition) {
  return condition.kind() == Kind::identifier || condition.kind() == Kind::attribute;
}

Guard without_not(Guard guard) {
  if (guard.condition.kind() == Kind::not_expression)
    guard = {guard.condition.child(Field::argument), !guard.holds};
  return guard;
}

// share = several and world_size > 1: one line gives the name its value.
bool is_set_once(Ref name) {
  return name.kind() == Kind::identifier && name.module->defs_of(name.text(), false).size() == 1;
}

// args.several and self.several, which was given it.
bool is_same_option(const Program& program, Ref a, Ref b) {
  if (!is_plain_test(a) || !is_plain_test(b)) return false;
  if (is_set_once(a) && program.same_variable(a, b)) return true;
  const auto& ours = program.sources(a);
  const auto& theirs = program.sources(b);
  if (ours.size() != 1 || theirs.size() != 1) return false;
  const Source& one = ours.front();
  const Source& other = theirs.front();
  if (one.ref == other.ref && one.element == other.element)
    return one.how == Source::How::argument || one.how == Source::How::value;
  // Of an object that cannot be followed: the attribute's name, of one and the same object.
  return one.how == Source::How::unknown && other.how == Source::How::unknown &&
         one.ref.kind() == Kind::attribute && one.ref.text() == other.ref.text();
}

class OppositeRuns {
 public:
  OppositeRuns(const Program& program, std::vector<Guard> tests)
      : program_(program), tests_(std::move(tests)) {}

  bool lead_to(Ref node, int depth = 0) {
    for (const Guard& guard : program_.guards(node))
      if (contradicts(guard)) return true;
    const FunctionRef function = program_.enclosing_function(node);
    if (!function || depth > kCallDepth || !seen_.insert(function.function).second) return false;
    const auto& sites = program_.call_sites(function);
    const bool all = !sites.empty() && program_.handed_on(function).empty() &&
                     std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
                       return lead_to(site.ref(), depth + 1);
                     });
    seen_.erase(function.function);
    return all;
  }

 private:
  // Of `not several and rank != 0`, where it holds, each part does.
  bool contradicts(const Guard& given) const {
    const Guard guard = without_not(given);
    const Ref condition = guard.condition;
    if (guard.holds && condition.kind() == Kind::boolean &&
        condition.module->tree()[condition.node].op == Op::logical_and)
      return contradicts({condition.child(Field::left), true}) ||
             contradicts({condition.child(Field::right), true});
    return std::any_of(tests_.begin(), tests_.end(), [&](const Guard& test) {
      return test.holds != guard.holds && is_same_option(program_, test.condition, guard.condition);
    });
  }

  const Program& program_;
  std::vector<Guard> tests_;
  std::set<const diagnose::Function*> seen_;
};

}  // namespace

bool only_in_runs_without(const Program& program, Ref node, Ref wrapping) {
  std::vector<Guard> tests;
  for (const Guard& guard : program.guards(wrapping)) tests.push_back(without_not(guard));
  std::erase_if(tests, [](const Guard& test) { return !is_plain_test(test.condition); });
  return !tests.empty() && OppositeRuns(program, std::move(tests)).lead_to(node);
}

}  // namespace bench::pitfalls
