// One Python file as rules see it: its tree, and tables of calls, definitions, functions, classes,
// loops and imports, all filled in a single pass. Rules ask the tables and never walk the whole
// tree.
#pragma once

#include "diagnose/model/api.hpp"
#include "diagnose/model/call_names.hpp"
#include "diagnose/model/kept_once.hpp"
#include "diagnose/model/listed_kind.hpp"
#include "diagnose/model/mentions.hpp"
#include "diagnose/model/name_index.hpp"
#include "diagnose/syntax/tree.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace bench::diagnose {

enum class DefKind : std::uint8_t {
  assign,     // name = value
  augmented,  // name += value
  loop,       // for name in value
  context,    // with value as name
  parameter,  // value is the default, or kNoNode
  import,     // value is the statement
  function,
  class_definition,
};

// One place where a name, or an attribute of an object, gets its value.
struct Def {
  std::string_view name;
  NodeId target = kNoNode;  // the name or attribute node
  NodeId value = kNoNode;   // the right-hand side
  int element = -1;         // index within an unpacked tuple
  DefKind kind = DefKind::assign;
  bool is_attribute = false;  // obj.name = ...
  NodeId scope = 0;           // enclosing function, class, lambda or the module
  bool is_global = false;     // by a `global` statement of the function that assigns it
};

struct HandedToBase;

struct Call {
  NodeId node = kNoNode;
  NodeId function = kNoNode;  // expression that is called
  std::string_view name;      // last component: backward in loss.backward()
  std::string_view path;      // qualified() of what is called
  Api api = Api::none;
  NodeId scope = 0;
  // Of a class that derives from the library's: how that gets its arguments (kinds.hpp).
  std::shared_ptr<const HandedToBase> handed;
};

// One argument of a call, or one item of a dictionary that goes into it behind **.
struct Argument {
  std::string name;  // empty for a positional one
  NodeId value = kNoNode;
  NodeId node = kNoNode;  // the whole of it: lr=0.1
};

struct Parameter {
  std::string_view name;
  NodeId node = kNoNode;
  NodeId default_value = kNoNode;
  char splat = 0;  // '*' or 'd' for **
};

struct Function {
  NodeId node = kNoNode;
  std::string_view name;
  NodeId owner_class = kNoNode;  // for methods
  NodeId scope = 0;              // where it is defined
  NodeId body = kNoNode;
  std::vector<Parameter> parameters;
  std::vector<NodeId> returns;  // returned expressions

  // A call of the class runs it; that of a data class, which is made without one of its own, runs
  // its __post_init__.
  bool makes_object() const { return name == "__init__" || name == "__post_init__"; }
};

struct Class {
  NodeId node = kNoNode;
  std::string_view name;
  NodeId body = kNoNode;
  std::vector<NodeId> bases;
  std::vector<Api> base_apis;  // of each of the bases
};

// An item of the environment, by a name that is written out.
struct EnvironmentItem {
  NodeId node = kNoNode;  // the subscript
  std::string name;
};

