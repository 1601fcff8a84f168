#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/unmoved_module.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// No device_ids, or list(range(n)): the first is cuda:0.
bool uses_all_devices(const Program& program, const CallRef& wrap) {
  const Ref ids = wrap.argument(1, "device_ids");
  if (!ids) return !wrap.has_splat();
  CallRef call = program.made_by(ids);
  if (call && call.call->name == "list") call = program.made_by(call.positional(0));
  return call && call.call->name == "range" && !call.positional(1);
}

// The start of list(range(1, n)): the first of the devices, and some more.
std::vector<std::int64_t> ids_of_range(const Program& program, const CallRef& wrap) {
  const Ref ids = wrap.argument(1, "device_ids");
  CallRef call = ids ? program.made_by(ids) : CallRef{};
  if (call && call.call->name == "list") call = program.made_by(call.positional(0));
  if (!call || call.call->name != "range" || !call.positional(1)) return {};
  const Ref start = program.written(call.positional(0));
  if (start.kind() != diagnose::Kind::integer) return {};
  const auto first = program.integer(start);
  return first && *first > 0 ? std::vector<std::int64_t>{*first, *first + 1}
                             : std::vector<std::int64_t>{};
}

// Placements that a run with the wrapper comes by.
std::vector<CallRef> placements_with(const Program& program, const Wrap& wrap) {
  std::vector<CallRef> out;
  for (const CallRef& call : facts::placements(program, wrap))
    if (!never_both(program, call.ref(), wrap.call.ref())) out.push_back(call);
  return out;
}

// Both(net, criterion) after net = net.cuda(0), of a class without layers of its own: its
// parameters are those of what it was given, which was moved.
bool holds_what_was_moved(const Program& program, const Wrap& wrap) {
  const CallRef made = program.made_by(wrap.module);
  if (!made || wrap.classes.empty()) return false;
  for (const diagnose::ClassRef& cls : wrap.classes) {
    const auto init = program.method(cls, "__init__");
    if (!init || program.base_of(cls)) return false;
    for (const CallRef& call : facts::calls_in({init.module, init.function->body}))
      if (program.class_of_call(call) || call.call->path.starts_with("torch.nn.") ||
          facts::contains(call.ref().with(call.call->function).text(), "nn."))
        return false;
  }
  auto given = facts::arguments_of(made);
  std::erase_if(given, [](Ref each) { return !diagnose::stands_for_object(each); });
  return !given.empty() && std::all_of(given.begin(), given.end(), [&](Ref each) {
    for (const char* name : {"cuda", "to"})
      for (const CallRef& move : program.calls_named(name))
        if (move.module == each.module && move.receiver() &&
            (move.receiver().text() == each.text() ||
             each.module->tree().contains(each.node, move.call->node)))
          return true;
    return false;
  });
}

// "cuda:1", or a name for torch.device("cuda:1") and nothing else.
bool is_written(const Program& program, Ref device) {
  if (device.kind() == diagnose::Kind::string || device.kind() == diagnose::Kind::integer)
    return true;
  const auto& sources = program.sources(device);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value) return false;
  const Ref made = sources.front().ref;
  const CallRef call = program.as_call(made);
  return made.kind() == diagnose::Kind::string ||
         (call && call.call->api == Api::torch_device &&
          call.positional(0).kind() == diagnose::Kind::string);
}

// .to("cuda:1"), the only placement: a second GPU is expected, and the model is on it.
bool names_later_gpu(const Program& program, const std::vector<CallRef>& placements) {
  if (placements.size() != 1) return false;
  const Ref device = placements.front().argument(0, "device");
  return is_written(program, device) && facts::cuda_index(program, device).value_or(0) > 0;
}

// What has to hold for the guard to let a run by: also cuda.is_available() for
// `if not cuda.is_available(): exit()` above. Empty where something has to be false.
std::string_view asked_by(const diagnose::Guard& guard) {
  const bool is_negated = guard.condition.kind() == diagnose::Kind::not_expression;
  if (is_negated == guard.holds) return {};
  return is_negated ? guard.condition.child(diagnose::Field::argument).text()
                    : guard.condition.text();
}

