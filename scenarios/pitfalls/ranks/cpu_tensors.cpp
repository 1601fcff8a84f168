#include "scenarios/pitfalls/ranks/cpu_tensors.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

constexpr int kParts = 4;

bool is_number(const Program& program, Ref value, int depth = 0);

// total = 0.0 and total += loss.item(): everything the function puts into it is a number of Python.
bool holds_number(const Program& program, Ref name, int depth) {
  const diagnose::Module& module = *name.module;
  const auto here = program.enclosing_function(name);
  bool any = false;
  for (const std::uint32_t index : module.defs_of(name.text(), false)) {
    const diagnose::Def& def = module.defs()[index];
    if (program.enclosing_function(name.with(def.target)) != here) continue;
    if ((def.kind != DefKind::assign && def.kind != DefKind::augmented) || def.element >= 0 ||
        def.value == kNoNode || !is_number(program, name.with(def.value), depth + 1))
      return false;
    any = true;
  }
  return any;
}

// losses.append(x) in the function, or in one that is handed the list, or that hands it on.
bool puts_into(const Program& program, const CallRef& append, Ref here, std::string_view list) {
  const Ref object = append.receiver();
  if (append.module != here.module || !object) return false;
  if (here.kind() == Kind::attribute)
    return object.text() == list && shares_variable(program, here, append.ref());
  const auto function = program.enclosing_function(here);
  if (program.enclosing_function(append.ref()) == function) return object.text() == list;
  return object.kind() == Kind::identifier && here.kind() == Kind::identifier &&
         here.text() == list &&
         program.same_variable(diagnose::seen_above(program, object),
                               diagnose::seen_above(program, here));
}

// What is put into the list of that name in the function: losses.append(loss.item()).
enum class Contents : std::uint8_t { nothing, numbers, others };
Contents appended_to(const Program& program, Ref here, std::string_view list, int depth) {
  Contents found = Contents::nothing;
  for (const std::string_view name : {"append", "extend", "insert"})
    for (const CallRef& call : program.calls_named(name)) {
      if (!puts_into(program, call, here, list)) continue;
      if (name != "append" || !is_number(program, call.positional(0), depth + 1))
        return Contents::others;
      found = Contents::numbers;
    }
  return found;
}

// [] and [loss.item()]
bool is_list_of_numbers(const Program& program, Ref value, int depth) {
  if (value.kind() != Kind::list) return false;
  const auto& tree = value.module->tree();
  for (NodeId at = tree[value.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (!is_number(program, value.with(at), depth + 1)) return false;
  return true;
}

// The loop that goes over what stands there.
Ref round_over(Ref iterable) {
  return iterable.with(iterable.module->tree().ancestor(iterable.node, Kind::for_statement));
}

// history = {} above, in the same round of the same loop: what is put into it below is gone then.
bool is_made_each_round(const Program& program, Ref table) {
  const diagnose::Def* made = last_value_above(table);
  return made != nullptr && made->kind == DefKind::assign &&
         table.module->text(made->value) == "{}" &&
         program.innermost_loop(table.with(made->target)) ==
             program.innermost_loop(round_over(table));
}

// for key, losses in history.items(), where history[key] = [] and history[key].append(loss.item())
// are all that the function puts into it.
bool holds_lists_of_numbers(const Program& program, Ref table, int depth) {
  const bool fresh = is_made_each_round(program, table);
  bool any = false;
  for (const std::uint32_t index : table.module->item_defs_of(table.text())) {
    const diagnose::Def& def = table.module->defs()[index];
    const Ref target = table.with(def.target);
    if (program.enclosing_function(target) != program.enclosing_function(table)) continue;
    // The mean that takes the place of the list which the round has read.
    if (def.target > table.node && (program.innermost_loop(target) == round_over(table) || fresh))
      continue;
    const Contents more = appended_to(program, table, target.text(), depth);
    if (more == Contents::others || def.kind != DefKind::assign ||
        !is_list_of_numbers(program, table.with(def.value), depth))
      return false;
    any = true;
  }
  return any;
}

// history, where the name is an item of it: for losses in history.values().
Ref table_around(const Program& program, Ref list) {
  const diagnose::Def* last = last_value_above(list);
  if (last == nullptr || last->kind != DefKind::loop) return {};
  const CallRef items = program.as_call(list.with(last->value));
  const bool is_list = items && ((items.call->name == "items" && last->element == 1) ||
                                 (items.call->name == "values" && last->element < 0));
  return is_list ? items.receiver() : Ref{};
}

// losses = [], and no other value in the function that makes the list.
bool is_only_empty(const Program& program, Ref list) {
  const Ref made = diagnose::seen_above(program, list);
  const auto here = program.enclosing_function(made);
  for (const std::uint32_t index : made.module->defs_of(made.text(), false)) {
    const diagnose::Def& def = made.module->defs()[index];
    if (program.enclosing_function(made.with(def.target)) == here &&
        (def.kind != DefKind::assign || made.module->text(def.value) != "[]"))
      return false;
  }
  return true;
}

// The same, or self.losses = [] wherever the class gives it a value.
bool starts_empty(const Program& program, Ref list) {
  if (list.kind() == Kind::identifier) return is_only_empty(program, list);
  const auto values = values_of(program, list);
  return std::all_of(values.begin(), values.end(), [&](const diagnose::Def* def) {
    return !shares_variable(program, list, list.with(def->target)) ||
           (def->kind == DefKind::assign && list.module->text(def->value) == "[]");
  });
}

// losses = [] and losses.append(loss.item()), and nothing else goes into it in the function.
bool holds_numbers(const Program& program, Ref list, int depth) {
  if (!is_variable(list)) return false;
  if (const Ref table = table_around(program, list))
    return holds_lists_of_numbers(program, table, depth);
  if (!starts_empty(program, list)) return false;
  return appended_to(program, list, list.text(), depth) == Contents::numbers;
}

// np.mean(losses), statistics.mean(losses)
bool makes_number_of_list(const CallRef& call) {
  const std::string_view path = call ? call.call->path : std::string_view();
  for (const char* name : {"numpy.mean", "numpy.sum", "numpy.average", "statistics.mean",
                           "statistics.fmean", "math.fsum"})
    if (path == name) return true;
  return false;
}

// value of `for name, value in metrics.items()`, which callers hand on: torch.tensor() is for
// numbers, and PyTorch warns where it is given a tensor.
bool is_item_of_metrics(const Program& program, Ref name) {
  const auto& sources = program.sources(name);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef items = program.as_call(source.ref);
    return items && source.how != Source::How::value &&
           (items.call->name == "items" || items.call->name == "values");
  });
}

