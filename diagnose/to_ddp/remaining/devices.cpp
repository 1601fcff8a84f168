// GPUs that a script names for all of its processes.
#include "diagnose/to_ddp/gpu_uses.hpp"
#include "diagnose/to_ddp/rank_devices.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <map>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// args.gpu after parser.add_argument("--gpu", type=int, default=0): whatever its name, no launcher
// fills it.
bool is_one_by_option(const Program& program, const Source& source) {
  const Ref value = default_of_option(program, source);
  return value && is_one_gpu(program, value) &&
         !contains(program.as_call(source.ref).positional(0).text(), "rank");
}

// 0, self.device after self.device = 0, and args.gpu if use_gpu else "cpu".
bool is_fixed(const Program& program, Ref device) {
  if (contains(device.text(), "rank") || contains(device.text(), "LOCAL_RANK")) return false;
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

// The other branch of `if dist.is_initialized()`, and `if "LOCAL_RANK" not in os.environ`.
bool only_without_group(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
    const std::string_view condition = guard.condition.text();
    return (!guard.holds && contains(condition, "is_initialized()")) ||
           (guard.holds && condition.starts_with("\"LOCAL_RANK\" not in"));
  });
}

// SSIM().to(device) of a class that only pools, or nn.CrossEntropyLoss().to(device): there is
// nothing to put there.
bool moves_nothing(const Program& program, const CallRef& use) {
  const Ref object = use.receiver();
  if (!object) return false;
  const CallRef made = program.made_by(object);
  if (made && made.call->path.starts_with("torch.nn.") && made.call->name.ends_with("Loss"))
    return !made.keyword("weight") && !made.keyword("pos_weight") && !made.positional(0);
  const ClassRef cls = program.class_of(object);
  if (!cls) return false;
  const std::string_view text = cls.module->tree().text(cls.cls->node);
  return !pitfalls::says_any(text, {"parameter", "linear", "conv", "buffer", "embedding", "norm",
                                    "torch.tensor", "torch.ones", "torch.zeros", "vgg"});
}

// Engine(device="cuda") of a class that keeps the device for later: nothing is handed on, and no
// tensor made.
bool only_keeps_device(const Program& program, const CallRef& use) {
  const ClassRef cls = program.class_of_call(use);
  const FunctionRef init = cls ? program.method(cls, "__init__") : FunctionRef{};
  if (!init) return false;
  const auto calls = pitfalls::facts::calls_in({init.module, init.function->body});
  return std::none_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return contains(call.ref().text(), "device") || contains(call.ref().text(), "cuda");
  });
}

// torch.zeros(1).cuda(), which only wakes the GPU up: nothing is left to meet the model.
bool is_thrown_away(const CallRef& use) {
  const auto& tree = use.module->tree();
  const NodeId up = tree[use.call->node].parent;
  return use.receiver() && tree[up].kind == Kind::expression_statement;
}

// config.device of a configuration that other code makes.
bool is_of_config_out_of_sight(const Program& program, Ref device) {
  if (device.kind() != Kind::attribute || device.child(Field::attribute).text() != "device")
    return false;
  const std::string_view object = device.child(Field::object).text();
  const std::string_view name = object.substr(object.rfind('.') + 1);
  if (name != "config" && name != "cfg" && name != "conf" && name != "hparams") return false;
  const auto& sources = program.sources(device);
  return program.attribute_defs("device").empty() && !sources.empty() &&
         std::all_of(sources.begin(), sources.end(),
                     [](const Source& source) { return source.how == Source::How::unknown; });
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

void tell_devices_out_of_sight(Left& left) {
  const Program& program = left.program;
  std::map<std::string, std::vector<Ref>> places;
  for (const std::string_view method : {"to", "cuda"})
    for (const CallRef& call : program.calls_named(method)) {
      const Ref device = call.argument(0, "device");
      if (call.receiver() && device && is_of_config_out_of_sight(program, device) &&
          left.runs_on_every_rank(call.ref()))
        places[std::string(device.text())].push_back(call.ref());
    }
  for (auto& [device, calls] : places)
    left.tell(Harm::may_stop, calls,
              "`" + device +
                  "` is set where no code of the script is seen to do so: if it names one GPU "
                  "(\"cuda:0\"), the tensors of all ranks go there, and fail where they meet the "
                  "model's. Set it to \"cuda\", which is the GPU of the rank.");
}

void tell_early_gpu_uses(Left& left) {
  std::vector<Ref> places;
  for (const CallRef& use : gpu_uses(left.reached))
    if (use.module != &left.program.root() && !left.program.enclosing_function(use.ref()) &&
        !use.module->under_main_guard(use.call->node) && left.runs_on_every_rank(use.ref()) &&
        !left.program.mentions_rank(use.ref()) && !moves_nothing(left.program, use) &&
        !only_keeps_device(left.program, use) && !is_thrown_away(use))
      places.push_back(use.ref());
  left.tell(Harm::stops, places,
            "this runs where the file is imported, above torch.cuda.set_device: every rank puts it "
            "on GPU 0, and fails where it meets the model's tensors. Make it in a function that "
            "runs once the group is joined.");
}

void tell_visible_devices(Left& left) {
  std::vector<Ref> places;
  for (const Ref& setting : pitfalls::facts::settings_of(left.program, "CUDA_VISIBLE_DEVICES"))
    if (left.runs_on_every_rank(setting) && !only_without_group(left.program, setting) &&
        !hides_all_gpus(left.program, setting))
      places.push_back(setting);
  left.tell(Harm::stops, places,
            "the program chooses its GPUs itself: a rank whose number is not below how many these "
            "are fails in torch.cuda.set_device. Remove the line, and set CUDA_VISIBLE_DEVICES for "
            "torchrun where GPUs have to be chosen.");
}

}  // namespace bench::diagnose
