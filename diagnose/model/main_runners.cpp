#include "diagnose/model/main_runners.hpp"

#include <algorithm>
#include <string_view>

namespace bench::diagnose {
namespace {

constexpr std::string_view kRunners[] = {"run_on_main", "run_on_main_process", "run_on_rank_zero",
                                         "run_on_rank0", "on_main_process"};

// The call that is given the value first; empty where it stands elsewhere.
CallRef given_first(const Program& program, Ref place) {
  const SyntaxTree& tree = place.module->tree();
  const NodeId arguments = tree[place.node].parent;
  if (arguments == kNoNode || tree[arguments].kind != Kind::argument_list) return {};
  const CallRef call = program.as_call(place.with(tree[arguments].parent));
  return call && call.positional(0) == place ? call : CallRef{};
}

}  // namespace

bool is_given_to_main_runner(const Program& program, Ref place) {
  const CallRef call = given_first(program, whole_value(place));
  return call &&
         std::find(std::begin(kRunners), std::end(kRunners), call.call->name) != std::end(kRunners);
}

}  // namespace bench::diagnose
