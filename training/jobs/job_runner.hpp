// Runs one job in this process and turns whatever happens into the rank's report.
#pragma once

#include "training/jobs/job_context.hpp"

namespace bench::training {

// Never throws: a missing GPU is a skip, a failed allocation out_of_memory, anything else an error
// in the exception's own words.
RankReport run_job(const Job& job, JobContext& context);

// The kinds of jobs, each on a placement that exists.
void run_training_check(const Job& job, Placement placement, JobContext& context,
                        RankReport& report);  // verify, reference
void run_measurement(const Job& job, Placement placement, JobContext& context, RankReport& report);
void run_recording(const Job& job, Placement placement, JobContext& context, RankReport& report);
void run_pitfall(const Job& job, Placement placement, JobContext& context, RankReport& report);
void run_calibration(const Job& job, const Placement& placement, JobContext& context);
void run_probe(RankReport& report);

// Sends every phase to the parent, so that it can tell where a silent rank stopped.
class ChannelPhases final : public PhaseSink {
 public:
  ChannelPhases(WorkerChannel& channel, int step) : channel_(channel), step_(step) {}
  void enter(Phase phase) override;

 private:
  WorkerChannel& channel_;
  int step_;
};

}  // namespace bench::training
