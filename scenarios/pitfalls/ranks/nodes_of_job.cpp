// Whether a job has one node or several, as far as its script and its launch lines tell.
#include "scenarios/pitfalls/ranks/nodes_of_job.hpp"

#include "diagnose/model/script_kind.hpp"
#include "diagnose/model/shown_commands.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Value;

namespace {

// args.rank = node * gpus, and in the worker args.rank += gpu.
bool adds_local_rank(const Program& program) {
  for (const auto* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::augmented_assignment)) {
      const Ref sum{module, node};
      const std::string name = lowered(sum.child(Field::left).text());
      if (!name.ends_with("rank") || !program.is_local_rank(sum.child(Field::right))) continue;
      for (const Source& source : program.sources(sum.child(Field::left)))
        if (source.ref.kind() == Kind::binary &&
            source.ref.module->tree()[source.ref.node].op == diagnose::Op::multiply)
          return true;
    }
  return false;
}

}  // namespace

// rank = node_rank * gpus + local_rank: the program is made for several machines.
bool computes_global_rank(const Program& program) {
  if (adds_local_rank(program)) return true;
  for (const auto* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId id : module->nodes_of(Kind::binary)) {
      if (tree[id].op != diagnose::Op::add) continue;
      const Ref left = Ref{module, id}.child(Field::left);
      const Ref right = Ref{module, id}.child(Field::right);
      const auto is_product = [](Ref part) {
        return part && part.kind() == Kind::binary &&
               part.module->tree()[part.node].op == diagnose::Op::multiply;
      };
      // A seed is computed alike.
      const Ref whole{module, id};
      const NodeId parent = tree[id].parent;
      const auto is_rank = [&] {
        return contains(lowered(program.assigned_name(whole)), "rank") ||
               (tree[parent].kind == Kind::keyword_argument &&
                tree.text(parent).starts_with("rank"));
      };
      if ((is_product(left) || is_product(right)) && is_rank() &&
          ((is_product(left) && program.is_local_rank(right)) ||
           (is_product(right) && program.is_local_rank(left))))
        return true;
    }
  }
  return false;
}

namespace {

// subprocess.run([sys.executable, "-m", "torch.distributed.launch", "--nproc_per_node", n, ...]):
// the program starts its ranks itself, and tells the launcher of no other node.
bool launches_itself_here(const Program& program) {
  const auto is_launcher = [](std::string_view word) {
    return word == "torch.distributed.launch" || word == "torch.distributed.run" ||
           word == "torchrun";
  };
  for (const auto* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId list : module->nodes_of(Kind::list)) {
      bool launches = false;
      for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling)
        launches = launches || (tree[at].kind == Kind::string &&
                                is_launcher(program.string({module, at}).value_or("")));
      if (!launches) continue;
      bool tells_more = false;
      for (const std::string_view word : {"node_rank", "nnodes", "rdzv", "*"})
        tells_more = tells_more || contains(tree.text(list), word);
      if (!tells_more) return true;
    }
  }
  return false;
}

// In a function that nothing calls, as one left from an example. A decorator, or the language (with
// job:, job()), may call it all the same.
bool is_in_leftover(const Program& program, Ref node) {
  const auto function = program.enclosing_function(node);
  if (!function || function.function->owner_class != diagnose::kNoNode) return false;
  const auto& tree = function.module->tree();
  const NodeId around = tree[function.function->node].parent;
  return (around == diagnose::kNoNode || tree[around].kind != Kind::decorated) &&
         program.call_sites(function).empty() && program.handed_on(function).empty() &&
         !is_reachable(program, node);
}

