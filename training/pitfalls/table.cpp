#include "training/pitfalls/table.hpp"

#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr ExperimentRow kExperiments[] = {
    {"batch-not-divisible-by-gpus", batch_not_divisible_by_gpus},
    {"missing-set-epoch", missing_set_epoch},
    {"uneven-batches-per-rank", uneven_batches_per_rank},
    {"unused-parameters", unused_parameters},
};

}  // namespace

std::span<const ExperimentRow> experiments() { return kExperiments; }

const ExperimentRow* find_experiment(std::string_view rule) {
  for (const ExperimentRow& row : kExperiments)
    if (row.rule == rule) return &row;
  return nullptr;
}

}  // namespace bench::training
