// Whether a value is the wrapper in every run that uses GPUs.
#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/attribute_attempt.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Source;
using diagnose::Wrap;

namespace {

// if use_cuda: net = DataParallel(net): no run on a GPU goes without. A count of them, or a flag
// for distribution, decides more than that.
bool wraps_wherever_cuda_is(const Program& program, const Wrap& wrap) {
  const auto guards = diagnose::guards_where_made(program, wrap.call);
  return !guards.empty() &&
         std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
           const std::string text = lowered(guard.condition.text());
           return guard.holds && contains(text, "cuda") && !contains(text, "count") &&
                  !contains(text, " and ") && !contains(text, "not ");
         });
}

// Only some runs come by the node: a flag, a test of the type, or a choice within the expression.
bool is_conditional(const Program& program, Ref node) {
  const auto& tree = node.module->tree();
  if (tree.ancestor(node.node, diagnose::Kind::conditional) != diagnose::kNoNode) return true;
  if (is_attempt(node, "state_dict")) return true;
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    if (program.rank_test(guard.condition) != diagnose::RankTest::none) return false;
    if (program.is_distributed_flag(guard.condition)) return true;
    const std::string text = lowered(guard.condition.text());
    for (const std::string_view word : {"hasattr", "isinstance", "type(", "parallel", "ddp", "gpu",
                                        "module", "distributed", "multi", "world_size"})
      if (contains(text, word)) return true;
    return false;
  });
}

// model.module.state_dict() and model.no_sync() without a condition: the program takes the model
// for a wrapper, and a run without one stops there.
bool is_taken_for_wrapper(const Program& program, const Wrap& wrap) {
  for (const std::string_view name : {"state_dict", "load_state_dict", "no_sync"})
    for (const CallRef& call : program.calls_named(name)) {
      Ref object = call.receiver();
      if (!object) continue;
      if (name != "no_sync") {
        if (object.kind() != diagnose::Kind::attribute ||
            object.child(diagnose::Field::attribute).text() != "module")
          continue;
        object = object.child(diagnose::Field::object);
      }
      if (program.wrap_of(object, wrap.kind) == &wrap && !is_conditional(program, call.ref()))
        return !program.mentions("deepspeed");  // whose engine has a module as well
    }
  return false;
}

// nets[name] = DDP(nets[name]) in `for name in nets`: no item is left out.
bool is_for_each_item(Ref target, Ref wrapping) {
  const auto& tree = wrapping.module->tree();
  const auto loop = tree.ancestor(wrapping.node, diagnose::Kind::for_statement);
  if (loop == diagnose::kNoNode) return false;
  const std::string container(target.child(diagnose::Field::value).text());
  std::string over(tree.text(tree.child(loop, diagnose::Field::right)));
  for (const std::string_view end : {".items()", ".keys()"})
    if (over.ends_with(end)) over.resize(over.size() - end.size());
  return over == container || over == "enumerate(" + container + ")" ||
         over == "range(len(" + container + "))" || over == "list(" + container + ")";
}

// self.model for self.model = DDP(net), and for net = DDP(net) with self.model = net below it.
Ref kept_in(Ref wrapping) {
  const auto& module = *wrapping.module;
  const auto& tree = module.tree();
  const auto statement = tree[wrapping.node].parent;
  if (statement == diagnose::kNoNode || tree[statement].kind != diagnose::Kind::assignment)
    return {};
  const Ref target = wrapping.with(tree.child(statement, diagnose::Field::left));
  if (target.kind() != diagnose::Kind::identifier) return target;
  for (const diagnose::Def& def : module.defs())
    if (def.is_attribute && def.value != diagnose::kNoNode && def.target > wrapping.node &&
        module.text(def.value) == target.text() &&
        module.function_of(def.target) == module.function_of(wrapping.node))
      return wrapping.with(def.target);
  return {};
}

// self.model = DDP(self.model) under no condition, in what each object runs when it is made, or
// where it is made: no run goes without. Of a name of one function the model says so itself.
bool wraps_in_every_run(const Program& program, const Wrap& wrap) {
  const Ref wrapping = diagnose::made_at(program, wrap.call).ref();
  const Ref target = kept_in(wrapping);
  const bool is_tried =  // except: print("one process")
      wrapping.module->tree().ancestor(wrapping.node, diagnose::Kind::try_statement) !=
      diagnose::kNoNode;
  const auto& returns = wrapping.module->nodes_of(diagnose::Kind::return_statement);
  const bool may_leave =  // if not distributed: return
      std::any_of(returns.begin(), returns.end(), [&](diagnose::NodeId at) {
        return at < wrapping.node && wrapping.module->function_of(at) != 0 &&
               wrapping.module->function_of(at) == wrapping.module->function_of(wrapping.node);
      });
  if (!target || is_tried || may_leave || !is_unconditional(program, target) ||
      !diagnose::guards_where_made(program, wrap.call).empty() ||
      wrapping.module->under_main_guard(wrapping.node))
    return false;
  const bool is_item = target.kind() == diagnose::Kind::subscript;
  if ((!is_item || !is_for_each_item(target, wrapping)) &&
      target.kind() != diagnose::Kind::attribute)
    return false;
  const auto places = diagnose::places_of(program, wrapping);
  if (std::any_of(places.begin(), places.end(),
                  [&](Ref place) { return !is_unconditional(program, place); }))
    return false;
  const auto last = program.enclosing_function(places.back());
  return !last || last.function->name == "__init__" || last.function->name == "main" || is_item;
}

}  // namespace

bool is_given_to_one_of_several(const Program& program, Ref object, const Wrap& wrap) {
  const auto cls = program.enclosing_class(object);
  if (!cls || !object.text().starts_with("self.") ||
      program.enclosing_class(wrap.call.ref()) == cls)
    return false;
  const auto& tree = wrap.call.module->tree();
  const auto stored = tree.ancestor(wrap.call.call->node, diagnose::Kind::assignment);
  if (stored == diagnose::kNoNode) return false;
  const Ref target = wrap.call.ref().with(tree.child(stored, diagnose::Field::left));
  return target.kind() == diagnose::Kind::attribute &&
         target.child(diagnose::Field::attribute).text() ==
             object.child(diagnose::Field::attribute).text() &&
         program.calls_named(cls.cls->name).size() > 1;
}

bool is_surely_wrapped(const Program& program, Ref object) {
  const auto& sources = program.module_sources(object);
  const Wrap* wrapper = nullptr;
  for (const Source& source : sources)
    if (const Wrap* wrap = program.wrap_made_by(source.ref)) wrapper = wrap;
  if (wrapper == nullptr || is_given_to_one_of_several(program, object, *wrapper)) return false;
  const bool always = wraps_wherever_cuda_is(program, *wrapper) ||
                      is_taken_for_wrapper(program, *wrapper) ||
                      wraps_in_every_run(program, *wrapper);
  const auto inner = always ? program.module_sources(wrapper->module) : std::vector<Source>{};
  return std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    // for name, model in models.items(): told beside the items it gives, which are the rest.
    if (source.how == Source::How::loop_item) return true;
    // self.ddp_model = None until it is made: None has no state to save.
    if (source.how == Source::How::value && source.ref.kind() == diagnose::Kind::none_literal)
      return true;
    return program.wrap_made_by(source.ref) != nullptr ||
           std::any_of(inner.begin(), inner.end(),
                       [&](const Source& below) { return below.ref == source.ref; });
  });
}

}  // namespace bench::pitfalls::facts
