#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Value;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// DataParallel's shards: torch.chunk gives pieces of ceil(batch / gpus).
std::vector<std::int64_t> shards_of(std::int64_t batch, std::int64_t gpus) {
  const std::int64_t piece = (batch + gpus - 1) / gpus;
  std::vector<std::int64_t> out;
  for (std::int64_t rest = batch; rest > 0; rest -= piece) out.push_back(std::min(piece, rest));
  return out;
}

constexpr std::int64_t kMostGpus = 64;

}  // namespace

void check_batch_not_divisible_by_gpus(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel) continue;
    const auto ids = facts::device_ids(program, wrap.call);
    std::optional<std::int64_t> gpus;
    if (!ids.empty()) gpus = static_cast<std::int64_t>(ids.size());
    if (!gpus && !wrap.call.argument(1, "device_ids")) gpus = facts::visible_gpus(program);
    if (!gpus || *gpus < 2 || *gpus > kMostGpus) continue;
    for (const CallRef& loader : program.calls(Api::data_loader)) {
      if (is_evaluation_loader(program, loader)) continue;
      const Ref argument = loader.argument(1, "batch_size");
      const Value batch = program.evaluate(argument);
      if (!batch.is_integer() || batch.integer <= 0 || batch.integer % *gpus == 0) continue;
      const auto shards = shards_of(batch.integer, *gpus);
      std::string list;
      for (const std::int64_t shard : shards)
        list += (list.empty() ? "" : ", ") + std::to_string(shard);
      const auto idle = *gpus - static_cast<std::int64_t>(shards.size());
      std::string message = "a batch of " + std::to_string(batch.integer) + " on " +
                            std::to_string(*gpus) + " GPUs is cut into shards of " + list;
      if (idle > 0)
        message +=
            ": " + std::to_string(idle) + (idle == 1 ? " GPU stays" : " GPUs stay") + " idle";
      Finding& finding =
          report.at(argument, batch.is_default ? Confidence::likely : Confidence::certain,
                    std::move(message));
      finding.help = "Use a multiple of " + std::to_string(*gpus) +
                     " as batch size, and drop_last=True for training.";
      finding.evidence.emplace_back("shards", list);
    }
  }
}

}  // namespace bench::pitfalls
