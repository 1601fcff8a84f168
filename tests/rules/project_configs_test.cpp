// Values that a project's config files give to its settings: how they are read, which files count,
// and when a finding in a branch that none of them enters is told as a note.
#include "diagnose/driver/project_configs.hpp"

#include "bench/core/temporary_directory.hpp"
#include "diagnose/config/python_config.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/launch/overrides.hpp"
#include "diagnose/model/module.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;
using Texts = std::map<std::string, std::string>;

std::string shown(const Value& value) {
  std::ostringstream out;
  switch (value.type) {
    case Value::Type::none:
      return "none";
    case Value::Type::boolean:
      return value.integer != 0 ? "true" : "false";
    case Value::Type::integer:
      out << value.integer;
      return out.str();
    case Value::Type::number:
      out << value.number;
      return out.str();
    case Value::Type::string:
      return "'" + value.string + "'";
    default:
      return "?";
  }
}

std::string python_config(const std::string& text) {
  std::string out;
  for (const ConfigEntry& entry : read_python_config(Module("configs/a.py", "a", text)))
    out += entry.path + "=" + shown(entry.value) + " ";
  return out;
}

TEST(PythonConfig, FlattensDictionariesAtTheFilesOwnLevel) {
  EXPECT_EQ(python_config("freeze = None\nlr = -1e-3\nname = 'a'\n"),
            "freeze=none lr=-0.001 name='a' ");
  EXPECT_EQ(python_config("optim = dict(lr=1, clip=dict(norm=0.0))\n"),
            "optim=? optim.lr=1 optim.clip=? optim.clip.norm=0 ");
  EXPECT_EQ(python_config("data = {'size': 1_000, 'root': path(), **more}\n"),
            "data=? data.size=1000 data.root=? ");
}

TEST(PythonConfig, ReadsWhatIsSetOnAConfiguration) {
  EXPECT_EQ(python_config("_C = CN()\n_C.TRAIN.DEBUG = False\n"), "_C=? TRAIN.DEBUG=false ");
  EXPECT_EQ(python_config("def get_config():\n    config = ConfigDict()\n    config.amp = True\n"
                          "    model.depth = 4\n    return config\n"),
            "amp=true ");
}

TEST(PythonConfig, LeavesProgramsAlone) {
  EXPECT_EQ(python_config("import torch\ndebug = False\n"), "");
  EXPECT_EQ(python_config("debug = False\nclass Net:\n    pass\n"), "");
  EXPECT_EQ(python_config("debug = False\nif __name__ == '__main__':\n    main()\n"), "");
}

std::string overrides(std::string_view text, std::string_view key) {
  std::string out;
  for (const Value& value : overrides_in(text, key)) out += shown(value) + " ";
  return out;
}

TEST(Overrides, AreReadFromCommandsAndDocuments) {
  EXPECT_EQ(overrides("python train.py --grad-clip 1.5 --debug\n", "grad_clip"), "1.5 ");
  EXPECT_EQ(overrides("python train.py --grad_clip=2 --debug\n", "debug"), "true ");
  EXPECT_EQ(overrides("python train.py --debug \\\n  --lr 1\n", "debug"), "true ");
  EXPECT_EQ(overrides("train.py optim.grad_clip=$CLIP 'debug=false'\n", "grad_clip"), "? ");
  EXPECT_EQ(overrides("train.py optim.grad_clip=$CLIP 'debug=false'\n", "debug"), "false ");
  EXPECT_EQ(overrides("train.py OPTIM.CLIP 1 DATA.SIZE 2\n", "CLIP"), "1 ");
  EXPECT_EQ(overrides("Set `debug: true` in the config.\n", "debug"), "true ");
  EXPECT_EQ(overrides("a = {\"debug\": True}\n", "debug"), "true ");
}

TEST(Overrides, AreBoundedInLengthAndNumber) {
  std::string text;
  for (int each = 0; each < 20000; ++each) text += "clip=";
  EXPECT_LE(overrides_in(text, "clip").size(), 256U);
}

