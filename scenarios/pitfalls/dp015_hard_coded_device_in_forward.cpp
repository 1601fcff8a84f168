#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Wrapper;

namespace {

// The device argument of a placement inside forward, when it is a GPU with a fixed index.
Ref fixed_device(const Program& program, const CallRef& call) {
  Ref device;
  if (call.call->name == "cuda" && call.receiver()) device = call.argument(0, "device");
  if (call.call->name == "to" && call.receiver()) device = call.argument(0, "device");
  if (call.call->api == Api::tensor_factory) device = call.keyword("device");
  if (!device) return {};
  const auto index = facts::cuda_index(program, device);
  return index && *index >= 0 ? device : Ref{};
}

// __init__ puts layers on the same device: the module spans GPUs on purpose.
bool is_home_of_layers(const Program& program, const ClassRef& cls, Ref device) {
  const FunctionRef init = program.method(cls, "__init__");
  if (!init) return false;
  for (const CallRef& call : facts::calls_in({init.module, init.function->body})) {
    const bool places = call.call->name == "to" || call.call->name == "cuda";
    const Ref target = places ? call.argument(0, "device") : Ref{};
    if (target && target.text() == device.text()) return true;
  }
  return false;
}

}  // namespace

void check_hard_coded_device_in_forward(const Program& program, Report& report) {
  for (const Wrapper kind : {Wrapper::data_parallel, Wrapper::ddp}) {
    // The one GPU that a rank sees is GPU 0 to it.
    if (kind == Wrapper::ddp && sees_own_gpu(program)) continue;
    for (const ClassRef& cls : facts::wrapped_classes(program, kind))
      for (const FunctionRef& method : facts::forward_methods(program, cls))
        for (const CallRef& call : facts::calls_in({method.module, method.function->body})) {
          const Ref device = fixed_device(program, call);
          if (!device || is_home_of_layers(program, cls, device)) continue;
          report
              .at(call.ref(), Confidence::certain,
                  kind == Wrapper::data_parallel
                      ? "forward puts a tensor on one fixed GPU: the other replicas raise "
                        "\"Expected all tensors to be on the same device\""
                      : "forward puts a tensor on one fixed GPU: every other rank fails, or opens "
                        "a context there")
              .help = "Take the device of an input: device=x.device; or register a buffer.";
        }
  }
}

}  // namespace bench::pitfalls
