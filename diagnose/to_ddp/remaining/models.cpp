// Models and parameters that are trained beside the wrapped one.
#include "diagnose/to_ddp/parameterless.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/trained_parts.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// What a call is given, and the items of lists and tuples among it: Whole((net, head), loss).
std::vector<Ref> given_to(const Program& program, const CallRef& made) {
  std::vector<Ref> out;
  const auto add_items = [&](Ref list) {
    if (list.kind() != Kind::tuple && list.kind() != Kind::list) return;
    const auto& tree = list.module->tree();
    for (NodeId at = tree[list.node].first_child; at != kNoNode; at = tree[at].next_sibling)
      out.push_back(list.with(at));
  };
  for (const Argument& given : made.module->arguments(made.call->node)) {
    const Ref value{made.module, given.value};
    out.push_back(value);
    add_items(value);
    for (const Source& source : program.sources(value)) add_items(source.ref);
  }
  return out;
}

// net for net.to(local_rank)
Ref placed(const Program& program, Ref module) {
  const CallRef move = program.as_call(module);
  const bool moves = move && (move.call->name == "to" || move.call->name == "cuda");
  return moves && move.receiver() ? placed(program, move.receiver()) : module;
}

// One class is the other, or derives from it.
bool is_kin(const Program& program, ClassRef a, ClassRef b) {
  if (!a || !b) return a == b;
  const auto& first = program.lineage(a);
  const auto& second = program.lineage(b);
  return std::find(first.begin(), first.end(), b) != first.end() ||
         std::find(second.begin(), second.end(), a) != second.end();
}

// net of one trainer and net of another, each a network of a class of its own.
bool are_of_other_files(const Program& program, Ref a, Ref b) {
  if (a.module == b.module) return false;
  const ClassRef first = program.class_of(a);
  const ClassRef second = program.class_of(b);
  return first && second && !is_kin(program, first, second);
}

// self.net of one class is not that of another.
bool is_of_same_name(const Program& program, Ref a, Ref b) {
  return a.text() == b.text() && !are_of_other_files(program, a, b) &&
         (!a.text().starts_with("self.") ||
          is_kin(program, program.enclosing_class(a), program.enclosing_class(b)));
}

bool holds(const Program& program, const Wrap& wrap, Ref object) {
  if (!wrap.module || is_of_same_name(program, placed(program, wrap.module), object) ||
      shares_source(program, object, wrap.module))
    return true;
  // self.net of what is wrapped as a whole, which may be one of several classes.
  if (object.text().starts_with("self.") &&
      std::any_of(wrap.classes.begin(), wrap.classes.end(), [&](const ClassRef& each) {
        return is_kin(program, each, program.enclosing_class(object));
      }))
    return true;
  const auto classes = pitfalls::facts::wrapped_classes(program, wrap);
  for (const Source& source : program.module_sources(object)) {
    const ClassRef home = program.enclosing_class(source.ref);
    if (home && std::find(classes.begin(), classes.end(), home) != classes.end()) return true;
  }
  for (const Source& source : program.module_sources(wrap.module))
    for (const CallRef& inner : pitfalls::facts::calls_in(source.ref))
      for (const Ref given : given_to(program, inner))
        if (given.text() == object.text() || shares_source(program, object, given)) return true;
  return false;
}

// The object is what a wrapper holds, a layer within it, or one that its class was given.
bool is_in_wrapper(const Program& program, Ref object) {
  const auto& wraps = program.wraps();
  const auto is_held = [&](Ref each) {
    return std::any_of(wraps.begin(), wraps.end(), [&](const Wrap& wrap) {
      return wrap.kind == Wrapper::ddp && holds(program, wrap, each);
    });
  };
  if (is_held(object)) return true;
  // net.features is a layer of net.
  const Ref whole = object.kind() == Kind::attribute ? object.child(Field::object) : Ref{};
  return whole && whole.text() != "self" && is_in_wrapper(program, whole);
}

// What a class gives its attributes, each a layer that may hold parameters.
std::set<std::string_view> layers_of(const Program& program, ClassRef cls) {
  std::set<std::string_view> out;
  for (const ClassRef& each : program.lineage(cls)) {
    const auto& tree = each.module->tree();
    for (const Def& def : each.module->defs()) {
      const Ref value{each.module, def.value};
      if (!def.is_attribute || def.value == kNoNode || !tree.contains(each.cls->node, def.target) ||
          !tree.text(def.target).starts_with("self."))
        continue;
      const CallRef made = program.as_call(value);
      if (!made) continue;
      const ClassRef part = program.class_of_call(made);
      const bool is_layer = part ? program.derives_from(part, Api::module_class)
                                 : made.call->path.starts_with("torch.nn.") ||
                                       made.call->path.starts_with("torchvision.models.");
      if (is_layer && may_hold_parameters(program, value)) out.insert(def.name);
    }
  }
  return out;
}

