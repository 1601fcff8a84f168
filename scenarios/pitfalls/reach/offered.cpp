// Functions of a file that is looked at alone, as a library: what calls them is not at hand.
#include "diagnose/model/binding.hpp"
#include "diagnose/model/made_at.hpp"
#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/own_makers.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Wrap;

namespace {

// class Config: lr = 0.1. An object of it runs nothing of the file.
bool only_holds_values(ClassRef cls) {
  const auto& functions = cls.module->functions();
  return std::none_of(functions.begin(), functions.end(), [&](const diagnose::Function& each) {
    return each.owner_class == cls.cls->node;
  });
}

// A file whose functions nothing in it calls: what uses it is not at hand.
bool only_offers(const Program& program) {
  const diagnose::Module& root = program.root();
  if (root.has_main_guard()) return false;
  const auto& calls = root.calls();
  return std::none_of(calls.begin(), calls.end(), [&](const diagnose::Call& made) {
    const CallRef call{&root, &made};
    if (program.enclosing_function(call.ref()) || program.enclosing_class(call.ref())) return false;
    const ClassRef cls = program.class_of_call(call);
    return cls ? !only_holds_values(cls) : static_cast<bool>(program.callee(call));
  });
}

// models.__dict__[arch]; an object's own self.__dict__ holds no classes.
bool reads_names_of_module(const Program& program) {
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [](const diagnose::Module* module) {
    constexpr std::string_view kNames = ".__dict__";
    if (!module->tree().holds(kNames)) return false;
    const std::string_view source = module->tree().source();
    for (auto at = source.find(kNames); at != std::string_view::npos;
         at = source.find(kNames, at + 1))
      if (!source.substr(0, at).ends_with("self")) return true;
    return false;
  });
}

// The word stands in quotes somewhere else than in the list of what a file exports.
bool is_written_as_text(const Program& program, const std::string& word) {
  if (!program.mentions(word)) return false;
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
    if (!module->tree().holds(word)) return false;
    const std::string_view source = module->tree().source();
    for (auto at = source.find(word); at != std::string_view::npos;
         at = source.find(word, at + 1)) {
      const auto exports = source.rfind("__all__", at);
      if (exports == std::string_view::npos ||
          source.substr(exports, at - exports).find_first_of("])") != std::string_view::npos)
        return true;
    }
    return false;
  });
}

// registry.get(name)(), models.__dict__[arch](), instantiate(cfg): a class may be found by its
// name.
bool finds_classes_by_name(const Program& program, std::string_view name) {
  for (const std::string_view way : {"globals", "instantiate", "import_module", "LightningCLI"})
    if (!program.calls_named(way).empty()) return true;
  const auto evals = program.calls_named("eval");  // of Python: net.eval() finds nothing
  if (std::any_of(evals.begin(), evals.end(), [](const CallRef& call) { return !call.receiver(); }))
    return true;
  const auto gets = program.calls_named("getattr");  // getattr(models, args.arch)
  if (std::any_of(gets.begin(), gets.end(), [](const CallRef& get) {
        return get.positional(1).kind() != diagnose::Kind::string;
      }))
    return true;
  if (program.mentions("__dict__") && reads_names_of_module(program)) return true;
  const std::string text(name);
  return is_written_as_text(program, "\"" + text + "\"") ||
         is_written_as_text(program, "'" + text + "'");
}

bool is_decorated(ClassRef cls) {
  const auto& tree = cls.module->tree();
  const diagnose::NodeId parent = tree[cls.cls->node].parent;
  return parent != diagnose::kNoNode && tree[parent].kind == diagnose::Kind::decorated;
}

template <typename Beside>
bool starts_beside(const Program& program, const Beside& beside) {
  for (const Api api : {Api::deepspeed, Api::hvd_init})
    for (const CallRef& start : program.calls(api))
      if (beside(start.ref())) return true;
  return false;
}

// os.environ["RANK"], os.environ["WORLD_SIZE"] = "0", "1"
bool is_written(Ref read) {
  const auto& tree = read.module->tree();
  const auto assignment = tree.ancestor(read.node, diagnose::Kind::assignment);
  return assignment != diagnose::kNoNode &&
         tree.contains(tree.child(assignment, diagnose::Field::left), read.node);
}

// os.environ["RANK"] in brackets, under no question: without a launcher it raises a KeyError.
template <typename Beside>
bool needs_variable_beside(const Program& program, const Beside& beside) {
  const diagnose::Module& root = program.root();
  const auto& tree = root.tree();
  const auto& reads = root.nodes_of(diagnose::Kind::subscript);
  return std::any_of(reads.begin(), reads.end(), [&](diagnose::NodeId node) {
    const Ref read{&root, node};
    const std::string name = program.environment_name(read);
    return (name == "RANK" || name == "LOCAL_RANK" || name == "WORLD_SIZE") && !is_written(read) &&
           beside(read) && settings_of(program, name).empty() &&
           !speaks_of(program, "setdefault") && is_unconditional(program, read) &&
           tree.ancestor(node, diagnose::Kind::conditional) == diagnose::kNoNode &&
           tree.ancestor(node, diagnose::Kind::try_statement) == diagnose::kNoNode;
  });
}

