// --gpus, --device and --machine on a machine with four GPUs (a fake NVML) and on one without.
#include <gtest/gtest.h>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

const Environment kFourGpus = {{"LD_LIBRARY_PATH", FAKE_NVML_FOLDER},
                               {"CUDA_VISIBLE_DEVICES", "(unset)"}};

Answer plan(const Workspace& here, std::vector<std::string> arguments,
            const Environment& extra = {}) {
  arguments.insert(arguments.begin(), {"--scenario", "dp_vs_ddp", "--model", "mlp", "--dry-run"});
  return here.bench(arguments, extra);
}

TEST(Gpus, RealOnesAreUsedAndNothingIsCalledSimulated) {
  const Workspace here;
  const Answer answer = plan(here, {"--gpus", "0,1,2,3"}, kFourGpus);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(answer.out.starts_with("dp_vs_ddp/")) << answer.out;
}

TEST(Gpus, AutoTakesTheLeastUsed) {
  const Workspace here;
  EXPECT_TRUE(plan(here, {"--gpus", "auto:2"}, kFourGpus)
                  .out.starts_with("--gpus auto: least used are 1,3\n"));
  EXPECT_NE(plan(here, {"--gpus", "auto:2"}).out.find("chosen by index"), std::string::npos);
}

TEST(Gpus, AllMeansAll) {
  const Workspace here;
  for (const char* all : {"all", "-1"}) {
    const Answer answer = plan(here, {"--gpus", all}, kFourGpus);
    EXPECT_NE(answer.out.find("/gpus:4/"), std::string::npos) << all;
  }
}

TEST(Gpus, AMachineIsSimulatedBesideRealGpus) {
  const Workspace here;
  const Answer answer = plan(here, {"--machine", "2xdgx-a100", "--gpus", "0,15"}, kFourGpus);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(answer.out.starts_with("simulated on 2xdgx-a100\n")) << answer.out;
}

struct Mistake {
  std::vector<std::string> arguments;
  int exit_code;
  const char* error;
};

TEST(Gpus, MistakesSayWhatThereIs) {
  const Workspace here;
  const Mistake mistakes[] = {
      {{"--gpus", "0,0"}, 2, "--gpus: GPU 0 is listed twice in '0,0'"},
      {{"--gpus", "0,-2"}, 2, "--gpus: '0,-2': expected device indices such as 0,1,2,3"},
      {{"--gpus", ""}, 2, "--gpus: expected a value (LIST)"},
      {{"--gpus", "auto:none"}, 2, "or auto:N for the N least used"},
      {{"--gpus", "0,4"}, 3, "--gpus: no GPU 4 on 4 x Fake GPU; it has GPUs 0 to 3"},
      {{"--gpus", "auto:5"}, 3, "it has GPUs 0 to 3"},
      {{"--machine", "2xv100-sxm2", "--gpus", "2"},
       3,
       "no GPU 2 on 2xv100-sxm2; it has GPUs 0 to 1"},
      {{"--machine", "4xv100-sxm2", "--device", "cuda"}, 2, "--machine describes virtual GPUs"},
      {{"--machine", "4xv101-sxm2"}, 2, "v100-sxm2"},
      {{"--device", "gpu"}, 2, "--device: expected cuda, vgpu or cpu, found 'gpu'"},
      {{"--device", "cpu", "--execute", "shape"}, 2, "--execute shape is for virtual GPUs"},
  };
  for (const Mistake& mistake : mistakes) {
    const Answer answer = plan(here, mistake.arguments, kFourGpus);
    EXPECT_EQ(answer.exit_code, mistake.exit_code) << mistake.error;
    EXPECT_EQ(answer.out, "") << mistake.error;
    EXPECT_TRUE(answer.err.starts_with("bench: error: ")) << answer.err;
    EXPECT_NE(answer.err.find(mistake.error), std::string::npos) << answer.err;
  }
}

TEST(Gpus, CudaWithoutGpusIsTheMachinesFault) {
  const Workspace here;
  const Answer answer = plan(here, {"--device", "cuda"});
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_NE(answer.err.find("--device cuda: "), std::string::npos);
}

}  // namespace
}  // namespace bench::cli_test
