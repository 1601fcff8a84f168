#include "scenarios/pitfalls/fixed_binding.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/own_gpu.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Source;

namespace {

constexpr int kNames = 4;  // device -> ids -> index

// torch.device(...), torch.cuda.is_available(), str(index): they tell no process from another.
bool is_plain_call(const CallRef& call) {
  for (const std::string_view name : {"device", "is_available", "str", "int", "format"})
    if (call.call->name == name) return true;
  return false;
}

bool is_written(const Program& program, Ref expression, int depth);

// A name of the expression: PyTorch's own (torch.cuda), or a variable whose values are all written
// out.
bool is_written_name(const Program& program, Ref name, int depth) {
  const std::string package = name.module->qualified(name.node);
  if (package == "torch" || package.starts_with("torch.")) return true;
  const auto sources = program.sources(name);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.how == Source::How::value && source.ref != name &&
           is_written(program, source.ref, depth + 1);
  });
}

bool is_written(const Program& program, Ref expression, int depth) {
  if (!expression || depth > kNames) return false;
  const auto& tree = expression.module->tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at) {
    const Ref part = expression.with(at);
    if (const CallRef call = program.as_call(part); call && !is_plain_call(call)) return false;
    const bool of_call = tree[at].field == Field::function || tree[at].field == Field::attribute;
    if (part.kind() == Kind::attribute && !of_call) {
      if (!is_written_name(program, part, depth)) return false;
      at = tree[at].last - 1;
    } else if (part.kind() == Kind::identifier && !of_call &&
               !is_written_name(program, part, depth)) {
      return false;
    }
    // config["gpu"]: what a dictionary was made with may be stored anew for each rank.
    if (part.kind() == Kind::lambda || part.kind() == Kind::comprehension ||
        part.kind() == Kind::dictionary)
      return false;
  }
  return true;
}

// os.environ["CUDA_VISIBLE_DEVICES"] = "0,1", in every place: no rank is shown a GPU of its own.
bool shows_several(const Program& program) {
  const auto visible = visible_devices(program);
  return !visible.empty() && std::all_of(visible.begin(), visible.end(), [&](Ref devices) {
    const auto text = program.string(devices);
    return text ? facts::contains(*text, ",") : joins_several(program, devices);
  });
}

}  // namespace

bool is_written_for_all(const Program& program, Ref expression) {
  return is_written(program, expression, 0);
}

bool check_fixed_binding(const Program& program, Report& report) {
  const auto bindings = program.calls(Api::set_device);
  if (bindings.empty() || program.uses(Api::device_context) || program.gpus().has_value() ||
      (program.mentions("CUDA_VISIBLE_DEVICES") && !shows_several(program)) ||
      !std::all_of(bindings.begin(), bindings.end(), [&](const CallRef& binding) {
        return is_written_for_all(program, binding.argument(0, "device"));
      }))
    return false;
  for (const CallRef& init : program.calls(Api::init_process_group))
    if (init.keyword("device_id")) return false;
  for (const CallRef& binding : bindings) {
    if (program.guarded_by_rank(binding.ref()) != diagnose::RankTest::none ||
        facts::only_without_distribution(program, binding.ref()) ||
        facts::only_before_ranks(program, binding.ref()) ||
        !facts::is_reachable(program, binding.ref()))
      continue;
    in_no_trial(report.at(binding.argument(0, "device"), Confidence::likely,
                          "every rank binds the same device: all of them work on one GPU, and NCCL "
                          "stops with \"Duplicate GPU detected\""))
        .help = "Call torch.cuda.set_device(local_rank), with LOCAL_RANK of the environment.";
    return true;
  }
  return false;
}

}  // namespace bench::pitfalls
