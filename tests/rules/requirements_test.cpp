// The newest versions that requirement files allow, in the ways people write them.
#include "diagnose/config/requirements.hpp"

#include "diagnose/config/environment_names.hpp"
#include "diagnose/config/readme_versions.hpp"
#include "diagnose/driver/diagnose.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench::diagnose {
namespace {

TEST(Requirements, ReadUpperBounds) {
  const struct {
    std::string_view text;
    std::int16_t NewestVersions::*package;
    int version;
  } cases[] = {
      {"pytorch-lightning==1.4.5\n", &NewestVersions::lightning, 104},
      {"pytorch_lightning==1.5.10", &NewestVersions::lightning, 105},
      {"lightning<=1.9.0  # for now", &NewestVersions::lightning, 109},
      {"torch<2.0", &NewestVersions::torch, 199},
      {"torch<1.13", &NewestVersions::torch, 112},
      {"torch<1.12.1", &NewestVersions::torch, 112},
      {"torch >=1.8, <2", &NewestVersions::torch, 199},
      {"torch==1.8.1+cu111", &NewestVersions::torch, 108},
      {"torch==1.10.*", &NewestVersions::torch, 110},
      {"pytorch-lightning~=1.7.2", &NewestVersions::lightning, 107},
      {"pytorch-lightning~=1.7", &NewestVersions::lightning, 199},
      {"pytorch-lightning[extra]==1.6.0", &NewestVersions::lightning, 106},
      {"  - pytorch=1.7.1=py3.8_cuda11.0_cudnn8_0", &NewestVersions::torch, 107},
      {"  - pytorch::pytorch=1.9", &NewestVersions::torch, 109},
      {"    - pytorch-lightning==0.9.0", &NewestVersions::lightning, 9},
      {"    install_requires=['numpy', 'torch>=1.6,<1.9'],", &NewestVersions::torch, 108},
      {"pytorch-lightning = \"^1.5\"", &NewestVersions::lightning, 199},
      {"torch = \"1.11.0\"", &NewestVersions::torch, 111},
      {"torch = \">=1.11,<1.13\"", &NewestVersions::torch, 112},
      {"torch==1.7.1\ntorch==1.9.0", &NewestVersions::torch, 109},
      {"  - pytorch=1", &NewestVersions::torch, 199},
      {"torchvision==0.9.1", &NewestVersions::torchvision, 9},
      {"  - python=3.7.11=h12debc9_0", &NewestVersions::python, 307},
      {"  - \"conda-forge::python=3.6\"", &NewestVersions::python, 306},
      {"conda create -n seg python=3.6 -y", &NewestVersions::python, 306},
      {"    python_requires='>=3.6,<3.8',", &NewestVersions::python, 307},
      {"requires-python = \">=3.8,<3.11\"", &NewestVersions::python, 310},
      {"[requires]\npython_version = \"3.7\"", &NewestVersions::python, 307},
      {"python = \"~3.7\"", &NewestVersions::python, 307},
      {"FROM python:3.7-slim", &NewestVersions::python, 307},
      {"pytorch-lightning @ git+http://host/fork/pytorch-lightning.git@v0.8.5_fixes#egg=x",
       &NewestVersions::lightning, 8},
  };
  for (const auto& each : cases) {
    const NewestVersions found = read_requirements(each.text);
    EXPECT_EQ(found.*each.package, each.version) << each.text;
    int bounded = 0;
    for (const VersionOf field : kVersionFields)
      if (field != &NewestVersions::least_lightning) bounded += found.*field != kAnyVersion ? 1 : 0;
    EXPECT_EQ(bounded, 1) << each.text;
  }
}

TEST(Requirements, ReadTheOldestLightning) {
  EXPECT_EQ(read_requirements("pytorch-lightning>=1.8.0").least_lightning, 108);
  EXPECT_EQ(read_requirements("lightning>=2.0,<2.3").least_lightning, 200);
  EXPECT_EQ(read_requirements("lightning==2.1.0\npytorch-lightning>=1.6").least_lightning, 201);
  EXPECT_EQ(read_requirements("lightning<2.0").least_lightning, kAnyVersion);
  EXPECT_EQ(read_requirements("torch>=1.8").least_lightning, kAnyVersion);
}

TEST(Requirements, PythonIsBoundedByItsOwnEntriesOnly) {
  for (const std::string_view text :
       {"dataclasses==0.8; python_version < \"3.7\"",
        "numpy = {version = \"1.2\", python = \"<3.8\"}", "[mypy]\npython_version = 3.7",
        "python = \"^3.7\"", "python_requires='>=3.6'", "python_requires='>=3.6, <4'",
        "  - python>=3.7", "  - python=3", "    'ipython==7.1',",
        "Programming Language :: Python :: 3.7", "FROM python:3"})
    EXPECT_EQ(read_requirements(text).python, kAnyVersion) << text;
  EXPECT_EQ(read_python_version("3.7.12\n").python, 307);
  EXPECT_EQ(read_python_version("miniconda3-4.7\n").python, kAnyVersion);
}

TEST(Requirements, NamesOfEnvironmentsTellVersions) {
  const struct {
    std::string_view line;
    int python;
    int torch;
  } cases[] = {
      {"source activate pytorch_latest_p37", 307, kAnyVersion},
      {"conda activate py36", 306, kAnyVersion},
      {"conda run -n py3.8 python train.py", 308, kAnyVersion},
      {"conda create --name torch_py310 -y", 310, kAnyVersion},
      {". /home/a/py3_7/bin/activate", 307, kAnyVersion},
      {"source /opt/anaconda3/bin/activate pytorch-2.1.0", kAnyVersion, 201},
      {"/home/a/miniconda3/envs/py37/bin/python train.py", 307, kAnyVersion},
      {"python3.7 -m torch.distributed.launch train.py", 307, kAnyVersion},
      {"virtualenv -p /usr/bin/python3.6 env", 306, kAnyVersion},
      {"python /env/lib/python3.7/site-packages/torch/distributed/launch.py a.py", 307,
       kAnyVersion},
      {"module load cuda/11.0 python/3.7.4", 307, kAnyVersion},
      {"module load PyTorch/1.7.1-fosscuda", kAnyVersion, 107},
      {"conda activate seg37", kAnyVersion, kAnyVersion},
      {"conda activate p3.8xlarge", kAnyVersion, kAnyVersion},
      {"conda activate pytorch", kAnyVersion, kAnyVersion},
      {"conda activate $ENV", kAnyVersion, kAnyVersion},
      {"source venv/bin/activate", kAnyVersion, kAnyVersion},
      {"module load cuda/11.3 anaconda3/2020.11", kAnyVersion, kAnyVersion},
      {"python3 train.py --name py37", kAnyVersion, kAnyVersion},
      {"conda activate", kAnyVersion, kAnyVersion},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(read_environment(each.line).python, each.python) << each.line;
    EXPECT_EQ(read_environment(each.line).torch, each.torch) << each.line;
  }
}

TEST(Requirements, OneVersionBoundsAnother) {
  const struct {
    NewestVersions said;
    int torch;
    int lightning;
  } cases[] = {
      {{.python = 207}, 104, 103},
      {{.python = 305}, 105, 103},
      {{.python = 306}, 110, 105},
      {{.python = 307}, 113, 109},
      {{.python = 308}, 204, 204},
      {{.python = 312}, kAnyVersion, kAnyVersion},
      {{.torch = 108}, 108, 106},
      {{.torch = 110}, 110, 109},
      {{.torch = 199}, 199, 202},
      {{.torch = 201}, 201, kAnyVersion},
      {{.torch = 201, .python = 307}, 201, 109},
      {{.torch = 108, .lightning = 109}, 108, 109},
      {{.torchvision = 9}, 108, 106},
      {{.torchvision = 3}, kAnyVersion, kAnyVersion},
      {{.torchvision = 20}, kAnyVersion, kAnyVersion},
      {{.torchaudio = 13}, 113, 202},
      {{.torchtext = 8}, kAnyVersion, kAnyVersion},
      {{.torchtext = 11}, 110, 109},
  };
  for (const auto& each : cases) {
    const NewestVersions found = with_implied(each.said);
    EXPECT_EQ(found.torch, each.torch);
    EXPECT_EQ(found.lightning, each.lightning);
  }
}

TEST(Requirements, SayNothingWithoutAnUpperBound) {
  for (const std::string_view text :
       {"", "torch", "torch>=1.8", "pytorch-lightning>1.2", "lightning!=1.9.0",
        "lightning-bolts==0.3", "my-torch==1.0", "# torch==1.4", "torch==", "torch==latest",
        "torch==-2", "torch = {git = \"https://example.org/torch.git\"}", "torch<",
        "pytorch=", "torch==999999999999"})
    EXPECT_EQ(std::min(read_requirements(text).torch, read_requirements(text).lightning),
              kAnyVersion)
        << text;
}

TEST(Requirements, ReadmesNameTheVersionsOfTheProject) {
  const struct {
    std::string_view text;
    int torch;
    int lightning;
  } cases[] = {
      {"- PyTorch 1.9.0, torchvision 0.10", 109, kAnyVersion},
      {"* `Pytorch==1.8.0` and `torchvision==0.9.0`", 108, kAnyVersion},
      {"Tested with PyTorch version 1.7 (CUDA 11)", 107, kAnyVersion},
      {"| PyTorch | v1.4 |", kAnyVersion, kAnyVersion},
      {"pip install torch==1.10.1+cu111", 110, kAnyVersion},
      {"conda install pytorch torchvision cudatoolkit=11.3 -c pytorch", 113, kAnyVersion},
      {"PyTorch Lightning 1.5.4", kAnyVersion, 105},
      {"FROM pytorch/pytorch:1.9.0-cuda11.1", 109, kAnyVersion},
      {"PyTorch 1.8+", kAnyVersion, kAnyVersion},
      {"PyTorch 1.8 or newer", kAnyVersion, kAnyVersion},
      {"PyTorch >= 1.7", kAnyVersion, kAnyVersion},
      {"PyTorch 1.7-1.9", kAnyVersion, kAnyVersion},
      {"PyTorch implementation of a paper, version 1.2", kAnyVersion, kAnyVersion},
      {"pytorch-image-models 0.4.12", kAnyVersion, kAnyVersion},
      {"PyTorch 1.9, later checked with PyTorch 2.1", 201, kAnyVersion},
      {"PyTorch 1.7, 1.8, 1.9", 109, kAnyVersion},
      {"PyTorch 1.7/1.8 or newer", kAnyVersion, kAnyVersion},
      {"PyTorch 1.4, 16 GB", 104, kAnyVersion},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(read_readme(each.text).torch, each.torch) << each.text;
    EXPECT_EQ(read_readme(each.text).lightning, each.lightning) << each.text;
  }
}

TEST(Requirements, ReadmesNameThePythonToo) {
  EXPECT_EQ(read_readme("- Python 3.7, CUDA 10.1").python, 307);
  EXPECT_EQ(read_readme("| Python 3.6 / 3.7 / 3.8 |").python, 308);
  EXPECT_EQ(read_readme("Python 2.7, 3.6").python, 306);
  EXPECT_EQ(read_readme("Python 3.6.x").python, 306);
  for (const std::string_view text :
       {"Python 3.6+", "Python 3", "Python >= 3.6", "Python 3.6 (or higher)", "python-3.7-blue",
        "Python 3.6, or newer", "ipython 7.1"})
    EXPECT_EQ(read_readme(text).python, kAnyVersion) << text;
}

TEST(Requirements, LockFilesSayWhatIsInstalled) {
  const NewestVersions pipenv = read_lock(R"({"default": {
    "torch": {
      "hashes": ["sha256:00"],
      "index": "pypi",
      "version": "==1.2.0"
    },
    "torchvision": {"version": "==0.4.0"}}})");
  EXPECT_EQ(pipenv.torch, 102);
  EXPECT_EQ(pipenv.lightning, kAnyVersion);
  const NewestVersions poetry = read_lock(R"([[package]]
name = "pytorch-lightning"
version = "1.5.10"
[package.extras]
all = ["torch"]
[[package]]
name = "torchmetrics"
version = "0.6"
)");
  EXPECT_EQ(poetry.lightning, 105);
  EXPECT_EQ(poetry.torch, kAnyVersion);
}

