#include "scenarios/pitfalls/frameworks/trainer.hpp"

#include "scenarios/pitfalls/frameworks/dropped_keys.hpp"
#include "scenarios/pitfalls/frameworks/trainer_configs.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace bench::pitfalls::trainer {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Value;

namespace {

// The program takes the key out of the dictionary before it comes to the Trainer. Nothing can be
// taken out of Trainer(**{"gpus": gpus}).
bool is_dropped(Ref dictionary, const std::string& key) {
  const auto& tree = dictionary.module->tree();
  const NodeId around = tree[dictionary.node].parent;
  const bool is_given_away = around != kNoNode && tree[around].kind == Kind::dictionary_splat;
  return !is_given_away && find_signature(key) != nullptr && drops_key(tree.source(), key);
}

void add_pairs(const Program& program, Ref dictionary, Use& use) {
  const auto& tree = dictionary.module->tree();
  for (NodeId at = tree[dictionary.node].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::pair) continue;
    const auto key = tree.string_value(tree.child(at, Field::key));
    const Ref value = dictionary.with(tree.child(at, Field::value));
    if (key && !is_dropped(dictionary, *key))
      use.arguments.push_back({*key, program.evaluate(value), value, nullptr});
  }
}

bool is_for_one_version(const Program& program, Ref node);

// What **options gives that only the model of the whole program sees: a dictionary of another file,
// one of several that reach the call.
void add_splatted(const Program& program, Ref options, Use& use) {
  bool seen = false;
  for (const Source& source : program.sources(options))
    if (source.ref.kind() == Kind::dictionary) {
      add_pairs(program, source.ref, use);
      seen = true;
    }
  use.has_more = use.has_more || !seen;
}

Use use_of(const Program& program, const CallRef& call) {
  Use use;
  use.call = call;
  for (const diagnose::Argument& given : call.module->arguments(call.call->node)) {
    const Ref value{call.module, given.value};
    const auto& tree = call.module->tree();
    const NodeId around = tree[given.value].parent;
    const bool is_item = tree[around].kind == Kind::pair;
    if (is_item && is_dropped({call.module, tree[around].parent}, given.name)) continue;
    if (!given.name.empty() && !is_for_one_version(program, value))
      use.arguments.push_back({given.name, program.evaluate(value), value, nullptr});
  }
  if (!call.has_splat()) return use;
  const auto& tree = call.module->tree();
  const NodeId list = tree.child(call.call->node, Field::arguments);
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::dictionary_splat)
      add_splatted(program, {call.module, tree[at].first_child}, use);
  return use;
}

// LightningCLI(Model, trainer_defaults={...}): the rest comes from the command line.
void add_command_lines(const Program& program, std::vector<Use>& out) {
  if (!program.imports("lightning") && !program.imports("pytorch_lightning")) return;
  for (const CallRef& call : program.calls_named("LightningCLI")) {
    Use use;
    use.call = call;
    use.has_more = true;
    if (const Ref defaults = call.keyword("trainer_defaults"))
      for (const Source& source : program.sources(defaults))
        if (source.ref.kind() == Kind::dictionary) add_pairs(program, source.ref, use);
    if (!use.arguments.empty()) out.push_back(std::move(use));
  }
}

}  // namespace

const Argument* Use::find(std::string_view name) const {
  const auto at = std::find_if(arguments.begin(), arguments.end(),
                               [&](const Argument& argument) { return argument.name == name; });
  return at == arguments.end() ? nullptr : &*at;
}

namespace {

// LIGHTNING_V2, IS_LIGHTNING_V_1_5; neither LIGHTNING_VANILLA nor lightning_val.
bool names_version(std::string_view text) {
  for (std::size_t at = text.find("_v"); at != std::string_view::npos; at = text.find("_v", at + 1))
    if (at + 2 >= text.size() || text[at + 2] == '_' ||
        (text[at + 2] >= '0' && text[at + 2] <= '9'))
      return true;
  return false;
}

// if LIGHTNING_VERSION < 2: the script knows that versions differ.
bool is_for_one_version(const Program& program, Ref node) {
  return program.under(node, [](Ref condition, bool) {
    const std::string text = facts::lowered(condition.text());
    return facts::contains(text, "version") ||
           (facts::contains(text, "lightning") && names_version(text));
  });
}

}  // namespace

