// Counts of samples that decide how training goes on, and are those of one rank now.
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/supplies.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// x.size(0), images.shape[0]: how many samples a batch has.
bool counts_batch(std::string_view text) {
  return pitfalls::holds_any(text, {".size(0)", ".size()[0]", ".shape[0]"}) &&
         text.find_first_of("*/+-") == std::string_view::npos;
}

// The same of n after n = x.size(0).
bool counts_batch(const Program& program, Ref count) {
  if (counts_batch(count.text())) return true;
  const auto& sources = program.sources(count);
  return count.kind() == Kind::identifier && sources.size() == 1 &&
         sources.front().how == Source::How::value && counts_batch(sources.front().ref.text());
}

// seen % 1000 < 64: what is due each so many samples.
Ref period_of(const Program& program, Ref counter, Ref subtree) {
  const auto& tree = subtree.module->tree();
  for (NodeId at = subtree.node; at < tree[subtree.node].last; ++at) {
    const Ref rest = subtree.with(at);
    if (rest.kind() == Kind::binary && tree[at].op == Op::modulo &&
        rest.child(Field::left).text() == counter.text() &&
        program.same_variable(rest.child(Field::left), counter))
      return rest;
  }
  return {};
}

// if is_due(seen): ..., of a function that asks for seen % period.
Ref period_in_callee(const Program& program, const CallRef& call, Ref counter) {
  const FunctionRef callee = program.callee(call);
  if (!callee) return {};
  for (const NodeId node : callee.module->nodes_of(Kind::binary)) {
    const Ref rest{callee.module, node};
    const Ref counted = rest.child(Field::left);
    if (callee.module->tree()[node].op == Op::modulo &&
        callee.module->tree().contains(callee.function->body, node) &&
        counted.kind() == Kind::identifier) {
      const Ref given = pitfalls::facts::argument_for(call, callee, counted.text());
      if (given && given.text() == counter.text()) return rest;
    }
  }
  return {};
}

// The first of both in the loop.
Ref period_by(const Program& program, Ref counter, Ref loop) {
  if (const Ref here = period_of(program, counter, loop)) return here;
  for (const CallRef& call : pitfalls::facts::calls_in(loop))
    if (const Ref there = period_in_callee(program, call, counter)) return there;
  return {};
}

// scheduler.step(seen), warm_up(optimizer, seen), `while seen < total:`; empty where it is only
// shown or divided by.
Ref decision_by(const Program& program, Ref counter) {
  const Module& module = *counter.module;
  for (const Call& each : module.calls()) {
    const CallRef call{&module, &each};
    const auto given = pitfalls::facts::arguments_of(call);
    const bool takes = std::any_of(given.begin(), given.end(), [&](Ref argument) {
      return argument.text() == counter.text() && program.same_variable(argument, counter);
    });
    const std::string_view owner = call.receiver() ? call.receiver().text() : std::string_view{};
    if (takes && (pitfalls::says_any(each.name, {"lr", "warm", "anneal", "schedul"}) ||
                  (each.name == "step" && pitfalls::says_any(owner, {"sched", "lr", "warm"}))))
      return call.ref();
  }
  for (const NodeId node : module.loops()) {
    const Ref loop{&module, node};
    if (loop.kind() != Kind::while_statement) continue;
    const Ref condition = loop.child(Field::condition);
    const Ref left = condition.kind() == Kind::comparison
                         ? condition.with(module.tree()[condition.node].first_child)
                         : Ref{};
    if (left && left.text() == counter.text() && program.same_variable(left, counter)) return loop;
  }
  return {};
}

bool is_shared_out(const Left& left, const TrainingLoop& loop) {
  const auto supplies = supplies_of(left, loop);
  return std::any_of(supplies.begin(), supplies.end(),
                     [](const Supply& each) { return each.share == Share::shared; });
}

}  // namespace

void tell_counts_of_samples(Left& left) {
  for (const TrainingLoop* loop : trainings(left)) {
    if (!is_shared_out(left, *loop)) continue;
    const Module& module = *loop->batches.module;
    for (const NodeId node : module.nodes_of(Kind::augmented_assignment)) {
      const Ref count{&module, node};
      const Ref counter = count.child(Field::left);
      if (!module.tree().contains(loop->batches.node, node) ||
          !counts_batch(left.program, count.child(Field::right)) || left.is_told(count))
        continue;
      Ref decision = decision_by(left.program, counter);
      if (!decision) decision = period_by(left.program, counter, loop->batches);
      if (decision)
        left.tell(Harm::figures, {count},
                  "`" + std::string(counter.text()) + "` counts the samples of one rank now, and " +
                      place_of(decision) +
                      " goes by it: what took n steps takes N times as many. Add the number times "
                      "dist.get_world_size().");
    }
  }
}

}  // namespace bench::diagnose
