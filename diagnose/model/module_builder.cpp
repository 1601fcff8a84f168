// Fills a Module's tables in one scan of the preorder array. The chain of open scopes is a stack of
// node ids that are popped when the scan passes their end.
#include "diagnose/model/module.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr int kUnpackDepth = 4;
constexpr std::string_view kAddArgument = "add_argument";

constexpr bool opens_scope(Kind kind) {
  return kind == Kind::function || kind == Kind::lambda || kind == Kind::class_definition;
}

}  // namespace

class ModuleBuilder {
 public:
  explicit ModuleBuilder(Module& module) : module_(module), tree_(module.tree_) {}

  void build() {
    module_.listed_.fill(tree_.nodes());
    module_.call_of_.assign(tree_.size(), Module::kNone);
    module_.scope_of_.resize(tree_.size());
    scopes_.push_back(0);
    for (NodeId id = 0; id < tree_.size(); ++id) {
      while (scopes_.size() > 1 && id >= tree_[scopes_.back()].last) scopes_.pop_back();
      module_.scope_of_[id] = scopes_.back();
      visit(id);
      if (opens_scope(tree_[id].kind)) scopes_.push_back(id);
    }
    index();
  }

 private:
  void visit(NodeId id) {
    const Kind kind = tree_[id].kind;
    switch (kind) {
      case Kind::call:
        add_call(id);
        break;
      case Kind::assignment:
        add_assignment(id, DefKind::assign);
        break;
      case Kind::augmented_assignment:
        add_assignment(id, DefKind::augmented);
        break;
      case Kind::named_expression:
        add_target(tree_.child(id, Field::name), tree_.child(id, Field::value), DefKind::assign);
        break;
      case Kind::for_statement:
        module_.loops_.push_back(id);
        [[fallthrough]];
      case Kind::for_in_clause:
        add_target(tree_.child(id, Field::left), tree_.child(id, Field::right), DefKind::loop);
        break;
      case Kind::while_statement:
        module_.loops_.push_back(id);
        break;
      case Kind::as_pattern:
        add_target(tree_.child(id, Field::alias), tree_[id].first_child, DefKind::context);
        break;
      case Kind::function:
      case Kind::lambda:
        add_function(id);
        break;
      case Kind::class_definition:
        add_class(id);
        break;
      case Kind::return_statement:
        add_return(id);
        break;
      case Kind::import_statement:
        add_import(id);
        break;
      case Kind::import_from:
        add_import_from(id);
        break;
      case Kind::if_statement:
        note_main_guard(id);
        break;
      case Kind::other:
        note_global(id);
        break;
      default:
        break;
    }
  }

  // global rank, device: what the function assigns to these names is the file's.
  void note_global(NodeId statement) {
    std::string_view text = tree_.text(statement);
    constexpr std::string_view kWord = "global ";
    if (!text.starts_with(kWord)) return;
    text.remove_prefix(kWord.size());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of(", \t\r\n\\;"), text.size());
      if (end > 0) globals_.insert({scopes_.back(), text.substr(0, end)});
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void add_call(NodeId id) {
    Call call;
    call.node = id;
    call.function = tree_.child(id, Field::function);
    call.scope = scopes_.back();
    const NodeId last = call.function != kNoNode && tree_[call.function].kind == Kind::attribute
                            ? tree_.child(call.function, Field::attribute)
                            : call.function;
    call.name = last == kNoNode ? std::string_view{} : tree_.text(last);
    if (call.name.ends_with("scaler") && passes_back(id)) call.name = "backward";
    if (call.name == "import_module" || call.name == "__import__") add_named_import(id);
    module_.call_of_[id] = static_cast<std::uint32_t>(module_.calls_.size());
    module_.calls_.push_back(call);
  }

  // importlib.import_module("models.net")
  void add_named_import(NodeId call) {
    const NodeId name = tree_.child_at(tree_.child(call, Field::arguments), 0);
    if (auto path = tree_.string_value(name)) module_.imports_.push_back(std::move(*path));
  }

