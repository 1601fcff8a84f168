#include "diagnose/to_ddp/entry.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kDeepest = 6;  // calls followed from the script's own level

bool is_definition(Kind kind) {
  return kind == Kind::function || kind == Kind::class_definition || kind == Kind::decorated;
}

class Finder {
 public:
  Finder(const Program& program, std::vector<Ref> needs)
      : program_(program), needs_(std::move(needs)) {}

  DdpEntry find() const {
    NodeId block = 0;
    NodeId first = kNoNode;
    NodeId last = kNoNode;
    for (int depth = 0; depth < kDeepest; ++depth) {
      const std::vector<NodeId> reaching = reaching_statements(block);
      if (reaching.empty()) break;
      first = reaching.front();
      if (!may_go_on_behind(last)) last = last_of(block);
      const NodeId inner = reaching.size() == 1 ? only_way_into(first) : kNoNode;
      if (inner == kNoNode) return {at(first), may_go_on_behind(last) ? at(last) : Ref{}};
      // The guard of the script is no statement to stand behind: other files import it.
      if (tree()[first].kind == Kind::if_statement) last = kNoNode;
      block = inner;
    }
    if (first != kNoNode) return {at(first), {}};
    if (const Ref commands = commands_of_class(program_)) return {commands, commands};
    if (const NodeId offered = first_where_offered(); offered != kNoNode) return {at(offered), {}};
    return under_guard();
  }

 private:
  Ref at(NodeId node) const { return {&program_.root(), node}; }
  const SyntaxTree& tree() const { return program_.root().tree(); }

  bool holds_need(NodeId statement) const {
    return std::any_of(needs_.begin(), needs_.end(), [&](const Ref& need) {
      return need.module == &program_.root() && tree().contains(statement, need.node);
    });
  }

  // Nothing runs behind return, raise and sys.exit(main()).
  bool may_go_on_behind(NodeId statement) const {
    if (statement == kNoNode) return false;
    const Kind kind = tree()[statement].kind;
    return kind != Kind::return_statement && kind != Kind::raise_statement &&
           !pitfalls::facts::ends_process(at(statement));
  }

  // The statement holds a need, or runs a function that does.
  bool reaches_need(NodeId statement) const {
    if (holds_need(statement)) return true;
    const auto functions = program_.reached(at(statement));
    return std::any_of(needs_.begin(), needs_.end(), [&](const Ref& need) {
      for (auto function = program_.enclosing_function(need); function;
           function = program_.enclosing_function({function.module, function.function->node})) {
        if (std::find(functions.begin(), functions.end(), function) != functions.end()) return true;
        if (function.function->node == 0) break;
      }
      return false;
    });
  }

  bool runs_need(FunctionRef function) const {
    const auto functions = program_.reached({function.module, function.function->body});
    return std::any_of(needs_.begin(), needs_.end(), [&](const Ref& need) {
      const FunctionRef around = program_.enclosing_function(need);
      return around == function ||
             std::find(functions.begin(), functions.end(), around) != functions.end();
    });
  }

  std::vector<NodeId> reaching_statements(NodeId block) const {
    std::vector<NodeId> out;
    for (NodeId each = tree()[block].first_child; each != kNoNode; each = tree()[each].next_sibling)
      if (!is_definition(tree()[each].kind) && reaches_need(each)) out.push_back(each);
    return out;
  }

