#include "scenarios/pitfalls/wrappers/bare_partners.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"
#include "scenarios/pitfalls/wrappers/never_wrapped.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Kind;
using diagnose::Source;
using diagnose::TrainingLoop;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// A head that deals out its classes to the ranks gathers and reduces in its own way.
bool asks_other_ranks(const Program& program, ClassRef cls) {
  const auto& lineage = program.lineage(cls);
  return std::any_of(lineage.begin(), lineage.end(), [&](const ClassRef& each) {
    return program.subtree_calls({each.module, each.cls->body}, [](const CallRef& call) {
      return diagnose::is_collective(call.call->api) ||
             says_any(call.call->name, {"all_reduce", "allreduce", "gather", "sync_", "get_rank"});
    });
  });
}

// Head(512, 10) of a class in sight or known by its capital, nn.Linear(512, 10). What is told of
// ranks, or named for them, may do more.
bool makes_local_model(const Program& program, const CallRef& made) {
  if (const ClassRef cls = program.class_of_call(made))
    return program.derives_from(cls, Api::module_class) && !asks_other_ranks(program, cls);
  if (made.call->api == Api::torchvision_model) return true;
  if (made.call->api != Api::none) return false;
  const std::string path = made.module->qualified(made.call->function);
  if (path.starts_with("torch.nn.")) return !facts::contains(path, ".parallel.");
  const std::string_view name = made.call->name;
  const Ref given = made.ref().child(diagnose::Field::arguments);
  return name.size() > 2 && std::isupper(static_cast<unsigned char>(name[0])) != 0 &&
         std::any_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::islower(c) != 0; }) &&
         !program.comes_from_rank(given) && !says_any(given.text(), {"rank", "world", "dist"}) &&
         !says_any(name, {"wrap", "parallel", "dist", "engine", "trainer", "learner", "agent",
                          "system", "solver", "partial", "shard", "sync", "memory", "queue", "bank",
                          "ddp", "fsdp"});
}

// The one call that makes the object, whatever name it has here; empty where there may be another.
CallRef maker_of(const Program& program, Ref object) {
  if (!object || !diagnose::stands_for_object(object)) return {};
  CallRef made;
  for (const Source& source : program.module_sources(object)) {
    const CallRef call = program.as_call(source.ref);
    if (!call || source.how != Source::How::value || (made && made.ref() != call.ref())) return {};
    made = call;
  }
  return made;
}

bool is_made_by(const Program& program, Ref object, const CallRef& maker) {
  const CallRef made = maker_of(program, object);
  return made && made.ref() == maker.ref();
}

// SGD([{"params": net.parameters()}, {"params": head.parameters()}]), and a list that was given
// them above.
bool is_given_to_optimizer(const Program& program, const CallRef& maker) {
  for (const CallRef& optimizer : program.calls(Api::optimizer)) {
    const Ref given = optimizer.argument(0, "params");
    if (!given) continue;
    const auto assigned = assignments_in(body_around(program, optimizer.ref()));
    const VariableNames names = behind(variables_in(given), assigned);
    for (const char* name : {"parameters", "named_parameters"})
      for (const CallRef& asked : program.calls_named(name)) {
        if (asked.module != given.module || !is_made_by(program, asked.receiver(), maker)) continue;
        const auto holds = [&](Ref value) {
          return value.module->tree().contains(value.node, asked.call->node);
        };
        if (holds(given) ||
            std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
              return names.contains(each.name) && holds(each.value);
            }))
          return true;
      }
  }
  return false;
}

// DDP(Both(net, head)), net.head = head: a part of what is wrapped.
bool may_be_part_of_another(const Program& program, const CallRef& maker) {
  const std::string name(program.assigned_name(maker.ref()));
  for (const Wrap& wrap : program.wraps()) {
    if (!wrap.module) return true;
    const auto assigned = assignments_in(body_around(program, wrap.call.ref()));
    if (is_made_by(program, wrap.module, maker) ||
        behind(variables_in(wrap.module), assigned).contains(name))
      return true;
    for (const Source& source : program.module_sources(wrap.module)) {
      const auto there = assignments_in(body_around(program, source.ref));
      if (behind(variables_in(source.ref), there).contains(name)) return true;
    }
  }
  const auto& module = *maker.module;
  return std::any_of(module.defs().begin(), module.defs().end(), [&](const diagnose::Def& def) {
    return def.is_attribute && def.value != diagnose::kNoNode && module.text(def.value) == name &&
           !module.text(def.target).starts_with("self.");
  });
}

