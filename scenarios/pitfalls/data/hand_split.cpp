#include "scenarios/pitfalls/data/hand_split.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// The generator that the call draws from; nothing for other calls, and for a generator object.
std::optional<DrawnBy> drawn_by(const CallRef& call) {
  const std::string_view name = call.call->path;
  if (name == "random.shuffle") return DrawnBy::python;
  if (name == "numpy.random.shuffle" || name == "numpy.random.permutation") return DrawnBy::numpy;
  if (name == "torch.randperm" && !call.keyword("generator")) return DrawnBy::torch;
  return std::nullopt;
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  const auto last = text.find_last_not_of(' ');
  return first == std::string_view::npos ? std::string{}
                                         : std::string(text.substr(first, last - first + 1));
}

// list[:n] and list[n:] in the function, for one n: what is on one side is not on the other.
bool is_cut_in_two(FunctionRef function, std::string_view list) {
  const auto& tree = function.module->tree();
  std::set<std::string> ends;
  std::set<std::string> starts;
  const NodeId body = function.function->body;
  for (NodeId node = body; node < tree[body].last; ++node) {
    if (tree[node].kind != Kind::slice) continue;
    const NodeId subscript = tree[node].parent;
    if (subscript == kNoNode || tree[subscript].kind != Kind::subscript ||
        tree.text(tree.child(subscript, Field::value)) != list)
      continue;
    const std::string_view text = tree.text(node);
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos)
      continue;
    const std::string start = trimmed(text.substr(0, colon));
    const std::string end = trimmed(text.substr(colon + 1));
    if (!start.empty()) starts.insert(start);
    if (!end.empty() && start != end) ends.insert(end);
  }
  return std::any_of(ends.begin(), ends.end(), [&](const std::string& end) {
    return end.find_first_not_of("0123456789") != std::string::npos && starts.contains(end);
  });
}

// split_one(cls) after shuffle(cls), where split_one cuts its parameter.
bool is_cut_by_helper(const Program& program, FunctionRef function, std::string_view list) {
  for (const CallRef& call : facts::calls_in({function.module, function.function->body})) {
    const FunctionRef helper = program.callee(call);
    if (!helper || helper.function->owner_class != kNoNode) continue;
    for (std::size_t i = 0; i < helper.function->parameters.size(); ++i)
      if (call.positional(i).text() == list &&
          is_cut_in_two(helper, helper.function->parameters[i].name))
        return true;
  }
  return false;
}

// The name of what is drawn: the list that is shuffled in place, or what holds the order.
std::string_view drawn_name(const Program& program, const CallRef& call) {
  if (call.call->name == "shuffle") {
    const Ref list = call.positional(0);
    return list.kind() == Kind::identifier || list.kind() == Kind::attribute ? list.text()
                                                                             : std::string_view{};
  }
  return program.assigned_name(call.ref());
}

// In a class with a forward(): what is cut in two are features or samples of a batch.
bool is_of_model(const Program& program, const CallRef& call) {
  const diagnose::ClassRef cls = program.enclosing_class(call.ref());
  return cls && program.method(cls, "forward");
}

}  // namespace

std::vector<HandSplit> hand_splits(const Program& program) {
  std::vector<HandSplit> out;
  for (const std::string_view name : {"shuffle", "permutation", "randperm"})
    for (const CallRef& call : program.calls_named(name)) {
      const std::optional<DrawnBy> by = drawn_by(call);
      const FunctionRef function = program.enclosing_function(call.ref());
      if (!by || !function || is_of_model(program, call)) continue;
      const std::string_view drawn = drawn_name(program, call);
      if (!drawn.empty() &&
          (is_cut_in_two(function, drawn) || is_cut_by_helper(program, function, drawn)))
        out.push_back({call, *by});
    }
  return out;
}

}  // namespace bench::pitfalls
