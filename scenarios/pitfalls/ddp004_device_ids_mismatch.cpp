#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Kind;
using diagnose::Value;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

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

// Every module it can be is built here, from a class of this program or of a library.
bool is_built_here(const Program& program, const Wrap& wrap) {
  const auto sources = program.module_sources(wrap.module);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef call = program.as_call(source.ref);
           if (!call || is_moved_within(call.ref().text())) return false;
           return program.class_of_call(call) ||
                  is_on_cpu(call.module->qualified(call.call->function));
         });
}

// Nothing in the program can have put the module on a GPU.
bool is_never_placed(const Program& program, const Wrap& wrap) {
  if (!is_built_here(program, wrap) || !facts::placements(program, wrap).empty()) return false;
  for (const diagnose::Source& source : program.sources(wrap.module))
    if (is_moved_within(source.ref.text())) return false;  // Net().cuda().half()
  if (program.mentions("set_default_device") || program.mentions("set_default_tensor_type") ||
      program.mentions("device_map"))
    return false;
  for (const ClassRef& cls : wrap.classes)
    if (is_moved_within(cls.module->text(cls.cls->node))) return false;
  return wrap.module.kind() == Kind::identifier || wrap.module.kind() == Kind::call;
}

// The function that wraps the module makes it too; a parameter may be moved by any caller.
bool is_made_beside(const Program& program, const Wrap& wrap) {
  for (const diagnose::Source& source : program.module_sources(wrap.module))
    if (program.enclosing_function(source.ref) != program.enclosing_function(wrap.call.ref()) &&
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
    if ((ids.kind() == Kind::list || ids.kind() == Kind::tuple) &&
        ids.module->tree().child_count(ids.node) > 1) {
      report
          .at(ids, Confidence::certain,
              "DistributedDataParallel takes one device for each process: \"device_ids can only be "
              "None or contain a single element\"")
          .help = "Start one process for each GPU and pass device_ids=[local_rank].";
      continue;
    }
    if (program.evaluate(ids).type == Value::Type::none || !is_never_placed(program, wrap))
      continue;
    if (ids.kind() != Kind::list) continue;
    Finding& finding =
        report.at(wrap.call.ref(), Confidence::likely,
                  "device_ids is given but the module is never moved to a GPU: ValueError, its "
                  "parameters are on the CPU");
    if (!is_made_beside(program, wrap)) tell_as_note(finding);
    finding.help =
        "Call model.to(local_rank) before wrapping, or leave device_ids out for CPU training.";
  }
}

}  // namespace bench::pitfalls
