#include "diagnose/to_ddp/late_draws.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/wrappers/changed_wrap.hpp"
#include "scenarios/pitfalls/wrappers/late_weights.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

bool is_told_of(const Finding& finding, const CallRef& draw) {
  return finding.rule == "DDP006" && finding.message.starts_with("weights are drawn") &&
         finding.file == draw.module->path() &&
         finding.line == draw.module->tree().line_of(draw.call->node);
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

std::vector<Finding> draws_to_send(const Program& rewritten, const std::vector<Finding>& found) {
  std::vector<Finding> out;
  const auto draws = pitfalls::draws_on_every_rank(rewritten);
  for (const pitfalls::LateDraw& draw : draws) {
    if (runs_another(rewritten, draw, draws)) continue;
    const auto told = std::find_if(found.begin(), found.end(), [&](const Finding& each) {
      return is_told_of(each, draw.call);
    });
    const Ref model = pitfalls::base_of(draw.model);
    const Ref statement = pitfalls::statement_of(draw.call.ref());
    if (told == found.end() || !stands_for_object(model) ||
        statement.kind() != Kind::expression_statement ||
        draw.call.module->import_path("torch") != "torch")
      continue;
    Finding made = *told;
    made.fix.reset();
    pitfalls::insert_after(draw.call.ref(), sending(model.text()),
                           "Send what rank 0 has drawn to all ranks", made);
    if (made.fix) out.push_back(std::move(made));
  }
  return out;
}

}  // namespace bench::diagnose
