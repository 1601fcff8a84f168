// What lies beside a script that is given alone: launch lines in the many places people keep them,
// which of them are about this script, and where the search ends.
#include "diagnose/driver/surroundings.hpp"

#include "bench/core/temporary_directory.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/launch/launch_documents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

std::optional<LaunchLine> only_line(const std::string& file, std::string_view text) {
  const auto lines = read_launch_document(file, text);
  EXPECT_EQ(lines.size(), 1U) << file << "\n" << text;
  return lines.empty() ? std::nullopt : std::optional(lines.front());
}

TEST(LaunchDocuments, ReadCommandsInManyPlaces) {
  const struct {
    const char* file;
    const char* text;
    Launcher launcher;
    const char* script;
    std::uint32_t line;
  } cases[] = {
      {"README.md",
       "# Run\n\n```bash\n$ torchrun --nproc_per_node=4 \\\n    train.py --lr 1\n```\n",
       Launcher::torchrun, "train.py", 5},
      {"README.md", "Use `python -m torch.distributed.launch --nproc_per_node 2 tools/train.py`.\n",
       Launcher::launch_module, "tools/train.py", 1},
      {"readme.rst", "Start it::\n\n    accelerate launch --num_processes 2 run.py\n",
       Launcher::accelerate, "run.py", 3},
      {"README.md", "CUDA_VISIBLE_DEVICES=0,1 python -m app.train --epochs 3\n", Launcher::python,
       "app/train.py", 1},
      {"Makefile", "train:\n\t@torchrun --nproc-per-node $(GPUS) train.py\n", Launcher::torchrun,
       "train.py", 2},
      {"Dockerfile", "FROM x\nCMD [\"torchrun\", \"--nproc_per_node=4\", \"train.py\"]\n",
       Launcher::torchrun, "train.py", 2},
      {"docker/train.Dockerfile", "ENTRYPOINT python -u train.py\n", Launcher::python, "train.py",
       1},
      {"run.sh", "python -m torch.distributed.launch $(dirname \"$0\")/train.py ${@:2}\n",
       Launcher::launch_module, "$(dirname \"$0\")/train.py", 1},
      {"run.sh", "torchrun -m torch.distributed.launch --nproc_per_node 4 train.py\n",
       Launcher::launch_module, "train.py", 1},
  };
  for (const auto& each : cases) {
    const auto line = only_line(each.file, each.text);
    if (!line) continue;
    EXPECT_EQ(line->launcher, each.launcher) << each.text;
    EXPECT_EQ(line->script_path(), each.script) << each.text;
    EXPECT_EQ(line->script.line, each.line) << each.text;
  }
}

// Of two recipes for one target make runs the last.
TEST(LaunchDocuments, AMakefileHasOneRecipeForATarget) {
  const auto line = only_line("Makefile",
                              "test:\n\tpython test.py\n\nclean:\n\trm -r out\n"
                              "test: data\n\ttorchrun --nproc-per-node 2 test.py\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->launcher, Launcher::torchrun);
  for (const char* several :
       {"a:\n\tpython train.py\nb:\n\ttorchrun train.py\n",
        "a::\n\tpython train.py\na::\n\ttorchrun train.py\n",
        "a:\n\tpython train.py\n# both\n\ttorchrun train.py\n",
        "$(A:%=a-%):\n\tpython train.py\n$(A:%=b-%):\n\ttorchrun train.py\n",
        "  ifdef N\na:\n\tpython train.py\n  else\na:\n\ttorchrun train.py\n  endif\n",
        "ifeq ($(N),1)\na:\n\tpython train.py\nelse\na:\n\ttorchrun train.py\nendif\n"})
    EXPECT_EQ(read_launch_document("Makefile", several).size(), 2U) << several;
}

TEST(LaunchDocuments, ReadWhatAnEditorStarts) {
  const auto line = only_line(".vscode/launch.json", R"({
    // debug
    "configurations": [{"module": "torch.distributed.run",
      "args": ["--nproc_per_node", "2", "${workspaceFolder}/train.py"],
      "env": {"CUDA_VISIBLE_DEVICES": "0,1"}}]})");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->launcher, Launcher::torchrun);
  EXPECT_EQ(line->processes_per_node(), 2);
  EXPECT_EQ(line->visible_devices(), 2);
  EXPECT_EQ(line->script_path(), "train.py");
}