// accuracy_of(scores, labels) of the program, which gives back a number wherever it returns.
bool gives_number(const Program& program, const CallRef& call, int depth) {
  const diagnose::FunctionRef callee = call ? program.callee(call) : diagnose::FunctionRef{};
  if (!callee) return false;
  const auto& returns = callee.function->returns;
  return !returns.empty() && std::all_of(returns.begin(), returns.end(), [&](NodeId value) {
    return is_number(program, {callee.module, value}, depth + 1);
  });
}

bool is_number(const Program& program, Ref value, int depth) {
  if (!value || depth > kParts) return false;
  switch (value.kind()) {
    case Kind::integer:
    case Kind::floating:
      return true;
    case Kind::identifier:
      return program.is_world_size(value) || holds_number(program, value, depth) ||
             is_item_of_metrics(program, value);
    case Kind::binary:
      return is_number(program, value.child(Field::left), depth + 1) &&
             is_number(program, value.child(Field::right), depth + 1);
    case Kind::subscript:
      return value.child(Field::value).text().ends_with(".shape");
    case Kind::call: {
      const CallRef call = program.made_by(value);
      const std::string_view name = call ? call.call->name : std::string_view();
      if (((name == "sum" || name == "max" || name == "min") && !call.receiver()) ||
          makes_number_of_list(call))
        return holds_numbers(program, call.positional(0), depth);
      return name == "item" || name == "len" || name == "float" || name == "int" ||
             (name == "size" && call.positional(0)) || program.is_world_size(value) ||
             gives_number(program, call, depth);
    }
    default:
      return false;
  }
}

// torch.tensor(total), torch.zeros(2): without a device it lies on the CPU. torch.tensor of a
// tensor lies where that does.
bool makes_cpu_tensor(const Program& program, Ref value) {
  const CallRef made = program.made_by(value);
  if (!made || made.has_splat() || made.keyword("device")) return false;
  const std::string_view name = made.call->path;
  if (name == "torch.zeros" || name == "torch.ones" || name == "torch.empty" ||
      name == "torch.full" || name == "torch.from_numpy")
    return static_cast<bool>(made.positional(0));
  if (name != "torch.tensor" && name != "torch.Tensor" && name != "torch.FloatTensor" &&
      name != "torch.as_tensor" && name != "torch.LongTensor" && name != "torch.IntTensor" &&
      name != "torch.DoubleTensor")
    return false;
  const Ref data = made.positional(0);
  return data.kind() == Kind::list || is_number(program, data);
}

