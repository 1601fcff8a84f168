#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/handed_out.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/device_as_word.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Op;
using diagnose::Source;
using diagnose::Value;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

Op op_of(Ref binary) { return (*binary.module)[binary.node].op; }

// Sequential(*[Linear(8, 8).to(rank) for _ in range(4)]): the layers are moved, not the model.
bool is_moved_within(std::string_view text) {
  return facts::contains(text, ".cuda(") || facts::contains(text, ".to(") ||
         facts::contains(text, "device=");
}

// What these libraries build is on the CPU.
bool is_on_cpu(std::string_view constructor) {
  for (const std::string_view library :
       {"torch.nn.", "torchvision.models.", "segmentation_models_pytorch.", "timm."})
    if (constructor.starts_with(library)) return true;
  return false;
}

// Net() of a file that is not there, and not Net(device), which may move itself.
bool is_named_class(const Program& program, const CallRef& call) {
  const auto given = facts::arguments_of(call);
  return !program.callee(call) && !call.call->name.empty() &&
         std::isupper(static_cast<unsigned char>(call.call->name.front())) != 0 &&
         std::none_of(given.begin(), given.end(), [&](Ref each) {
           return says_any(each.text(), {"device", "cuda", "gpu"}) || program.comes_from_rank(each);
         });
}

// base.to(rank), where the name holds what the call made.
bool is_moved_below(const Program& program, const CallRef& made) {
  for (const std::string_view method : {"to", "cuda"})
    for (const CallRef& move : program.calls_named(method)) {
      if (!move.receiver()) continue;
      const auto& sources = program.module_sources(move.receiver());
      if (std::any_of(sources.begin(), sources.end(),
                      [&](const Source& source) { return source.ref == made.ref(); }))
        return true;
    }
  return false;
}

// place(base, rank), with torch.device(rank): something out of sight, or around it, may move it.
bool may_be_moved(const Program& program, const CallRef& call) {
  const CallRef made = diagnose::made_at(program, call);
  if (program.enclosing_with(made.ref(), [](Ref item) {
        return facts::contains(item.text(), "device") || facts::contains(item.text(), "cuda");
      }))
    return true;
  const std::string_view name = program.assigned_name(made.ref());
  const auto calls = calls_given(program, [&](Ref value) {
    return !name.empty() && value.module == made.module && value.text() == name;
  });
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& given) {
    return given.call->name != "get_peft_model" && given.call->name != "Trainer" &&
           given.call->name != "prepare_model_for_kbit_training" &&
           program.enclosing_function(given.ref()) == program.enclosing_function(made.ref());
  });
}

// AutoModel.from_pretrained(name), also inside get_peft_model(model, config): on the CPU, unless it
// is quantized, or told where to go.
enum class Origin : std::uint8_t { unknown, on_cpu, quantized };
Origin pretrained_origin(const Program& program, Ref value, int depth = 0) {
  constexpr int kAdapters = 2;
  const CallRef call = program.made_by(value);
  if (!call || depth > kAdapters || program.callee(call)) return Origin::unknown;
  if (call.call->name == "get_peft_model") {
    bool is_plain = false;
    for (const Source& source : program.module_sources(call.argument(0, "model"))) {
      const Origin origin = pretrained_origin(program, source.ref, depth + 1);
      if (origin == Origin::unknown) return origin;
      is_plain = is_plain || origin == Origin::on_cpu;
    }
    return is_plain ? Origin::on_cpu : Origin::quantized;
  }
  if (call.call->name != "from_pretrained" || call.has_splat() ||
      !facts::contains(Ref{call.module, call.call->function}.text(), "Auto"))
    return Origin::unknown;
  const std::string_view text = call.ref().text();
  if (facts::contains(text, "quantization") || facts::contains(text, "load_in_"))
    return Origin::quantized;
  return is_moved_within(text) || is_moved_below(program, call) || may_be_moved(program, call)
             ? Origin::unknown
             : Origin::on_cpu;
}

