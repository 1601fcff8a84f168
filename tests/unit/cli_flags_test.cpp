// What was typed: every row of the flag table with its own example, and the ways to get it wrong.
#include "bench/cli/help.hpp"
#include "bench/cli/run_flags.hpp"
#include "bench/core/error.hpp"
#include "bench/plan/setting_table.hpp"

#include <gtest/gtest.h>

namespace bench::cli {
namespace {

RunFlags parse(Arguments arguments) {
  arguments.insert(arguments.begin(), {"--scenario", "dp_vs_ddp"});
  return parse_run_flags(arguments);
}

std::string error_of(const Arguments& arguments) {
  try {
    parse(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RunFlags, EveryRowAcceptsItsExampleInBothForms) {
  for (const Flag& flag : run_flags()) {
    const std::string name(flag.name), example(flag.example);
    if (name == "--resume") continue;  // cannot go with others; tried below
    EXPECT_EQ(error_of({name + "=" + example}), "accepted") << name;
    if (flag.placeholder.empty()) {
      EXPECT_EQ(error_of({name}), "accepted") << name;
    } else {
      EXPECT_EQ(error_of({name, example}), "accepted") << name;
      EXPECT_EQ(error_of({name}),
                name + ": expected a value (" + std::string(flag.placeholder) + ")");
    }
  }
}

TEST(RunFlags, EveryShownRowIsInTheHelp) {
  const std::string help = overview_text();
  for (const Flag& flag : run_flags()) {
    const bool shown = help.find(std::string(flag.name)) != std::string::npos;
    EXPECT_EQ(shown, !flag.help.empty()) << flag.name;
  }
}

TEST(RunFlags, UnknownFlagsListTheNearest) {
  EXPECT_TRUE(error_of({"--modle", "mlp"})
                  .starts_with("bench: unknown flag '--modle'; did you mean --model"));
}

TEST(RunFlags, RepeatedListsAddUp) {
  Settings settings;
  apply_settings(parse({"--model", "mlp", "--model", "resnet18,resnet50"}).settings, settings);
  EXPECT_EQ(settings.models, (std::vector<std::string>{"mlp", "resnet18", "resnet50"}));
}

TEST(RunFlags, TheLastOfARepeatedValueWins) {
  Settings settings;
  apply_settings(parse({"--steps", "3", "--steps", "5"}).settings, settings);
  EXPECT_EQ(settings.steps, 5);
}

TEST(RunFlags, SwitchesCanBeNegated) {
  Settings settings;
  apply_settings(parse({"--no-broadcast-buffers", "--static-graph", "--no-no-sync"}).settings,
                 settings);
  EXPECT_EQ(settings.broadcast_buffers, std::vector<bool>{false});
  EXPECT_EQ(settings.static_graph, std::vector<bool>{true});
  EXPECT_EQ(settings.no_sync, std::vector<bool>{false});
  apply_settings(parse({"--no-sync=true,false"}).settings, settings);
  EXPECT_EQ(settings.no_sync, (std::vector<bool>{true, false}));
}

TEST(RunFlags, MinusOneIsAValueOfGpus) { EXPECT_EQ(parse({"--gpus", "-1"}).devices.gpus, "-1"); }

TEST(RunFlags, BenchmarkFlagsPassThrough) {
  EXPECT_EQ(parse({"--benchmark_filter=mlp"}).benchmark_flags,
            std::vector<std::string>{"--benchmark_filter=mlp"});
}

TEST(RunFlags, AResumedCommandIsOverwrittenByWhatIsTypedNow) {
  EXPECT_EQ(merged_arguments({"--scenario", "dp_vs_ddp", "--batch", "8", "--out", "out",
                              "--static-graph", "--benchmark_filter=x"},
                             {"--resume", "out", "--batch=16"}),
            (Arguments{"--scenario=dp_vs_ddp", "--static-graph=true", "--benchmark_filter=x",
                       "--resume", "out", "--batch=16"}));
}

TEST(RunFlags, MistakesNameTheFlag) {
  EXPECT_EQ(error_of({"--batch", "0"}), "--batch: expected 1 or more, found 0");
  EXPECT_EQ(error_of({"--batch", "8", "--batch-per-gpu", "8"}),
            "--batch-per-gpu: expected either this or --batch");
  EXPECT_EQ(error_of({"--time-out", "never"}),
            "--time-out: expected a number above 0, found "
            "'never'");
  EXPECT_EQ(error_of({"--device", "tpu"}), "--device: expected cuda, vgpu or cpu, found 'tpu'");
  EXPECT_EQ(error_of({"--out", "a", "--resume", "b"}),
            "--resume: continues in its own directory; it cannot go with --out");
  EXPECT_EQ(error_of({"extra"}), "unexpected 'extra'; expected flags, see bench --help");
  EXPECT_EQ(error_of({"--gpus="}), "--gpus: expected a value (LIST)");
  EXPECT_EQ(error_of({"--static-graph=maybe"}),
            "--static-graph: expected true or false, found 'maybe'");
  EXPECT_THROW(parse_run_flags({"--gpus", "0"}), UsageError);
}

}  // namespace
}  // namespace bench::cli
