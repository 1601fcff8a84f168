#include "diagnose/to_ddp/trained_parts.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

constexpr int kNames = 4;  // followed from the optimizer to where its parameters come from

bool names_parameters(std::string_view name) {
  return name == "parameters" || name == "named_parameters";
}

// nn.Parameter(x), torch.randn(3, requires_grad=True), Variable(x, requires_grad=True),
// torch.zeros(3).requires_grad_(): a tensor that an optimizer steps by itself.
bool makes_leaf(const Program& program, const CallRef& made) {
  if (made.call->path == "torch.nn.Parameter") return true;
  if (const Ref flag = made.keyword("requires_grad"))
    return program.is_literal_true(flag) && !program.callee(made);
  const Ref flag = made.argument(0, "requires_grad");
  return made.call->name == "requires_grad_" && program.as_call(made.receiver()) &&
         (!flag || program.is_literal_true(flag));
}

class Collector {
 public:
  explicit Collector(const Program& program) : program_(program) {}

  void collect(Ref expression, int names) {
    if (!expression || names < 0 || !seen_.insert(expression).second) return;
    const auto& tree = expression.module->tree();
    for (NodeId node = expression.node; node < tree[expression.node].last; ++node) {
      const Ref part = expression.with(node);
      if (const CallRef call = program_.as_call(part)) {
        if (take_call(call)) node = tree[node].last - 1;
      } else if (part.kind() == Kind::lambda) {
        node = tree[node].last - 1;
      } else if (is_name(part)) {
        follow(part, names);
        node = tree[node].last - 1;
      }
    }
  }

  TrainedParts take() { return std::move(parts_); }

 private:
  // A value that the expression reads, and no keyword, key or called function.
  static bool is_name(Ref part) {
    if (part.kind() != Kind::identifier && part.kind() != Kind::attribute) return false;
    const auto& tree = part.module->tree();
    const NodeId up = tree[part.node].parent;
    if (tree[up].kind == Kind::call) return tree.child(up, Field::function) != part.node;
    return tree[up].kind != Kind::keyword_argument || tree.child(up, Field::value) == part.node;
  }

  static void add(std::vector<Ref>& list, Ref each) {
    if (std::find(list.begin(), list.end(), each) == list.end()) list.push_back(each);
  }

  // True where the call has been looked at as a whole.
  bool take_call(const CallRef& call) {
    if (names_parameters(call.call->name) && call.receiver()) {
      add(parts_.modules, call.receiver());
      return true;
    }
    const FunctionRef sorts = program_.callee(call);
    if (!sorts) return take_methods(call);
    const std::string_view body = sorts.module->tree().text(sorts.function->body);
    const bool takes = contains(body, "parameters()") || contains(body, ".modules()");
    if (sorts.function->owner_class != kNoNode) {
      take_own(call, sorts, takes);
      take_methods(call);  // the object may be one of several
      return true;
    }
    // separate_bn(net) of a function that goes over the parameters of what it is given.
    if (takes && !contains(body, "def forward")) {
      for (std::size_t index = 0; const Ref given = call.positional(index); ++index)
        if (given.kind() == Kind::identifier || given.kind() == Kind::attribute)
          add(parts_.modules, given);
      return true;
    }
    // flatten([net.parameters(), head.parameters()])
    return !contains(call.ref().text(), "parameters()");
  }

  // baseline.weights() of an object that is one of several: list(self.critic.parameters()), of
  // which the classes are no modules themselves.
  bool take_methods(const CallRef& call) {
    bool any = false;
    if (!call.receiver()) return any;
    for (const Source& source : program_.sources(call.receiver())) {
      const CallRef made = program_.as_call(source.ref);
      const ClassRef cls = made ? program_.class_of_call(made) : ClassRef{};
      const FunctionRef method = cls ? program_.method(cls, call.call->name) : FunctionRef{};
      if (!method) continue;
      any = true;
      take_own(call, method,
               contains(method.module->tree().text(method.function->body), "parameters()"));
    }
    return any;
  }

  // net.trainable() of a method that goes over the parameters of the net; of what is no module, the
  // parameters that it returns.
  void take_own(const CallRef& call, const FunctionRef& method, bool takes) {
    const Ref object = call.receiver();
    const ClassRef home = program_.enclosing_class({method.module, method.function->body});
    if (!takes || !object || object.text() == "self" || method.function->makes_object() || !home)
      return;
    if (program_.derives_from(home, Api::module_class))
      add(parts_.modules, object);
    else
      for (const NodeId returned : method.function->returns)
        collect({method.module, returned}, kNames - 1);
  }

