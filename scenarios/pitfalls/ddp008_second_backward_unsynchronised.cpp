#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"
#include "scenarios/pitfalls/wrappers/prepared_once.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::TrainingLoop;
using diagnose::Wrapper;

namespace {

// loss after loss = other + part: what flows through `part` flows back a second time.
bool is_addend(const Program& program, Ref part, Ref loss) {
  if (part.kind() != diagnose::Kind::identifier) return false;
  for (const diagnose::Source& source : program.sources(loss)) {
    if (source.ref.kind() != diagnose::Kind::binary) continue;
    const auto& tree = source.ref.module->tree();
    for (auto at = source.ref.node; at < tree[source.ref.node].last; ++at)
      if (tree[at].kind == diagnose::Kind::identifier && tree.text(at) == part.text() &&
          tree[tree[at].parent].kind == diagnose::Kind::binary)
        return true;
  }
  return false;
}

// The next forward pass of the wrapper and its backward, above the step: the reducer takes what has
// been added up by then, as it does below no_sync().
bool is_reduced_later(const Program& program, const TrainingLoop& loop, const CallRef& second) {
  const auto is_below = [&](const CallRef& call) {
    return call.module == second.module && call.call->node > second.call->node &&
           program.enclosing_function(call.ref()) == program.enclosing_function(second.ref()) &&
           program.innermost_loop(call.ref()) == program.innermost_loop(second.ref());
  };
  const auto of_second = facts::forwards_behind(program, facts::loss_of(second));
  return std::any_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& third) {
    if (!is_below(third) || !is_unconditional(program, third.ref())) return false;
    for (const char* name : {"step", "zero_grad"})
      for (const CallRef& call : program.calls_named(name))
        if (is_below(call) && call.call->node < third.call->node) return false;
    const auto forwards = facts::forwards_behind(program, facts::loss_of(third));
    return std::any_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
      return is_below(forward.call) &&
             std::any_of(of_second.begin(), of_second.end(),
                         [&](const auto& other) { return other.wrap == forward.wrap; });
    });
  });
}

// What the loss may be where both backward passes run: loss = a, and in the branch that does not
// come by the other one loss = a + b.
std::vector<Ref> values_beside(const Program& program, Ref loss, const CallRef& other) {
  std::vector<Ref> out;
  const auto& sources = program.sources(loss);
  for (const diagnose::Source& source : sources)
    if (source.ref.module == other.module && !never_both(program, source.ref, other.ref()))
      out.push_back(source.ref);
  if (out.empty() || out.size() == sources.size()) return {loss};
  return out;
}

// Forward passes behind the loss in a run that comes by both backward passes: what stands in
// another branch of the same condition gives nothing there.
std::vector<diagnose::ForwardCall> forwards_of(const Program& program, const CallRef& backward,
                                               const CallRef& other) {
  const auto is_elsewhere = [&](Ref call) {
    return never_both(program, call, backward.ref()) || never_both(program, call, other.ref());
  };
  std::vector<Ref> calls;
  for (const Ref value : values_beside(program, facts::loss_of(backward), other))
    for (const Ref call : facts::calls_behind(program, value, is_elsewhere)) calls.push_back(call);
  std::vector<diagnose::ForwardCall> out;
  for (const diagnose::ForwardCall& forward : program.forward_calls())
    if (!is_elsewhere(forward.call.ref()) &&
        std::find(calls.begin(), calls.end(), forward.call.ref()) != calls.end())
      out.push_back(forward);
  return out;
}

// The call of a helper that the loss was given last above its backward pass, in the same block.
CallRef made_above(const Program& program, const CallRef& backward) {
  const Ref loss = facts::loss_of(backward);
  if (!loss || loss.kind() != diagnose::Kind::identifier) return {};
  const auto& tree = loss.module->tree();
  const auto block = tree[statement_of(backward.ref()).node].parent;
  CallRef out;
  for (const auto index : loss.module->defs_of(loss.text(), false)) {
    const diagnose::Def& def = loss.module->defs()[index];
    if (def.target > backward.call->node || def.value == diagnose::kNoNode ||
        loss.module->function_of(def.target) != loss.module->function_of(loss.node))
      continue;
    const CallRef made = program.as_call(loss.with(def.value));
    const bool is_beside = tree[statement_of(loss.with(def.target)).node].parent == block;
    out = is_beside && made && program.callee(made) ? made : CallRef{};
  }
  return out;
}

