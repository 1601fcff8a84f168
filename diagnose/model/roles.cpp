// What an expression means in distributed training: a rank, a local rank, a world size, a wrapped
// model. Where the value can be followed, its origin decides; where not, its name does.
#include "diagnose/model/left_bare.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 6;

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

// add_argument("--rank", "--local_rank"): one option, and the launcher fills it by the name that it
// knows, with the local rank.
unsigned role_of_option(const CallRef& option) {
  unsigned first = 0;
  for (std::size_t i = 0; const Ref spelling = option.positional(i); ++i) {
    auto text = spelling.module->tree().string_value(spelling.node).value_or("");
    text.erase(0, text.find_first_not_of('-'));
    std::replace(text.begin(), text.end(), '-', '_');
    const unsigned role = role_of_name(text);
    if ((role & kLocalRank) != 0) return role;
    if (first == 0) first = role;
  }
  return first;
}

// Of the index in torch.device("cuda", local_rank) and torch.device(f"cuda:{local_rank}").
template <class RolesOf>
unsigned roles_of_index(const CallRef& device, const RolesOf& roles_of) {
  if (const Ref index = device.argument(1, "index")) return roles_of(index);
  const Ref text = device.positional(0);
  if (text.kind() != Kind::string) return 0;
  const SyntaxTree& tree = device.module->tree();
  const NodeId hole = tree[text.node].first_child;
  // Of what is computed from a rank, as rank % count, the whole says what it is.
  const bool is_one = hole != kNoNode && tree[hole].next_sibling == kNoNode &&
                      text.text().find("cuda:{") != std::string_view::npos;
  return is_one ? roles_of(text.with(hole)) & (kRank | kLocalRank) : 0U;
}

}  // namespace

const std::vector<EnvironmentItem>& Module::environment_items() const {
  return environment_items_.get([&] {
    std::vector<EnvironmentItem> out;
    if (!tree_.holds("environ")) return out;  // whatever it is imported as
    for (const NodeId node : nodes_of(Kind::subscript)) {
      auto name = tree_.string_value(tree_.child(node, Field::subscript));
      if (name && !name->empty() && api(tree_.child(node, Field::value)) == Api::environ)
        out.push_back({node, std::move(*name)});
    }
    return out;
  });
}

