#include "diagnose/cost/workload.hpp"

#include "bench/core/model_catalog.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

// The last component of torchvision.models.resnet50, where the catalogue has that model.
std::string zoo_name(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  return find_model(last) != nullptr ? std::string(last) : std::string();
}

// Functions that build a model from its name.
bool builds_by_name(std::string_view qualified) {
  static constexpr auto kBuilders =
      std::to_array<std::string_view>({"timm.create_model", "torchvision.models.get_model",
                                       "torch.hub.load", "timm.models.create_model"});
  return std::find(kBuilders.begin(), kBuilders.end(), qualified) != kBuilders.end();
}

// models.__dict__[args.arch](), and a builder with a literal or default name.
std::string model_built_by(const Program& program, const CallRef& call) {
  const Ref function{call.module, call.call->function};
  if (function.kind() == Kind::subscript) {
    const Ref object = function.child(Field::value);
    if (!object.text().ends_with("models.__dict__")) return {};
    return zoo_name(program.string(function.child(Field::subscript)).value_or(""));
  }
  const std::string name = program.qualified(function);
  if (name.starts_with("torchvision.models.")) {
    if (const std::string model = zoo_name(name); !model.empty()) return model;
  }
  if (!builds_by_name(name)) return {};
  for (std::size_t i = 0; i < 2; ++i)
    if (const auto text = program.string(call.positional(i)))
      if (const std::string model = zoo_name(*text); !model.empty()) return model;
  return {};
}

std::string model_of(const Program& program) {
  std::set<std::string> found;
  for (const Module* module : program.modules())
    for (const Call& call : module->calls())
      if (std::string model = model_built_by(program, {module, &call}); !model.empty())
        found.insert(std::move(model));
  return found.size() == 1 ? *found.begin() : std::string();
}

// The one class of the program that is wrapped or is a LightningModule; empty: none, or several.
std::string own_class_of(const Program& program) {
  std::set<std::string> found;
  for (const Wrap& wrap : program.wraps())
    for (const ClassRef& cls : wrap.classes) found.emplace(cls.cls->name);
  if (found.empty())
    for (const Module* module : program.modules())
      for (const Class& cls : module->classes())
        if (program.derives_from({module, &cls}, Api::lightning_module)) found.emplace(cls.name);
  return found.size() == 1 ? *found.begin() : std::string();
}

std::int64_t batch_of(const Program& program) {
  std::set<std::int64_t> found;
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    if (pitfalls::is_evaluation_loader(program, loader)) continue;
    found.insert(program.integer(loader.argument(1, "batch_size")).value_or(0));
  }
  return found.size() == 1 ? std::max<std::int64_t>(0, *found.begin()) : 0;
}

std::int64_t gpus_of(const Program& program) {
  for (const LaunchLine& launch : program.launches())
    if (const auto processes = launch.processes_per_node(); processes && *processes > 0)
      return *processes * launch.nodes().value_or(1);
  for (const CallRef& spawn : program.calls(Api::spawn))
    if (const auto processes = program.integer(spawn.argument(2, "nprocs")); processes)
      return std::max<std::int64_t>(0, *processes);
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::data_parallel)
      if (const auto ids = facts::device_ids(program, wrap.call); !ids.empty())
        return static_cast<std::int64_t>(ids.size());
  return std::max<std::int64_t>(0, facts::visible_gpus(program).value_or(0));
}

// k of `if (i + 1) % k == 0:` around optimizer.step().
std::int64_t accumulation_of(const Program& program) {
  for (const CallRef& step : program.calls_named("step"))
    for (const Guard& guard : program.guards(step.ref())) {
      const Module& module = *guard.condition.module;
      for (const NodeId node : module.nodes_of(Kind::binary)) {
        if (!module.tree().contains(guard.condition.node, node) || module[node].op != Op::modulo)
          continue;
        const auto k = program.integer({&module, module.tree().child(node, Field::right)});
        if (k && *k > 1) return *k;
      }
    }
  return 0;
}

std::optional<double> bucket_of(const Program& program) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    const Value cap = program.evaluate(wrap.call.keyword("bucket_cap_mb"));
    if (cap.is_integer()) return static_cast<double>(cap.integer);
    if (cap.type == Value::Type::number) return cap.number;
  }
  return std::nullopt;
}

}  // namespace

Workload workload_of(const Program& program) {
  Workload out;
  // A class of the script around one model of the catalogue is taken for that model, by its name.
  out.model = model_of(program);
  if (out.model.empty()) out.own_class = own_class_of(program);
  out.batch = batch_of(program);
  out.gpus = gpus_of(program);
  out.accumulation = accumulation_of(program);
  out.bucket_cap_mb = bucket_of(program);
  return out;
}

}  // namespace bench::diagnose