TEST(LaunchDocuments, TakeNothingElseForACommand) {
  for (const char* text :
       {"python 3.8 and torch are needed\n", "```python\nimport torch\nmodel = Net()\n```\n",
        "`torchrun` starts it; `train.py` trains.\n", "[torchrun](https://x/torchrun train.py)\n",
        "```\ngit clone https://host/train.py\n```\n", "`", "```", "\t", "    \\"}) {
    for (const LaunchLine& line : read_launch_document("README.md", text))
      EXPECT_FALSE(line.script_path().ends_with(".py")) << text;
  }
  EXPECT_TRUE(read_launch_document(".vscode/launch.json", "{\"configurations\": 3, ").empty());
  EXPECT_TRUE(read_launch_document("Dockerfile", "CMD [\nRUN python train.py\n").empty());
}

TEST(LaunchLines, OfPlainPythonMaySpeakOfNodes) {
  EXPECT_EQ(parse_launch("python train.py --epochs 3")->nodes(), 1);
  EXPECT_EQ(parse_launch("python train.py --world-size 4")->nodes(), 1);
  EXPECT_FALSE(parse_launch("python train.py --world-size 2 --rank 0")->nodes());
  EXPECT_FALSE(parse_launch("python train.py --num_nodes=2")->nodes());
}

TEST(LaunchLines, OfTorchrunMeetHereWithoutAnAddress) {
  EXPECT_EQ(parse_launch("torchrun --nnodes=$NODES train.py")->nodes(), 1);
  EXPECT_EQ(parse_launch("torchrun --nnodes=2 train.py")->nodes(), 2);
  EXPECT_FALSE(parse_launch("torchrun --nnodes=$NODES --master_addr=$HOST train.py")->nodes());
  EXPECT_FALSE(parse_launch("torchrun --nnodes=$NODES --rdzv_endpoint=$HOST train.py")->nodes());
  EXPECT_FALSE(parse_launch("accelerate launch --num_machines=$NODES train.py")->nodes());
}

TEST(LaunchLines, StandBehindAProfiler) {
  const auto line = parse_launch("nsys profile --output report python3 -u train.py --epochs 2");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->launcher, Launcher::python);
  EXPECT_EQ(line->script.text, "train.py");
  EXPECT_FALSE(parse_launch("nsys stats report.sqlite"));
}

TEST(LaunchLines, OfABatchJobSeeItsGpus) {
  const auto visible = [](const std::string& options, const std::string& command) {
    const auto line = only_line("job.sbatch", options + command + "\n");
    return line ? line->visible_devices() : std::nullopt;
  };
  EXPECT_EQ(visible("#SBATCH --gres=gpu:1\n", "python train.py"), 1);
  EXPECT_EQ(visible("#SBATCH --gres gpu:a100:4 --requeue\n", "python train.py"), 4);
  EXPECT_EQ(visible("#SBATCH --exclusive --gpus=2\n", "python train.py"), 2);
  EXPECT_FALSE(visible("#SBATCH --gres=gpu:2,lustre:1\n", "python train.py"));
  EXPECT_FALSE(visible("#SBATCH --gres=gpu:4\n", "torchrun --nproc_per_node=4 train.py"));
  EXPECT_EQ(visible("#SBATCH --gres=gpu:4\n", "CUDA_VISIBLE_DEVICES=0 python train.py"), 1);
}