// The attribute of the object that the wrapper goes into: encoder of model.encoder = DDP(...).
std::string_view part_in(const Program& program, const Wrap& wrap, Ref object) {
  if (wrap.kind != Wrapper::ddp || !wrap.module) return {};
  Ref part = placed(program, wrap.module);
  while (part && part.kind() == Kind::attribute) {
    const Ref whole = part.child(Field::object);
    if (is_of_same_name(program, whole, object)) return part.child(Field::attribute).text();
    part = whole;
  }
  return {};
}

std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// self.encoder = DDP(...)
bool goes_into_self(const Wrap& wrap) {
  const auto& tree = wrap.call.module->tree();
  const NodeId setting = tree.ancestor(wrap.call.call->node, Kind::assignment);
  return setting != kNoNode && tree.text(tree.child(setting, Field::left)).starts_with("self.");
}

struct WrappedParts {
  const Wrap* first = nullptr;  // null where no part has a wrapper of its own
  bool are_all = false;         // the object is but a container
};

// model.encoder = DDP(model.encoder), or self.encoder = DDP(Encoder()) in the class of the model.
WrappedParts wrapped_parts(const Program& program, Ref object) {
  WrappedParts out;
  std::set<std::string_view> wrapped;
  const Wrap* const around = program.wrap_of(object);
  const ClassRef cls = around != nullptr && around->classes.size() == 1 ? around->classes.front()
                                                                        : program.class_of(object);
  Wrap whole;
  if (cls) whole.classes.push_back(cls);
  const auto inner = pitfalls::facts::wrapped_classes(program, whole);
  for (const Wrap& wrap : program.wraps()) {
    std::string_view part = part_in(program, wrap, object);
    if (part.empty() && wrap.kind == Wrapper::ddp && goes_into_self(wrap)) {
      const ClassRef home = program.enclosing_class(wrap.call.ref());
      if (home && std::find(inner.begin(), inner.end(), home) != inner.end())
        part = last_word(program.assigned_name(wrap.call.ref()));
    }
    if (part.empty()) continue;
    wrapped.insert(part);
    if (out.first == nullptr) out.first = &wrap;
  }
  if (out.first == nullptr) return out;
  if (!cls) {
    const CallRef made = program.made_by(object);  // nn.Module(), which is filled from outside
    out.are_all = wrapped.size() > 1 || (made && made.call->path == "torch.nn.Module");
    return out;
  }
  const auto layers = layers_of(program, cls);
  out.are_all = std::includes(wrapped.begin(), wrapped.end(), layers.begin(), layers.end());
  return out;
}

bool makes_module(const Program& program, Ref value) {
  const CallRef made = program.as_call(value);
  return made && (program.derives_from(program.class_of_call(made), Api::module_class) ||
                  (made.call->path.starts_with("torch.nn.") && made.call->api != Api::ddp &&
                   made.call->api != Api::data_parallel));
}

// HEADS[name] after HEADS = {"arc": Arc(...), "cos": Cos(...)}.
bool picks_module(const Program& program, Ref value) {
  if (value.kind() != Kind::subscript) return false;
  const auto& tables = program.sources(value.child(Field::value));
  return !tables.empty() && std::all_of(tables.begin(), tables.end(), [&](const Source& table) {
    const auto& tree = table.ref.module->tree();
    if (table.ref.kind() != Kind::dictionary || tree[table.ref.node].first_child == kNoNode)
      return false;
    for (NodeId at = tree[table.ref.node].first_child; at != kNoNode; at = tree[at].next_sibling)
      if (tree[at].kind != Kind::pair ||
          !makes_module(program, table.ref.with(tree.child(at, Field::value))))
        return false;
    return true;
  });
}

// A module that is made in sight, and nothing else that the name may be.
bool is_module(const Program& program, Ref object) {
  const auto& sources = program.module_sources(object);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value &&
           (makes_module(program, source.ref) || picks_module(program, source.ref));
  });
}

// ProxyNCA(...) of a file that is not there: what an optimizer steps by this name is no part of the
// model, and a loss by all signs.
bool is_loss_out_of_sight(const Program& program, Ref object) {
  const std::string_view text = object.text();
  const std::string name = pitfalls::facts::lowered(text.substr(text.rfind('.') + 1));
  if (!contains(name, "criterion") && !contains(name, "loss")) return false;
  const auto& sources = program.module_sources(object);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && program.as_call(source.ref);
  });
}

