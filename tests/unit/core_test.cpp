#include "bench/core/case_json.hpp"
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/units.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(Case, NameFollowsTheInterface) {
  Case c;
  c.scenario = "dp_vs_ddp";
  c.model.name = "resnet50";
  c.strategy = Strategy::distributed;
  c.gpus = {0, 1, 2, 3};
  c.batch = 128;
  c.tags = {{"bucket_mb", "25"}};
  EXPECT_EQ(c.name(),
            "dp_vs_ddp/model:resnet50/strategy:distributed/gpus:4/batch:128/bucket_mb:25");
}

TEST(Case, AliasesAreAccepted) {
  EXPECT_EQ(parse_strategy("dp"), Strategy::data_parallel);
  EXPECT_EQ(parse_strategy("ddp"), Strategy::distributed);
  EXPECT_FALSE(parse_strategy("fsdp"));
}

TEST(CaseJson, RoundTripKeepsEveryField) {
  Job job;
  job.kind = JobKind::record;
  job.work.model.name = "x";
  job.work.model.input_shape = {3, 224, 224};
  job.work.strategy = Strategy::libtorch_data_parallel;
  job.work.gpus = {1, 3};
  job.work.ddp.bucket_cap_mb = 0.5;
  job.work.tags = {{"a", "b"}};
  job.chunks = {2, 2, 1};
  job.graph_file = "graph.bin";
  EXPECT_EQ(job_to_json(job_from_json(job_to_json(job))), job_to_json(job));
}

TEST(CaseJson, MalformedTextIsAUsageError) {
  EXPECT_THROW(job_from_json("{"), UsageError);
  EXPECT_THROW(job_from_json(R"({"kind":"dance","case":{}})"), UsageError);
  EXPECT_THROW(case_from_json(R"({"strategy":"fsdp"})"), UsageError);
}

TEST(ReportJson, RoundTrip) {
  RankReport r;
  r.rank = 2;
  r.status = RankStatus::out_of_memory;
  r.message = "CUDA out of memory";
  r.samples.push_back({1, 2, 3.5, -1, {{"forward", 1.5}}, 0.25});
  r.fingerprint.losses = {1, 0.5};
  r.fingerprint.parameters.push_back({"w", 10, 1.0, 0.1, {1, 2, 3, 4}});
  r.memory.push_back({0, 1024, {{"parameters", 512}}});
  EXPECT_EQ(report_to_json(report_from_json(report_to_json(r))), report_to_json(r));
}

TEST(Units, ThreeSignificantDigits) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(3 * kGiB / 2), "1.50 GiB");
  EXPECT_EQ(format_duration_ns(12'345'678), "12.3 ms");
  EXPECT_EQ(format_count(25.6e6), "25.6 M");
}

}  // namespace
}  // namespace bench
