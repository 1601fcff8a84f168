#include "scenarios/pitfalls/reach/opposite_runs.hpp"

#include "scenarios/pitfalls/program/words.hpp"

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

bool is_of_options(std::string_view object) {
  return says_any(object, {"arg", "opt", "conf", "cfg"});
}

// self.__dict__.update(vars(args)), and setattr(trainer, name, value) for an object of the class;
// setattr(config, name, value), and on self in another class, sets something else.
bool may_set_attributes(const Program& program, diagnose::ClassRef owner) {
  if (program.mentions("self.__dict__") || program.mentions("vars(self)")) return true;
  const auto calls = program.calls_named("setattr");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const std::string_view object = call.positional(0).text();
    return object == "self" ? program.enclosing_class(call.ref()) == owner : !is_of_options(object);
  });
}

// What the constructor alone gives self.several; empty where something else may set it.
std::vector<Ref> values_in_constructor(const Program& program, Ref attribute) {
  if (attribute.kind() != Kind::attribute || attribute.child(Field::object).text() != "self")
    return {};
  const diagnose::ClassRef owner = program.enclosing_class(attribute);
  if (!owner || may_set_attributes(program, owner) || !program.derived_of(owner).empty()) return {};
  std::vector<Ref> out;
  for (const auto& [module, def, object] :
       program.attribute_defs(attribute.child(Field::attribute).text())) {
    const Ref target{module, def->target};
    const diagnose::ClassRef setting = program.enclosing_class(target);
    const bool is_own = target.text() == attribute.text();
    if ((is_own || target.kind() == Kind::identifier) && setting && !(setting == owner)) continue;
    if (!is_own && is_of_options(object)) continue;
    const FunctionRef setter = program.enclosing_function(target);
    if (!setter || !setter.function->makes_object() || !is_own ||
        def->kind != diagnose::DefKind::assign || def->element >= 0)
      return {};
    out.push_back({module, def->value});
  }
  return out;
}

// self.several in two methods of one class, of which only the constructor sets it.
bool is_kept_by_object(const Program& program, Ref a, Ref b) {
  return a.text() == b.text() && program.enclosing_class(a) == program.enclosing_class(b) &&
         !values_in_constructor(program, a).empty();
}

// args.several and self.several, which was given it.
bool is_same_option(const Program& program, Ref a, Ref b) {
  if (!is_plain_test(a) || !is_plain_test(b)) return false;
  if (is_kept_by_object(program, a, b)) return true;
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
    return is_opposite(guard) || is_set_otherwise(guard);
  }

  bool is_opposite(const Guard& guard) const {
    return std::any_of(tests_.begin(), tests_.end(), [&](const Guard& test) {
      return test.holds != guard.holds && is_same_option(program_, test.condition, guard.condition);
    });
  }

  // if self.ddp: self.shared = False in the constructor, for `if self.shared:` in runs with ddp.
  bool is_set_otherwise(const Guard& guard) const {
    bool any = false;
    for (const Ref value : values_in_constructor(program_, guard.condition)) {
      const auto around = program_.guards(value);
      if (std::any_of(around.begin(), around.end(),
                      [&](const Guard& each) { return is_opposite(without_not(each)); }))
        continue;
      any = value.kind() == (guard.holds ? Kind::false_literal : Kind::true_literal);
      if (!any) return false;
    }
    return any;
  }

  const Program& program_;
  std::vector<Guard> tests_;
  std::set<const diagnose::Function*> seen_;
};

// What holds where the guard does: each part of `several and torch.cuda.device_count() > 1`.
void add_tests(const Guard& given, std::vector<Guard>& tests, int depth = 0) {
  constexpr int kParts = 8;
  const Guard guard = without_not(given);
  const Ref condition = guard.condition;
  if (is_plain_test(condition)) tests.push_back(guard);
  if (condition.kind() != Kind::boolean || depth > kParts) return;
  const Op op = condition.module->tree()[condition.node].op;
  if (op != (guard.holds ? Op::logical_and : Op::logical_or)) return;
  add_tests({condition.child(Field::left), guard.holds}, tests, depth + 1);
  add_tests({condition.child(Field::right), guard.holds}, tests, depth + 1);
}

}  // namespace

bool only_in_runs_without(const Program& program, Ref node, Ref wrapping) {
  std::vector<Guard> tests;
  for (const Guard& guard : program.guards(wrapping)) add_tests(guard, tests);
  return !tests.empty() && OppositeRuns(program, std::move(tests)).lead_to(node);
}

}  // namespace bench::pitfalls
