#include "scenarios/pitfalls/reach/as_launched.hpp"

#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/launched_with.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/fixed_commands.hpp"
#include "scenarios/pitfalls/reach/passed_by.hpp"

#include <algorithm>
#include <iterator>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::LaunchWord;
using diagnose::Source;
using diagnose::Value;

namespace {

constexpr int kNamesOfOption = 4;  // between a condition and the option in it

// --resume, --pretrained: where a run begins differs from run to run, and its line shows one.
bool is_of_start(std::string_view option) {
  return says_any(option, {"resume", "ckpt", "checkpoint", "load", "restore", "pretrain", "weights",
                           "path", "file", "dir", "init", "start", "continue"});
}

// What one line says of the program's options.
class Line {
 public:
  explicit Line(const Program& program, const LaunchLine& launch, bool is_fixed = false)
      : program_(program), launch_(launch), is_fixed_(is_fixed) {}

  std::optional<Value> value_of(Ref at, int depth = 0) const {
    if (!at || depth > kNamesOfOption) return std::nullopt;
    switch (at.kind()) {
      case Kind::not_expression:
      case Kind::comparison:
      case Kind::boolean:
        return decided_value(program_, at, [&](Ref part) { return value_of(part, depth + 1); });
      case Kind::identifier:
      case Kind::attribute:
      case Kind::subscript:
        break;
      default:
        return std::nullopt;
    }
    const auto& sources = program_.sources(at);
    std::optional<Value> out;
    for (const Source& source : sources) {
      const auto value = value_of_source(source, at, depth);
      if (!value || (out && same_value(*out, *value) != true)) return std::nullopt;
      out = value;
    }
    return out;
  }

  bool passes_by(Ref node) const {
    return facts::is_passed_by(program_, node, [this](Ref part) { return value_of(part); });
  }

 private:
  std::optional<Value> value_of_source(const Source& source, Ref at, int depth) const {
    if (source.how == Source::How::argument) {
      if (!is_fixed_ && is_of_start(diagnose::last_word(at))) return std::nullopt;
      return option_in_line(program_, program_.as_call(source.ref), launch_);
    }
    if (source.how != Source::How::value || source.ref == at) return std::nullopt;
    return value_of(source.ref, depth + 1);
  }

  const Program& program_;
  const LaunchLine& launch_;
  const bool is_fixed_;  // no run has another line
};

// RANK=1 python train.py, accelerate launch --machine_rank 1 train.py
bool starts_a_part(const LaunchLine& launch) {
  for (const auto& [name, word] : launch.environment)
    if (name.ends_with("RANK") || name == "WORLD_SIZE") return true;
  for (const char* rank : {"machine-rank", "node-rank"})
    if (launch.flags.contains(rank) && launch.integer_flag(rank) != 0) return true;
  return launch.nodes() != 1;
}

// --world_size 2 --rank 0: one of several processes, started by hand.
bool speaks_of_several(const LaunchLine& launch) {
  if (starts_a_part(launch)) return true;
  const auto& words = launch.script_arguments;
  return std::any_of(words.begin(), words.end(), [](const LaunchWord& word) {
    return word.text.starts_with("--") &&
           says_any(word.text, {"dist", "ddp", "world", "proc", "gpus", "rank", "node", "launch"});
  });
}

bool is_written_as_one(const Program& program, Ref number) {
  const Value value = program.evaluate(number);
  return number && value.is_integer() && value.integer == 1 && !value.is_default;
}

// The program itself starts ranks, or joins a group, where the line comes by.
bool starts_ranks_itself(const Program& program, const Line& line) {
  const auto comes_by = [&](const CallRef& call) { return !line.passes_by(call.ref()); };
  for (const CallRef& spawn : program.calls(Api::spawn))
    if (comes_by(spawn) && !is_written_as_one(program, spawn.argument(2, "nprocs"))) return true;
  for (const CallRef& start : starts_of_processes(program))
    if (comes_by(start) && may_start_a_rank(program, start)) return true;
  const auto joins = program.calls(Api::init_process_group);
  return std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    return comes_by(join) && !is_written_for_one(program, join);
  });
}

// Launchers that the script names, if in a comment only, and what starts processes in other ways.
bool names_a_launcher(const Program& program) {
  for (const char* launcher :
       {"torchrun", "distributed.launch", "distributed.run", "srun", "accelerate launch"})
    if (speaks_of(program, launcher)) return true;
  for (const char* start : {"notebook_launcher", "debug_launcher", "elastic_launch", "launch_agent",
                            "TorchTrainer", "execvp", "execv", "execl", "submitit", "WORLD_SIZE"})
    if (program.mentions(start)) return true;
  return false;
}

// What joins a group where the program does not show it: Lightning and Horovod, helpers of other
// packages. Accelerate makes a process no more than it is started as.
bool may_start_unseen(const Program& program) {
  if (program.uses(Api::lightning_trainer) || program.uses(Api::hvd_init)) return true;
  if (names_a_launcher(program)) return true;
  if (program.uses(Api::accelerator)) return false;
  return program.framework_distributes() ||
         (program.calls(Api::init_process_group).empty() && works_in_a_group(program));
}