// The script itself says that all ranks share one machine: a rendezvous on the loopback address, as
// many ranks as GPUs here, or ranks that are the indices mp.spawn hands out.
bool starts_on_one_node(const Program& program) {
  // An option's default, or an index of this machine, says nothing where ranks of several are told.
  const bool spans = computes_global_rank(program);
  if (!spans && launches_itself_here(program)) return true;
  for (const CallRef& init : program.calls(Api::init_process_group)) {
    // A group of one process, for runs without a launcher, says nothing of the others.
    if (program.written(init.keyword("world_size")).text() == "1") continue;
    // One address of several is that of the runs on one node.
    const auto& methods = program.sources(init.argument(1, "init_method"));
    if (!methods.empty() && std::all_of(methods.begin(), methods.end(), [&](const Source& source) {
          return (contains(source.ref.text(), "tcp://127.0.0.1") ||
                  contains(source.ref.text(), "tcp://localhost")) &&
                 !(spans && source.how == Source::How::argument);
        }))
      return true;
    const auto& sizes = program.sources(init.keyword("world_size"));
    if (!sizes.empty() && std::all_of(sizes.begin(), sizes.end(), [&](const Source& source) {
          const CallRef call = program.as_call(source.ref);
          return call && call.call->api == Api::device_count;
        }))
      return true;
    const Ref rank = init.keyword("rank");
    if (!spans && rank && rank.kind() == Kind::identifier && program.is_spawn_rank(rank))
      return true;
  }
  for (const Ref assignment : settings_of(program, "MASTER_ADDR")) {
    const Value given = program.evaluate(assignment.child(Field::right));
    if ((spans && given.is_default) || is_in_leftover(program, assignment)) continue;
    const std::string address = given.is_string() ? given.string : std::string();
    const auto guards = program.guards(assignment);
    const bool always = std::none_of(
        guards.begin(), guards.end(),
        [](const diagnose::Guard& guard) { return contains(guard.condition.text(), "environ"); });
    if (always && (address == "localhost" || address == "127.0.0.1")) return true;
  }
  return false;
}

}  // namespace

bool speaks_of(const Program& program, std::string_view word) {
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(),
                     [&](const diagnose::Module* module) { return module->tree().holds(word); });
}

bool is_single_node(const Program& program) {
  bool all_tell = !program.launches().empty();
  for (const auto& launch : program.launches()) {
    const auto nodes = launch.nodes();
    if (nodes.value_or(1) != 1) return false;
    all_tell = all_tell && nodes.has_value();
  }
  return all_tell || diagnose::is_test(program.root()) || starts_on_one_node(program);
}

namespace {

// What Slurm tells a job of one node as well: names for a run, where to put files, its processors.
constexpr std::string_view kOfAnyJob[] = {"SLURM_JOBID",     "SLURM_JOB_ID", "SLURM_JOB_NAME",
                                          "SLURM_ARRAY_",    "SLURM_TMPDIR", "SLURM_CPUS_",
                                          "SLURM_SUBMIT_DIR"};

bool speaks_of_slurm(const diagnose::SyntaxTree& tree) {
  if (tree.holds("slurm")) return true;
  if (!tree.holds("SLURM")) return false;
  const std::string_view source = tree.source();
  for (std::size_t at = source.find("SLURM"); at != std::string_view::npos;
       at = source.find("SLURM", at + 1)) {
    const std::string_view name = source.substr(at);
    if (std::none_of(std::begin(kOfAnyJob), std::end(kOfAnyJob),
                     [&](std::string_view any) { return name.starts_with(any); }))
      return true;
  }
  return false;
}

}  // namespace

namespace {

// args.n_nodes = 1, wherever the name stands: no more than one.
bool is_said_to_be_one(const Program& program, std::string_view word) {
  std::size_t mentions = 0;
  std::size_t ones = 0;
  for (const auto* module : program.modules()) {
    const std::string_view source = module->tree().source();
    for (std::size_t at = source.find(word); at != std::string_view::npos;
         at = source.find(word, at + 1))
      ++mentions;
    for (const bool attribute : {false, true})
      for (const std::uint32_t index : module->defs_of(word, attribute)) {
        const auto& def = module->defs()[index];
        if (def.kind == diagnose::DefKind::assign && def.value != kNoNode &&
            module->text(def.value) == "1")
          ++ones;
      }
  }
  return ones > 0 && ones == mentions;
}

// rank % torch.cuda.device_count(); a batch that is tested so is dealt out on one node.
// The local rank is below that number whatever the nodes are.
bool takes_rank_modulo(const Program& program) {
  for (const auto* module : program.modules()) {
    const auto& tree = module->tree();
    for (const NodeId node : module->nodes_of(Kind::binary)) {
      if (tree[node].op != diagnose::Op::modulo) continue;
      const Ref rank = Ref{module, node}.child(Field::left);
      const CallRef count = program.as_call(Ref{module, node}.child(Field::right));
      if (rank && count && count.call->api == diagnose::Api::device_count &&
          rank.kind() != Kind::string && !contains(rank.text(), "batch") &&
          (!program.is_local_rank(rank) || program.is_rank(rank)))
        return true;
    }
  }
  return false;
}

}  // namespace