bool asks_for_ranks(std::string_view text) {
  return says_any(
      text, {"not ", "dist", "rank", "world", "size", "ddp", "hvd", "horovod", "single", "mode"});
}

// A rank with GPUs comes by: no condition but that there are some, or several of them.
bool runs_with_gpus(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::all_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
    const std::string_view text = asked_by(guard);
    return says_any(text, {"cuda", "gpu", "device_count"}) && !asks_for_ranks(text);
  });
}

// Horovod starts its ranks whatever the options say: one of them alone decides of the wrapper.
bool is_wrapped_by_option(const Program& program, Ref wrapper) {
  const auto guards = program.guards(wrapper);
  return program.uses(Api::hvd_init) &&
         std::all_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
           const std::string_view text = asked_by(guard);
           return !text.empty() && !asks_for_ranks(text);
         });
}

// torch.cuda.set_device(local_rank), so that .cuda() goes to another GPU on every rank.
bool binds_each_rank(const Program& program, const Wrap& wrap,
                     const std::vector<CallRef>& placements) {
  const auto binds = program.calls(Api::set_device);
  const bool bound = std::any_of(binds.begin(), binds.end(), [&](const CallRef& bind) {
    const Ref device = bind.positional(0);
    return device && (program.is_local_rank(device) || program.is_rank(device)) &&
           facts::cuda_index(program, device).value_or(-1) < 0 &&  // Trainer(config, gpu=0)
           runs_with_gpus(program, bind.ref()) &&
           !facts::are_of_different_modes(bind.ref(), wrap.call.ref()) &&
           program.runs_before(bind.ref(), wrap.call.ref());
  });
  return bound && !placements.empty() &&
         (runs_with_gpus(program, wrap.call.ref()) ||
          is_wrapped_by_option(program, wrap.call.ref())) &&
         std::all_of(placements.begin(), placements.end(), [&](const CallRef& call) {
           const Ref device = call.argument(0, "device");
           return device ? facts::cuda_index(program, device) == -1 : call.call->name == "cuda";
         });
}

// A flag, or a question to the model, may keep the second wrapper away where there is a first one;
// and model = model.module may have taken the first one off.
bool comes_after_first(const Program& program, const CallRef& first, const CallRef& second,
                       Ref wrapped) {
  if (!runs_wherever(program, second.ref(), first.ref())) return false;
  const std::string_view name = wrapped.text();
  const auto& module = *wrapped.module;
  const bool is_field = wrapped.kind() == diagnose::Kind::attribute;
  const auto& defs =
      module.defs_of(is_field ? wrapped.child(diagnose::Field::attribute).text() : name, is_field);
  // net = model.to(device), after model = DataParallel(model)
  const auto hands_first_on = [&](Ref value) {
    if (!value || facts::contains(value.text(), ".module")) return false;
    const auto& sources = program.module_sources(value);
    return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
      const CallRef made = program.as_call(source.ref);
      return made && diagnose::made_at(program, made).ref() == first.ref();
    });
  };
  return std::none_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const auto& def = module.defs()[index];
    return module.text(def.target) == name && def.target > first.call->node &&
           def.target < second.call->node && def.value != first.call->node &&
           def.value != second.call->node && !hands_first_on({&module, def.value});
  });
}

// model = DataParallel(model), twice on the way of one run.
bool is_wrapped_already(const Program& program, const Wrap& wrap) {
  const CallRef second = diagnose::made_at(program, wrap.call);
  const auto around = program.enclosing_function(second.ref());
  for (const diagnose::Source& source : program.module_sources(wrap.module)) {
    const Wrap* inner = program.wrap_made_by(source.ref);
    if (inner == nullptr || inner == &wrap || inner->kind != Wrapper::data_parallel ||
        source.how != diagnose::Source::How::value || inner->call.call == wrap.call.call)
      continue;
    const CallRef first = diagnose::made_at(program, inner->call);
    const Ref wrapped = diagnose::seen_in(program, wrap.module, around);
    if (wrapped && !facts::exclusive(first.ref(), second.ref()) &&
        program.enclosing_function(first.ref()) == around && first.call->node < second.call->node &&
        comes_after_first(program, first, second, wrapped))
      return true;
  }
  return false;
}

