#include "scenarios/pitfalls/data/whole_copies.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

bool is_downloaded_apart(const Program& program, const CallRef& made) {
  const Ref root = made.argument(0, "root");
  if (!root || !program.comes_from_rank(root) || !program.is_literal_true(made.keyword("download")))
    return false;
  const auto& arguments = made.module->arguments(made.call->node);
  return std::none_of(arguments.begin(), arguments.end(), [&](const diagnose::Argument& given) {
    return given.value != root.node && program.comes_from_rank({made.module, given.value});
  });
}

}  // namespace

bool is_whole_copy(const Program& program, Ref dataset) {
  if (!dataset) return false;
  const auto& sources = program.sources(dataset);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef made = program.as_call(source.ref);
           return made && source.how == diagnose::Source::How::value &&
                  is_downloaded_apart(program, made);
         });
}

}  // namespace bench::pitfalls
