#include "scenarios/pitfalls/ranks/device_binding.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"
#include "scenarios/pitfalls/ranks/typed_starts.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

namespace {

// "0,1", or an option that is so by default: the same devices for every rank.
bool names_several(const Program& program, Ref devices) {
  const auto text = program.string(devices);
  return text ? facts::contains(*text, ",") : joins_several(program, devices);
}

}  // namespace

bool enters_device(const Program& program) {
  const auto contexts = program.calls(Api::device_context);
  return std::any_of(contexts.begin(), contexts.end(), [](const CallRef& made) {
    const auto& tree = made.module->tree();
    return tree[tree[made.call->node].parent].kind != Kind::expression_statement;
  });
}

bool binds_device(const Program& program) {
  if (program.uses(Api::set_device) || enters_device(program)) return true;
  for (const std::string_view word : {"set_device", "virtual-local-rank"})
    if (program.mentions(word)) return true;
  if (!program.uses(Api::device_context) && program.mentions("torch.cuda.device(")) return true;
  std::vector<Ref> visible = visible_devices(program);
  // What the script sets itself takes the place of what the files do that it imports above.
  const auto is_of_script = [&](Ref devices) {
    return devices.module == &program.root() && !program.enclosing_function(devices) &&
           is_unconditional(program, devices);
  };
  if (std::any_of(visible.begin(), visible.end(), is_of_script))
    std::erase_if(visible, [&](Ref devices) { return !is_of_script(devices); });
  const bool all_several = std::all_of(
      visible.begin(), visible.end(), [&](Ref devices) { return names_several(program, devices); });
  if (program.mentions("CUDA_VISIBLE_DEVICES") && (visible.empty() || !all_several)) return true;
  for (const CallRef& init : program.calls(Api::init_process_group))
    if (init.keyword("device_id")) return true;
  for (const auto& launch : program.launches())
    if (launch.flags.contains("virtual-local-rank")) return true;
  return false;
}

std::optional<int> placed_on(const Program& program, const CallRef& call) {
  if (!call.receiver() || !call.call->path.empty()) return std::nullopt;
  const Ref device = call.argument(0, "device");
  if (!device) return call.call->name == "cuda" ? std::optional(-1) : std::nullopt;
  if (program.comes_from_rank(device)) return std::nullopt;
  return facts::cuda_index(program, device);
}

bool is_on_current_gpu(const Program& program, const CallRef& placement) {
  if (placed_on(program, placement).value_or(0) == -1) return true;
  const Ref device = placement.argument(0, "device");
  if (!device || !placement.receiver() || program.comes_from_rank(device)) return false;
  const auto& sources = program.sources(device);
  if (sources.size() != 1) return false;
  const CallRef made = program.as_call(sources.front().ref);
  const Ref choice =
      made && made.call->api == Api::torch_device ? made.positional(0) : sources.front().ref;
  return choice.kind() == Kind::conditional &&
         (choice.text().starts_with("'cuda' if ") || choice.text().starts_with("\"cuda\" if "));
}

}  // namespace bench::pitfalls
