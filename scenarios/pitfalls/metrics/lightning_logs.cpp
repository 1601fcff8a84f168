#include "scenarios/pitfalls/metrics/lightning_logs.hpp"

#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/torchmetrics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
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
using diagnose::NodeId;

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

bool is_one_of(const trainer::Argument* argument, std::initializer_list<std::string_view> words) {
  return argument != nullptr && argument->value.is_string() &&
         std::find(words.begin(), words.end(), argument->value.string) != words.end();
}

// devices="auto", -1 or an option that the user sets: whatever there is. Not on a CPU, nor under
// "dp", where one process sees all of the data.
bool takes_what_there_is(const Program& program, const trainer::Use& use) {
  const trainer::Argument* devices = use.find("devices");
  if (devices == nullptr) devices = use.find("gpus");
  if (devices == nullptr || is_one_of(use.find("accelerator"), {"cpu", "mps", "tpu", "dp"}) ||
      use.find("distributed_backend") != nullptr ||
      (use.find("strategy") != nullptr && !is_one_of(use.find("strategy"), {"auto", "ddp"})))
    return false;
  const diagnose::Value& value = devices->value;
  if (value.is_string()) return value.string == "auto" || value.string == "-1";
  if (value.is_integer()) return value.integer > 1 || value.integer == -1;
  if (value.type == diagnose::Value::Type::list) return value.items.size() > 1;
  const Kind kind = devices->node ? devices->node.kind() : Kind::other;
  if (value.known() || (kind != Kind::identifier && kind != Kind::attribute)) return false;
  // min(1, torch.cuda.device_count()) and 1 if there_is_one else 0 are no such options.
  const auto& sources = program.sources(devices->node);
  return std::none_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    return source.ref.kind() == Kind::conditional || (made && made.call->name != "add_argument");
  });
}

// replace_sampler_ddp=False: the loaders may well give each rank all of the data. Or next to
// nothing is evaluated.
bool tells_nothing(const Program& program, const trainer::Use& use) {
  for (const char* name : {"use_distributed_sampler", "replace_sampler_ddp"})
    if (const trainer::Argument* given = use.find(name))
      return !given->node || program.is_literal_false(given->node);
  const trainer::Argument* limit = use.find("limit_val_batches");
  return use.find("fast_dev_run") != nullptr ||
         (limit != nullptr && limit->value.is_integer() && limit->value.integer == 0);
}

// Of the Trainers that run the hook: test_step() runs in test(), validation in fit() and
// validate().
Ranks ranks_of(const Program& program, std::string_view hook) {
  const std::vector<trainer::Use> uses = trainer::uses(program);
  if (uses.empty() || program.is_notebook()) return Ranks::unknown;
  if (std::all_of(uses.begin(), uses.end(), has_one_device)) return Ranks::one;
  // A stream has no sampler that the Trainer could replace.
  if (program.mentions("IterableDataset") ||
      std::any_of(uses.begin(), uses.end(),
                  [&](const trainer::Use& use) { return tells_nothing(program, use); }))
    return Ranks::unknown;
  const bool tests = facts::contains(hook, "test");
  for (const char* name : {"fit", "validate", "test"}) {
    if ((std::string_view(name) == "test") != tests) continue;
    for (const CallRef& call : program.calls_named(name))
      if (fits_in_lightning_ranks(program, call)) return Ranks::several;
  }
  return std::all_of(uses.begin(), uses.end(),
                     [&](const trainer::Use& use) { return takes_what_there_is(program, use); })
             ? Ranks::may_be_several
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
    const std::string_view text = module->tree().source();
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
         holds_any(value.text(), {"current_epoch", "global_step", "optimizers()", "get_last_lr",
                                  "param_groups", "lr_schedulers()", "self.lr"});
}

// The object that torchmetrics made, its compute(), or a name for that: reduced over the ranks.
bool is_reduced_by_metric(const Program& program, Ref value) {
  const auto reduces = [&](Ref at) {
    const CallRef call = program.as_call(at);
    return is_torchmetric(program, at) || (call && reduces_on_compute(program, call));
  };
  if (reduces(value)) return true;
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(),
                     [&](const diagnose::Source& source) { return reduces(source.ref); });
}

// np.mean(scores) of a list that takes what compute() of torchmetrics gives, and nothing else: each
// item is that of all ranks.
bool lists_what_metrics_give(const Program& program, Ref value) {
  if (!program.imports("torchmetrics")) return false;
  auto names = variables_in(value);
  std::erase_if(names, [&](const std::string& name) {  // np of np.mean
    return !value.module->import_path(name).empty();
  });
  if (names.size() != 1) return false;
  bool any = false;
  const auto function = program.enclosing_function(value);
  for (const CallRef& add : program.calls_named("append")) {
    if (!add.receiver() || program.enclosing_function(add.ref()) != function ||
        !names.contains(std::string(add.receiver().text())))
      continue;
    const auto behind = facts::calls_behind(program, add.positional(0));
    any = true;
    if (std::none_of(behind.begin(), behind.end(), [&](Ref each) {
          const CallRef call = program.as_call(each);
          return call && call.call->name == "compute" && call.receiver() && !call.positional(0) &&
                 !program.callee(call);
        }))
      return false;
  }
  return any;
}

