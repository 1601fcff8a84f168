#include "scenarios/pitfalls/ranks/own_ranks.hpp"

#include "diagnose/model/shown_commands.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/set_options.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/launched_with.hpp"
#include "scenarios/pitfalls/ranks/own_gpu.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

// What the argument may be, each in the words of the script: "ddp" and "auto" for strategy = "ddp"
// if gpus > 1 else "auto".
std::vector<std::string> words_of(const Program& program, const trainer::Argument& argument) {
  std::vector<std::string> out{facts::lowered(argument.node.text()) + " " +
                               facts::lowered(argument.value.string)};
  if (argument.value.known()) return out;
  for (const diagnose::Source& source : program.sources(argument.node))
    if (source.how == diagnose::Source::How::value && source.ref != argument.node)
      out.push_back(facts::lowered(source.ref.text()));
  return out;
}

// Starts ranks that all run the script to its end; what spawns comes back to one process, and the
// other engines gather on every rank.
bool is_another(std::string_view words) {
  for (const std::string_view other : {"spawn", "fork", "notebook", "fsdp", "deepspeed", "single"})
    if (facts::contains(words, other)) return true;
  return false;
}

bool may_be_ddp(const Program& program, const trainer::Argument& argument) {
  const auto words = words_of(program, argument);
  return std::any_of(words.begin(), words.end(), [](std::string_view each) {
    return facts::contains(each, "ddp") && !is_another(each);
  });
}

// "ddp" stood under two other names in older versions.
const trainer::Argument* strategy_of(const Program& program, const trainer::Use& use) {
  for (const std::string_view name : {"strategy", "distributed_backend"})
    if (const trainer::Argument* strategy = use.find(name)) return strategy;
  const trainer::Argument* accelerator = use.find("accelerator");
  const bool ddp = accelerator != nullptr && accelerator->node && may_be_ddp(program, *accelerator);
  return ddp ? accelerator : nullptr;
}

// The older versions took the CPU where no GPUs were named.
bool asks_for_gpus(const trainer::Use& use) {
  const trainer::Argument* gpus = use.find("gpus");
  return gpus != nullptr && gpus->value.type != diagnose::Value::Type::none &&
         !(gpus->value.is_integer() && gpus->value.integer == 0) && !trainer::is_one(gpus);
}

// accelerator="gpu", devices=4 or [0, 1] or -1 or an option, and no word of a strategy: Lightning 2
// takes "ddp" there. The versions before it had other arguments, too, and spawned, which comes back
// to one process.
bool takes_ddp_by_itself(const Program& program, const trainer::Use& use) {
  if (program.newest().lightning < trainer::kVersion2) return false;
  const auto* devices = use.find("devices");
  const auto* accelerator = use.find("accelerator");
  if (!use.call || use.has_more || use.find("strategy") || devices == nullptr || !devices->node ||
      trainer::is_one(devices))
    return false;
  for (const char* old : {"auto_lr_find", "auto_scale_batch_size", "gpus", "resume_from_checkpoint",
                          "progress_bar_refresh_rate", "weights_summary", "checkpoint_callback",
                          "amp_backend", "replace_sampler_ddp", "distributed_backend"})
    if (use.find(old)) return false;
  // The package `lightning` came with Lightning 2, whose accelerator is "auto" where none is named.
  if (accelerator == nullptr ? !program.imports("lightning") : !accelerator->node) return false;
  const std::string kind = accelerator == nullptr
                               ? std::string()
                               : facts::lowered(program.written(accelerator->node).text());
  for (const char* other : {"cpu", "tpu", "mps", "hpu"})
    if (facts::contains(kind, other)) return false;
  if (devices->value.is_integer() && !devices->value.is_default) return devices->value.integer != 1;
  // Of several nodes, whatever one of them has.
  if (devices->value.is_string())
    return (devices->value.string == "auto" || devices->value.string == "-1") &&
           use.find("num_nodes") != nullptr && !trainer::is_one(use.find("num_nodes"));
  using diagnose::Kind;
  const Ref written = program.written(devices->node);
  return written.kind() == Kind::list
             ? facts::contains(written.text(), ",")
             : written.kind() == Kind::identifier || written.kind() == Kind::attribute;
}

