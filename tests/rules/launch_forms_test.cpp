// The forms in which people write one and the same launch line: behind wrappers, with flags in
// variables, in quoted text, in cells of a notebook and in lists of a program.
#include "diagnose/driver/notebook.hpp"
#include "diagnose/launch/python_commands.hpp"
#include "diagnose/launch/shell_script.hpp"
#include "diagnose/launch/slurm_job.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {
namespace {

std::optional<LaunchLine> only_line(const std::string& text) {
  const auto lines = read_shell_script("run.sh", text);
  EXPECT_EQ(lines.size(), 1U) << text;
  return lines.empty() ? std::nullopt : std::optional(lines.front());
}

TEST(LaunchForms, OfTorchrunWithFourProcesses) {
  const std::string flags = "--nproc_per_node 4";
  for (const std::string& text : std::vector<std::string>{
           "torchrun " + flags + " train.py --lr 1",
           "nohup time torchrun " + flags + " train.py > log 2>&1 &",
           "uv run torchrun " + flags + " train.py",
           "conda run -n env --no-capture-output torchrun " + flags + " train.py",
           "docker run --gpus all -v $PWD:/w image:python3 torchrun " + flags + " train.py",
           "singularity exec --nv image.sif torchrun " + flags + " train.py",
           "enroot start --root --mount=/data image torchrun " + flags + " train.py",
           "ch-run -b /data image -- torchrun " + flags + " train.py",
           "shifter --image=image torchrun " + flags + " train.py",
           "srun -l -N 2 apptainer exec --nv image.sif torchrun " + flags + " train.py",
           "ssh host \"cd x && torchrun " + flags + " train.py\"",
           "bash -c \"export A=1; torchrun " + flags + " train.py\"",
           "srun bash -c '\n  source env\n  torchrun \\\n    " + flags + " train.py\n'",
           "screen -dmS run bash -c 'torchrun " + flags + " train.py'",
           "python `which torchrun` " + flags + " train.py",
           "$(which torchrun) " + flags + " train.py",
           "python -W ignore -m torch.distributed.run " + flags + " train.py",
           "ARGS=\"" + flags + " --master_port $PORT\"\ntorchrun $ARGS train.py",
           "ARGS=(\n  " + flags +
               "  # each\n  --master_port \"$PORT\"\n)\ntorchrun \"${ARGS[@]}\" train.py",
           "ARGS=(\"--nproc_per_node\")\nARGS+=(\"4\")\ntorchrun ${ARGS[@]} train.py",
           "CMD=\"torchrun \\\n  " + flags + " train.py\"\neval $CMD",
           "CMD=\"torchrun " + flags + "\"\nCMD=\"$CMD train.py\"\nsrun bash -c \"$CMD\"",
           "CMD=\"torchrun " + flags + " train.py\"\npdsh -w hosts \"$CMD\"",
           "if ! OUT=$(torchrun " + flags + " train.py); then exit 1; fi",
           "(cd x && torchrun " + flags + " train.py)",
       }) {
    const auto line = only_line(text);
    if (!line) continue;
    EXPECT_EQ(line->launcher, Launcher::torchrun) << text;
    EXPECT_EQ(line->processes_per_node(), 4) << text;
    EXPECT_EQ(line->script.text, "train.py") << text;
  }
}

TEST(LaunchForms, KeepWhatStandsAroundTheCommand) {
  const auto line = only_line("docker run -e CUDA_VISIBLE_DEVICES=0,1 image python train.py &");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->visible_devices(), 2);
  EXPECT_TRUE(line->in_background);
  EXPECT_TRUE(only_line("ssh host torchrun train.py")->is_elsewhere);
  EXPECT_EQ(only_line("echo 'a\nb'\npython train.py")->script.line, 3U);
  EXPECT_EQ(only_line("bash -c '\n\npython train.py'")->script.line, 3U);
}

TEST(LaunchForms, SayWhatTheyDoNotKnow) {
  const auto line = only_line("torchrun $DIST_ARGS train.py");
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->has_unknown_flags);
  EXPECT_EQ(line->script.text, "train.py");
  EXPECT_FALSE(line->processes_per_node());
}

TEST(LaunchForms, AreNoneInProse) {
  for (const char* text :
       {"echo don't\npython3 --version\n", "docker run image\n", "nohup\n", "bash -c\n", "eval\n",
        "A=(\n", "X=\"\n", "ssh host\n", "python -c 'import torch'\n", "`", "$(", "\"\\"})
    EXPECT_TRUE(read_shell_script("run.sh", text).empty()) << text;
}

