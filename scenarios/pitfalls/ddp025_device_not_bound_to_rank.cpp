#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/early_moves.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/handed_out.hpp"
#include "scenarios/pitfalls/ranks/device_binding.hpp"
#include "scenarios/pitfalls/ranks/fixed_binding.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/ranks/typed_starts.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// [0]; a name or attribute in the list may be given another value elsewhere.
bool is_written_out(Ref ids) {
  if (ids.kind() != Kind::list) return false;
  const Kind kind = ids.with(ids.module->tree().child_at(ids.node, 0)).kind();
  return kind == Kind::integer || kind == Kind::string;
}

}  // namespace

namespace {

// model.cuda() above set_device(gpu): a context and a copy of the model on GPU 0 first.
bool stands_above_binding(const Program& program, const CallRef& placement) {
  const auto bindings = program.calls(Api::set_device);
  if (bindings.empty() || program.uses(Api::device_context) || !visible_devices(program).empty())
    return false;
  for (const CallRef& init : program.calls(Api::init_process_group))
    if (init.keyword("device_id")) return false;
  const auto function = program.enclosing_function(placement.ref());
  if (!function || facts::only_before_ranks(program, placement.ref())) return false;
  return std::all_of(bindings.begin(), bindings.end(), [&](const CallRef& binding) {
    return program.enclosing_function(binding.ref()) == function &&
           only_runs_before(program, placement.ref(), binding.ref());
  });
}

// DDP(model, device_ids=[local_rank]), wherever the ranks join their group; not device_ids=[gpu] of
// a worker that is called with 0 alone.
bool is_for_rank(const Program& program, const Wrap& wrap) {
  const Ref ids = wrap.call.argument(1, "device_ids");
  return wrap.kind == Wrapper::ddp && ids && program.comes_from_rank(ids) &&
         !is_written_for_all(program, ids);
}

// load("net", device="cuda:0") in what every rank runs, where the wrapper is on the rank's own GPU.
void check_written_device(const Program& program, Report& report) {
  const auto& wraps = program.wraps();
  if (std::none_of(wraps.begin(), wraps.end(),
                   [&](const Wrap& wrap) { return is_for_rank(program, wrap); }))
    return;
  for (const auto* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref device = call.keyword("device");
      const auto index = program.written(device).kind() == Kind::string
                             ? facts::cuda_index(program, device)
                             : std::optional<int>();
      if (!index || *index < 0 || program.guarded_by_rank(call.ref()) != diagnose::RankTest::none ||
          facts::only_in_parent(program, call.ref()) ||
          facts::only_before_ranks(program, call.ref()) ||
          facts::only_without_distribution(program, call.ref()) ||
          !is_unconditional(program,
                            call.ref()) ||  // if gpu_enabled(): another run may not come by
          facts::certainty_of_reach(program, call.ref()) != facts::Certainty::certain)
        continue;
      in_no_trial(report.at(call.ref(), Confidence::likely,
                            "every rank makes this on GPU " + std::to_string(*index) +
                                ", although each has a GPU of its own"))
          .help = "Name the rank's device, or \"cpu\" for what is moved below.";
      return;
    }
}

// Moves of the tensor itself; of the model, where the tensor is one of its gradients.
std::vector<CallRef> moves_behind(const Program& program, Ref tensor) {
  std::vector<CallRef> out;
  const auto take = [&](Ref node) {
    const CallRef call = program.as_call(node);
    if (call && (call.call->name == "cuda" || call.call->name == "to")) out.push_back(call);
  };
  for (const diagnose::Source& source : program.sources(tensor)) take(source.ref);
  Ref root = tensor;
  while (root.kind() == Kind::attribute) root = root.child(diagnose::Field::object);
  if (root.kind() != Kind::identifier || root == tensor) return out;
  for (const diagnose::Source& item : program.sources(root)) {
    const CallRef parameters = program.as_call(item.ref);
    if (item.how != diagnose::Source::How::loop_item || !parameters || !parameters.receiver() ||
        !facts::contains(parameters.call->name, "parameters"))
      continue;
    for (const diagnose::Source& model : program.sources(parameters.receiver())) take(model.ref);
  }
  return out;
}

// setup(rank) of another file may bind the device.
bool may_bind_out_of_sight(const Program& program) {
  const auto given = calls_given(program, [&](Ref value) {
    return program.is_rank(value) || program.is_local_rank(value) || program.is_spawn_rank(value);
  });
  return std::any_of(given.begin(), given.end(), [](const CallRef& call) {
    const std::string name = facts::lowered(call.call->name);
    for (const std::string_view word :
         {"setup", "set_", "init", "device", "dist", "prepare", "start"})
      if (facts::contains(name, word)) return true;
    return false;
  });
}

// dist.all_reduce(x) after x = torch.ones(1).cuda(), and nothing gives a rank its device.
void check_collectives(const Program& program, Report& report) {
  if (!program.uses(Api::init_process_group) || program.framework_distributes() ||
      sees_own_gpu(program) || binds_device(program) || is_typed_on_each_machine(program) ||
      may_bind_out_of_sight(program) || !(facts::uses_nccl(program) || program.mentions("nccl")))
    return;
  for (const Api api : {Api::all_reduce, Api::broadcast, Api::reduce, Api::all_gather})
    for (const CallRef& collective : program.calls(api)) {
      const Ref tensor = collective.positional(api == Api::all_gather ? 1 : 0);
      if (!tensor || !facts::is_reachable(program, collective.ref())) continue;
      for (const CallRef& move : moves_behind(program, tensor)) {
        if (!is_on_current_gpu(program, move)) continue;
        in_no_trial(
            report.at(
                move.ref(), Confidence::likely,
                "every rank has this on the current device, GPU 0, and hands it to a collective: "
                "NCCL stops with \"Duplicate GPU detected\""))
            .help = "Call torch.cuda.set_device(local_rank) before anything touches CUDA.";
        return;
      }
    }
}

// What the wrapper moves itself: the name stands in the arguments of a forward pass, or the move
// lies behind one of them.
bool is_input(const Program& program, const CallRef& forward, Ref move) {
  const Ref arguments = forward.ref().child(diagnose::Field::arguments);
  const std::string_view name = program.assigned_name(move);
  const auto& tree = forward.module->tree();
  for (auto id = arguments.node; id < tree[arguments.node].last; ++id)
    if (tree[id].kind == Kind::identifier && !name.empty() && tree.text(id) == name) return true;
  for (auto at = tree[arguments.node].first_child; at != diagnose::kNoNode;
       at = tree[at].next_sibling) {
    const auto behind = facts::calls_behind(program, arguments.with(at));
    if (std::find(behind.begin(), behind.end(), move) != behind.end()) return true;
  }
  return false;
}

// y = y.cuda() above y.to(scores.device).
bool is_moved_again(const Program& program, const std::vector<Ref>& behind, Ref move) {
  const std::string_view name = program.assigned_name(move);
  return std::any_of(behind.begin(), behind.end(), [&](Ref node) {
    const CallRef call = program.as_call(node);
    return node != move && call && call.receiver() && !name.empty() &&
           call.receiver().text() == name &&
           (call.call->name == "to" || call.call->name == "cuda" || call.call->name == "type_as");
  });
}

// labels.to("cuda") of a batch, beside a model on the rank's GPU: the wrapper moves its inputs, and
// the loss meets tensors of two GPUs.
void check_targets(const Program& program, Report& report) {
  const auto& wraps = program.wraps();
  if (std::none_of(wraps.begin(), wraps.end(),
                   [&](const Wrap& wrap) { return is_for_rank(program, wrap); }))
    return;
  for (const diagnose::TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const auto& forwards = program.forward_calls();
      const auto behind = facts::calls_behind(program, facts::loss_of(backward));
      for (const Ref& node : behind) {
        const CallRef move = program.as_call(node);
        const auto index = move.call->name == "to" || move.call->name == "cuda"
                               ? placed_on(program, move)
                               : std::nullopt;
        if (!index || *index >= 0 || !runs_in(program, loop.batches, node) ||
            is_moved_again(program, behind, node) ||
            std::any_of(forwards.begin(), forwards.end(),
                        [&](const auto& each) {
                          return each.call.module == move.module &&
                                 is_input(program, each.call, node);
                        }) ||
            facts::only_without_distribution(program, node) || !is_unconditional(program, node))
          continue;
        Finding& finding = in_no_trial(
            report.at(node, Confidence::likely,
                      "every rank moves this to the current device, GPU 0, and its model is on "
                      "another: the loss meets tensors of two GPUs"));
        finding.help = "Call torch.cuda.set_device(local_rank) before anything touches CUDA.";
        return;
      }
    }
}

// What moves a model: the wrappers of DDP, and engines as if they were such.
std::vector<Wrap> wrappers_and_engines(const Program& program) {
  std::vector<Wrap> out;
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::ddp) out.push_back(wrap);
  if (!trains_by_engine(program)) return out;
  for (const CallRef& engine : engines_made(program))
    out.push_back({engine, Wrapper::ddp, model_given(engine), {}});
  return out;
}