class Module {
 public:
  Module(std::string path, std::string dotted_name, std::string source,
         std::chrono::microseconds parse_limit = SyntaxTree::kParseLimit);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }
  const std::string& dotted_name() const { return dotted_name_; }
  const SyntaxTree& tree() const { return tree_; }
  std::string_view text(NodeId id) const { return tree_.text(id); }
  const Node& operator[](NodeId id) const { return tree_[id]; }

  const std::vector<Call>& calls() const { return calls_; }
  const Call* call_at(NodeId node) const {
    const std::uint32_t index = node < call_of_.size() ? call_of_[node] : kNone;
    return index == kNone ? nullptr : &calls_[index];
  }
  const std::vector<Def>& defs() const { return defs_; }
  // Indices into defs() of one name, in source order; attributes and plain names are kept apart.
  std::span<const std::uint32_t> defs_of(const HashedName& name, bool attribute) const {
    return (attribute ? attributes_ : names_).of(name);
  }
  // It stands for functions or classes of the file or for a builtin: no value is given to it.
  bool is_only_defined(std::string_view name) const;
  // Of container[...] = value, by the container's text.
  std::span<const std::uint32_t> item_defs_of(std::string_view container) const {
    return items_.of(container);
  }
  // Indices into calls() by the name that is called, and by the name that an imported function has
  // in its own file: fit(...) after `from loop import train as fit` is a call of train.
  std::span<const std::uint32_t> calls_of(const HashedName& name) const {
    return calls_by_name_.of(name);
  }
  // Those of functions that the library is known by.
  const std::vector<std::uint32_t>& api_calls() const { return api_calls_; }
  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<Class>& classes() const { return classes_; }
  const Function* function_at(NodeId node) const;
  // The nearest function definition (no lambda) that the node is in; null at the file's own level.
  const Function* function_around(NodeId node) const {
    const std::uint32_t index = node < around_.size() ? around_[node] : kNone;
    return index == kNone ? nullptr : &functions_[index];
  }
  const Class* class_at(NodeId node) const;
  const Function* method(const Class& owner, std::string_view name) const;
  const std::vector<NodeId>& loops() const { return loops_; }
  std::span<const NodeId> nodes_of(ListedKind kind) const { return listed_.of(kind); }

  // Imported modules as dotted names, with leading dots for relative ones.
  const std::vector<std::string>& imports() const { return imports_; }
  bool has_star_imports() const { return !star_imports_.empty(); }
  bool imports_top_level(std::string_view package) const;
  bool imports_partial() const { return imports_partial_; }  // of functools, or functools itself
  // Dotted name behind an identifier at module level: "nn" -> "torch.nn". Empty when not imported.
  std::string_view import_path(std::string_view name) const;
  // The same of one import, where the file has several that bind its name.
  std::string import_path(const Def& import) const;
  // Dotted name of an expression made of names and attributes, through imports and simple aliases.
  std::string qualified(NodeId expression) const;
  Api api(NodeId expression) const;

  NodeId scope_of(NodeId node) const {  // nearest function, lambda or class, else the module (0)
    return node < scope_of_.size() ? scope_of_[node] : 0;
  }
  NodeId function_of(NodeId node) const {  // nearest function definition, else 0
    const Function* const found = function_around(node);
    return found == nullptr ? 0 : found->node;
  }
  // Calls whose name the test accepts, as indices into calls() in source order. Each name that
  // occurs is tested once for all programs that share the file: the answer is kept by `says`, which
  // has to be a function without a state.
  using NameTest = bool (*)(std::string_view name);
  const std::vector<std::uint32_t>& calls_that(NameTest says) const {
    return call_names_.that(says, calls_);
  }
  // The calls whose words leave open whether they make one of the library's objects (kinds.cpp), as
  // indices into calls(). They are looked for once for all programs that share the file.
  const std::vector<std::uint32_t>& unclear_calls() const;
  // Identifiers that stand for the value of their name, in source order (handed_on.cpp). They are
  // looked for once as well.
  std::span<const std::uint32_t> values_named(const HashedName& name) const;
  // os.environ["RANK"] and its kin, in source order, read or written.
  const std::vector<EnvironmentItem>& environment_items() const;
  // The word stands in the text, and not in a comment alone.
  bool mentions(std::string_view word) const { return mentions_.has(tree_, word); }
  std::size_t searches() const { return mentions_.searches(); }
  bool has_main_guard() const { return !main_guards_.empty(); }
  bool under_main_guard(NodeId node) const {
    return std::any_of(main_guards_.begin(), main_guards_.end(),
                       [&](NodeId guard) { return tree_.contains(guard, node); });
  }

  // Arguments of a call: positional by index, then by keyword; the items of dictionaries behind **
  // count, where the file shows them (arguments.hpp). positional() finds what a library function is
  // given by the keyword of that parameter, too.
  NodeId positional(NodeId call, std::size_t index) const;
  NodeId keyword(NodeId call, std::string_view name) const { return keyword(call, name, 0); }
  NodeId argument(NodeId call, std::size_t index, std::string_view name) const;
  std::size_t positional_count(NodeId call) const;
  // All that can be seen of them: keywords too, and the items of dictionaries behind **.
  std::vector<Argument> arguments(NodeId call) const;
  // The call is given more than can be seen: *items, **options of a dictionary out of sight.
  bool has_splat(NodeId call) const;

 private:
  friend class ModuleBuilder;
  Api api(NodeId expression, std::string_view qualified_name) const;
  std::string qualified(NodeId expression, int depth) const;
  std::string named_attribute(NodeId call, int depth) const;
  NodeId in_place(NodeId call, std::size_t index) const;
  NodeId keyword(NodeId call, std::string_view name, int depth) const;

  std::string path_;
  std::string dotted_name_;
  SyntaxTree tree_;
  std::vector<Call> calls_;
  std::vector<Def> defs_;
  std::vector<Function> functions_;
  std::vector<Class> classes_;
  std::vector<NodeId> loops_;
  NodesByKind listed_;
  NameIndex names_;
  NameIndex attributes_;
  NameIndex items_;
  NameIndex calls_by_name_;
  NameIndex functions_by_name_;
  std::vector<std::uint32_t> api_calls_;
  std::unordered_map<std::string_view, std::string> import_paths_;
  std::vector<std::string> imports_;
  std::vector<std::string> star_imports_;
  bool imports_partial_ = false;
  std::vector<NodeId> main_guards_;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> call_of_;     // of each node, an index into calls_
  std::vector<NodeId> scope_of_;           // of each node
  std::vector<std::uint32_t> around_;      // of each node, an index into functions_
  std::unordered_set<std::string> paths_;  // of calls
  bool paths_are_known_ = false;
  mutable Mentions mentions_;
  mutable CallNames call_names_;
  KeptOnce<std::vector<std::uint32_t>> unclear_calls_;
  KeptOnce<NameIndex> values_;
  KeptOnce<std::vector<EnvironmentItem>> environment_items_;
};

// A node of one module of a program.
struct Ref {
  const Module* module = nullptr;
  NodeId node = kNoNode;

  explicit operator bool() const { return module != nullptr && node != kNoNode; }
  bool operator==(const Ref&) const = default;
  bool operator<(const Ref& other) const {
    return module != other.module ? module < other.module : node < other.node;
  }
  Kind kind() const { return *this ? module->tree()[node].kind : Kind::other; }
  std::string_view text() const { return *this ? module->text(node) : std::string_view{}; }
  Ref child(Field field) const {
    return *this ? Ref{module, module->tree().child(node, field)} : Ref{};
  }
  Ref with(NodeId other) const { return {module, other}; }
};

struct RefHash {
  std::size_t operator()(const Ref& ref) const {
    return std::hash<const Module*>{}(ref.module) + ref.node;
  }
};

}  // namespace bench::diagnose
