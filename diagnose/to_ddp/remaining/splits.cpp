// Splits of the data that each rank draws for itself.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/seeds.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// Of scikit-learn, by what they shuffle with unless they are told a seed.
constexpr std::string_view kShuffling[] = {"ShuffleSplit", "StratifiedShuffleSplit",
                                           "GroupShuffleSplit"};
constexpr std::string_view kFolding[] = {"KFold", "StratifiedKFold", "StratifiedGroupKFold"};

bool draws_folds(const Program& program, const CallRef& call) {
  const auto is_one_of = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), call.call->name) != std::end(names);
  };
  const Ref seed = call.keyword("random_state");
  if (call.has_splat() || (seed && seed.kind() != Kind::none_literal)) return false;
  return is_one_of(kShuffling) ||
         (is_one_of(kFolding) && program.is_literal_true(call.argument(1, "shuffle")));
}

// order = np.random.permutation(n), and order[:a] beside order[b:] in the same function.
bool draws_two_parts(const Program& program, const CallRef& call) {
  if (call.call->path != "numpy.random.permutation") return false;
  const std::string name(program.assigned_name(call.ref()));
  const FunctionRef function = program.enclosing_function(call.ref());
  if (name.empty() || !function) return false;
  bool has_head = false;
  bool has_tail = false;
  const auto& tree = function.module->tree();
  for (NodeId node = function.function->body; node < tree[function.function->body].last; ++node) {
    if (tree[node].kind != Kind::subscript || tree.text(tree.child(node, Field::value)) != name)
      continue;
    const std::string_view text = tree.text(node);
    has_head = has_head || contains(text, "[:");
    has_tail = has_tail || contains(text, ":]");
  }
  return has_head && has_tail;
}

}  // namespace

void tell_unseeded_splits(Left& left) {
  if (!seeds_of(left, Draws::numpy).empty()) return;
  std::vector<Ref> places;
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      if ((draws_folds(left.program, call) || draws_two_parts(left.program, call)) &&
          left.runs_on_every_rank(call.ref()) && !left.is_found(call.ref(), "DDP035"))
        places.push_back(call.ref());
    }
  left.tell(Harm::figures, places,
            "the data is split at random and nothing seeds NumPy: every rank draws another split, "
            "and what one trains on another validates on. Give it a fixed seed (random_state, or "
            "np.random.seed on all ranks).");
}

}  // namespace bench::diagnose
