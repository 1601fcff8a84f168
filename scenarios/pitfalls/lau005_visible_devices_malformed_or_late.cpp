#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <utility>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::LaunchLine;
using diagnose::LaunchWord;
using diagnose::Module;
using diagnose::NodeId;

namespace {

std::optional<std::string> problem_of(const std::string& devices) {
  if (facts::contains(devices, "GPU-") || facts::contains(devices, "MIG-")) return std::nullopt;
  const auto parsed = diagnose::parse_visible_devices(devices);
  return parsed.problem.empty() ? std::nullopt : std::optional(parsed.problem);
}

// AutoModel.from_pretrained(name, device_map="auto"): the weights are loaded onto the GPUs.
bool is_loaded_onto_gpus(const Program& program, const CallRef& load) {
  const Ref map = load.call->name == "from_pretrained" ? load.keyword("device_map") : Ref{};
  if (program.written(map).kind() != Kind::string) return false;
  const auto where = program.string(map);
  return where && (*where == "auto" || *where == "sequential" || where->starts_with("balanced") ||
                   where->starts_with("cuda"));
}

// model.parallelize({0: [0, 1], 1: [2, 3]}) of Transformers spreads the blocks over the GPUs.
bool is_spread_over_gpus(const Program& program, const CallRef& call) {
  if (call.call->name != "parallelize" || !call.receiver()) return false;
  const auto& sources = program.module_sources(call.receiver());
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef load = program.as_call(source.ref);
           return load && load.call->name == "from_pretrained" && !program.callee(load);
         });
}

// "cuda", torch.device("cuda:1") and the only name of it; a choice may fall on the CPU.
bool is_gpu(const Program& program, Ref device) {
  const auto& sources = program.sources(device);
  if (sources.size() != 1 || !facts::cuda_index(program, device)) return false;
  const Ref made = sources.front().ref;
  const CallRef call = program.as_call(made);
  return made.kind() == Kind::string ||
         (call && call.call->api == Api::torch_device &&
          program.written(call.positional(0)).kind() == Kind::string);
}

// Calls that initialise CUDA in this process; is_available() counts devices in the driver, which
// reads the variable once. DataParallel compares the devices' memory when it is built.
bool starts_cuda(const Program& program, const CallRef& call) {
  if (call.call->name == "is_available" && call.call->path == "torch.cuda.is_available")
    return true;
  // What asks a GPU for its properties initialises CUDA; counting GPUs does not.
  static constexpr std::string_view kAsk[] = {
      "torch.cuda.get_device_name", "torch.cuda.get_device_properties",
      "torch.cuda.get_device_capability", "torch.cuda.mem_get_info", "torch.cuda.init"};
  const std::string_view path = call.call->path;
  if (std::find(std::begin(kAsk), std::end(kAsk), path) != std::end(kAsk)) return true;
  if (call.call->name == "cuda" && call.receiver()) return true;
  // net.to("cuda"), net.to(device)
  const Ref device =
      call.call->name == "to" && call.receiver() ? call.argument(0, "device") : Ref{};
  if (device && is_gpu(program, device)) return true;
  if (is_loaded_onto_gpus(program, call) || is_spread_over_gpus(program, call)) return true;
  const Api api = call.call->api;
  return api == Api::set_device || api == Api::current_device || api == Api::cuda_synchronize ||
         api == Api::data_parallel;
}

// No test around the call that is not around the other node as well, such as that of __main__.
bool is_run_with(const Program& program, Ref call, Ref other) {
  const auto around = program.guards(other);
  for (const diagnose::Guard& guard : program.guards(call))
    if (std::find(around.begin(), around.end(), guard) == around.end()) return false;
  return true;
}

// The call initialises CUDA, or the local function that it calls always does.
bool leads_to_cuda(const Program& program, const CallRef& call) {
  if (starts_cuda(program, call)) return true;
  const diagnose::FunctionRef helper = program.callee(call);
  if (!helper) return false;
  const Ref body{helper.module, helper.function->body};
  const auto inside = facts::calls_in(body);
  return std::any_of(inside.begin(), inside.end(), [&](const CallRef& each) {
    return starts_cuda(program, each) && is_unconditional(program, each.ref()) &&
           program.enclosing_function(each.ref()) == helper && !program.innermost_loop(each.ref());
  });
}

