#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/steps/hours_elapsed.hpp"
#include "scenarios/pitfalls/steps/warm_steps.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::TrainingLoop;

namespace {

// "samples/s" and "samples/sec", not the directory "sample/steps".
bool says_per_second(std::string_view text, std::string_view items) {
  const std::string rate = std::string(items) + "/s";
  for (std::size_t at = text.find(rate); at != std::string_view::npos;
       at = text.find(rate, at + 1)) {
    const std::string_view rest = text.substr(at + rate.size());
    if (rest.empty() || rest.starts_with("ec") ||
        std::isalpha(static_cast<unsigned char>(rest.front())) == 0)
      return true;
  }
  return false;
}

bool measures_throughput(std::string_view text) {
  const std::string plain = facts::lowered(text);
  if (holds_any(plain, {"throughput", "samples_per_sec", "images_per_sec", "imgs_per_sec",
                        "items_per_second", "tokens_per_sec", "tok_per_sec", "samples per sec",
                        "images per sec", "tokens per sec"}))
    return true;
  for (const std::string_view items :
       {"sample", "samples", "images", "img", "imgs", "examples", "smp", "samp", "tokens", "tok"})
    if (says_per_second(plain, items)) return true;
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

// with open(f"benchmark_{name}.json", "w"): the times are kept as those of a benchmark.
bool saves_benchmark(const Program& program) {
  const auto opens = program.calls_named("open");
  return std::any_of(opens.begin(), opens.end(), [&](const CallRef& open) {
    const Ref mode = open.argument(1, "mode");
    const FunctionRef function = program.enclosing_function(open.ref());
    return mode && function && facts::contains(mode.text(), "w") &&
           holds_any(function.module->text(function.function->node),
                     {"\"benchmark_", "'benchmark_"});
  });
}

bool waits_for_gpu(std::string_view text) {
  // What waits for the Apple GPU waits for no other.
  constexpr std::string_view kElsewhere = "mps.synchronize";
  const auto waits = [](std::string_view part) {
    return holds_any(part, {"synchronize", "Event(", ".item()", ".cpu()", "float(loss", "barrier(",
                            "scaler.step("});
  };
  for (std::size_t begin = 0;;) {
    const std::size_t at = text.find(kElsewhere, begin);
    if (waits(text.substr(begin, at == std::string_view::npos ? at : at - begin))) return true;
    if (at == std::string_view::npos) return false;
    begin = at + kElsewhere.size();
  }
}

// end = time.time(), where `end - start` is taken, and time.time() - start: the last such reading.
CallRef reading_after(const Program& program, const CallRef& start) {
  const std::string_view name = program.assigned_name(start.ref());
  CallRef last;
  if (name.empty()) return last;
  for (const CallRef& clock : program.calls(Api::time_now)) {
    const FunctionRef here = program.enclosing_function(start.ref());
    const FunctionRef there = program.enclosing_function(clock.ref());
    if (clock.module != start.module || (here == there && clock.call->node <= start.call->node))
      continue;
    const std::string_view end = program.assigned_name(clock.ref());
    for (const NodeId node : clock.module->nodes_of(Kind::binary)) {
      const Ref difference{clock.module, node};
      const Ref from = difference.child(diagnose::Field::right);
      if (clock.module->tree()[node].op != Op::subtract || from.kind() != Kind::identifier ||
          program.enclosing_function(from) != there ||
          diagnose::seen_in(program, from, here).text() != name)
        continue;
      const Ref left = difference.child(diagnose::Field::left);
      if (left == clock.ref() || (!end.empty() && left.text() == end)) last = clock;
    }
  }
  return last;
}

// Where the span begins, as far as the function of the second reading sees it: at the first
// reading, or at the top of a function that is handed it.
NodeId begin_of(const Program& program, const CallRef& start, const CallRef& end) {
  const FunctionRef function = program.enclosing_function(end.ref());
  return !function || function == program.enclosing_function(start.ref()) ? start.call->node
                                                                          : function.function->body;
}

// loss.backward(), and step(loss) of the program, which leads to one.
std::vector<CallRef> backwards_in(const Program& program, const CallRef& start,
                                  const CallRef& end) {
  std::vector<CallRef> out;
  const auto passes_back = [](const CallRef& each) { return each.call->name == "backward"; };
  for (const diagnose::Call& made : start.module->calls()) {
    const CallRef call{start.module, &made};
    if (made.node < begin_of(program, start, end) || made.node > end.call->node) continue;
    if (passes_back(call) ||
        (program.callee(call) && program.subtree_calls(call.ref(), passes_back)))
      out.push_back(call);
  }
  return out;
}

// The part of a measured span in which a wait for the GPU waits for the last step: from the
// innermost loop around the last backward pass, or from that pass where the loop is around it all.
// kNoNode where no backward pass stands between the two readings.
NodeId last_step(const Program& program, const CallRef& start, const CallRef& end) {
  NodeId from = diagnose::kNoNode;
  for (const CallRef& backward : backwards_in(program, start, end)) {
    const Ref loop = program.innermost_loop(backward.ref());
    from = loop && loop.node > begin_of(program, start, end) ? loop.node : backward.call->node;
  }
  return from;
}

std::string_view behind(const CallRef& end, NodeId from) {
  const auto& tree = end.module->tree();
  if (from == diagnose::kNoNode) return {};
  const std::string_view first = tree.text(from);
  const std::string_view last = tree.text(end.call->node);
  return {first.data(), static_cast<std::size_t>(last.data() - first.data())};
}

// loss.item() below the reading, where the clock stands still.
bool waits_behind(Ref loop, const CallRef& end) {
  const std::string_view round = loop.text();
  const std::string_view read = end.ref().text();
  if (read.data() < round.data()) return false;
  const auto from = static_cast<std::size_t>(read.data() - round.data());
  return from < round.size() && waits_for_gpu(round.substr(from));
}

// if step % every == 0: print(loss.item()), in the loop: the other steps wait for nothing, and the
// last one is seldom among those.
bool is_now_and_then(const Program& program, Ref wait) {
  for (const diagnose::Guard& guard : program.guards(wait))
    if (guard.holds && guard.condition.text().find('%') != std::string_view::npos) return true;
  return false;
}

// The function waits for the GPU, and not now and then alone.
bool waits_in_each_call(const Program& program, FunctionRef function) {
  if (!waits_for_gpu(function.module->text(function.function->node))) return false;
  const auto calls = facts::calls_in({function.module, function.function->body});
  const auto waits = [](const CallRef& call) { return waits_for_gpu(call.ref().text()); };
  return std::none_of(calls.begin(), calls.end(), waits) ||
         std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
           return waits(call) && !is_now_and_then(program, call.ref());
         });
}