// LossWrapper(model) after model = Net().to(rank): what it holds is on the GPU.
bool is_given_moved(const Program& program, const CallRef& made) {
  const auto given = facts::arguments_of(made);
  return std::any_of(given.begin(), given.end(), [&](Ref argument) {
    const auto& sources = program.sources(argument);
    return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      const CallRef call = program.as_call(source.ref);
      return is_moved_within(source.ref.text()) || (call && is_moved_below(program, call));
    });
  });
}

// Every module it can be is built here, from a class of this program or of a library. Where the
// branch that does not wrap moves the model, so is what a class of another file gives: it does not
// move itself.
bool is_built_here(const Program& program, const Wrap& wrap, bool moved_elsewhere) {
  const auto& sources = program.module_sources(wrap.module);
  // One of several branches that is left on the CPU is enough, beside those that quantize.
  const bool any_on_cpu = std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return pretrained_origin(program, source.ref) == Origin::on_cpu;
  });
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef call = program.as_call(source.ref);
    if (any_on_cpu && pretrained_origin(program, source.ref) != Origin::unknown) return true;
    if (!call || is_moved_within(call.ref().text()) || is_given_moved(program, call)) return false;
    return program.class_of_call(call) || is_on_cpu(call.call->path) ||
           (moved_elsewhere && is_named_class(program, call));
  });
}

// self.cuda() or Linear(8, 8).to(rank) in its code. x.to(torch.long) changes the type, and what
// forward() does with a batch moves no parameter.
bool moves_itself(const Program& program, ClassRef cls) {
  auto calls = facts::calls_in({cls.module, cls.cls->node});
  // self.layer = place(Linear(8, 8)) of the program
  if (const auto init = program.method(cls, "__init__"))
    for (const auto& helper : program.reached({init.module, init.function->body}))
      if (helper.function->owner_class == diagnose::kNoNode)
        for (const CallRef& call : facts::calls_in({helper.module, helper.function->body}))
          calls.push_back(call);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const auto method = program.enclosing_function(call.ref());
    const Ref device = call.argument(0, "device");
    const bool is_type = device && device.kind() == Kind::attribute && !call.keyword("device") &&
                         device.module->qualified(device.node).starts_with("torch.");
    const bool on_batch =
        method && method.function->name == "forward" && !call.receiver().text().starts_with("self");
    const bool moves =
        call.call->name == "cuda" || call.call->name == "to" || call.keyword("device");
    return moves && !is_type && !on_batch;
  });
}

// both.cuda() and both.to(rank) above the wrap, of what the call made; both.to("cpu") is no GPU,
// and both.to(torch.half) no place.
bool is_moved_above(const Program& program, const CallRef& made, const Wrap& wrap) {
  for (const std::string_view method : {"to", "cuda"})
    for (const CallRef& move : program.calls_named(method)) {
      if (!move.receiver() || move.module != wrap.call.module ||
          move.call->node >= wrap.call.call->node)
        continue;
      const std::string device = text_behind(program, move.argument(0, "device"));
      if (method == "to" &&
          (device.empty() || holds_any(device, {"cpu", "half", "float", "double", "dtype"})))
        continue;
      const auto& sources = program.module_sources(move.receiver());
      if (std::any_of(sources.begin(), sources.end(),
                      [&](const Source& source) { return source.ref == made.ref(); }))
        return true;
    }
  return false;
}

// self.encoder = encoder in the constructor, for the argument of that name or place.
bool keeps_what_it_is_given(const Program& program, const CallRef& made, Ref value) {
  const ClassRef cls = program.class_of_call(made);
  const auto init = cls ? program.method(cls, "__init__") : diagnose::FunctionRef{};
  if (!init) return false;
  const auto& tree = init.module->tree();
  const auto& defs = init.module->defs();
  return std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& def) {
    const Ref kept{init.module, def.value};
    return def.is_attribute && tree.contains(init.function->body, def.target) &&
           kept.kind() == Kind::identifier && tree.text(def.target).starts_with("self.") &&
           facts::argument_for(made, init, kept.text()) == value;
  });
}

