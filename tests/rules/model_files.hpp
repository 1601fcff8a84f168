// Programs of a few files in memory, for tests of the model.
#pragma once

#include "diagnose/model/program.hpp"

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench::diagnose {

struct File {
  std::string name;
  std::string text;
};

// A program of a few files, the script first; imports are plain module names.
class Files {
 public:
  Files(std::initializer_list<File> sources) {
    ProgramInput input;
    for (const auto& [name, text] : sources) {
      modules_.push_back(std::make_unique<Module>(name + ".py", name, text));
      input.modules.push_back(modules_.back().get());
    }
    for (const auto& importer : modules_)
      for (const auto& imported : modules_)
        input.import_targets[importer.get()][imported->dotted_name()] = imported.get();
    program_ = std::make_unique<Program>(std::move(input));
  }

  const Program& program() const { return *program_; }

  // The argument of the only show(...) call.
  Ref shown() const {
    const auto calls = program_->calls_named("show");
    return calls.size() == 1 ? calls.front().positional(0) : Ref{};
  }
  bool shows(Api api) const { return program_->comes_from(shown(), api); }
  // The test under which the only mark() call stands.
  RankTest marked() const {
    const auto calls = program_->calls_named("mark");
    return calls.size() == 1 ? program_->guarded_by_rank(calls.front().ref()) : RankTest::none;
  }

 private:
  std::vector<std::unique_ptr<Module>> modules_;
  std::unique_ptr<Program> program_;
};

}  // namespace bench::diagnose
