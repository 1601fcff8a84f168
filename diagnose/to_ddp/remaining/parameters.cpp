// Parameters that a model sets by itself once DDP has sent those of rank 0 to all.
#include "diagnose/to_ddp/remaining/ranks_talk.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// if not self.initialized, if self.training and not self.inited
bool asks_whether_initialized(Ref condition) {
  const std::string text = lowered(condition.text());
  return contains(text, "self.") && contains(text, "init") && !contains(text, "is_initialized()");
}

bool is_parameter_of(const ClassRef& cls, std::string_view name) {
  const auto& tree = cls.module->tree();
  const std::string_view text = tree.text(cls.cls->node);
  for (const char quote : {'"', '\''})
    if (contains(text, std::string("register_parameter(") + quote + std::string(name) + quote))
      return true;
  const auto defs = cls.module->defs_of(name, true);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Def& def = cls.module->defs()[index];
    return def.value != kNoNode && tree.contains(cls.cls->node, def.target) &&
           contains(tree.text(def.value), "Parameter(");
  });
}

// self.bias of self.bias.data.copy_(mean) and self.bias.data = mean within the subtree.
Ref set_parameter(const Program& program, const ClassRef& cls, Ref subtree) {
  const auto& tree = subtree.module->tree();
  for (NodeId node = subtree.node; node < tree[subtree.node].last; ++node) {
    const Ref data = subtree.with(node);
    if (data.kind() != Kind::attribute || data.child(Field::attribute).text() != "data") continue;
    const Ref parameter = data.child(Field::object);
    if (parameter.kind() != Kind::attribute || parameter.child(Field::object).text() != "self")
      continue;
    const NodeId up = tree[node].parent;
    const bool is_set =
        (tree[up].kind == Kind::assignment && tree.child(up, Field::left) == node) ||
        (tree[up].kind == Kind::attribute && tree.text(up).ends_with(".copy_"));
    if (!is_set) continue;
    const auto& lineage = program.lineage(cls);
    if (std::any_of(lineage.begin(), lineage.end(), [&](const ClassRef& each) {
          return is_parameter_of(each, parameter.child(Field::attribute).text());
        }))
      return parameter;
  }
  return {};
}

// What the first pass sets, in the branch of the test or in a method that the branch calls, or that
// returns where the test says that it is done.
Ref set_in_first_pass(const Program& program, const ClassRef& cls) {
  for (const FunctionRef& method : pitfalls::facts::forward_methods(program, cls)) {
    if (method.function->name == "__init__") continue;
    const Ref body{method.module, method.function->body};
    const auto& tree = method.module->tree();
    for (const NodeId node : method.module->nodes_of(Kind::if_statement)) {
      if (!tree.contains(body.node, node) ||
          !asks_whether_initialized(body.with(tree.child(node, Field::condition))))
        continue;
      const Ref branch = body.with(tree.child(node, Field::consequence));
      if (contains(branch.text(), "return") && branch.text().size() < 20)
        return set_parameter(program, cls, body);
      if (const Ref found = set_parameter(program, cls, branch)) return found;
      for (const CallRef& call : pitfalls::facts::calls_in(branch)) {
        const FunctionRef helper = call.receiver() && call.receiver().text() == "self"
                                       ? program.method(cls, call.call->name)
                                       : FunctionRef{};
        if (!helper) continue;
        if (const Ref found = set_parameter(program, cls, {helper.module, helper.function->body}))
          return found;
      }
    }
  }
  return {};
}

// What each rank finds for itself: clusters, their centres, means of features in NumPy.
bool is_found_by_rank(const Program& program, Ref value) {
  const auto is_clustering = [](std::string_view text) {
    return pitfalls::says_any(text, {"kmeans", "cluster", "centroid", "centers", "centres"});
  };
  // torch.zeros(num_clusters, 8), torch.load("centers.pt"): alike on all ranks.
  const CallRef made = program.made_by(value);
  if (made && pitfalls::says_any(made.call->name, {"zeros", "ones", "full", "empty", "load",
                                                   "normalize", "eye", "arange"}))
    return false;
  if (is_clustering(value.text())) return true;
  const auto behind = pitfalls::facts::calls_behind(program, value);
  return std::any_of(behind.begin(), behind.end(), [&](Ref each) {
    const CallRef call = program.as_call(each);
    return call && is_clustering(call.call->name);
  });
}

// weight of net.module.fc.weight.data; empty for what stands outside of the wrapper.
bool is_weight_within(Ref object) {
  const std::string_view text = object.text();
  return contains(text, ".module.") &&
         (contains(text, ".weight") || contains(text, ".bias") || text.ends_with(".data"));
}

}  // namespace

void tell_weights_of_each_rank(Left& left) {
  const Program& program = left.program;
  if (ranks_talk(program)) return;
  std::vector<Ref> places;
  for (const CallRef& copy : program.calls_named("copy_"))
    if (const Ref given = copy.positional(0);
        given && copy.receiver() && is_weight_within(copy.receiver()) &&
        is_found_by_rank(program, given) && left.runs_on_every_rank(copy.ref()))
      places.push_back(copy.ref());
  for (const AttributeDef& def : program.attribute_defs("data")) {
    const Ref target{def.module, def.def->target};
    const Ref value{def.module, def.def->value};
    if (def.def->value != kNoNode && is_weight_within(target) && is_found_by_rank(program, value) &&
        left.runs_on_every_rank(target))
      places.push_back(target);
  }
  left.tell(Harm::figures, places,
            "each rank puts what it has found for itself into its own copy of the model, and DDP "
            "made the copies alike only where it wrapped: where the ranks find other clusters, or "
            "number them in another order, they train different models. Find them on rank 0 and "
            "send them, and the labels that go with them, with dist.broadcast.");
}

void tell_parameters_of_first_batch(Left& left) {
  if (!left.trains()) return;
  const Program& program = left.program;
  const auto& wraps = program.wraps();
  const auto wrap = std::find_if(wraps.begin(), wraps.end(), [&](const Wrap& each) {
    return each.kind == Wrapper::ddp && left.runs_on_every_rank(each.call.ref());
  });
  if (wrap == wraps.end()) return;
  std::set<Ref> seen;  // derived classes have the same forward
  // Such layers stand deep in models that are built by functions.
  for (const Module* module : program.modules())
    for (const Class& each : module->classes()) {
      const ClassRef cls{module, &each};
      if (!program.derives_from(cls, Api::module_class)) continue;
      const Ref parameter = set_in_first_pass(program, cls);
      if (!parameter || pitfalls::facts::is_never_made(program, parameter) ||
          !seen.insert(parameter).second)
        continue;
      left.tell(Harm::stops, {parameter},
                std::string(each.name) + " sets `" + std::string(parameter.text()) +
                    "` from the first batch that it sees: each rank does so from its own share, "
                    "after DDP has sent rank 0's parameters, and the copies stay different. Run "
                    "one batch through the bare model above the wrapper (" +
                    place_of(wrap->call.ref()) + "), which then sends those of rank 0.");
    }
}

}  // namespace bench::diagnose
