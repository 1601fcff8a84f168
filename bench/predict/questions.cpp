#include "bench/predict/questions.hpp"

#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/plan/batch_rules.hpp"
#include "bench/plan/ddp_sweep.hpp"
#include "bench/plan/machine_flag.hpp"
#include "bench/plan/model_choice.hpp"

#include <set>

namespace bench {
namespace {

class Asker {
 public:
  Asker(const PredictRequest& request, const std::vector<simulator::Machine>& machines)
      : request_(request), settings_(request.settings), machines_(machines) {}

  std::vector<Question> ask() {
    for (const std::string& model : settings_.models) {
      const ModelSpec spec = choose_model(model, settings_);
      for (std::size_t machine = 0; machine < machines_.size(); ++machine) {
        for (const Strategy strategy : settings_.strategies) {
          for (const int gpus : counts(strategy, machines_[machine])) {
            ask_of(spec, machine, strategy, gpus);
          }
        }
      }
    }
    return std::move(questions_);
  }

 private:
  // DataParallel is one process, so that "all" means the GPUs of one node.
  std::vector<int> counts(Strategy strategy, const simulator::Machine& machine) const {
    if (strategy == Strategy::single) return {1};
    const int all = strategy == Strategy::distributed ? machine.gpu_count() : machine.node.gpus;
    std::set<int> chosen;
    switch (settings_.gpu_count_rule) {
      case GpuCountRule::all:
        chosen.insert(all);
        break;
      case GpuCountRule::powers:
        for (int count = 1; count < all; count *= 2) chosen.insert(count);
        chosen.insert(all);
        break;
      case GpuCountRule::listed:
        chosen.insert(settings_.gpu_counts.begin(), settings_.gpu_counts.end());
        break;
    }
    return {chosen.begin(), chosen.end()};
  }

  std::vector<std::int64_t> batches(int gpus) const {
    std::vector<std::int64_t> all = settings_.batches;
    for (const std::int64_t per_gpu : settings_.batches_per_gpu) all.push_back(per_gpu * gpus);
    return all;
  }

  void ask_of(const ModelSpec& model, std::size_t machine, Strategy strategy, int gpus) {
    Case work;
    work.scenario = settings_.scenario;
    work.model = model;
    work.strategy = strategy;
    work.gpus.clear();
    for (int i = 0; i < gpus; ++i) work.gpus.push_back(i);
    work.optimizer = settings_.optimizer;
    work.host = settings_.host;
    work.machine = machines_[machine].name;
    work.seed = settings_.seed;
    for (const int accumulation : settings_.accumulations) {
      work.accumulation = accumulation;
      for (const std::int64_t batch : batches(gpus)) {
        work.batch = batch;
        for (Case& variant : ddp_variants(work, settings_)) add(std::move(variant), machine);
      }
    }
  }

  void add(Case work, std::size_t machine) {
    Question question;
    question.cannot = obstacle(work, machines_[machine]);
    const std::size_t listed = request_.rank_speeds.size();
    if (!question.cannot && work.strategy == Strategy::distributed &&
        listed > static_cast<std::size_t>(work.world_size())) {
      question.cannot = "--rank-speeds lists " + std::to_string(listed) + " ranks, this has " +
                        std::to_string(work.world_size());
    }
    question.machine = machine;
    question.work = std::move(work);
    for (const auto precision : request_.precisions) {
      for (const auto hook : request_.hooks) {
        if (hook != request_.hooks.front() && question.work.strategy != Strategy::distributed) {
          continue;
        }
        question.precision = precision;
        question.hook =
            question.work.strategy == Strategy::distributed ? hook : simulator::BucketHook::none;
        questions_.push_back(question);
      }
    }
  }

  static std::optional<std::string> obstacle(const Case& work, const simulator::Machine& machine) {
    const int gpus = work.world_size();
    if (gpus > machine.gpu_count()) {
      return "needs " + std::to_string(gpus) + " GPUs, " + machine.name + " has " +
             std::to_string(machine.gpu_count());
    }
    const bool one_process = work.strategy != Strategy::distributed;
    if (one_process && gpus > machine.node.gpus) {
      return std::string(strategy_name(work.strategy)) + " is one process: it reaches the " +
             std::to_string(machine.node.gpus) + " GPUs of one node, not " + std::to_string(gpus);
    }
    if (auto problem = batch_problem(work)) return problem;
    if (!batch_per_gpu(work)) {
      return "batch " + std::to_string(work.batch) + " does not divide by " + std::to_string(gpus) +
             " GPUs";
    }
    return std::nullopt;
  }

  const PredictRequest& request_;
  const Settings& settings_;
  const std::vector<simulator::Machine>& machines_;
  std::vector<Question> questions_;
};

}  // namespace

Case Question::single() const {
  Case single = work;
  single.strategy = Strategy::single;
  single.gpus = {0};
  single.batch = work.batch / work.world_size();
  single.ddp = {};
  single.no_sync = true;
  single.tags.clear();
  return single;
}

std::vector<simulator::Machine> load_machines(const PredictRequest& request) {
  if (request.machines.empty()) {
    throw UsageError(
        "--machine: expected the machine to predict for: a name of `bench list machines`, "
        "4xv100-sxm2, 16xdgx-a100, or a TOML file");
  }
  std::vector<simulator::Machine> machines;
  for (const std::string& name : request.machines) {
    machines.push_back(machine_of_flag(name));
    if (request.rank_speeds.empty() || machines.back().groups.empty()) continue;
    throw UsageError("--rank-speeds: " + name +
                     " lists nodes of several kinds, which have speeds of their own");
  }
  return machines;
}

std::vector<Question> questions(const PredictRequest& request,
                                const std::vector<simulator::Machine>& machines) {
  return Asker(request, machines).ask();
}

}  // namespace bench