// The loop around the reading, or the function that a loop calls for each step.
Ref round_of(const Program& program, const CallRef& start) {
  if (const Ref loop = program.innermost_loop(start.ref())) return loop;
  const FunctionRef function = program.enclosing_function(start.ref());
  return program.loops_around(start.ref()).empty() || !function
             ? Ref{}
             : Ref{function.module, function.function->body};
}

// train_epoch(loader), which goes over the batches itself, as the last step of a span.
Ref loop_behind(const Program& program, const CallRef& start, NodeId last) {
  if (last == diagnose::kNoNode || start.module->tree()[last].kind != Kind::call) return {};
  const auto reached = program.reached(start.ref().with(last));
  for (const TrainingLoop& training : program.training_loops())
    if (std::find(reached.begin(), reached.end(), training.function) != reached.end())
      return training.batches;
  return {};
}

// The function waits in each call, or one that it calls.
bool waits_in_each_call_behind(const Program& program, const CallRef& call) {
  const auto reached = program.reached(call.ref());
  return std::any_of(reached.begin(), reached.end(), [&](const FunctionRef& function) {
    return waits_in_each_call(program, function);
  });
}

// loss, parts = criterion(x, y), where the function reads parts["mse"] = mse.item(): with a wait in
// each step, and none outside the reading, the clock of the step waits for the step before, and
// shows the pace.
bool callee_waits(const Program& program, const CallRef& start, const CallRef& end, NodeId last) {
  const Ref loop = round_of(program, start);
  if (loop_behind(program, start, last))
    return waits_in_each_call_behind(program, program.as_call(start.ref().with(last)));
  const bool spans_steps =
      last != diagnose::kNoNode && start.module->tree()[last].kind != Kind::call;
  if (!spans_steps && (!loop || waits_behind(loop, end))) return false;
  const NodeId begin = begin_of(program, start, end);
  for (const diagnose::Call& made : start.module->calls()) {
    if (made.node <= begin || made.node >= end.call->node) continue;
    FunctionRef function = program.callee({start.module, &made});
    if (!function)
      if (const auto cls = program.class_of({start.module, made.function}))
        function = program.method(cls, "forward");
    if (function && waits_in_each_call(program, function)) return true;
  }
  return false;
}