std::vector<Use> uses(const Program& program) {
  std::vector<Use> out;
  for (const CallRef& call : program.calls(Api::lightning_trainer))
    if (!is_for_one_version(program, call.ref())) out.push_back(use_of(program, call));
  for (const CallRef& call : program.calls_named("from_argparse_args")) {
    const Ref receiver = call.receiver();
    if (receiver && receiver.module->api(receiver.node) == Api::lightning_trainer) {
      out.push_back(use_of(program, call));
      out.back().has_more = true;
    }
  }
  add_command_lines(program, out);
  std::vector<Use> configured = uses_in_configs(program);
  std::move(configured.begin(), configured.end(), std::back_inserter(out));
  return out;
}

std::vector<Value> choices(const Program& program, const Argument& argument) {
  if (argument.value.known()) return {argument.value};
  std::vector<Value> out;
  if (argument.entry != nullptr) return out;
  for (const Source& source : program.sources(argument.node)) {
    if (source.how != Source::How::value) continue;
    if (is_for_one_version(program, source.ref)) return {};
    if (Value value = program.evaluate(source.ref); value.known()) out.push_back(std::move(value));
  }
  return out;
}

Finding& flag(Report& report, const Argument& argument, Confidence confidence,
              std::string message) {
  if (argument.entry != nullptr) {
    diagnose::LaunchWord word;
    word.text = std::string(argument.entry->key());
    word.line = argument.entry->line;
    word.column = argument.entry->column;
    return report.at_word(argument.entry->file, word, confidence, std::move(message));
  }
  return report.at(argument.node.with((*argument.node.module)[argument.node.node].parent),
                   confidence, std::move(message));
}

namespace {

// Comes by before the Trainer is made: at the module's own level, in a constructor. A hook like
// training_step runs later, and a Lightning that stops at the Trainer never gets there.
bool runs_before_trainer(const Program& program, const Module& module, const diagnose::Call& call) {
  const auto function = program.enclosing_function({&module, call.node});
  return !function || function.function->owner_class == diagnose::kNoNode ||
         function.function->name == "__init__";
}

// The Lightning that took away something else the program calls; kNever where it calls no such
// thing. What it runs with is older, whatever else has gone since.
int lightning_of_calls(const Program& program) {
  constexpr int kMetricsRemoved = 105;
  int oldest = kNever;
  for (const char* name : {"from_argparse_args", "add_argparse_args"})
    for (const CallRef& call : program.calls_named(name))
      if (call.receiver() && program.qualified(call.receiver()).ends_with(".Trainer"))
        oldest = std::min(oldest, kVersion2);
  for (const Module* module : program.modules())
    for (const diagnose::Call& call : module->calls())
      if (call.path.starts_with("pytorch_lightning.metrics.") &&
          runs_before_trainer(program, *module, call))
        oldest = std::min(oldest, kMetricsRemoved);
  return oldest;
}

}  // namespace

void weigh_by_calls(const Program& program, Finding& finding) {
  const int oldest = lightning_of_calls(program);
  if (oldest > kVersion2) return;
  tell_as_note(finding);
  finding.help += " Other calls of the program need a Lightning below " +
                  std::string(version_text(oldest)) + ": it waits for the upgrade.";
}

void weigh_by_older_calls(const Program& program, int removed, Finding& finding) {
  if (lightning_of_calls(program) < removed) weigh_by_calls(program, finding);
}

namespace {

// Requirements bound Lightning, or the program imports it by the name that it has since 2.0, or
// gives it what it has since then. Beside pytorch_lightning that name may be a folder of the
// program. Of a script of old arguments alone nobody can tell which Lightning it goes with.
bool knows_version(const Program& program) {
  return program.newest().least_lightning != diagnose::kAnyVersion ||
         program.newest().lightning != diagnose::kAnyVersion ||
         program.mentions("use_distributed_sampler=") ||
         program.mentions("ddp_find_unused_parameters_true") ||
         (program.imports("lightning") && !program.imports("pytorch_lightning"));
}

}  // namespace

