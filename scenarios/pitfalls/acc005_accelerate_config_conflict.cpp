#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/env_rendezvous.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ConfigEntry;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::LaunchWord;

namespace {

const ConfigEntry* top_level(const Program& program, std::string_view key) {
  for (const ConfigEntry& entry : program.configs())
    if (entry.path == key) return &entry;
  return nullptr;
}

Finding& flag_entry(Report& report, const ConfigEntry& entry, std::string message) {
  LaunchWord word;
  word.text = std::string(entry.key());
  word.line = entry.line;
  word.column = entry.column;
  return report.at_word(entry.file, word, Confidence::certain, std::move(message));
}

// The script asks for its rank, or its TrainingArguments for DeepSpeed or options of DDP.
bool is_written_for_several(const Program& program) {
  for (const char* word : {"LOCAL_RANK", "process_index", "ddp_find_unused_parameters"})
    if (program.mentions(word)) return true;
  if (makes_accelerator(program))
    for (const char* word : {"is_main_process", "wait_for_everyone"})
      if (program.mentions(word)) return true;
  for (const CallRef& arguments : program.calls_named("TrainingArguments"))
    if (const Ref engine = arguments.keyword("deepspeed");
        engine && engine.kind() != diagnose::Kind::none_literal)
      return true;
  return false;
}

// Accelerate or DDP around a training loop, or the Trainer of a launch with several processes.
bool runs_in_several_processes(const Program& program) {
  if (program.has_ddp() || (makes_accelerator(program) && !program.training_loops().empty()))
    return true;
  if (!program.uses(Api::hf_trainer)) return false;
  const auto starts_several = [](const LaunchLine& launch) {
    return launch.launcher != Launcher::python && launch.processes_per_node().value_or(1) > 1;
  };
  const auto shown = own_launches_in_text(program);
  return is_written_for_several(program) ||
         std::any_of(program.launches().begin(), program.launches().end(), starts_several) ||
         std::any_of(shown.begin(), shown.end(), starts_several);
}

// What is loaded is passed to prepare(), to a Trainer or into DDP: a reference model, or one of a
// unit test beside the trainer, may well be spread.
bool is_trained(const Program& program, const CallRef& load) {
  const auto leads_to_load = [&](Ref value) {
    if (!value) return false;
    const std::vector<Ref> behind = facts::calls_behind(program, value);
    return std::find(behind.begin(), behind.end(), load.ref()) != behind.end();
  };
  for (const CallRef& prepare : program.calls_named("prepare"))
    for (std::size_t i = 0; const Ref argument = prepared_by(prepare, i); ++i)
      if (leads_to_load(argument)) return true;
  for (const CallRef& trainer : program.calls(Api::hf_trainer))
    if (leads_to_load(trainer.argument(0, "model"))) return true;
  return std::any_of(program.wraps().begin(), program.wraps().end(),
                     [&](const auto& wrap) { return leads_to_load(wrap.module); });
}

// "auto" and its kin, or {"": "auto"} for the whole model.
bool spreads(const Program& program, Ref map) {
  const std::string name = program.string(map).value_or("");
  for (const char* each : {"auto", "balanced", "balanced_low_0", "sequential"})
    if (name == each) return true;
  const std::string_view text = map.text();
  return map.kind() == diagnose::Kind::dictionary &&
         map.module->tree().child_count(map.node) == 1 &&
         (facts::contains(text, "\"auto\"") || facts::contains(text, "'auto'"));
}

// {"": 0} and {"": "cuda:0"}: the whole model on one GPU, the same one in every process.
bool fixes_one_gpu(const Program& program, Ref map) {
  const Ref written = program.written(map);
  const auto& tree = written.module->tree();
  if (written.kind() != diagnose::Kind::dictionary || tree.child_count(written.node) != 1)
    return false;
  const Ref item = written.with(tree[written.node].first_child);
  const Ref place = item.child(diagnose::Field::value);
  return item.kind() == diagnose::Kind::pair &&
         tree.string_value(item.child(diagnose::Field::key).node).value_or("?").empty() &&
         (place.kind() == diagnose::Kind::integer ||
          tree.string_value(place.node).value_or("").starts_with("cuda:"));
}

// model = load(...); model.eval(); return model: what trains it puts it back to train(). A teacher
// stays as it is.
bool is_put_to_eval(const Program& program, const CallRef& load) {
  const std::string_view name = program.assigned_name(load.ref());
  const auto function = program.enclosing_function(load.ref());
  const auto is_of_load = [&](const CallRef& mode) {
    return mode.receiver() && mode.receiver().text() == name && mode.module == load.module &&
           program.enclosing_function(mode.ref()) == function;
  };
  const auto evals = program.calls_named("eval");
  const auto trains = program.calls_named("train");
  return !name.empty() && std::any_of(evals.begin(), evals.end(), is_of_load) &&
         std::none_of(trains.begin(), trains.end(), is_of_load);
}

// AutoModelForCausalLM.from_pretrained(...), and no other model in the program: the one it trains.
bool is_only_model(const Program& program, const CallRef& load) {
  const auto loads = program.calls_named("from_pretrained");
  const auto is_model = [](const CallRef& each) {
    const std::string name = facts::lowered(each.receiver().text());
    return facts::contains(name, "model") && !facts::contains(name, "peft");
  };
  return is_model(load) && std::count_if(loads.begin(), loads.end(), is_model) == 1;
}

}  // namespace