// Some call between the two places waits for the GPU, and not now and then alone. What the loop of
// the last step ends with, or stands below it, counts in each case.
bool waits_for_last_steps(const Program& program, const CallRef& end, NodeId from) {
  if (!waits_for_gpu(behind(end, from))) return false;
  if (from == diagnose::kNoNode || end.module->tree()[from].kind == Kind::call) return true;
  const auto& calls = end.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& call) {
    const Ref at{end.module, call.node};
    return call.node > from && call.node < end.call->node && waits_for_gpu(at.text()) &&
           !is_now_and_then(program, at);
  });
}

// f"{elapsed / steps * 1000:.2f} ms/step" in the function, below a reading behind the loop: the
// mean of all steps, and not a line of the log.
bool tells_mean_of_steps(const CallRef& end, FunctionRef function) {
  const auto& tree = end.module->tree();
  for (NodeId node = end.call->node; node < tree[function.function->node].last; ++node)
    if (tree[node].kind == Kind::string &&
        says_any(tree.text(node), {"ms/step", "ms/iter", "ms per step", "ms per iter"}))
      return true;
  return false;
}

// Total time behind a training loop that waits for the GPU in some steps at most, and the mean of
// a step from it.
void check_mean_of_steps(const Program& program, Report& report) {
  const auto clocks = program.calls(Api::time_now);
  // The nearest to the loop first: one at the top takes the time of the whole run.
  for (auto at = clocks.rbegin(); at != clocks.rend(); ++at) {
    const CallRef& clock = *at;
    const CallRef end = reading_after(program, clock);
    const FunctionRef function = program.enclosing_function(end ? end.ref() : clock.ref());
    if (!end || !function || !tells_mean_of_steps(end, function)) continue;
    const NodeId last = last_step(program, clock, end);
    if (last == diagnose::kNoNode || clock.module->tree()[last].kind == Kind::call ||
        clock.module->tree().contains(last, end.call->node) ||
        callee_waits(program, clock, end, last))
      continue;
    const auto& calls = clock.module->calls();
    const NodeId begin = begin_of(program, clock, end);
    const bool waits = std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& call) {
      const Ref at{clock.module, call.node};
      return call.node > begin && call.node < end.call->node && waits_for_gpu(at.text()) &&
             !is_now_and_then(program, at);
    });
    if (waits || has_warm_steps(function.module->text(function.function->node))) continue;
    report
        .at(end.ref(), Confidence::likely,
            "the mean time of a step is taken without waiting for the GPU, and with the first "
            "steps in it: DDP's first step uses one bucket, and NCCL, cuDNN and the allocator "
            "start up in it")
        .help =
        "Skip ten steps, then call torch.cuda.synchronize() before each reading, or use CUDA "
        "events.";
    return;
  }
}

// What stands between start = time.time() and the reading that is taken off it.
std::string_view between(const CallRef& start, const CallRef& end) {
  const auto& tree = start.module->tree();
  const std::string_view whole = tree.source();
  const auto first = static_cast<std::size_t>(tree.text(start.call->node).data() - whole.data());
  const auto last = static_cast<std::size_t>(tree.text(end.call->node).data() - whole.data());
  return whole.substr(first, last - first);
}

