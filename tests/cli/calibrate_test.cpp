// bench calibrate with the mock worker, which measures an A100 as the catalogue has it: the file it
// writes, what becomes of it, and what is refused.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

const Environment kFourGpus = {{"LD_LIBRARY_PATH", FAKE_NVML_FOLDER},
                               {"CUDA_VISIBLE_DEVICES", "(unset)"}};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(Calibrate, WritesAMachineThatPredictAccepts) {
  const Workspace here;
  const Answer written = here.bench(
      {"calibrate", "--worker", "mock", "--gpus", "0", "--out", "machine.toml"}, kFourGpus);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_TRUE(contains(written.err, "use it as --machine machine.toml")) << written.err;
  const std::string text = here.read("machine.toml");
  EXPECT_EQ(text.find("# bench calibrate --worker mock --gpus 0 --out machine.toml\n"), 0U) << text;
  EXPECT_TRUE(contains(text, "driver 999.1"));
  const Answer used = here.bench({"predict", "--worker", "mock", "--recordings", "recordings",
                                  "--model", "resnet50", "--machine", "machine.toml", "--strategy",
                                  "single", "--format", "json"});
  ASSERT_EQ(used.exit_code, 0) << used.err;
  const auto prediction = nlohmann::json::parse(used.out).at("predictions").at(0);
  EXPECT_GT(prediction.at("step_ms"), 0);
  EXPECT_EQ(prediction.at("error_band").at("provenance"), "measured");
}

TEST(Calibrate, SeveralGpusGetAnAllReduce) {
  const Workspace here;
  const Answer answer = here.bench({"calibrate", "--worker", "mock", "--gpus", "0,1"}, kFourGpus);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(contains(answer.out, "gpus = 2\n"));
  EXPECT_TRUE(contains(answer.out, "[[collective]]\n"));
}

TEST(Calibrate, KeptSamplesGiveTheSameMachine) {
  const Workspace here;
  const Answer first = here.bench(
      {"calibrate", "--worker", "mock", "--device", "cpu", "--save-samples", "samples.json"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  const Answer again = here.bench({"calibrate", "--samples", "samples.json"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  const auto body = [](const std::string& text) { return text.substr(text.find("# mock GPU")); };
  EXPECT_EQ(body(first.out), body(again.out)) << "all but the lines with command and date";
}

TEST(Calibrate, LeavesExistingFilesAlone) {
  const Workspace here;
  here.write("machine.toml", "mine\n");
  const std::vector<std::string> command = {"calibrate", "--worker", "mock",        "--device",
                                            "cpu",       "--out",    "machine.toml"};
  const Answer refused = here.bench(command);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "--out: 'machine.toml' exists; --force overwrites it"));
  EXPECT_EQ(here.read("machine.toml"), "mine\n");
  auto forced = command;
  forced.push_back("--force");
  EXPECT_EQ(here.bench(forced).exit_code, 0);
  EXPECT_NE(here.read("machine.toml"), "mine\n");
}

struct Mistake {
  std::vector<std::string> arguments;
  int exit_code;
  const char* error;
};

TEST(Calibrate, MistakesAreNamed) {
  const Workspace here;
  here.write("bad.json", "{}");
  const Mistake mistakes[] = {
      {{"--gups", "0"}, 2, "did you mean --gpus"},
      {{"--gpus", "zero"}, 2, "--gpus: 'zero': expected device indices"},
      {{"--gpus", "0,0"}, 2, "--gpus: GPU 0 is listed twice"},
      {{"--gpus", "9"}, 3, "--gpus: no GPU 9 on 4 x Fake GPU"},
      {{"--device", "vgpu"},
       2,
       "--device: unknown value 'vgpu'; did you mean cpu? known: cuda, cpu"},
      {{"machine.toml"}, 2, "unexpected 'machine.toml'"},
      {{"--out", "."}, 2, "--out: '.' is a directory; expected a file"},
      {{"--out", "nowhere/machine.toml"}, 3, "--out: cannot write 'nowhere/machine.toml'"},
      {{"--samples", "gone.json"}, 2, "gone.json: cannot read"},
      {{"--samples", "bad.json"}, 2, "bad.json: malformed calibration samples"},
      {{"--samples", "bad.json", "--gpus", "0"}, 2, "--gpus measures; it cannot go with --samples"},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments = {"calibrate", "--worker", "mock"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    const Answer answer = here.bench(arguments, kFourGpus);
    EXPECT_EQ(answer.exit_code, mistake.exit_code) << mistake.error << "\n" << answer.err;
    EXPECT_TRUE(contains(answer.err, mistake.error)) << mistake.error << "\n" << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

TEST(Calibrate, WithoutAGpuSaysWhatIsMissing) {
  const Workspace here;
  const Answer answer =
      here.bench({"calibrate", "--worker", "mock", "--gpus", "0", "--out", "machine.toml"});
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_TRUE(contains(answer.err, "--gpus: expected a GPU to measure")) << answer.err;
  EXPECT_TRUE(contains(answer.err, "--device cpu")) << answer.err;
  EXPECT_FALSE(here.has("machine.toml"));
}

TEST(Calibrate, AWorkerThatFailsLeavesNoFile) {
  const Workspace here;
  const Answer answer =
      here.bench({"calibrate", "--worker", "mock", "--device", "cpu", "--out", "machine.toml"},
                 {{"BENCH_MOCK_FAULTS", "oom@calibrate"}});
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_TRUE(contains(answer.err, "deliberately out of memory")) << answer.err;
  EXPECT_FALSE(here.has("machine.toml"));
}

}  // namespace
}  // namespace bench::cli_test
