#include "diagnose/model/script_kind.hpp"

#include "diagnose/model/shown_commands.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// train() for its own sake, also in raise SystemExit(main()) and status = main(): neither part of a
// definition (@register("net")) nor a value that other files make (log = getLogger()).
bool is_done_at_once(const Module& script, const Call& call) {
  if (script.scope_of(call.node) != 0) return false;
  const SyntaxTree& tree = script.tree();
  const auto& functions = script.functions();
  const bool is_own = std::any_of(functions.begin(), functions.end(), [&](const Function& each) {
    return each.owner_class == kNoNode && each.name == call.name;
  });
  for (NodeId at = tree[call.node].parent; at != 0 && at != kNoNode; at = tree[at].parent)
    if (tree[at].kind == Kind::decorator || (tree[at].kind == Kind::assignment && !is_own))
      return false;
  return true;
}

// Shares out the training over GPUs or ranks.
bool is_of_ranks(Api api) {
  switch (api) {
    case Api::init_process_group:
    case Api::ddp:
    case Api::apex_ddp:
    case Api::data_parallel:
    case Api::hvd_init:
    case Api::accelerator:
    case Api::lightning_trainer:
    case Api::hf_trainer:
    case Api::deepspeed:
    case Api::fsdp:
    case Api::fully_shard:
      return true;
    default:
      return false;
  }
}

// Of the calls that a program that trains has.
bool is_of_training(Api api) {
  return is_of_ranks(api) || api == Api::data_loader || api == Api::distributed_sampler ||
         api == Api::optimizer;
}

// What a program that trains has, whoever starts it: a console script begins with a file that only
// defines main().
bool sets_up_training(const Module& script) {
  const auto& calls = script.api_calls();
  return std::any_of(calls.begin(), calls.end(), [&](const std::uint32_t index) {
    return is_of_training(script.calls()[index].api);
  });
}

}  // namespace

bool is_below_tests(std::string_view path) {
  return path.starts_with("tests/") || path.find("/tests/") != std::string_view::npos;
}

bool is_test(const Module& script) {
  // What takes unittest.mock for a stand-in is no test yet.
  return script.imports_top_level("pytest") ||
         (script.imports_top_level("unittest") &&
          (script.mentions("TestCase") || script.mentions("unittest.main"))) ||
         (script_file(script).starts_with("test_") && is_below_tests(script.path()));
}

bool runs_itself(const Module& script) {
  if (script.has_main_guard() || script.path().ends_with(".ipynb")) return true;
  const auto& loops = script.loops();
  const auto& calls = script.calls();
  return std::any_of(loops.begin(), loops.end(),
                     [&](NodeId loop) { return script.scope_of(loop) == 0; }) ||
         std::any_of(calls.begin(), calls.end(),
                     [&](const Call& call) { return is_done_at_once(script, call); });
}

bool shares_out_itself(const Module& script) {
  const auto& calls = script.calls();
  const auto& known = script.api_calls();
  if (std::none_of(known.begin(), known.end(),
                   [&](const std::uint32_t index) { return is_of_ranks(calls[index].api); }))
    return false;
  return script.has_main_guard() || script.path().ends_with(".ipynb") ||
         std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
           return script.scope_of(call.node) == 0 &&
                  (is_of_ranks(call.api) || call.name == "backward" || call.name == "main");
         });
}

bool only_defines(const Module& script) {
  return !runs_itself(script) && !sets_up_training(script) && script.calls_of("backward").empty();
}

}  // namespace bench::diagnose
