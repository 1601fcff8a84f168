#include "scenarios/pitfalls/wrappers/other_kind_asked.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

bool is_asked_for_other_kind(const Program& program, Ref node, Ref object) {
  const diagnose::Wrap* wrap = program.wrap_of(object);
  if (wrap == nullptr || wrap->kind != diagnose::Wrapper::ddp || program.has_data_parallel())
    return false;
  const std::string asks = "isinstance(" + std::string(object.text()) + ",";
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const std::string_view text = guard.condition.text();
    return !guard.holds && text.starts_with(asks) && facts::contains(text, "DataParallel") &&
           !facts::contains(text, "Distributed") && !facts::contains(text, "DDP");
  });
}

}  // namespace bench::pitfalls
