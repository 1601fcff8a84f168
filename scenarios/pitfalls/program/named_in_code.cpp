#include "scenarios/pitfalls/program/named_in_code.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls::facts {

using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

bool is_named_in_code(const Program& program, std::string_view word) {
  if (!program.mentions(word)) return false;
  for (const diagnose::Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (NodeId id = 0; id < tree.size(); ++id)
      if ((tree[id].kind == Kind::identifier || tree[id].kind == Kind::string) &&
          contains(tree.text(id), word) &&
          ((tree.ancestor(id, Kind::import_from) == kNoNode &&
            tree.ancestor(id, Kind::import_statement) == kNoNode) ||
           tree.ancestor(id, Kind::aliased_import) != kNoNode))
        return true;
  }
  return false;
}

}  // namespace bench::pitfalls::facts
