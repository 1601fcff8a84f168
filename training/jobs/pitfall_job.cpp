// pitfall: makes one classic mistake for real, or applies its cure, and writes what the run shows.
#include "bench/core/error.hpp"

#include "training/jobs/job_runner.hpp"
#include "training/pitfalls/lab.hpp"
#include "training/pitfalls/table.hpp"

namespace bench::training {

void run_pitfall(const Job& job, Placement placement, JobContext& context, RankReport&) {
  const ExperimentRow* row = find_experiment(job.work.pitfall);
  if (row == nullptr) {
    throw UsageError("no experiment for pitfall '" + job.work.pitfall + "'");
  }
  Lab lab(job, std::move(placement), context.channel());
  lab.phase(job.cured ? "cured" : "broken");
  row->run(lab);
  lab.publish();
}

}  // namespace bench::training
