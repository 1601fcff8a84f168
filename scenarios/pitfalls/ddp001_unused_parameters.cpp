#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"
#include "scenarios/pitfalls/wrappers/idle_pooler.hpp"
#include "scenarios/pitfalls/wrappers/layer_mentions.hpp"
#include "scenarios/pitfalls/wrappers/unnamed_layers.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Def;
using diagnose::DefKind;
using diagnose::FunctionRef;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::Parameter;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

bool holds_parameters(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (!call) return false;
  // self.head = build_head(width) of the program
  const auto made = program.callee(call) ? program.sources(value) : std::vector<diagnose::Source>{};
  if (made.size() == 1 && made.front().ref != value && program.as_call(made.front().ref) &&
      !program.callee(program.as_call(made.front().ref)))
    return holds_parameters(program, made.front().ref);
  const std::string name = program.qualified({call.module, call.call->function});
  for (const std::string_view several : {"ModuleList", "ModuleDict", "Sequential"})
    if (name == "torch.nn." + std::string(several)) {
      const auto inside = facts::calls_in(value);
      return std::any_of(inside.begin(), inside.end(), [&](const CallRef& each) {
        return each.call != call.call && holds_parameters(program, each.ref());
      });
    }
  for (const std::string_view layer :
       {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "Embedding", "LSTM", "GRU",
        "LayerNorm", "BatchNorm1d", "BatchNorm2d", "Parameter", "TransformerEncoderLayer"})
    if (name == "torch.nn." + std::string(layer)) return true;
  return false;
}

bool searches_unused(const Program& program) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    const Ref flag = wrap.call.keyword("find_unused_parameters");
    if (flag && !program.is_literal_false(flag)) return true;
    if (wrap.call.keyword("static_graph") || wrap.call.has_splat()) return true;
  }
  return false;
}

// A Trainer that wraps in DDP, told of no search, where it has several devices.
bool wraps_without_search(const Program& program, const trainer::Use& use) {
  const auto* strategy = use.find("strategy");
  const auto* devices = use.find("devices");
  if (!use.call || strategy == nullptr || !strategy->node || trainer::is_one(devices)) return false;
  const diagnose::Value& name = strategy->value;
  if (name.is_string())
    return name.string == "ddp" || (name.string == "auto" && devices != nullptr);
  // "ddp" if gpus > 1 else "auto"
  const auto choices = trainer::choices(program, *strategy);
  const auto is_choice = [&](std::string_view wanted) {
    return std::any_of(choices.begin(), choices.end(), [&](const diagnose::Value& each) {
      return each.is_string() && each.string == wanted;
    });
  };
  if (!choices.empty())
    return is_choice("ddp") && !is_choice("ddp_find_unused_parameters_true") &&
           !facts::contains(strategy->node.text(), "find_unused");
  return strategy->node.text().starts_with("DDPStrategy(") &&
         !facts::contains(strategy->node.text(), "find_unused");
}

// self.generator for Adam(self.generator.parameters()), one for each optimizer of the class.
std::vector<Ref> models_of_optimizers(const Program& program, ClassRef cls) {
  std::vector<Ref> out;
  const FunctionRef configure = program.method(cls, "configure_optimizers");
  if (!configure) return out;
  for (const CallRef& call : facts::calls_in({configure.module, configure.function->body})) {
    const CallRef parameters = call.call->api == diagnose::Api::optimizer
                                   ? program.made_by(call.argument(0, "params"))
                                   : CallRef{};
    if (parameters && parameters.call->name == "parameters" &&
        parameters.receiver().text().starts_with("self."))
      out.push_back(parameters.receiver());
  }
  return out;
}

// The loss may come from the model: by its name, by forward(), or by a method that is not seen.
bool may_come_from(const Program& program, ClassRef cls, Ref loss, std::string_view model) {
  const auto calls = facts::calls_behind(program, loss);
  return std::any_of(calls.begin(), calls.end(), [&](const Ref& at) {
    const CallRef call = program.as_call(at);
    const std::string_view function = at.module->text(call.call->function);
    if (facts::contains(at.text(), model) || function == "self") return true;
    if (!function.starts_with("self.") || program.callee(call)) return false;
    const auto& defs = cls.module->defs_of(call.call->name, true);
    return defs.empty() && function == "self." + std::string(call.call->name);
  });
}

// self.manual_backward(loss) of one of two optimizers' models. Lightning prepares DDP for all
// parameters before each backward pass, and those of the other model stay without a gradient.
void check_manual_optimization(const Program& program, Report& report) {
  const auto uses = trainer::uses(program);
  if (std::none_of(uses.begin(), uses.end(),
                   [&](const trainer::Use& use) { return wraps_without_search(program, use); }))
    return;
  for (const CallRef& backward : program.calls_named("manual_backward")) {
    const ClassRef cls = program.enclosing_class(backward.ref());
    const FunctionRef step = program.enclosing_function(backward.ref());
    if (!cls || !step || !program.derives_from(cls, diagnose::Api::lightning_module)) continue;
    const Ref loss = backward.positional(0);
    const auto models = models_of_optimizers(program, cls);
    if (!loss || models.size() < 2 || facts::calls_behind(program, loss).empty()) continue;
    for (const Ref& model : models) {
      const bool of_another = std::any_of(models.begin(), models.end(), [&](const Ref& other) {
        return other.text() != model.text() && may_come_from(program, cls, loss, other.text());
      });
      if (!of_another || may_come_from(program, cls, loss, model.text())) continue;
      report
          .at(backward.ref(), Confidence::likely,
              "this loss gives no gradients to " + std::string(model.text()) +
                  ", and Lightning's DDP waits for those of all parameters in each backward pass: "
                  "on several GPUs it raises \"Expected to have finished reduction in the prior "
                  "iteration\"")
          .help = "Use strategy=\"ddp_find_unused_parameters_true\".";
      return;
    }
  }
}

