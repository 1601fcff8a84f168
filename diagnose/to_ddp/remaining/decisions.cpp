// What each rank decides or measures for itself.
#include "diagnose/to_ddp/loader_choice.hpp"
#include "diagnose/to_ddp/loader_loops.hpp"
#include "diagnose/to_ddp/remaining/ranks_talk.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/supplies.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/metrics/evaluation_loops.hpp"
#include "scenarios/pitfalls/metrics/phase_loops.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/local_decisions.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// patience, early_stop, a counter of rounds without progress.
bool hangs_on_own_figure(const Program& program, Ref condition, Ref round) {
  const auto decisions = pitfalls::decisions_behind(program, condition, round);
  const auto is_own = [&](Ref each) {
    return pitfalls::stops_early(program, each) ||
           pitfalls::counts_bad_rounds(program, each, round);
  };
  return is_own(condition) || std::any_of(decisions.begin(), decisions.end(), is_own);
}

bool is_left_early(const Left& left, Ref leave, Ref round) {
  const auto& tree = round.module->tree();
  if (!tree.contains(round.node, leave.node) || !left.runs_on_every_rank(leave)) return false;
  if (leave.kind() == Kind::break_statement && left.program.innermost_loop(leave) != round)
    return false;
  for (const Guard& guard : left.program.guards(leave))
    if (tree.contains(round.node, guard.condition.node) &&
        hangs_on_own_figure(left.program, guard.condition, round))
      return true;
  return false;
}

// loader of `for batch in loader` is shared out already.
bool is_shared_out(const Program& program, Ref loop) {
  for (const CallRef& loader : pitfalls::loaders_of(program, pitfalls::goes_over(program, loop)))
    if (pitfalls::sampler_of(program, loader)) return true;
  return false;
}

// for batch in val_loader: out = model(batch), and not each loop of a function that evaluates.
bool goes_over_evaluation_data(const Program& program, Ref loop) {
  return pitfalls::is_loop_of_evaluation(program, loop) &&
         pitfalls::passes_without_grad(program, loop) &&
         (pitfalls::is_evaluation_loop(program, loop) ||
          !pitfalls::loaders_of(program, pitfalls::goes_over(program, loop)).empty());
}

bool makes_backward_pass(const CallRef& call) { return call.call->name == "backward"; }

// for _ in range(steps): batch = next(batches), below model.eval(), of an iterator that is not
// known to be a rank's share.
bool draws_evaluation_data(const Program& program, Ref loop) {
  const CallRef range = program.as_call(loop.child(Field::right));
  if (loop.kind() != Kind::for_statement || !range || range.call->name != "range" ||
      !pitfalls::stands_in_evaluation(program, loop) ||
      program.subtree_calls(loop.child(Field::body), makes_backward_pass))
    return false;
  const auto calls = pitfalls::facts::calls_in(loop);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->name == "next" && !call.receiver() && call.positional(0) &&
           !call.positional(1) && pitfalls::loaders_of(program, call.positional(0)).empty();
  });
}

enum class Evaluations { counted, left_out };

// A whole loop over batches, or a function that holds one, stands in the block.
bool holds_batches(const Program& program, Ref block,
                   Evaluations evaluations = Evaluations::counted) {
  const auto functions = program.reached(block);
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop& loop) {
    const FunctionRef around = program.enclosing_function(loop.batches);
    const bool is_evaluation =
        evaluations == Evaluations::left_out && program.is_evaluation(loop.batches);
    return !is_evaluation &&
           ((loop.batches.module == block.module &&
             block.module->tree().contains(block.node, loop.batches.node)) ||
            std::find(functions.begin(), functions.end(), around) != functions.end());
  });
}

// except RuntimeError as e: if "out of memory" in str(e): torch.cuda.empty_cache(), else: raise
bool goes_on(Ref handler) {
  const auto& tree = handler.module->tree();
  const std::string_view head =
      handler.text().substr(0, std::min(handler.text().find('\n'), handler.text().size()));
  if (pitfalls::facts::contains(head, "KeyboardInterrupt") ||
      pitfalls::facts::contains(head, "StopIteration"))
    return false;
  NodeId block = kNoNode;
  for (NodeId at = tree[handler.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::block) block = at;
  if (block == kNoNode) return false;
  for (NodeId at = tree[block].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::raise_statement || tree[at].kind == Kind::return_statement ||
        tree[at].kind == Kind::break_statement || pitfalls::facts::ends_process(handler.with(at)))
      return false;
  return true;
}

}  // namespace