  // The block that the statement does nothing but run: that of the script's own guard, or the body
  // of the one function that it calls.
  NodeId only_way_into(NodeId statement) const {
    if (tree()[statement].kind == Kind::if_statement) {
      const std::string_view condition = tree().text(tree().child(statement, Field::condition));
      return condition.find("__name__") == std::string_view::npos
                 ? kNoNode
                 : tree().child(statement, Field::consequence);
    }
    const Kind kind = tree()[statement].kind;
    if ((kind != Kind::expression_statement && kind != Kind::assignment) || holds_need(statement))
      return kNoNode;
    NodeId body = kNoNode;
    for (const Call& call : program_.root().calls()) {
      if (!tree().contains(statement, call.node)) continue;
      const FunctionRef callee = program_.callee({&program_.root(), &call});
      // Solver(config).run() needs the group in the constructor already.
      if (callee && callee.function->name == "__init__" && runs_need(callee)) return kNoNode;
      if (!callee || callee.module != &program_.root() || callee.function->name == "__init__")
        continue;
      const NodeId here = callee.function->body;
      if (reaching_statements(here).empty()) continue;
      if (body != kNoNode || program_.call_sites(callee).size() != 1) return kNoNode;
      body = here;
    }
    return body;
  }

  NodeId last_of(NodeId block) const {
    NodeId last = kNoNode;
    for (NodeId each = tree()[block].first_child; each != kNoNode; each = tree()[each].next_sibling)
      last = each;
    return last;
  }

  // The body of the outermost function of the file that leads to the need; the file's own level
  // where it stands in none.
  NodeId body_above(Ref need) const {
    FunctionRef function = program_.enclosing_function(need);
    for (int depth = 0; function && depth < kDeepest; ++depth) {
      const auto& sites = program_.call_sites(function);
      if (sites.empty() || sites.front().module != need.module) break;
      const FunctionRef caller = program_.enclosing_function(sites.front().ref());
      if (!caller || caller == function) break;
      function = caller;
    }
    return function ? function.function->body : 0;
  }

  // fire.Fire(main), which no call leads through: all that the script's guard runs.
  DdpEntry under_guard() const {
    for (NodeId each = tree()[0].first_child; each != kNoNode; each = tree()[each].next_sibling) {
      const NodeId block = only_way_into(each);
      if (tree()[each].kind != Kind::if_statement || block == kNoNode) continue;
      const NodeId last = last_of(block);
      return {at(tree()[block].first_child), may_go_on_behind(last) ? at(last) : Ref{}};
    }
    return {};
  }

  // For a file that runs nothing itself: above the first statement that reaches a need.
  NodeId first_where_offered() const {
    const auto here = std::find_if(needs_.begin(), needs_.end(), [&](const Ref& need) {
      return need.module == &program_.root();
    });
    if (here == needs_.end()) return kNoNode;
    const std::vector<NodeId> reaching = reaching_statements(body_above(*here));
    return reaching.empty() ? kNoNode : reaching.front();
  }

  const Program& program_;
  std::vector<Ref> needs_;
};

}  // namespace

Ref commands_of_class(const Program& program) {
  for (const CallRef& fire : program.calls_named("Fire")) {
    const Ref component = fire.argument(0, "component");
    if (!component || fire.module != &program.root()) continue;
    const CallRef made = program.as_call(component);
    const auto& classes = fire.module->classes();
    if (std::any_of(classes.begin(), classes.end(), [&](const Class& cls) {
          return component.text() == cls.name || (made && program.class_of_call(made).cls == &cls);
        }))
      return pitfalls::statement_of(fire.ref());
  }
  return {};
}

bool may_return_above(const Program& program, const DdpEntry& entry) {
  Ref at = entry.first;
  FunctionRef function = program.enclosing_function(at);
  while (function && function != program.enclosing_function(entry.last)) {
    const auto& returns = function.module->nodes_of(Kind::return_statement);
    if (std::any_of(returns.begin(), returns.end(), [&](NodeId node) {
          return node < at.node && program.enclosing_function(at.with(node)) == function;
        }))
      return true;
    const auto& sites = program.call_sites(function);
    if (sites.size() != 1 || sites.front().module != at.module) return false;
    at = sites.front().ref();
    function = program.enclosing_function(at);
  }
  return false;
}

DdpEntry ddp_entry(const Program& program, const std::vector<Ref>& needs) {
  return Finder(program, needs).find();
}

}  // namespace bench::diagnose
