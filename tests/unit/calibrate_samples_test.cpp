// Samples as they travel from the worker to the parent.
#include "bench/calibrate/samples.hpp"
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/launch/mock_calibration.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(CalibrationSamples, SurviveTheirJson) {
  Job job;
  job.work.gpus = {0, 1};
  job.work.strategy = Strategy::distributed;
  CalibrationSamples samples = mock::calibration(job);
  samples.notes = {"pageable copies: no memory"};
  const std::string text = samples_to_json(samples);
  const CalibrationSamples again = samples_from_json(text);
  EXPECT_EQ(samples_to_json(again), text);
  EXPECT_EQ(again.operations.size(), samples.operations.size());
  EXPECT_EQ(again.all_reduce, samples.all_reduce);
  EXPECT_EQ(again.peers.size(), 2U);
  EXPECT_EQ(again.notes, samples.notes);
}

TEST(CalibrationSamples, RefuseWhatTheyAreNot) {
  EXPECT_THROW((void)samples_from_json("{"), UsageError);
  EXPECT_THROW((void)samples_from_json("{}"), UsageError);
  EXPECT_THROW((void)samples_from_json("[1, 2]"), UsageError);
  EXPECT_THROW((void)read_samples("/nowhere/samples.json"), UsageError);
  EXPECT_THROW(write_samples({}, "/nowhere/samples.json"), MachineError);
}

}  // namespace
}  // namespace bench
