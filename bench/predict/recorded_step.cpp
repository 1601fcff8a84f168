#include "bench/predict/recorded_step.hpp"

#include "bench/core/strategy.hpp"
#include "simulator/accumulation_edit.hpp"
#include "simulator/buffer_edit.hpp"
#include "simulator/reducer_edit.hpp"

namespace bench {
namespace {

constexpr double kBytesPerMib = 1024.0 * 1024;

simulator::ReducerOptions reducer_options(const DdpOptions& ddp) {
  simulator::ReducerOptions options;
  if (ddp.bucket_cap_mb) {
    const auto cap = static_cast<std::uint64_t>(*ddp.bucket_cap_mb * kBytesPerMib);
    options.caps = {cap, cap};
  }
  options.gradient_as_bucket_view = ddp.gradient_as_bucket_view;
  options.static_graph = ddp.static_graph;
  options.find_unused_parameters = ddp.find_unused_parameters;
  return options;
}

bool same_reducer(const DdpOptions& a, const DdpOptions& b) {
  return a.bucket_cap_mb == b.bucket_cap_mb &&
         a.find_unused_parameters == b.find_unused_parameters && a.static_graph == b.static_graph &&
         a.gradient_as_bucket_view == b.gradient_as_bucket_view;
}

DdpOptions standard_options(const Case& work) {
  if (work.accumulation == 1) return {};
  DdpOptions standard = work.ddp;
  standard.broadcast_buffers = true;
  const bool only_caps = !work.ddp.find_unused_parameters && !work.ddp.static_graph &&
                         !work.ddp.gradient_as_bucket_view;
  if (only_caps && work.no_sync) standard.bucket_cap_mb.reset();
  return standard;
}

}  // namespace

Case standard_case(const Case& work) {
  Case standard = work;
  if (work.accumulation > 1) {
    standard.batch = work.batch / work.accumulation * simulator::kRecordedMicroBatches;
    standard.accumulation = simulator::kRecordedMicroBatches;
  }
  if (work.strategy == Strategy::distributed) standard.ddp = standard_options(work);
  return standard;
}

std::optional<simulator::OperationGraph> edited_step(const simulator::OperationGraph& standard,
                                                     const Case& work) {
  std::optional<simulator::OperationGraph> step = standard;
  if (work.strategy == Strategy::distributed) {
    if (!work.ddp.broadcast_buffers) step = simulator::without_buffer_broadcasts(*step);
    if (!same_reducer(work.ddp, standard_case(work).ddp)) {
      step = simulator::with_reducer_options(*step, reducer_options(work.ddp));
    }
  }
  if (step && work.accumulation > 1) step = with_micro_batches(*step, work.accumulation);
  return step;
}

}  // namespace bench
