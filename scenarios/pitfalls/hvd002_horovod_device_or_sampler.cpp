#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/horovod_alone.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/device_binding.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// CUDA_VISIBLE_DEVICES may give each rank a GPU of its own, unless the script writes one list for
// all of them.
bool may_see_own_gpu(const Program& program) {
  if (!program.mentions("CUDA_VISIBLE_DEVICES")) return false;
  const auto set = visible_devices(program);
  return set.empty() || std::any_of(set.begin(), set.end(), [&](Ref devices) {
           return program.written(devices).kind() != diagnose::Kind::string;
         });
}

// x.cuda(), x.to("cuda"): the current device, which is GPU 0 unless something says otherwise.
std::vector<CallRef> placed_on_current(const Program& program) {
  std::vector<CallRef> out;
  for (const CallRef& call : program.calls_named("cuda"))
    if (call.receiver() && !call.argument(0, "device")) out.push_back(call);
  for (const CallRef& call : program.calls_named("to"))
    if (call.receiver() && call.positional(0) && !program.comes_from_rank(call.positional(0)) &&
        facts::cuda_index(program, call.positional(0)).value_or(0) == -1)
      out.push_back(call);
  return out;
}

// A run puts something on the current device: on GPU 0 in every rank.
bool places_on_current(const Program& program) {
  const auto placed = placed_on_current(program);
  return std::any_of(placed.begin(), placed.end(),
                     [&](const CallRef& call) { return facts::is_reachable(program, call.ref()); });
}

// The model: what is asked for its parameters.
bool is_module(const Program& program, std::string_view name) {
  if (name.empty()) return false;
  for (const char* method : {"parameters", "named_parameters", "state_dict"})
    for (const CallRef& call : program.calls_named(method))
      if (call.receiver().text() == name) return true;
  return false;
}

// model.cuda() above set_device(hvd.local_rank()): a context and the model on GPU 0 in every rank.
void check_late_binding(const Program& program, Report& report) {
  const auto bindings = program.calls(Api::set_device);
  if (bindings.empty() || enters_device(program) || may_see_own_gpu(program)) return;
  for (const CallRef& placed : placed_on_current(program)) {
    const std::string_view receiver = placed.receiver().text();
    if (!is_module(program, receiver) && !is_module(program, program.assigned_name(placed.ref())))
      continue;
    const bool above = std::all_of(bindings.begin(), bindings.end(), [&](const CallRef& binding) {
      return program.enclosing_function(binding.ref()) ==
                 program.enclosing_function(placed.ref()) &&
             binding.module == placed.module &&
             only_runs_before(program, placed.ref(), binding.ref());
    });
    if (!above || !facts::is_reachable(program, placed.ref())) continue;
    report
        .at(placed.ref(), Confidence::likely,
            "every rank puts the model on GPU 0: its own device is set only below")
        .help = "Call torch.cuda.set_device(hvd.local_rank()) right after hvd.init().";
    return;
  }
}

}  // namespace

void check_horovod_device_or_sampler(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_init)) return;
  if (!program.uses(Api::set_device) && !enters_device(program) &&
      !program.mentions("set_device") && !may_see_own_gpu(program)) {
    if (places_on_current(program)) {
      Finding& finding = report.at(program.calls(Api::hvd_init).front().ref(), Confidence::likely,
                                   "no rank was given a device of its own: all use GPU 0");
      if (only_joins_horovod(program)) tell_as_note(finding);
      finding.help = "Call torch.cuda.set_device(hvd.local_rank()) next.";
    }
  }
  check_late_binding(program, report);
  if (program.uses(Api::init_process_group)) return;
  for (const CallRef& sampler : program.calls(Api::distributed_sampler))
    if (!sampler.argument(1, "num_replicas") || !sampler.argument(2, "rank"))
      report
          .at(sampler.ref(), Confidence::certain,
              "DistributedSampler asks torch.distributed, which Horovod does not initialise: "
              "ValueError")
          .help = "Pass num_replicas=hvd.size(), rank=hvd.rank().";
}

}  // namespace bench::pitfalls
