// How each version of Lightning reads the device arguments of a Trainer. The expectations for 1.9.5
// and 2.5.5 were compared with what the AcceleratorConnector of those releases does on four GPUs
// that are only pretended; those of older releases were read from their sources.
#include "scenarios/pitfalls/frameworks/trainer.hpp"

#include "diagnose/driver/explain_trainer.hpp"
#include "diagnose/driver/trainer_today.hpp"

#include <gtest/gtest.h>

namespace bench::diagnose {
namespace {

using enum LightningVersion;

struct Script {
  explicit Script(const std::string& call, const std::string& before = {},
                  std::optional<int> gpus = 4)
      : module("train.py", "train", "import pytorch_lightning as pl\n" + before + "pl." + call) {
    ProgramInput input;
    input.modules.push_back(&module);
    input.gpus = gpus;
    program.emplace(std::move(input));
  }
  pitfalls::trainer::Use use() const { return pitfalls::trainer::uses(*program).at(0); }

  Module module;
  std::optional<Program> program;
};

std::string read(const std::string& arguments, LightningVersion version,
                 TrainerMachine machine = {.visible_gpus = 4, .interactive = false}) {
  return describe(read_trainer(Script("Trainer(" + arguments + ")\n").use(), version, machine));
}

struct Row {
  const char* arguments;
  LightningVersion from;  // versions from ... to read it alike
  LightningVersion to;
  const char* reading;
};

const char* const kNoStrategy = "TypeError: unexpected keyword argument 'strategy'";
const char* const kNoGpus = "TypeError: unexpected keyword argument 'gpus'";
const char* const kTooMany = "MisconfigurationException: GPU 4 is requested, but only 4 visible";

const Row kRows[] = {
    // gpus alone
    {"gpus=None", up_to_1_4, from_1_7, "the CPU; 1 process"},
    {"gpus=0", up_to_1_4, from_1_7, "the CPU; 1 process"},
    {"gpus=1", up_to_1_4, from_1_7, "GPU 0; 1 process"},
    {"gpus=2", up_to_1_4, from_1_7, "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"gpus=-1", up_to_1_4, from_1_7, "all visible GPUs: 4; 4 processes (ddp_spawn)"},
    {"gpus=[0, 1]", up_to_1_4, from_1_7, "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"gpus=[1]", up_to_1_4, from_1_7, "GPU 1; 1 process"},
    {"gpus='0,1'", up_to_1_4, from_1_7, "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"gpus='3,'", up_to_1_4, from_1_7, "GPU 3; 1 process"},
    {"gpus='-1'", up_to_1_4, from_1_7, "all visible GPUs: 4; 4 processes (ddp_spawn)"},
    // A string of digits was an index, and became a count in 1.5.
    {"gpus='2'", up_to_1_4, up_to_1_4, "GPU 2; 1 process"},
    {"gpus='2'", at_1_5, from_1_7, "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"gpus='0'", up_to_1_4, up_to_1_4, "GPU 0; 1 process"},
    {"gpus='0'", at_1_5, from_1_7, "the CPU; 1 process"},
    {"gpus=[]", up_to_1_4, up_to_1_4,
     "MisconfigurationException: GPUs requested but none are available"},
    {"gpus=[]", at_1_5, from_1_7, "the CPU; 1 process"},
    {"gpus=[0, 0]", up_to_1_4, up_to_1_4, "GPUs 0, 0; 2 processes (ddp_spawn)"},
    {"gpus=[0, 0]", at_1_5, from_1_7, "MisconfigurationException: device indices must be unique"},
    {"gpus=5", up_to_1_4, from_1_7, kTooMany},
    {"gpus=[4]", up_to_1_4, from_1_7, kTooMany},
    {"gpus=-2", up_to_1_4, from_1_7,
     "MisconfigurationException: GPUs requested but none are available"},
    {"gpus=2", from_2_0, from_2_0, kNoGpus},
    {"gpus=None", from_2_0, from_2_0, kNoGpus},
    // accelerator as the name of a strategy
    {"gpus=2, accelerator='dp'", up_to_1_4, at_1_6,
     "GPUs 0, 1; 1 process, a thread for each GPU (dp)"},
    {"gpus=2, accelerator='ddp'", up_to_1_4, at_1_6, "GPUs 0, 1; 2 processes (ddp)"},
    {"gpus=2, accelerator='ddp_spawn'", up_to_1_4, at_1_6, "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"gpus=2, num_nodes=3, accelerator='ddp2'", up_to_1_4, at_1_6,
     "GPUs 0, 1; 3 processes, one a node (ddp2)"},
    {"gpus=2, accelerator='ddp'", from_1_7, from_1_7,
     "ValueError: invalid accelerator name \"ddp\""},
    {"accelerator='ddp_cpu', num_processes=3", up_to_1_4, at_1_6,
     "the CPU; 3 processes (ddp_spawn)"},
    {"gpus=2, distributed_backend='ddp'", up_to_1_4, up_to_1_4, "GPUs 0, 1; 2 processes (ddp)"},
    {"gpus=2, distributed_backend='ddp'", at_1_5, from_2_0,
     "TypeError: unexpected keyword argument 'distributed_backend'"},
    // strategy
    {"gpus=2, strategy='ddp'", up_to_1_4, up_to_1_4, kNoStrategy},
    {"gpus=2, strategy='ddp'", at_1_5, from_1_7, "GPUs 0, 1; 2 processes (ddp)"},
    {"gpus=2, strategy='dp'", at_1_5, from_1_7, "GPUs 0, 1; 1 process, a thread for each GPU (dp)"},
    {"gpus=2, strategy='ddp2'", at_1_5, at_1_6, "GPUs 0, 1; 1 process, one a node (ddp2)"},
    {"gpus=2, strategy='ddp2'", from_1_7, from_1_7, "ValueError: invalid strategy name \"ddp2\""},
    {"gpus=2, strategy='ddp', accelerator='ddp'", at_1_5, at_1_5,
     "MisconfigurationException: both strategy and accelerator name a strategy"},
    {"gpus=2, strategy='dp', num_nodes=2", at_1_5, at_1_5,
     "MisconfigurationException: num_nodes > 1 needs a ddp strategy"},
    {"gpus=2, strategy='ddp', num_nodes=2", at_1_5, from_1_7,
     "GPUs 0, 1; 4 processes (ddp, 2 nodes)"},
    {"gpus=2, num_nodes=2", up_to_1_4, at_1_5, "GPUs 0, 1; 4 processes (ddp_spawn, 2 nodes)"},
    {"gpus=2, num_nodes=2", at_1_6, from_1_7, "GPUs 0, 1; 4 processes (ddp, 2 nodes)"},
    {"gpus=0, strategy='ddp'", at_1_5, at_1_5, "the CPU; 1 process"},
    {"gpus=0, strategy='ddp'", at_1_6, from_1_7, "the CPU; 1 process (ddp)"},
    {"num_processes=3, strategy='dp'", at_1_5, from_1_7, "the CPU; 3 processes (ddp)"},
    // devices and accelerator
    {"devices=2", at_1_5, at_1_5,
     "MisconfigurationException: devices without accelerator=\"gpu\", \"cpu\", \"auto\" ..."},
    {"devices=2", at_1_6, from_1_7, "the CPU; 2 processes (ddp_spawn)"},
    {"devices=2", from_2_0, from_2_0, "GPUs 0, 1; 2 processes (ddp)"},
    {"accelerator='gpu', devices=2", up_to_1_4, from_1_7, "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"accelerator='gpu', devices=2", from_2_0, from_2_0, "GPUs 0, 1; 2 processes (ddp)"},
    {"accelerator='gpu', devices=2, strategy='dp'", from_2_0, from_2_0,
     "ValueError: invalid strategy name \"dp\""},
    {"accelerator='gpu', devices='2'", from_2_0, from_2_0, "GPUs 0, 1; 2 processes (ddp)"},
    {"accelerator='gpu', devices='2'", up_to_1_4, up_to_1_4, "GPU 2; 1 process"},
    {"accelerator='gpu', devices='0,1'", up_to_1_4, from_1_7, "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"accelerator='gpu', devices=0", at_1_6, from_2_0,
     "MisconfigurationException: devices=0 is not a valid number"},
    {"accelerator='gpu', devices='0'", at_1_6, from_2_0,
     "MisconfigurationException: devices=\"0\" is not a valid number"},
    {"accelerator='gpu', devices=-1", from_2_0, from_2_0, "all visible GPUs: 4; 4 processes (ddp)"},
    {"devices=-1, accelerator='cpu'", from_1_7, from_2_0,
     "TypeError: devices must be a positive number for the CPU"},
    {"accelerator='cpu', devices=3", at_1_6, from_1_7, "the CPU; 3 processes (ddp_spawn)"},
    {"accelerator='cpu', devices=3", from_2_0, from_2_0, "the CPU; 3 processes (ddp)"},
    {"devices=None", from_2_0, from_2_0,
     "TypeError: devices=None; leave devices out for all visible GPUs"},
    {"accelerator='auto', devices='auto'", at_1_5, from_1_7,
     "all visible GPUs: 4; 4 processes (ddp_spawn)"},
    {"accelerator='auto', devices='auto', strategy='auto'", from_1_7, from_2_0,
     "all visible GPUs: 4; 4 processes (ddp)"},
    {"devices='auto'", at_1_6, from_1_7,
     "MisconfigurationException: devices=\"auto\" without an accelerator"},
    {"", up_to_1_4, from_1_7, "the CPU; 1 process"},
    {"", from_2_0, from_2_0, "all visible GPUs: 4; 4 processes (ddp)"},
    {"accelerator='gpu'", up_to_1_4, at_1_5,
     "MisconfigurationException: accelerator=\"gpu\" without a number of GPUs"},
    {"accelerator='gpu'", at_1_6, from_1_7, "all visible GPUs: 4; 4 processes (ddp_spawn)"},
    {"gpus=2, accelerator='cpu'", up_to_1_4, at_1_5, "the CPU; 1 process"},
    {"gpus=2, accelerator='cpu'", at_1_6, from_1_7, "the CPU; 2 processes (ddp_spawn)"},
    // auto_select_gpus acts on a count only.
    {"gpus=2, auto_select_gpus=True", up_to_1_4, from_1_7,
     "2 GPUs that accept an allocation; 2 processes (ddp_spawn)"},
    {"gpus=[0, 1], auto_select_gpus=True", up_to_1_4, from_1_7,
     "GPUs 0, 1; 2 processes (ddp_spawn)"},
    {"gpus=0, auto_select_gpus=True", up_to_1_4, at_1_5,
     "MisconfigurationException: auto_select_gpus=True with gpus=0"},
    {"gpus=0, auto_select_gpus=True", at_1_6, from_1_7, "the CPU; 1 process"},
    {"devices=2, auto_select_gpus=True", from_2_0, from_2_0,
     "TypeError: unexpected keyword argument 'auto_select_gpus'"},
    // log_gpu_memory went in 1.7.
    {"gpus=1, log_gpu_memory='all'", up_to_1_4, at_1_6, "GPU 0; 1 process"},
    {"gpus=1, log_gpu_memory='min_max'", from_1_7, from_2_0,
     "TypeError: unexpected keyword argument 'log_gpu_memory'"},
};

TEST(TrainerReading, IsTheOneOfEachVersion) {
  for (const Row& row : kRows)
    for (const LightningVersion version : kLightningVersions) {
      if (version < row.from || version > row.to) continue;
      std::string expected = row.reading;
      // The first removed argument is the one that is refused.
      const std::string got = read(row.arguments, version);
      if (version == from_2_0 && got.find("'gpus'") != std::string::npos) expected = kNoGpus;
      EXPECT_EQ(got, expected) << row.arguments << " in version " << static_cast<int>(version);
    }
}

TEST(TrainerReading, KnowsNotebooksAndHiddenGpus) {
  const TrainerMachine notebook{.visible_gpus = 4, .interactive = true};
  EXPECT_EQ(read("devices=2", from_2_0, notebook), "GPUs 0, 1; 2 processes (ddp_fork)");
  EXPECT_EQ(read("", from_2_0, notebook), "GPU 0; 1 process");
  EXPECT_EQ(read("devices=2, strategy='ddp'", from_2_0, notebook),
            "MisconfigurationException: strategy \"ddp\" cannot start in a notebook");
  EXPECT_EQ(read("gpus=2", at_1_5, notebook), "GPUs 0, 1; 2 processes (ddp_spawn)");
  const TrainerMachine none{.visible_gpus = 0, .interactive = false};
  EXPECT_EQ(read("", from_2_0, none), "the CPU; 1 process");
  EXPECT_EQ(read("gpus=1", at_1_5, none), "MisconfigurationException: no GPU is visible");
  const TrainerMachine unknown;
  EXPECT_EQ(read("gpus=-1", at_1_5, unknown),
            "all visible GPUs; one process for each GPU (ddp_spawn)");
  EXPECT_EQ(read("gpus=8", at_1_5, unknown),
            "GPUs 0, 1, 2, 3, 4, 5, 6, 7; 8 processes (ddp_spawn)");
}

TEST(TrainerReading, SaysSoWhereAnArgumentIsNotALiteral) {
  EXPECT_EQ(read("gpus=args.gpus", at_1_5), "not known here: gpus=args.gpus");
  EXPECT_EQ(read("devices=n, strategy=how, max_epochs=m", from_2_0),
            "not known here: devices=n, strategy=how");
}

struct PrecisionRow {
  const char* value;
  LightningVersion version;
  bool on_cpu;
  const char* reading;
};

TEST(TrainerPrecision, IsTheOneOfEachVersion) {
  const PrecisionRow rows[] = {
      {"16", up_to_1_4, false, "mixed, float16"},
      {"16", up_to_1_4, true, "MisconfigurationException: mixed precision needs a GPU"},
      {"'16'", up_to_1_4, false, "NotImplementedError: only 64, 32 and 16"},
      {"'bf16'", up_to_1_4, false, "NotImplementedError: only 64, 32 and 16"},
      {"'16'", at_1_5, false, "mixed, float16"},
      {"16", at_1_6, true, "mixed, bfloat16, with a warning: float16 needs a GPU"},
      {"'bf16'", at_1_5, false, "mixed, bfloat16"},
      {"'16-mixed'", from_1_7, false, "MisconfigurationException: not a precision of this version"},
      {"16", from_2_0, false, "mixed, float16"},
      {"'16-mixed'", from_2_0, true, "mixed, bfloat16, with a warning"},
      {"'bf16-true'", from_2_0, false, "weights and all in bfloat16"},
      {"32", up_to_1_4, false, "float32"},
      {"'32-true'", from_2_0, false, "float32"},
      {"64", from_2_0, false, "float64"},
      {"8", from_2_0, false, "ValueError: not a precision"},
  };
  for (const PrecisionRow& row : rows) {
    const Script script("Trainer(precision=" + std::string(row.value) + ")\n");
    EXPECT_EQ(describe_precision(script.use().find("precision")->value, row.version, row.on_cpu),
              row.reading)
        << row.value << " in version " << static_cast<int>(row.version);
  }
}

TEST(TrainerToday, SaysOldArgumentsInTheWayOfVersion2) {
  const std::pair<const char*, const char*> rows[] = {
      {"gpus=None", "Trainer(accelerator=\"cpu\", devices=1)"},
      {"gpus=0", "Trainer(accelerator=\"cpu\", devices=1)"},
      {"gpus='0'", "Trainer(accelerator=\"cpu\", devices=1)"},
      {"gpus=2", "Trainer(accelerator=\"gpu\", devices=2)"},
      {"gpus='2'", "Trainer(accelerator=\"gpu\", devices=2)"},
      {"gpus=-1", "Trainer(accelerator=\"gpu\", devices=-1)"},
      {"gpus=[0, 1]", "Trainer(accelerator=\"gpu\", devices=[0, 1])"},
      {"gpus='0,1'", "Trainer(accelerator=\"gpu\", devices=\"0,1\")"},
      {"gpus=args.gpus", "Trainer(accelerator=\"gpu\", devices=args.gpus)"},
      {"gpus=2, accelerator='dp'", "Trainer(accelerator=\"gpu\", devices=2, strategy=\"ddp\")"},
      {"gpus=2, accelerator='ddp2', num_nodes=2",
       "Trainer(accelerator=\"gpu\", devices=2, strategy=\"ddp\", num_nodes=2)"},
      {"gpus=2, strategy='ddp_sharded'",
       "Trainer(accelerator=\"gpu\", devices=2, strategy=\"fsdp\")"},
      {"accelerator='ddp_cpu', num_processes=2",
       "Trainer(strategy=\"ddp_spawn\", accelerator=\"cpu\", devices=2)"},
      {"gpus=2, auto_select_gpus=True",
       "Trainer(accelerator=\"gpu\", devices=find_usable_cuda_devices(2))"},
      {"auto_select_gpus=True, gpus=2",
       "Trainer(devices=find_usable_cuda_devices(2), accelerator=\"gpu\")"},
      {"gpus=1, log_gpu_memory='min_max'",
       "Trainer(accelerator=\"gpu\", devices=1, callbacks=[DeviceStatsMonitor()])"},
      {"gpus=1, log_gpu_memory=None", "Trainer(accelerator=\"gpu\", devices=1)"},
      {"gpus=1, precision=16", "Trainer(accelerator=\"gpu\", devices=1, precision=\"16-mixed\")"},
      {"gpus=1, replace_sampler_ddp=False",
       "Trainer(accelerator=\"gpu\", devices=1, use_distributed_sampler=False)"},
      {"gpus=1, resume_from_checkpoint=path", "Trainer(accelerator=\"gpu\", devices=1)"},
      {"max_epochs=3, logger=logger", "Trainer(max_epochs=3, logger=logger)"},
  };
  for (const auto& [arguments, call] : rows) {
    const Script script("Trainer(" + std::string(arguments) + ")\n");
    EXPECT_EQ(said_today(script.use()).call(), call) << arguments;
  }
}

TEST(TrainerToday, KeepsDevicesAndProcesses) {
  for (const char* arguments : {"gpus=None", "gpus=0", "gpus=1", "gpus=[1, 3]", "gpus='0,1'",
                                "gpus=-1, strategy='ddp'", "gpus=2, strategy='ddp', num_nodes=2"}) {
    const Script script("Trainer(" + std::string(arguments) + ")\n");
    TrainerReading before = read_trainer(script.use(), at_1_6, {4, false});
    const TrainerReading after = read_trainer(said_today(script.use()).use(), from_2_0, {4, false});
    if (before.strategy == "ddp_spawn") before.strategy = "ddp";  // the default changed
    EXPECT_EQ(describe(after), describe(before)) << arguments;
  }
}

TEST(ExplainTrainer, AsksTheMachineAsTheScriptDoes) {
  const Script script(
      "Trainer(accelerator=kind, devices=torch.cuda.device_count(),\n"
      "        strategy=DDPStrategy(find_unused_parameters=True), precision=cfg.precision)\n",
      "import os\n"
      "import torch\n"
      "from lightning.pytorch.strategies import DDPStrategy\n"
      "os.environ['CUDA_VISIBLE_DEVICES'] = '0,1,2'\n"
      "kind = 'gpu' if torch.cuda.is_available() else 'cpu'\n");
  const std::string text = explain_trainer(*script.program);
  EXPECT_NE(text.find("2.x: GPUs 0, 1, 2; 3 processes (ddp)"), std::string::npos) << text;
  // No version refuses a precision that is not known.
  EXPECT_NE(text.find("precision=cfg.precision (not known here)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("not a precision"), std::string::npos) << text;
}

TEST(ExplainTrainer, KeepsOptionsByTheirNames) {
  const Script script("Trainer(gpus=args.gpus, max_epochs=args.epochs, precision=args.precision)\n",
                      "import argparse\n"
                      "parser = argparse.ArgumentParser()\n"
                      "parser.add_argument('--gpus', type=int, default=2)\n"
                      "parser.add_argument('--epochs', type=int, default=10)\n"
                      "parser.add_argument('--precision', type=int, default=16)\n"
                      "args = parser.parse_args()\n");
  const std::string text = explain_trainer(*script.program);
  EXPECT_NE(text.find("for Lightning 2: Trainer(accelerator=\"gpu\", devices=args.gpus, "
                      "max_epochs=args.epochs, precision=args.precision)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("precision=args.precision -> the default is \"16-mixed\" today"),
            std::string::npos)
      << text;
}

TEST(ExplainTrainer, SaysWhatNoGpusAreToday) {
  const char* const note = "(for 0 and None: accelerator=\"cpu\", devices=1)";
  const auto explain = [](const char* arguments) {
    return explain_trainer(*Script(std::string("Trainer(") + arguments + ")\n").program);
  };
  EXPECT_NE(explain("gpus=2 if use_cuda() else 0").find(note), std::string::npos);
  EXPECT_EQ(explain("gpus=2").find(note), std::string::npos);
}

// Hydra's own keys are no arguments, and other files may hold more of them.
TEST(ExplainTrainer, ReadsHydrasTarget) {
  std::vector<ConfigEntry> entries = read_yaml("ddp.yaml",
                                               "defaults:\n"
                                               "  - default.yaml\n"
                                               "_target_: lightning.pytorch.trainer.Trainer\n"
                                               "_convert_: all\n"
                                               "strategy: ddp\n"
                                               "devices: 2\n"
                                               "accelerator: gpu\n");
  ProgramInput input;
  input.configs = std::move(entries);
  const Program program(std::move(input));
  EXPECT_EQ(explain_trainer(program),
            "ddp.yaml:5: Trainer\n"
            "  its defaults may bring arguments of other files, which are not read here\n"
            "  devices and processes\n"
            "    Lightning 1.0 to 1.4: TypeError: unexpected keyword argument 'strategy'\n"
            "    Lightning 1.5 to 2.x: GPUs 0, 1; 2 processes (ddp)\n");
}

TEST(ExplainTrainer, PrintsDevicesBatchAndReplacements) {
  const Script script("Trainer(gpus=2, strategy='dp')\n",
                      "import os\n"
                      "from torch.utils.data import DataLoader\n"
                      "os.environ['CUDA_VISIBLE_DEVICES'] = '2,3'\n"
                      "loader = DataLoader(data, batch_size=33)\n");
  EXPECT_EQ(
      explain_trainer(*script.program),
      "train.py:6: Trainer\n"
      "  visible GPUs: 2 (CUDA_VISIBLE_DEVICES: index 0 is GPU 2 of the machine; all are 2, 3)\n"
      "  devices and processes\n"
      "    Lightning 1.0 to 1.4: TypeError: unexpected keyword argument 'strategy'\n"
      "    Lightning 1.5 to 1.9: GPUs 0, 1; 1 process, a thread for each GPU (dp); at most 17 "
      "samples on each device (dp splits 33)\n"
      "    Lightning 2.x: TypeError: unexpected keyword argument 'gpus'\n"
      "  for Lightning 2: Trainer(accelerator=\"gpu\", devices=2, strategy=\"ddp\")\n"
      "    GPUs 0, 1; 2 processes (ddp); 33 samples on each device, 66 in all\n"
      "    gpus=2 -> accelerator=\"gpu\", devices=2; removed in 2.0\n"
      "    strategy=\"dp\" -> strategy=\"ddp\"; the loader's batch size is then that of one "
      "device, no longer split\n");
}

}  // namespace
}  // namespace bench::diagnose