// The method gives a tensor that lies where its object does.
bool stays_in_place(std::string_view method) {
  static constexpr std::string_view kMethods[] = {
      "mean",    "sum",     "std",   "max",  "min",    "unsqueeze", "squeeze", "view",
      "reshape", "flatten", "float", "long", "double", "detach",    "clone",   "contiguous"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

bool lies_on_cpu(const Program& program, Ref value, int depth);

// parts = [] and parts.append(x.cpu()), and nothing else goes into it in the function.
bool holds_cpu_tensors(const Program& program, Ref list, int depth) {
  if (list.kind() == Kind::comprehension)
    return lies_on_cpu(program, list.child(Field::body), depth + 1);
  if (!is_variable(list) || !starts_empty(program, list)) return false;
  bool any = false;
  for (const std::string_view name : {"append", "extend", "insert"})
    for (const CallRef& call : program.calls_named(name)) {
      if (!puts_into(program, call, list, list.text())) continue;
      if (name != "append" || !lies_on_cpu(program, call.positional(0), depth + 1)) return false;
      any = true;
    }
  return any;
}

// x.cpu(), torch.cat(parts) of such, and what their methods give: x.cpu().mean().unsqueeze(0).
bool lies_on_cpu(const Program& program, Ref value, int depth) {
  constexpr int kSteps = 8;
  if (!value || depth > kSteps) return false;
  if (value.kind() == Kind::identifier) {
    const auto& sources = program.sources(value);
    return !sources.empty() &&
           std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
             return source.how == Source::How::value && source.ref != value &&
                    program.enclosing_function(source.ref) == program.enclosing_function(value) &&
                    lies_on_cpu(program, source.ref, depth + 1);
           });
  }
  if (makes_cpu_tensor(program, value)) return true;
  const CallRef call = program.made_by(value);
  if (!call || program.callee(call)) return false;
  const std::string_view name = call.call->path;
  if (name == "torch.cat" || name == "torch.stack")
    return holds_cpu_tensors(program, call.positional(0), depth);
  if (!name.empty() || !call.receiver()) return false;
  return call.call->name == "cpu" ||
         (stays_in_place(call.call->name) && lies_on_cpu(program, call.receiver(), depth + 1));
}

// "nccl" if torch.cuda.is_available() else "gloo": NCCL wherever there are GPUs.
bool takes_nccl_on_gpus(const Program& program, const CallRef& init) {
  const Ref backend = program.written(init.argument(0, "backend"));
  return backend.kind() == Kind::conditional && facts::contains(backend.text(), "nccl") &&
         facts::contains(backend.text(), "cuda.is_available()");
}

// The only word for another backend stands there.
bool names_gloo_for_cpus(const Program& program) {
  const auto inits = program.calls(Api::init_process_group);
  return inits.size() == 1 && takes_nccl_on_gpus(program, inits.front());
}

// Every group is joined with "nccl", written in the script.
bool joins_nccl_only(const Program& program) {
  const auto inits = program.calls(Api::init_process_group);
  return !inits.empty() && std::all_of(inits.begin(), inits.end(), [&](const CallRef& init) {
    const diagnose::Value backend = program.evaluate(init.argument(0, "backend"));
    if (takes_nccl_on_gpus(program, init)) return true;
    return backend.is_string() && !backend.is_default && backend.string == "nccl";
  });
}

// Accelerate takes the GPUs that are there; the script speaks of them.
bool accelerates_on_gpus(const Program& program) {
  const auto made = program.calls(Api::accelerator);
  const bool half = std::any_of(made.begin(), made.end(), [&](const CallRef& each) {
    return program.string(each.keyword("mixed_precision")).value_or("") == "fp16";
  });
  return !made.empty() && !program.calls_named("prepare").empty() &&
         (half || program.mentions("cuda")) &&
         std::none_of(made.begin(), made.end(),
                      [](const CallRef& each) { return each.keyword("cpu"); });
}

}  // namespace

std::vector<CallRef> nccl_collectives(const Program& program) {
  std::vector<CallRef> out;
  for (const std::string_view word : {"set_default_device", "set_default_tensor_type", "use_cpu",
                                      "FSDP", "deepspeed", "xla", "new_group"})
    if (program.mentions(word)) return out;
  if (program.mentions("gloo") && !names_gloo_for_cpus(program)) return out;
  if (joins_nccl_only(program))
    for (const Api api : {Api::all_reduce, Api::all_gather, Api::reduce, Api::broadcast})
      for (const CallRef& call : program.calls(api))
        if (call.call->name == "all_reduce" || call.call->name == "all_gather" ||
            call.call->name == "reduce" || call.call->name == "broadcast")
          out.push_back(call);
  if (accelerates_on_gpus(program))
    for (const std::string_view method : {"gather", "gather_for_metrics"})
      for (const CallRef& call : program.calls_named(method))
        if (is_of_accelerator(program, call)) out.push_back(call);
  return out;
}

Ref sent_from_cpu(const Program& program, const CallRef& collective) {
  const bool lists_first = collective.call->api == Api::all_gather;
  const Ref sent = collective.argument(lists_first ? 1 : 0, "tensor");
  if (!sent || collective.keyword("group") ||
      program.enclosing_with(collective.ref(),
                             [](Ref item) { return facts::contains(item.text(), "device"); }))
    return {};
  const auto& sources = program.sources(sent);
  const bool on_cpu =
      !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
        return source.how == Source::How::value &&
               program.enclosing_function(source.ref) ==
                   program.enclosing_function(collective.ref()) &&
               lies_on_cpu(program, source.ref, 0);
      });
  return on_cpu ? sent : Ref{};
}

}  // namespace bench::pitfalls
