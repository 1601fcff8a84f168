#include "scenarios/pitfalls/metrics/plain_meters.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;

namespace {

bool is_usual_meter(std::string_view name) {
  const std::string plain = facts::lowered(name);
  for (const std::string_view usual :
       {"averagemeter", "avgmeter", "averagevaluemeter", "averager", "runningaverage",
        "averagemeterfordict", "runningmean", "movingaverage", "accuracymeter", "lossmeter",
        "classerrormeter", "confusionmeter"})
    if (plain == usual) return true;
  return false;
}

bool asks_others(Ref body) {
  const auto calls = facts::calls_in(body);
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return diagnose::is_collective(call.call->api) ||
           says_any(call.call->name, {"reduce", "gather", "sync"});
  });
}

// def synchronize(self): dist.all_reduce(...) of a meter that nothing calls by that name: what the
// meter gives is its own all the same.
bool asks_others(const Program& program, const ClassRef& cls) {
  if (!asks_others({cls.module, cls.cls->body})) return false;
  for (const diagnose::Function& method : cls.module->functions())
    if (method.owner_class == cls.cls->node && asks_others({cls.module, method.body}) &&
        (method.name.starts_with("__") || program.mentions("." + std::string(method.name))))
      return true;
  return false;
}

// Metrics of mmeval ask nobody unless they are given a backend, each or all of them.
bool is_mmeval_of_one(const Program& program, const CallRef& made) {
  return program.qualified(made.ref().with(made.call->function)).starts_with("mmeval.") &&
         !made.keyword("dist_backend") && !made.has_splat() &&
         program.calls_named("set_default_dist_backend").empty() && !program.mentions("dist_comm");
}

template <typename Accepts>
bool is_alone(const Program& program, Ref object, const Accepts& accepts) {
  const auto& sources = program.sources(object);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef made = program.as_call(source.ref);
           if (!made) return false;
           if (const ClassRef cls = program.class_of_call(made))
             return accepts(cls) && !asks_others(program, cls);
           if (is_mmeval_of_one(program, made)) return true;
           return is_usual_meter(made.call->name) &&
                  !says_any(made.ref().text(), {"sync", "dist", "world", "reduce"});
         });
}

bool is_plain_meter(const Program& program, Ref object) {
  return is_alone(program, object, [](const ClassRef& cls) {
    return says_any(cls.cls->name, {"meter", "averag"});
  });
}

// Its class derives from nothing that might ask other ranks.
bool is_of_own_making(const ClassRef& cls) {
  return std::all_of(cls.cls->bases.begin(), cls.cls->bases.end(), [&](diagnose::NodeId base) {
    return cls.module->tree().text(base) == "object";
  });
}

}  // namespace

bool adds_up_alone(const Program& program, Ref object) {
  return is_alone(program, object, is_of_own_making);
}

std::vector<Assigned> meter_sums_in(const Program& program, Ref loop) {
  std::vector<Assigned> out;
  for (const CallRef& call : facts::calls_in(loop)) {
    const Ref object = call.receiver();
    const bool is_variable =
        object.kind() == Kind::identifier ||
        (object.kind() == Kind::attribute && object.child(Field::object).text() == "self");
    if (is_variable && (call.call->name == "update" || call.call->name == "add") &&
        call.positional(0) && is_plain_meter(program, object))
      out.push_back({std::string(object.text()), call.call->node, call.positional(0)});
  }
  return out;
}

}  // namespace bench::pitfalls
