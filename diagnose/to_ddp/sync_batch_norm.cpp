#include "diagnose/to_ddp/sync_batch_norm.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

bool runs_callbacks(const Module& module, const Function& function) {
  const auto calls = pitfalls::facts::calls_in({&module, function.body});
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return call.call->name == "execute_replication_callbacks";
  });
}

// sync_batchnorm/batchnorm.py, lib.nn.modules.batchnorm.convert_model
bool is_of_package(std::string_view path) { return contains(path, "batchnorm"); }

// mod = SynchronizedBatchNorm2d(module.num_features)
bool makes_synchronised(const FunctionRef& function) {
  const auto calls = pitfalls::facts::calls_in({function.module, function.function->body});
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return call.call->name.starts_with("SynchronizedBatchNorm");
  });
}

// from sync_batchnorm import convert_model, whether its file is at hand or not; a momentum beside
// the model is of no such function.
bool converts_layers(const Program& program, const CallRef& call) {
  if (call.has_splat() || pitfalls::facts::arguments_of(call).size() != 1) return false;
  const FunctionRef callee = program.callee(call);
  if (!callee) return is_of_package(call.call->path);
  return program.enclosing_function(call.ref()) != callee &&
         (makes_synchronised(callee) ||
          (is_of_package(callee.module->path()) &&
           contains(callee.module->tree().text(callee.function->body), "SynchronizedBatchNorm")));
}

// model of model = DataParallel(model) for patch_replication_callback(model), in the same branch.
bool is_callback_of(const Program& program, const CallRef& callback, const Wrap& wrap) {
  if (wrap.kind != Wrapper::data_parallel || callback.module != wrap.call.module ||
      callback.positional(0).text() != program.assigned_name(wrap.call.ref()))
    return false;
  const auto around = program.guards(wrap.call.ref());
  const auto guards = program.guards(callback.ref());
  return std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return std::find(around.begin(), around.end(), guard) != around.end();
  });
}

}  // namespace

bool only_runs_callbacks(const Program& program, const ClassRef& own) {
  if (!own || program.lineage(own).size() != 1 || !program.derives_from(own, Api::data_parallel))
    return false;
  bool any = false;
  for (const Function& each : own.module->functions()) {
    if (each.owner_class != own.cls->node) continue;
    if (each.name != "replicate" || !runs_callbacks(*own.module, each)) return false;
    any = true;
  }
  return any;
}

bool is_of_old_sync(const Program& program, const Module& file) {
  const std::string_view text = file.tree().source();
  return &file != &program.root() && (contains(text, "class _SynchronizedBatchNorm(") ||
                                      contains(text, "def execute_replication_callbacks("));
}

bool wraps_again(const Program& program, const Wrap& wrap) {
  return program.under(wrap.call.ref(), [](Ref condition, bool holds) {
    const std::string_view text = condition.text();
    return holds && text.starts_with("isinstance(") && contains(text, "DataParallel");
  });
}

OldSync old_sync_of(const ReachedCode& reached) {
  const Program& program = reached.program();
  OldSync out;
  const auto& wraps = program.wraps();
  for (const CallRef& call : program.calls_named("patch_replication_callback"))
    if (call.positional(0) && reached.comes_by(call.ref()) &&
        std::any_of(wraps.begin(), wraps.end(),
                    [&](const Wrap& wrap) { return is_callback_of(program, call, wrap); }))
      out.callbacks.push_back(call);
  for (const CallRef& call : program.calls_named("convert_model"))
    if (call.positional(0) && reached.comes_by(call.ref()) && converts_layers(program, call))
      out.conversions.push_back(call);
  return out;
}

bool synchronises(const Program& program, const Wrap& wrap, const OldSync& old) {
  if (wrap.own) return only_runs_callbacks(program, wrap.own);
  return std::any_of(old.callbacks.begin(), old.callbacks.end(), [&](const CallRef& callback) {
    return is_callback_of(program, callback, wrap);
  });
}

}  // namespace bench::diagnose
