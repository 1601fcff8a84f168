// Passes of one model that a single backward pass goes through: DDP copies buffers into place
// before each of them, and the backward pass finds what an earlier one has saved changed.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// A class that has buffers, or whose layers a helper with BatchNorm makes: norm_of(channels).
bool has_buffers(const Program& program, const ClassRef& cls) {
  const std::string_view text = cls.module->text(cls.cls->node);
  if (contains(text, "BatchNorm") || contains(text, "register_buffer") ||
      contains(text, "torchvision.models."))
    return true;
  return static_cast<bool>(program.subtree_calls(
      {cls.module, cls.cls->node},
      [](const CallRef& call) { return contains(call.call->name, "BatchNorm"); }));
}

// What is wrapped has buffers, or may have: its code is not in sight.
bool may_have_buffers(const Program& program, const Wrap& wrap) {
  if (pitfalls::facts::has_batch_norm(program, wrap)) return true;
  if (wrap.classes.empty()) {
    const auto& sources = program.module_sources(wrap.module);
    return std::none_of(sources.begin(), sources.end(), [&](const Source& source) {
      const CallRef made = program.as_call(source.ref);
      return made && made.call->path.starts_with("torch.nn.");
    });
  }
  const auto classes = pitfalls::facts::wrapped_classes(program, wrap);
  return std::any_of(classes.begin(), classes.end(),
                     [&](const ClassRef& cls) { return has_buffers(program, cls); });
}

bool copies_buffers(const Program& program, const ForwardCall& forward) {
  return forward.wrap->kind == Wrapper::ddp && !program.under_no_grad(forward.call.ref()) &&
         !program.is_literal_false(forward.wrap->call.keyword("broadcast_buffers")) &&
         may_have_buffers(program, *forward.wrap);
}

// for x, y in held: a pass over other data, each batch of which is done with in its round.
bool draws_from_loader(const Program& program, Ref loop) {
  const Ref items = loop.child(Field::right);
  return items && !pitfalls::loaders_of(program, program.strip_iterable(items)).empty();
}

// In a loop of its own below the one over batches: for image in images: net(image), perhaps in a
// function that the batch is handed to. A pass that has its backward in the same loop is none.
bool is_repeated(const Left& left, const ForwardCall& forward, const TrainingLoop& loop,
                 const std::vector<FunctionRef>& reached) {
  const Program& program = left.program;
  const Ref call = forward.call.ref();
  const Ref inner = program.innermost_loop(call);
  if (!inner || inner == loop.batches || inner == loop.epochs || program.is_evaluation(call) ||
      draws_from_loader(program, inner) || !copies_buffers(program, forward))
    return false;
  const auto& tree = inner.module->tree();
  const bool is_below =
      (inner.module == loop.batches.module && tree.contains(loop.batches.node, inner.node)) ||
      std::find(reached.begin(), reached.end(), program.enclosing_function(inner)) != reached.end();
  return is_below &&
         std::none_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& backward) {
           return inner.module == backward.module && tree.contains(inner.node, backward.call->node);
         });
}

bool has_backward_between(const Program& program, Ref first, Ref second) {
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    return backward.module == first.module && backward.call->node > first.node &&
           backward.call->node < second.node;
  });
}

// Both run on the way to one backward pass, the second below the first.
bool are_in_turn(const Program& program, Ref first, Ref second) {
  return first.module == second.module && first.node < second.node &&
         program.enclosing_function(first) == program.enclosing_function(second) &&
         !pitfalls::facts::exclusive(first, second) && !program.under_no_grad(first) &&
         !program.under_no_grad(second) && !has_backward_between(program, first, second);
}

// The second of two passes behind the loss, each a call of its own: net(x), net(y), or two calls of
// a helper that makes one.
std::vector<Ref> second_passes(const Program& program, Ref loss) {
  std::vector<Ref> out;
  const auto forwards = pitfalls::facts::forwards_behind(program, loss);
  for (const ForwardCall& second : forwards)
    if (copies_buffers(program, second) &&
        std::any_of(forwards.begin(), forwards.end(), [&](const ForwardCall& first) {
          return first.wrap == second.wrap &&
                 are_in_turn(program, first.call.ref(), second.call.ref());
        }))
      out.push_back(second.call.ref());
  const auto behind = pitfalls::facts::calls_behind(program, loss);
  for (const ForwardCall& forward : forwards) {
    const FunctionRef helper = program.enclosing_function(forward.call.ref());
    if (!helper || !copies_buffers(program, forward)) continue;
    for (const Ref second : behind)
      if (program.callee(program.as_call(second)) == helper &&
          std::any_of(behind.begin(), behind.end(), [&](Ref first) {
            return program.callee(program.as_call(first)) == helper &&
                   are_in_turn(program, first, second);
          }))
        out.push_back(second);
  }
  return out;
}

}  // namespace

std::vector<Ref> repeated_forwards(const Left& left) {
  const Program& program = left.program;
  std::vector<Ref> places;
  if (program.uses(Api::convert_sync_batch_norm)) return places;
  for (const TrainingLoop& loop : program.training_loops()) {
    if (!left.runs_on_every_rank(loop.batches)) continue;
    const auto reached = program.reached(loop.batches);
    for (const ForwardCall& forward : program.forward_calls())
      if (is_repeated(left, forward, loop, reached) && !left.is_found(forward.call.ref(), "DDP011"))
        places.push_back(forward.call.ref());
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = pitfalls::facts::loss_of(backward);
      if (!loss || left.is_found(loss, "DDP008")) continue;
      for (const Ref pass : second_passes(program, loss)) places.push_back(pass);
    }
  }
  return places;
}

void tell_repeated_forwards(Left& left) {
  const std::vector<Ref> places = repeated_forwards(left);
  left.tell(
      Harm::may_stop, places,
      "this model runs several times before one backward pass, and DDP copies rank 0's buffers "
      "into place before each run: with BatchNorm in it, backward fails with \"modified by an "
      "inplace operation\". Pass broadcast_buffers=False, or run all inputs in one pass.");
}

}  // namespace bench::diagnose
