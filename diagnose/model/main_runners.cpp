// Functions that the main process alone runs: run_on_main(prepare, folder) of SpeechBrain.
#include "diagnose/model/program.hpp"

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

// The name of a function stands there as the first argument of such a call.
bool is_given_to_main_runner(const Program& program, Ref place) {
  const CallRef call = given_first(program, whole_value(place));
  return call &&
         std::find(std::begin(kRunners), std::end(kRunners), call.call->name) != std::end(kRunners);
}

// def run_now(work): work(): the function that is given something calls it, and nothing else of it.
bool calls_what_it_is_given(FunctionRef taker, const CallRef& call, Ref place) {
  const SyntaxTree& tree = taker.module->tree();
  std::string_view parameter;
  const auto& parameters = taker.function->parameters;
  const bool is_method = taker.function->owner_class != kNoNode;
  for (std::size_t i = 0; i + is_method < parameters.size(); ++i)
    if (const Ref given = call.positional(i); given && given.node == place.node)
      parameter = parameters[i + is_method].name;
  if (parameter.empty()) return false;
  bool is_called = false;
  for (NodeId at = taker.function->body; at < tree[taker.function->body].last; ++at)
    if (tree[at].kind == Kind::identifier && tree.text(at) == parameter) {
      if (tree[at].field != Field::function) return false;
      is_called = true;
    }
  return is_called;
}

}  // namespace

// A function that is only handed on runs on the main process alone where every place that hands it
// on does: run_on_main(prepare), or run_now(prepare) of this program in what is run so itself.
RankTest Program::handed_on_rank_test(FunctionRef function, int depth) const {
  if (is_spawned(function)) return RankTest::none;
  const auto places = handed_on(function);
  const bool main_only = std::all_of(places.begin(), places.end(), [&](Ref place) {
    if (is_given_to_main_runner(*this, place)) return true;
    const CallRef call = as_call(place.with(place.module->tree().ancestor(place.node, Kind::call)));
    const FunctionRef taker = callee(call);
    return taker && calls_what_it_is_given(taker, call, place) &&
           enclosing_function(place) != function &&
           guarded_by_rank(place, depth + 1) == RankTest::main_only;
  });
  return main_only && !places.empty() ? RankTest::main_only : RankTest::none;
}

}  // namespace bench::diagnose
