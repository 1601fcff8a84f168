#include "bench/plan/expand.hpp"

#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/plan/batch_rules.hpp"
#include "bench/plan/ddp_sweep.hpp"
#include "bench/plan/model_choice.hpp"
#include "bench/plan/setting_values.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

namespace bench {
namespace {

class Expander {
 public:
  Expander(const Settings& settings, const Devices& devices, const std::vector<int>& gpus)
      : settings_(settings), devices_(devices), gpus_(gpus) {}

  std::vector<PlannedCase> cases() {
    for (const ModelSpec& spec : models()) {
      for (const int count : all_counts()) {
        for (const Strategy strategy : settings_.strategies) {
          const auto counts = gpu_counts(settings_, strategy, available());
          if (std::find(counts.begin(), counts.end(), count) == counts.end()) continue;
          add_batches(base_case(spec, strategy, count), count);
        }
      }
    }
    return std::move(cases_);
  }

 private:
  int available() const { return static_cast<int>(gpus_.size()); }

  // Cases are told apart by the model's name, so two files must not share a stem.
  std::vector<ModelSpec> models() const {
    std::vector<ModelSpec> specs;
    for (const std::string& model : settings_.models) {
      ModelSpec spec = choose_model(model, settings_);
      for (const ModelSpec& other : specs) {
        if (other.name != spec.name) continue;
        throw UsageError("--model: '" + model + "' would share the name '" + spec.name +
                         "' with another model; rename the file");
      }
      specs.push_back(std::move(spec));
    }
    return specs;
  }

  std::vector<int> all_counts() const {
    std::set<int> counts;
    for (const Strategy strategy : settings_.strategies) {
      for (const int count : gpu_counts(settings_, strategy, available())) counts.insert(count);
    }
    return {counts.begin(), counts.end()};
  }

  Case base_case(const ModelSpec& model, Strategy strategy, int count) const {
    Case work;
    work.scenario = settings_.scenario;
    work.model = model;
    work.strategy = strategy;
    // A count beyond the devices becomes a skip; it still needs a world size in its name.
    work.gpus = gpus_;
    while (work.world_size() < count) work.gpus.push_back(work.gpus.back() + 1);
    work.gpus.resize(static_cast<std::size_t>(count));
    work.optimizer = settings_.optimizer;
    work.data = settings_.data;
    work.data_workers = settings_.data_workers;
    work.device = devices_.kind;
    work.execute = devices_.kind == DeviceKind::vgpu ? settings_.execute : Execute::numeric;
    work.host = settings_.host;
    work.machine = devices_.machine;
    work.device_memory_bytes = devices_.memory_bytes;
    work.steps = settings_.steps;
    work.warmup = settings_.warmup;
    work.seed = settings_.seed;
    return work;
  }

  void add_batches(const Case& base, int count) {
    for (const int accumulation : settings_.accumulations) {
      Case work = base;
      work.accumulation = accumulation;
      if (settings_.searches()) {
        add_search(work);
        continue;
      }
      for (const std::int64_t batch : settings_.batches) add(with_batch(work, batch));
      for (const std::int64_t batch : settings_.batches_per_gpu) {
        add(with_batch(work, batch * count));
      }
    }
  }

  static Case with_batch(Case work, std::int64_t batch) {
    work.batch = batch;
    return work;
  }

  void add_search(const Case& base) {
    const std::int64_t multiple = std::int64_t{base.world_size()} * base.accumulation;
    const Case work =
        with_batch(base, settings_.search_lowest_per_gpu * base.world_size() * base.accumulation);
    for (Case& variant : ddp_variants(work, settings_)) {
      PlannedCase planned{std::move(variant), problem(work), std::nullopt};
      planned.search =
          BatchSearch{work.batch, settings_.search_highest_per_gpu * multiple, multiple};
      push(std::move(planned));
    }
  }

  void add(const Case& work) {
    const auto skip = problem(work);
    if (skip && asked_directly(work)) throw UsageError("--batch: " + skip->reason);
    if (!skip) add_references(work);
    for (Case& variant : ddp_variants(work, settings_)) push({std::move(variant), skip, {}});
  }

  // One value on every axis and all the GPUs: not a point of a sweep but the request itself.
  bool asked_directly(const Case& work) const {
    return settings_.batches.size() + settings_.batches_per_gpu.size() == 1 &&
           settings_.accumulations.size() == 1 && work.world_size() == available() &&
           batch_problem(work);
  }

  std::optional<Skip> problem(const Case& work) const {
    if (work.world_size() > available()) {
      return Skip{"needs " + std::to_string(work.world_size()) + " GPUs, --gpus selects " +
                  std::to_string(available())};
    }
    const bool parallel = work.strategy == Strategy::data_parallel ||
                          work.strategy == Strategy::libtorch_data_parallel;
    if (parallel && devices_.kind == DeviceKind::cpu) {
      return Skip{std::string(strategy_name(work.strategy)) +
                  " needs GPUs, real or virtual; --device cpu has none"};
    }
    if (const auto reason = batch_problem(work)) return Skip{*reason};
    return std::nullopt;
  }

  // The same model on one GPU with the same batch per GPU (scaling efficiency) and with the same
  // global batch (speed-up); a reference that the plan already has is not run twice.
  void add_references(const Case& work) {
    if (work.strategy == Strategy::single) return;
    Case reference = work;
    reference.strategy = Strategy::single;
    reference.gpus.resize(1);
    reference.reference_only = true;
    if (const auto batch = batch_per_gpu(work)) add_reference(with_batch(reference, *batch));
    add_reference(reference);
  }

  void add_reference(const Case& reference) {
    if (batch_problem(reference)) return;
    push({ddp_variants(reference, settings_).front(), std::nullopt, {}});
  }

  void push(PlannedCase planned) {
    const auto [known, fresh] = index_.try_emplace(planned.work.name(), cases_.size());
    if (fresh) {
      cases_.push_back(std::move(planned));
    } else if (!planned.work.reference_only) {
      cases_[known->second].work.reference_only = false;
    }
  }

  const Settings& settings_;
  const Devices& devices_;
  const std::vector<int>& gpus_;
  std::vector<PlannedCase> cases_;
  std::map<std::string, std::size_t> index_;  // by name
};

void require_consistent(const Settings& settings, const Devices& devices) {
  if (settings.execute_given && settings.execute == Execute::shape &&
      devices.kind != DeviceKind::vgpu) {
    throw UsageError(std::string("--execute shape is for virtual GPUs; --device ") +
                     device_kind_name(devices.kind) + " computes values");
  }
}

}  // namespace

std::vector<int> gpu_counts(const Settings& settings, Strategy strategy, int available) {
  if (strategy == Strategy::single) return {1};
  std::set<int> counts;
  switch (settings.gpu_count_rule) {
    case GpuCountRule::all:
      counts.insert(available);
      break;
    case GpuCountRule::powers:
      // One GPU is single's; the others start at two unless there is only one.
      for (int count = 2; count < available; count *= 2) counts.insert(count);
      counts.insert(available);
      break;
    case GpuCountRule::listed:
      counts.insert(settings.gpu_counts.begin(), settings.gpu_counts.end());
      break;
  }
  return {counts.begin(), counts.end()};
}

Plan make_plan(const Settings& settings, const Devices& devices, const std::vector<int>& gpus) {
  require_consistent(settings, devices);
  Plan plan;
  plan.scenario = settings.scenario;
  plan.description = settings.description;
  plan.machine = devices.machine;
  plan.notes = devices.notes;
  plan.cases = Expander(settings, devices, gpus).cases();
  return plan;
}

}  // namespace bench
