#include "diagnose/to_ddp/run_directories.hpp"

#include "diagnose/to_ddp/output_paths.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/paths.hpp"

#include <algorithm>
#include <string>

namespace bench::diagnose {
namespace {

// What is computed in the script, and is none of its options: those who pass one know what it does.
bool is_test_of_the_run(const Program& program, Ref allowed) {
  const auto& sources = program.sources(allowed);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [](const Source& source) {
    const Kind kind = source.ref.kind();
    return source.how == Source::How::value &&
           (kind == Kind::comparison || kind == Kind::false_literal);
  });
}

// A directory of this second's name refuses nobody but the other ranks; one of another name guards
// what an earlier run has left, and who catches the error looks for a free name.
bool may_refuse_others(const ReachedCode& reached, const CallRef& make) {
  const Program& program = reached.program();
  const Ref allowed = make.keyword("exist_ok");
  const Ref directory = pitfalls::directory_made(program, make);
  return allowed && directory && !program.is_literal_true(allowed) &&
         is_test_of_the_run(program, allowed) && !is_of_one_rank(program, directory) &&
         !clocks_behind(program, directory).empty() && !program.mentions("FileExistsError") &&
         program.guarded_by_rank(make.ref()) == RankTest::none &&
         make.module->tree().ancestor(make.call->node, Kind::try_statement) == kNoNode &&
         reached.comes_by(make.ref());
}

}  // namespace

std::vector<Finding> directories_to_allow(const ReachedCode& reached) {
  const Program& rewritten = reached.program();
  std::vector<Finding> out;
  for (const std::string_view name : {"mkdir", "makedirs"})
    for (const CallRef& make : rewritten.calls_named(name)) {
      if (!may_refuse_others(reached, make)) continue;
      Finding made;
      made.rule = "DDP026";
      made.file = make.module->path();
      made.line = make.module->tree().line_of(make.call->node);
      made.message = "every rank makes the directory: the second one raises FileExistsError";
      pitfalls::replace(make.keyword("exist_ok"), "True", "Allow an existing directory", made);
      if (made.fix) out.push_back(std::move(made));
    }
  return out;
}

}  // namespace bench::diagnose