// The module is not where it can be used, whatever the ids are.
bool tell_of_place(const Program& program, const Wrap& wrap, Report& report) {
  if (is_wrapped_already(program, wrap)) {
    report
        .at(wrap.call.ref(), Confidence::likely,
            "the model is in a DataParallel already: each replica scatters its share over all "
            "GPUs once more, where its weights are not")
        .help = "Wrap it once.";
    return true;
  }
  if (is_never_moved(program, wrap)) {
    report
        .at(wrap.call.ref(), Confidence::likely,
            "the module is never moved to a GPU, as its inputs are: DataParallel moves inputs "
            "alone, and the first forward raises RuntimeError")
        .help = "Call .cuda() on the module, or .to() the first of device_ids, before.";
    return true;
  }
  if (is_moved_after_training(program, wrap, placements_with(program, wrap))) {
    report
        .at(wrap.call.ref(), Confidence::likely,
            "the module is moved to its GPU below the call that trains it: the first forward "
            "raises RuntimeError")
        .help = "Move it before.";
    return true;
  }
  return false;
}

}  // namespace

void check_module_not_on_first_device(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::data_parallel) continue;
    if (tell_of_place(program, wrap, report)) continue;
    std::vector<std::int64_t> ids = facts::device_ids(program, wrap.call);
    if (ids.empty()) ids = ids_of_range(program, wrap.call);
    const std::vector<CallRef> placements = placements_with(program, wrap);
    if (uses_all_devices(program, wrap.call)) {
      if (binds_each_rank(program, wrap, placements)) {
        report
            .at(wrap.call.ref(), Confidence::likely,
                "each rank's module is on its own GPU, and DataParallel over all GPUs begins with "
                "cuda:0: on every rank but the first the first forward raises RuntimeError")
            .help = "Leave DataParallel out: each rank has a GPU of its own.";
        continue;
      }
      if (!names_later_gpu(program, placements)) continue;
      ids = {0, 1};
    }
    if (ids.size() < 2) continue;
    std::optional<int> last;
    bool known = true;
    for (const CallRef& call : placements) {
      const Ref device = call.argument(0, "device");
      last = !device && call.call->name == "cuda" ? 0 : facts::cuda_index(program, device);
      if (!last) known = false;
      if (last && *last < 0) last = 0;
    }
    if (!known) continue;
    if (placements.empty()) {
      // Something else may place it: a default device, or a model that builds itself on the GPU.
      if (wrap.classes.empty() || program.mentions("set_default_device") ||
          program.mentions("set_default_tensor_type") || program.uses(Api::set_device) ||
          holds_what_was_moved(program, wrap))
        continue;
      report
          .at(wrap.call.ref(), Confidence::likely,
              "the module is never moved to cuda:" + std::to_string(ids.front()) +
                  ", the first of device_ids: its first forward raises RuntimeError")
          .help =
          "Call model.to(\"cuda:" + std::to_string(ids.front()) + "\") before the first forward.";
      continue;
    }
    // set_device changes where .cuda() goes.
    if (*last == ids.front() || program.uses(Api::set_device)) continue;
    report
        .at(wrap.call.ref(), Confidence::certain,
            "the module is on cuda:" + std::to_string(*last) + " but device_ids starts with " +
                std::to_string(ids.front()) + ": the first forward raises RuntimeError")
        .help = "Move the module to cuda:" + std::to_string(ids.front()) +
                ", the first of device_ids, before the first forward.";
  }
}

}  // namespace bench::pitfalls