  // loss_scaler(loss, optimizer, parameters=...), as timm's NativeScaler and its copies are called:
  // the object makes the backward pass and the step.
  bool passes_back(NodeId call) const {
    const NodeId arguments = tree_.child(call, Field::arguments);
    if (arguments == kNoNode || tree_.child_count(arguments) < 2) return false;
    return says(tree_.child_at(arguments, 0), "loss") && says(tree_.child_at(arguments, 1), "opt");
  }

  bool says(NodeId node, std::string_view word) const {
    return tree_.text(node).find(word) != std::string_view::npos;
  }

  void add_assignment(NodeId id, DefKind kind) {
    const NodeId right = tree_.child(id, Field::right);
    NodeId value = right;
    // a = b = f(): the right side is an assignment of its own.
    while (value != kNoNode && tree_[value].kind == Kind::assignment)
      value = tree_.child(value, Field::right);
    add_target(tree_.child(id, Field::left), value, kind);
  }

  void add_target(NodeId target, NodeId value, DefKind kind, int element = -1, int depth = 0) {
    if (target == kNoNode || depth > kUnpackDepth) return;
    const Kind target_kind = tree_[target].kind;
    if (target_kind == Kind::tuple || target_kind == Kind::list) {
      unpack(target, value, kind, depth);
      return;
    }
    if (target_kind != Kind::identifier && target_kind != Kind::attribute &&
        target_kind != Kind::subscript)
      return;
    Def def;  // a subscript is known by its whole text: loaders["train"]
    def.is_attribute = target_kind == Kind::attribute;
    def.name = tree_.text(def.is_attribute ? tree_.child(target, Field::attribute) : target);
    def.target = target;
    def.value = value;
    def.element = element;
    def.kind = kind;
    def.scope = scopes_.back();
    module_.defs_.push_back(def);
  }

  void unpack(NodeId targets, NodeId value, DefKind kind, int depth) {
    const bool literal = value != kNoNode && kind == DefKind::assign &&
                         (tree_[value].kind == Kind::tuple || tree_[value].kind == Kind::list) &&
                         tree_.child_count(value) == tree_.child_count(targets);
    int index = 0;
    for (NodeId at = tree_[targets].first_child; at != kNoNode; at = tree_[at].next_sibling) {
      if (literal)
        add_target(at, tree_.child_at(value, static_cast<std::size_t>(index)), kind, -1, depth + 1);
      else
        add_target(at, value, kind, index, depth + 1);
      ++index;
    }
  }

  void add_function(NodeId id) {
    Function function;
    function.node = id;
    function.name = tree_.text(tree_.child(id, Field::name));
    function.scope = scopes_.back();
    function.body = tree_.child(id, Field::body);
    if (tree_[function.scope].kind == Kind::class_definition) function.owner_class = function.scope;
    const NodeId parameters = tree_.child(id, Field::parameters);
    if (parameters != kNoNode) {
      function.parameters.reserve(tree_.child_count(parameters));
      for (NodeId at = tree_[parameters].first_child; at != kNoNode; at = tree_[at].next_sibling)
        add_parameter(id, at, function);
    }
    if (tree_[id].kind == Kind::function) {
      add_def(function.name, id, DefKind::function, scopes_.back());
    } else if (function.body != kNoNode) {
      function.returns.push_back(function.body);
    }
    module_.functions_.push_back(std::move(function));
  }

  void add_parameter(NodeId function_node, NodeId at, Function& function) {
    Parameter parameter;
    parameter.node = at;
    NodeId name = at;
    const Kind kind = tree_[at].kind;
    if (kind == Kind::default_parameter) {
      name = tree_.child(at, Field::name);
      parameter.default_value = tree_.child(at, Field::value);
    } else if (kind == Kind::typed_parameter) {
      name = tree_[at].first_child;
    }
    if (name != kNoNode && tree_[name].kind == Kind::list_splat_parameter) parameter.splat = '*';
    if (name != kNoNode && tree_[name].kind == Kind::dictionary_splat_parameter)
      parameter.splat = 'd';
    if (parameter.splat != 0) name = tree_[name].first_child;
    if (name == kNoNode || tree_[name].kind != Kind::identifier) return;
    parameter.name = tree_.text(name);
    Def def;
    def.name = parameter.name;
    def.target = name;
    def.value = parameter.default_value;
    def.kind = DefKind::parameter;
    def.scope = function_node;
    module_.defs_.push_back(def);
    function.parameters.push_back(parameter);
  }

