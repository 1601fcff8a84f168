#include "bench/launch/mock_worker.hpp"

#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/launch/mock_calibration.hpp"
#include "bench/launch/mock_graph.hpp"
#include "bench/launch/worker_protocol.hpp"
#include "simulator/graph_io.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>

namespace bench {
namespace {

constexpr const char* kFaultsVariable = "BENCH_MOCK_FAULTS";

// The fault that this job is to meet, "" for none.
std::string fault_of(const Job& job) {
  const char* text = std::getenv(kFaultsVariable);
  std::istringstream faults(text == nullptr ? "" : text);
  for (std::string fault; std::getline(faults, fault, ',');) {
    const std::size_t at = fault.find('@');
    const std::string part = at == std::string::npos ? "" : fault.substr(at + 1);
    if (job.work.name().find(part) != std::string::npos) return fault.substr(0, at);
  }
  return "";
}

void meet_fault(const std::string& fault) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::fprintf(stderr, "mock worker: deliberate fault '%s'\n", fault.c_str());
  if (fault == "crash") ::raise(SIGSEGV);
  if (fault == "abort") std::abort();
  if (fault == "exit") std::exit(7);
  if (fault == "error") throw std::runtime_error("deliberate error");
  while (fault == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  if (fault == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

// Loss and parameters of a made-up training run that depend on seed and batch only, so every
// correct strategy agrees with the reference.
Fingerprint fingerprint(const Job& job, const std::string& fault, int rank) {
  double gradient = 1.0 + static_cast<double>(job.work.seed % 97) / 97;
  if (fault == "factor") gradient *= job.work.world_size();
  if (fault == "local") gradient *= 1 + 0.1 * (rank + 1);
  if (fault == "seed") gradient *= -0.7;
  if (fault == "rounding") gradient *= 1 + 0x1p-51;
  Fingerprint print;
  for (int step = 0; step < job.steps; ++step) {
    print.losses.push_back(2.0 / (1 + 0.1 * step * gradient));
  }
  for (int i = 0; i < 3; ++i) {
    const double change = 0.01 * gradient * (i + 1);
    print.parameters.push_back({"layer" + std::to_string(i) + ".weight",
                                1000,
                                10.0 + change,
                                change,
                                {change, -0.5 * change, 0.25 * change, 0.75 * change}});
  }
  return print;
}

std::vector<StepSample> samples(const Job& job, int rank) {
  std::vector<StepSample> result;
  const int steps = job.work.steps > 0 ? job.work.steps : 5;
  for (int step = 0; step < steps; ++step) {
    StepSample sample;
    sample.step = step;
    sample.rank = rank;
    // A fixed pattern around the exact value, symmetric, so that the median is exact.
    sample.wall_ms = mock::step_ms(job.work) * (1 + 0.01 * ((step * 2) % 5 - 2));
    sample.phase_ms = {{"forward", sample.wall_ms / 3}, {"backward", sample.wall_ms * 2 / 3}};
    sample.loss = 2.0 / (1 + 0.1 * step);
    result.push_back(sample);
  }
  return result;
}

void check_memory(const Case& work, RankReport& report) {
  report.memory = mock::memory(work);
  for (const DeviceMemory& device : report.memory) {
    if (work.device_memory_bytes == 0 || device.peak_bytes <= work.device_memory_bytes) continue;
    report.status = RankStatus::out_of_memory;
    report.message = "vgpu:" + std::to_string(device.device) + " out of memory: the mock needs " +
                     std::to_string(device.peak_bytes) + " bytes of " +
                     std::to_string(work.device_memory_bytes);
    report.facts["out_of_memory_category"] = "activations";
    return;
  }
}

RankReport answer(const Job& job, const RankContext& ranks) {
  RankReport report;
  report.rank = ranks.rank;
  report.facts = {{"worker", "mock"}};
  std::string fault = fault_of(job);
  const bool arithmetic =
      fault == "factor" || fault == "local" || fault == "seed" || fault == "rounding";
  if (!arithmetic && !fault.empty() && ranks.rank == ranks.world_size - 1) meet_fault(fault);
  if (fault == "oom") return {ranks.rank, RankStatus::out_of_memory, "deliberately out of memory"};
  if (fault == "skip") return {ranks.rank, RankStatus::skip, "deliberately skipped"};
  switch (job.kind) {
    case JobKind::verify:
      report.fingerprint = fingerprint(job, fault, ranks.rank);
      break;
    case JobKind::reference:
      report.fingerprint = fingerprint(job, "", 0);
      break;
    case JobKind::measure:
      report.samples = samples(job, ranks.rank);
      check_memory(job.work, report);
      if (ranks.world_size > 1) report.memory = {report.memory.at(ranks.rank)};
      break;
    case JobKind::record:
      check_memory(job.work, report);
      if (report.status == RankStatus::ok && !job.graph_file.empty()) {
        simulator::write_graph(mock::graph(job.work), job.graph_file);
      }
      break;
    case JobKind::pitfall:
      report.status = RankStatus::skip;
      report.message = "the mock worker makes no mistakes";
      break;
    case JobKind::calibrate:
      if (ranks.rank == 0) write_samples(mock::calibration(job), job.samples_file);
      break;
    case JobKind::probe:
      report.counters = {{"cuda_devices", 0}};
      break;
  }
  return report;
}

RankReport answer_or_error(const Job& job, const RankContext& ranks) {
  try {
    return answer(job, ranks);
  } catch (const std::exception& e) {
    RankReport report;
    report.rank = ranks.rank;
    report.status = RankStatus::error;
    report.message = e.what();
    return report;
  }
}

}  // namespace

double mock::step_ms(const Case& work) {
  const int gpus = work.world_size();
  double ms = kSingleFixedMs + kMsPerSample * static_cast<double>(work.batch) / gpus;
  if (gpus == 1) return ms;
  return ms + (work.strategy == Strategy::distributed ? kReduceMs : kReplicateMs * (gpus - 1));
}

std::vector<DeviceMemory> mock::memory(const Case& work) {
  const auto graph = mock::graph(work);
  std::vector<DeviceMemory> result;
  for (int i = 0; i < work.world_size(); ++i) {
    const auto peak = graph.peak_memory(graph.devices == 1 ? 0 : i);
    DeviceMemory device;
    device.device = work.gpus[static_cast<std::size_t>(i)];
    device.peak_bytes = peak.bytes;
    for (int c = 0; c < simulator::kMemoryCategoryCount; ++c) {
      if (peak.by_category[c] == 0) continue;
      const auto category = static_cast<simulator::MemoryCategory>(c);
      device.by_category[simulator::memory_category_name(category)] = peak.by_category[c];
    }
    result.push_back(device);
  }
  return result;
}

int worker_command(const std::vector<std::string>& typed) {
  die_with_parent();
  std::vector<std::string> texts = {"worker"};
  texts.insert(texts.end(), typed.begin(), typed.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  const auto jobs = read_job_file(job_file_argument(static_cast<int>(argv.size()), argv.data()));
  const RankContext ranks = rank_context_from_environment();
  const auto channel = WorkerChannel::from_environment();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    channel->begin_job(static_cast<int>(i));
    channel->phase(job_kind_name(jobs[i].kind));
    const RankReport report = answer_or_error(jobs[i], ranks);
    channel->report(report);
    const bool failed =
        report.status == RankStatus::error || report.status == RankStatus::out_of_memory;
    if (failed && ranks.world_size > 1) return 1;
  }
  return 0;
}

}  // namespace bench