TEST(Requirements, InstallCommandsPinToo) {
  const struct {
    std::string_view text;
    int torch;
  } cases[] = {
      {"pip install torch==1.4.0 torchvision==0.5\n", 104},
      {"RUN pip3 install \\\n    numpy \\\n    torch==1.7.1\n", 107},
      {"conda install pytorch=1.6 torchvision -c pytorch\n", 106},
      {"Run `conda install pytorch==1.0.0 -c pytorch` first.\n", 100},
      {"FROM pytorch/pytorch:1.9.0-cuda11.1-cudnn8-runtime\n", 109},
      {"# pip install torch==1.4\n", kAnyVersion},
      {"We compare with torch==1.4.\n", kAnyVersion},
      {"pip install torch\nTORCH = torch==1.4\n", kAnyVersion},
      {"FROM pytorch/pytorch:latest\n", kAnyVersion},
      {"FROM nvcr.io/nvidia/pytorch:21.07-py3\n", 110},
      {"docker pull nvcr.io/nvidia/pytorch:21.06-py3\n", 109},
      {"FROM nvcr.io/nvidia/pytorch:22.12-py3\n", 114},
      {"FROM nvcr.io/nvidia/pytorch:24.01-py3\n", kAnyVersion},
      {"FROM nvcr.io/nvidia/tritonserver:21.07-py3\n", kAnyVersion},
  };
  for (const auto& each : cases) EXPECT_EQ(read_installs(each.text).torch, each.torch) << each.text;
}

