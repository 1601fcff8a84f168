// What the rules of the pitfalls find in the cases of an ordinary scenario.
#include "bench/core/strategy.hpp"
#include "bench/harness/case_findings.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

// A case of DataParallel on four GPUs of `memory` bytes, the primary fuller than the others.
CaseResult data_parallel_case(std::uint64_t memory) {
  CaseResult result;
  result.work.strategy = Strategy::data_parallel;
  result.work.gpus = {0, 1, 2, 3};
  result.work.batch = 64;
  result.work.device_memory_bytes = memory;
  for (int gpu = 0; gpu < 4; ++gpu) result.memory.push_back({gpu, gpu == 0 ? 4000U : 1000U, {}});
  return result;
}

TEST(CaseFindings, AFullerPrimaryGpuIsFoundWhereItLimitsTheBatch) {
  const auto found = case_findings(data_parallel_case(5000));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "primary-gpu-imbalance");
  EXPECT_NE(found[0].message.find("80 % full"), std::string::npos) << found[0].message;
}

TEST(CaseFindings, AFullerPrimaryGpuWithRoomToSpareIsNoFinding) {
  EXPECT_TRUE(case_findings(data_parallel_case(32000)).empty());
  EXPECT_TRUE(case_findings(data_parallel_case(0)).empty()) << "memory that is not known";
}

TEST(CaseFindings, CasesThatDidNotFinishAreNotJudged) {
  CaseResult result = data_parallel_case(5000);
  result.status = CaseStatus::skipped;
  EXPECT_TRUE(case_findings(result).empty());
}

}  // namespace
}  // namespace bench