  // norms, weights = separate_bn(net): the lists that it fills lead to the function alone.
  void take_sorted(Ref name) {
    const Module& module = *name.module;
    for (const std::uint32_t index : module.defs_of(name.text(), false)) {
      const Def& def = module.defs()[index];
      const CallRef made =
          def.value == kNoNode ? CallRef{} : program_.as_call({&module, def.value});
      if (made && program_.enclosing_function(made.ref()) == program_.enclosing_function(name))
        take_call(made);
    }
  }

  static bool is_number(Ref value) {
    return value.kind() == Kind::integer || value.kind() == Kind::floating ||
           value.kind() == Kind::string;
  }

  void follow(Ref name, int names) {
    for (const Source& source : program_.sources(name)) {
      if (source.ref == name || is_number(source.ref) ||
          (source.how != Source::How::value && source.how != Source::How::element))
        continue;
      const CallRef made = program_.as_call(source.ref);
      if (made && makes_leaf(program_, made) && !is_in_module(source.ref))
        add(parts_.parameters, name);
      else
        collect(source.ref, names - 1);
    }
    for (const Ref more : added_to(name)) collect(more, names - 1);
    if (name.kind() == Kind::identifier) take_sorted(name);
  }

  bool is_in_module(Ref node) const {
    const ClassRef home = program_.enclosing_class(node);
    return home && program_.derives_from(home, Api::module_class);
  }

  // params += [...], params.append(...), params.extend(...), of the same function.
  std::vector<Ref> added_to(Ref name) const {
    std::vector<Ref> out;
    const Module& module = *name.module;
    const FunctionRef here = program_.enclosing_function(name);
    for (const NodeId node : module.nodes_of(Kind::augmented_assignment)) {
      const Ref sum{&module, node};
      if (sum.child(Field::left).text() == name.text() && program_.enclosing_function(sum) == here)
        out.push_back(sum.child(Field::right));
    }
    for (const Call& made : module.calls()) {
      const CallRef call{&module, &made};
      if ((made.name == "append" || made.name == "extend") && call.receiver() &&
          call.receiver().text() == name.text() && program_.enclosing_function(call.ref()) == here)
        out.push_back(call.positional(0));
    }
    return out;
  }

  const Program& program_;
  TrainedParts parts_;
  std::set<Ref> seen_;
};

// {"params": net.parameters(), "lr": 0.1} of a list that a call is given.
bool is_group(Ref dictionary) {
  const auto& tree = dictionary.module->tree();
  const std::string_view text = dictionary.text();
  if (!contains(text, "'params'") && !contains(text, "\"params\"")) return false;
  NodeId list = tree[dictionary.node].parent;
  // {**{"params": net.parameters()}, "lr": 0.1}
  while (tree[list].kind == Kind::dictionary || tree[list].kind == Kind::dictionary_splat)
    list = tree[list].parent;
  return tree[list].kind == Kind::list && tree[tree[list].parent].kind == Kind::argument_list;
}

}  // namespace

bool shares_source(const Program& program, Ref a, Ref b) {
  const auto& first = program.module_sources(a);
  const auto& second = program.module_sources(b);
  return std::any_of(first.begin(), first.end(), [&](const Source& each) {
    return std::any_of(second.begin(), second.end(),
                       [&](const Source& other) { return each.ref == other.ref; });
  });
}

std::vector<Ref> given_to_optimizers(const Program& program) {
  std::vector<Ref> out;
  for (const CallRef& optimizer : program.calls(Api::optimizer))
    if (const Ref given = optimizer.argument(0, "params")) out.push_back(given);
  for (const CallRef& call : program.calls_named("parameters")) {
    const auto& tree = call.module->tree();
    const NodeId node = tree.ancestor(call.call->node, Kind::dictionary);
    if (node == kNoNode) continue;
    const Ref group{call.module, node};
    const auto is_known = [&](Ref each) {
      return each.module == call.module && tree.contains(each.node, node);
    };
    if (is_group(group) && std::none_of(out.begin(), out.end(), is_known)) out.push_back(group);
  }
  return out;
}

TrainedParts trained_parts(const Program& program, Ref given) {
  Collector collector(program);
  collector.collect(given, kNames);
  return collector.take();
}

}  // namespace bench::diagnose
