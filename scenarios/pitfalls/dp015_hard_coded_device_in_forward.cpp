#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Wrapper;

namespace {

constexpr int kHandsOn = 3;

bool is_given_by_all(const Program& program, Ref device, Wrapper kind, int depth = 0);

// encode(x, device=args.device): another one than the default, which may be the caller's own.
bool gives_another(const Program& program, const CallRef& site, const FunctionRef& method,
                   std::string_view name, Wrapper kind, int depth) {
  Ref given = site.keyword(name);
  if (!given && !site.has_splat()) given = facts::argument_for(site, method, name);
  if (!given) return false;
  if (is_given_by_all(program, given, kind, depth + 1)) return true;
  // Each rank may have a device of its own; where one process has several replicas, some branch
  // names a device without an index.
  bool is_without_index = kind == Wrapper::ddp;
  for (const auto& source : program.sources(given)) {
    const Ref value = source.how == diagnose::Source::How::argument
                          ? program.as_call(source.ref).keyword("default")
                          : source.ref;
    const auto index = value ? facts::cuda_index(program, value) : std::nullopt;
    if (index && *index >= 0) return false;
    is_without_index = is_without_index || index || (value && program.string(value) == "cpu");
  }
  return is_without_index;
}

// def forward(self, x, device="cuda:0"), which every call of it, or of the model, gives another.
bool is_given_by_all(const Program& program, Ref device, Wrapper kind, int depth) {
  const FunctionRef method = program.enclosing_function(device);
  if (depth > kHandsOn || !method || !facts::is_parameter(program, device)) return false;
  std::vector<CallRef> sites = program.call_sites(method);
  const ClassRef cls = program.enclosing_class(device);
  if (method.function->name == "forward")
    for (const diagnose::ForwardCall& forward : program.forward_calls()) {
      const auto& classes = forward.wrap->classes;
      if (std::find(classes.begin(), classes.end(), cls) != classes.end())
        sites.push_back(forward.call);
    }
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return gives_another(program, site, method, device.text(), kind, depth);
  });
}

// The device argument of a placement inside forward, when it is a GPU with a fixed index.
Ref fixed_device(const Program& program, const CallRef& call, Wrapper kind) {
  Ref device;
  if (call.call->name == "cuda" && call.receiver()) device = call.argument(0, "device");
  if (call.call->name == "to" && call.receiver()) device = call.argument(0, "device");
  if (call.call->api == Api::tensor_factory) device = call.keyword("device");
  if (!device) return {};
  const auto index = facts::cuda_index(program, device);
  return index && *index >= 0 && !is_given_by_all(program, device, kind) ? device : Ref{};
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
          const Ref device = fixed_device(program, call, kind);
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