// self.f1, self.totals["f1"], what a metric gives for one batch.
bool may_be_metric(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (call)  // self.scale.exp() may be a parameter's
    return is_torchmetric(program, {call.module, call.call->function}) ||
           (call.receiver() && call.receiver().text().starts_with("self."));
  if (value.kind() == Kind::dictionary) return true;
  return value.kind() != Kind::identifier && value.kind() != Kind::binary &&
         (value.text().starts_with("self.") || value.kind() == Kind::comprehension);
}

// What may be a metric of its own, or reduced in a way that is not followed: an item of something
// that is gone over, what a call out of sight gathers.
bool may_be_reduced(const Program& program, Ref value) {
  if (may_be_metric(program, value)) return true;
  std::string text = text_behind(program, value);
  const auto& tree = value.module->tree();
  for (auto at = value.node; at < tree[value.node].last; ++at)  // acc and best in max(acc, best)
    if (tree[at].kind == Kind::identifier) text += " " + text_behind(program, value.with(at));
  if (says_any(text,
               {".compute(", "aggregate", "gather", "reduce", "sync", "metric", "dist", "getattr"}))
    return true;
  const auto& sources = program.sources(value);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return source.how == diagnose::Source::How::loop_item || may_be_metric(program, source.ref);
  });
}

// metrics in self.log_dict(metrics), metrics["loss"] and metrics.items(), where nothing is stored.
bool only_reads(Ref name) {
  const auto& tree = name.module->tree();
  const NodeId parent = tree[name.node].parent;
  const NodeId around = tree[parent].parent;
  switch (tree[parent].kind) {
    case Kind::argument_list: {
      const std::string_view called = tree.text(tree.child(around, Field::function));
      return called == "self.log_dict" || called == "print" || called == "len";
    }
    case Kind::subscript:
      return tree.child(parent, Field::value) == name.node && tree[parent].field != Field::left &&
             tree[around].kind != Kind::delete_statement;
    case Kind::attribute:
      return holds_any(tree.text(parent), {".items", ".keys", ".values", ".get"});
    default:
      return tree[parent].kind == Kind::return_statement;
  }
}

// metrics = {"loss": loss}, and nothing in the function fills it further or may do so.
bool is_all_of(Ref dictionary, FunctionRef function, Ref use) {
  const auto& tree = use.module->tree();
  const NodeId body = function.function->body;
  for (NodeId at = body; at < tree[body].last; ++at) {
    const Ref name = use.with(at);
    if (tree[at].kind != Kind::identifier || name.text() != use.text() ||
        tree[at].field == Field::attribute || tree[at].field == Field::name)
      continue;
    const bool is_given_it = tree[at].field == Field::left &&
                             tree.child(tree[at].parent, Field::right) == dictionary.node;
    if (!is_given_it && !only_reads(name)) return false;
  }
  return true;
}

// The values of {"loss": loss, "acc": acc}, also by a name of it, or the one that is given.
std::vector<Ref> values_logged(const Program& program, Ref value) {
  if (value.kind() == Kind::identifier)
    if (const auto& sources = program.sources(value);
        sources.size() == 1 && sources.front().how == diagnose::Source::How::value &&
        sources.front().ref.kind() == Kind::dictionary &&
        program.enclosing_function(sources.front().ref) == program.enclosing_function(value) &&
        is_all_of(sources.front().ref, program.enclosing_function(value), value))
      value = sources.front().ref;
  if (value.kind() != Kind::dictionary) return {value};
  std::vector<Ref> out;
  const auto& tree = value.module->tree();
  for (auto at = tree[value.node].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling)
    out.push_back(tree[at].kind == Kind::pair ? value.with(tree.child(at, Field::value))
                                              : value.with(at));
  return out;
}

// self.log(..., sync_dist=...), rank_zero_only=True, on_epoch=False: decided, or no average.
bool is_decided(const Program& program, const CallRef& log) {
  const std::size_t place = log.call->name == "log" ? 8 : 7;
  const Ref epoch = log.keyword("on_epoch");
  return log.keyword("sync_dist") || log.positional(place) || log.keyword("rank_zero_only") ||
         log.has_splat() || (epoch && program.is_literal_false(epoch));
}

// The function gathers or reduces by hand before it logs.
bool reduces_by_hand(FunctionRef step) {
  return holds_any(Ref{step.module, step.function->body}.text(),
                   {"all_gather", "all_reduce", "dist.reduce(", "strategy.reduce("});
}

