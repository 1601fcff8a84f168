#include "diagnose/model/state_hooks.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::pair<std::string_view, std::string_view> kHooks[] = {
    {"register_save_state_pre_hook", "save_state"}, {"register_load_state_pre_hook", "load_state"}};

}  // namespace

bool is_state_hook(const Program& program, Ref place) {
  const CallRef call =
      program.as_call(place.with(place.module->tree().ancestor(place.node, Kind::call)));
  return call && std::any_of(std::begin(kHooks), std::end(kHooks),
                             [&](const auto& each) { return call.call->name == each.first; });
}

std::vector<CallRef> runs_of_state_hook(const Program& program, const FunctionRef& function) {
  std::vector<CallRef> out;
  for (const auto& [registers, runs] : kHooks)
    for (const CallRef& call : program.calls_named(registers)) {
      const Ref hook = call.argument(0, "hook");
      if (!hook || hook.text() != function.function->name || hook.module != function.module)
        continue;
      const auto found = program.calls_named(runs);
      out.insert(out.end(), found.begin(), found.end());
    }
  return out;
}

}  // namespace bench::diagnose