std::string Program::environment_name(Ref at) const {
  for (int depth = 0; at && depth < 3; ++depth) {
    const SyntaxTree& tree = at.module->tree();
    if (at.kind() == Kind::subscript) {
      const auto& items = at.module->environment_items();
      const auto item = std::lower_bound(
          items.begin(), items.end(), at.node,
          [](const EnvironmentItem& each, NodeId node) { return each.node < node; });
      return item != items.end() && item->node == at.node ? item->name : std::string{};
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
  if (source.how == Source::How::argument) return role_of_option(as_call(at));
  if (const CallRef call = as_call(at)) {
    // The rank within a group says nothing about the rank of the job.
    if (call.call->api == Api::get_rank && call.argument(0, "group")) return 0;
    if (const unsigned role = role_of_api(call.call->api)) return role;
    if (call.call->name == "int" && call.positional(0)) return roles(call.positional(0), depth + 1);
    const std::string name = lowered(call.call->name);
    if (name == "get_rank" || name == "get_global_rank") return kRank;
    // mesh["dp"].get_local_rank() is the place within one dimension of a device mesh.
    if (name == "get_local_rank" &&
        lowered(call.receiver().text()).find("mesh") != std::string::npos)
      return 0;
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
  // device.index, after device = torch.device("cuda", local_rank)
  if (at.kind() == Kind::attribute && at.child(Field::attribute).text() == "index")
    for (const Source& made : sources(at.child(Field::object)))
      if (const CallRef device = as_call(made.ref); device && device.call->api == Api::torch_device)
        return roles_of_index(device, [&](Ref number) { return roles(number, depth + 1); });
  return role_of_name(last_word(at));
}

namespace {

bool asks_for_local_rank(std::string_view function) {
  return function == "get_local_rank" || function == "local_rank";
}

// def get_local_rank(): return dist.get_rank(), without a group of the node's own ranks.
bool returns_global_rank(const Program& program, const CallRef& call) {
  const FunctionRef helper = program.callee(call);
  if (!helper) return false;
  const auto& returns = helper.function->returns;
  return std::any_of(returns.begin(), returns.end(), [&](NodeId value) {
    const CallRef asked = program.as_call({helper.module, value});
    return asked && asked.call->api == Api::get_rank && !asked.argument(0, "group");
  });
}

// The name is given what such a call finds, and nothing else in its function.
bool is_given_local_rank(const Program& program, Ref name) {
  if (name.kind() != Kind::identifier) return false;
  const Module& module = *name.module;
  bool is_given = false;
  for (const std::uint32_t index : module.defs_of(name.text(), false)) {
    const Def& def = module.defs()[index];
    if (module.function_of(def.target) != module.function_of(name.node)) continue;
    const Call* call = def.value == kNoNode ? nullptr : module.call_at(def.value);
    if (call == nullptr || !asks_for_local_rank(call->name) ||
        returns_global_rank(program, {&module, call}))
      return false;
    is_given = true;
  }
  return is_given;
}

}  // namespace

unsigned Program::roles(Ref expression, int depth) const {
  if (!expression || depth > kDepth) return 0;
  if (const CallRef call = as_call(expression))
    if (asks_for_local_rank(call.call->name))
      return returns_global_rank(*this, call) ? kRank : kLocalRank;
  unsigned found = 0;
  for (const Source& source : sources(expression)) found |= source_roles(source, depth);
  // local_rank = get_local_rank(), whatever the names are by which that finds it.
  if ((found & (kRank | kLocalRank)) == kRank && is_given_local_rank(*this, expression))
    return kLocalRank;
  // args.rank = node * gpus_per_node, then += gpu: the product alone looks like a world size.
  const unsigned named = role_of_name(last_word(expression));
  if ((named & (kRank | kLocalRank)) != 0 && (found & (kRank | kLocalRank)) == 0) return named;
  // world_size = torch.cuda.device_count(): of one node, and its name says what it is for.
  if ((named & kWorldSize) != 0 && (found & kDeviceCount) != 0) return found | kWorldSize;
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
  if (!function) return false;  // what stands on a script's own level
  for (const CallRef& call : calls(Api::spawn)) {
    const Ref target = call.argument(0, "fn");
    if (!target) continue;
    if (function.function->owner_class != kNoNode && target.module == function.module &&
        target.kind() == Kind::attribute &&
        target.child(Field::attribute).text() == function.function->name &&
        target.child(Field::object).text() == "self")
      return true;
    // mp.spawn(Trainer, args) makes an object in every process.
    const NodeId callable = function.function->makes_object() ? function.function->owner_class
                                                              : function.function->node;
    for (const Source& source : sources(target))
      if (source.ref.module == function.module && source.ref.node == callable) return true;
  }
  return false;
}

namespace {

// options["rank"] and os.environ["RANK"], and not lora["rank"].
bool is_item_of_settings(Ref item) {
  if (item.kind() != Kind::subscript) return false;
  const std::string name = lowered(item.child(Field::value).text());
  if (name.find("lora") != std::string::npos) return false;
  for (const char* word : {"opt", "arg", "cfg", "conf", "environ", "setting", "param", "dist"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

bool Program::mentions_rank(Ref subtree) const {
  const SyntaxTree& tree = subtree.module->tree();
  for (NodeId at = subtree.node; at < tree[subtree.node].last; ++at) {
    const Kind kind = tree[at].kind;
    if (kind != Kind::identifier && kind != Kind::attribute && kind != Kind::call &&
        !is_item_of_settings(subtree.with(at)))
      continue;
    if ((roles(subtree.with(at), 0) & (kRank | kLocalRank)) != 0) return true;
  }
  return false;
}

namespace {

// What the names in the expression hold: a path that was built from the rank, or a share of files.
void add_held(const Program& program, Ref subtree, std::set<Ref>& known, std::vector<Ref>& out) {
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
          what != Kind::function && known.insert(source.ref).second)
        out.push_back(source.ref);
    }
  }
}

}  // namespace

// Level by level, and each value once: tables of hundreds of values name each other.
bool Program::comes_from_rank(Ref subtree) const {
  constexpr int kNames = 3;  // files -> share -> data set
  std::set<Ref> known{subtree};
  std::vector<Ref> level{subtree};
  for (int names = 0; !level.empty(); ++names) {
    std::vector<Ref> next;
    for (const Ref value : level) {
      if (mentions_rank(value)) return true;
      if (names < kNames) add_held(*this, value, known, next);
    }
    level = std::move(next);
  }
  return false;
}

bool Program::is_distributed_flag(Ref condition) const {
  std::string text = lowered(condition.text());
  // torch.distributed.get_rank() == 0 asks for the rank, whatever its package is called.
  constexpr std::string_view kPackage = "torch.distributed.";
  for (std::size_t at = text.find(kPackage); at != std::string::npos; at = text.find(kPackage, at))
    text.erase(at, kPackage.size());
  for (const std::string_view word :
       {"distributed", "ddp", "is_initialized", "world_size", "multi_gpu", "multigpu", "n_gpu",
        "local_rank", "device_count", "is_parallel", "use_dp", "num_gpus", "ngpu"})
    if (text.find(word) != std::string::npos) return true;
  // use_dist, and neither use_distillation nor is_distance.
  for (const std::string_view word : {"is_dist", "use_dist", "with_dist"})
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const std::string_view rest = std::string_view(text).substr(at + word.size());
      if (!rest.starts_with("il") && !rest.starts_with("an") && !rest.starts_with("ort"))
        return true;
    }
  // args.dist as it is; `gap < self.dist` compares distances.
  const Kind kind = condition.kind();
  if (kind == Kind::comparison) return text == "parallel == true" || text == "parallel is true";
  if (kind != Kind::identifier && kind != Kind::attribute && kind != Kind::not_expression)
    return false;
  for (const std::string_view word : {"dist", "parallel"})
    if (text == word || text == "not " + std::string(word) ||
        text.ends_with("." + std::string(word)))
      return true;
  return false;
}

const Wrap* Program::wrap_of(Ref expression) const {
  if (wraps_.empty()) return nullptr;
  for (const Source& source : module_sources(expression)) {
    if (source.how == Source::How::loop_item) continue;
    const Wrap* wrap = wrap_made_by(source.ref);
    if (wrap != nullptr && !is_left_bare(*this, expression, *wrap)) return wrap;
  }
  return nullptr;
}

const Wrap* Program::wrap_of(Ref expression, Wrapper kind) const {
  // Most programs have one kind, and rules ask for both.
  if (std::none_of(wraps_.begin(), wraps_.end(),
                   [&](const Wrap& wrap) { return wrap.kind == kind; }))
    return nullptr;
  for (const Source& source : module_sources(expression)) {
    if (source.how == Source::How::loop_item) continue;
    const Wrap* wrap = wrap_made_by(source.ref);
    if (wrap != nullptr && wrap->kind == kind && !is_left_bare(*this, expression, *wrap))
      return wrap;
  }
  return nullptr;
}

const Wrap* Program::wrap_made_by(Ref call) const {
  const auto found = wraps_by_call_.find(call);
  return found == wraps_by_call_.end() ? nullptr : &wraps_[found->second];
}

bool Program::is_wrapped(Ref expression, Wrapper kind) const {
  return wrap_of(expression, kind) != nullptr;
}

namespace {

// def link_prediction(data): the task that it trains for, which has a backward pass of its own.
bool is_training_for_predictions(const Program& program, const FunctionRef& function) {
  if (function.function->name.find("prediction") == std::string_view::npos) return false;
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    return program.enclosing_function(backward.ref()) == function;
  });
}

}  // namespace

bool Program::is_evaluation(Ref node) const {
  if (under_no_grad(node)) return true;
  const FunctionRef function = enclosing_function(node);
  const auto says = [](std::string_view text, std::initializer_list<std::string_view> words) {
    const std::string plain = lowered(text);
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return plain.find(word) != std::string::npos;
    });
  };
  if (function && says(function.function->name, {"eval", "valid", "test", "infer", "predict",
                                                 "sample", "generate", "visuali"}))
    return !is_training_for_predictions(*this, function);
  // for batch in eval_loader: ... in the function that trains too
  const Ref loop = innermost_loop(node);
  if (loop.kind() != Kind::for_statement) return false;
  const std::string_view loader = strip_iterable(loop.child(Field::right)).text();
  if (says(loader, {"train"})) return false;
  const std::string plain = lowered(loader);
  return plain == "test" || plain == "val" || plain == "dev" ||
         says(loader, {"eval_", "valid", "val_", "test_"});
}

}  // namespace bench::diagnose
