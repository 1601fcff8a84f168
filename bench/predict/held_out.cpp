// Leave-one-machine-out: the constants that published rows set, fitted again without one machine.
#include "bench/core/strategy.hpp"
#include "bench/predict/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace bench {
namespace {

using simulator::FittedConstants;
using simulator::Replayed;
using simulator::ReplaySummary;

// Factors on the replication cost that a fit chooses from.
constexpr double kReplicaScales[] = {0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4};

using Rows = std::vector<const ValidationWork*>;

ReplaySummary summary_of(RecordingStore& store, const Rows& rows, const FittedConstants& constants,
                         const std::string& group) {
  std::vector<Replayed> replayed;
  for (const ValidationWork* item : rows) {
    replayed.push_back(simulator::replay(*item->row, *store.graph(item->single),
                                         *store.graph(item->all), constants, item->anchor));
  }
  ReplaySummary summary = simulator::summarize(replayed).back();
  summary.group = group;
  return summary;
}

double fitted_replica_scale(RecordingStore& store, const Rows& rows) {
  double best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (const double scale : kReplicaScales) {
    const double error = summary_of(store, rows, {scale, {}}, "").mean_error;
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return best;
}

}  // namespace

std::vector<HeldOut> leave_one_machine_out(RecordingStore& store,
                                           const std::vector<ValidationWork>& work) {
  std::vector<HeldOut> result;
  std::set<std::string> groups;
  for (const ValidationWork& item : work) groups.insert(item.row->group);
  for (const std::string& group : groups) {
    Rows out;
    Rows others;
    for (const ValidationWork& item : work) {
      if (!item.row->apart.empty()) continue;
      if (item.row->group == group) {
        out.push_back(&item);
      } else if (item.row->strategy == Strategy::data_parallel) {
        others.push_back(&item);
      }
    }
    if (out.empty()) continue;
    HeldOut held;
    held.group = group;
    FittedConstants constants;
    if (out.front()->row->strategy == Strategy::data_parallel) {
      if (others.empty()) continue;
      constants.replica_scale = fitted_replica_scale(store, others);
      held.fitted = fmt::format("replication of a module costs {:g} times what is used",
                                constants.replica_scale);
    } else {
      constants.rank_jitter = 0;  // what the differences between ranks are known from
      held.fitted = "ranks do not differ";
    }
    held.summary = summary_of(store, out, constants, group);
    result.push_back(std::move(held));
  }
  return result;
}

}  // namespace bench