// Without a word of a launcher.
bool is_one_alone(const Program& program, const LaunchLine& launch, const Line& line) {
  if (speaks_of_several(launch) || may_start_unseen(program)) return false;
  return !starts_ranks_itself(program, line);
}

bool makes_group_of_one(const LaunchLine& launch) {
  return launch.processes_per_node() == 1 && !starts_a_part(launch);
}

// A config file may ask for several; a number in the line overrules it.
bool is_one_of_accelerate(const LaunchLine& launch) {
  if (starts_a_part(launch)) return false;
  if (launch.flags.contains("num-processes")) return launch.integer_flag("num-processes") == 1;
  return !launch.flags.contains("config-file") && launch.visible_devices() == 1;
}

bool is_one_process(const Program& program, const LaunchLine& launch, const Line& line,
                    bool in_group) {
  switch (launch.launcher) {
    case Launcher::python:
      return !launch.is_job_step && is_one_alone(program, launch, line);
    case Launcher::accelerate:
      return is_one_of_accelerate(launch);
    case Launcher::torchrun:
    case Launcher::launch_module:
    case Launcher::deepspeed:
    case Launcher::srun:
      // The number in a README's line is the first that its readers change.
      return in_group && !launch.is_example && makes_group_of_one(launch) &&
             program.calls(Api::spawn).empty();
    default:
      return false;
  }
}

}  // namespace

std::vector<CallRef> starts_of_processes(const Program& program) {
  std::vector<CallRef> out;
  for (const char* name : {"Process", "Popen", "launch", "start_processes"}) {
    const auto calls = program.calls_named(name);
    out.insert(out.end(), calls.begin(), calls.end());
  }
  return out;
}

namespace {

bool speaks_of_ranks(std::string_view text) {
  return says_any(text, {"rank", "dist", "world", "ddp"});
}

// The function joins a group or wraps a model, perhaps in what it calls.
bool may_be_rank(const Program& program, Ref function) {
  if (speaks_of_ranks(function.text())) return true;
  return program.subtree_calls(function, [&](const CallRef& call) {
    return call.call->api == Api::init_process_group || speaks_of_ranks(call.call->name) ||
           program.wrap_made_by(call.ref()) != nullptr;
  });
}

// self.write_part, of the class that starts it.
diagnose::FunctionRef own_method(const Program& program, Ref target) {
  if (target.kind() != Kind::attribute || target.child(diagnose::Field::object).text() != "self")
    return {};
  const diagnose::ClassRef owner = program.enclosing_class(target);
  return owner ? program.method(owner, target.child(diagnose::Field::attribute).text())
               : diagnose::FunctionRef{};
}

}  // namespace

bool may_start_a_rank(const Program& program, const CallRef& start) {
  const Ref target = start.keyword("target");
  if (start.call->name != "Process" || !target) return true;
  if (const auto method = own_method(program, target))
    return may_be_rank(program, {method.module, method.function->node});
  const auto& sources = program.sources(target);
  return sources.empty() || std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
           return source.ref.kind() != Kind::function || may_be_rank(program, source.ref);
         });
}

bool surely_starts_ranks(const Program& program, const CallRef& start) {
  Ref target = start.keyword("target");
  if (!target && start.call->name != "Process") target = start.argument(0, "fn");
  if (!target) return false;
  const auto joins = [&](Ref function) {
    return program.subtree_calls(
        function, [](const CallRef& call) { return call.call->api == Api::init_process_group; });
  };
  if (const auto method = own_method(program, target))
    return joins({method.module, method.function->node});
  const auto& sources = program.sources(target);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    return source.ref.kind() == Kind::function && joins(source.ref);
  });
}

bool is_passed_by(const Program& program, const LaunchLine& launch, Ref node) {
  return Line(program, launch).passes_by(node);
}

bool is_left_out_by_all_lines(const Program& program, Ref node) {
  const auto& launches = program.launches();
  return !launches.empty() &&
         std::all_of(launches.begin(), launches.end(), [&](const LaunchLine& launch) {
           return is_passed_by(program, launch, node);
         });
}

std::string one_process_as_launched(const Program& program, Ref node, bool in_group) {
  const auto& launches = program.launches();
  bool any = false;
  bool all = true;
  for (const LaunchLine& launch : launches) {
    const Line line(program, launch);
    if (is_one_process(program, launch, line, in_group)) {
      any = any || !line.passes_by(node);
    } else if (line.passes_by(node)) {
      all = false;
    } else {
      return {};
    }
  }
  if (!any) return {};
  return all ? "all launch lines that are known start one process"
             : "the launch lines that come by start one process";
}

bool is_off_as_launched(const Program& program, Ref flag) {
  const auto is_off = [&](const LaunchLine& launch) {
    const auto value = Line(program, launch).value_of(flag);
    return value && value->is_false();
  };
  const auto& launches = program.launches();
  return is_off({}) && std::all_of(launches.begin(), launches.end(), is_off);
}

std::string passed_by_fixed_commands(const Program& program, Ref node) {
  const auto commands = fixed_commands(program);
  const auto passes_by = [&](const LaunchLine& words) {
    return Line(program, words, true).passes_by(node);
  };
  return !commands.empty() && std::all_of(commands.begin(), commands.end(), passes_by)
             ? "the words that parse_args() is given here do not lead to it"
             : "";
}

}  // namespace bench::pitfalls::facts