// gpu_time = time.time() - start, with a forward pass of the wrapper in between and nothing that
// waits for it: by its name it is the time of the GPU, and it is the time to queue the work.
void check_times_of_gpu(const Program& program, Report& report) {
  for (const CallRef& clock : program.calls(Api::time_now)) {
    const CallRef end = reading_after(program, clock);
    if (!end) continue;
    const std::string name = facts::lowered(
        program.assigned_name(end.ref().with(end.module->tree()[end.call->node].parent)));
    if (!says_any(name, {"gpu_time", "time_gpu", "cuda_time"}) ||
        waits_for_gpu(between(clock, end)))
      continue;
    const auto& forwards = program.forward_calls();
    if (std::none_of(forwards.begin(), forwards.end(), [&](const diagnose::ForwardCall& forward) {
          return forward.call.module == clock.module &&
                 forward.call.call->node > clock.call->node &&
                 forward.call.call->node < end.call->node;
        }))
      continue;
    report
        .at(end.ref(), Confidence::likely,
            "'" + name +
                "' is read before the GPU is done: the passes above are queued, and the clock "
                "does not wait for them")
        .help = "Call torch.cuda.synchronize() before each reading, or use CUDA events.";
    return;
  }
}

// The statement that takes one reading off the other and keeps what it gives: forward_time = t1 -
// t0. What is added up (forward_time += t1 - t0) goes into a line of the log, and no benchmark.
std::string_view told_as(const Program& program, const CallRef& start, const CallRef& end) {
  const std::string_view from = program.assigned_name(start.ref());
  const std::string_view to = program.assigned_name(end.ref());
  const FunctionRef here = program.enclosing_function(end.ref());
  for (const NodeId node : end.module->nodes_of(Kind::binary)) {
    const Ref difference{end.module, node};
    const Ref left = difference.child(diagnose::Field::left);
    const auto& tree = end.module->tree();
    if (tree[node].op == Op::subtract && !from.empty() &&
        tree[tree[node].parent].kind != Kind::augmented_assignment &&
        difference.child(diagnose::Field::right).text() == from &&
        (left == end.ref() || (!to.empty() && left.text() == to)) &&
        program.enclosing_function(difference) == here)
      return statement_of(difference).text();
  }
  return {};
}

// out = model(x) or loss.backward() between the two readings, which the GPU is given to do.
bool passes_between(const Program& program, const CallRef& start, const CallRef& end) {
  const auto& calls = start.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& each) {
    if (each.node <= start.call->node || each.node >= end.call->node) return false;
    const CallRef call{start.module, &each};
    return each.name == "backward" ||
           (!call.receiver() && call.positional(0) && !program.callee(call) &&
            (each.name == "model" || each.name == "net" ||
             says_any(each.name, {"generator", "discriminator"})));
  });
}

// float(loss), out.numpy() or out.to("cpu") between the two readings: the value is waited for.
bool takes_a_value(std::string_view text) {
  return waits_for_gpu(text) ||
         holds_any(text, {"float(", "int(", "bool(", "str(", "print(", ".numpy(", ".tolist(",
                          ".to(\"cpu", ".to('cpu", ".nonzero(", ".unique("});
}

// if out.sum() > 0: the outcome of what the GPU works out is waited for. Told apart from a setting
// (if args.amp) by a call in it, or by a name that is given its value between the readings.
bool asks_for_a_value(const CallRef& start, const CallRef& end) {
  const auto& tree = start.module->tree();
  std::vector<std::string_view> made;
  for (NodeId at = start.call->node + 1; at < end.call->node; ++at) {
    const Kind kind = tree[at].kind;
    const Ref node = start.ref().with(at);
    if (kind == Kind::assignment) made.push_back(node.child(diagnose::Field::left).text());
    const Ref condition =
        kind == Kind::assert_statement ? node : node.child(diagnose::Field::condition);
    if (!condition) continue;
    if (!facts::calls_in(condition).empty() ||
        std::any_of(made.begin(), made.end(),
                    [&](std::string_view name) { return facts::contains(condition.text(), name); }))
      return true;
  }
  return false;
}

