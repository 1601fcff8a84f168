#include "diagnose/to_ddp/parameterless.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/empty_modules.hpp"

#include <algorithm>
#include <cctype>

namespace bench::diagnose {
namespace {

constexpr int kParts = 3;  // losses made of losses

// Of torch.nn: nothing to learn.
bool is_bare(std::string_view layer) {
  static constexpr std::string_view kNames[] = {"Module", "CosineSimilarity", "PairwiseDistance"};
  static constexpr std::string_view kKinds[] = {
      "Drop", "ReLU", "ELU",      "GLU",     "SiLU",    "Mish", "Sigmoid", "Softmax", "Softplus",
      "Tanh", "Pool", "Identity", "Upsampl", "Flatten", "Loss", "Pad",     "Shuffle", "Unfold",
  };
  if (layer == "PReLU" || layer.starts_with("AdaptiveLog")) return false;
  return std::find(std::begin(kNames), std::end(kNames), layer) != std::end(kNames) ||
         std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](std::string_view word) { return pitfalls::facts::contains(layer, word); });
}

bool is_loss_without_layers(const Program& program, const ClassRef& cls, int depth);

// What the call makes may hold parameters.
bool may_make_parameters(const Program& program, const CallRef& call, int depth) {
  if (const ClassRef cls = program.class_of_call(call))
    return program.derives_from(cls, Api::module_class) &&
           !is_loss_without_layers(program, cls, depth - 1);
  const std::string_view path = call.call->path;
  if (path.starts_with("torch.nn.functional.")) return false;
  if (path.starts_with("torch.nn.")) return !is_bare(call.call->name);
  // A class of a file that is not there.
  return !call.call->name.empty() &&
         std::isupper(static_cast<unsigned char>(call.call->name.front())) != 0 &&
         !path.starts_with("torch.");
}

bool is_loss_without_layers(const Program& program, const ClassRef& cls, int depth) {
  if (depth <= 0 || !pitfalls::says_any(cls.cls->name, {"loss", "criterion", "entropy"}))
    return false;
  const auto& lineage = program.lineage(cls);
  return std::all_of(lineage.begin(), lineage.end(), [&](const ClassRef& each) {
    const auto calls = pitfalls::facts::calls_in({each.module, each.cls->node});
    return std::none_of(calls.begin(), calls.end(), [&](const CallRef& call) {
      return call.call->name == "register_parameter" || may_make_parameters(program, call, depth);
    });
  });
}

}  // namespace

bool may_hold_parameters(const Program& program, Ref layer) {
  const CallRef made = program.made_by(layer);
  if (!made) return true;
  if (const ClassRef cls = program.class_of_call(made))
    return !is_loss_without_layers(program, cls, kParts);
  return !is_bare(made.call->name);
}

bool wraps_no_parameters(const Program& program, const Wrap& wrap) {
  if (pitfalls::has_no_state(program, wrap)) return true;
  const auto& sources = program.module_sources(wrap.module);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& each) {
    const CallRef made = program.as_call(each.ref);
    if (!made) return false;
    if (const ClassRef cls = program.class_of_call(made))
      return is_loss_without_layers(program, cls, kParts);
    return made.call->path.starts_with("torch.nn.") && made.call->name.ends_with("Loss");
  });
}

}  // namespace bench::diagnose