TEST(Overrides, AreNotTheNameInProse) {
  EXPECT_EQ(overrides("A debug run is quick; no_debug=1 and --debugger 2 are others.\n", "debug"),
            "");
  EXPECT_EQ(overrides("if [ $debug == 1 ]; then\n", "debug"), "");
  EXPECT_EQ(overrides("", "debug"), "");
  EXPECT_EQ(overrides("debug", "debug"), "");
  EXPECT_EQ(overrides("debug", ""), "");
}

TEST(ConfigEntries, AliasesOfAliasesAreBounded) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string above = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + above;
    for (int j = 0; j < 9; ++j) text += ", " + above;
    text += "]\n";
  }
  EXPECT_EQ(read_yaml("a.yaml", text).size(), 12U);
}

// Clipping of scaled gradients in a branch of a setting.
std::string clips_if(const std::string& condition, const std::string& first = "") {
  return "import torch, yaml, argparse\n" + first +
         "scaler = torch.amp.GradScaler('cuda')\n"
         "for x in loader:\n"
         "    scaler.scale(model(x)).backward()\n"
         "    if " +
         condition +
         ":\n"
         "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
         "    scaler.step(optimizer)\n";
}

const std::string kLoads = "cfg = yaml.safe_load(open('c.yaml'))\n";

// The severities of what is found.
std::string found(Texts files, const std::string& script = "train.py") {
  DiagnoseOptions options;
  options.selection.select = {"DDP046"};
  std::string out;
  for (const Finding& each : diagnose_texts(files, script, options))
    out += std::string(name_of(each.severity)) + " ";
  return out;
}

