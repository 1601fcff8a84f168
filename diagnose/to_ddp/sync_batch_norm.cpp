#include "diagnose/to_ddp/sync_batch_norm.hpp"

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

// from sync_batchnorm import convert_model, whether its file is at hand or not.
bool converts_layers(const Program& program, const CallRef& call) {
  const FunctionRef callee = program.callee(call);
  if (!callee) return contains(call.call->path, "sync_batchnorm");
  return contains(callee.module->tree().text(callee.function->body), "SynchronizedBatchNorm") &&
         program.enclosing_function(call.ref()) != callee;
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
