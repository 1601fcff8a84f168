// A DataParallel program of which a test says what differs from a plain one, and what
// bench diagnose --to-ddp leaves of it to the author.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "tests/rules/rewritten.hpp"

namespace bench::diagnose {

using Files = RewrittenFiles;

// One program, of which a test says what differs from the others.
struct Script {
  std::string above = "";  // the model
  std::string net = "Net().cuda()";
  std::string wrap = "model = nn.DataParallel(model)\n";
  std::string loader = "loader = DataLoader(data, batch_size=64, shuffle=True)\n";
  std::string before = "";  // the loop over epochs
  std::string batches = "loader";
  std::string loss = "nn.functional.cross_entropy(model(x), y)";
  std::string behind = "";  // the loop over batches, in an epoch
  std::string end = "";

  std::string text() const {
    return "import os\n"
           "import torch\n"
           "from torch import nn\n"
           "from torch.utils.data import DataLoader\n"
           "class Net(nn.Module):\n"
           "    def __init__(self):\n"
           "        super().__init__()\n"
           "        self.fc = nn.Linear(8, 2)\n"
           "    def forward(self, x):\n"
           "        return self.fc(x)\n" +
           above + "model = " + net + "\n" + wrap +
           "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" + loader + before +
           "for epoch in range(9):\n"
           "    for x, y in " +
           batches +
           ":\n"
           "        loss = " +
           loss +
           "\n"
           "        optimizer.zero_grad()\n"
           "        loss.backward()\n"
           "        optimizer.step()\n" +
           behind + end;
  }
};

inline std::vector<Remaining> left_of(const Files& files) {
  const Rewrite made = rewritten(files);
  EXPECT_FALSE(made.steps.empty()) << files.at("train.py");
  return made.left;
}

inline std::string listed(const std::vector<Remaining>& left) {
  std::string out;
  for (const Remaining& each : left)
    out += each.file + ":" + std::to_string(each.line) + ": " + each.text + "\n";
  return out;
}

inline std::string told(const Script& script, Files others = {}) {
  others["train.py"] = script.text();
  return listed(left_of(others));
}

inline std::string rewritten_text(const Script& script, Files others = {}) {
  others["train.py"] = script.text();
  const Rewrite made = rewritten(others);
  EXPECT_EQ(made.refusal, "");
  return made.texts.contains("train.py") ? made.texts.at("train.py") : std::string();
}

inline bool says(const std::string& list, std::string_view words) {
  return list.find(words) != std::string::npos;
}

#define EXPECT_TOLD(list, words) EXPECT_TRUE(says(list, words)) << list
#define EXPECT_SILENT(list, words) EXPECT_FALSE(says(list, words)) << list

}  // namespace bench::diagnose