TEST(Settings, ThatAllFilesLeaveOffMakeANote) {
  const struct {
    const char* condition;
    const char* config;
  } cases[] = {
      {"cfg['clip']", "clip: false"},
      {"cfg.clip", "clip: null"},
      {"cfg.get('clip')", "clip: 0"},
      {"getattr(cfg, 'clip', None)", "clip: 0"},
      {"cfg.optim.clip > 0", "optim: {clip: 0.0}"},
      {"cfg['optim']['clip'] is not None", "optim:\n  clip: null"},
      {"not cfg.optim.plain", "optim: {plain: true}"},
      {"cfg.amp and cfg.optim.clip", "optim: {clip: off}"},
      {"0 < cfg.optim.clip", "optim: {clip: 0}"},
      {"cfg.clip == 'norm'", "clip: none-at-all"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(
        found({{"train.py", clips_if(each.condition, kLoads)}, {"configs/a.yaml", each.config}}),
        "info ")
        << each.condition;
}

TEST(Settings, AreReadFromJsonTomlAndPython) {
  const std::string script = clips_if("cfg.optim.clip > 0", kLoads);
  EXPECT_EQ(found({{"train.py", script}, {"configs/a.json", "{\"optim\": {\"clip\": 0.0}}"}}),
            "info ");
  EXPECT_EQ(found({{"train.py", script}, {"configs/a.toml", "[optim]\nclip = 0.0\n"}}), "info ");
  EXPECT_EQ(found({{"train.py", script}, {"configs/a.py", "optim = dict(clip=0)\n"}}), "info ");
}

TEST(Settings, ThatAreNotDecidedChangeNothing) {
  const std::string script = clips_if("cfg.optim.clip > 0", kLoads);
  const auto beside = [&](const std::string& name, const std::string& text) {
    return found({{"train.py", script}, {"configs/a.yaml", "optim: {clip: 0}"}, {name, text}});
  };
  EXPECT_EQ(found({{"train.py", script}}), "error ");
  EXPECT_EQ(beside("configs/b.yaml", "lr: 1"), "info ");
  EXPECT_EQ(beside("configs/b.yaml", "optim: {clip: 1}"), "error ");
  EXPECT_EQ(beside("configs/b.yaml", "optim: {clip: [0, 1]}"), "error ");
  EXPECT_EQ(beside("sweeps/b.yaml", "optim: {clip: 1}"), "error ");
  EXPECT_EQ(beside("conf/optim/sgd.yaml", "clip: 1"), "error ");
  EXPECT_EQ(beside("configs/b.yaml", "a: &a {clip: 1}\noptim: {<<: *a}"), "error ");
  EXPECT_EQ(beside("run.sh", "python train.py optim.clip=1"), "error ");
  EXPECT_EQ(beside("README.md", "`python train.py --clip 5`"), "error ");
  EXPECT_EQ(beside("README.md", "There is a clip of the result."), "info ");
  // Another project's file, and one that is no configuration.
  EXPECT_EQ(found({{"a/train.py", script}, {"b/configs/a.yaml", "optim: {clip: 0}"}}, "a/train.py"),
            "error ");
  EXPECT_EQ(found({{"train.py", script}, {"data/a.yaml", "optim: {clip: 0}"}}), "error ");
}

TEST(Settings, OfAnotherSectionAreOthers) {
  const Texts configs = {{"configs/a.yaml", "log: {enabled: false}\nclip: {norm: 1}"}};
  const auto with = [&](const std::string& script) {
    Texts files = configs;
    files["train.py"] = script;
    return found(files);
  };
  EXPECT_EQ(with(clips_if("cfg.clip.enabled", kLoads)), "error ");
  EXPECT_EQ(with(clips_if("clip_cfg.enabled", "clip_cfg = cfg['clip']\n")), "error ");
  EXPECT_EQ(with(clips_if("log_cfg.enabled", "log_cfg = cfg['log']\n")), "info ");
  EXPECT_EQ(with(clips_if("model.enabled")), "error ");
}

TEST(Settings, ThatTheProgramGivesOtherwiseAreNotDecided) {
  const auto with = [&](const std::string& first, const std::string& condition = "cfg.clip") {
    return found(
        {{"train.py", clips_if(condition, kLoads + first)}, {"configs/a.yaml", "clip: false"}});
  };
  EXPECT_EQ(with(""), "info ");
  EXPECT_EQ(with("cfg.clip = True\n"), "error ");
  EXPECT_EQ(with("cfg.clip = cfg.clip or choose()\n"), "error ");
  EXPECT_EQ(with("cfg['clip'] = choose()\n"), "error ");
  EXPECT_EQ(with("view.clip = True\n"), "info ");
  EXPECT_EQ(with("", "cfg.get('clip', True)"), "error ");
  const std::string parser = "parser = argparse.ArgumentParser()\n";
  const std::string args = "args = parser.parse_args()\n";
  EXPECT_EQ(
      with(parser + "parser.add_argument('--clip', action='store_true')\n" + args, "args.clip"),
      "info ");
  EXPECT_EQ(with(parser + "parser.add_argument('--clip', default=True)\n" + args, "args.clip"),
            "error ");
}

TEST(Settings, ThatTheProgramGivesInOtherWaysAreNotDecided) {
  for (const char* way :
       {"setattr(cfg, 'clip', True)\n", "cfg.update(clip=True)\n", "cfg.update({'clip': True})\n",
        "cfg.setdefault('clip', True)\n", "cfg['clip'] |= large\n",
        "parser.set_defaults(clip=True)\n", "PRESETS = {'large': {'clip': True}}\n",
        "cfg = compose(overrides=['optim.clip=true'])\n",
        "def enlarge(c):\n    c['clip'] = True\n"})
    EXPECT_EQ(found({{"train.py", clips_if("cfg.clip", kLoads + way)},
                     {"configs/a.yaml", "clip: false"}}),
              "error ")
        << way;
}

TEST(Settings, ThatAnotherFileGivesInAWayThatIsNotReadAreNotDecided) {
  const Texts::value_type script = {"train.py", clips_if("cfg.clip", kLoads)};
  const auto beside = [&](const std::string& file, const std::string& text) {
    return found({script, {"configs/a.yaml", "clip: false"}, {file, text}});
  };
  EXPECT_EQ(beside("configs/b.yaml", "lr: 1"), "info ");
  EXPECT_EQ(beside("configs/b.py", "import torch\nclip = True\n"), "error ");
  EXPECT_EQ(beside("configs/b.py", "lr, clip = 1, True\n"), "error ");
  EXPECT_EQ(beside("configs/b.yaml", "{% if large %}\nclip: true\n{% endif %}\n- ["), "error ");
  EXPECT_EQ(beside("configs/b.yaml", "clip: No"), "error ") << "a word to some readers of YAML";
}

TEST(Settings, OfFilesThatSetUpToolsAreNotTheProgramsOwn) {
  for (const char* file : {".pre-commit-config.yaml", "pyproject.toml", "accelerate_config.yaml"})
    EXPECT_EQ(
        found({{"train.py", clips_if("cfg.clip", kLoads)},
               {file, std::string(file).ends_with("toml") ? "clip = false\n" : "clip: false"}}),
        "error ")
        << file;
}

TEST(Settings, AskedForInAnEndlessConditionAreNotDecided) {
  std::string condition;
  for (int each = 0; each < 20000; ++each) condition += "not ";
  EXPECT_EQ(found({{"train.py", clips_if(condition + "cfg.clip", kLoads)},
                   {"configs/a.yaml", "clip: false"}}),
            "error ");
}

TEST(Settings, AskedForByManyCallersAreNotDecided) {
  std::string calls;
  for (int layer = 0; layer < 6; ++layer) {
    calls += "def f" + std::to_string(layer) + "():\n";
    for (int call = 0; call < 20; ++call) calls += "    f" + std::to_string(layer + 1) + "()\n";
  }
  const std::string text = clips_if("cfg.clip", kLoads) + calls;
  EXPECT_EQ(found({{"train.py", text}, {"configs/a.yaml", "clip: false"}}), "info ");
}

TEST(Settings, ThatTheLaunchLineGivesOtherwiseAreNotDecided) {
  DiagnoseOptions options;
  options.selection.select = {"DDP046"};
  const Texts files = {{"train.py", clips_if("cfg.clip", kLoads)},
                       {"configs/a.yaml", "clip: false"}};
  const auto severity = [&](const std::string& launch) {
    options.launch = launch;
    const auto all = diagnose_texts(files, "train.py", options);
    return all.size() == 1 ? name_of(all.front().severity) : "";
  };
  EXPECT_EQ(severity("torchrun --nproc-per-node=2 train.py --lr 1"), "info");
  EXPECT_EQ(severity("torchrun --nproc-per-node=2 train.py clip=true"), "error");
  EXPECT_EQ(severity("torchrun --nproc-per-node=2 train.py --clip"), "error");
}

// What a run fills in is empty in a config file, and not switched off.
TEST(Settings, ThatARunFillsInAreNotDecided) {
  for (const char* key : {"resume", "tag"})
    EXPECT_EQ(found({{"train.py", clips_if("cfg." + std::string(key), kLoads)},
                     {"configs/a.yaml", std::string(key) + ": ''"}}),
              "error ");
  EXPECT_EQ(
      found({{"train.py", clips_if("cfg.resume", kLoads)}, {"configs/a.yaml", "resume: null"}}),
      "error ");
}

TEST(Settings, SurviveWhatDoesNotParse) {
  const std::string script = clips_if("cfg.clip", kLoads);
  for (const std::string& text :
       {std::string("clip: {{ value }}\n\t- ["), std::string("{{{{[[[["),
        std::string("clip: *gone"), std::string(5000, '[') + "clip", std::string("\0clip\xff", 6)})
    EXPECT_EQ(found({{"train.py", script}, {"configs/a.yaml", text}, {"configs/a.json", text}}),
              "error ");
}

class ProjectOnDisk : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::string severities(const std::string& path) const {
    DiagnoseOptions options;
    options.paths = {(root_ / path).string()};
    options.selection.select = {"DDP046"};
    std::string out;
    for (const Finding& each : bench::diagnose::diagnose(options).findings)
      out += std::string(name_of(each.severity)) + " ";
    return out;
  }

  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(ProjectOnDisk, CountsForADirectoryAndForAScriptBelowItsRoot) {
  write("repo/tools/train.py", clips_if("cfg.clip", kLoads));
  write("repo/configs/a.yaml", "clip: false\n");
  EXPECT_EQ(severities("repo"), "info ");
  EXPECT_EQ(severities("repo/tools/train.py"), "error ") << "nothing says where the project begins";
  write("repo/setup.py", "");
  EXPECT_EQ(severities("repo/tools/train.py"), "info ");
}

TEST_F(ProjectOnDisk, FollowsNoLinksAndReadsNoDataFiles) {
  write("repo/train.py", clips_if("cfg.clip", kLoads));
  write("elsewhere/configs/a.yaml", "clip: false\n");
  fs::create_directory_symlink(root_ / "elsewhere/configs", root_ / "repo/configs");
  EXPECT_EQ(severities("repo"), "error ");
  write("repo/conf/large.yaml", "clip: false\n" + std::string(300 << 10, '#'));
  EXPECT_EQ(severities("repo"), "error ");
  write("repo/conf/small.yaml", "clip: false\n");
  EXPECT_EQ(severities("repo"), "error ") << "what the large one says is not known";
  fs::remove(root_ / "repo/conf/large.yaml");
  EXPECT_EQ(severities("repo"), "info ");
  fs::create_symlink(root_ / "elsewhere/configs/a.yaml", root_ / "repo/conf/linked.yaml");
  EXPECT_EQ(severities("repo"), "error ") << "nor is what the link says";
}

TEST(Settings, OfAScriptThatReadsNoConfigurationAreItsOwn) {
  const std::string script =
      "import argparse, torch\n"
      "parser = argparse.ArgumentParser()\n"
      "parser.add_argument('--clip', action='store_true')\n"
      "args = parser.parse_args()\n"
      "scaler = torch.amp.GradScaler('cuda')\n"
      "for x in loader:\n"
      "    scaler.scale(model(x)).backward()\n"
      "    if args.clip:\n"
      "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
      "    scaler.step(optimizer)\n";
  EXPECT_EQ(found({{"train.py", script}, {"configs/a.yaml", "clip: false"}}), "error ");
  EXPECT_EQ(found({{"train.py", "import yaml\n" + script}, {"configs/a.yaml", "clip: false"}}),
            "info ");
}

TEST(ProjectConfigs, ReadNothingBeforeAQuestion) {
  int listed = 0;
  int read = 0;
  const Lister list = [&](const std::string&) {
    ++listed;
    return std::vector<DirectoryEntry>{{"a.yaml", false, false}, {"b.txt", false, false}};
  };
  ModuleCache cache(
      [&](const std::string&) {
        ++read;
        return std::optional<std::string>("clip: 0\n");
      },
      list, SyntaxTree::kParseLimit);
  ProjectConfigs configs(cache, list);
  EXPECT_EQ(listed + read, 0);
  EXPECT_EQ(configs.values_of("", "train.py", "clip").size(), 1U);
  EXPECT_EQ(configs.values_of("", "other.py", "lr").size(), 0U);
  EXPECT_EQ(listed, 1);
  EXPECT_EQ(read, 1);
}

// Whatever lists directories without end, the walk has one, and what it did not see may say
// anything.
TEST(ProjectConfigs, AreNotKnownWhereThereAreTooMany) {
  const Lister endless = [](const std::string&) {
    std::vector<DirectoryEntry> out;
    for (int i = 0; i < 20; ++i) out.push_back({"d" + std::to_string(i), true, false});
    out.push_back({"a.yaml", false, false});
    return out;
  };
  ModuleCache cache([](const std::string&) { return std::optional<std::string>("clip: 0\n"); },
                    endless, SyntaxTree::kParseLimit);
  const auto values = ProjectConfigs(cache, endless).values_of("", "train.py", "clip");
  ASSERT_EQ(values.size(), 1U);
  EXPECT_FALSE(values.front().value.known());
  EXPECT_EQ(values.front().place, ShippedValue::Place::command);
}

}  // namespace
}  // namespace bench::diagnose
