// What an expression means in distributed training: a rank, a local rank, a world size, a test of
// the rank. Where the value can be followed, its origin decides; where not, its name does.
#include "diagnose/model/program.hpp"

#include <algorithm>
#include <cctype>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 6;
constexpr unsigned kRank = 1;
constexpr unsigned kLocalRank = 2;
constexpr unsigned kWorldSize = 4;
constexpr unsigned kDeviceCount = 8;
constexpr unsigned kSpawnRank = 16;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct NamedRole {
  std::string_view name;
  unsigned role;
};

constexpr NamedRole kNames[] = {
    {"rank", kRank},
    {"global_rank", kRank},
    {"world_rank", kRank},
    {"dist_rank", kRank},
    {"ddp_rank", kRank},
    {"my_rank", kRank},
    {"proc_rank", kRank},
    {"process_rank", kRank},
    {"process_index", kRank},
    {"globalrank", kRank},
    {"local_rank", kLocalRank},
    {"localrank", kLocalRank},
    {"ddp_local_rank", kLocalRank},
    {"local_process_index", kLocalRank},
    {"gpu", kLocalRank},
    {"gpu_id", kLocalRank},
    {"gpu_rank", kLocalRank},
    {"slurm_localid", kLocalRank},
    {"slurm_procid", kRank},
    {"ompi_comm_world_rank", kRank},
    {"ompi_comm_world_local_rank", kLocalRank},
    {"world_size", kWorldSize},
    {"ddp_world_size", kWorldSize},
    {"worldsize", kWorldSize},
    {"num_processes", kWorldSize},
    {"num_replicas", kWorldSize},
    {"slurm_ntasks", kWorldSize},
    {"ompi_comm_world_size", kWorldSize},
    {"ngpus_per_node", kDeviceCount},
    {"local_world_size", kDeviceCount},
    {"n_gpu", kDeviceCount},
    {"n_gpus", kDeviceCount},
    {"num_gpus", kDeviceCount},
    {"ngpus", kDeviceCount},
};

unsigned role_of_name(std::string_view name) {
  const std::string plain = lower(name);
  const std::string_view bare =
      std::string_view(plain).substr(std::min(plain.find_first_not_of('_'), plain.size()));
  for (const auto& entry : kNames)
    if (entry.name == bare) return entry.role;
  return 0;
}

// The word that names an expression: gpu for args.gpu, rank for cfg["rank"] and get_rank().
std::string_view last_word(Ref at) {
  const SyntaxTree& tree = at.module->tree();
  switch (at.kind()) {
    case Kind::identifier:
      return at.text();
    case Kind::attribute:
      return at.child(Field::attribute).text();
    case Kind::subscript: {
      const std::string_view key = tree.text(tree.child(at.node, Field::subscript));
      return key.size() > 2 && (key[0] == '"' || key[0] == '\'') ? key.substr(1, key.size() - 2)
                                                                 : std::string_view{};
    }
    default:
      return {};
  }
}

bool is_main_name(std::string_view name) {
  const std::string plain = lower(name);
  for (const std::string_view word : {"is_main",    "main_process",
                                      "is_master",  "master_process",
                                      "is_primary", "rank_zero",
                                      "rank0",      "rank_0",
                                      "is_chief",   "is_global_zero",
                                      "is_root",    "is_world_process_zero",
                                      "main_proc",  "is_local_process_zero",
                                      "is_rank",    "is_leader",
                                      "should_log", "is_first_worker",
                                      "is_host_0",  "is_coordinator",
                                      "main_rank",  "is_logger",
                                      "on_main"})
    if (plain.find(word) != std::string::npos) return true;
  return plain == "master" || plain == "is_log";
}

RankTest flip(RankTest test) {
  if (test == RankTest::none) return test;
  return test == RankTest::main_only ? RankTest::not_main : RankTest::main_only;
}

unsigned role_of_environment(std::string_view name) {
  if (name == "RANK" || name == "SLURM_PROCID" || name == "OMPI_COMM_WORLD_RANK" ||
      name == "PMI_RANK" || name == "GLOBAL_RANK")
    return kRank;
  if (name == "LOCAL_RANK" || name == "SLURM_LOCALID" || name == "OMPI_COMM_WORLD_LOCAL_RANK" ||
      name == "MPI_LOCALRANKID")
    return kLocalRank;
  if (name == "WORLD_SIZE" || name == "SLURM_NTASKS" || name == "OMPI_COMM_WORLD_SIZE" ||
      name == "PMI_SIZE")
    return kWorldSize;
  if (name == "LOCAL_WORLD_SIZE") return kDeviceCount;
  return 0;
}

