// Code that still expects DataParallel, or that takes the wrapper's effect away.
#include "diagnose/to_ddp/gpu_flags.hpp"
#include "diagnose/to_ddp/launch_flags.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/trains.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// torch.cuda.device_count() > 1, n_gpu > 1 after n_gpu = torch.cuda.device_count(), and what is
// written as true.
bool holds_with_gpus(const Program& program, Ref condition) {
  const auto says_so = [](const std::string& text) {
    return contains(text, "device_count") || contains(text, "is_available");
  };
  const auto& tree = condition.module->tree();
  for (NodeId node = condition.node; node < tree[condition.node].last; ++node) {
    const Ref part{condition.module, node};
    if ((part.kind() == Kind::identifier || part.kind() == Kind::attribute) &&
        says_so(pitfalls::text_behind(program, part)))
      return true;
  }
  return says_so(std::string(condition.text())) || program.evaluate(condition).is_true();
}

// args.multi_gpu, len(gpu_ids) > 1: what a run chooses, alone or in one part of an `and`.
bool is_option(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  if (condition.kind() == Kind::boolean && tree[condition.node].op == Op::logical_and) {
    for (NodeId part = tree[condition.node].first_child; part != kNoNode;
         part = tree[part].next_sibling)
      if (is_option(program, condition.with(part))) return true;
    return false;
  }
  const std::string text = lowered(condition.text());
  const bool speaks_of_gpus = contains(text, "gpu") || contains(text, "parallel") ||
                              contains(text, "distributed") || contains(text, "multi");
  return speaks_of_gpus && !contains(text, "isinstance") && !contains(text, "rank") &&
         !asks_for_group(program, condition) && !holds_with_gpus(program, condition) &&
         launch_flag_of(program, condition).empty();
}

// if not dist.is_initialized(): a step has put the call there.
bool is_without_group(const Program& program, Ref node) {
  return program.under(node, [](Ref condition, bool holds) {
    return holds && condition.text().starts_with("not ") &&
           contains(condition.text(), "is_initialized(");
  });
}

// DDP(net) if dist.is_initialized() else DataParallel(net)
bool is_for_runs_without_group(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
    return !guard.holds && contains(guard.condition.text(), "is_initialized()");
  });
}

// DataParallel(net, device_ids=[local_rank]), which runs net as it is.
bool is_on_one_gpu(const Wrap& wrap) {
  const Ref ids = wrap.call.argument(1, "device_ids");
  if (!ids || !ids.text().starts_with("[")) return false;
  const std::string_view list = ids.text().substr(0, ids.text().find(']'));
  return list.size() > 1 && list.find(',') == std::string_view::npos &&
         list.find(" for ") == std::string_view::npos && list.find('*') == std::string_view::npos;
}

// Ranks come by, and would use the GPUs of all others.
bool keeps_data_parallel(const Program& program, const Wrap& wrap) {
  return wrap.kind == Wrapper::data_parallel && !is_on_one_gpu(wrap) &&
         !is_for_runs_without_group(program, wrap.call.ref());
}

bool is_wrapped_otherwise(const Program& program, const Wrap& wrap) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& other) {
    return &other != &wrap && other.kind == Wrapper::ddp &&
           pitfalls::facts::exclusive(wrap.call.ref(), other.call.ref());
  });
}

// The expression names DataParallel, and not DDP beside it.
bool asks_for_data_parallel(Ref expression) {
  bool asks = false;
  const auto& tree = expression.module->tree();
  for (NodeId node = expression.node; node < tree[expression.node].last; ++node) {
    const Kind kind = tree[node].kind;
    if (kind != Kind::identifier && kind != Kind::attribute) continue;
    const Api api = expression.module->api(node);
    if (api == Api::ddp) return false;
    asks = asks || api == Api::data_parallel;
  }
  return asks;
}

// On whatever rank; the callback of the old SyncBatchNorm is told by itself.
bool is_asked(const Left& left, Ref test) {
  const FunctionRef function = left.program.enclosing_function(test);
  return left.is_run(test) &&
         !(function && function.function->name == "patch_replication_callback");
}

// else of `if len(gpu_ids) > 0 and torch.cuda.is_available()`, and not of `if n_gpu > 1`.
bool is_without_gpus(const Program& program, Ref node) {
  return program.under(node, [](Ref condition, bool holds) {
    return !holds && pitfalls::says_any(condition.text(), {"gpu", "cuda"}) &&
           !pitfalls::holds_any(condition.text(), {"> 1", ">1"});
  });
}

bool moves_to_cpu(const Program& program, const CallRef& call) {
  if (call.call->name == "cpu") return true;
  return call.call->name == "to" && program.string(call.argument(0, "device")) == "cpu";
}

// Tests of the model or the data, which choose no run without ranks and no evaluation.
bool chooses_model(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return !guards.empty() && std::none_of(guards.begin(), guards.end(), [](const Guard& guard) {
    return pitfalls::says_any(
        guard.condition.text(),
        {"gpu", "cuda", "cpu", "parallel", "distributed", "rank", "train", "test", "eval", "phase",
         "mode", "is_initialized", "none", "isinstance", "resume", "multi", "device"});
  });
}