TEST(LaunchForms, TakeWhatSlurmGives) {
  const std::string head = "#SBATCH -N 1\n#SBATCH --gres=gpu:a100:2 --ntasks-per-node=2\n";
  const auto line =
      only_line(head +
                "srun torchrun --nnodes $SLURM_JOB_NUM_NODES --nproc_per_node $SLURM_GPUS_ON_NODE "
                "--rdzv_endpoint=$HOST train.py\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->nodes(), 1);
  EXPECT_EQ(line->processes_per_node(), 2);
  EXPECT_EQ(gpus_of_job(line->job), 2);
  EXPECT_EQ(tasks_per_node(line->job), 2);
  EXPECT_TRUE(line->is_job_step);
  const auto one = only_line(head + "srun --ntasks=1 torchrun train.py\n");
  EXPECT_EQ(tasks_per_node(one->job), 1);
}

TEST(LaunchForms, OfAShellVariableThatIsNotExported) {
  const std::string set = "CUDA_VISIBLE_DEVICES=0,1\n";
  EXPECT_EQ(only_line(set + "python train.py")->not_exported.size(), 1U);
  for (const std::string& text :
       std::vector<std::string>{"export " + set + "python train.py",
                                set + "export CUDA_VISIBLE_DEVICES\npython train.py",
                                set + "python train.py --gpus $CUDA_VISIBLE_DEVICES",
                                "set -a\n" + set + "python train.py"})
    EXPECT_TRUE(only_line(text)->not_exported.empty()) << text;
}

TEST(LaunchForms, StaySmall) {
  std::string doubled = "A=(x y)\nB=\"x y\"\n";
  for (int i = 0; i < 40; ++i) doubled += "A+=(\"${A[@]}\")\nB+=\"$B\"\n";
  EXPECT_TRUE(read_shell_script("run.sh", doubled + "torchrun $B ${A[@]}").size() <= 1);
}

TEST(LaunchForms, InAProgram) {
  const auto lines =
      commands_in_python("start.py",
                         "import subprocess, sys\n"
                         "\"\"\"torchrun prose.py\"\"\"\n"
                         "cmd = ['torchrun', f'--nproc_per_node={n}', 'train.py']\n"
                         "subprocess.run(cmd)\n"
                         "subprocess.run([sys.executable, '-m', 'torch.distributed."
                         "launch', '--nproc_per_node', str(2), 'old.py'])\n"
                         "os.system(\"accelerate launch --num_processes 2 acc.py\")\n"
                         "names = ['torchrun', 'python']\n");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].script.text, "train.py");
  EXPECT_FALSE(lines[0].processes_per_node());
  EXPECT_EQ(lines[1].launcher, Launcher::launch_module);
  EXPECT_EQ(lines[2].processes_per_node(), 2);
}

std::string notebook_of(const std::string& cell) {
  std::string text;
  for (const char c : cell) text += c == '\n' ? std::string("\\n") : std::string(1, c);
  return "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": \"\"},\n{\"cell_type\": \"code\", "
         "\"source\": \"" +
         text + "\"}]}";
}

TEST(LaunchForms, InCellsOfANotebook) {
  const NotebookSource run = notebook_source(
      notebook_of("!torchrun \\\\\n  --nproc_per_node {n} \\\\\n  train.py\nx = 1"));
  EXPECT_EQ(run.text, "\n\n\nx = 1\n");
  const auto line = only_line(run.commands);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->script.text, "train.py");
  EXPECT_FALSE(line->processes_per_node());
  EXPECT_EQ(place_in_notebook(run.line(4)), "cell 2, line 4");
  const auto files = notebook_source(notebook_of("files = !ls data\nok = a != b\nnn.Linear?"));
  EXPECT_EQ(files.text, "files = get_ipython()\nok = a != b\n\n");
  const auto shell =
      notebook_source(notebook_of("%%bash\npython -m torch.distributed.launch train.py"));
  EXPECT_EQ(only_line(shell.commands)->launcher, Launcher::launch_module);
}

// A count that a finished `if` has set and devices that stand outside need not meet in one run.
TEST(LaunchForms, TellWhatABranchHasSet) {
  const auto lines = read_shell_script("run.sh",
                                       "N=2\n"
                                       "if [ $many = 1 ]; then\n"
                                       "  N=4\n"
                                       "  export CUDA_VISIBLE_DEVICES=0,1\n"
                                       "  torchrun --nproc_per_node=$N train.py\n"
                                       "fi\n"
                                       "torchrun --nproc_per_node=$N train.py\n"
                                       "N=4\n"
                                       "torchrun --nproc_per_node=$N train.py\n");
  ASSERT_EQ(lines.size(), 3U);
  const auto count = [&](int i) { return lines[i].flags.at("nproc-per-node").of_branch; };
  const auto devices = [&](int i) {
    return lines[i].environment.at("CUDA_VISIBLE_DEVICES").of_branch;
  };
  EXPECT_FALSE(count(0) || devices(0));  // both in the branch
  EXPECT_TRUE(count(1) && devices(1));
  EXPECT_TRUE(!count(2) && devices(2));
}

}  // namespace
}  // namespace bench::diagnose