bool is_over_parameters(const Program& program, const CallRef& call) {
  const auto loops = program.loops_around(call.ref());
  return std::any_of(loops.begin(), loops.end(), [](Ref loop) {
    const Ref over = loop.child(diagnose::Field::right);
    return over && says_any(over.text(), {"param", "grad"});
  });
}

// dist.all_reduce(p.grad), average_gradients(head), a hook on the parameters.
bool keeps_equal_by_hand(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& each : module->calls()) {
      const CallRef call{module, &each};
      if (diagnose::is_collective(each.api)
              ? says_any(call.ref().text(), {"grad", "param", ".data", "weight", "state_dict"}) ||
                    is_over_parameters(program, call)
              : each.name == "register_hook" ||
                    (says_any(each.name, {"average", "avg", "sync", "reduce", "broadcast"}) &&
                     says_any(each.name, {"grad", "param", "model", "weight", "module"})))
        return true;
    }
  return false;
}

bool trains_through_wrapper(const Program& program) {
  const auto& forwards = program.forward_calls();
  return std::any_of(forwards.begin(), forwards.end(), [&](const diagnose::ForwardCall& forward) {
    return forward.wrap->kind == Wrapper::ddp && !program.under_no_grad(forward.call.ref()) &&
           !program.is_evaluation(forward.call.ref());
  });
}

bool is_stepped(const Program& program, const TrainingLoop& loop) {
  return program.subtree_calls(loop.batches,
                               [](const CallRef& call) { return call.call->name == "step"; });
}

// noise.randomize() in every round: an attack or an augmentation, which each rank begins anew.
bool begins_anew(const Program& program, const CallRef& forward) {
  const std::string_view model = forward.ref().with(forward.call->function).text();
  const auto loops = program.loops_around(forward.ref());
  const auto calls = loops.empty() ? std::vector<CallRef>{} : facts::calls_in(loops.back());
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.receiver() && call.receiver().text() == model &&
           says_any(call.call->name, {"random", "reset", "init"});
  });
}

bool is_bare_partner(const Program& program, const CallRef& forward, const CallRef& maker) {
  const Ref model{forward.module, forward.call->function};
  return makes_local_model(program, maker) && !program.assigned_name(maker.ref()).empty() &&
         is_given_to_optimizer(program, maker) && !is_frozen(program, model) &&
         !begins_anew(program, forward) && !may_be_part_of_another(program, maker) &&
         !may_reduce_out_of_sight(program, model.text());
}

// The first forward pass of each such model behind a loss.
std::vector<CallRef> forwards_of_bare_partners(const Program& program) {
  std::vector<CallRef> out;
  std::vector<Ref> told;  // the calls that make them
  for (const TrainingLoop& loop : program.training_loops()) {
    if (!is_stepped(program, loop)) continue;
    for (const CallRef& backward : loop.backwards)
      for (const Ref& node : facts::calls_behind(program, facts::loss_of(backward))) {
        const CallRef forward = program.as_call(node);
        const CallRef maker = maker_of(program, {forward.module, forward.call->function});
        if (!maker || std::find(told.begin(), told.end(), maker.ref()) != told.end() ||
            program.under_no_grad(node) || program.is_evaluation(node) ||
            program.guarded_by_rank(node) != diagnose::RankTest::none ||
            facts::only_without_distribution(program, node) ||
            !is_bare_partner(program, forward, maker))
          continue;
        told.push_back(maker.ref());
        out.push_back(forward);
      }
  }
  return out;
}

}  // namespace

void check_bare_partners(const Program& program, Report& report) {
  if (program.framework_distributes() || !program.uses(Api::optimizer) ||
      !trains_through_wrapper(program))
    return;
  const auto forwards = forwards_of_bare_partners(program);
  if (forwards.empty() || keeps_equal_by_hand(program)) return;
  for (const CallRef& forward : forwards)
    report
        .at(forward.ref(), Confidence::likely,
            "nothing wraps '" + std::string(forward.ref().with(forward.call->function).text()) +
                "', which is trained beside the wrapped model: its gradients are never reduced and "
                "every rank trains one of its own")
        .help =
        "Wrap it in DistributedDataParallel too, or make it a part of the model that is wrapped.";
}

}  // namespace bench::pitfalls
