#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/trial_prices.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::TrainingLoop;

namespace {

bool names_a_model(std::string_view text) {
  const std::string plain = facts::lowered(text);
  return facts::contains(plain, "model") || facts::contains(plain, "net");
}

// model.encode(x), loss_fn(model, x): a second pass, which may be the one that trains.
bool may_be_another_pass(const Program& program, Ref node) {
  const CallRef call = program.as_call(node);
  if (!call || program.under_no_grad(node)) return false;
  if (const Ref object = call.receiver(); object && names_a_model(object.text())) return true;
  for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
    if ((argument.kind() == diagnose::Kind::identifier ||
         argument.kind() == diagnose::Kind::attribute) &&
        names_a_model(argument.text()))
      return true;
  return false;
}

}  // namespace

void check_no_grad_training_forward(const Program& program, Report& report) {
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = facts::loss_of(backward);
      std::vector<Ref> forwards;
      for (const auto& forward : facts::forwards_behind(program, loss))
        forwards.push_back(forward.call.ref());
      if (forwards.empty())
        for (const Ref& node : facts::calls_behind(program, loss)) {
          const CallRef call = program.as_call(node);
          if (call.module->text(call.call->function) == "self") continue;  // within a model
          const ClassRef cls = program.class_of({call.module, call.call->function});
          const std::string name = facts::lowered(call.module->text(call.call->function));
          if ((cls && program.derives_from(cls, Api::module_class)) || name == "model" ||
              name == "net" || name == "self.model")
            forwards.push_back(node);
        }
      const bool all =
          !forwards.empty() && std::all_of(forwards.begin(), forwards.end(),
                                           [&](Ref at) { return program.under_no_grad(at); });
      const auto behind = all ? facts::calls_behind(program, loss) : std::vector<Ref>{};
      if (!all || std::any_of(behind.begin(), behind.end(),
                              [&](Ref at) { return may_be_another_pass(program, at); }))
        continue;
      report
          .at(forwards.front(), Confidence::certain,
              "the training forward runs under no_grad: backward() raises \"element 0 of tensors "
              "does not "
              "require grad\", or trains nothing")
          .help = "Take the forward pass out of no_grad.";
    }
}

namespace {

constexpr std::string_view kNoGraph = "does not require grad and does not have a grad_fn";

}  // namespace

void judge_no_grad_training_forward(const RunEvidence& run, RunReport& report) {
  const std::string error = run.error_with(kNoGraph);
  if (error.empty() || run.number("grad_in_training_forward") != 0) return;
  Finding& finding = report.add(Confidence::certain,
                                "the training forward pass ran with gradients switched off; "
                                "backward: " +
                                    first_sentence(error));
  finding.help = "Leave the training forward pass outside torch.no_grad().";
  finding.evidence.emplace_back("error", error);
}

Price price_no_grad_training_forward(const RunEvidence& broken, const RunEvidence& cured) {
  return price_of_crash(broken, cured, kNoGraph);
}

}  // namespace bench::pitfalls
