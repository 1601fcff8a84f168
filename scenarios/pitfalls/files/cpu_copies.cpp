#include "scenarios/pitfalls/files/cpu_copies.hpp"

#include "scenarios/pitfalls/files/saved_states.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;

namespace {

// for key, value in states.items(): of states = net.state_dict() in the same body.
bool goes_over_states(Ref loop, Ref body) {
  if (loop.node == diagnose::kNoNode) return false;
  const std::string_view over = loop.child(diagnose::Field::right).text();
  if (facts::contains(over, "state_dict()")) return true;
  const std::string_view states = over.substr(0, over.find_first_of(".[("));
  const auto assigned = assignments_in(body);
  return std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
    return each.name == states && facts::contains(each.value.text(), "state_dict()");
  });
}

// value.cpu(), value.detach().to("cpu"), value.to(device="cpu"), and what a helper is called.
bool goes_to_cpu(std::string_view text) {
  return holds_any(text,
                   {".cpu()", ".to(\"cpu\"", ".to('cpu'", ".to(device=\"cpu\"", ".to(device='cpu'",
                    ".to(torch.device(\"cpu\"", ".to(torch.device('cpu'", "to_cpu("});
}

// {key: value.cpu() for key, value in net.state_dict().items()} above the save, also of a name such
// as state_dict, or the same as a loop: for key, value in states.items(): states[key] =
// value.cpu().
bool copies_to_cpu(Ref body) {
  const auto& tree = body.module->tree();
  for (diagnose::NodeId at = body.node; at < tree[body.node].last; ++at) {
    const std::string_view text = tree.text(at);
    if (tree[at].kind == Kind::comprehension && goes_to_cpu(text) &&
        (facts::contains(text, "state_dict()") || facts::contains(text, "state_dict.items()")))
      return true;
    if (tree[at].kind == Kind::call && facts::contains(text, "to_cpu(") &&
        facts::contains(text, "state_dict()"))  // weights_to_cpu(net.state_dict())
      return true;
    if (tree[at].kind == Kind::assignment &&
        goes_to_cpu(body.with(tree.child(at, diagnose::Field::right)).text()) &&
        tree[tree.child(at, diagnose::Field::left)].kind == Kind::subscript &&
        goes_over_states(body.with(tree.ancestor(at, Kind::for_statement)), body))
      return true;
  }
  return false;
}

// layer.weight.cpu(), or value.cpu() in a loop over the parameters; features that a model computes
// are no state.
bool is_of_weights(Ref value) {
  const auto& tree = value.module->tree();
  constexpr std::string_view kParts[] = {"weight", "bias", "param", "state", "buffer"};
  const auto says_so = [&](std::string_view text) {
    return std::any_of(std::begin(kParts), std::end(kParts),
                       [&](std::string_view part) { return facts::contains(text, part); });
  };
  if (says_so(value.text())) return true;
  const diagnose::NodeId loop = tree.ancestor(value.node, Kind::for_statement);
  return loop != diagnose::kNoNode &&
         says_so(value.with(loop).child(diagnose::Field::right).text());
}

// weights = [] and weights.append(layer.weight.to("cpu")), or weights[name] = value.cpu(): all that
// the body puts into what is saved comes from the CPU.
bool is_filled_from_cpu(const CallRef& save, Ref body) {
  const Ref saved = save.argument(0, "obj");
  if (saved.kind() != Kind::identifier) return false;
  const auto& tree = body.module->tree();
  bool any = false;
  for (const CallRef& call : facts::calls_in(body)) {
    if (!call.receiver() || call.receiver().text() != saved.text()) continue;
    const std::string_view name = call.call->name;
    if (name != "append" && name != "extend" && name != "insert" && name != "update") continue;
    if (!goes_to_cpu(call.ref().text()) || !is_of_weights(call.ref())) return false;
    any = true;
  }
  for (const std::uint32_t index : body.module->item_defs_of(saved.text())) {
    const diagnose::Def& def = body.module->defs()[index];
    if (def.value == diagnose::kNoNode || !tree.contains(body.node, def.target)) continue;
    // An item that holds no tensor says nothing: states["epoch"] = epoch.
    const Kind kind = tree[def.value].kind;
    if (kind == Kind::identifier || kind == Kind::integer || kind == Kind::string) continue;
    if (!goes_to_cpu(tree.text(def.value)) || !is_of_weights(body.with(def.target))) return false;
    any = true;
  }
  return any;
}