// Of the argument that Lightning 2 has lost, in a script beside these files.
Severity severity_beside(std::map<std::string, std::string> files) {
  files["train.py"] = "import pytorch_lightning as pl\npl.Trainer(gpus=2, strategy='ddp')\n";
  DiagnoseOptions options;
  options.selection.select = {"LIT001"};
  const auto found = diagnose_texts(files, "train.py", options);
  EXPECT_EQ(found.size(), 1U);
  return found.empty() ? Severity::info : found.front().severity;
}

TEST(Requirements, DeclaredOnesComeBeforeInstallCommands) {
  const std::string install = "pip install pytorch-lightning==1.4\n";
  EXPECT_EQ(severity_beside({{"install.sh", install}}), Severity::info);
  EXPECT_EQ(
      severity_beside({{"install.sh", install}, {"requirements.txt", "pytorch-lightning==2.1\n"}}),
      Severity::error);
}

TEST(Requirements, TheTagOfAContainerIsNoVersion) {
  EXPECT_EQ(read_readme("docker pull nvcr.io/nvidia/pytorch:21.07-py3\n").torch, 110);
  EXPECT_EQ(read_readme("docker pull nvcr.io/nvidia/pytorch:21.07-py3, PyTorch 1.9\n").torch, 110);
}

TEST(Requirements, TheFolderOfAnImageCounts) {
  const std::string image = "FROM ubuntu:20.04\nRUN pip install pytorch_lightning==1.6.2\n";
  EXPECT_EQ(severity_beside({{"docker/Dockerfile", image}}), Severity::info);
  EXPECT_EQ(severity_beside({{"docker/train.Dockerfile", image}}), Severity::info);
  EXPECT_EQ(severity_beside({{"docker/Dockerfile_gpu", image}}), Severity::info);
  EXPECT_EQ(severity_beside({{"docker/Dockerfiles.txt", image}}), Severity::error);
  EXPECT_EQ(severity_beside({{"docs/Dockerfile", image}}), Severity::error);
  EXPECT_EQ(
      severity_beside({{"docker/Dockerfile", image}, {"requirements.txt", "lightning==2.1\n"}}),
      Severity::error);
}

