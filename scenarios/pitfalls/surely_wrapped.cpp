// Whether a value is the wrapper in every run that uses GPUs.
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Source;
using diagnose::Wrap;

namespace {

// if use_cuda: net = DataParallel(net): no run on a GPU goes without. A count of them, or a flag
// for distribution, decides more than that.
bool wraps_wherever_cuda_is(const Program& program, const Wrap& wrap) {
  const auto guards = program.guards(wrap.call.ref());
  return !guards.empty() &&
         std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
           const std::string text = lowered(guard.condition.text());
           return guard.holds && contains(text, "cuda") && !contains(text, "count") &&
                  !contains(text, " and ") && !contains(text, "not ");
         });
}

}  // namespace

bool is_surely_wrapped(const Program& program, Ref object) {
  const auto sources = program.module_sources(object);
  const Wrap* wrapper = nullptr;
  for (const Source& source : sources)
    if (const Wrap* wrap = program.wrap_made_by(source.ref)) wrapper = wrap;
  if (wrapper == nullptr) return false;
  const auto inner = wraps_wherever_cuda_is(program, *wrapper)
                         ? program.module_sources(wrapper->module)
                         : std::vector<Source>{};
  return std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return program.wrap_made_by(source.ref) != nullptr ||
           std::any_of(inner.begin(), inner.end(),
                       [&](const Source& below) { return below.ref == source.ref; });
  });
}

}  // namespace bench::pitfalls::facts