class Project : public testing::Test {
 protected:
  void SetUp() override {
    write("repo/setup.py", "");
    write("repo/tools/train.py",
          "import torch.multiprocessing as mp\ndef work(rank):\n    pass\n"
          "if __name__ == '__main__':\n    mp.spawn(work, nprocs=4)\n");
  }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // LAU008 tells that torchrun starts a script that spawns its ranks.
  std::vector<Finding> findings(std::vector<std::string> given = {"repo/tools/train.py"}) const {
    DiagnoseOptions options;
    options.selection.select = {"LAU008", "LAU009"};
    for (const std::string& path : given) options.paths.push_back((root_ / path).string());
    return diagnose(options).findings;
  }

  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(Project, LinesThatNameTheScriptCount) {
  EXPECT_TRUE(findings().empty());
  for (const auto& [path, text] : std::map<std::string, std::string>{
           {"repo/tools/run.sh", "torchrun --nproc-per-node 4 train.py\n"},
           {"repo/run.slurm", "srun torchrun --nproc-per-node 4 tools/train.py\n"},
           {"repo/scripts/go.sh", "torchrun --nproc-per-node 4 tools/train.py\n"},
           {"repo/scripts/here.sh", "cd ../tools\ntorchrun --nproc-per-node 4 train.py\n"},
           {"repo/scripts/var.sh", "torchrun --nproc-per-node 4 $ROOT/tools/train.py\n"},
           {"repo/script/go.sh", "torchrun --nproc-per-node 4 tools/train.py\n"},
           {"repo/train_scripts/go.sh", "torchrun --nproc-per-node 4 tools/train.py\n"},
           {"repo/bash/go.sh", "torchrun --nproc-per-node 4 tools/train.py\n"},
           {"repo/tools/README.md",
            "    git clone https://host/me/it.git\n    cd it\n    torchrun --nproc-per-node 4 "
            "tools/train.py\n"},
           {"repo/README.md", "`torchrun --nproc-per-node 4 -m tools.train`\n"},
           {"repo/Makefile", "go:\n\ttorchrun --nproc-per-node 4 tools/train.py\n"}}) {
    write(path, text);
    const auto found = findings();
    EXPECT_EQ(found.size(), 1U) << path;
    fs::remove(root_ / path);
  }
}

TEST_F(Project, LinesOfOtherScriptsDoNot) {
  write("repo/train.py", "import torch\n");
  write("repo/run.sh", "torchrun --nproc-per-node 4 train.py\n");             // another train.py
  write("repo/deep/run.sh", "torchrun --nproc-per-node 4 tools/train.py\n");  // no launch folder
  write("repo/go.sh", "torchrun --nproc-per-node 4 other/tools/train.py\n");
  write("repo/README.md", "`cd gone`, then `torchrun --nproc-per-node 4 tools/train.py`\n");
  write("repo/var.sh", "torchrun --nproc-per-node 4 $SCRIPT\n");
  write("run.sh", "torchrun --nproc-per-node 4 repo/tools/train.py\n");  // above the root
  EXPECT_TRUE(findings().empty());
}

TEST_F(Project, ShellScriptsThatStartItAreCheckedWithIt) {
  write("repo/tools/run.sh", "export NCCL_P2P_DISABLE=1\ntorchrun --nproc-per-node 4 train.py\n");
  write("repo/other.sh", "export NCCL_P2P_DISABLE=1\ntorchrun --nproc-per-node 4 other.py\n");
  write("repo/README.md",
        "    export NCCL_P2P_DISABLE=1\n    torchrun --nproc-per-node 4 tools/train.py\n");
  const auto alone = findings();
  ASSERT_EQ(alone.size(), 2U);  // pages are evidence only
  const auto in_shell = std::find_if(
      alone.begin(), alone.end(), [](const Finding& finding) { return finding.rule == "LAU009"; });
  ASSERT_NE(in_shell, alone.end());
  EXPECT_TRUE(in_shell->file.ends_with("repo/tools/run.sh")) << in_shell->file;
  EXPECT_EQ(in_shell->line, 1U);
  EXPECT_EQ(in_shell->excerpt, "export NCCL_P2P_DISABLE=1");
  EXPECT_EQ(findings({"repo/tools/train.py", "repo/tools/run.sh"}).size(), 2U);
  EXPECT_EQ(findings({"repo"}).size(), 3U);
}

TEST_F(Project, AShellScriptOfTwoScriptsIsToldOnce) {
  write("repo/tools/fit.py", "import torch\ntorch.distributed.init_process_group('nccl')\n");
  write("repo/tools/run.sh",
        "export NCCL_P2P_DISABLE=1\ntorchrun --nproc-per-node 4 train.py\n"
        "torchrun --nproc-per-node 4 fit.py\n");
  const auto found = findings({"repo/tools/train.py", "repo/tools/fit.py"});
  EXPECT_EQ(std::count_if(found.begin(), found.end(),
                          [](const Finding& finding) { return finding.rule == "LAU009"; }),
            1);
}

// mp.spawn calls a function of one parameter with two more, which only its file tells.
TEST_F(Project, APackageWithItsOwnMarkIsNoRoot) {
  const std::string run =
      "import torch.multiprocessing as mp\nimport pkg.steps as steps\n"
      "if __name__ == '__main__':\n    mp.spawn(steps.work, args=(1, 2), nprocs=2)\n";
  for (const char* folder : {"pkg", "own"}) {
    const std::string place = "repo/" + std::string(folder) + "/";
    write(place + "pyproject.toml", "");
    write(place + "run.py", run);
  }
  write("repo/pkg/__init__.py", "");
  write("repo/pkg/steps.py", "def work(rank):\n    pass\n");
  EXPECT_EQ(findings({"repo/pkg/run.py"}).size(), 1U);
  EXPECT_TRUE(findings({"repo/own/run.py"}).empty());  // a project of its own beside the package
}

TEST_F(Project, AReadmeOfADirectoryIsEvidenceToo) {
  write("repo/README.md",
        "```\nexport NCCL_P2P_DISABLE=1\ntorchrun --nproc-per-node 4 tools/train.py\n```\n");
  const auto found = findings({"repo"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().rule, "LAU008");
  DiagnoseOptions options;
  options.paths = {(root_ / "repo").string()};
  EXPECT_EQ(diagnose(options).files, 2U);  // the README is none of them
}

TEST_F(Project, AScriptThatSrunStartsIsStartedBySrun) {
  write("repo/tools/fit.py",
        "import os\nimport torch\nimport torch.distributed as dist\n"
        "dist.init_process_group('nccl', rank=int(os.environ['SLURM_PROCID']), world_size=4)\n"
        "print(os.environ['SLURM_LOCALID'])\n"
        "torch.cuda.set_device(int(os.environ['SLURM_PROCID']))\n");
  write("repo/rank.sh", "nsys profile --stats=true python tools/fit.py\n");
  DiagnoseOptions options;
  options.selection.select = {"LAU006"};
  options.paths = {(root_ / "repo").string()};
  const auto severity = [&](const std::string& nodes) {
    write("repo/job.sbatch", "#SBATCH --nodes=" + nodes + "\nsrun ./rank.sh \"$SIZE\"\n");
    const auto found = diagnose(options).findings;
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Severity::info : found.front().severity;
  };
  EXPECT_EQ(severity("1"), Severity::info);
  EXPECT_EQ(severity("2"), Severity::error);
}

TEST_F(Project, LinksOutOfItAndLargeFilesAreNotRead) {
  write("elsewhere/run.sh", "torchrun --nproc-per-node 4 tools/train.py\n");
  fs::create_symlink(root_ / "elsewhere/run.sh", root_ / "repo/run.sh");
  fs::create_directory_symlink(root_ / "elsewhere", root_ / "repo/scripts");
  write("repo/big.sh", "torchrun --nproc-per-node 4 tools/train.py\n");
  fs::resize_file(root_ / "repo/big.sh", kMaxFileBytes + 1);
  EXPECT_TRUE(findings().empty());
  write("repo/real.txt", "torchrun --nproc-per-node 4 tools/train.py\n");
  fs::create_symlink("real.txt", root_ / "repo/inside.sh");
  EXPECT_EQ(findings().size(), 1U);
}

TEST_F(Project, ReadsABoundedNumberOfFiles) {
  for (int i = 0; i < 64; ++i) write("repo/a" + std::to_string(100 + i) + ".sh", "echo python\n");
  write("repo/z.sh", "torchrun --nproc-per-node 4 tools/train.py\n");
  EXPECT_TRUE(findings().empty());
  fs::remove(root_ / "repo/a100.sh");
  EXPECT_EQ(findings().size(), 1U);
}

TEST_F(Project, ItsRequirementsCountUpToTheRoot) {
  write("repo/tools/fit.py",
        "import pytorch_lightning as pl\npl.Trainer(gpus=2, strategy='ddp')\n");
  DiagnoseOptions options;
  options.selection.select = {"LIT001"};
  options.paths = {(root_ / "repo/tools/fit.py").string()};
  const auto severity = [&] {
    const auto found = diagnose(options).findings;
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Severity::error : found.front().severity;
  };
  write("requirements.txt", "pytorch-lightning==1.4.0\n");
  EXPECT_EQ(severity(), Severity::error);
  write("repo/requirements.txt", "pytorch-lightning==1.4.0\n");
  EXPECT_EQ(severity(), Severity::info);
}

}  // namespace
}  // namespace bench::diagnose