// both = Both(encoder, decoder) and both.to(rank): what an object is made of moves with it.
bool is_part_of_moved(const Program& program, const Wrap& wrap) {
  const diagnose::Module& module = *wrap.module.module;
  const auto function = program.enclosing_function(wrap.module);
  return std::any_of(module.calls().begin(), module.calls().end(), [&](const diagnose::Call& each) {
    const CallRef made{&module, &each};
    if (each.node >= wrap.call.call->node || each.api == Api::ddp ||
        each.api == Api::data_parallel || program.enclosing_function(made.ref()) != function ||
        !program.class_of_call(made))
      return false;
    const auto given = facts::arguments_of(made);
    return std::any_of(given.begin(), given.end(),
                       [&](Ref value) {
                         return value.text() == wrap.module.text() &&
                                keeps_what_it_is_given(program, made, value);
                       }) &&
           is_moved_above(program, made, wrap);
  });
}

bool is_below(const Program& program, const Wrap& wrap, const CallRef& placement) {
  return !never_both(program, placement.ref(), wrap.call.ref()) &&
         only_runs_before(program, wrap.call.ref(), placement.ref());
}

// Nothing in the program can have put the module on a GPU before it is wrapped.
bool is_never_placed(const Program& program, const Wrap& wrap) {
  const auto placements = facts::placements(program, wrap);
  if (!std::all_of(placements.begin(), placements.end(), [&](const CallRef& call) {
        return never_both(program, call.ref(), wrap.call.ref()) || is_below(program, wrap, call);
      }))
    return false;
  if (!is_built_here(program, wrap, !placements.empty()) || is_part_of_moved(program, wrap))
    return false;
  for (const Source& source : program.sources(wrap.module))
    if (is_moved_within(source.ref.text())) return false;  // Net().cuda().half()
  if (program.mentions("set_default_device") || program.mentions("set_default_tensor_type") ||
      program.mentions("device_map"))
    return false;
  for (const ClassRef& cls : wrap.classes)
    if (moves_itself(program, cls)) return false;
  return wrap.module.kind() == Kind::identifier || wrap.module.kind() == Kind::call;
}

// 1, rank and rank + 1 with rank = 0 above; nothing where a call or an option decides.
std::optional<std::int64_t> whole_number(const Program& program, Ref value) {
  const bool adds = value.kind() == Kind::binary && op_of(value) == Op::add;
  std::int64_t sum = 0;
  for (const Ref part : adds ? std::vector{value.child(Field::left), value.child(Field::right)}
                             : std::vector{value}) {
    const Value number = program.evaluate(part);
    if (!number.is_integer() || number.is_default) return std::nullopt;
    sum += number.integer;
  }
  return sum;
}

// 0, and rank * n with rank = 0 above.
bool is_zero(const Program& program, Ref value) {
  const bool times = value.kind() == Kind::binary && op_of(value) == Op::multiply;
  return whole_number(program, times ? value.child(Field::left) : value) == 0;
}

// n for names of n, 1 * n and n // 1.
Ref without_identities(const Program& program, Ref value) {
  constexpr int kSteps = 6;
  for (int step = 0; step < kSteps; ++step) {
    if (value.kind() == Kind::identifier) {
      const auto& sources = program.sources(value);
      if (sources.size() != 1 || sources.front().how != Source::How::value) break;
      value = sources.front().ref;
      continue;
    }
    if (value.kind() != Kind::binary) break;
    const Ref left = value.child(Field::left);
    const Ref right = value.child(Field::right);
    if (op_of(value) == Op::multiply && whole_number(program, left) == 1)
      value = right;
    else if (op_of(value) == Op::floor_divide && whole_number(program, right) == 1)
      value = left;
    else
      break;
  }
  return value;
}