namespace {

// 10.128.0.2, and not the loopback address.
bool is_address_of_another(std::string_view text) {
  const bool numbers = text.find_first_not_of("0123456789.") == std::string_view::npos;
  return numbers && std::count(text.begin(), text.end(), '.') == 3 && !text.starts_with("127.") &&
         !text.starts_with("0.");
}

// os.environ["MASTER_ADDR"] = "10.128.0.2": the address of a machine that others have to reach.
bool meets_elsewhere(const Program& program) {
  const auto addresses = settings_of(program, "MASTER_ADDR");
  return std::any_of(addresses.begin(), addresses.end(), [&](Ref set) {
    return is_address_of_another(program.string(set.child(Field::right)).value_or(""));
  });
}

}  // namespace

bool expects_nodes(const Program& program) {
  for (const auto& launch : program.launches())
    if (launch.nodes().value_or(1) > 1) return true;
  for (const char* word :
       {"nnodes", "num_nodes", "node_rank", "n_nodes", "HOSTFILE", "PBS_NODEFILE", "submitit",
        "--nodes", "Kubeflow", "kubeflow", "PyTorchJob"})
    if (speaks_of(program, word) && !is_said_to_be_one(program, word)) return true;
  if (takes_rank_modulo(program) || meets_elsewhere(program)) return true;
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [](const diagnose::Module* module) {
    return speaks_of_slurm(module->tree());
  });
}

namespace {

// args.nodes, or n_nodes: an option, or a number above one.
bool is_number_of_nodes(const Program& program, Ref factor) {
  const std::string name = lowered(diagnose::last_word(factor));
  for (const char* word : {"nodes", "nnodes", "num_nodes", "n_nodes", "node_num", "num_node",
                           "nnode", "n_node", "number_of_nodes", "node_count", "num_machines"})
    if (name == word) {
      const Value count = program.evaluate(factor);
      return !count.is_integer() || count.is_default || count.integer > 1;
    }
  return false;
}

}  // namespace

bool counts_nodes(const Program& program, Ref number) {
  if (!number) return false;
  for (const Source& source : program.sources(number)) {
    const Ref product = source.ref;
    if (product.kind() == Kind::binary &&
        product.module->tree()[product.node].op == diagnose::Op::multiply &&
        (is_number_of_nodes(program, product.child(Field::left)) ||
         is_number_of_nodes(program, product.child(Field::right))))
      return true;
  }
  return false;
}

bool launches_tell_nodes(const Program& program) {
  const auto& launches = program.launches();
  return std::any_of(launches.begin(), launches.end(),
                     [](const diagnose::LaunchLine& launch) { return launch.nodes().has_value(); });
}

namespace {

// "Run with: torchrun --nproc_per_node=2 train.py" in the middle of a sentence: a line that starts
// processes, where no such line speaks of nodes.
bool says_processes_of_one_node(std::string_view source) {
  bool one = false;
  for (std::size_t begin = 0; begin < source.size();) {
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    const std::string_view line = source.substr(begin, end - begin);
    begin = end + 1;
    if (!contains(line, "torchrun -") && !contains(line, "distributed.launch -") &&
        !contains(line, "distributed.run -"))
      continue;
    if (contains(line, "nnodes") || contains(line, "node_rank") || contains(line, "rdzv"))
      return false;
    one = one || contains(line, "nproc");
  }
  return one;
}

}  // namespace

bool shows_one_node(const Program& program) {
  bool shown = false;
  for (const diagnose::LaunchLine& launch : diagnose::own_shown_commands(program.root())) {
    if (launch.launcher == diagnose::Launcher::python) continue;
    if (launch.nodes() != 1) return false;
    shown = true;
  }
  return shown || says_processes_of_one_node(program.root().tree().source());
}

bool may_span_nodes(const Program& program) { return !is_single_node(program); }

}  // namespace bench::pitfalls::facts