TEST(Requirements, PagesAboutInstallationCount) {
  const std::string page = "Tested with Python 3.8 and pytorch_lightning==1.6.2.\n";
  EXPECT_EQ(severity_beside({{"docs/install.md", page}}), Severity::info);
  EXPECT_EQ(severity_beside({{"docs/Getting_Started.md", page}}), Severity::info);
  EXPECT_EQ(severity_beside({{"docs/history.md", page}}), Severity::error);
  EXPECT_EQ(severity_beside({{"docs/install.md", page}, {"requirements.txt", "lightning==2.1\n"}}),
            Severity::error);
}

TEST(Requirements, AListOfCondaMayHaveAnyName) {
  const std::string list =
      "name: pics\nchannels:\n  - defaults\ndependencies:\n  - python=3.8\n  - pip:\n"
      "    - pytorch-lightning==1.5.0\n";
  EXPECT_EQ(severity_beside({{"PICS.yml", list}}), Severity::info);
  EXPECT_EQ(severity_beside({{"chart.yml", "dependencies:\n  - pytorch-lightning==1.5.0\n"}}),
            Severity::error);
}

TEST(Requirements, TheNearestDirectoryCounts) {
  const std::map<std::string, std::string> files{
      {"new/train.py", "import pytorch_lightning as pl\npl.Trainer(gpus=2, strategy='ddp')\n"},
      {"new/requirements.txt", "pytorch-lightning==2.1.0\n"},
      {"old/train.py", "import pytorch_lightning as pl\npl.Trainer(gpus=2, strategy='ddp')\n"},
      {"requirements.txt", "pytorch-lightning==1.6.0\n"}};
  DiagnoseOptions options;
  options.selection.select = {"LIT001"};
  const auto severity = [&](const std::string& script) {
    const auto found = diagnose_texts(files, script, options);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Severity::info : found.front().severity;
  };
  EXPECT_EQ(severity("new/train.py"), Severity::error);
  EXPECT_EQ(severity("old/train.py"), Severity::info);
}

}  // namespace
}  // namespace bench::diagnose
