#include "scenarios/pitfalls/frameworks/lightning_steps.hpp"

#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/local_decisions.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// self.automatic_optimization = False, or a property that says so.
bool optimizes_by_hand(const ClassRef& cls) {
  const std::string_view text = cls.module->text(cls.cls->node);
  const std::size_t at = text.find("automatic_optimization");
  if (at == std::string_view::npos) return false;
  const std::string_view rest = text.substr(at);
  return rest.starts_with("automatic_optimization = False") ||
         (rest.starts_with("automatic_optimization(") &&
          facts::contains(rest.substr(0, rest.find("def ")), "return False"));
}

std::vector<CallRef> calls_of_step(const FunctionRef& step) {
  return facts::calls_in({step.module, step.function->body});
}

bool has_call_behind(const std::vector<CallRef>& calls, NodeId node, std::string_view name) {
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->node > node && call.call->name.ends_with(name);
  });
}

// return and return None
bool returns_nothing(Ref statement) {
  const NodeId value = statement.module->tree().child_at(statement.node, 0);
  return value == kNoNode || statement.with(value).kind() == Kind::none_literal;
}

// The ranks may have told each other above the return what each of them sees.
bool may_agree(const Program& program, const std::vector<CallRef>& calls, Ref statement) {
  const auto asks = [](const CallRef& call) {
    return diagnose::is_collective(call.call->api) ||
           says_any(call.call->name, {"reduce", "gather", "broadcast", "agree", "sync", "dist",
                                      "world", "global", "across", "ranks"});
  };
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->node < statement.node &&
           (asks(call) || program.subtree_calls(call.ref(), asks));
  });
}

// Of this rank's batch: a norm of gradients is taken after their reduction.
bool is_of_own_batch(const Guard& guard, Ref statement) {
  const std::string text = facts::lowered(guard.condition.text());
  const auto& tree = statement.module->tree();
  return depends_on_local_data(text) && !facts::contains(text, "norm") &&
         !facts::contains(text, "param") && !facts::contains(text, "grad") &&
         !facts::contains(text, "weight") &&
         tree.contains(tree[guard.condition.node].parent, statement.node);
}

std::vector<FunctionRef> lightning_steps(const Program& program) {
  std::vector<FunctionRef> out;
  for (const Module* module : program.modules())
    for (const diagnose::Class& made : module->classes()) {
      const ClassRef cls{module, &made};
      const FunctionRef step = program.derives_from(cls, Api::lightning_module)
                                   ? program.method(cls, "training_step")
                                   : FunctionRef{};
      if (step && step.module == module && step.function->owner_class == made.node)
        out.push_back(step);
    }
  return out;
}

// Some Trainer has precision=16, "16" or "16-mixed", which scales the loss.
bool scales_losses(const Program& program) {
  const auto uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [&](const trainer::Use& use) {
    const trainer::Argument* precision = use.find("precision");
    if (precision == nullptr) return false;
    const auto values = trainer::choices(program, *precision);
    return std::any_of(values.begin(), values.end(), [](const diagnose::Value& value) {
      return (value.is_integer() && value.integer == 16) ||
             (value.is_string() && (value.string == "16" || value.string == "16-mixed"));
    });
  });
}

// if self.trainer.world_size == 1 and ..., and below if not is_initialized(): of runs without
// ranks.
bool counts_processes(const Guard& guard) {
  const std::string_view text = guard.condition.text();
  return facts::contains(text, "world_size") || facts::contains(text, "num_devices") ||
         facts::contains(text, "is_initialized");
}

// A pass back through a loss of zero, above the return in the same branch.
bool passes_back_before(const std::vector<CallRef>& calls, const Guard& guard, Ref statement) {
  const auto& tree = statement.module->tree();
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->name.ends_with("backward") && call.call->node < statement.node &&
           tree.contains(tree[guard.condition.node].parent, call.call->node);
  });
}

std::vector<Ref> skipped_lightning_steps(const Program& program) {
  std::vector<Ref> out;
  if (!runs_steps_in_several(program)) return out;
  for (const FunctionRef& step : lightning_steps(program)) {
    const bool by_hand =
        optimizes_by_hand(program.enclosing_class({step.module, step.function->body}));
    const auto calls = calls_of_step(step);
    for (const NodeId node : step.module->nodes_of(Kind::return_statement)) {
      const Ref statement{step.module, node};
      if (program.enclosing_function(statement) != step || !returns_nothing(statement) ||
          (by_hand && !has_call_behind(calls, node, "backward")) ||
          may_agree(program, calls, statement))
        continue;
      const auto guards = program.guards(statement);
      if (std::none_of(guards.begin(), guards.end(), counts_processes) &&
          std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
            return is_of_own_batch(guard, statement) &&
                   !passes_back_before(calls, guard, statement);
          }))
        out.push_back(statement);
    }
  }
  return out;
}

}  // namespace

void check_lightning_steps(const Program& program, Report& report) {
  for (const Ref statement : skipped_lightning_steps(program)) {
    Finding& finding =
        report.at(statement, Confidence::likely,
                  "training_step() leaves out the backward pass on a loss that only this rank "
                  "sees: the other ranks wait for it in the reduction of their gradients");
    finding.severity = Severity::warning;  // the Trainer may run as one process
    finding.help =
        "All-reduce the condition first, so that every rank decides alike; or zero the loss and "
        "go on with it.";
  }
}

std::vector<CallRef> manual_clips_of_scaled(const Program& program) {
  std::vector<CallRef> out;
  const auto clips = program.calls(Api::clip_grad);
  if (clips.empty() || !scales_losses(program)) return out;
  for (const CallRef& clip : clips) {
    const ClassRef cls = program.enclosing_class(clip.ref());
    const FunctionRef function = program.enclosing_function(clip.ref());
    if (!cls || !function || !program.derives_from(cls, Api::lightning_module) ||
        !optimizes_by_hand(cls) || facts::contains(cls.module->text(cls.cls->node), "unscale"))
      continue;
    const auto calls = calls_of_step(function);
    const bool scaled = std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
      return call.call->name == "manual_backward" && call.call->node < clip.call->node &&
             !facts::exclusive(call.ref(), clip.ref());
    });
    if (scaled && has_call_behind(calls, clip.call->node, "step")) out.push_back(clip);
  }
  return out;
}

}  // namespace bench::pitfalls
