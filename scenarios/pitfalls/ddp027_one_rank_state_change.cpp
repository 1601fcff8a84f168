#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::RankTest;
using diagnose::Wrap;
using diagnose::Wrapper;

void check_one_rank_state_change(const Program& program, Report& report) {
  if (!program.has_ddp()) return;
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Ref receiver = load.receiver();
    if (!receiver || program.guarded_by_rank(load.ref()) == RankTest::none) continue;
    // The averaged copy that one rank keeps for evaluation.
    if (receiver.text().find("ema") != std::string_view::npos) continue;
    Ref model = receiver;
    if (model.kind() == Kind::attribute && model.child(Field::attribute).text() == "module")
      model = model.child(Field::object);
    const Wrap* wrap = program.wrap_of(model);
    if (wrap == nullptr || wrap->kind != Wrapper::ddp ||
        !program.runs_before(wrap->call.ref(), load.ref()))
      continue;
    report
        .at(load.ref(), Confidence::certain,
            "one rank alone loads weights after the model was wrapped: DDP copies parameters "
            "between ranks "
            "only when it is built, so the others keep theirs")
        .help = "Load before wrapping, or on every rank.";
  }
  for (const CallRef& step : program.calls_named("step")) {
    if (!step.receiver() || program.guarded_by_rank(step.ref()) == RankTest::none) continue;
    if (!program.comes_from(step.receiver(), Api::optimizer)) continue;
    report
        .at(step.ref(), Confidence::certain,
            "one rank alone steps its optimizer: the replicas drift apart from here")
        .help = "Step on every rank.";
  }
  for (const Wrap& wrap : program.wraps())
    if (const Ref flag = wrap.call.keyword("init_sync"); flag && program.is_literal_false(flag))
      report
          .at(flag, Confidence::check,
              "init_sync=False: ranks start from whatever weights they built")
          .help = "Leave it out unless every rank builds identical weights.";
}

}  // namespace bench::pitfalls