// net.cpu() as a statement, which moves the whole module, and nothing but that move between it and
// the save of what net holds.
bool is_moved_to_cpu(const CallRef& save, Ref body) {
  const Ref saved = save.argument(0, "obj");
  if (!saved) return false;
  const VariableNames holds = behind(variables_in(saved), assignments_in(body));
  const auto calls = facts::calls_in(body);
  const CallRef* last = nullptr;
  for (const CallRef& call : calls) {
    const Ref model = call.receiver();
    const auto& tree = call.module->tree();
    const bool moves =
        call.call->name == "cpu" || call.call->name == "cuda" || call.call->name == "to";
    if (moves && model && call.call->node < save.call->node &&
        holds.contains(std::string(model.text())) &&
        tree[tree[call.call->node].parent].kind == Kind::expression_statement)
      last = &call;
  }
  return last != nullptr && last->call->name == "cpu";
}

// {"model": weights_on_cpu, "optimizer": optimizer.state_dict()}: the moments stay on the GPU.
bool holds_optimizer(const Program& program, const CallRef& save) {
  const auto says_so = [](std::string_view text) {
    return facts::contains(text, "optim") && facts::contains(text, ".state_dict()");
  };
  const Ref saved = save.argument(0, "obj");
  if (!saved || says_so(saved.text())) return static_cast<bool>(saved);
  const auto sources = program.sources(saved);
  return std::any_of(sources.begin(), sources.end(),
                     [&](const Source& source) { return says_so(source.ref.text()); });
}

}  // namespace

bool saves_from_cpu(const Program& program) {
  const auto saves = program.calls(Api::torch_save);
  return std::any_of(saves.begin(), saves.end(),
                     [&](const CallRef& save) {
                       const Ref body = body_around(program, save.ref());
                       return (copies_to_cpu(body) || is_filled_from_cpu(save, body)) &&
                              !holds_optimizer(program, save);
                     }) ||
         (!saves.empty() && std::all_of(saves.begin(), saves.end(), [&](const CallRef& save) {
           return is_moved_to_cpu(save, body_around(program, save.ref()));
         }));
}

namespace {

// Of a model, by the name of what is asked for it: optimizer.state_dict() is another.
bool is_state_of_model(const CallRef& call) {
  return call.call->name == "state_dict" && call.receiver() &&
         !says_any(call.receiver().text(), {"optim", "sched", "scaler", "opt."});
}

bool saves_state_from_gpu(const Program& program, const CallRef& save) {
  const Ref body = body_around(program, save.ref());
  if (copies_to_cpu(body) || is_filled_from_cpu(save, body) || is_moved_to_cpu(save, body))
    return false;
  const auto calls = calls_saved(program, save);
  return std::any_of(calls.begin(), calls.end(), is_state_of_model);
}

// Looks at the text of one file as a program of its own.
bool of_file(std::string_view text, const std::function<bool(const Program&)>& asks) {
  constexpr std::size_t kMostBytes = 256U << 10;  // no file that people write is longer
  if (text.size() > kMostBytes ||
      (!facts::contains(text, "torch.save(") && !facts::contains(text, "import save")))
    return false;
  const diagnose::Module module("", "", std::string(text));
  diagnose::ProgramInput input;
  input.modules.push_back(&module);
  return asks(Program(std::move(input)));
}

}  // namespace

bool project_saves_from_cpu(const Program& program) {
  if (!program.any_in_project("a state is saved from the CPU", [](std::string_view text) {
        return goes_to_cpu(text) && of_file(text, saves_from_cpu);
      }))
    return false;
  return !program.any_in_project("a state is saved from where it is", [](std::string_view text) {
    return facts::contains(text, "state_dict(") && of_file(text, [](const Program& other) {
             const auto saves = other.calls(Api::torch_save);
             return std::any_of(saves.begin(), saves.end(), [&](const CallRef& save) {
               return saves_state_from_gpu(other, save);
             });
           });
  });
}

}  // namespace bench::pitfalls