// subprocess.run(["torchrun", ...]) below the line: the variable is meant for what is started
// there, which inherits it.
bool is_for_children(const Program& program, Ref assignment) {
  constexpr std::string_view kStarts[] = {"subprocess.", "os.system", "os.exec", "os.spawn",
                                          "os.popen"};
  constexpr std::string_view kPrograms[] = {"python",     ".py",       "sys.executable", "torchrun",
                                            "accelerate", "deepspeed", "horovodrun",     "mpirun"};
  const auto names_any = [](std::string_view text, const auto& list) {
    return std::any_of(std::begin(list), std::end(list),
                       [&](std::string_view word) { return facts::contains(text, word); });
  };
  const Module* module = assignment.module;
  return std::any_of(module->calls().begin(), module->calls().end(), [&](const auto& call) {
    if (call.node < assignment.node ||
        module->function_of(call.node) != module->function_of(assignment.node) ||
        !names_any(call.path, kStarts))
      return false;
    const auto& commands = program.sources(CallRef{module, &call}.positional(0));
    return std::any_of(commands.begin(), commands.end(), [&](const diagnose::Source& command) {
      return names_any(command.ref.text(), kPrograms);
    });
  });
}

// n = torch.cuda.device_count() above the line, for mp.spawn(work, nprocs=n) below it: a process
// for each GPU that was there before.
bool counts_gpus_above(const Program& program, Ref processes, Ref assignment) {
  const auto counts = program.calls(Api::device_count);
  const auto sources = processes ? program.sources(processes) : std::vector<diagnose::Source>{};
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return std::any_of(counts.begin(), counts.end(), [&](const CallRef& count) {
      return count.ref() == source.ref && program.runs_before(count.ref(), assignment);
    });
  });
}

// mp.spawn(work, ...) below the line: each of the processes reads the variable anew.
bool is_for_ranks(const Program& program, Ref assignment) {
  const auto starts = program.calls(Api::spawn);
  return std::any_of(starts.begin(), starts.end(), [&](const CallRef& start) {
    return program.runs_before(assignment, start.ref()) &&
           !counts_gpus_above(program, start.argument(2, "nprocs"), assignment);
  });
}

// The expression itself is a part of the arguments, and no longer name that begins with it.
bool holds_expression(Ref arguments, Ref expression) {
  const auto& tree = arguments.module->tree();
  for (NodeId id = arguments.node; id < tree[arguments.node].last; ++id)
    if (tree[id].kind == expression.kind() && tree.text(id) == expression.text() &&
        tree[id].field != Field::attribute && tree[id].field != Field::name)
      return true;
  return false;
}

// os.environ[...] = str(args.gpu) beside torch.device("cuda", args.gpu): the variable would only
// shift what the index means.
bool is_chosen_by_index(const Program& program, Ref assignment) {
  const CallRef text = program.as_call(assignment.child(Field::right));
  const Ref number = text && text.call->name == "str" ? text.positional(0) : Ref{};
  if (!diagnose::stands_for_object(number)) return false;
  const auto devices = program.calls(Api::torch_device);
  return std::any_of(devices.begin(), devices.end(), [&](const CallRef& device) {
    return device.module == assignment.module &&
           program.enclosing_function(device.ref()) == program.enclosing_function(assignment) &&
           holds_expression(device.ref().child(Field::arguments), number);
  });
}

constexpr std::string_view kVariable = "CUDA_VISIBLE_DEVICES";

// Letters to put in, leave out or change to come from one word to the other (V. Levenshtein, 1966).
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = i;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

// CUDA_VISIBLE_DEVICE, CUDA_VISIABLE_DEVICES
bool is_misspelt(std::string_view name) {
  constexpr std::size_t kSlips = 2;
  if (name.size() + kSlips < kVariable.size() || name.size() > kVariable.size() + kSlips)
    return false;
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  // Windows does not tell capitals from small letters, and CUDA_VISIBLE_DEVICES_ is meant.
  return upper.starts_with("CUDA") && !upper.starts_with(kVariable) &&
         edits_between(upper, kVariable) <= kSlips;
}

// Names in the environment that need no other spelling: those that the script reads back, and all
// where it gives the variable its value under the right name too.
struct NamesInUse {
  std::set<std::string, std::less<>> read;
  bool sets_variable = false;
};
NamesInUse names_in_use(const Program& program) {
  NamesInUse out;
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    const auto note = [&](NodeId node, const std::string& name) {
      const bool is_set = tree[node].field == Field::left;
      if (!is_set && !name.empty()) out.read.insert(name);
      out.sets_variable = out.sets_variable || (is_set && name == kVariable);
    };
    for (const diagnose::EnvironmentItem& item : module->environment_items())
      note(item.node, item.name);
    for (const diagnose::Call& call : module->calls())
      note(call.node, program.environment_name({module, call.node}));
  }
  return out;
}

// os.environ["NAME"] = value
bool is_target(const diagnose::SyntaxTree& tree, NodeId item) {
  return tree[item].field == Field::left && tree[tree[item].parent].kind == Kind::assignment;
}

