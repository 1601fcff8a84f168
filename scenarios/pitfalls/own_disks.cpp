#include "scenarios/pitfalls/own_disks.hpp"

#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

constexpr auto kNodes = std::to_array<std::string_view>(
    {"num_nodes", "n_nodes", "nnodes", "num_machines", "n_machines", "number_of_nodes"});

// num_nodes = int(os.environ["WORLD_SIZE"])
bool counts_processes_as_nodes(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const std::string_view name : kNodes)
      for (const std::uint32_t index : module->defs_of(name, false)) {
        const Ref value{module, module->defs()[index].value};
        if (value && program.is_world_size(value)) return true;
      }
  return false;
}

// Something starts several processes on a machine, or speaks of their numbers there.
bool has_several_on_a_node(const Program& program) {
  if (program.uses(Api::spawn) || program.mentions("torchrun")) return true;
  for (const std::string_view word : {"local_rank", "LOCAL_RANK", "nproc_per_node"})
    if (program.mentions(word)) return true;
  return false;
}

// init_process_group(world_size=args.num_nodes): as many processes as nodes.
bool joins_one_of_each_node(const Program& program) {
  const auto joins = program.calls(Api::init_process_group);
  return std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    const std::string_view size = diagnose::last_word(join.keyword("world_size"));
    return std::find(kNodes.begin(), kNodes.end(), size) != kNodes.end();
  });
}

// parser.add_argument("--master-ip", required=True): where the first node is.
bool is_address_elsewhere(const CallRef& option) {
  const std::string text = facts::lowered(option.positional(0).text());
  if (!facts::contains(text, "master") && !facts::contains(text, "host")) return false;
  const std::string_view given = option.keyword("default").text();
  return (facts::contains(text, "addr") || facts::contains(text, "ip")) &&
         !facts::contains(given, "localhost") && !facts::contains(given, "127.0.0.1");
}

// Started by hand on each machine, without GPUs that several processes could share out: the rank
// and the address of the first one are options.
bool is_started_by_hand(const Program& program) {
  if (program.mentions("cuda")) return false;
  const auto options = program.calls_named("add_argument");
  const bool has_rank = std::any_of(options.begin(), options.end(), [](const CallRef& option) {
    const std::string_view text = option.positional(0).text();
    return text == "\"--rank\"" || text == "'--rank'";
  });
  return has_rank && std::any_of(options.begin(), options.end(), is_address_elsewhere);
}

// np.random.randint(10**8), where nothing but the workers of a loader seeds NumPy. The program may
// do so through a helper of another file, which has the word in its name.
bool is_unseeded_draw(const Program& program, const CallRef& call) {
  if (!call.module->qualified(call.call->function).starts_with("numpy.random.rand")) return false;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& other : module->calls()) {
      const CallRef seed{module, &other};
      if (!facts::contains(facts::lowered(other.name), "seed") ||
          facts::contains(other.name, "manual_seed") || other.name == "initial_seed")
        continue;
      const auto function = program.enclosing_function(seed.ref());
      if (!function || !facts::contains(facts::lowered(function.function->name), "worker"))
        return false;
    }
  return true;
}

bool is_own_draw(const Program& program, const CallRef& call) {
  static constexpr auto kOwn = std::to_array<std::string_view>(
      {"uuid.uuid1", "uuid.uuid4", "os.getpid", "time.time_ns", "tempfile.mkdtemp",
       "tempfile.mkstemp", "secrets.token_hex", "datetime.datetime.now.isoformat"});
  const std::string name = call.module->qualified(call.call->function);
  if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) return true;
  if (call.call->name == "strftime")
    return facts::contains(call.positional(0).text(), "%f") ||
           facts::contains(call.positional(1).text(), "%f");
  return is_unseeded_draw(program, call);
}

bool is_drawn_by_each(const Program& program, Ref part, int depth) {
  constexpr int kNames = 4;  // log_dir -> args.out -> name
  if (!part || depth > kNames) return false;
  const auto& tree = part.module->tree();
  for (diagnose::NodeId id = part.node; id < tree[part.node].last; ++id) {
    const Ref at = part.with(id);
    const diagnose::Kind kind = at.kind();
    if (kind == diagnose::Kind::call && is_own_draw(program, program.as_call(at))) return true;
    if (kind != diagnose::Kind::identifier && kind != diagnose::Kind::attribute) continue;
    if (tree[id].field == diagnose::Field::function || tree[id].field == diagnose::Field::attribute)
      continue;
    // opt.log_dir = ... under a name of its own, of the options that the function was given.
    if (kind == diagnose::Kind::attribute)
      for (const auto index :
           part.module->defs_of(at.child(diagnose::Field::attribute).text(), true))
        if (is_drawn_by_each(program, part.with(part.module->defs()[index].value), depth + 1))
          return true;
    for (const diagnose::Source& source : program.sources(at)) {
      const diagnose::Kind what = source.ref.kind();
      const bool inside =
          source.ref.module == part.module && tree.contains(part.node, source.ref.node);
      if (source.how == diagnose::Source::How::value && !inside &&
          what != diagnose::Kind::class_definition && what != diagnose::Kind::function &&
          is_drawn_by_each(program, source.ref, depth + 1))
        return true;
    }
  }
  return false;
}

}  // namespace

bool is_drawn_by_each(const Program& program, Ref path) {
  return is_drawn_by_each(program, path, 0);
}

bool is_process_a_node(const Program& program) {
  if (counts_processes_as_nodes(program)) return true;
  return !has_several_on_a_node(program) &&
         (joins_one_of_each_node(program) || is_started_by_hand(program));
}

}  // namespace bench::pitfalls