unsigned role_of_api(Api api) {
  switch (api) {
    case Api::get_rank:
    case Api::hvd_rank:
      return kRank;
    case Api::hvd_local_rank:
      return kLocalRank;
    case Api::get_world_size:
    case Api::hvd_size:
      return kWorldSize;
    case Api::device_count:
      return kDeviceCount;
    default:
      return 0;
  }
}

}  // namespace

std::string Program::environment_name(Ref at) const {
  for (int depth = 0; at && depth < 3; ++depth) {
    const SyntaxTree& tree = at.module->tree();
    if (at.kind() == Kind::subscript) {
      const NodeId object = tree.child(at.node, Field::value);
      if (at.module->api(object) != Api::environ) return {};
      return tree.string_value(tree.child(at.node, Field::subscript)).value_or("");
    }
    const CallRef call = as_call(at);
    if (!call) return {};
    if (call.call->api == Api::getenv)
      return tree.string_value(call.positional(0).node).value_or("");
    if (call.call->name != "int" && call.call->name != "str") return {};
    at = call.positional(0);
  }
  return {};
}

unsigned Program::source_roles(const Source& source, int depth) const {
  const Ref at = source.ref;
  if (source.how == Source::How::loop_item) return 0;
  if (const std::string name = environment_name(at); !name.empty())
    return role_of_environment(name);
  if (source.how == Source::How::parameter) {
    const FunctionRef function = enclosing_function(at);
    const std::size_t first = function && function.function->owner_class != kNoNode ? 1 : 0;
    if (function && function.function->parameters.size() > first && is_spawned(function) &&
        function.function->parameters[first].name == at.text())
      return kRank | kLocalRank | kSpawnRank;
    return role_of_name(at.text());
  }
  if (source.how == Source::How::argument) {
    for (std::size_t i = 0; const Ref option = as_call(at).positional(i); ++i) {
      auto text = at.module->tree().string_value(option.node).value_or("");
      text.erase(0, text.find_first_not_of('-'));
      std::replace(text.begin(), text.end(), '-', '_');
      if (const unsigned role = role_of_name(text)) return role;
    }
    return 0;
  }
  if (const CallRef call = as_call(at)) {
    // The rank within a group says nothing about the rank of the job.
    if (call.call->api == Api::get_rank && call.argument(0, "group")) return 0;
    if (const unsigned role = role_of_api(call.call->api)) return role;
    if (call.call->name == "int" && call.positional(0)) return roles(call.positional(0), depth + 1);
    const std::string name = lower(call.call->name);
    if (name == "get_rank" || name == "get_global_rank") return kRank;
    if (name == "get_local_rank" || name == "local_rank") return kLocalRank;
    if (name == "get_world_size") return kWorldSize;
    return 0;
  }
  if (at.kind() == Kind::binary) {
    const unsigned left = roles(at.child(Field::left), depth + 1);
    const unsigned right = roles(at.child(Field::right), depth + 1);
    const Op op = at.module->tree()[at.node].op;
    if (op == Op::modulo && (left & kRank) != 0) return kLocalRank;
    // node_rank * gpus + local_rank
    if (op == Op::add && ((left | right) & (kLocalRank | kRank)) != 0) return kRank;
    if (op == Op::multiply && ((left | right) & kDeviceCount) != 0) return kWorldSize;
    return 0;
  }
  return role_of_name(last_word(at));
}

unsigned Program::roles(Ref expression, int depth) const {
  if (!expression || depth > kDepth) return 0;
  if (const CallRef call = as_call(expression))
    if (call.call->name == "get_local_rank" || call.call->name == "local_rank") return kLocalRank;
  unsigned found = 0;
  for (const Source& source : sources(expression)) found |= source_roles(source, depth);
  // args.rank = node * gpus_per_node, then += gpu: the product alone looks like a world size.
  const unsigned named = role_of_name(last_word(expression));
  if ((named & (kRank | kLocalRank)) != 0 && (found & (kRank | kLocalRank)) == 0) return named;
  return found != 0 ? found : named;
}

