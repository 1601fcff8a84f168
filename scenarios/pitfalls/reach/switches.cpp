#include "scenarios/pitfalls/reach/switches.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/decided.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Value;

namespace {

// DDP(model), Net(args), model.to(rank): an object.
bool is_made_object(const Program& program, const CallRef& made) {
  using diagnose::Api;
  if (!made) return false;
  const Api api = made.call->api;
  return api == Api::torch_device || api == Api::ddp || api == Api::data_parallel ||
         (made.receiver() && (made.call->name == "to" || made.call->name == "cuda")) ||
         program.class_of_call(made);
}

// "%s/last" % name, root + "/last", time.strftime("%H%M"), "{}".format(name): a text.
bool is_made_text(const Program& program, Ref value) {
  if (value.kind() == Kind::binary)
    return value.child(Field::left).kind() == Kind::string ||
           value.child(Field::right).kind() == Kind::string;
  const CallRef made = program.as_call(value);
  if (!made) return false;
  const std::string_view name = made.call->path;
  return made.call->name == "strftime" || name == "os.path.join" ||
         (made.call->name == "str" && !made.receiver()) ||
         (made.call->name == "format" && made.receiver().kind() == Kind::string);
}

// torch.device("cuda", rank), f"cuda:{rank}", [0, 1]: whatever it is, it is not None.
bool is_surely_something(const Program& program, Ref given) {
  const auto& sources = program.sources(given);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           if (source.how != diagnose::Source::How::value) return false;
           const CallRef made = program.as_call(source.ref);
           const Kind kind = source.ref.kind();
           return is_made_object(program, made) || is_made_text(program, source.ref) ||
                  kind == Kind::string || kind == Kind::integer || kind == Kind::list ||
                  kind == Kind::tuple || kind == Kind::dictionary;
         });
}

std::size_t parameter_index(FunctionRef function, std::string_view name) {
  const auto& parameters = function.function->parameters;
  return static_cast<std::size_t>(
      std::find_if(parameters.begin(), parameters.end(),
                   [&](const auto& each) { return each.name == name; }) -
      parameters.begin());
}

// A loop of the function comes back from the later node to the earlier one.
bool is_looped(FunctionRef function, NodeId earlier, NodeId later) {
  const auto& tree = function.module->tree();
  for (NodeId at = tree[earlier].parent; at != kNoNode && at != function.function->node;
       at = tree[at].parent)
    if ((tree[at].kind == Kind::for_statement || tree[at].kind == Kind::while_statement) &&
        tree.contains(at, later))
      return true;
  return false;
}

}  // namespace

bool is_kept_parameter(FunctionRef function, Ref name) {
  if (!function || name.kind() != Kind::identifier ||
      parameter_index(function, name.text()) >= function.function->parameters.size())
    return false;
  const auto& defs = function.module->defs_of(name.text(), false);
  return std::none_of(defs.begin(), defs.end(), [&](const auto index) {
    const auto& def = function.module->defs()[index];
    return def.scope == function.function->node && def.kind != diagnose::DefKind::parameter &&
           (def.target < name.node || is_looped(function, name.node, def.target));
  });
}

Ref given_for(FunctionRef function, std::string_view name, const CallRef& site) {
  if (const Ref given = argument_for(site, function, name)) return given;
  const NodeId value = function.function->parameters[parameter_index(function, name)].default_value;
  return site.has_splat() || value == kNoNode ? Ref{} : Ref{function.module, value};
}

bool leads_past(const Program& program, const diagnose::Guard& guard, std::string_view name,
                const Value& value) {
  // A word chooses among branches that are all there to be chosen: dataset="cifar10". Whether there
  // is one at all is another question.
  const std::string asked = std::string(name) + " is";
  const std::string_view text = guard.condition.text();
  const bool is_choice =
      value.is_string() && !contains(text, asked + " None") && !contains(text, asked + " not None");
  return value.known() && !value.is_default && !is_choice &&
         decided(program, guard.condition, name, value) == !guard.holds;
}

namespace {

// cache for self.cache below self.cache = cache in the same function; empty for anything else.
Ref parameter_kept_in(const Program& program, FunctionRef function, Ref attribute) {
  if (attribute.kind() != Kind::attribute || attribute.child(Field::object).text() != "self")
    return {};
  const diagnose::Def* last = last_value_above(attribute);
  if (last == nullptr || last->kind != diagnose::DefKind::assign || last->element >= 0) return {};
  const Ref value = attribute.with(last->value);
  return is_unconditional(program, value) && is_kept_parameter(function, value) ? value : Ref{};
}

}  // namespace

Switches switches_around(const Program& program, FunctionRef function, Ref node) {
  Switches out;
  for (const diagnose::Guard& guard : program.guards(node)) {
    const auto& tree = guard.condition.module->tree();
    for (NodeId id = guard.condition.node; id < tree[guard.condition.node].last; ++id) {
      const Ref name = guard.condition.with(id);
      if (tree[id].field != Field::attribute && is_kept_parameter(function, name))
        out.push_back({guard.condition, guard.holds, name.text(), name.text()});
      else if (const Ref kept = parameter_kept_in(program, function, name))
        out.push_back({guard.condition, guard.holds, name.text(), kept.text()});
    }
  }
  return out;
}

bool is_switched_off_by(const Program& program, FunctionRef function, const Switches& switches,
                        const CallRef& site, Switches& outer) {
  const FunctionRef caller = program.enclosing_function(site.ref());
  for (const Switch& each : switches) {
    const Ref given = given_for(function, each.outside, site);
    if (!given) continue;
    if (caller && given.module == site.module && is_kept_parameter(caller, given)) {
      outer.push_back({each.condition, each.holds, each.inside, given.text()});
      continue;
    }
    Value value = program.evaluate(given);
    // Of a kind that says no more than that it is not None.
    if (!value.known() && is_surely_something(program, given)) value.type = Value::Type::list;
    if (leads_past(program, {each.condition, each.holds}, each.inside, value)) return true;
  }
  return false;
}

namespace {

// The name that the dictionary around the place is given to: builders = {"large": build_large}.
std::string_view table_around(Ref place) {
  const auto& tree = place.module->tree();
  const NodeId pair = tree[place.node].parent;
  if (pair == kNoNode || tree[pair].kind != Kind::pair) return {};
  const NodeId dictionary = tree[pair].parent;
  const NodeId given = dictionary == kNoNode ? kNoNode : tree[dictionary].parent;
  if (given == kNoNode || tree[given].kind != Kind::assignment) return {};
  const Ref left = place.with(tree.child(given, Field::left));
  return left.kind() == Kind::identifier ? left.text() : std::string_view{};
}

// builders[name](...), where `builders` is the name.
bool calls_item_of(std::string_view table, const CallRef& call) {
  const Ref called{call.module, call.call->function};
  return called.kind() == Kind::subscript && called.child(Field::value).text() == table;
}

}  // namespace

bool is_switched_off_in_table(const Program& program, FunctionRef function,
                              const Switches& switches, Ref place) {
  const std::string_view table = table_around(place);
  if (table.empty() || switches.empty()) return false;
  bool called = false;
  for (const auto* module : program.modules())
    for (const auto& each : module->calls()) {
      const CallRef call{module, &each};
      if (!calls_item_of(table, call)) continue;
      called = true;
      Switches outer;
      if (!is_switched_off_by(program, function, switches, call, outer)) return false;
    }
  return called;
}

}  // namespace bench::pitfalls::facts
