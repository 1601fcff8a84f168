#include "scenarios/pitfalls/metrics/lightning_logs.hpp"

#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/metrics/torchmetrics.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;

namespace {

constexpr std::string_view kEvaluations[] = {"validation_step",      "test_step",
                                             "validation_epoch_end", "on_validation_epoch_end",
                                             "test_epoch_end",       "on_test_epoch_end"};

enum class Ranks { one, unknown, may_be_several, several };

// devices=1 and one node, as it is written.
bool has_one_device(const trainer::Use& use) {
  const trainer::Argument* nodes = use.find("num_nodes");
  return (trainer::is_one(use.find("devices")) || trainer::is_one(use.find("gpus"))) &&
         (nodes == nullptr || trainer::is_one(nodes));
}

// devices="auto", -1 or an option that has no default: whatever the user has.
bool takes_what_there_is(const trainer::Use& use) {
  const trainer::Argument* devices = use.find("devices");
  if (devices == nullptr) devices = use.find("gpus");
  if (devices == nullptr || devices->value.type == diagnose::Value::Type::none) return false;
  return !devices->value.is_integer() || devices->value.integer > 1 || devices->value.integer == -1;
}

// replace_sampler_ddp=False: the loaders may well give each rank all of the data.
bool keeps_samplers(const Program& program, const trainer::Use& use) {
  for (const char* name : {"use_distributed_sampler", "replace_sampler_ddp"})
    if (const trainer::Argument* given = use.find(name))
      return !given->node || program.is_literal_false(given->node);
  return false;
}

Ranks ranks_of(const Program& program) {
  const std::vector<trainer::Use> uses = trainer::uses(program);
  if (uses.empty() || program.is_notebook()) return Ranks::unknown;
  if (std::all_of(uses.begin(), uses.end(), has_one_device)) return Ranks::one;
  const auto keeps = [&](const trainer::Use& use) { return keeps_samplers(program, use); };
  if (std::any_of(uses.begin(), uses.end(), keeps)) return Ranks::unknown;
  for (const char* name : {"fit", "validate", "test"})
    for (const CallRef& call : program.calls_named(name))
      if (fits_in_lightning_ranks(program, call)) return Ranks::several;
  return std::any_of(uses.begin(), uses.end(), takes_what_there_is) ? Ranks::may_be_several
                                                                    : Ranks::unknown;
}

// EarlyStopping("val_loss"), ModelCheckpoint(monitor="val_loss"), {"monitor": "val_loss"}.
bool is_monitored(const Program& program, const std::string& name) {
  for (const CallRef& call : program.calls_named("EarlyStopping"))
    if (call.positional(0) && program.string(call.positional(0)).value_or("") == name) return true;
  for (const diagnose::Module* module : program.modules()) {
    for (const diagnose::Call& made : module->calls()) {
      const Ref monitor = CallRef{module, &made}.keyword("monitor");
      if (monitor && program.string(monitor).value_or("") == name) return true;
    }
    const std::string text(module->tree().source());
    for (const char* quote : {"\"", "'"}) {
      const std::string key = std::string(quote) + "monitor" + quote + ": " + quote + name + quote;
      if (text.find(key) != text.npos) return true;
    }
  }
  return false;
}

// A number that is written down, the learning rate, the epoch: the same on every rank.
bool is_alike(const Program& program, Ref value) {
  return program.evaluate(value).is_integer() || value.kind() == Kind::floating ||
         holds_any(value.text(), {"current_epoch", "global_step", "optimizer", "get_last_lr"});
}

// The object that torchmetrics made, its compute(), or a name for that: reduced over the ranks.
bool is_reduced_by_metric(const Program& program, Ref value) {
  const auto reduces = [&](Ref at) {
    const CallRef call = program.as_call(at);
    return is_torchmetric(program, at) ||
           (call && (call.call->name == "compute" || is_torchmetric(program, call.receiver()) ||
                     is_torchmetric(program, at.child(Field::function))));
  };
  if (reduces(value)) return true;
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(),
                     [&](const diagnose::Source& source) { return reduces(source.ref); });
}

