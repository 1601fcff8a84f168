// What the model of a program takes a name or a call for: the literal of a constant, the call that
// made it, what a function hands back, the item of a dictionary.
#include "diagnose/model/made_at.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/rules/model_files.hpp"

namespace bench::diagnose {
namespace {

TEST(ModelOfConstants, AConstantStandsForItsLiteral) {
  for (const char* text :
       {"BACKEND = 'gloo'\nshow(BACKEND)\n",
        "class Settings:\n    backend = 'gloo'\nsettings = Settings()\nshow(settings.backend)\n",
        "@dataclass\nclass Settings:\n    backend: str = 'gloo'\nsettings = Settings()\n"
        "def main():\n    show(settings.backend)\n"}) {
    const Files files{{"train", text}};
    EXPECT_EQ(files.program().written(files.shown()).text(), "'gloo'") << text;
  }
  const Files listed{{"train",
                      "@dataclass\nclass Settings:\n"
                      "    ids: list = field(default_factory=lambda: [0, 1])\n"
                      "settings = Settings()\nshow(settings.ids)\n"}};
  EXPECT_EQ(listed.program().written(listed.shown()).text(), "[0, 1]");
}

TEST(ModelOfConstants, WhatMayBeSomethingElseStandsForItself) {
  for (const char* text :
       {"def join(backend='gloo'):\n    show(backend)\njoin()\n",
        "def join(backend):\n    show(backend)\njoin('gloo')\n",
        "backend = 'gloo'\nif nccl:\n    backend = 'nccl'\nshow(backend)\n",
        "backend = 0\nwhile more():\n    backend += 1\nshow(backend)\n",
        "parser.add_argument('--backend', default='gloo')\nargs = parser.parse_args()\n"
        "show(args.backend)\n"}) {
    const Files files{{"train", text}};
    EXPECT_EQ(files.program().written(files.shown()), files.shown()) << text;
  }
}

TEST(ModelOfCalls, ACallIsFoundThroughTheNameOfItsValue) {
  const Files files{{"train", "weights = model.parameters()\nshow(weights)\n"}};
  const CallRef made = files.program().made_by(files.shown());
  ASSERT_TRUE(made);
  EXPECT_EQ(made.call->name, "parameters");
  const Files several{
      {"train", "weights = model.parameters()\nif all:\n    weights = both()\nshow(weights)\n"}};
  EXPECT_FALSE(several.program().made_by(several.shown()));
}

TEST(ModelOfCalls, AnArgumentOfALibraryIsFoundByItsKeyword) {
  const Files files{{"train",
                     "import torch.distributed as dist\n"
                     "dist.all_reduce(tensor=loss)\nsampler.set_epoch(epoch=3)\n"
                     "def reduce(n, tensor):\n    pass\nreduce(tensor=loss, n=4)\n"}};
  const auto first = [&](std::string_view name) {
    return files.program().calls_named(name).front().positional(0).text();
  };
  EXPECT_EQ(first("all_reduce"), "loss");
  EXPECT_EQ(first("set_epoch"), "3");
  EXPECT_EQ(first("reduce"), "");  // of the program's own
}

TEST(ModelOfCalls, AReturnOfAnotherLengthIsForOtherCallers) {
  const Files files{{"train",
                     "def setup(more=False):\n"
                     "    if more:\n"
                     "        return net(), sgd(), data()\n"
                     "    return net(), data()\n"
                     "model, optimizer, loader = setup(True)\nshow(optimizer)\n"}};
  const auto sources = files.program().sources(files.shown());
  ASSERT_EQ(sources.size(), 1U);
  EXPECT_EQ(sources.front().ref.text(), "sgd()");
}

TEST(ModelOfNames, ThePartsOfAPairHaveNames) {
  const Files files{{"train", "model, loader = wrap(net), (load(data))\n"}};
  const auto name_of = [&](std::string_view call) {
    return files.program().assigned_name(files.program().calls_named(call).front().ref());
  };
  EXPECT_EQ(name_of("wrap"), "model");
  const Files uneven{{"train", "model, *others = wrap(net), load(data), load(more)\n"}};
  EXPECT_EQ(uneven.program().assigned_name(uneven.program().calls_named("wrap").front().ref()), "");
}

TEST(ModelOfCalls, AFunctionOfAFileIsHandedOnByTheFilesName) {
  const Files files{{"train", "import work\nstart(target=work.train)\nother.train\n"},
                    {"work", "def train(rank):\n    pass\n"}};
  const auto& functions = files.program().functions();
  ASSERT_EQ(functions.size(), 1U);
  const auto places = files.program().handed_on(functions.front());
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places.front().text(), "work.train");
}

TEST(ModelOfOrder, AnObjectIsMadeBeforeItsMethodsRun) {
  const Files files{{"train",
                     "class Runner:\n    def __init__(self):\n        make()\n"
                     "        self.build()\n    def build(self):\n        parts()\n"
                     "    def train(self):\n        step()\n"}};
  const auto at = [&](std::string_view name) {
    return files.program().calls_named(name).front().ref();
  };
  EXPECT_TRUE(files.program().runs_before(at("make"), at("step")));
  EXPECT_FALSE(files.program().runs_before(at("step"), at("make")));
  EXPECT_TRUE(files.program().runs_before(at("make"), at("parts")));
}

// --- results that functions hand back

constexpr const char* kWrap =
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "def wrap(net, gpu):\n"
    "    return DDP(net, device_ids=[gpu])\n";

TEST(HandedBack, ACallStandsWhereItsOnlyCallerAsksForIt) {
  const Files files{{"train", std::string(kWrap) + "def main(model, parallel):\n"
                                                   "    if parallel:\n"
                                                   "        ddp = wrap(model, 0)\n"}};
  const Program& program = files.program();
  const CallRef call = program.wraps().front().call;
  const CallRef made = made_at(program, call);
  EXPECT_EQ(made.ref().text(), "wrap(model, 0)");
  EXPECT_EQ(program.assigned_name(call.ref()), "ddp");
  ASSERT_EQ(guards_where_made(program, call).size(), 1U);
  EXPECT_EQ(guards_where_made(program, call).front().condition.text(), "parallel");
  const Ref net = call.positional(0);
  EXPECT_EQ(seen_in(program, net, program.enclosing_function(made.ref())).text(), "model");
  EXPECT_EQ(seen_above(program, net).text(), "model");
}

TEST(HandedBack, SeveralCallersOrAnotherResultLeaveACallWhereItIs) {
  const Files twice{{"train", std::string(kWrap) + "a = wrap(first, 0)\nb = wrap(second, 1)\n"}};
  const CallRef shared = twice.program().wraps().front().call;
  EXPECT_EQ(made_at(twice.program(), shared).ref(), shared.ref());
  EXPECT_EQ(twice.program().assigned_name(shared.ref()), "");
  EXPECT_EQ(seen_above(twice.program(), shared.positional(0)).text(), "net");
  const Files below{{"train",
                     "from torch.nn.parallel import DistributedDataParallel as DDP\n"
                     "def inner(net):\n"
                     "    ddp = DDP(net)\n"
                     "    return ddp.module\n"
                     "bare = inner(model)\n"}};
  const CallRef dropped = below.program().wraps().front().call;
  EXPECT_EQ(made_at(below.program(), dropped).ref(), dropped.ref());
}

TEST(HandedBack, AParameterThatIsGivenAnotherValueIsNotTheArgument) {
  const Files files{{"train",
                     "def step(net):\n"
                     "    net = copy(net)\n"
                     "    show(net)\n"
                     "step(model)\n"}};
  EXPECT_EQ(seen_above(files.program(), files.shown()).text(), "net");
}

// show(value), where build() gives back a prepared model: the names it has there.
TEST(ModelOfObjects, NamesBehindWhatAFunctionGivesBack) {
  const std::string build = "def build():\n    net = prepare(bare)\n    return ";
  for (const auto& [given, shown] :
       {std::pair{"net, 1\nmodel, n = build()\n", "model"},
        std::pair{"{'m': net}\nparts = build()\n", "parts['m']"},
        std::pair{"SimpleNamespace(m=net)\nparts = build()\n", "parts.m"}}) {
    const Files files{{"train", build + given + "show(" + shown + ")\n"}};
    const auto names = files.program().names_behind(files.shown());
    ASSERT_FALSE(names.empty()) << shown;
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [](Ref name) {
      return name.text() == "net";
    })) << shown;
    EXPECT_TRUE(files.program().leads_to(files.shown(), names.back())) << shown;
  }
}

TEST(ModelOfObjects, ItemsHaveTheValueOfTheirKey) {
  const auto shown = [](const std::string& text) {
    const Files files{{"train", text}};
    return files.program().integer(files.shown());
  };
  EXPECT_EQ(shown("CONFIG = {'size': 8, 'lr': 1}\nshow(CONFIG['size'])\n"), 8);
  EXPECT_EQ(shown("CONFIG = {'a': {'size': 8}}\nshow(CONFIG['a']['size'])\n"), 8);
  EXPECT_EQ(shown("CONFIG = {'size': 8}\nCONFIG['size'] = read()\nshow(CONFIG['size'])\n"),
            std::nullopt);
  EXPECT_EQ(shown("CONFIG = read()\nshow(CONFIG['size'])\n"), std::nullopt);
}

}  // namespace
}  // namespace bench::diagnose
