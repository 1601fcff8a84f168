#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// 3, -x.item(), total.item() / n and round(x.item(), 2).
bool is_number(const Program& program, Ref value, int depth = 0) {
  constexpr int kParts = 4;
  const auto part = [&](Field field) {
    const Ref at = value.child(field);
    return at && depth < kParts && is_number(program, at, depth + 1);
  };
  switch (value.kind()) {
    case Kind::integer:
    case Kind::floating:
      return true;
    case Kind::unary:
      return part(Field::argument);
    case Kind::binary:
      return part(Field::left) && part(Field::right);
    default:
      break;
  }
  const CallRef call = program.as_call(value);
  if (!call) return false;
  const std::string_view name = call.call->name;
  if (name == "item") return call.receiver() && !call.positional(0);
  return (name == "float" || name == "int" || name == "len" || name == "round") &&
         !call.receiver() && call.positional(0) && !program.callee(call);
}

// Whatever the value can be is written as a number here.
bool is_written_as_number(const Program& program, Ref value) {
  const auto& sources = program.sources(value);
  return is_number(program, value) ||
         (!sources.empty() &&
          std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
            return source.how == Source::How::value && is_number(program, source.ref);
          }));
}

// total of total = 0 and total += x below it, where x may be a tensor: what it is in the end, the
// sum says.
bool begins_a_sum(const Program& program, Ref value) {
  const std::string_view name = program.assigned_name(value);
  if (name.empty()) return false;
  const diagnose::Module& module = *value.module;
  const auto& defs = module.defs_of(name, false);
  return std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const diagnose::Def& def = module.defs()[index];
    return def.kind == diagnose::DefKind::augmented && def.target > value.node &&
           def.scope == module.scope_of(value.node) &&
           !is_written_as_number(program, value.with(def.value));
  });
}

bool is_number(const Program& program, const Source& source) {
  return source.how == Source::How::value && is_number(program, source.ref) &&
         !begins_a_sum(program, source.ref);
}

bool is_surely_number(const Program& program, Ref value) {
  const std::vector<Source> sources = program.sources(value);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return is_number(program, source);
  });
}

// self.total += x, in any method of any class, where x may be a tensor.
bool is_attribute_added_to(const Program& program, Ref attribute) {
  const std::string_view name = attribute.child(Field::attribute).text();
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
    const auto& defs = module->defs_of(name, true);
    return std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
      const diagnose::Def& def = module->defs()[index];
      return def.kind == diagnose::DefKind::augmented &&
             !is_surely_number(program, {module, def.value});
    });
  });
}

// total += x, after which total is a tensor where x is one; total = self.total of such a sum too.
bool is_added_to(const Program& program, Ref name) {
  if (name.kind() == Kind::attribute) return is_attribute_added_to(program, name);
  if (name.kind() != Kind::identifier) return false;
  for (const std::uint32_t index : name.module->defs_of(name.text(), false)) {
    const diagnose::Def& def = name.module->defs()[index];
    if (def.scope != name.module->scope_of(name.node)) continue;
    if (def.kind == diagnose::DefKind::augmented) return true;
    const Ref value = name.with(def.value);
    if (def.kind == diagnose::DefKind::assign && value.kind() == Kind::attribute &&
        is_attribute_added_to(program, value))
      return true;
  }
  return false;
}

// Whatever the value can be is a number: a sum that starts at 0 becomes a tensor.
bool is_ungatherable(const Program& program, Ref value) {
  return !is_added_to(program, value) && is_surely_number(program, value);
}

// return 0 in the handler of a try that returns the outputs themselves: another way out of the
// function, for passes that fail.
bool is_fallback(Ref value) {
  const auto& tree = value.module->tree();
  const NodeId handler = tree.ancestor(value.node, Kind::except_clause);
  if (handler == kNoNode) return false;
  const NodeId body = tree.child(tree[handler].parent, Field::body);
  return body != kNoNode && tree[body].first_child != kNoNode &&
         tree[tree[body].first_child].kind == Kind::return_statement;
}

}  // namespace

void check_ungatherable_output(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel || gathers_itself(program, wrap)) continue;
    for (const ClassRef& cls : wrap.classes) {
      const FunctionRef forward = program.method(cls, "forward");
      if (!forward) continue;
      for (const NodeId value : forward.function->returns) {
        const auto& tree = forward.module->tree();
        std::vector<NodeId> parts{value};
        const Kind kind = tree[value].kind;
        if (kind == Kind::tuple || kind == Kind::list || kind == Kind::dictionary) {
          parts.clear();
          for (NodeId at = tree[value].first_child; at != kNoNode; at = tree[at].next_sibling)
            parts.push_back(tree[at].kind == Kind::pair ? tree.child(at, Field::value) : at);
        }
        for (const NodeId part : parts) {
          const Ref output{forward.module, part};
          if (is_fallback(output) || !is_ungatherable(program, output)) continue;
          report
              .at({forward.module, part}, Confidence::certain,
                  "forward returns a Python number, which DataParallel cannot gather: TypeError "
                  "'float' object is not iterable")
              .help = "Return a tensor; take .item() outside of the model.";
        }
      }
    }
  }
}

}  // namespace bench::pitfalls
