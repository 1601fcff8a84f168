#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::TrainingLoop;

namespace {

bool measures_throughput(std::string_view text) {
  const std::string plain = facts::lowered(text);
  for (const std::string_view word :
       {"throughput", "samples/s", "images/s", "img/s", "samples_per_sec", "images_per_sec",
        "imgs_per_sec", "items_per_second"})
    if (facts::contains(plain, word)) return true;
  return false;
}

// items / (clock() - start), in a program that prints items per second elsewhere.
bool divides_by_elapsed(const Program& program, FunctionRef function) {
  const auto& tree = function.module->tree();
  for (const NodeId node : function.module->nodes_of(Kind::binary)) {
    if (tree[node].op != Op::divide || !tree.contains(function.function->node, node)) continue;
    const Ref right = Ref{function.module, node}.child(diagnose::Field::right);
    for (const CallRef& call : facts::calls_in(right))
      if (call.call->api == Api::time_now && right.kind() == Kind::binary &&
          measures_throughput(program.root().tree().source()))
        return true;
  }
  return false;
}

bool waits_for_gpu(std::string_view text) {
  for (const std::string_view word : {"synchronize", "Event(", ".item()", ".cpu()", "warmup",
                                      "warm_up", "float(loss", "barrier("})
    if (facts::contains(text, word)) return true;
  return false;
}

}  // namespace

void check_benchmark_without_warmup(const Program& program, Report& report) {
  if (!facts::uses_cuda(program) || program.wraps().empty()) return;
  for (const CallRef& clock : program.calls(Api::time_now)) {
    const FunctionRef function = program.enclosing_function(clock.ref());
    const std::string_view text =
        function ? function.module->text(function.function->node) : clock.module->tree().source();
    const bool is_benchmark =
        function && facts::contains(facts::lowered(function.function->name), "bench");
    const bool measures =
        measures_throughput(text) || (function && divides_by_elapsed(program, function));
    if ((!is_benchmark && !measures) || waits_for_gpu(text)) continue;
    Ref loop;
    for (const TrainingLoop& training : program.training_loops())
      if (training.batches.module == clock.module && training.batches.node > clock.call->node &&
          program.enclosing_function(training.batches) == function)
        loop = training.batches;
    if (!loop) continue;
    report
        .at(clock.ref(), Confidence::likely,
            "the clock does not wait for the GPU and counts the first steps: DDP's first step uses "
            "one "
            "bucket, and NCCL, cuDNN and the allocator start up in it")
        .help =
        "Skip ten steps, then call torch.cuda.synchronize() before each reading, or use CUDA "
        "events.";
    return;
  }
}

}  // namespace bench::pitfalls
