#include "diagnose/to_ddp/gpu_uses.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::says_any;

bool may_be_gpu(Ref device) {
  return device && device.kind() != Kind::none_literal &&
         says_any(device.text(), {"cuda", "device", "gpu"});
}

// .to("cuda"), .to(device), .cuda(), .type(torch.cuda.FloatTensor)
bool moves(const CallRef& call) {
  if (!call.receiver()) return false;
  if (call.call->name == "cuda") return true;
  return (call.call->name == "to" && may_be_gpu(call.argument(0, "device"))) ||
         (call.call->name == "type" && says_any(call.ref().text(), {"cuda"}));
}

// torch.cuda.FloatTensor(3), torch.set_default_tensor_type("torch.cuda.FloatTensor")
bool makes_tensors(const CallRef& call) {
  const std::string_view path = call.call->path;
  if (path.starts_with("torch.cuda.")) return call.call->name.ends_with("Tensor");
  return (path == "torch.set_default_tensor_type" || path == "torch.set_default_device") &&
         may_be_gpu(call.positional(0));
}

// "cuda", and device of some name that says so: no list of GPUs, which is made of numbers.
bool is_device(Ref value) {
  if (!value) return false;
  if (value.kind() == Kind::string) return value.text().find("cuda") == 1;
  if (value.kind() != Kind::identifier && value.kind() != Kind::attribute) return false;
  const std::string_view text = value.text();
  return text.substr(text.rfind('.') + 1) == "device";
}

// torch.zeros(3, device=device), Diffusion(args, "cuda")
bool is_given_device(const Program& program, const CallRef& call) {
  const std::string_view path = call.call->path;
  if (path.starts_with("torch.cuda.") || call.call->name == "add_argument" ||
      call.call->name == "device")
    return false;
  if (is_device(call.keyword("device"))) return true;
  if (!program.class_of_call(call) && !program.callee(call)) return false;
  for (std::size_t index = 0; const Ref given = call.positional(index); ++index)
    if (is_device(given)) return true;
  return false;
}

}  // namespace

std::vector<CallRef> gpu_uses(const Program& program) {
  std::vector<CallRef> out;
  for (const Module* module : program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      if ((moves(call) || makes_tensors(call) || is_given_device(program, call)) &&
          pitfalls::facts::is_reachable(program, call.ref()))
        out.push_back(call);
    }
  return out;
}

}  // namespace bench::diagnose