bool Program::is_rank(Ref expression) const { return (roles(expression, 0) & kRank) != 0; }

bool Program::is_spawn_rank(Ref expression) const {
  return (roles(expression, 0) & kSpawnRank) != 0;
}

bool Program::is_local_rank(Ref expression) const {
  return (roles(expression, 0) & kLocalRank) != 0;
}

bool Program::is_world_size(Ref expression) const {
  return (roles(expression, 0) & kWorldSize) != 0;
}

bool Program::is_spawned(FunctionRef function) const {
  for (const CallRef& call : calls(Api::spawn)) {
    const Ref target = call.argument(0, "fn");
    if (!target) continue;
    if (function.function->owner_class != kNoNode && target.module == function.module &&
        target.kind() == Kind::attribute &&
        target.child(Field::attribute).text() == function.function->name &&
        target.child(Field::object).text() == "self")
      return true;
    for (const Source& source : sources(target))
      if (source.ref.module == function.module && source.ref.node == function.function->node)
        return true;
  }
  return false;
}

bool Program::mentions_rank(Ref subtree) const {
  const SyntaxTree& tree = subtree.module->tree();
  for (NodeId at = subtree.node; at < tree[subtree.node].last; ++at) {
    const Kind kind = tree[at].kind;
    if (kind != Kind::identifier && kind != Kind::attribute && kind != Kind::call) continue;
    if ((roles(subtree.with(at), 0) & (kRank | kLocalRank)) != 0) return true;
  }
  return false;
}

namespace {

bool comes_from_rank(const Program& program, Ref subtree, int depth) {
  constexpr int kNames = 3;  // files -> share -> data set
  if (program.mentions_rank(subtree)) return true;
  if (depth >= kNames) return false;
  // A name may hold a path that was built from the rank, or a share of the files.
  const SyntaxTree& tree = subtree.module->tree();
  for (NodeId at = subtree.node; at < tree[subtree.node].last; ++at) {
    const Kind kind = tree[at].kind;
    if (at != subtree.node && kind != Kind::identifier && kind != Kind::attribute) continue;
    if (tree[at].field == Field::function || tree[at].field == Field::attribute) continue;
    for (const Source& source : program.sources(subtree.with(at))) {
      const Kind what = source.ref.kind();
      const bool inside =
          source.ref.module == subtree.module && tree.contains(subtree.node, source.ref.node);
      if (source.how == Source::How::value && !inside && what != Kind::class_definition &&
          what != Kind::function && comes_from_rank(program, source.ref, depth + 1))
        return true;
    }
  }
  return false;
}

}  // namespace

bool Program::comes_from_rank(Ref subtree) const {
  return bench::diagnose::comes_from_rank(*this, subtree, 0);
}

RankTest Program::comparison_rank_test(Ref at) const {
  const SyntaxTree& tree = at.module->tree();
  if (tree.child_count(at.node) != 2) return RankTest::none;
  Ref left = at.with(tree.child_at(at.node, 0));
  Ref right = at.with(tree.child_at(at.node, 1));
  Op op = tree[at.node].op;
  const auto ranked = [&](Ref expression) {
    if ((roles(expression, 0) & (kRank | kLocalRank)) != 0) return true;
    // With one device for each rank of a node, as good or bad as the local rank.
    if (comes_from(expression, Api::current_device)) return true;
    return expression.kind() == Kind::binary && tree[expression.node].op == Op::modulo &&
           (roles(expression.child(Field::left), 0) & kRank) != 0;
  };
  if (!ranked(left)) {
    if (!ranked(right) || (op != Op::equal && op != Op::not_equal)) return RankTest::none;
    std::swap(left, right);
  }
  const Value value = evaluate(right);
  if (op == Op::in || op == Op::not_in) {
    if (value.type != Value::Type::list) return RankTest::none;
    const bool zero = std::any_of(value.items.begin(), value.items.end(), [](const Value& item) {
      return item.is_integer() && item.integer == 0;
    });
    if (!zero) return RankTest::none;
    return op == Op::in ? RankTest::main_only : RankTest::not_main;
  }
  if (!value.is_integer()) {
    // rank == args.master_rank and the like
    const std::string name = lower(last_word(right));
    const bool main = name.find("main") != std::string::npos ||
                      name.find("master") != std::string::npos ||
                      name.find("root") != std::string::npos;
    if (!main) return RankTest::none;
    return op == Op::equal ? RankTest::main_only : RankTest::none;
  }
  if (value.integer < 0) return RankTest::none;  // local_rank == -1: not distributed
  if (op == Op::equal || op == Op::is || op == Op::less_equal ||
      (op == Op::less && value.integer == 1))
    return RankTest::main_only;
  if (op == Op::not_equal || op == Op::is_not || (op == Op::greater && value.integer == 0) ||
      (op == Op::greater_equal && value.integer == 1))
    return RankTest::not_main;
  return RankTest::none;
}