void tell_swallowed_steps(Left& left) {
  std::vector<Ref> places;
  for (const Module* module : left.program.modules())
    for (const NodeId node : module->nodes_of(Kind::try_statement)) {
      const auto& tree = module->tree();
      const Ref body{module, tree.child(node, Field::body)};
      if (!body || left.program.loops_around(body).empty() || !left.runs_on_every_rank(body) ||
          !left.program.subtree_calls(body, makes_backward_pass) ||
          holds_batches(left.program, body))
        continue;
      for (NodeId at = tree[node].first_child; at != kNoNode; at = tree[at].next_sibling)
        if (const Ref handler{module, at}; tree[at].kind == Kind::except_clause &&
                                           goes_on(handler) && !left.is_found(handler, "DDP015"))
          places.push_back(handler);
    }
  left.tell(Harm::stops, places,
            "a rank that comes here has skipped its backward pass, while the others wait for its "
            "gradients: they hang, or pair up one step off. Let it raise, or have all ranks skip "
            "the step together (all-reduce a flag before the backward pass).");
}

namespace {

bool ends_run(const CallRef& call) {
  return pitfalls::says_any(call.call->name,
                            {"exit", "quit", "abort", "kill", "raise", "post_mortem"});
}

// The handler, or a function of the program that it calls, raises or ends the process.
bool raises_or_ends(const Program& program, Ref handler) {
  std::vector<Ref> blocks{handler};
  for (const FunctionRef& each : program.reached(handler))
    blocks.push_back({each.module, each.function->body});
  return std::any_of(blocks.begin(), blocks.end(), [](Ref block) {
    const auto& tree = block.module->tree();
    for (NodeId at = block.node; at < tree[block.node].last; ++at)
      if (tree[at].kind == Kind::raise_statement) return true;
    const auto calls = pitfalls::facts::calls_in(block);
    return std::any_of(calls.begin(), calls.end(), ends_run);
  });
}

// return 1, failed = True: what called it may end the run by that.
bool reports_failure(Ref handler) {
  const auto& tree = handler.module->tree();
  for (NodeId at = handler.node; at < tree[handler.node].last; ++at) {
    if (tree[at].kind != Kind::return_statement && tree[at].kind != Kind::assignment) continue;
    const std::string_view text = tree.text(at);
    const std::string_view value = text.substr(text.find_last_of(" =") + 1);
    if (value == "True" || value == "False" ||
        (!value.empty() && value.find_first_not_of("-0123456789") == std::string_view::npos))
      return true;
  }
  return false;
}

// except:, except Exception as e: and their kin, whatever is logged there; none that raises again,
// ends the process or says what has happened.
bool hides_failure(const Program& program, Ref handler) {
  std::string_view head = handler.text();
  head = head.substr(0, head.find(':'));
  head.remove_prefix(std::string_view("except").size());
  if (head.find_first_not_of(' ') != std::string_view::npos &&
      !pitfalls::holds_any(head, {"Exception", "RuntimeError", "OutOfMemoryError"}))
    return false;
  return !raises_or_ends(program, handler) && !reports_failure(handler);
}

}  // namespace

void tell_hidden_failures(Left& left) {
  std::vector<Ref> places;
  for (const Module* module : left.program.modules())
    for (const NodeId node : module->nodes_of(Kind::try_statement)) {
      const auto& tree = module->tree();
      const Ref body{module, tree.child(node, Field::body)};
      if (!body || !left.runs_on_every_rank(body) ||
          !holds_batches(left.program, body, Evaluations::left_out))
        continue;
      for (NodeId at = tree[node].first_child; at != kNoNode; at = tree[at].next_sibling)
        if (const Ref handler{module, at};
            tree[at].kind == Kind::except_clause && hides_failure(left.program, handler))
          places.push_back(handler);
    }
  left.tell(Harm::may_stop, places,
            "training runs in this try: a rank that fails there (out of memory, a file that is "
            "missing) comes here and goes on as if nothing had happened, so that torchrun does not "
            "stop the others, and they wait for its gradients. Raise again behind what is done "
            "here.");
}

void tell_questions(Left& left) {
  std::vector<Ref> places;
  for (const std::string_view name : {"input", "raw_input", "confirm"})
    for (const CallRef& call : left.program.calls_named(name))
      if ((name == "confirm" ? call.call->path == "click.confirm"
                             : !call.receiver() && !left.program.callee(call)) &&
          left.runs_on_every_rank(call.ref()))
        places.push_back(call.ref());
  left.tell(Harm::stops, places,
            "every rank asks at one keyboard, and each gets another answer, or none. Take the "
            "answer from an option, or ask on rank 0 and send it with "
            "dist.broadcast_object_list.");
}

namespace {

// The loops over epochs; where no training is in sight, the outermost ones that call something out
// of sight that trains by its name.
std::vector<Ref> epoch_loops(const Left& left) {
  const Program& program = left.program;
  std::vector<Ref> out;
  for (const TrainingLoop& loop : program.training_loops())
    if (loop.epochs && left.runs_on_every_rank(loop.epochs)) out.push_back(loop.epochs);
  if (!program.training_loops().empty() || !left.trains()) return out;
  for (const Module* module : program.modules()) {
    NodeId behind = 0;
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      if (node < behind || !left.runs_on_every_rank(loop) || !hands_to_training(program, loop))
        continue;
      behind = module->tree()[node].last;
      out.push_back(loop);
    }
  }
  return out;
}

}  // namespace