// dist.barrier() under no question for a group: it fails in a run without one.
// What DataParallel trains has one process: such a call is what is left of a version with ranks.
template <typename Beside>
bool needs_ranks_beside(const Program& program, const Beside& beside) {
  if (program.has_data_parallel() && !program.has_ddp()) return false;
  if (needs_variable_beside(program, beside)) return true;
  const auto asks = [&](const diagnose::Guard& guard) {
    return program.is_distributed_flag(guard.condition) ||
           says_any(guard.condition.text(), {"dist", "ddp", "world", "parallel", "gpu", "is_init"});
  };
  for (const Api api : {Api::get_rank, Api::get_world_size, Api::barrier, Api::all_reduce})
    for (const CallRef& call : program.calls(api)) {
      if (!beside(call.ref()) ||
          call.module->tree().ancestor(call.call->node, diagnose::Kind::conditional) !=
              diagnose::kNoNode)
        continue;
      const auto guards = program.guards(call.ref());
      if (std::none_of(guards.begin(), guards.end(), asks)) return true;
    }
  return false;
}

}  // namespace

namespace {

// Head(features, classes) of def __init__(self, features, classes, device): all that makes an
// object of the class raises a TypeError instead, in a script that the class has left behind.
bool is_made_in_vain(const Program& program, ClassRef cls) {
  const auto calls = program.calls_named(cls.cls->name);
  const FunctionRef init = program.method(cls, "__init__");
  return init && !calls.empty() && program.handed_on(cls).empty() &&
         program.derived_of(cls).empty() &&
         std::all_of(calls.begin(), calls.end(), [&](const CallRef& call) {
           return program.class_of_call(call) == cls && !diagnose::can_bind(call, init);
         });
}

}  // namespace

bool is_never_made(const Program& program, Ref node) {
  const ClassRef cls = program.enclosing_class(node);
  if (!cls || is_decorated(cls) || only_offers(program)) return false;
  if (is_made_in_vain(program, cls)) return true;
  const auto is_made = [&](ClassRef each) {
    return !program.calls_named(each.cls->name).empty() || !program.handed_on(each).empty() ||
           !made_by_itself(program, each).empty() || !program.picks_of(each).empty();
  };
  const auto& derived = program.derived_of(cls);
  return !is_made(cls) && std::none_of(derived.begin(), derived.end(), is_made) &&
         !finds_classes_by_name(program, cls.cls->name);
}

// def shard(data, rank, world_size), and an object that is made with both: whoever calls it has
// ranks.
bool is_told_of_ranks(const Program& program, FunctionRef function) {
  const ClassRef owner = program.enclosing_class({function.module, function.function->body});
  const FunctionRef maker = owner ? program.method(owner, "__init__") : FunctionRef{};
  for (const FunctionRef& each : {function, maker}) {
    if (!each) continue;
    unsigned roles = 0;
    for (const diagnose::Parameter& parameter : each.function->parameters)
      roles |= diagnose::role_of_name(parameter.name);
    if ((roles & diagnose::kRank) != 0 && (roles & diagnose::kWorldSize) != 0) return true;
  }
  return false;
}

// Something of this file works in ranks wherever it is used: a class or function that joins a
// process group, wraps a model, prepares one by Accelerate or makes an Accelerator, and whatever
// stands in the same class or function.
bool is_offered(const Program& program, FunctionRef function) {
  if (function.module != &program.root() || !program.call_sites(function).empty()) return false;
  const Ref body{function.module, function.function->body};
  const ClassRef owner = program.enclosing_class(body);
  const auto beside = [&](Ref node) {
    return owner ? program.enclosing_class(node) == owner
                 : program.enclosing_function(node) == function;
  };
  const auto& wraps = program.wraps();
  const auto prepares = program.calls_named("prepare");
  const auto reducers = program.calls(diagnose::Api::hvd_optimizer);
  const auto accelerators = program.calls(Api::accelerator);
  const bool works_in_ranks =
      starts_beside(program, beside) || needs_ranks_beside(program, beside) ||
      is_told_of_ranks(program, function) ||
      std::any_of(reducers.begin(), reducers.end(),
                  [&](const CallRef& reducer) { return beside(reducer.ref()); }) ||
      std::any_of(
          wraps.begin(), wraps.end(),
          [&](const Wrap& wrap) { return beside(diagnose::made_at(program, wrap.call).ref()); }) ||
      std::any_of(accelerators.begin(), accelerators.end(),
                  [&](const CallRef& accelerator) { return beside(accelerator.ref()); }) ||
      std::any_of(prepares.begin(), prepares.end(), [&](const CallRef& prepare) {
        return is_of_accelerator(program, prepare) && beside(prepare.ref());
      });
  return works_in_ranks && only_offers(program);
}

}  // namespace bench::pitfalls::facts