// list(range(torch.cuda.device_count())) and [i for i in range(torch.cuda.device_count())].
bool holds_every_gpu(const Program& program, Ref ids) {
  ids = without_identities(program, ids);
  CallRef range = program.as_call(ids);
  if (range && range.call->name == "list") range = program.made_by(range.positional(0));
  if (ids.kind() == Kind::comprehension) {
    const Ref item = ids.child(Field::body);
    for (const CallRef& call : facts::calls_in(ids))
      if (item.kind() == Kind::identifier && call.call->name == "range") range = call;
  }
  if (!range || range.call->name != "range" || range.positional(2)) return false;
  if (range.positional(1) && !is_zero(program, range.positional(0))) return false;
  const Ref stop = range.positional(1) ? range.positional(1) : range.positional(0);
  const CallRef count = program.as_call(without_identities(program, stop));
  return count && count.call->name == "device_count";
}

// The function that wraps the module makes it too; a parameter may be moved by any caller.
bool is_made_beside(const Program& program, const Wrap& wrap) {
  const auto here = program.enclosing_function(diagnose::made_at(program, wrap.call).ref());
  const auto place_of = [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return program.enclosing_function(made ? diagnose::made_at(program, made).ref() : source.ref);
  };
  for (const Source& source : program.module_sources(wrap.module))
    if (place_of(source) != here &&
        program.enclosing_function(source.ref) != program.enclosing_function(wrap.call.ref()) &&
        !program.is_spawned(program.enclosing_function(source.ref)))
      return false;
  return true;
}

}  // namespace

void check_device_ids_mismatch(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    const Ref ids = wrap.call.argument(1, "device_ids");
    if (!ids || wrap.call.call->api != Api::ddp) continue;
    const Ref list = program.written(ids);
    if ((list.kind() == Kind::list || list.kind() == Kind::tuple) &&
        list.module->tree().child_count(list.node) > 1) {
      report
          .at(ids, Confidence::certain,
              "DistributedDataParallel takes one device for each process: \"device_ids can only be "
              "None or contain a single element\"")
          .help = "Start one process for each GPU and pass device_ids=[local_rank].";
      continue;
    }
    if (holds_every_gpu(program, ids) && facts::visible_gpus(program) != 1 &&
        !facts::is_switched_off(program, wrap.call.ref())) {
      report
          .at(ids, Confidence::likely,
              "device_ids holds every GPU that is visible, and DistributedDataParallel takes one "
              "device for each process: ValueError where there are several")
          .help = "Start one process for each GPU and pass device_ids=[local_rank].";
      continue;
    }
    if (const Ref test = idle_test_for_cpu(program, wrap, ids)) {
      report
          .at(test, Confidence::likely,
              "a torch.device never equals a string: device_ids is given on the CPU too, where "
              "DistributedDataParallel takes none: ValueError")
          .help = "Compare its type: device.type != \"cpu\".";
      continue;
    }
    if (program.evaluate(ids).type == Value::Type::none || !is_never_placed(program, wrap))
      continue;
    if (list.kind() != Kind::list) continue;
    const auto placements = facts::placements(program, wrap);
    const bool is_late =
        std::any_of(placements.begin(), placements.end(),
                    [&](const CallRef& each) { return is_below(program, wrap, each); });
    Finding& finding =
        report.at(wrap.call.ref(), Confidence::likely,
                  std::string("device_ids is given but the module is ") +
                      (is_late ? "not moved to a GPU before" : "never moved to a GPU") +
                      ": ValueError, its parameters are on the CPU");
    if (!is_made_beside(program, wrap)) tell_as_note(finding);
    finding.help =
        "Call model.to(local_rank) before wrapping, or leave device_ids out for CPU training.";
  }
}

}  // namespace bench::pitfalls
