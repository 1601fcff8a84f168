// The model of a program by itself: where values come from when objects carry them from one file to
// another, and which conditions test the rank. What rules make of it stands in their pages.
#include <gtest/gtest.h>

#include <string>

#include "tests/rules/model_files.hpp"

namespace bench::diagnose {
namespace {

constexpr const char* kLoader =
    "from torch.utils.data import DataLoader\n"
    "def make():\n"
    "    return DataLoader(data)\n";

// The number of values that reach show(value), which stands at the end of `body`.
std::size_t values_shown(const std::string& body) {
  const Files files{{"train", "value = zero()\n" + body + "show(value)\n"}};
  return files.program().sources(files.shown()).size();
}

TEST(ModelOfNames, NestedBranchesThatAllAssignHideWhatStandsAbove) {
  EXPECT_EQ(2U, values_shown("if a:\n    value = one()\nelse:\n    value = two()\n"));
  EXPECT_EQ(3U, values_shown("if a:\n    with c():\n        if b:\n            value = one()\n"
                             "        else:\n            value = two()\n"
                             "else:\n    value = three()\n"));
  EXPECT_EQ(2U, values_shown("if a:\n    value = one()\nelif b:\n    value = two()\n"
                             "else:\n    raise ValueError(a)\n"));
  EXPECT_EQ(2U, values_shown("try:\n    value = one()\nexcept KeyError:\n    value = two()\n"));
}

TEST(ModelOfNames, ABranchThatDoesNotAssignLetsWhatStandsAboveBy) {
  EXPECT_EQ(2U, values_shown("if a:\n    value = one()\n"));
  EXPECT_EQ(3U,
            values_shown("if a:\n    if b:\n        value = one()\nelse:\n    value = two()\n"));
  EXPECT_EQ(2U, values_shown("for i in a:\n    value = one()\n"));
  EXPECT_EQ(2U, values_shown("try:\n    value = one()\nexcept KeyError:\n    pass\n"));
}

TEST(ModelOfAttributes, ABaseClassMakesWhatADerivedClassReads) {
  const Files files{{"main",
                     "from base import Base\n"
                     "class Mine(Base):\n"
                     "    def fit(self):\n"
                     "        show(self.loader)\n"
                     "Mine().fit()\n"},
                    {"base",
                     "from data import make\n"
                     "class Base:\n"
                     "    def __init__(self):\n"
                     "        self.loader = make()\n"},
                    {"data", kLoader}};
  EXPECT_TRUE(files.shows(Api::data_loader));
}

TEST(ModelOfAttributes, ADerivedClassMakesWhatItsBaseReads) {
  const Files files{{"main",
                     "from base import Base\n"
                     "from data import make\n"
                     "class Mine(Base):\n"
                     "    def __init__(self):\n"
                     "        super().__init__()\n"
                     "        self.loader = make()\n"
                     "Mine().fit()\n"},
                    {"base",
                     "class Base:\n"
                     "    def __init__(self):\n"
                     "        self.loader = None\n"
                     "    def fit(self):\n"
                     "        show(self.loader)\n"},
                    {"data", kLoader}};
  EXPECT_TRUE(files.shows(Api::data_loader));
}

TEST(ModelOfAttributes, AClassThatIsNeverMadeSaysNothingAboutItsBase) {
  const Files files{{"main",
                     "from data import make\n"
                     "class Base:\n"
                     "    def fit(self):\n"
                     "        show(self.loader)\n"
                     "class Other(Base):\n"
                     "    def __init__(self):\n"
                     "        self.loader = make()\n"
                     "class Mine(Base):\n"
                     "    def __init__(self):\n"
                     "        self.loader = [1, 2]\n"
                     "Mine().fit()\n"},
                    {"data", kLoader}};
  EXPECT_FALSE(files.shows(Api::data_loader));
}

TEST(ModelOfAttributes, AMethodOfTheBaseCallsTheOverridingOne) {
  const Files files{{"main",
                     "class Base:\n"
                     "    def fit(self):\n"
                     "        for epoch in range(3):\n"
                     "            self.step()\n"
                     "    def step(self):\n"
                     "        raise NotImplementedError\n"
                     "class Mine(Base):\n"
                     "    def step(self):\n"
                     "        mark()\n"
                     "Mine().fit()\n"}};
  const Ref mark = files.program().calls_named("mark").front().ref();
  EXPECT_EQ(files.program().loops_around(mark).size(), 1U);
}

TEST(ModelOfAttributes, ClassesThatDeriveFromEachOtherEnd) {
  const Files files{{"main",
                     "class A(B):\n"
                     "    def f(self):\n"
                     "        show(self.x)\n"
                     "class B(A):\n"
                     "    pass\n"}};
  EXPECT_FALSE(files.shows(Api::data_loader));
}

TEST(ModelOfAttributes, AnObjectHandsItselfOn) {
  const Files files{{"main",
                     "from data import make\n"
                     "class Loop:\n"
                     "    def __init__(self, app):\n"
                     "        self.app = app\n"
                     "    def run(self):\n"
                     "        show(self.app.loader)\n"
                     "class App:\n"
                     "    def __init__(self):\n"
                     "        self.loader = make()\n"
                     "        self.loop = Loop(self)\n"
                     "App().loop.run()\n"},
                    {"data", kLoader}};
  EXPECT_TRUE(files.shows(Api::data_loader));
}

TEST(ModelOfImports, AStarBringsTheNamesOfAPackage) {
  const Files files{{"main",
                     "from parts import *\n"
                     "show(Trainer().loader)\n"},
                    {"parts", "from trainer import *\nfrom other import nothing\n"},
                    {"trainer",
                     "from data import make\n"
                     "from parts import *\n"
                     "class Trainer:\n"
                     "    def __init__(self):\n"
                     "        self.loader = make()\n"},
                    {"data", kLoader}};
  EXPECT_TRUE(files.shows(Api::data_loader));
}

TEST(ModelOfAttributes, PropertiesFieldsAndNamespacesCarryObjects) {
  const char* reads[] = {
      "class Box:\n"
      "    def __init__(self, loader):\n"
      "        self._loader = loader\n"
      "    @property\n"
      "    def loader(self):\n"
      "        return self._loader\n",
      "from dataclasses import dataclass\n"
      "@dataclass\n"
      "class Box:\n"
      "    loader: object\n"
      "    epochs: int = 3\n",
      "from types import SimpleNamespace\n"
      "def Box(loader):\n"
      "    return SimpleNamespace(loader=loader, epochs=3)\n"};
  for (const char* box : reads) {
    const Files files{{"main",
                       "from data import make\n"
                       "from box import Box\n"
                       "def fit(box):\n"
                       "    show(box.loader)\n"
                       "fit(Box(make()))\n"},
                      {"box", box},
                      {"data", kLoader}};
    EXPECT_TRUE(files.shows(Api::data_loader)) << box;
  }
}

TEST(ModelOfItems, WhatIsStoredInADictionaryIsReadThroughAnObject) {
  const char* main =
      "from data import loaders\n"
      "class Trainer:\n"
      "    def __init__(self, loaders):\n"
      "        self.loaders = loaders\n"
      "    def fit(self):\n"
      "        show(self.loaders[\"train\"])\n"
      "Trainer(loaders()).fit()\n";
  const auto shows = [&](const std::string& body) {
    return Files{{"main", main},
                 {"data", "from torch.utils.data import DataLoader\ndef loaders():\n" + body}}
        .shows(Api::data_loader);
  };
  EXPECT_TRUE(shows("    out = {}\n    out[\"train\"] = DataLoader(d)\n    return out\n"));
  EXPECT_TRUE(
      shows("    out = {}\n    for k in d:\n        out[k] = DataLoader(d)\n"
            "    return out\n"));
  EXPECT_TRUE(shows("    return dict(train=DataLoader(d))\n"));
  EXPECT_FALSE(
      shows("    out = {\"train\": d}\n    out[\"val\"] = DataLoader(d)\n"
            "    return out\n"));
}

TEST(ModelOfItems, CollectedKeywordsAndSplattedDictionariesAreArguments) {
  const char* trainers[] = {
      "class Trainer:\n"
      "    def __init__(self, **kwargs):\n"
      "        self.loader = kwargs[\"loader\"]\n",
      "class Trainer:\n"
      "    def __init__(self, **kwargs):\n"
      "        self.loader = kwargs.get(\"loader\")\n",
      "class Trainer:\n"
      "    def __init__(self, loader=None):\n"
      "        self.loader = loader\n"};
  const char* parts = "from data import make\ndef parts():\n    return {\"loader\": make()}\n";
  for (const char* trainer : trainers) {
    const Files files{{"main",
                       "from trainer import Trainer\n"
                       "from parts import parts\n"
                       "trainer = Trainer(**parts())\n"
                       "show(trainer.loader)\n"},
                      {"trainer", trainer},
                      {"parts", parts},
                      {"data", kLoader}};
    EXPECT_TRUE(files.shows(Api::data_loader)) << trainer;
  }
}

// Every way through the calls would be more than a million.
TEST(ModelOfItems, ALoopGivesTheValuesOfADictionary) {
  for (const std::string loop :
       {"for loader in loaders.values():\n", "for name, loader in loaders.items():\n",
        "for i, (name, loader) in enumerate(loaders.items()):\n",
        "for name, loader in zip(names, tqdm(list(loaders.values()))):\n"}) {
    const Files files{{"main",
                       "from torch.utils.data import DataLoader\n"
                       "loaders = {'train': DataLoader(data)}\n" +
                           loop + "    show(loader)\n"}};
    EXPECT_TRUE(files.shows(Api::data_loader)) << loop;
  }
  const Files keys{{"main",
                    "from torch.utils.data import DataLoader\n"
                    "loaders = {'train': DataLoader(data)}\n"
                    "for loader in loaders:\n"
                    "    show(loader)\n"}};
  EXPECT_FALSE(keys.shows(Api::data_loader));
}

TEST(ModelOfItems, ALoopGivesWhatWasAppended) {
  const Files files{{"main",
                     "from torch.utils.data import DataLoader\n"
                     "pairs = []\n"
                     "pairs.append((DataLoader(data), 'train'))\n"
                     "for loader, name in pairs:\n"
                     "    show(loader)\n"}};
  EXPECT_TRUE(files.shows(Api::data_loader));
  const Files name{{"main",
                    "from torch.utils.data import DataLoader\n"
                    "pairs = [(DataLoader(data), 'train')]\n"
                    "for loader, name in pairs:\n"
                    "    show(name)\n"}};
  EXPECT_FALSE(name.shows(Api::data_loader));
}

TEST(ModelOfItems, ANamedTupleCarriesItsFields) {
  for (const std::string fields : {"'model loader'", "'model, loader'", "['model', 'loader']"}) {
    const Files files{{"main",
                       "import collections\n"
                       "from torch.utils.data import DataLoader\n"
                       "Run = collections.namedtuple('Run', " +
                           fields +
                           ")\n"
                           "def use(run):\n"
                           "    show(run.loader)\n"
                           "use(Run(net, DataLoader(data)))\n"}};
    EXPECT_TRUE(files.shows(Api::data_loader)) << fields;
  }
}

TEST(ModelOfItems, KeywordsThatManyFunctionsHandOnAreFollowedOnce) {
  constexpr int kFunctions = 20;
  std::string main;
  for (int i = 0; i < kFunctions; ++i) {
    const std::string next = "f" + std::to_string(i + 1) + "(**kwargs)\n";
    main +=
        "def f" + std::to_string(i) + "(**kwargs):\n    " + next + "    " + next + "    " + next;
  }
  main +=
      "def f" + std::to_string(kFunctions) + "(loader=None, **kwargs):\n    show(loader)\nf0()\n";
  const Files files{{"main", main}};
  EXPECT_FALSE(files.shows(Api::data_loader));
}

constexpr const char* kRank =
    "import torch.distributed as dist\n"
    "def rank():\n"
    "    return dist.get_rank()\n";

RankTest test_of(const std::string& main) {
  return Files{{"main", "from comm import rank\n" + main}, {"comm", kRank}}.marked();
}

TEST(RankTests, AValueThatOneRankAloneHas) {
  EXPECT_EQ(test_of("log = open(f) if rank() == 0 else None\nif log:\n    mark()\n"),
            RankTest::main_only);
  EXPECT_EQ(test_of("log = None\nif rank() == 0:\n    log = open(f)\n"
                    "if log is not None:\n    mark()\n"),
            RankTest::main_only);
  EXPECT_EQ(test_of("log = open(f) if rank() == 0 else None\nif log is None:\n    mark()\n"),
            RankTest::not_main);
  EXPECT_EQ(test_of("def f(log):\n    if not log:\n        return\n    mark()\n"
                    "f(open(n) if not rank() else None)\n"),
            RankTest::main_only);
  EXPECT_EQ(test_of("def make(r):\n    if r == 0:\n        return open(f)\n"
                    "log = make(rank())\nif log:\n    mark()\n"),
            RankTest::main_only);
}

TEST(RankTests, AValueThatOthersMayHaveToo) {
  EXPECT_EQ(test_of("log = open(f) if wanted else None\nif log:\n    mark()\n"), RankTest::none);
  EXPECT_EQ(test_of("log = open(f) if rank() == 0 else open(g)\nif log:\n    mark()\n"),
            RankTest::none);
  EXPECT_EQ(test_of("log = None\nif rank() == 0:\n    log = open(f)\nif other:\n"
                    "    log = open(g)\nif log:\n    mark()\n"),
            RankTest::none);
}

TEST(RankTests, ValuesThatGuardEachOtherEnd) {
  EXPECT_EQ(test_of("a = None\nb = None\nif a:\n    b = open(f)\nif b:\n    a = open(f)\n"
                    "if a:\n    mark()\n"),
            RankTest::none);
}

TEST(RankTests, FlagsInOptionsUnderAnotherName) {
  EXPECT_EQ(test_of("def setup(options):\n    options.writes = rank() == 0\n"
                    "def save(cfg):\n    if not cfg.writes:\n        return\n    mark()\n"
                    "args = parse()\nsetup(args)\nsave(args)\n"),
            RankTest::main_only);
}

TEST(RankTests, AMemberOfAnObjectMadeElsewhere) {
  const std::string members =
      "class Context:\n"
      "    @property\n"
      "    def writes(self):\n        return self.rank == 0\n"
      "    def leads(self):\n        return self.rank == 0\n";
  EXPECT_EQ(test_of(members + "if find('context').writes:\n    mark()\n"), RankTest::main_only);
  EXPECT_EQ(test_of(members + "if not find('context').leads():\n    mark()\n"), RankTest::not_main);
  // A method that is not called is no test, and another class may mean something else.
  EXPECT_EQ(test_of(members + "if find('context').leads:\n    mark()\n"), RankTest::none);
  EXPECT_EQ(test_of(members + "class File:\n    @property\n"
                              "    def writes(self):\n        return self.mode == 'w'\n"
                              "if find('context').writes:\n    mark()\n"),
            RankTest::none);
}

TEST(RankTests, AFunctionThatCallsItself) {
  EXPECT_EQ(test_of("def write(n):\n    if n > 0:\n        write(n - 1)\n    mark()\n"
                    "if rank() == 0:\n    write(3)\n"),
            RankTest::main_only);
}

}  // namespace
}  // namespace bench::diagnose