// Layers that __init__ gives the object, and whose names stand nowhere else.
void check_layers_of(const Program& program, ClassRef cls, Report& report) {
  const FunctionRef init = program.method(cls, "__init__");
  if (!init || handles_layers_unnamed(program, cls)) return;
  for (const Def& def : init.module->defs()) {
    if (!def.is_attribute || def.kind != DefKind::assign || def.value == kNoNode) continue;
    if (!init.module->tree().contains(init.function->node, def.target)) continue;
    const Ref target{init.module, def.target};
    if (target.child(diagnose::Field::object).text() != "self" ||
        !holds_parameters(program, target.with(def.value)))
      continue;
    if (!is_unconditional(program, target)) continue;  // an option that may be off
    if (is_mentioned_again(program, cls, target)) continue;
    report
        .at(target, Confidence::likely,
            "self." + std::string(def.name) +
                " has parameters that no code uses: DDP raises "
                "\"Expected to have finished reduction in the prior iteration\" in step 2")
        .help =
        "Remove the layer, or freeze it before wrapping; find_unused_parameters=True also "
        "works and costs a search in every step.";
  }
}

constexpr int kBases = 3;

// class Net(nn.Module), class Net(PreTrainedModel), and those that derive from such a class of the
// program.
bool is_plain_module(const Program& program, ClassRef cls, int depth = 0) {
  return !cls.cls->bases.empty() &&
         std::all_of(cls.cls->bases.begin(), cls.cls->bases.end(), [&](const auto base) {
           const Ref named{cls.module, base};
           const std::string path = program.qualified(named);
           if (path == "torch.nn.Module" || path.ends_with("PreTrainedModel") ||
               path.ends_with("ModelHubMixin"))
             return true;
           const auto& lineage = program.lineage(cls);
           return depth < kBases &&
                  std::any_of(lineage.begin(), lineage.end(), [&](const ClassRef& above) {
                    return !(above == cls) && above.cls->name == named.text() &&
                           is_plain_module(program, above, depth + 1);
                  });
         });
}

// class Net(pl.LightningModule), with no other class of the program between.
bool is_lightning_module(const Program& program, ClassRef cls) {
  return !cls.cls->bases.empty() &&
         cls.module->api(cls.cls->bases.front()) == diagnose::Api::lightning_module &&
         program.method(cls, "training_step") && program.derived_of(cls).empty();
}

// The Trainer wraps the module itself: strategy="ddp".
void check_lightning_modules(const Program& program, Report& report) {
  const auto uses = trainer::uses(program);
  if (program.calls_named("fit").empty() || uses.empty() || freezes_layers_unnamed(program) ||
      !std::all_of(uses.begin(), uses.end(),
                   [&](const trainer::Use& use) { return wraps_without_search(program, use); }))
    return;
  for (const Module* module : program.modules())
    for (const diagnose::Class& made : module->classes())
      if (const ClassRef cls{module, &made}; is_lightning_module(program, cls))
        check_layers_of(program, cls, report);
}

}  // namespace

void check_unused_parameters(const Program& program, Report& report) {
  check_manual_optimization(program, report);
  check_lightning_modules(program, report);
  if (!program.has_ddp() || searches_unused(program)) return;
  const bool by_name = !freezes_layers_unnamed(program);
  const auto wrapped = facts::wrapped_classes(program, Wrapper::ddp);
  for (const ClassRef& cls : wrapped)
    if (by_name && program.method(cls, "forward") && is_plain_module(program, cls))
      check_layers_of(program, cls, report);
  for (const ClassRef& cls : wrapped)
    for (const CallRef& encoder : encoders_with_idle_pooler(program, cls))
      report
          .at(encoder.ref(), Confidence::likely,
              "the encoder ends in a pooler, and nothing uses what it gives: DDP raises "
              "\"Expected to have finished reduction in the prior iteration\" in step 2")
          .help = "Pass add_pooling_layer=False.";
}

namespace {

constexpr std::string_view kUnfinished =
    "Expected to have finished reduction in the prior iteration";
constexpr std::string_view kStatic = "not compatible with static_graph";

// "unused.weight, unused.bias": the names in the error, or its indices.
std::string parameters_in(const std::string& error) {
  for (const std::string_view lead :
       {"did not receive grad for rank 0: ", "did not receive grad for rank 1: "}) {
    const std::size_t at = error.find(lead);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + lead.size();
    return error.substr(begin, error.find_first_of("\n", begin) - begin);
  }
  return "unnamed";
}

}  // namespace

void judge_unused_parameters(const RunEvidence& run, RunReport& report) {
  const std::string error = run.error_with(kUnfinished);
  // The same words with another cause belong to other rules.
  if (error.empty() || error.find(kStatic) != std::string::npos) return;
  if (run.first("parameters_changed_after_wrap") != nullptr) return;
  const std::string names = parameters_in(error);
  Finding& finding = report.add(Confidence::certain,
                                "parameters received no gradient, and the next forward pass "
                                "failed: " +
                                    names);
  finding.help = "Remove or freeze the layer before wrapping, or pass find_unused_parameters=True.";
  finding.evidence.emplace_back("parameters", names);
  finding.evidence.emplace_back("error", error);
}

Price price_unused_parameters(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string error = broken.error_with(kUnfinished);
  price.reproduced = !error.empty();
  price.gone = cured.first("error") == nullptr && cured.number("steps") > broken.number("steps");
  price.cost = broken.number("steps");
  price.unit = "step before the crash";
  price.seen = "RuntimeError: " + error.substr(0, error.find('.')) + "; no gradient for " +
               parameters_in(error);
  return price;
}

}  // namespace bench::pitfalls