// net = Small() in another branch than net = DDP(net), and no wrapper for it below both.
std::vector<Ref> bare_branches(const Program& program, const Wrap& wrap) {
  std::vector<Ref> out;
  const Ref made = wrap.call.ref();
  const std::string_view name = program.assigned_name(made);
  if (name.empty() || !chooses_model(program, made)) return out;
  const auto& tree = made.module->tree();
  for (const Def& def : made.module->defs()) {
    const Ref value{made.module, def.value};
    if (def.value == kNoNode || tree.text(def.target) != name || value.kind() != Kind::call ||
        program.enclosing_function(value) != program.enclosing_function(made) ||
        !pitfalls::facts::exclusive(value, made) || contains(value.text(), name))
      continue;
    const auto& wraps = program.wraps();
    if (std::none_of(wraps.begin(), wraps.end(), [&](const Wrap& other) {
          return other.call.module == made.module &&
                 program.assigned_name(other.call.ref()) == name &&
                 !pitfalls::facts::exclusive(value, other.call.ref());
        }))
      out.push_back(value);
  }
  return out;
}

}  // namespace

bool wraps_in_data_parallel(const Left& left) {
  const auto& wraps = left.program.wraps();
  return !left.program.calls(Api::data_parallel_function).empty() ||
         std::any_of(wraps.begin(), wraps.end(),
                     [&](const Wrap& wrap) { return keeps_data_parallel(left.program, wrap); });
}

void tell_bare_branches(Left& left) {
  for (const Wrap& wrap : left.program.wraps()) {
    if (wrap.kind != Wrapper::ddp || !left.runs_on_every_rank(wrap.call.ref())) continue;
    const std::string name(left.program.assigned_name(wrap.call.ref()));
    left.tell(Harm::stops, bare_branches(left.program, wrap),
              "`" + name +
                  "` stays without a wrapper where this is chosen, and only another branch "
                  "wraps it (" +
                  place_of(wrap.call.ref()) +
                  "): in such a run every rank trains a model of its own. Wrap `" + name +
                  "` below the branches, in any case.");
  }
}

void tell_optional_wrapper(Left& left) {
  for (const Wrap& wrap : left.program.wraps()) {
    if (wrap.kind != Wrapper::ddp || is_wrapped_otherwise(left.program, wrap)) continue;
    for (const Guard& guard : left.program.guards(wrap.call.ref())) {
      if (!is_option(left.program, guard.condition)) continue;
      left.tell(
          Harm::stops, {wrap.call.ref()},
          "the wrapper stands under `" + std::string(guard.condition.text()) + "`" +
              (guard.holds ? "" : " as its other branch") +
              ": in a run that does not come here every rank trains a model of its own. Start "
              "with the options that lead here, or wrap in any case.");
      break;
    }
  }
}

void tell_type_tests(Left& left) {
  std::vector<Ref> places;
  for (const CallRef& test : left.program.calls_named("isinstance"))
    if (const Ref asked = test.positional(1);
        asked && asks_for_data_parallel(asked) && is_asked(left, test.ref()))
      places.push_back(test.ref());
  for (const Module* module : left.program.modules()) {
    if (!module->tree().holds("DataParallel")) continue;
    for (const NodeId node : module->nodes_of(Kind::comparison)) {
      const Ref test{module, node};
      const bool by_name =
          contains(test.text(), "__name__") &&
          (contains(test.text(), "'DataParallel'") || contains(test.text(), "\"DataParallel\""));
      const bool by_type = contains(test.text(), "type(") && asks_for_data_parallel(test);
      if ((by_name || by_type) && is_asked(left, test)) places.push_back(test);
    }
  }
  left.tell(
      Harm::stops, places,
      "this asks for DataParallel, and a model in DistributedDataParallel is none: what ran for "
      "the wrapped model runs no more. Ask for DistributedDataParallel.");
}

void tell_needs_of_data_parallel(Left& left) {
  const Program& program = left.program;
  std::vector<Ref> callbacks;
  for (const CallRef& call : program.calls_named("patch_replication_callback"))
    if (left.runs_on_every_rank(call.ref()) && !is_without_group(program, call.ref()))
      callbacks.push_back(call.ref());
  left.tell(Harm::stops, callbacks,
            "this call takes a DataParallel and raises AssertionError for a model in DDP. Drop it, "
            "and use SyncBatchNorm.convert_sync_batchnorm(model) before wrapping.");
  std::vector<Ref> wrappers;
  for (const Wrap& wrap : program.wraps())
    if (keeps_data_parallel(program, wrap) && left.runs_on_every_rank(wrap.call.ref()))
      wrappers.push_back(wrap.call.ref());
  for (const CallRef& call : program.calls(Api::data_parallel_function))
    if (left.runs_on_every_rank(call.ref())) wrappers.push_back(call.ref());
  left.tell(
      Harm::stops, wrappers,
      "this is still DataParallel: every rank would copy the module to the GPUs of all others. "
      "Wrap it in DistributedDataParallel on the GPU of the rank, or leave it bare where "
      "nothing trains it.");
}

void tell_moves_to_cpu(Left& left) {
  std::vector<Ref> places;
  for (const std::string_view name : {"cpu", "to"})
    for (const CallRef& call : left.program.calls_named(name)) {
      const Ref object = call.receiver();
      if (!object || (object.kind() != Kind::identifier && object.kind() != Kind::attribute) ||
          !moves_to_cpu(left.program, call))
        continue;
      const Wrap* const around = pitfalls::wrapper_of_inner(left.program, object);
      if ((left.program.is_wrapped(object, Wrapper::ddp) ||
           (around != nullptr && around->kind == Wrapper::ddp)) &&
          left.is_run(call.ref()) && !is_without_gpus(left.program, call.ref()) &&
          is_before_training(left.program, call.ref()))
        places.push_back(call.ref());  // rank 0 alone would lose its hooks there
    }
  left.tell(
      Harm::stops, places,
      "the wrapped model moves to the CPU here and trains on afterwards: DDP's hooks are lost, "
      "and gradients are not averaged any more. Save a copy of its state_dict() instead.");
}

}  // namespace bench::diagnose
