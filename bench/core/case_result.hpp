// What a run knows about each of its cases: the harness fills it, run_json.hpp stores it, reports
// read it. A case that has no timing says why (skipped, wrong, failed) and keeps its row.
#pragma once

#include "bench/core/case.hpp"
#include "bench/core/job.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

enum class CaseStatus {
  done,
  skipped,  // this machine or these parameters cannot give a figure; `message` says why
  wrong,    // the result differs from the single-device reference: times are withheld
  failed,   // a worker crashed, hung or threw; `message` names the first rank that failed
};
const char* case_status_name(CaseStatus status);

// How one device spent the median step, in milliseconds; the parts add up to the step.
struct DeviceBreakdown {
  int device = 0;
  double compute_ms = 0;
  double exposed_communication_ms = 0;  // communication runs, compute does not
  double exposed_copy_ms = 0;           // a host copy runs, neither of the two does
  double host_ms = 0;                   // the device idles while its process' host threads work
  double idle_ms = 0;                   // the device idles and its host does, too
};

struct SampleSummary {
  std::int64_t count = 0;  // timed steps over all ranks
  double min_ms = 0;
  double p10_ms = 0;
  double p50_ms = 0;
  double p90_ms = 0;
  double max_ms = 0;
};

struct CaseResult {
  Case work;
  CaseStatus status = CaseStatus::done;
  std::string message;         // empty when done
  bool out_of_memory = false;  // skipped or failed because a GPU's memory was not enough
  bool simulated = false;
  double error_band = 0;  // simulated: 0.08 = figures may be off by 8 %; 0 = not known
  std::map<std::string, double> metrics;   // by metric_catalog.hpp name; empty unless done
  std::vector<DeviceMemory> memory;        // one per GPU of the case, global index
  std::map<std::string, double> phase_ms;  // by phase_name(); host view of rank 0
  std::vector<DeviceBreakdown> breakdown;  // one per GPU
  SampleSummary samples;
  std::string verification;                  // "equals single within 1e-6", or what differs
  std::map<std::string, std::string> facts;  // versions, devices, notes for the reader
  double real_seconds = 0;                   // what producing the figure cost on this host
  std::string trace_file;                    // relative to the run's directory; may be empty

  std::string name() const { return work.name(); }
  // NaN when the case has no such metric, so that a missing figure never reads as zero.
  double metric(const std::string& name) const;
};

struct RunContext {
  std::string scenario;
  std::string title;         // the scenario's one-line question
  std::string machine;       // "4xv100-sxm2", or the real devices' name
  std::string machine_note;  // one line: GPU, memory, links, where constants come from
  std::string device;        // cuda | vgpu | cpu
  std::string execute;       // numeric | shape
  std::string host_profile;  // cpp | python
  bool simulated = false;
  std::vector<int> gpus;
  std::uint64_t seed = 1;
  std::string date;         // RFC 3339
  std::string command;      // what the user typed
  std::string fingerprint;  // hash of machine, versions and settings
  std::map<std::string, std::string> versions;
  std::vector<std::string> notes;            // what a reader must know before believing a figure
  std::map<std::string, std::string> extra;  // any further context key of Google Benchmark's
};

struct RunResult {
  RunContext context;
  std::vector<CaseResult> cases;
};

}  // namespace bench
