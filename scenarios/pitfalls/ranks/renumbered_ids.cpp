#include "scenarios/pitfalls/ranks/renumbered_ids.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"

#include <algorithm>
#include <set>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::Source;

namespace {

constexpr int kIdSteps = 6;  // device -> ids -> strings -> what a helper gives back -> option

// Ids are counted anew, or only asked for their number: list(range(len(ids))), ids.index(gpu).
bool says_count(std::string_view text) {
  return holds_any(text, {"range(", "len(", "enumerate(", ".index(", "count(", ".find("});
}

// int(gpu) - first, gpu % shown.
bool computes(Ref part) {
  if (part.kind() != Kind::binary) return false;
  const Op op = part.module->tree()[part.node].op;
  const bool formats = part.child(Field::left).kind() == Kind::string;  // "cuda:%d" % gpu
  return op == Op::subtract || op == Op::floor_divide || (op == Op::modulo && !formats);
}

// The expression counts the ids anew, or has a function do so: remap(ids) of the program, which
// looks each id up, or renumber(ids) of a file that is not at hand.
bool counts_anew(const Program& program, Ref expression) {
  if (says_count(expression.text())) return true;
  const auto& tree = expression.module->tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at)
    if (computes(expression.with(at))) return true;
  for (const CallRef& call : facts::calls_in(expression)) {
    if (says_any(call.call->name, {"map_", "remap", "renumber", "relative", "visible", "local"}))
      return true;
    const diagnose::FunctionRef helper = program.callee(call);
    if (helper && says_count(helper.module->text(helper.function->node))) return true;
  }
  return false;
}

// "cuda:0" if device != "cpu" else "cpu": what is asked is no part of the id.
bool only_decides(Ref part) {
  const Kind kind = part.kind();
  return kind == Kind::comparison || kind == Kind::boolean || kind == Kind::not_expression ||
         part.module->tree()[part.node].field == Field::condition;
}

// if word == "--gpu": ids = sys.argv[i + 1]: the option of that name, read before the parser is.
void add_option_read_by_hand(const Program& program, Ref value, std::set<Ref>& options) {
  if (!facts::contains(value.text(), "argv[")) return;
  for (const diagnose::Guard& guard : program.guards(value))
    for (const CallRef& option : program.calls_named("add_argument"))
      if (const auto name = program.string(option.positional(0));
          guard.holds && name && quotes(guard.condition.text(), *name))
        options.insert(option.ref());
}

// What stands behind an expression, by way of names and of what is done with them.
struct Behind {
  std::set<Ref> options;
  std::set<Ref> seen;  // a name is used in several places
};

// The options that the expression is made of. False where the ids are counted anew on the way.
bool add_options(const Program& program, Ref expression, int depth, Behind& behind) {
  if (!expression || depth > kIdSteps || !behind.seen.insert(expression).second) return true;
  if (counts_anew(program, expression)) return false;
  const auto& tree = expression.module->tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at) {
    const Ref part = expression.with(at);
    if (only_decides(part)) {
      at = tree[at].last - 1;
      continue;
    }
    if ((part.kind() != Kind::identifier && part.kind() != Kind::attribute) ||
        tree[at].field == Field::function || tree[at].field == Field::attribute)
      continue;
    for (const Source& source : program.sources(part)) {
      if (source.how == Source::How::loop_item) continue;  // of what the expression goes over
      const bool inside =
          source.ref.module == expression.module && tree.contains(expression.node, source.ref.node);
      if (!inside) add_option_read_by_hand(program, source.ref, behind.options);
      if (source.how == Source::How::argument)
        behind.options.insert(source.ref);
      else if (!inside && source.ref.kind() != Kind::function &&
               source.ref.kind() != Kind::class_definition &&
               !add_options(program, source.ref, depth + 1, behind))
        return false;
    }
    at = tree[at].last - 1;
  }
  return true;
}

std::set<Ref> options_of(const Program& program, Ref expression) {
  Behind behind;
  return add_options(program, expression, 0, behind) ? behind.options : std::set<Ref>{};
}

// Where ids of GPUs are taken.
std::vector<Ref> devices_used(const Program& program) {
  std::vector<Ref> out;
  for (const diagnose::Wrap& wrap : program.wraps())
    if (const Ref ids = wrap.call.argument(1, "device_ids")) out.push_back(ids);
  for (const std::string_view method : {"set_device", "cuda", "device", "to"})
    for (const CallRef& call : program.calls_named(method)) {
      const Ref device = call.argument(0, "device");
      const bool names_gpu = device && (method == "set_device" || method == "cuda" ||
                                        facts::contains(device.text(), "cuda:"));
      if (names_gpu) out.push_back(device);
    }
  return out;
}

// The variable is set for the run that comes by the device, above it.
bool is_set_above(const Program& program, Ref visible, Ref device) {
  const bool at_the_top = !program.enclosing_function(visible) &&
                          visible.module == &program.root() && program.enclosing_function(device);
  return !facts::exclusive(visible, device) && (at_the_top || program.runs_before(visible, device));
}

}  // namespace

std::vector<Ref> renumbered_ids(const Program& program) {
  std::vector<Ref> out;
  const auto all_visible = visible_devices(program);
  if (all_visible.empty()) return out;
  std::vector<Ref> used;
  for (const Ref visible : all_visible) {
    if (program.string(visible) && !program.evaluate(visible).is_default) continue;
    const auto shown = options_of(program, visible);
    if (shown.empty()) continue;
    if (used.empty()) used = devices_used(program);
    for (const Ref device : used) {
      const auto named = options_of(program, device);
      const bool same = std::any_of(named.begin(), named.end(),
                                    [&](const Ref& option) { return shown.contains(option); });
      if (same && is_set_above(program, visible, device) && facts::is_reachable(program, device) &&
          std::find(out.begin(), out.end(), device) == out.end())
        out.push_back(device);
    }
  }
  return out;
}

namespace {

// os.environ["CUDA_VISIBLE_DEVICES"].split(","), by way of names; an id of it is taken by an index.
bool is_read_from_variable(const Program& program, Ref expression, int depth = 0) {
  if (!expression || depth > kIdSteps || counts_anew(program, expression)) return false;
  const std::string_view text = expression.text();
  if (facts::contains(text, "CUDA_VISIBLE_DEVICES") && holds_any(text, {"environ", "getenv"}))
    return depth > 0 && holds_any(text, {"split(", "replace("});
  const auto& tree = expression.module->tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at) {
    const Ref part = expression.with(at);
    if (part.kind() != Kind::identifier || tree[at].field == Field::attribute ||
        tree[at].field == Field::function)
      continue;
    for (const Source& source : program.sources(part))
      if (source.how != Source::How::argument && source.how != Source::How::parameter &&
          source.ref != part && is_read_from_variable(program, source.ref, depth + 1))
        return true;
  }
  return false;
}

}  // namespace

std::vector<Ref> ids_read_back(const Program& program) {
  std::vector<Ref> out;
  if (!program.mentions("CUDA_VISIBLE_DEVICES") || !visible_devices(program).empty()) return out;
  for (const Ref device : devices_used(program))
    if (is_read_from_variable(program, device) && facts::is_reachable(program, device))
      out.push_back(device);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace bench::pitfalls