void check_name_of_variable(const Program& program, Report& report) {
  const auto told = [](std::string_view name) {
    return std::string(name) + " is no variable that CUDA reads: " + std::string(kVariable) +
           " is, and every GPU stays visible";
  };
  for (const LaunchLine& launch : program.launches())
    for (const auto& [name, value] : launch.environment)
      if (is_misspelt(name) && !launch.environment.contains(std::string(kVariable))) {
        LaunchWord word = value;  // the mistake is in the name in front of it
        const auto width = static_cast<std::uint32_t>(name.size() + 1);
        if (word.column > width) word.column -= width;
        Finding& finding = report.at_word(launch.file, word, Confidence::certain, told(name));
        finding.help = "Spell it " + std::string(kVariable) + ".";
        // Whoever copies the line from a README copies the slip.
        finding.is_for_readers = launch.is_example;
        if (launch.is_example) finding.severity = Severity::warning;
      }
  std::vector<std::pair<Ref, std::string_view>> misspelt;
  for (const Module* module : program.modules())
    for (const diagnose::EnvironmentItem& item : module->environment_items())
      if (is_target(module->tree(), item.node) && is_misspelt(item.name))
        misspelt.emplace_back(Ref{module, item.node}, item.name);
  if (misspelt.empty()) return;
  const auto in_use = names_in_use(program);
  if (in_use.sets_variable) return;
  for (const auto& [target, name] : misspelt)
    if (!in_use.read.contains(name))
      report.at(target, Confidence::certain, told(name)).help =
          "Spell it " + std::string(kVariable) + ".";
}

// CUDA_VISIBLE_DEVICES=0,1 on a line of its own: a variable of the shell, which no command sees.
void check_not_exported(const Program& program, Report& report) {
  for (const LaunchLine& launch : program.launches()) {
    const auto found = launch.not_exported.find(std::string(kVariable));
    if (found == launch.not_exported.end() || found->second.text.empty() || launch.is_elsewhere ||
        launch.environment.contains(std::string(kVariable)))
      continue;
    Finding& finding =
        report.at_word(launch.file, found->second, Confidence::likely,
                       std::string(kVariable) +
                           " is not exported: the commands below do not see it, and every GPU "
                           "stays visible");
    finding.severity = Severity::warning;
    // The first GPUs are those that the ranks take anyway.
    const auto listed = diagnose::parse_visible_devices(found->second.text).ids;
    const auto ranks = launch.processes_per_node().value_or(0);
    if (launch.launcher != diagnose::Launcher::python && ranks > 0 &&
        ranks == static_cast<std::int64_t>(listed.size()) &&
        std::is_sorted(listed.begin(), listed.end()) && listed.back() + 1 == ranks)
      tell_as_note(finding);
    // $(seq -s, 0 $((GPUS - 1))): the first ones, often all that there are.
    if (!found->second.literal && facts::contains(found->second.text, "seq -s, 0 "))
      tell_as_note(finding, "the list counts from the first GPU, as the commands do without it");
    finding.help = "Write export in front of it, or put it on the line of the command.";
  }
}

}  // namespace

void check_visible_devices_malformed_or_late(const Program& program, Report& report) {
  check_name_of_variable(program, report);
  check_not_exported(program, report);
  for (const LaunchLine& launch : program.launches()) {
    const auto found = launch.environment.find("CUDA_VISIBLE_DEVICES");
    if (found == launch.environment.end() || !found->second.literal) continue;
    if (const auto problem = problem_of(found->second.text))
      report
          .at_word(launch.file, found->second, Confidence::certain,
                   "CUDA_VISIBLE_DEVICES=" + found->second.text + ": " + *problem)
          .help = "List each index once, separated by commas.";
  }
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::assignment)) {
      const Ref assignment{module, node};
      const Ref target = assignment.child(Field::left);
      if (target.kind() != Kind::subscript ||
          program.environment_name(target) != "CUDA_VISIBLE_DEVICES")
        continue;
      const Ref value = assignment.child(Field::right);
      // A parameter or an option may be "cpu" in the one call that is seen.
      const bool written = program.sources(value).size() == 1 &&
                           program.enclosing_function(program.sources(value).front().ref) ==
                               program.enclosing_function(value);
      const auto text = written ? program.string(value) : std::nullopt;
      if (text)
        if (const auto problem = problem_of(*text))
          report.at(value, Confidence::certain, "CUDA_VISIBLE_DEVICES=" + *text + ": " + *problem)
              .help = "List each index once, separated by commas.";
      for (const auto& call : module->calls()) {
        const CallRef ref{module, &call};
        if (call.node >= node || module->function_of(call.node) != module->function_of(node) ||
            !is_run_with(program, ref.ref(), assignment) || !leads_to_cuda(program, ref) ||
            facts::exclusive(ref.ref(), assignment) || is_for_children(program, assignment) ||
            is_for_ranks(program, assignment))
          continue;
        Finding& finding = report.at(
            assignment, Confidence::certain,
            "CUDA is in use above this line: setting CUDA_VISIBLE_DEVICES now has no effect");
        if (is_chosen_by_index(program, assignment))
          tell_as_note(finding, "the same number picks the GPU by its index");
        finding.help = "Set it in the launch line, or at the top of the script.";
        break;
      }
    }
}

}  // namespace bench::pitfalls
