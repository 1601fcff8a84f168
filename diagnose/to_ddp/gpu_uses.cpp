#include "diagnose/to_ddp/gpu_uses.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::says_any;

bool names_cpu(const Program& program, Ref value) {
  const CallRef made = program.as_call(value);
  const Ref name = made && made.call->api == Api::torch_device ? made.positional(0) : value;
  return name && program.string(name) == "cpu";
}

// "cpu", torch.device("cpu"), and device where it is nothing else.
bool is_cpu(const Program& program, Ref device) {
  const auto& sources = program.sources(device);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && names_cpu(program, source.ref);
  });
}

bool may_be_gpu(const Program& program, Ref device) {
  return device && device.kind() != Kind::none_literal &&
         says_any(device.text(), {"cuda", "device", "gpu"}) && !is_cpu(program, device);
}

// .to("cuda"), .to(device), .cuda(), .type(torch.cuda.FloatTensor)
bool moves(const Program& program, const CallRef& call) {
  if (!call.receiver()) return false;
  if (call.call->name == "cuda") return true;
  return (call.call->name == "to" && may_be_gpu(program, call.argument(0, "device"))) ||
         (call.call->name == "type" && says_any(call.ref().text(), {"cuda"}));
}

// torch.cuda.FloatTensor(3), torch.set_default_tensor_type("torch.cuda.FloatTensor")
bool makes_tensors(const Program& program, const CallRef& call) {
  const std::string_view path = call.call->path;
  if (path.starts_with("torch.cuda.")) return call.call->name.ends_with("Tensor");
  return (path == "torch.set_default_tensor_type" || path == "torch.set_default_device") &&
         may_be_gpu(program, call.positional(0));
}

// "cuda", and device of some name that says so: no list of GPUs, which is made of numbers.
bool is_device(const Program& program, Ref value) {
  if (!value) return false;
  if (value.kind() == Kind::string) return value.text().find("cuda") == 1;
  if (value.kind() != Kind::identifier && value.kind() != Kind::attribute) return false;
  const std::string_view text = value.text();
  return text.substr(text.rfind('.') + 1) == "device" && !is_cpu(program, value);
}

// torch.zeros(3, device=device), Diffusion(args, "cuda")
bool is_given_device(const Program& program, const CallRef& call) {
  const std::string_view path = call.call->path;
  if (path.starts_with("torch.cuda.") || call.call->name == "add_argument" ||
      call.call->name == "device")
    return false;
  if (is_device(program, call.keyword("device"))) return true;
  if (!program.class_of_call(call) && !program.callee(call)) return false;
  for (std::size_t index = 0; const Ref given = call.positional(index); ++index)
    if (is_device(program, given)) return true;
  return false;
}

}  // namespace

std::vector<CallRef> gpu_uses(const ReachedCode& reached) {
  const Program& program = reached.program();
  std::vector<CallRef> out;
  for (const Module* module : program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      if ((moves(program, call) || makes_tensors(program, call) ||
           is_given_device(program, call)) &&
          reached.comes_by(call.ref()))
        out.push_back(call);
    }
  return out;
}

}  // namespace bench::diagnose