RankTest Program::rank_test(Ref condition) const { return rank_test(condition, 0); }

RankTest Program::rank_test(Ref at, int depth) const {
  if (!at || depth > kDepth) return RankTest::none;
  switch (at.kind()) {
    case Kind::comparison:
      return comparison_rank_test(at);
    case Kind::not_expression: {
      const Ref inner = at.child(Field::argument);
      if ((roles(inner, 0) & (kRank | kLocalRank)) != 0) return RankTest::main_only;  // not rank
      return flip(rank_test(inner, depth + 1));
    }
    case Kind::boolean: {
      const RankTest left = rank_test(at.child(Field::left), depth + 1);
      return left != RankTest::none ? left : rank_test(at.child(Field::right), depth + 1);
    }
    case Kind::call: {
      const CallRef call = as_call(at);
      if (call.call->name == "getattr" || call.call->name == "bool") return RankTest::none;
      if (is_main_name(call.call->name)) return RankTest::main_only;
      break;
    }
    case Kind::identifier:
    case Kind::attribute:
      if (is_main_name(last_word(at))) return RankTest::main_only;
      break;
    default:
      return RankTest::none;
  }
  for (const Source& source : sources(at)) {
    if (source.how != Source::How::value || source.ref == at) continue;
    if (const RankTest test = rank_test(source.ref, depth + 1); test != RankTest::none) return test;
  }
  return RankTest::none;
}

bool Program::is_distributed_flag(Ref condition) const {
  const std::string text = lower(condition.text());
  for (const std::string_view word :
       {"distributed", "ddp", "is_initialized", "world_size", "multi_gpu", "multigpu", "n_gpu",
        "local_rank", "device_count", "is_parallel", "use_dp", "num_gpus", "ngpu", "is_dist"})
    if (text.find(word) != std::string::npos) return true;
  return false;
}

const Wrap* Program::wrap_of(Ref expression) const {
  for (const Source& source : module_sources(expression)) {
    if (source.how == Source::How::loop_item) continue;
    for (const Wrap& wrap : wraps_)
      if (wrap.call.ref() == source.ref) return &wrap;
  }
  return nullptr;
}

bool Program::is_wrapped(Ref expression, Wrapper kind) const {
  for (const Source& source : module_sources(expression)) {
    if (source.how == Source::How::loop_item) continue;
    for (const Wrap& wrap : wraps_)
      if (wrap.kind == kind && wrap.call.ref() == source.ref) return true;
  }
  return false;
}

bool Program::is_evaluation(Ref node) const {
  if (under_no_grad(node)) return true;
  const FunctionRef function = enclosing_function(node);
  if (!function) return false;
  const auto says = [](std::string_view text, std::initializer_list<std::string_view> words) {
    const std::string plain = lower(text);
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return plain.find(word) != std::string::npos;
    });
  };
  if (says(function.function->name,
           {"eval", "valid", "test", "infer", "predict", "sample", "generate", "visuali"}))
    return true;
  // for batch in eval_loader: ... in the function that trains too
  const Ref loop = innermost_loop(node);
  if (loop.kind() != Kind::for_statement) return false;
  const std::string_view loader = strip_iterable(loop.child(Field::right)).text();
  if (says(loader, {"train"})) return false;
  const std::string plain = lower(loader);
  return plain == "test" || plain == "val" || plain == "dev" ||
         says(loader, {"eval_", "valid", "val_", "test_"});
}

}  // namespace bench::diagnose