// compute_time = end - start around one pass that is only queued, which nothing waits for: the time
// of a part of the step, by its name.
void check_times_of_parts(const Program& program, Report& report) {
  const auto clocks = program.calls(Api::time_now);
  for (std::size_t at = 0; at + 1 < clocks.size(); ++at) {
    // The next reading, in source order, of the same round.
    const CallRef& clock = clocks[at];
    const CallRef& end = clocks[at + 1];
    if (end.module != clock.module ||
        program.enclosing_function(end.ref()) != program.enclosing_function(clock.ref()) ||
        program.innermost_loop(end.ref()) != program.innermost_loop(clock.ref()))
      continue;
    const std::string_view told = told_as(program, clock, end);
    if (!says_any(told, {"forward", "backward", "compute", "fwd", "bwd"}) ||
        says_any(told, {"print(", "log"}) || takes_a_value(between(clock, end)) ||
        asks_for_a_value(clock, end) ||
        holds_any(between(clock, end), {"\n    for ", " for ", "while "}) ||
        !passes_between(program, clock, end) || !facts::is_reachable(program, end.ref()))
      continue;
    report
        .at(end.ref(), Confidence::likely,
            "the clock is read before the GPU is done: the pass above is queued, and the time is "
            "that of queueing it")
        .help = "Call torch.cuda.synchronize() before each reading, or use CUDA events.";
    return;
  }
}

// The function of the reading is called a benchmark.
bool is_in_benchmark(const Program& program, const CallRef& clock) {
  const FunctionRef function = clock ? program.enclosing_function(clock.ref()) : FunctionRef{};
  return function && facts::contains(facts::lowered(function.function->name), "bench");
}

// np.mean(throughput[3:]): the first steps are left out of what is shown.
bool leaves_out_first(Ref function) {
  const auto calls = facts::calls_in(function);
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    const std::string_view name = call.call->name;
    const Ref shown = call.positional(0);
    return (name == "mean" || name == "average" || name == "median" || name == "sum") && shown &&
           shown.kind() == Kind::subscript && shown.text().ends_with(":]") &&
           !shown.text().ends_with("[:]");
  });
}

// The same in the function of the clock, or in one that calls it.
bool leaves_out_first(const Program& program, const CallRef& clock) {
  for (const Ref place : diagnose::places_of(program, clock.ref()))
    if (const FunctionRef function = program.enclosing_function(place);
        function && leaves_out_first({function.module, function.function->node}))
      return true;
  return false;
}

}  // namespace

void check_benchmark_without_warmup(const Program& program, Report& report) {
  const bool on_gpus =
      facts::uses_cuda(program) || program.mentions("\"nccl") || program.mentions("'nccl");
  const bool wrapped = !program.wraps().empty();
  if ((on_gpus && (wrapped || program.uses(Api::hvd_optimizer))) || program.has_data_parallel())
    check_times_of_parts(program, report);
  if (!on_gpus || !wrapped) return;
  check_times_of_gpu(program, report);
  check_mean_of_steps(program, report);
  const bool saved = saves_benchmark(program);
  for (const CallRef& clock : program.calls(Api::time_now)) {
    const CallRef end = reading_after(program, clock);
    const NodeId begin = end ? begin_of(program, clock, end) : clock.call->node;
    const FunctionRef function = program.enclosing_function(end ? end.ref() : clock.ref());
    const std::string_view text =
        function ? function.module->text(function.function->node) : clock.module->tree().source();
    const bool is_benchmark =
        saved || is_in_benchmark(program, clock) || is_in_benchmark(program, end);
    const bool measures =
        measures_throughput(text) || (function && divides_by_elapsed(program, function));
    const NodeId last = end ? last_step(program, clock, end) : diagnose::kNoNode;
    const std::string_view tail = end ? behind(end, last) : "";
    if ((!is_benchmark && (!measures || is_told_in_hours(program, clock))) ||
        has_warm_steps(text) || leaves_out_first(program, clock) ||
        (tail.empty() ? waits_for_gpu(text) : waits_for_last_steps(program, end, last)) ||
        (end && callee_waits(program, clock, end, last)))
      continue;
    Ref loop;
    for (const TrainingLoop& training : program.training_loops())
      if ((training.batches.module == clock.module && training.batches.node > begin &&
           program.enclosing_function(training.batches) == function) ||
          (!tail.empty() && runs_in(program, training.batches, clock.ref())))
        loop = training.batches;
    if (!loop) loop = loop_behind(program, clock, last);
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
