#include "diagnose/model/script_kind.hpp"

#include "diagnose/model/shown_commands.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// train() for its own sake: neither part of a definition (@register("net")) nor kept as a value
// (log = getLogger()).
bool is_done_at_once(const Module& script, NodeId call) {
  if (script.scope_of(call) != 0) return false;
  const SyntaxTree& tree = script.tree();
  for (NodeId at = tree[call].parent; at != 0 && at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::decorator || tree[at].kind == Kind::assignment) return false;
    if (tree[at].kind == Kind::expression_statement) return true;
  }
  return false;
}

}  // namespace

bool is_test(const Module& script) {
  return script.imports_top_level("pytest") || script.imports_top_level("unittest") ||
         (script_file(script).starts_with("test_") &&
          script.path().find("tests/") != std::string::npos);
}

bool only_defines(const Module& script) {
  if (script.has_main_guard() || script.path().ends_with(".ipynb")) return false;
  const auto& loops = script.loops();
  if (std::any_of(loops.begin(), loops.end(),
                  [&](NodeId loop) { return script.scope_of(loop) == 0; }))
    return false;
  const auto& calls = script.calls();
  return std::none_of(calls.begin(), calls.end(),
                      [&](const Call& call) { return is_done_at_once(script, call.node); });
}

}  // namespace bench::diagnose