void weigh_by_requirements(const Program& program, int removed, Finding& finding) {
  if (finding.confidence == Confidence::certain && !knows_version(program))
    finding.confidence = Confidence::likely;
  if (program.newest().lightning >= removed) return;
  tell_as_note(finding);
  finding.help += " The requirements keep Lightning below " + std::string(version_text(removed)) +
                  ": it waits for the upgrade.";
}

namespace {

// Arguments that rules replace or take away, whatever else stands beside them.
bool has_fix(const Argument& argument) {
  if (argument.name == "gpus") return argument.value.known() && !argument.value.is_default;
  for (const char* name : {"distributed_backend", "replace_sampler_ddp", "log_gpu_memory",
                           "move_metrics_to_cpu", "amp_backend"})
    if (argument.name == name) return true;
  return false;
}

// from pytorch_lightning.plugins.training_type import DDPPlugin: Lightning 2 has no such file, so
// that the script ends before it comes to the Trainer.
bool imports_what_is_gone(const diagnose::Module& module) {
  static constexpr std::array<std::string_view, 7> kGone = {
      "pytorch_lightning.plugins.training_type",  "pytorch_lightning.metrics",
      "pytorch_lightning.loggers.base",           "pytorch_lightning.callbacks.base",
      "pytorch_lightning.utilities.distributed",  "pytorch_lightning.utilities.cli",
      "pytorch_lightning.overrides.data_parallel"};
  const auto& imports = module.imports();
  return std::any_of(imports.begin(), imports.end(), [](const std::string& name) {
    return std::any_of(kGone.begin(), kGone.end(),
                       [&](std::string_view gone) { return name.starts_with(gone); });
  });
}

bool becomes_valid(const Use& use) {
  if (use.call && imports_what_is_gone(*use.call.module)) return false;
  return std::all_of(use.arguments.begin(), use.arguments.end(), [](const Argument& argument) {
    return accepts(argument.name, kVersion2) || has_fix(argument);
  });
}

}  // namespace

void fix(const Use& use, const Argument& argument, const std::string& text,
         const std::string& title, Finding& finding) {
  if (!argument.node || finding.severity == Severity::info || !becomes_valid(use)) return;
  const auto& tree = argument.node.module->tree();
  const Ref parent = argument.node.with(tree[argument.node.node].parent);
  // Not in dict(gpus=2), which other calls may take as well.
  if (parent.kind() == Kind::keyword_argument && use.call &&
      tree[tree[parent.node].parent].parent == use.call.call->node)
    replace(parent, text, title, finding);
}

bool is_one(const Argument* count) {
  if (count == nullptr || count->value.is_default) return false;
  const Value& value = count->value;
  if (value.type == Value::Type::list) return value.items.size() == 1;
  if (value.is_string())
    return value.string == "1" ||
           (value.string.size() > 1 && value.string.find(',') == value.string.size() - 1);
  return value.is_integer() && value.integer == 1;
}

std::string spelling(const Value& value) {
  switch (value.type) {
    case Value::Type::none:
      return "None";
    case Value::Type::boolean:
      return value.integer != 0 ? "True" : "False";
    case Value::Type::integer:
      return std::to_string(value.integer);
    case Value::Type::number: {
      std::string text = std::to_string(value.number);
      text.erase(text.find_last_not_of('0') + 1);
      return text.ends_with('.') ? text + "0" : text;
    }
    case Value::Type::string:
      return "\"" + value.string + "\"";
    case Value::Type::list: {
      std::string out = "[";
      for (const Value& item : value.items) out += (out.size() > 1 ? ", " : "") + spelling(item);
      return out + "]";
    }
    case Value::Type::unknown:
      break;
  }
  return "...";
}

}  // namespace bench::pitfalls::trainer