// What --name gives the Trainer in the line, in words: none where that is not known.
std::string word_given(const diagnose::LaunchLine& launch, std::string_view name) {
  const auto value = facts::value_in_line(launch, {"--" + std::string(name)}, {});
  if (!value) return {};
  return value->is_integer() ? std::to_string(value->integer) : facts::lowered(value->string);
}

// 2, "0,1", "auto" and -1; "0," is the one GPU of that number.
bool is_several(std::string_view count, bool counts_gpus) {
  if (count == "-1" || count == "auto") return counts_gpus;
  if (!facts::contains(count, ",")) return diagnose::to_integer(count).value_or(0) > 1;
  const std::size_t comma = count.find(',');
  return count.find_first_not_of(", ", comma) != count.npos;
}

bool starts_several_in(const diagnose::LaunchLine& launch) {
  const auto asks_for_ddp = [&](std::string_view name) {
    const std::string words = word_given(launch, name);
    return facts::contains(words, "ddp") && !is_another(words);
  };
  // "auto" of a CPU is one process.
  const std::string accelerator = word_given(launch, "accelerator");
  const bool counts_gpus = accelerator != "cpu" && accelerator != "mps";
  return (asks_for_ddp("strategy") || asks_for_ddp("accelerator") ||
          asks_for_ddp("distributed_backend")) &&
         (is_several(word_given(launch, "gpus"), counts_gpus) ||
          is_several(word_given(launch, "devices"), counts_gpus));
}

// Trainer.from_argparse_args(args), and a command line of the script with --gpus 2 --accelerator
// ddp: the options of the Trainer come from there, unless the script sets them itself.
bool is_told_to_start_several(const Program& program, const trainer::Use& use) {
  if (!use.call || use.call.call->name != "from_argparse_args") return false;
  for (const char* name : {"strategy", "accelerator", "distributed_backend", "gpus", "devices"})
    if (use.find(name) || facts::may_be_set_otherwise(program, name)) return false;
  const auto& launches = program.launches();
  return std::any_of(launches.begin(), launches.end(), starts_several_in);
}

// Whether the Trainer starts several processes that all run the script to its end: "ddp", or "auto"
// on the devices that there are.
bool starts_several(const Program& program, const trainer::Use& use) {
  if (is_told_to_start_several(program, use)) return true;
  const auto* strategy = strategy_of(program, use);
  const auto* devices = use.find("devices");
  const auto* accelerator = use.find("accelerator");
  if (!use.call || strategy == nullptr || !strategy->node || trainer::is_one(devices) ||
      (strategy->name != "strategy" && !asks_for_gpus(use)) || trainer::is_one(use.find("gpus")) ||
      (accelerator != nullptr && accelerator->value.is_string() &&
       accelerator->value.string == "cpu"))
    return false;
  if (may_be_ddp(program, *strategy)) return true;
  const std::string words = words_of(program, *strategy).front();
  return facts::contains(words, "auto") && !is_another(words) &&
         (devices != nullptr || use.find("num_nodes"));
}

// gpus=2, gpus=[0, 1], gpus=-1, written out, as the older versions counted them.
bool asks_for_several_gpus(const trainer::Use& use) {
  const trainer::Argument* gpus = use.find("gpus");
  if (gpus == nullptr || gpus->value.is_default) return false;
  const auto& value = gpus->value;
  if (value.is_integer()) return value.integer < 0 || value.integer > 1;
  if (value.is_string()) return value.string == "-1" || facts::contains(value.string, ",");
  return value.type == diagnose::Value::Type::list && value.items.size() > 1;
}

// "ddp_spawn", which is also what the older versions took for several GPUs by themselves.
bool spawns_several(const Program& program, const trainer::Use& use) {
  if (!use.call || use.find("plugins") || trainer::is_one(use.find("devices")) ||
      trainer::is_one(use.find("gpus")))
    return false;
  for (const std::string_view name : {"strategy", "distributed_backend", "accelerator"}) {
    const trainer::Argument* argument = use.find(name);
    if (argument == nullptr || argument->value.type == diagnose::Value::Type::none) continue;
    const std::string words = words_of(program, *argument).front();
    if (facts::contains(words, "ddp") && says_any(words, {"spawn", "fork"}))
      return use.find("devices") != nullptr || asks_for_gpus(use);
    if (name != "accelerator" || !says_any(words, {"gpu", "cuda", "auto"})) return false;
  }
  return !use.has_more && asks_for_several_gpus(use);
}

