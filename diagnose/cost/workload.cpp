#include "diagnose/cost/workload.hpp"

#include "diagnose/cost/trained_model.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

namespace facts = pitfalls::facts;

std::int64_t batch_of(const Program& program) {
  std::set<std::int64_t> found;
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    if (pitfalls::is_evaluation_loader(program, loader)) continue;
    found.insert(program.integer(loader.argument(1, "batch_size")).value_or(0));
  }
  return found.size() == 1 ? std::max<std::int64_t>(0, *found.begin()) : 0;
}

// The only number that is said, 0 where several are. One GPU of a line for a trial run says less
// than the several of another.
std::int64_t agreed(std::set<std::int64_t> found) {
  if (found.size() > 1) found.erase(1);
  return found.size() == 1 ? *found.begin() : 0;
}

// What the script itself fixes, however it is started: device_ids=[0, 1], mp.spawn(nprocs=4).
std::int64_t gpus_of_script(const Program& program) {
  std::set<std::int64_t> found;
  for (const CallRef& spawn : program.calls(Api::spawn))
    if (const auto processes = program.integer(spawn.argument(2, "nprocs"));
        processes && *processes > 0)
      found.insert(*processes);
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::data_parallel)
      if (const auto ids = facts::device_ids(program, wrap.call); !ids.empty())
        found.insert(static_cast<std::int64_t>(ids.size()));
  return agreed(std::move(found));
}

// The GPUs of a launch line, where it says. One process of a plain `python train.py` may use any
// number of them, unless CUDA_VISIBLE_DEVICES stands in front.
std::int64_t gpus_of_line(const LaunchLine& launch) {
  const auto visible = launch.visible_devices();
  const auto processes = launch.processes_per_node();
  if (launch.launcher != Launcher::python && processes && *processes > 0)
    return *processes * launch.nodes().value_or(1);
  return std::max<std::int64_t>(0, visible.value_or(0));
}

std::int64_t gpus_of(const Program& program) {
  if (program.gpus()) return *program.gpus();
  if (const std::int64_t fixed = gpus_of_script(program); fixed > 0) return fixed;
  std::set<std::int64_t> found;
  for (const LaunchLine& launch : program.launches())
    if (const std::int64_t gpus = gpus_of_line(launch); gpus > 0) found.insert(gpus);
  if (!found.empty()) return agreed(std::move(found));
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
  TrainedModel trained = trained_model(program);
  out.model = std::move(trained.model);
  out.own_class = std::move(trained.own_class);
  out.batch = batch_of(program);
  out.gpus = gpus_of(program);
  out.accumulation = accumulation_of(program);
  out.bucket_cap_mb = bucket_of(program);
  return out;
}

}  // namespace bench::diagnose
