// What the parent asks of a worker (Job) and what one rank answers (RankReport). Both travel as
// JSON: the job in a file named on the worker's command line, the report as the last message on
// the worker's report pipe (bench/launch/worker_protocol.hpp).
#pragma once

#include "bench/core/case.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

enum class JobKind {
  verify,     // a few numeric steps; answers with a Fingerprint
  reference,  // the same steps on one device in chunks; answers with a Fingerprint
  measure,    // warm-up and timed steps on real devices; answers with samples
  record,     // vgpu: warm-up, then one recorded step; writes an operation graph
  probe,      // what this worker's build and machine can do (bench doctor, device list)
  pitfall,    // makes the mistake work.pitfall, or applies its cure; writes what the run shows
  calibrate,  // times operators, copies and launches; single: of one device, distributed: NCCL
};
const char* job_kind_name(JobKind kind);

struct Job {
  JobKind kind = JobKind::measure;
  Case work;
  int steps = 0;  // verify, reference: optimizer steps to run
  // reference: sizes of the chunks the strategy under test cuts the batch into (see DESIGN 3:
  // BatchNorm sees a chunk, not the batch). Empty = the whole batch at once.
  std::vector<std::int64_t> chunks;
  bool buffers_from_first_chunk = true;  // reference: module buffers follow the first chunk
  // verify, reference: build the model's reduced twin (Scale::twin); set where the case itself runs
  // in shape execution, whose verification is numeric and small.
  bool twin = false;
  std::string graph_file;     // record: where rank 0 writes the operation graph
  double min_seconds = 1.0;   // measure: stopping rule, least measuring time
  double max_seconds = 30.0;  // measure: stopping rule, most measuring time
  std::string form;           // pitfall: which form of the mistake; may be empty
  bool cured = false;         // pitfall: with the fix applied
  // pitfall: rank r writes its evidence to <evidence_file>.rank<r>.json, also before it may hang.
  std::string evidence_file;
  std::string samples_file;  // calibrate: where rank 0 writes CalibrationSamples
  bool quick = false;        // calibrate: fewer shapes and repetitions
};

struct StepSample {
  int step = 0;
  int rank = 0;
  double wall_ms = 0;                      // host wall time of the step
  double device_ms = -1;                   // CUDA events around the step; -1 where there are none
  std::map<std::string, double> phase_ms;  // by phase_name(); CUDA events, else host time
  double loss = 0;
};

// Enough of a parameter to tell two runs apart without moving it: norms and projections on four
// fixed pseudo-random sign vectors, of the value and of its change since the first step.
struct ParameterDigest {
  std::string name;
  std::int64_t numel = 0;
  double norm = 0;
  double change_norm = 0;
  double change_projection[4] = {};
};

struct Fingerprint {
  std::vector<double> losses;               // one per optimizer step, mean over this rank's samples
  std::vector<ParameterDigest> parameters;  // trainable parameters in definition order
};

struct DeviceMemory {
  int device = 0;
  std::uint64_t peak_bytes = 0;
  std::map<std::string, std::uint64_t>
      by_category;  // memory_category_name() at the peak; may be empty
};

enum class RankStatus { ok, skip, out_of_memory, error };
const char* rank_status_name(RankStatus status);

struct RankReport {
  int rank = 0;
  RankStatus status = RankStatus::ok;
  std::string message;  // reason of a skip or error, the exception's own words
  std::vector<StepSample> samples;
  Fingerprint fingerprint;
  std::vector<DeviceMemory> memory;
  std::map<std::string, double> counters;    // bytes_communicated, buckets, parameters, ...
  std::map<std::string, std::string> facts;  // versions, device names, notes for the reader
};

}  // namespace bench
