// Commands that tell and start nothing: help, version, list, doctor, --dry-run.
#include <gtest/gtest.h>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

TEST(Information, HelpAndVersionGoToStandardOutput) {
  const Workspace here;
  for (const auto& arguments : std::vector<std::vector<std::string>>{{}, {"--help"}, {"-h"}}) {
    const Answer answer = here.bench(arguments);
    EXPECT_EQ(answer.exit_code, 0);
    EXPECT_NE(answer.out.find("bench --scenario NAME|FILE.toml"), std::string::npos);
    EXPECT_NE(answer.out.find("exit codes"), std::string::npos);
    EXPECT_EQ(answer.err, "");
  }
  EXPECT_EQ(here.bench({"--version"}).out, "bench " BENCH_TEST_VERSION "\n");
  for (const char* command : {"list", "doctor", "diagnose"}) {
    const Answer answer = here.bench({command, "--help"});
    EXPECT_EQ(answer.exit_code, 0) << command;
    EXPECT_NE(answer.out.find(std::string("bench ") + command), std::string::npos) << answer.out;
  }
}

TEST(Information, ListsNamesWithALineAboutEach) {
  const Workspace here;
  EXPECT_NE(here.bench({"list", "scenarios"}).out.find("dp_vs_ddp "), std::string::npos);
  EXPECT_NE(here.bench({"list", "models"}).out.find("resnet50 "), std::string::npos);
  EXPECT_NE(here.bench({"list", "machines"}).out.find("v100-sxm2 "), std::string::npos);
  const std::string rules = here.bench({"list", "rules"}).out;
  EXPECT_NE(rules.find("DDP018 warning, correctness, from script, run: "), std::string::npos)
      << rules;
  const Answer json = here.bench({"list", "models", "--format", "json"});
  EXPECT_EQ(json.out.substr(0, 1), "[");
  EXPECT_NE(json.out.find("\"name\": \"mlp\""), std::string::npos);
}

TEST(Information, ListRefusesWhatItDoesNotKnow) {
  const Workspace here;
  const Answer answer = here.bench({"list", "modles"});
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_EQ(answer.out, "");
  EXPECT_NE(answer.err.find("did you mean models"), std::string::npos);
  EXPECT_EQ(here.bench({"list"}).exit_code, 2);
  EXPECT_EQ(here.bench({"list", "models", "--format", "xml"}).exit_code, 2);
}

TEST(Information, DoctorSaysWhatIsMissingAndWhy) {
  const Workspace here;
  const Answer answer = here.bench(
      {"doctor"}, {{"LD_LIBRARY_PATH", FAKE_NVML_FOLDER}, {"CUDA_VISIBLE_DEVICES", "7"}});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_NE(answer.out.find("CUDA GPUs      no   CUDA_VISIBLE_DEVICES='7' shows 0 of 4 GPUs"),
            std::string::npos)
      << answer.out;
  EXPECT_NE(answer.out.find("training       yes"), std::string::npos);
  EXPECT_NE(answer.out.find("by default     yes  simulates"), std::string::npos);

  const Answer lame = here.bench({"doctor"}, {{"BENCH_WORKER", "/bin/false"}});
  EXPECT_EQ(lame.exit_code, 0);
  EXPECT_NE(lame.out.find("training       no   /bin/false: "), std::string::npos) << lame.out;
}

TEST(Information, DoctorShowsGpusWithTheirLoad) {
  const Workspace here;
  const Answer answer = here.bench(
      {"doctor"}, {{"LD_LIBRARY_PATH", FAKE_NVML_FOLDER}, {"CUDA_VISIBLE_DEVICES", "(unset)"}});
  EXPECT_NE(answer.out.find("CUDA GPUs      yes  4, driver 999.1 for CUDA up to 13.0"),
            std::string::npos)
      << answer.out;
  EXPECT_NE(answer.out.find("GPU 2: Fake GPU, 30.0 GiB of 80.0 GiB in use, 5 % busy"),
            std::string::npos);
}

TEST(Information, DryRunWritesNothing) {
  const Workspace here;
  const Answer answer = here.bench({"--scenario", "dp_vs_ddp", "--gpus", "0,1", "--dry-run"});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_TRUE(answer.out.starts_with("simulated on the default machine ")) << answer.out;
  EXPECT_NE(answer.out.find("dp_vs_ddp/model:mlp/strategy:distributed/gpus:2/batch:64\n"),
            std::string::npos);
  EXPECT_FALSE(here.has("results"));
}

}  // namespace
}  // namespace bench::cli_test