// model.cuda() above deepspeed.initialize(), which sets the device of its process, as newer
// versions of deepspeed.init_distributed() do.
bool stands_above_engine(const Program& program, const CallRef& placement, const CallRef& engine) {
  const auto joins = program.calls(Api::init_process_group);
  return only_runs_before(program, placement.ref(), engine.ref()) &&
         std::all_of(joins.begin(), joins.end(), [&](const CallRef& join) {
           return only_runs_before(program, placement.ref(), join.ref());
         });
}

// DDP(model, device_ids=[0]), which fails whatever the process is bound to.
bool check_written_ids(const Program& program, Report& report) {
  if (program.gpus().has_value()) return false;
  for (const Wrap& wrap : wrappers_and_engines(program)) {
    const Ref written = wrap.call.argument(1, "device_ids");
    const auto ids = facts::device_ids(program, wrap.call);
    if (ids.size() != 1 || !is_written_out(program.written(written))) continue;
    in_no_trial(report.at(written, Confidence::certain,
                          "every rank is given GPU " + std::to_string(ids.front()) +
                              ": NCCL stops with \"Duplicate GPU detected\""))
        .help = "Use device_ids=[local_rank], with the module on that device.";
    return true;
  }
  return false;
}

}  // namespace

void check_device_not_bound_to_rank(const Program& program, Report& report) {
  check_moves_above_device(program, report);
  check_collectives(program, report);
  const bool joins = program.uses(Api::init_process_group) || program.uses(Api::deepspeed);
  if (program.framework_distributes() || sees_own_gpu(program) || !facts::is_distributed(program))
    return;
  const bool bound = binds_device(program);
  // Written for the one process that it starts.
  const bool alone = facts::is_one_by_setting(program);
  if (joins && !alone &&
      (check_written_ids(program, report) || check_fixed_binding(program, report)))
    return;
  for (const Wrap& wrap : wrappers_and_engines(program)) {
    const bool by_deepspeed = wrap.call.call->api == Api::deepspeed;
    for (const CallRef& call : facts::placements(program, wrap)) {
      const auto index = placed_on(program, call);
      if (!joins && (index.value_or(-1) < 0 || !is_for_rank(program, wrap))) continue;
      if (!index || facts::only_without_distribution(program, call.ref())) continue;
      const bool late = by_deepspeed ? !bound && stands_above_engine(program, call, wrap.call)
                                     : bound && *index < 0 && stands_above_binding(program, call);
      if ((bound || by_deepspeed) && *index < 0 && !late) continue;
      Finding& finding = report.at(
          call.ref(), Confidence::likely,
          by_deepspeed
              ? "every rank puts the model on GPU 0 first: deepspeed.initialize gives it a "
                "device of its own only below"
          : late       ? "every rank puts the model on GPU 0 first: its own device is set only "
                         "below"
          : *index < 0 ? "every rank puts the model on the current device, GPU 0: no rank was "
                         "given a device of its own"
                       : "every rank puts the model on GPU " + std::to_string(*index));
      finding.help = "Call torch.cuda.set_device(local_rank) before anything touches CUDA.";
      if (late) in_no_trial(finding);
      if (by_deepspeed) finding.severity = Severity::warning;
      if (is_typed_on_each_machine(program)) tell_as_note(finding);
      return;
    }
  }
  if (!joins) return;
  if (!bound && !is_typed_on_each_machine(program) && !may_bind_out_of_sight(program))
    check_targets(program, report);
  check_written_device(program, report);
}