// devices=args.gpus, with no word of a strategy: one device is as likely.
bool may_be_of_one_device(const Program& program, const trainer::Use& use) {
  const auto* strategy = strategy_of(program, use);
  if (strategy != nullptr && strategy->node && may_be_ddp(program, *strategy)) return false;
  const auto* devices = use.find("devices");
  if (devices == nullptr || !devices->node) return true;
  const diagnose::Kind kind = program.written(devices->node).kind();
  return kind == diagnose::Kind::identifier || kind == diagnose::Kind::attribute;
}

}  // namespace

bool has_ranks_of_its_own(const Program& program) {
  if (!program.uses(diagnose::Api::hvd_init))
    return facts::is_distributed(program) && !program.framework_distributes();
  for (const std::string_view package : {"pytorch_lightning", "lightning", "accelerate"})
    if (program.imports(package)) return false;
  return program.uses(diagnose::Api::ddp) || !program.imports("ray");
}

namespace {

// Under a test of whether there is a group: is_initialized() in its function, or above it.
bool asks_for_group(const Program& program, const CallRef& call) {
  const auto function = program.enclosing_function(call.ref());
  const auto asks = [](std::string_view text) {
    return holds_any(text, {"is_initialized", "dist.is_available", "distributed.is_available"});
  };
  if (function) return asks(Ref{function.module, function.function->body}.text());
  const auto guards = program.guards(call.ref());
  return std::any_of(guards.begin(), guards.end(),
                     [&](const auto& guard) { return asks(guard.condition.text()); });
}

// dist.get_rank() without a test fails outside of a group.
bool needs_group(const Program& program) {
  for (const diagnose::Api api : {diagnose::Api::get_rank, diagnose::Api::barrier})
    for (const CallRef& call : program.calls(api))
      if (!asks_for_group(program, call)) return true;
  return false;
}

// In the script itself, or calls that can be followed may lead there.
bool may_come_by(const Program& program, const CallRef& call) {
  return call.module == &program.root() ||
         facts::certainty_of_reach(program, call.ref()) != facts::Certainty::no;
}

// Trainer(...) itself, or a class of the script's own that derives from it. A script that imports
// one from a file that trains, beside what it asks of that file, makes no object of it.
bool uses_trainer(const Program& program) {
  const auto comes_by = [&](const CallRef& made) { return may_come_by(program, made); };
  const auto trainers = program.calls(diagnose::Api::hf_trainer);
  if (std::any_of(trainers.begin(), trainers.end(), comes_by)) return true;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Class& cls : module->classes()) {
      if (!program.derives_from({module, &cls}, diagnose::Api::hf_trainer)) continue;
      const auto made = program.calls_named(cls.name);
      const bool is_made = std::any_of(made.begin(), made.end(), comes_by);
      // trainer_class = OwnTrainer: made under another name.
      const bool is_handed_on =
          made.empty() && !program.handed_on(diagnose::ClassRef{module, &cls}).empty();
      if (module == &program.root() || is_made || is_handed_on) return true;
    }
  return false;
}

// deepspeed=None, local_rank=-1: there is none.
bool is_switched_off(const Program& program, Ref name) {
  const Ref around = name.with((*name.module)[name.node].parent);
  if (around.kind() != diagnose::Kind::keyword_argument ||
      around.child(diagnose::Field::name) != name)
    return false;
  const std::string_view value = program.written(around.child(diagnose::Field::value)).text();
  return value == "None" || value == "-1";
}

// A name that holds the word, or "--local_rank": what docstrings and messages tell is no code.
bool names_in_code(const Program& program, std::string_view word) {
  for (const diagnose::Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (diagnose::NodeId id = 0; id < tree.size(); ++id) {
      const diagnose::Kind kind = tree[id].kind;
      const bool is_name = kind == diagnose::Kind::identifier;
      if ((!is_name && kind != diagnose::Kind::string) || !facts::contains(tree.text(id), word))
        continue;
      const Ref named{module, id};
      if (is_name ? !is_switched_off(program, named)
                  : tree.text(id).find(' ') == std::string_view::npos)
        return true;
    }
  }
  return false;
}

