#include "diagnose/to_ddp/late_draws.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/changed_wrap.hpp"
#include "scenarios/pitfalls/wrappers/late_weights.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// Above the batches, of what a wrapper made before holds: whether a loss comes from that one, as
// the rule asks, cannot be seen where its forward() is called by name.
bool is_of_wrapper(const Program& program, const pitfalls::LateDraw& draw) {
  return pitfalls::changed_wrap(program, draw.model, draw.call.ref()) != nullptr &&
         pitfalls::facts::training_loop_of(program, draw.call.ref()) == nullptr;
}

// A helper may be given bare networks as well: what is sent is that of a wrapper alone.
std::string sending(std::string_view model) {
  const std::string name(model);
  return "if isinstance(" + name +
         ", torch.nn.parallel.DistributedDataParallel):\n\tfor weight in " + name +
         ".state_dict().values():\n\t\ttorch.distributed.broadcast(weight, 0)";
}

// init_weights(net), where net.apply(init) stands in the function: that one is told as well.
bool runs_another(const Program& program, const pitfalls::LateDraw& draw,
                  const std::vector<pitfalls::LateDraw>& all) {
  const FunctionRef callee = program.callee(draw.call);
  return callee && std::any_of(all.begin(), all.end(), [&](const pitfalls::LateDraw& each) {
           return program.enclosing_function(each.call.ref()) == callee;
         });
}

}  // namespace

std::vector<Finding> draws_to_send(const Program& rewritten) {
  std::vector<Finding> out;
  const auto draws = pitfalls::draws_on_every_rank(rewritten);
  for (const pitfalls::LateDraw& draw : draws) {
    const Ref model = pitfalls::base_of(draw.model);
    const Ref statement = pitfalls::statement_of(draw.call.ref());
    if (runs_another(rewritten, draw, draws) || !is_of_wrapper(rewritten, draw) ||
        !stands_for_object(model) || statement.kind() != Kind::expression_statement ||
        draw.call.module->import_path("torch") != "torch")
      continue;
    Finding made;
    made.rule = "DDP006";
    made.file = draw.call.module->path();
    made.line = draw.call.module->tree().line_of(draw.call.call->node);
    made.message =
        "weights are drawn at random after the model was wrapped: DDP copies parameters between "
        "ranks only when it is built, so each rank trains from weights of its own";
    pitfalls::insert_after(draw.call.ref(), sending(model.text()),
                           "Send what rank 0 has drawn to all ranks", made);
    if (made.fix) out.push_back(std::move(made));
  }
  return out;
}

}  // namespace bench::diagnose