// self.log(..., sync_dist=...), rank_zero_only=True, on_epoch=False: decided, or no average.
bool is_decided(const Program& program, const CallRef& log) {
  const Ref epoch = log.keyword("on_epoch");
  return log.keyword("sync_dist") || log.keyword("rank_zero_only") || log.has_splat() ||
         (epoch && program.is_literal_false(epoch));
}

// The function gathers or reduces by hand before it logs.
bool reduces_by_hand(FunctionRef step) {
  return holds_any(Ref{step.module, step.function->body}.text(),
                   {"all_gather", "all_reduce", "reduce(", "gather("});
}

bool is_evaluation_hook(const Program& program, FunctionRef step) {
  if (!step || std::find(std::begin(kEvaluations), std::end(kEvaluations), step.function->name) ==
                   std::end(kEvaluations))
    return false;
  const ClassRef cls = program.enclosing_class({step.module, step.function->node});
  return cls && program.derives_from(cls, Api::lightning_module);
}

// What this logs is computed from the data of one rank alone.
bool is_of_one_rank(const Program& program, const CallRef& log) {
  const std::size_t place = log.call->name == "log" ? 1 : 0;
  const Ref given = log.positional(place);
  const Ref value = given ? given : log.keyword(place == 1 ? "value" : "dictionary");
  return value && !is_alike(program, value) && !is_reduced_by_metric(program, value) &&
         !reduces_by_hand(program.enclosing_function(log.ref()));
}

// The name of what is logged is one that a callback monitors.
bool decides(const Program& program, const CallRef& log) {
  const Ref name = log.positional(0) ? log.positional(0) : log.keyword("name");
  const auto text = name ? program.string(name) : std::nullopt;
  return text && is_monitored(program, *text);
}

void tell(const Program& program, const CallRef& log, bool warns, Report& report) {
  std::string message = "the logged value is that of one rank's shard unless sync_dist=True";
  message +=
      decides(program, log) ? ", and a callback decides by it" : " (torchmetrics objects excepted)";
  Finding& finding =
      report.at(log.ref(), warns ? Confidence::likely : Confidence::check, std::move(message));
  if (!warns) finding.severity = Severity::info;
  finding.help = "Pass sync_dist=True for values logged once an epoch.";
  if (program.enclosing_function(log.ref()).function->name.find("valid") != std::string::npos)
    as_in_trial(finding, "best-checkpoint");
}

// One cause in a function: a warning for the value that decides, else for the first.
void check_function(const Program& program, const std::vector<CallRef>& logs, Ranks ranks,
                    Report& report) {
  const auto monitored = std::find_if(logs.begin(), logs.end(),
                                      [&](const CallRef& log) { return decides(program, log); });
  const bool has_monitored = monitored != logs.end();
  const CallRef first = has_monitored ? *monitored : logs.front();
  const bool warns = ranks == Ranks::several || (ranks == Ranks::may_be_several && has_monitored);
  for (const CallRef& log : logs) tell(program, log, warns && log.ref() == first.ref(), report);
}

}  // namespace

void check_lightning_logs(const Program& program, Report& report) {
  std::vector<CallRef> logs;
  for (const char* name : {"log", "log_dict"})
    for (const CallRef& log : program.calls_named(name))
      if (log.receiver() && log.receiver().text() == "self" && !is_decided(program, log) &&
          is_evaluation_hook(program, program.enclosing_function(log.ref())) &&
          is_of_one_rank(program, log))
        logs.push_back(log);
  if (logs.empty()) return;
  const Ranks ranks = ranks_of(program);
  if (ranks == Ranks::one) return;
  const auto place = [](const CallRef& log) { return std::pair(log.module, log.call->node); };
  std::sort(logs.begin(), logs.end(),
            [&](const CallRef& a, const CallRef& b) { return place(a) < place(b); });
  for (auto at = logs.begin(); at != logs.end();) {
    const FunctionRef step = program.enclosing_function(at->ref());
    const auto end = std::find_if(at, logs.end(), [&](const CallRef& log) {
      return program.enclosing_function(log.ref()) != step;
    });
    check_function(program, {at, end}, ranks, report);
    at = end;
  }
}

}  // namespace bench::pitfalls