// The example scripts of transformers log args.local_rank and args.world_size, and what grew out of
// them still does; deepspeed= names a launcher of several processes.
bool speaks_as_for_ranks(const Program& program) {
  for (const char* word : {"local_rank", "world_size", "parallel_mode", "main_process_first",
                           "process_index", "deepspeed"})
    if (program.mentions(word) && names_in_code(program, word)) return true;
  return false;
}

// {"": 0}, {"": "cuda:0"}: all of the model on one, the same in every process.
bool is_one_gpu(const Program& program, Ref map) {
  if (map.kind() != diagnose::Kind::dictionary) return false;
  const auto& tree = map.module->tree();
  if (tree.child_count(map.node) != 1) return false;
  const Ref device = map.with(tree.child_at(map.node, 0)).child(diagnose::Field::value);
  return device && !program.comes_from_rank(device) &&
         (program.integer(device) || facts::cuda_index(program, device).value_or(-1) >= 0);
}

// device_map="auto" spreads one model over the GPUs of one process, {"": 0} puts it on one.
bool spreads_one_model(const Program& program) {
  const auto loads = program.calls_named("from_pretrained");
  return std::any_of(loads.begin(), loads.end(), [&](const CallRef& load) {
    const Ref map = load.keyword("device_map");
    return map && (program.string(map).value_or("") == "auto" || is_one_gpu(program, map));
  });
}

// os.environ["CUDA_VISIBLE_DEVICES"] = "0"
bool sees_one_gpu(const Program& program) {
  const auto visible = visible_devices(program);
  return !visible.empty() && std::all_of(visible.begin(), visible.end(), [&](Ref devices) {
    const auto text = program.string(devices);
    return text && !facts::contains(*text, ",");
  });
}

}  // namespace

bool is_named_for_ranks(const Program& program) {
  const auto words = words_of_name(diagnose::script_file(program.root()));  // ddpm is diffusion
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "ddp" || word == "torchrun" || word == "distributed";
  });
}

bool has_trainer_ranks(const Program& program) {
  if (!uses_trainer(program)) return false;
  if (is_named_for_ranks(program) || needs_group(program)) return true;
  for (const char* word :
       {"WORLD_SIZE", "LOCAL_RANK", "\"RANK\"", "'RANK'", "is_world_process_zero",
        "ddp_find_unused_parameters", "is_main_process", "is_deepspeed_enabled", "is_fsdp_enabled"})
    if (program.mentions(word)) return true;
  return !spreads_one_model(program) && !sees_one_gpu(program) && speaks_as_for_ranks(program);
}

bool fits_in_lightning_ranks(const Program& program, const CallRef& fit) {
  if (program.is_notebook()) return false;
  const CallRef made = program.made_by(fit.receiver());
  const std::vector<trainer::Use> uses = trainer::uses(program);
  const auto is_meant = [&](const trainer::Use& use) {
    return use.call && (!made || use.call.ref() == made.ref());
  };
  return std::any_of(uses.begin(), uses.end(), is_meant) &&
         std::all_of(uses.begin(), uses.end(), [&](const trainer::Use& use) {
           return !is_meant(use) || is_told_to_start_several(program, use) ||
                  ((starts_several(program, use) || takes_ddp_by_itself(program, use)) &&
                   !may_be_of_one_device(program, use));
         });
}

bool runs_steps_in_several(const Program& program) {
  if (program.is_notebook()) return false;
  if (has_lightning_ranks(program)) return true;
  const std::vector<trainer::Use> uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(),
                     [&](const trainer::Use& use) { return spawns_several(program, use); });
}

bool has_lightning_ranks(const Program& program) {
  if (program.is_notebook()) return false;
  const std::vector<trainer::Use> uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [&](const trainer::Use& use) {
    return starts_several(program, use) || takes_ddp_by_itself(program, use);
  });
}

}  // namespace bench::pitfalls