  void add_def(std::string_view name, NodeId target, DefKind kind, NodeId scope) {
    Def def;
    def.name = name;
    def.target = target;
    def.kind = kind;
    def.scope = scope;
    module_.defs_.push_back(def);
  }

  void add_class(NodeId id) {
    Class owner;
    owner.node = id;
    owner.name = tree_.text(tree_.child(id, Field::name));
    owner.body = tree_.child(id, Field::body);
    const NodeId bases = tree_.child(id, Field::superclasses);
    if (bases != kNoNode)
      for (NodeId at = tree_[bases].first_child; at != kNoNode; at = tree_[at].next_sibling)
        if (tree_[at].kind != Kind::keyword_argument) owner.bases.push_back(at);
    add_def(owner.name, id, DefKind::class_definition, scopes_.back());
    module_.classes_.push_back(std::move(owner));
  }

  void add_return(NodeId id) {
    const NodeId value = tree_[id].first_child;
    if (value == kNoNode) return;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (tree_[*scope].kind != Kind::function) continue;
      for (auto at = module_.functions_.rbegin(); at != module_.functions_.rend(); ++at)
        if (at->node == *scope) {
          at->returns.push_back(value);
          return;
        }
    }
  }

  void bind_import(std::string_view name, std::string path, NodeId statement) {
    // try: from apex ... except: from torch ...: the torch spelling is the one rules know.
    auto [at, fresh] = module_.import_paths_.try_emplace(name, path);
    if (!fresh && !at->second.starts_with("torch.")) at->second = std::move(path);
    add_def(name, statement, DefKind::import, scopes_.back());
  }

  void add_import(NodeId id) {
    for (NodeId at = tree_[id].first_child; at != kNoNode; at = tree_[at].next_sibling) {
      const bool aliased = tree_[at].kind == Kind::aliased_import;
      const NodeId name = aliased ? tree_.child(at, Field::name) : at;
      if (name == kNoNode) continue;
      const std::string path(tree_.text(name));
      module_.imports_.push_back(path);
      if (aliased) {
        bind_import(tree_.text(tree_.child(at, Field::alias)), path, id);
      } else {
        const std::string_view top = tree_.text(name).substr(0, path.find('.'));
        bind_import(top, std::string(top), id);
      }
    }
  }

  void add_import_from(NodeId id) {
    const NodeId module_name = tree_.child(id, Field::module_name);
    if (module_name == kNoNode) return;
    std::string base(tree_.text(module_name));
    base.erase(std::remove_if(base.begin(), base.end(), [](char c) { return c == ' '; }),
               base.end());
    module_.imports_.push_back(base);
    const std::string prefix = base.ends_with('.') ? base : base + ".";
    for (NodeId at = tree_[id].first_child; at != kNoNode; at = tree_[at].next_sibling) {
      if (at == module_name) continue;
      if (tree_[at].kind == Kind::wildcard_import) {
        module_.star_imports_.push_back(base);
        continue;
      }
      const bool aliased = tree_[at].kind == Kind::aliased_import;
      const NodeId name = aliased ? tree_.child(at, Field::name) : at;
      if (name == kNoNode) continue;
      const std::string path = prefix + std::string(tree_.text(name));
      module_.imports_.push_back(path);
      bind_import(aliased ? tree_.text(tree_.child(at, Field::alias)) : tree_.text(name), path, id);
    }
  }

  // if __name__ == "__main__": pass
  bool is_left_empty(NodeId guard) const {
    const NodeId block = tree_.child(guard, Field::consequence);
    const NodeId first = block == kNoNode ? block : tree_[block].first_child;
    return first != kNoNode && tree_[first].next_sibling == kNoNode && tree_.text(first) == "pass";
  }

  void note_main_guard(NodeId id) {
    const std::string_view condition = tree_.text(tree_.child(id, Field::condition));
    if (condition.find("__name__") != std::string_view::npos &&
        condition.find("__main__") != std::string_view::npos && !is_left_empty(id))
      module_.main_guards_.push_back(id);
  }

  // arg("--local_rank") after arg = parser.add_argument: all that the name is given in the file is
  // that method of some parser.
  bool adds_argument(const Call& call) const {
    if (call.function == kNoNode || tree_[call.function].kind != Kind::identifier) return false;
    const auto given = module_.defs_of(call.name, false);
    return !given.empty() && std::all_of(given.begin(), given.end(), [&](std::uint32_t index) {
      const Def& def = module_.defs_[index];
      return def.kind == DefKind::assign && def.element < 0 && def.value != kNoNode &&
             tree_[def.value].kind == Kind::attribute &&
             tree_.text(tree_.child(def.value, Field::attribute)) == kAddArgument;
    });
  }

  void index() {
    module_.imports_partial_ = module_.import_path("partial") == "functools.partial" ||
                               module_.import_path("functools") == "functools";
    // In source order, so that those of a subtree lie together.
    std::stable_sort(module_.defs_.begin(), module_.defs_.end(),
                     [](const Def& a, const Def& b) { return a.target < b.target; });
    for (std::uint32_t i = 0; i < module_.defs_.size(); ++i) {
      Def& def = module_.defs_[i];
      if (globals_.contains({def.scope, def.name}) && def.kind != DefKind::parameter) {
        def.scope = 0;
        def.is_global = true;
      }
      (def.is_attribute ? module_.attributes_ : module_.names_).add(def.name, i);
      if (tree_[def.target].kind == Kind::subscript)
        module_.items_.add(tree_.text(tree_.child(def.target, Field::value)), i);
    }
    for (NameIndex* each : {&module_.attributes_, &module_.names_, &module_.items_}) each->finish();
    for (std::uint32_t i = 0; i < module_.functions_.size(); ++i)
      module_.functions_by_name_.add(module_.functions_[i].name, i);
    module_.functions_by_name_.finish();
    index_functions();
    index_calls();
  }

  void index_calls() {
    for (std::uint32_t i = 0; i < module_.calls_.size(); ++i) {
      Call& call = module_.calls_[i];
      if (call.function != kNoNode) {
        call.path = *module_.paths_.insert(module_.qualified(call.function)).first;
        call.api = module_.api(call.function, call.path);
      }
      if (adds_argument(call)) call.name = kAddArgument;
      if (call.api != Api::none) module_.api_calls_.push_back(i);
      module_.calls_by_name_.add(call.name, i);
      if (tree_[call.function].kind != Kind::identifier) continue;
      const std::string_view own = call.path.substr(call.path.rfind('.') + 1);
      if (!own.empty() && own != call.name) module_.calls_by_name_.add(own, i);
    }
    module_.calls_by_name_.finish();
    for (Class& cls : module_.classes_)
      for (const NodeId base : cls.bases) cls.base_apis.push_back(module_.api(base));
    module_.paths_are_known_ = true;
  }

  // Parents stand before their children.
  void index_functions() {
    module_.around_.assign(tree_.size(), Module::kNone);
    std::vector<std::uint32_t> own(tree_.size(), Module::kNone);
    for (std::uint32_t i = 0; i < module_.functions_.size(); ++i)
      if (tree_[module_.functions_[i].node].kind == Kind::function)
        own[module_.functions_[i].node] = i;
    for (NodeId id = 1; id < tree_.size(); ++id) {
      const NodeId parent = tree_[id].parent;
      if (parent == kNoNode) continue;
      module_.around_[id] = own[parent] != Module::kNone ? own[parent] : module_.around_[parent];
    }
  }

  Module& module_;
  const SyntaxTree& tree_;
  std::vector<NodeId> scopes_;
  std::set<std::pair<NodeId, std::string_view>> globals_;  // the function, a name
};

Module::Module(std::string path, std::string dotted_name, std::string source,
               std::chrono::microseconds parse_limit)
    : path_(std::move(path)),
      dotted_name_(std::move(dotted_name)),
      tree_(SyntaxTree::parse(std::move(source), parse_limit)) {
  ModuleBuilder(*this).build();
}

}  // namespace bench::diagnose
