// GPUs that a script names for all of its processes.
#include "diagnose/to_ddp/gpu_uses.hpp"
#include "diagnose/to_ddp/remaining_topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// 0 and "cuda:0", which an option has unless a run says otherwise.
bool is_one_gpu(const Program& program, Ref device) {
  if (device.kind() == Kind::integer) return true;
  const auto text = program.string(device);
  return text && text->starts_with("cuda:") && text->size() > 5 && text->at(5) != '{';
}

// args.gpu after parser.add_argument("--gpu", type=int, default=0): whatever its name, no launcher
// fills it.
bool is_one_by_option(const Program& program, const Source& source) {
  const CallRef option = program.as_call(source.ref);
  const Ref value = option ? option.keyword("default") : Ref{};
  return source.how == Source::How::argument && value && is_one_gpu(program, value) &&
         !contains(option.positional(0).text(), "rank");
}

// 0, self.device after self.device = 0, and args.gpu if use_gpu else "cpu".
bool is_fixed(const Program& program, Ref device) {
  if (contains(device.text(), "rank")) return false;
  if (device.kind() == Kind::conditional) {
    const auto& tree = device.module->tree();
    for (NodeId part = tree[device.node].first_child; part != kNoNode;
         part = tree[part].next_sibling)
      if (tree[part].field != Field::condition && is_fixed(program, device.with(part))) return true;
    return false;
  }
  const auto& sources = program.sources(device);
  return sources.size() == 1 &&
         (is_one_by_option(program, sources.front()) ||
          (sources.front().how == Source::How::value && is_one_gpu(program, sources.front().ref)));
}

bool takes_device(const CallRef& call) {
  return call.call->api == Api::torch_device || call.call->api == Api::set_device ||
         ((call.call->name == "cuda" || call.call->name == "to") && call.receiver());
}

// The other branch of `if dist.is_initialized()`.
bool only_without_group(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
    return !guard.holds && contains(guard.condition.text(), "is_initialized()");
  });
}

// SSIM().to(device) of a class that only pools has nothing to put there.
bool holds_tensors(const Program& program, const CallRef& use) {
  const ClassRef cls = use.receiver() ? program.class_of(use.receiver()) : ClassRef{};
  if (!cls) return true;
  const std::string_view text = cls.module->tree().text(cls.cls->node);
  return pitfalls::says_any(text, {"parameter", "linear", "conv", "buffer", "embedding", "norm",
                                   "torch.tensor", "torch.ones", "torch.zeros", "vgg"});
}

}  // namespace

void tell_fixed_devices(Left& left) {
  std::vector<Ref> places;
  const Program& program = left.program;
  for (const Module* module : program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (!takes_device(call)) continue;
      const Ref device = call.positional(0) ? call.positional(0) : call.keyword("device");
      if (device && is_fixed(program, device) && left.runs_on_every_rank(call.ref()) &&
          !left.is_found(call.ref(), "DDP025"))
        places.push_back(call.ref());
    }
  left.tell(Harm::stops, places,
            "this names one GPU for all ranks: the others put tensors on a GPU that is not theirs, "
            "and fail where these meet the model's. Use the GPU of the rank (cuda, local_rank).");
}

void tell_early_gpu_uses(Left& left) {
  std::vector<Ref> places;
  for (const CallRef& use : gpu_uses(left.program))
    if (use.module != &left.program.root() && !left.program.enclosing_function(use.ref()) &&
        !use.module->under_main_guard(use.call->node) && left.runs_on_every_rank(use.ref()) &&
        !left.program.mentions_rank(use.ref()) && holds_tensors(left.program, use))
      places.push_back(use.ref());
  left.tell(Harm::stops, places,
            "this runs where the file is imported, above torch.cuda.set_device: every rank puts it "
            "on GPU 0, and fails where it meets the model's tensors. Make it in a function that "
            "runs once the group is joined.");
}

void tell_visible_devices(Left& left) {
  std::vector<Ref> places;
  for (const Ref& setting : pitfalls::facts::settings_of(left.program, "CUDA_VISIBLE_DEVICES"))
    if (left.runs_on_every_rank(setting) && !only_without_group(left.program, setting))
      places.push_back(setting);
  left.tell(Harm::stops, places,
            "the program chooses its GPUs itself: a rank whose number is not below how many these "
            "are fails in torch.cuda.set_device. Remove the line, and set CUDA_VISIBLE_DEVICES for "
            "torchrun where GPUs have to be chosen.");
}

}  // namespace bench::diagnose
