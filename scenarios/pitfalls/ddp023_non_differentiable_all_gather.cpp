#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Def;
using diagnose::Function;
using diagnose::Kind;
using diagnose::TrainingLoop;

namespace {

// The list that all_gather fills gets this rank's own tensor back: out[rank] = x.
// The same of parts = list(out.chunk(n)).
bool puts_own_tensor_back(Ref list) {
  std::vector<std::string> prefixes{std::string(list.text()) + "["};
  for (const Def& def : list.module->defs()) {
    if (def.value != diagnose::kNoNode && !def.is_attribute &&
        facts::contains(list.module->text(def.value), list.text()) && prefixes.size() < 8)
      prefixes.push_back(std::string(def.name) + "[");
    for (const std::string& prefix : prefixes)
      if (def.name.starts_with(prefix)) return true;
  }
  return false;
}

// Labels, what is detached, and numbers that are no fractions have no gradient to lose.
bool has_no_gradient(const Program& program, Ref tensor, Ref out) {
  if (facts::contains(tensor.text(), ".detach()")) return true;
  const CallRef made = program.made_by(out);
  const Ref type = made ? made.keyword("dtype") : Ref{};
  if (type && (facts::contains(type.text(), "long") || facts::contains(type.text(), "int") ||
               facts::contains(type.text(), "bool")))
    return true;
  const auto& sources = program.sources(tensor);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
           return source.how == diagnose::Source::How::loop_item;
         });
}

// Numbers put into a fresh tensor, as the sizes of what follows: there is no gradient to lose.
bool is_fresh(const Program& program, Ref tensor) {
  const auto& sources = program.sources(tensor);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value) return false;
  const CallRef made = program.as_call(sources.front().ref);
  if (!made || made.call->api != Api::tensor_factory) return false;
  const std::string prefix = std::string(tensor.text()) + "[";  // filled with something afterwards
  for (const Def& def : tensor.module->defs())
    if (def.name.starts_with(prefix)) return false;
  return true;
}

// The helper is called under no_grad somewhere, as for the keys of MoCo.
bool called_without_grad(const Program& program, Ref node, int depth) {
  constexpr int kCalls = 3;
  const auto function = program.enclosing_function(node);
  if (!function || depth > kCalls) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return program.under_no_grad(site.ref()) || called_without_grad(program, site.ref(), depth + 1);
  });
}

// x for x.flatten(0, 1), x[0] and x.last_hidden_state: parts of it, or it in another shape.
Ref viewed(const Program& program, Ref value) {
  if (value.kind() == Kind::attribute) return value.child(diagnose::Field::object);
  if (value.kind() == Kind::subscript)
    return value.with(value.module->tree()[value.node].first_child);
  const CallRef call = program.as_call(value);
  if (!call || !call.receiver()) return {};
  for (const std::string_view method :
       {"flatten", "view", "reshape", "squeeze", "unsqueeze", "contiguous", "transpose", "permute"})
    if (call.call->name == method) return call.receiver();
  return {};
}

// What values are made of that lead to one another, features = features.flatten(0, 1).
struct Origins {
  std::vector<Ref> seen;
  bool without_grad = false;  // one of them was computed so; empty tensors say nothing
};

// Nothing that leads to the value has a gradient.
bool leads_to_no_gradient(const Program& program, Ref value, Origins& origins) {
  constexpr std::size_t kMost = 16;
  if (std::find(origins.seen.begin(), origins.seen.end(), value) != origins.seen.end()) return true;
  if (origins.seen.size() >= kMost) return false;
  origins.seen.push_back(value);
  const auto& sources = program.sources(value);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           // The attribute of what a call gives is none that the program defines.
           const bool is_output =
               source.how == diagnose::Source::How::unknown && source.ref.kind() == Kind::attribute;
           if (source.how != diagnose::Source::How::value &&
               source.how != diagnose::Source::How::element && !is_output)
             return false;
           const CallRef made = program.as_call(source.ref);
           if ((made && made.receiver() && made.call->name == "detach") ||
               ((made || viewed(program, source.ref)) && program.under_no_grad(source.ref)))
             return origins.without_grad = true;
           if (made && made.call->api == Api::tensor_factory && !made.keyword("requires_grad"))
             return true;
           const Ref whole = viewed(program, source.ref);
           return whole && leads_to_no_gradient(program, whole, origins);
         });
}

// What is gathered is no part of what the loss differentiates: it was computed under no_grad, here
// or by whatever calls the helper.
bool is_computed_without_grad(const Program& program, Ref tensor) {
  Origins origins;
  return leads_to_no_gradient(program, tensor, origins) && origins.without_grad;
}

// out = torch.empty(...), which the gather fills: the loss leads back to where it was made.
bool is_made_for(const Program& program, Ref out, const CallRef& call) {
  const CallRef made = program.made_by(out);
  return made && made.ref() == call.ref();
}

}  // namespace

void check_non_differentiable_all_gather(const Program& program, Report& report) {
  if (!program.uses(Api::all_gather)) return;
  const auto ends = [&](Ref call) { return program.under_no_grad(call); };
  for (const CallRef& gather : program.calls(Api::all_gather)) {
    const Ref list = gather.positional(0);
    if (!list || list.kind() != Kind::identifier || gather.call->name == "all_gather_object")
      continue;
    // all_gather_into_tensor(out, x): what the loss is made of is the tensor itself.
    const bool into_one = facts::contains(gather.call->name, "into_tensor");
    const Ref tensor = gather.argument(
        1, into_one ? std::string_view("input_tensor") : std::string_view("tensor"));
    if (tensor && (is_fresh(program, tensor) || is_computed_without_grad(program, tensor) ||
                   has_no_gradient(program, tensor, list)))
      continue;
    if (program.under_no_grad(gather.ref()) || called_without_grad(program, gather.ref(), 0) ||
        puts_own_tensor_back(list))
      continue;
    const ClassRef cls = program.enclosing_class(gather.ref());
    if (cls && facts::contains(cls.module->text(cls.cls->node), "autograd.Function")) continue;
    for (const TrainingLoop& loop : program.training_loops()) {
      bool reaches = false;
      for (const CallRef& backward : loop.backwards)
        for (const Ref& node : facts::calls_behind(program, facts::loss_of(backward), ends)) {
          const CallRef call = program.as_call(node);
          const bool joins =
              call.call->name == "cat" || call.call->name == "stack" || call.call->name == "concat";
          reaches = reaches || (joins && program.same_variable(call.positional(0), list)) ||
                    (into_one && is_made_for(program, list, call));
        }
      if (!reaches) continue;
      report
          .at(gather.ref(), Confidence::likely,
              "all_gather gives tensors without gradients: features of other ranks, and of this "
              "one, "
              "take no part in training")
          .help =
          "Use torch.distributed.nn.functional.all_gather, or put the local tensor back at its "
          "rank.";
      break;
    }
  }
}

}  // namespace bench::pitfalls
