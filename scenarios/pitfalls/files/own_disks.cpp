#include "scenarios/pitfalls/files/own_disks.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

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

// The generator is seeded somewhere, other than in the workers of a loader and below all draws. The
// program may do so through a helper of another file, which has the word in its name.
bool is_seeded(const Program& program, Ref draw) {
  const Ref round = program.innermost_loop(draw);
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& other : module->calls()) {
      const CallRef seed{module, &other};
      if (!facts::contains(facts::lowered(other.name), "seed") ||
          facts::contains(other.name, "manual_seed") || other.name == "initial_seed" ||
          (only_runs_before(program, draw, seed.ref()) &&
           !(round && runs_in(program, round, seed.ref()))))
        continue;
      const auto function = program.enclosing_function(seed.ref());
      if (!function || program.is_spawned(function) ||
          !facts::contains(facts::lowered(function.function->name), "worker"))
        return true;
    }
  return false;
}

// str(datetime.now()) and f"{datetime.now()}": to the microsecond, where nothing cuts it.
bool is_whole_clock(const CallRef& call, std::string_view name) {
  if (name != "datetime.datetime.now" && name != "datetime.datetime.utcnow") return false;
  const auto& tree = call.module->tree();
  const diagnose::NodeId around = tree[call.call->node].parent;
  if (around == diagnose::kNoNode) return false;
  if (facts::contains(tree.text(around), "{" + std::string(call.ref().text()) + "}")) return true;
  const diagnose::NodeId text = tree[around].parent;
  if (text == diagnose::kNoNode || tree[text].kind != diagnose::Kind::call ||
      tree.text(tree.child(text, diagnose::Field::function)) != "str")
    return false;
  const diagnose::NodeId user = tree[text].parent;
  return user != diagnose::kNoNode && tree[user].kind != diagnose::Kind::attribute &&
         tree[user].kind != diagnose::Kind::subscript;
}

// str(now) after now = datetime.now(); str(now)[:10] cuts it.
bool is_text_of_clock(const Program& program, const CallRef& call) {
  const Ref given = call.positional(0);
  if (call.call->name != "str" || given.kind() != diagnose::Kind::identifier) return false;
  const auto& tree = call.module->tree();
  const diagnose::Kind user = tree[tree[call.call->node].parent].kind;
  const CallRef clock = program.made_by(given);
  if (!clock || user == diagnose::Kind::attribute || user == diagnose::Kind::subscript)
    return false;
  const std::string_view name = clock.call->path;
  return name == "datetime.datetime.now" || name == "datetime.datetime.utcnow";
}

enum class Draw : std::uint8_t { none, own, unless_seeded };

Draw drawn(const CallRef& call) {
  static constexpr auto kOwn = std::to_array<std::string_view>(
      {"uuid.uuid1", "uuid.uuid4", "os.getpid", "time.time_ns", "tempfile.mkdtemp",
       "tempfile.mkstemp", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile",
       "secrets.token_hex", "datetime.datetime.now.isoformat"});
  const std::string_view name = call.call->path;
  if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end() || is_whole_clock(call, name))
    return Draw::own;
  if (call.call->name == "strftime" && (facts::contains(call.positional(0).text(), "%f") ||
                                        facts::contains(call.positional(1).text(), "%f")))
    return Draw::own;
  const bool random = name.starts_with("numpy.random.rand") || name == "random.randint" ||
                      name == "random.choice" || name == "random.choices" ||
                      name == "random.getrandbits" || name == "random.random";
  return random ? Draw::unless_seeded : Draw::none;
}

// What a path is made of, from its names to what they are given. Only so many expressions are
// looked at: a script may give one name a value a thousand times.
class OwnParts {
 public:
  explicit OwnParts(const Program& program) : program_(program) {}

  bool has(Ref part, int depth) {
    constexpr int kNames = 4;            // log_dir -> args.out -> name
    constexpr std::size_t kParts = 128;  // expressions of one path
    if (!part || depth > kNames || seen_.size() > kParts || !seen_.insert(part).second)
      return false;
    const auto& tree = part.module->tree();
    for (diagnose::NodeId id = part.node; id < tree[part.node].last; ++id) {
      const Ref at = part.with(id);
      const diagnose::Kind kind = at.kind();
      if (kind == diagnose::Kind::call && is_own(program_.as_call(at))) return true;
      if (kind != diagnose::Kind::identifier && kind != diagnose::Kind::attribute) continue;
      if (tree[id].field == diagnose::Field::function ||
          tree[id].field == diagnose::Field::attribute)
        continue;
      if (is_given_own(part, at, depth)) return true;
    }
    return false;
  }

 private:
  bool is_own(const CallRef& call) {
    const Draw draw = drawn(call);
    if (is_text_of_clock(program_, call)) return true;
    if (draw != Draw::unless_seeded) return draw == Draw::own;
    return !is_seeded(program_, call.ref());
  }

  bool is_given_own(Ref part, Ref at, int depth) {
    // opt.log_dir = ... under a name of its own, of the options that the function was given.
    if (at.kind() == diagnose::Kind::attribute)
      for (const auto index :
           part.module->defs_of(at.child(diagnose::Field::attribute).text(), true))
        if (has(part.with(part.module->defs()[index].value), depth + 1)) return true;
    // name += "_%06d" % random.randint(0, 999999)
    if (at.kind() == diagnose::Kind::identifier)
      for (const auto index : part.module->defs_of(at.text(), false)) {
        const diagnose::Def& def = part.module->defs()[index];
        if (def.kind == diagnose::DefKind::augmented && def.target < at.node &&
            part.module->function_of(def.target) == part.module->function_of(at.node) &&
            has(part.with(def.value), depth + 1))
          return true;
      }
    for (const diagnose::Source& source : program_.sources(at)) {
      const diagnose::Kind what = source.ref.kind();
      const bool inside = source.ref.module == part.module &&
                          part.module->tree().contains(part.node, source.ref.node);
      const bool is_kept =
          source.how == diagnose::Source::How::value ||
          (source.how == diagnose::Source::How::element &&  // descriptor, name = mkstemp()
           what == diagnose::Kind::call) ||
          (what == diagnose::Kind::attribute &&  // TemporaryDirectory().name
           source.ref.child(diagnose::Field::object).kind() == diagnose::Kind::call);
      if (is_kept && !inside && what != diagnose::Kind::class_definition &&
          what != diagnose::Kind::function && has(source.ref, depth + 1))
        return true;
    }
    return false;
  }

  const Program& program_;
  std::set<Ref> seen_;
};

}  // namespace

bool is_drawn_by_each(const Program& program, Ref path) { return OwnParts(program).has(path, 0); }

bool is_process_a_node(const Program& program) {
  if (counts_processes_as_nodes(program)) return true;
  return !has_several_on_a_node(program) &&
         (joins_one_of_each_node(program) || is_started_by_hand(program));
}

}  // namespace bench::pitfalls
