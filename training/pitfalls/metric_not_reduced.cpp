// Each rank takes its own share of the validation data for the whole: the best checkpoint, the
// learning rate and the end of training follow from one share. The validation set is sorted by
// class, so that contiguous shares differ clearly.
#include "training/data/distributed_sampler.hpp"
#include "training/devices/vgpu.hpp"
#include "training/pitfalls/classifier.hpp"
#include "training/pitfalls/state_experiments.hpp"

#include <algorithm>

namespace bench::training {
namespace {

constexpr std::int64_t kMetricTrained = 400;
constexpr std::int64_t kMetricValidated = 800;
constexpr std::int64_t kMetricBatch = 10;
constexpr int kMetricEpochs = 10;
constexpr double kMetricRate = 0.15;  // high: the metric moves up and down

// This rank's share of the samples, sorted by class.
Samples class_share(const Lab& lab, const Samples& all) {
  const at::Tensor order = all.labels.cpu().argsort(/*stable=*/true, 0, false);
  const std::int64_t count = all.count() / lab.world_size();
  std::vector<std::int64_t> mine;
  for (std::int64_t i = 0; i < count; ++i)
    mine.push_back(order[lab.rank() * count + i].item<std::int64_t>());
  return rows(all, mine);
}

struct MetricRun {
  std::unique_ptr<ZooModel> model;
  std::unique_ptr<Distributed> ddp;
  Samples train;
  Samples share;
  DistributedSampler sampler;
};

MetricRun metric_run(const Lab& lab) {
  const Samples validation = fashion_samples(kMetricTrained, kMetricValidated, lab.device());
  auto model = lab.model(classifier(), lab.seed());
  auto ddp = lab.wrap(*model);
  return {std::move(model), std::move(ddp), fashion_samples(0, kMetricTrained, lab.device()),
          class_share(lab, validation),
          DistributedSampler({.length = kMetricTrained,
                              .world_size = lab.world_size(),
                              .rank = lab.rank(),
                              .seed = lab.seed()})};
}

// The accuracy that decides: of this rank's share, or (the cure) of all.
double decisive_metric(Lab& lab, double share) {
  return lab.cured() ? lab.all_reduce_sum(share) / lab.world_size() : share;
}

void best_checkpoint(Lab& lab) {
  MetricRun run = metric_run(lab);
  Json& evidence = lab.evidence();
  std::vector<double> decisive;
  std::vector<double> global;
  for (int epoch = 0; epoch < kMetricEpochs; ++epoch) {
    run.sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    train_epoch(lab, *run.ddp, *run.model, run.train, run.sampler.indices(), kMetricBatch,
                kMetricRate);
    const double share = accuracy(*run.model, run.share);
    decisive.push_back(decisive_metric(lab, share));
    global.push_back(lab.all_reduce_sum(share) / lab.world_size());
  }
  const auto chosen = std::max_element(decisive.begin(), decisive.end()) - decisive.begin();
  evidence["decisive_metric"] = decisive.at(static_cast<std::size_t>(chosen));
  evidence["chosen_epoch"] = chosen;
  evidence["accuracy_of_chosen"] = global.at(static_cast<std::size_t>(chosen));
  evidence["accuracy_of_best"] = *std::max_element(global.begin(), global.end());
}

// ReduceLROnPlateau with patience 0 and factor 0.5.
void plateau(Lab& lab) {
  MetricRun run = metric_run(lab);
  double rate = kMetricRate;
  double best = -1;
  double metric = 0;
  for (int epoch = 0; epoch < kMetricEpochs; ++epoch) {
    run.sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    train_epoch(lab, *run.ddp, *run.model, run.train, run.sampler.indices(), kMetricBatch, rate);
    metric = decisive_metric(lab, accuracy(*run.model, run.share));
    if (metric <= best) rate *= 0.5;
    best = std::max(best, metric);
  }
  Json& evidence = lab.evidence();
  evidence["decisive_metric"] = metric;
  evidence["final_learning_rate"] = rate;
  evidence["weights_after"] = weight_sum(*run.model);
}

// Stops when the accuracy no longer grows; the rank that goes on waits for one that has left.
void early_stop(Lab& lab) {
  MetricRun run = metric_run(lab);
  Json& evidence = lab.evidence();
  double best = -1;
  lab.publish_eagerly();
  for (int epoch = 0; epoch < 2 * kMetricEpochs; ++epoch) {
    evidence["collectives"] = Json::array();  // hundreds of equal all-reduces show nothing here
    lab.phase("epoch " + std::to_string(epoch));
    run.sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    train_epoch(lab, *run.ddp, *run.model, run.train, run.sampler.indices(), kMetricBatch,
                kMetricRate);
    const double metric = decisive_metric(lab, accuracy(*run.model, run.share));
    evidence["decisive_metric"] = metric;
    evidence["epochs_trained"] = epoch + 1;
    const bool stop = metric <= best;
    best = metric;
    // Ranks that stop in the same epoch by chance show nothing: then the search begins anew.
    const bool together =
        !lab.cured() && lab.all_reduce_sum(stop ? 1 : 0) == static_cast<double>(lab.world_size());
    if (stop && !together) break;
    if (together) best = -1;
  }
  lab.publish();
  if (lab.cured()) return;
  lab.phase("after an early stop");
  lab.stay();
}

}  // namespace

void metric_not_reduced(Lab& lab) {
  if (lab.form() == "early-stop") {
    early_stop(lab);
  } else {
    lab.form() == "plateau" ? plateau(lab) : best_checkpoint(lab);
  }
  lab.evidence()["collectives"] = Json::array();
}

}  // namespace bench::training