void check_accelerate_config_conflict(const Program& program, Report& report) {
  const ConfigEntry* type = top_level(program, "distributed_type");
  const ConfigEntry* processes = top_level(program, "num_processes");
  if (type != nullptr && processes != nullptr && processes->value.is_integer()) {
    const auto count = processes->value.integer;
    const bool is_single = type->value.string == "NO" || type->value.is_false();
    if (is_single && count > 1)
      flag_entry(report, *type,
                 "distributed_type is NO but num_processes is " + std::to_string(count) +
                     ": one GPU is used, silently")
          .help = "Set distributed_type: MULTI_GPU.";
    const ConfigEntry* ids = top_level(program, "gpu_ids");
    if (!is_single && ids != nullptr && ids->value.is_string() &&
        facts::contains(ids->value.string, ",")) {
      const auto gpus = std::count(ids->value.string.begin(), ids->value.string.end(), ',') + 1;
      const ConfigEntry* machines = top_level(program, "num_machines");
      if (count > gpus && (machines == nullptr || machines->value.integer == 1))
        flag_entry(report, *processes,
                   std::to_string(count) + " processes for " + std::to_string(gpus) +
                       " GPUs: CUDA error, invalid device ordinal")
            .help = "Make num_processes the number of gpu_ids.";
    }
  }
  for (const CallRef& load : program.calls_named("from_pretrained")) {
    const Ref map = load.keyword("device_map");
    // device_map = {"": local_rank} if ddp: what a name holds may be decided further down.
    if (!map || program.sources(map).size() != 1) continue;
    const bool is_spread = spreads(program, map);
    if (!is_spread && !fixes_one_gpu(program, map)) continue;
    // A pipeline of diffusers draws pictures; it has no weights of its own to train.
    if (facts::contains(load.receiver().text(), "Pipeline")) continue;
    if (facts::only_without_distribution(program, map) ||
        program.guarded_by_rank(load.ref()) != diagnose::RankTest::none ||
        !runs_in_several_processes(program) ||
        !(is_trained(program, load) ||
          (is_only_model(program, load) && !is_put_to_eval(program, load))))
      continue;
    const std::string word = is_spread ? program.string(map).value_or("auto") : "";
    report
        .at(map, Confidence::likely,
            is_spread ? "device_map=\"" + word +
                            "\" spreads one model over all GPUs: it cannot be trained in a "
                            "distributed mode (ValueError)"
                      : "every process loads the model onto the same GPU, and not onto its own: "
                        "out of memory, or a ValueError for a quantized model")
        .help = "Use device_map={\"\": accelerator.local_process_index}.";
  }
}

}  // namespace bench::pitfalls