// Another method of the class does, or something that the step calls may.
bool may_reduce_elsewhere(const Program& program, FunctionRef step) {
  const ClassRef cls = program.enclosing_class({step.module, step.function->node});
  for (const ClassRef& each : program.lineage(cls))
    if (holds_any(Ref{each.module, each.cls->node}.text(),
                  {"all_gather", "all_reduce", "synchronize_between", "dist.reduce("}))
      return true;
  const auto calls = facts::calls_in({step.module, step.function->body});
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return says_any(call.call->name, {"reduce", "gather", "sync", "dist_"}) &&
           !(call.call->name == "gather" && call.receiver() && call.positional(1));
  });
}

bool is_evaluation_hook(const Program& program, FunctionRef step) {
  if (!step || std::find(std::begin(kEvaluations), std::end(kEvaluations), step.function->name) ==
                   std::end(kEvaluations))
    return false;
  const ClassRef cls = program.enclosing_class({step.module, step.function->node});
  // A log() of its own may pass sync_dist on.
  return cls && program.derives_from(cls, Api::lightning_module) && !program.method(cls, "log") &&
         !program.method(cls, "log_dict");
}

Ref value_of(const CallRef& log) {
  const std::size_t place = log.call->name == "log" ? 1 : 0;
  const Ref given = log.positional(place);
  return given ? given : log.keyword(place == 1 ? "value" : "dictionary");
}

// What this logs is computed from the data of one rank, as far as is known.
bool is_of_one_rank(const Program& program, const CallRef& log) {
  const Ref value = value_of(log);
  if (!value || reduces_by_hand(program.enclosing_function(log.ref()))) return false;
  const auto parts = values_logged(program, value);
  return std::any_of(parts.begin(), parts.end(), [&](Ref part) {
    return !is_alike(program, part) && !is_reduced_by_metric(program, part) &&
           !lists_what_metrics_give(program, part);
  });
}

// The same, and nothing is in the way of knowing.
bool is_surely_of_one_rank(const Program& program, const CallRef& log) {
  const auto parts = values_logged(program, value_of(log));
  return std::any_of(parts.begin(), parts.end(),
                     [&](Ref part) {
                       return !is_alike(program, part) && !may_be_reduced(program, part);
                     }) &&
         !may_reduce_elsewhere(program, program.enclosing_function(log.ref()));
}

// The name of what is logged is one that a callback monitors.
bool decides(const Program& program, const CallRef& log) {
  const Ref name = log.positional(0) ? log.positional(0) : log.keyword("name");
  const auto text = name ? program.string(name) : std::nullopt;
  return text && is_monitored(program, *text);
}

struct Log {
  CallRef call;
  bool decides = false;
};

void tell(const Program& program, const Log& log, bool warns, Report& report) {
  std::string message = "the logged value is that of one rank's shard unless sync_dist=True";
  message += log.decides ? ", and a callback decides by it" : " (torchmetrics objects excepted)";
  Finding& finding =
      report.at(log.call.ref(), warns ? Confidence::likely : Confidence::check, std::move(message));
  if (!warns) finding.severity = Severity::info;
  finding.help = "Pass sync_dist=True for values logged once an epoch.";
  if (program.enclosing_function(log.call.ref()).function->name.find("valid") != std::string::npos)
    as_in_trial(finding, "best-checkpoint");
}

// One cause in a function: a warning for the value that decides, else for the first.
void check_function(const Program& program, const std::vector<CallRef>& calls, Report& report) {
  const Ranks ranks =
      ranks_of(program, program.enclosing_function(calls.front().ref()).function->name);
  if (ranks == Ranks::one) return;
  std::vector<Log> logs;
  for (const CallRef& call : calls) logs.push_back({call, decides(program, call)});
  const Log* told = nullptr;
  for (const Log& log : logs) {
    const bool counts = ranks == Ranks::several || (ranks == Ranks::may_be_several && log.decides);
    if (counts && (told == nullptr || (log.decides && !told->decides)) &&
        is_surely_of_one_rank(program, log.call))
      told = &log;
  }
  for (const Log& log : logs) tell(program, log, &log == told, report);
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
  const auto place = [](const CallRef& log) { return std::pair(log.module, log.call->node); };
  std::sort(logs.begin(), logs.end(),
            [&](const CallRef& a, const CallRef& b) { return place(a) < place(b); });
  for (auto at = logs.begin(); at != logs.end();) {
    const FunctionRef step = program.enclosing_function(at->ref());
    const auto end = std::find_if(at, logs.end(), [&](const CallRef& log) {
      return program.enclosing_function(log.ref()) != step;
    });
    check_function(program, {at, end}, report);
    at = end;
  }
}

}  // namespace bench::pitfalls