bool is_bare(const Program& program, Ref object) {
  return program.wrap_of(object) == nullptr && !contains(object.text(), ".module") &&
         (is_module(program, object) || is_loss_out_of_sight(program, object)) &&
         !is_in_wrapper(program, object) && !pitfalls::is_frozen(program, object);
}

// A wrapped model runs in the same function or class: what is optimised is not a tensor of its own,
// a box that is fitted at test time.
bool has_forward_beside(const Program& program, Ref optimizer) {
  const auto& forwards = program.forward_calls();
  const ClassRef home = program.enclosing_class(optimizer);
  return std::any_of(forwards.begin(), forwards.end(), [&](const ForwardCall& forward) {
    const Ref call = forward.call.ref();
    return forward.wrap->kind == Wrapper::ddp && !program.is_evaluation(call) &&
           (program.enclosing_function(call) == program.enclosing_function(optimizer) ||
            (home && program.enclosing_class(call) == home));
  });
}

// True where parts of the model have wrappers of their own.
bool tell_wrapped_parts(Left& left, Ref model) {
  const WrappedParts parts = wrapped_parts(left.program, model);
  if (parts.first == nullptr || contains(model.text(), ".module")) return false;
  const Ref part = parts.first->call.ref();
  const std::string name = "`" + std::string(model.text()) + "`";
  const Wrap* const whole = left.program.wrap_of(model);
  if (whole != nullptr && whole != parts.first &&
      !pitfalls::facts::exclusive(whole->call.ref(), part))
    left.tell(Harm::stops, {part},
              "this wraps a part of " + name + ", which is wrapped as a whole, too (" +
                  place_of(whole->call.ref()) +
                  "): DDP within DDP reduces the gradients of the part twice, and may raise. "
                  "Leave the part bare.");
  else if (!parts.are_all && !pitfalls::is_frozen(left.program, model))
    left.tell(
        Harm::stops, {model},
        name + " is trained as a whole, and only a part of it is in a wrapper (" + place_of(part) +
            ")" + (whole != nullptr ? " in runs that come there" : "") +
            ": the gradients of the rest are not averaged, and the copies drift apart. Wrap " +
            name + " in DistributedDataParallel, and leave that part bare.");
  return true;
}

void tell_bare(Left& left, Ref model) {
  const std::string name = "`" + std::string(model.text()) + "`";
  if (!is_module(left.program, model))  // a loss by its name
    left.tell(Harm::stops, {model},
              name +
                  " is trained without a wrapper, where it has parameters: its code is not in "
                  "sight. Then every rank steps them with the gradients of its own data, and the "
                  "copies drift apart: wrap it in DistributedDataParallel, which refuses it where "
                  "it has none.");
  else
    left.tell(Harm::stops, {model},
              name +
                  " is trained without a wrapper: every rank steps it with the gradients of its "
                  "own data, and the copies drift apart. Wrap it in DistributedDataParallel, too.");
}

// delta = nn.Parameter(torch.zeros_like(x)) of an attack on each batch: it lives for that batch.
bool is_made_for_batch(const Program& program, Ref parameter) {
  const auto is_batches = [&](Ref loop) {
    const auto& loops = program.training_loops();
    return std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop& each) {
      return each.batches == loop && !contains(each.iterable.text(), "range(");
    });
  };
  for (const Source& source : program.sources(parameter)) {
    const auto around = program.loops_around(source.ref);
    if (std::any_of(around.begin(), around.end(), is_batches)) return true;
  }
  return false;
}

}  // namespace

void tell_bare_models(Left& left) {
  const auto& wraps = left.program.wraps();
  if (std::none_of(wraps.begin(), wraps.end(),
                   [](const Wrap& wrap) { return wrap.kind == Wrapper::ddp; }))
    return;
  for (const Ref given : given_to_optimizers(left.program)) {
    if (!left.runs_on_every_rank(given)) continue;
    const TrainedParts parts = trained_parts(left.program, given);
    for (const Ref& model : parts.modules)
      if (!tell_wrapped_parts(left, model) && is_bare(left.program, model)) tell_bare(left, model);
    for (const Ref& parameter : parts.parameters) {
      if ((parts.modules.empty() && !has_forward_beside(left.program, given)) ||
          is_made_for_batch(left.program, parameter))
        continue;
      const std::string name(parameter.text());
      left.tell(Harm::stops, {parameter},
                "`" + name +
                    "` is a parameter beside the wrapped model: every rank starts it by its own "
                    "random numbers and steps it with its own gradient. Send it from rank 0 where "
                    "it is made (dist.broadcast(" +
                    name + ".data, 0)), and behind each backward pass call dist.all_reduce(" +
                    name + ".grad) and divide by dist.get_world_size().");
    }
  }
}

}  // namespace bench::diagnose
