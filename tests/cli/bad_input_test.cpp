// Whatever is wrong with flags and files: the exit code, a first line that names the flag or
// file:line and what was expected, nothing on standard output, nothing written.
#include <gtest/gtest.h>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

void expect_refusal(const Workspace& here, const std::vector<std::string>& arguments, int exit_code,
                    const std::string& error) {
  const Answer answer = here.bench(arguments);
  EXPECT_EQ(answer.exit_code, exit_code) << error;
  EXPECT_EQ(answer.out, "") << error;
  EXPECT_TRUE(answer.err.starts_with("bench: error: ")) << answer.err;
  EXPECT_NE(answer.err.find(error), std::string::npos) << answer.err;
  EXPECT_FALSE(here.has("results")) << error;
}

TEST(BadFlags, AreNamedWithTheNearest) {
  const Workspace here;
  expect_refusal(here, {"bnech"}, 2, "unknown command 'bnech'");
  expect_refusal(here, {"--gpus", "0"}, 2, "--scenario: expected a name");
  expect_refusal(here, {"--scenario"}, 2, "--scenario: expected a value");
  expect_refusal(here, {"--scenario", "dp_vs_dpp"}, 2, "did you mean dp_vs_ddp");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--modle", "mlp"}, 2, "did you mean --model");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--model", "resnet51"}, 2,
                 "--model: unknown model 'resnet51'; did you mean resnet50");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--strategy", "fsdp"}, 2,
                 "--strategy: unknown strategy 'fsdp'");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--batch", "0"}, 2,
                 "--batch: expected 1 or more, found 0");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--batch", "x"}, 2,
                 "--batch: expected a whole number, found 'x'");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "extra"}, 2, "unexpected 'extra'");
}

TEST(BadBatches, AskedForDirectlyLeaveNoRankWithoutSamples) {
  const Workspace here;
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--gpus", "0,1,2,3", "--batch", "2"}, 2,
                 "--batch: batch 2 on 4 GPUs");
  expect_refusal(
      here, {"--scenario", "dp_vs_ddp", "--gpus", "0,1,2,3", "--batch", "6", "--strategy", "ddp"},
      2, "does not divide evenly; the next ones that do are 4 and 8");
  const Answer sweep = here.bench({"--scenario", "dp_vs_ddp", "--model", "mlp", "--gpus", "0,1,2,3",
                                   "--batch", "2,8", "--dry-run"});
  EXPECT_EQ(sweep.exit_code, 0);
  EXPECT_NE(sweep.out.find("gpus:4/batch:2  skip: batch 2 on 4 GPUs leaves rank 2 without samples"),
            std::string::npos)
      << sweep.out;
}

TEST(BadFiles, AreNamedWithTheirLine) {
  const Workspace here;
  here.write("typo.toml", "[sweep]\nmodels = [\"mlp\"]\nbatchs = [8]\n");
  here.write("syntax.toml", "[sweep]\nmodels = [\"mlp\"\n\n[ddp]\n");
  here.write("value.toml", "[training]\nsteps = \"ten\"\n");
  here.write("short.toml", "[sweep]\nmodels = [\"mlp\"]\n");
  expect_refusal(here, {"--scenario", "typo.toml"}, 2,
                 "typo.toml:3:1: unknown key in [sweep] 'batchs'; did you mean batches");
  expect_refusal(here, {"--scenario", "syntax.toml"}, 2, "syntax.toml:4:");
  expect_refusal(here, {"--scenario", "value.toml"}, 2,
                 "value.toml:2:9: training.steps: expected a whole number");
  expect_refusal(here, {"--scenario", "short.toml"}, 2,
                 "scenario short: expected sweep.strategies (or --strategy)");
  expect_refusal(here, {"--scenario", "missing.toml"}, 2, "no such file 'missing.toml'");
  expect_refusal(here, {"--scenario", "./"}, 2, "--scenario: no such file './'");
}

TEST(BadMachines, AreNamedWithTheirLine) {
  const Workspace here;
  here.write("bad.toml", "title = \"x\"\n[gpu\n");
  const auto try_machine = [&](const char* machine, const char* error) {
    expect_refusal(here, {"--scenario", "dp_vs_ddp", "--machine", machine}, 2, error);
  };
  try_machine("bad.toml", "bad.toml:2: ");
  try_machine("missing.toml", "missing.toml: cannot read");
  try_machine("0xv100-sxm2", "'0xv100-sxm2': expected a count");
  try_machine("4xv100-smx2", "v100-sxm2");
  try_machine("4xv100-smx2", "--machine: unknown machine 'v100-smx2'");
}

TEST(BadModels, AreRefusedBeforeAnyWork) {
  const Workspace here;
  here.write("net.pt", "PK\x03\x04 not really");
  here.write("text.pt", "hello");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--model", "gone.pt"}, 2,
                 "--model: no such file 'gone.pt'");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--model", "text.pt"}, 2,
                 "'text.pt' is not a TorchScript file");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--model", "net.pt"}, 2, "--input 3x224x224");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--model", "net.pt", "--input", "3x"}, 2,
                 "--input: expected the shape of one sample");
  here.write("mlp.pt", "PK\x03\x04");
  expect_refusal(here, {"--scenario", "dp_vs_ddp", "--model", "mlp,mlp.pt", "--input", "4"}, 2,
                 "'mlp.pt' would share the name 'mlp'");
}

}  // namespace
}  // namespace bench::cli_test