void tell_early_stops(Left& left) {
  if (ranks_talk(left.program)) return;
  std::vector<Ref> places;
  for (const Ref& epochs : epoch_loops(left)) {
    const Module& module = *epochs.module;
    // while epoch < args.epochs and bad_rounds < args.patience:
    const Ref condition =
        epochs.kind() == Kind::while_statement ? epochs.child(Field::condition) : Ref{};
    if (condition && hangs_on_own_figure(left.program, condition, epochs) &&
        !left.is_found(condition, "DDP015"))
      places.push_back(condition);
    for (const auto& nodes :
         {module.nodes_of(Kind::break_statement), module.nodes_of(Kind::return_statement)})
      for (const NodeId node : nodes)
        if (const Ref leave{&module, node};
            is_left_early(left, leave, epochs) && !left.is_found(leave, "DDP015"))
          places.push_back(leave);
  }
  left.tell(
      Harm::stops, places,
      "every rank decides by a figure of its own whether training ends here: where they differ, "
      "one leaves the loop and the others wait for it for ever. Decide on rank 0 and broadcast "
      "the decision, or all-reduce the figure first.");
}

namespace {

// self.metric = 0, and nothing else.
bool is_never_measured(const Program& program, Ref figure) {
  const auto& sources = program.sources(figure);
  const auto& defs = figure.module->defs_of(figure.text(), false);
  const bool is_added_to = std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    return figure.module->defs()[index].kind == DefKind::augmented;
  });
  return !is_added_to && !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const Source& source) {
           const Kind kind = source.ref.kind();
           return source.how == Source::How::value &&
                  (kind == Kind::integer || kind == Kind::floating || kind == Kind::none_literal);
         });
}

}  // namespace

void tell_plateau_steps(Left& left) {
  if (ranks_talk(left.program)) return;
  std::vector<Ref> places;
  for (const CallRef& step : left.program.calls_named("step")) {
    const Ref scheduler = step.receiver();
    if (!scheduler || !step.positional(0) || is_never_measured(left.program, step.positional(0)))
      continue;
    const auto& sources = left.program.sources(scheduler);
    const bool is_plateau = std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      const CallRef made = left.program.as_call(source.ref);
      return made && made.call->name == "ReduceLROnPlateau";
    });
    if (is_plateau && left.runs_on_every_rank(step.ref()) && !left.is_found(step.ref(), "DDP027"))
      places.push_back(step.ref());
  }
  left.tell(Harm::figures, places,
            "every rank lowers its learning rate by a figure of its own: where they differ, ranks "
            "train at different rates. All-reduce the figure first.");
}

namespace {

// for phase in ["train", "val"]: for batch in loaders[phase], where a step has shared out the data
// of the training alone.
void tell_phases(Left& left) {
  std::vector<Ref> places;
  for (const TrainingLoop* loop : trainings(left)) {
    const auto loaders = loaders_behind(left.program, loop->iterable);
    const bool shares_one = std::any_of(loaders.begin(), loaders.end(), [&](const CallRef& each) {
      return new_sampler(left.program, each) && !choice_of_item(left.program, each).empty();
    });
    if (shares_one && pitfalls::trains_in_one_phase(left.program, loop->batches))
      places.push_back(loop->batches);
  }
  left.tell(Harm::waste, places,
            "where this loop evaluates, every rank goes over all of the data: N times the work, "
            "for figures that differ by rounding and by each rank's own BatchNorm statistics at "
            "most. It may stay where no rank decides anything by them.");
}

}  // namespace

void tell_evaluation(Left& left) {
  if (!left.trains()) return;
  tell_phases(left);
  std::vector<Ref> places;
  for (const Module* module : left.program.modules()) {
    NodeId behind = 0;  // the last loop, whose inner ones are part of it
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      if (node < behind ||
          !(goes_over_evaluation_data(left.program, loop) ||
            draws_evaluation_data(left.program, loop)) ||
          !left.runs_on_every_rank(loop) || is_shared_out(left.program, loop))
        continue;
      behind = module->tree()[node].last;
      places.push_back(loop);
    }
  }
  left.tell(
      Harm::waste, places,
      "every rank evaluates all of this data: N times the work, for figures that differ by "
      "rounding "
      "and by each rank's own BatchNorm statistics at most. It may stay where no rank decides "
      "anything by them; or evaluate on rank 0 alone, through model.module and with "
      "dist.barrier() behind it.");
}

}  // namespace bench::diagnose