namespace {

// All ranks on one device, though each could have its own.
bool devices_shared(const RunEvidence& run) {
  const std::vector<Json> devices = run.of_every_rank("device");
  if (devices.size() < 2 || run.number("visible_gpus") < 2) return false;
  const std::set<Json> distinct(devices.begin(), devices.end());
  return distinct.size() < devices.size();
}

double bytes_on_first_gpu(const RunEvidence& run) {
  double bytes = 0;
  for (const Json& allocated : run.of_every_rank("allocated_bytes"))
    bytes += allocated.at(0).get<double>();
  return bytes;
}

}  // namespace

void judge_device_not_bound_to_rank(const RunEvidence& run, RunReport& report) {
  if (!devices_shared(run)) return;
  const Json devices(run.of_every_rank("device"));
  Finding& finding = report.add(Confidence::certain,
                                "ranks share a GPU while others are free: the ranks' devices are " +
                                    listed(devices) + " of " + figure(run.number("visible_gpus")));
  finding.help = "torch.cuda.set_device(local_rank) before any CUDA call.";
}

Price price_device_not_bound_to_rank(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced = devices_shared(broken);
  price.gone = !devices_shared(cured) && !cured.of_every_rank("device").empty();
  const double own = bytes_on_first_gpu(cured);
  price.cost = own > 0 ? bytes_on_first_gpu(broken) / own : 0;
  price.unit = "times the memory of one rank on GPU 0";
  price.seen =
      "silent (NCCL: \"Duplicate GPU detected\"): " + figure(bytes_on_first_gpu(broken) / 1024) +
      " KiB on GPU 0, nothing on the others";
  return price;
}

}  // namespace bench::pitfalls