// Of a forward pass in a helper both losses may have a run of their own: each is what its own call
// of the helper gives.
bool is_one_run(const Program& program, const CallRef& forward, const CallRef& first,
                const CallRef& second) {
  const auto here = program.enclosing_function(first.ref());
  if (program.enclosing_function(forward.ref()) == here) return true;
  const CallRef helper = made_above(program, first);
  const CallRef other = made_above(program, second);
  return !helper || !other || helper.ref() == other.ref();
}

}  // namespace

void check_second_backward_unsynchronised(const Program& program, Report& report) {
  if (!program.has_ddp()) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (std::size_t i = 1; i < loop.backwards.size(); ++i) {
      const CallRef& second = loop.backwards[i];
      for (std::size_t j = 0; j < i; ++j) {
        const CallRef& first = loop.backwards[j];
        if (first.module != second.module ||
            program.enclosing_function(first.ref()) != program.enclosing_function(second.ref()) ||
            never_both(program, first.ref(), second.ref()))
          continue;
        const auto before = forwards_of(program, first, second);
        const auto after = forwards_of(program, second, first);
        const bool shared = std::any_of(before.begin(), before.end(), [&](const auto& a) {
          return std::any_of(after.begin(), after.end(), [&](const auto& b) {
            return a.call.ref() == b.call.ref() && a.wrap->kind == Wrapper::ddp &&
                   is_one_run(program, a.call, first, second);
          });
        });
        const bool prepared_once =
            !shared && is_prepared_once(program, before, after, first, second);
        if ((!shared && !prepared_once) || is_reduced_later(program, loop, second)) continue;
        Finding& finding = report.at(
            second.ref(), Confidence::certain,
            prepared_once ? "a second backward pass through one DDP model, with all its forward "
                            "passes above the first: only the first is reduced, this one adds "
                            "local gradients and the replicas drift apart"
                          : "a second backward pass on one DDP forward: only the first is reduced, "
                            "this one adds local gradients and the replicas drift apart");
        if (prepared_once) finding.confidence = Confidence::likely;
        finding.help = "Add the losses and call backward once, or run a forward pass for each.";
        // Another model stands between, which may detach what it is given.
        const bool through_another = std::any_of(after.begin(), after.end(), [&](const auto& b) {
          return std::none_of(before.begin(), before.end(),
                              [&](const auto& a) { return a.call.ref() == b.call.ref(); });
        });
        if (through_another && !prepared_once &&
            !is_addend(program, facts::loss_of(first), facts::loss_of(second)))
          tell_as_note(finding);
        j = i;
      }
    }
}

void judge_second_backward_unsynchronised(const RunEvidence& run, RunReport& report) {
  const std::vector<Json> sums = run.of_every_rank("gradient_sum");
  const double forwards = run.number("ddp_forwards");
  if (!(forwards > 0) || run.number("backwards") <= forwards || ranks_agree(sums)) return;
  Finding& finding =
      report.add(Confidence::certain, figure(run.number("backwards")) + " backward passes over " +
                                          figure(forwards) +
                                          " forward pass of the wrapper: the ranks' "
                                          "gradients are " +
                                          listed(Json(sums)));
  finding.help = "Add the losses and call backward once, or call the wrapper for each loss.";
  finding.evidence.emplace_back("gradient sums by rank", listed(Json(sums)));
}

Price price_second_backward_unsynchronised(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const auto wrong = broken.of_every_rank("gradient_sum");
  const auto right = cured.of_every_rank("gradient_sum");
  if (wrong.size() < 2 || right.size() < 2) return price;
  price.reproduced = !ranks_agree(wrong);
  price.gone = ranks_agree(right);
  const double apart = wrong[1].get<double>() - wrong[0].get<double>();
  price.cost = 100 * apart / right[0].get<double>();
  price.unit = "% of the gradient between the ranks";
  price.seen = "silent: gradients of " + listed(Json(wrong)) + " on ranks that ought to have " +
               listed(Json(right));
  return price;
}

}  // namespace bench::pitfalls
