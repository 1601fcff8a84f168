// A program is a script and the local files it imports. It answers the questions rules ask: which
// calls of an API there are, where a value comes from, which guards and loops surround a node, and
// which expressions are ranks. It is built once per script and shared by all rules.
#pragma once

#include "diagnose/config/config_entry.hpp"
#include "diagnose/config/requirements.hpp"
#include "diagnose/config/shipped_value.hpp"
#include "diagnose/launch/launch_line.hpp"
#include "diagnose/model/by_text.hpp"
#include "diagnose/model/module.hpp"
#include "diagnose/model/name_tables.hpp"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace bench::diagnose {

struct CallRef {
  const Module* module = nullptr;
  const Call* call = nullptr;

  Ref ref() const { return {module, call->node}; }
  explicit operator bool() const { return call != nullptr; }
  // Of a class that derives from the library's: what the library's is given in the end.
  Ref argument(std::size_t index, std::string_view name) const;
  Ref positional(std::size_t index) const;
  Ref keyword(std::string_view name) const;
  bool has_splat() const;
  // The object of a method call: loss in loss.backward().
  Ref receiver() const;
};

struct FunctionRef {
  const Module* module = nullptr;
  const Function* function = nullptr;

  explicit operator bool() const { return function != nullptr; }
  bool operator==(const FunctionRef&) const = default;
  bool operator<(const FunctionRef& other) const { return function < other.function; }
};

struct ClassRef {
  const Module* module = nullptr;
  const Class* cls = nullptr;

  explicit operator bool() const { return cls != nullptr; }
  bool operator==(const ClassRef&) const = default;
};

// model, self.model, parts.model, parts["model"]: the expression may stand for an object that was
// made elsewhere.
bool stands_for_object(Ref expression);

// SimpleNamespace, dict: what it makes carries what it is given, and does nothing with it.
bool makes_carrier(std::string_view name);

// Where a value comes from, after names, attributes, parameters and returns are followed.
struct Source {
  enum class How : std::uint8_t {
    value,      // the node is the expression itself
    element,    // the value is element `element` of what the node gives
    loop_item,  // the value is an item of the iterable node
    parameter,  // the node is a parameter nobody in the program binds
    argument,   // the node is an add_argument(...) call
    unknown,    // the node is a name or attribute nobody defines
  };
  Ref ref;
  How how = How::value;
  int element = -1;
};

enum class RankTest : std::uint8_t {
  none,       // says nothing about the rank
  main_only,  // holds on one rank (of the job or of each node)
  not_main,   // holds on every other rank
};

struct Guard {
  Ref condition;
  bool holds = true;  // the branch taken when the condition is true

  friend bool operator==(const Guard&, const Guard&) = default;
};

// A loop that trains: it reaches a backward pass.
struct TrainingLoop {
  Ref batches;   // the loop over batches: the innermost one that is not a range
  Ref epochs;    // the loop around it, perhaps in a caller; empty when there is none
  Ref iterable;  // what `batches` iterates, or draws from with next(), without tqdm and its kin
  std::vector<CallRef> backwards;
  FunctionRef function;  // holds `batches`
};

enum class Wrapper : std::uint8_t { data_parallel, ddp };

// One DDP(...) or DataParallel(...) call.
struct Wrap {
  CallRef call;
  Wrapper kind = Wrapper::ddp;
  Ref module;                     // the wrapped expression
  std::vector<ClassRef> classes;  // classes of this program that it wraps
  ClassRef own;                   // of this program, where it derives from the wrapper
};

// A call of a wrapped model: model(x) after model = DDP(model). Where an option chooses between the
// two kinds of wrapper there is one of each.
struct ForwardCall {
  CallRef call;
  const Wrap* wrap = nullptr;
};

struct ProgramInput {
  std::vector<const Module*> modules;  // the script first
  // Which module an import of a module means, for imports that lead to files of the program.
  std::unordered_map<const Module*, ByText<const Module*>> import_targets;
  std::vector<LaunchLine> launches;  // from --launch and from shell scripts that start this script
  std::vector<ConfigEntry> configs;
  std::optional<int> gpus;
  bool is_notebook = false;
  NewestVersions newest;  // of frameworks, by the project's requirement files
  // Whether another Python file in the script's directory has a text that is accepted.
  std::function<bool(const std::function<bool(std::string_view text)>& accepts)> any_beside;
  // The same of the whole project; `question` names what the test asks, and has one answer.
  std::function<bool(const std::string& question,
                     const std::function<bool(std::string_view text)>& accepts)>
      any_in_project;
  // Files of the project in which the test finds a line, and the line.
  std::function<std::vector<std::pair<std::string, std::uint32_t>>(
      const std::function<std::optional<std::uint32_t>(std::string_view text)>& line_of)>
      where_in_project;
  std::function<std::vector<std::string>()> scripts_above;  // paths, see Program
  ShippedValues shipped;
  // Files that an import by a name which a run makes may mean, by its call.
  std::map<std::pair<const Module*, NodeId>, std::vector<const Module*>> looked_up;
  // Whether what a run picks by a name (a class of such a file, of a registry) is followed to all
  // that it may be: a rewrite has to see each of them, and a finding wants to be sure of one.
  bool follows_look_ups = false;
};

class Program {
 public:
  explicit Program(ProgramInput input);

  const Module& root() const { return *input_.modules.front(); }
  const std::vector<const Module*>& modules() const { return input_.modules; }
  const std::vector<LaunchLine>& launches() const { return input_.launches; }
  const std::vector<ConfigEntry>& configs() const { return input_.configs; }
  std::optional<int> gpus() const { return input_.gpus; }
  // The newest versions of frameworks that the project's requirements allow.
  const NewestVersions& newest() const { return input_.newest; }
  bool is_notebook() const { return input_.is_notebook; }
  // Another script in the same directory, which this one does not import, has such a text. Files
  // are read for it: a question for findings, not for every program.
  bool any_beside(const std::function<bool(std::string_view text)>& accepts) const {
    return input_.any_beside && input_.any_beside(accepts);
  }
  // Some Python file of the project, this one too, has such a text. It is remembered by the name of
  // the question, which says all that the test depends on.
  bool any_in_project(const std::string& question,
                      const std::function<bool(std::string_view text)>& accepts) const {
    return input_.any_in_project && input_.any_in_project(question, accepts);
  }
  // The first files of the project in which the test finds a line, with the line: for messages.
  std::vector<std::pair<std::string, std::uint32_t>> where_in_project(
      const std::function<std::optional<std::uint32_t>(std::string_view text)>& line_of) const {
    if (!input_.where_in_project) return {};
    return input_.where_in_project(line_of);
  }
  // The scripts of the project that run and import this file, if through others. All files of the
  // project are read for it.
  std::vector<std::string> scripts_above() const {
    return input_.scripts_above ? input_.scripts_above() : std::vector<std::string>{};
  }
  // What the project's config files and command lines say of a key; a question for findings too.
  std::vector<ShippedValue> shipped(const std::string& key) const {
    return input_.shipped ? input_.shipped(key) : std::vector<ShippedValue>{};
  }

  // --- tables
  std::span<const CallRef> calls(Api api) const;
  std::span<const CallRef> calls_named(std::string_view name) const { return calls_by_name(name); }
  // Those of all files whose name the test accepts, in source order (Module::calls_that).
  std::vector<CallRef> calls_that(Module::NameTest says) const;
  bool uses(Api api) const { return !calls(api).empty(); }
  bool imports(std::string_view top_level_package) const;
  // A framework that distributes on its own is imported (Lightning, Accelerate, DeepSpeed ...).
  bool framework_distributes() const { return framework_distributes_; }
  // Lightning is one of them: it is imported, and the script does not join a group and wrap its
  // model, or have Accelerate do so, with no Trainer anywhere.
  bool lightning_distributes() const;
  // The object is Accelerate's: it is called so, or has the name of one that the program makes.
  bool is_accelerator(Ref object) const;
  // DeepSpeed or FSDP may stand behind Accelerate (accelerate.cpp).
  bool has_another_engine() const { return another_engine_; }
  const std::vector<Wrap>& wraps() const { return wraps_; }
  const std::vector<TrainingLoop>& training_loops() const { return training_loops_; }
  const std::vector<ForwardCall>& forward_calls() const;  // of wrapped models, in source order
  bool has_ddp() const { return has_ddp_; }
  bool has_data_parallel() const { return has_data_parallel_; }
  bool mentions(std::string_view text) const;  // a word in the sources, outside of comments
  // object.name = value in all files.
  const std::vector<AttributeDef>& attribute_defs(std::string_view name) const {
    return tables_.attribute_defs(modules(), name);
  }
  // The add_argument(...) calls whose option fills that attribute (options.cpp).
  const std::vector<CallRef>& options_named(std::string_view name) const;

  // --- where values come from (resolve.cpp)
  // What is found stays as long as the program.
  const std::vector<Source>& sources(Ref expression) const { return resolve(expression, false); }
  // The same, also through model.to(...), .cuda(), torch.compile(...) and their kin.
  const std::vector<Source>& module_sources(Ref expression) const {
    return resolve(expression, true);
  }
  // The other names that the object has on that way, in the functions that make it or hand it on:
  // net after `return net` for model = build(), net in prepare(net) for what that gives back.
  std::vector<Ref> names_behind(Ref expression) const;
  // Some object of the program has an attribute of that name that was given to it.
  bool is_field(std::string_view name) const;
  // Something of the program may give the name or attribute a value; where nothing does, sources()
  // finds functions, classes, options or nothing known (given.cpp).
  bool may_be_given(Ref expression) const;
  // The expression is that variable, or has its name on the way.
  bool leads_to(Ref expression, Ref variable) const;
  FunctionRef callee(CallRef call) const;
  // That and all others where a run picks the class or function by a name (picked.cpp).
  std::vector<FunctionRef> callees(CallRef call) const;
  // The classes that a run may pick for the call, or for the object; one where nothing is picked.
  std::vector<ClassRef> classes_of_call(CallRef call) const;
  std::vector<ClassRef> classes_of(Ref expression) const;
  // The calls by which a run may make an object of the class, where they name another thing.
  const std::vector<CallRef>& picks_of(ClassRef cls) const;
  ClassRef class_of_call(CallRef call) const;  // C for C(...)
  ClassRef class_of(Ref expression) const;     // class of the object the expression gives
  ClassRef enclosing_class(Ref node) const;
  bool is_property(FunctionRef function) const;
  FunctionRef enclosing_function(Ref node) const;
  const std::vector<CallRef>& call_sites(FunctionRef function) const;
  std::string qualified(Ref expression) const;
  CallRef as_call(Ref node) const;
  // The call that gives the value: the expression itself, or what its name was given and nothing
  // else: model.parameters() for `weights` after weights = model.parameters().
  CallRef made_by(Ref expression) const;
  bool comes_from(Ref expression, Api api) const;  // some source is a call of it
  CallRef origin(Ref expression, Api api) const;   // that call
  // The def that gives `name` to the call's result: model in model = DDP(...). Empty otherwise.
  std::string_view assigned_name(Ref call) const;
  const std::vector<FunctionRef>& functions() const { return functions_; }
  // Where the name of a function or class stands for the thing itself (handed_on.cpp).
  std::vector<Ref> handed_on(FunctionRef function) const;
  std::vector<Ref> handed_on(ClassRef cls) const;
  // Same variable: same text, and for plain names the same function or module scope.
  bool same_variable(Ref a, Ref b) const;

  // --- what classes inherit (hierarchy.cpp)
  FunctionRef method(ClassRef owner, std::string_view name) const;  // in bases of this program too
  FunctionRef inherited_method(ClassRef owner, std::string_view name) const;  // of super().name()
  // What self.name() runs in a method of `owner`: of a derived class where the owner has none.
  FunctionRef method_on_self(ClassRef owner, std::string_view name) const;
  // A call of the method's name on self in a class it derives from may mean it.
  bool overrides(FunctionRef function, ClassRef base) const;
  std::vector<ClassRef> bases_of(ClassRef derived) const;
  ClassRef base_of(ClassRef derived) const;  // the first base that is a class of this program
  const std::vector<ClassRef>& lineage(ClassRef cls) const;      // itself and its bases, all levels
  const std::vector<ClassRef>& derived_of(ClassRef base) const;  // all levels
  // Those of derived_of() that the program makes objects of; all where it makes none by name.
  std::vector<ClassRef> derived_in_use(ClassRef base) const;
  bool derives_from(ClassRef derived, Api base) const;

  // --- literals (literal.cpp)
  Value evaluate(Ref expression) const;
  // The literal that a constant is given, for a name or attribute that is nothing else (BACKEND,
  // cfg.backend); the expression itself otherwise. What an option of the command line or a
  // parameter is given is none: a run, or another caller, may give something else.
  Ref written(Ref expression) const;
  std::optional<std::int64_t> integer(Ref expression) const;
  std::optional<std::string> string(Ref expression) const;
  bool is_literal_true(Ref expression) const { return evaluate(expression).is_true(); }
  bool is_literal_false(Ref expression) const { return evaluate(expression).is_false(); }

  // --- order and control (control.cpp)
  std::vector<Guard> guards(Ref node) const;  // within the function, innermost first
  RankTest rank_test(Ref condition) const;
  RankTest guarded_by_rank(Ref node) const;  // also through call sites
  Ref rank_guard(Ref node) const;            // the condition that makes it so, in this function
  // Runs once, in the process that starts the ranks afterwards: above mp.spawn or Popen.
  bool before_ranks(Ref node) const;
  bool under(Ref node, const std::function<bool(Ref condition, bool holds)>& accepts) const;
  Ref enclosing_with(Ref node, const std::function<bool(Ref item)>& accepts) const;
  bool under_no_grad(Ref node) const;
  std::vector<Ref> loops_around(Ref node) const;  // innermost first, also in callers
  Ref innermost_loop(Ref node) const;             // within the function
  bool runs_before(Ref first, Ref second) const;  // program order, entering local calls
  // Functions whose body may run because of the node's subtree, itself excluded.
  std::vector<FunctionRef> reached(Ref subtree) const;
  // First call with the name inside the subtree or in functions it reaches.
  bool subtree_calls(Ref subtree, const std::function<bool(CallRef)>& accepts) const;

  // --- what an expression means (roles.cpp)
  bool is_rank(Ref expression) const;        // of the whole job
  bool is_spawn_rank(Ref expression) const;  // first parameter of a function that mp.spawn starts
  std::string environment_name(Ref expression) const;  // RANK for int(os.environ["RANK"])
  bool is_local_rank(Ref expression) const;
  bool is_world_size(Ref expression) const;
  bool is_distributed_flag(Ref condition) const;
  Ref strip_iterable(Ref iterable) const;  // loader for tqdm(enumerate(loader))
  // for start in range(0, len(items), n): one part of the data after the other, and no epochs.
  bool cuts_data(Ref loop) const;
  bool mentions_rank(Ref subtree) const;    // a rank is part of it (as in f"ckpt_{rank}.pt")
  bool comes_from_rank(Ref subtree) const;  // or of a value that a name in it holds
  bool is_wrapped(Ref expression, Wrapper kind) const;
  const Wrap* wrap_of(Ref expression) const;
  const Wrap* wrap_of(Ref expression, Wrapper kind) const;  // where several kinds may have made it
  const Wrap* wrap_made_by(Ref call) const;     // that is the call, as sources() finds it
  bool is_spawned(FunctionRef function) const;  // target of mp.spawn

  // The target, or a function that the target is given: mp.spawn(start, args=(size, work)).
  bool runs_in_ranks(FunctionRef function) const;
  bool is_evaluation(Ref node) const;  // in an eval function or under no_grad

 private:
  friend class Resolver;
  struct QuestionHash {
    std::size_t operator()(const std::pair<Ref, bool>& question) const {
      return 2 * RefHash{}(question.first) + (question.second ? 1 : 0);
    }
  };

  bool may_run(const Module& module, const Call& call) const;
  void index_calls();
  void index_kinds();  // kinds.cpp
  void add_kind(const CallRef& made, const std::vector<Api>& kinds,
                std::shared_ptr<const HandedToBase> handed);
  void index_accelerators();
  void index_prepares();
  void index_trainers();
  void index_derived() const;
  void index_picks();
  void find_wraps();
  void find_training_loops();
  Ref items_behind(Ref name) const;
  Ref drawn_in(Ref loop) const;
  Ref rounds_of_generator(Ref loop) const;
  const std::vector<Source>& resolve(Ref expression, bool through_module) const;
  std::vector<CallRef>& calls_by_name(std::string_view name) const;
  ClassRef class_inside(Ref expression) const;
  FunctionRef find_callee(CallRef call) const;
  void add_picks(FunctionRef constructor, std::vector<CallRef>& sites) const;
  FunctionRef unless_property(FunctionRef function) const;
  bool is_imported_as(CallRef call, FunctionRef function) const;
  void end_search(FunctionRef function) const;  // for its call sites
  const Module* import_target(const Module& from, std::string_view path) const;
  RankTest rank_test(Ref condition, int depth) const;
  RankTest comparison_rank_test(Ref comparison) const;
  RankTest presence_test(Ref value) const;
  bool absence_tells(Ref value, int depth) const;
  RankTest member_test(Ref at, int depth) const;
  RankTest guarded_by_rank(Ref node, int depth) const;
  RankTest callers_rank_test(FunctionRef function, int depth) const;
  RankTest find_callers_rank_test(FunctionRef function, int depth) const;
  RankTest handed_on_rank_test(FunctionRef function, int depth) const;  // main_runners.cpp
  const std::vector<CallRef>& possible_call_sites(FunctionRef function) const;
  const std::vector<Ref>& values_named(std::string_view name) const;
  std::vector<Ref> values_of(std::string_view name, const Module& home, NodeId definition,
                             bool is_method) const;
  bool before_ranks(Ref node, int depth) const;
  bool runs_before(Ref first, Ref second, int depth) const;
  unsigned roles(Ref expression, int depth) const;
  unsigned source_roles(const Source& source, int depth) const;
  bool negation_tells(Ref condition) const;
  bool conjuncts_tell(Ref conjunction) const;
  bool rank_zero_decorated(FunctionRef function) const;
  bool finds_attribute_given(std::string_view name) const;
  bool finds_field(std::string_view name) const;

  ProgramInput input_;
  std::array<std::vector<CallRef>, 128> by_api_;
  mutable ByText<std::vector<CallRef>> by_name_;  // of the names asked for
  std::deque<Call> made_by_other_names_;
  std::unordered_map<const Call*, const Call*> kinds_;  // the same call as one of the library's
  std::vector<FunctionRef> functions_;
  std::unordered_map<std::string_view, std::vector<FunctionRef>> functions_by_name_;
  std::vector<Wrap> wraps_;
  std::map<Ref, std::size_t> wraps_by_call_;
  std::vector<TrainingLoop> training_loops_;
  mutable std::unordered_map<const Function*, std::vector<CallRef>> call_sites_;
  mutable NameTables tables_;
  mutable std::optional<ByText<std::vector<CallRef>>> options_;
  mutable ByText<bool> given_;  // attributes, by name
  mutable ByText<bool> fields_;
  mutable ByText<bool> imported_;  // packages
  mutable std::unordered_map<std::pair<Ref, bool>, std::vector<Source>, QuestionHash> resolved_;
  mutable int resolving_ = 0;
  // Answers given while the call sites of a function are looked for may need those themselves: once
  // one was, what is found until the end of the search is not remembered.
  struct HalfKnown {
    // Of functions that all call each other, later searches find hardly anything new.
    static constexpr int kForgets = 64;
    std::set<const Function*> searches;  // not ended yet
    bool is_cut = false;                 // one of them was asked for meanwhile
    int forgets = 0;                     // so far; above the bound what is found stays
    std::vector<std::pair<Ref, bool>> values;
    std::vector<const Function*> sites;
    // Forgotten, and perhaps still being read.
    std::vector<decltype(resolved_)::node_type> old_values;
    std::vector<decltype(call_sites_)::node_type> old_sites;
  };
  mutable HalfKnown half_known_;
  mutable std::unordered_map<const Call*, FunctionRef> callees_;
  mutable std::unordered_map<Ref, RankTest, RefHash> tested_;  // whatever holds around them
  mutable std::unordered_map<Ref, RankTest, RefHash> presence_;
  mutable int testing_presence_ = 0;
  mutable std::map<std::tuple<const Function*, int, int>, RankTest> callers_tested_;
  mutable std::unordered_map<const Function*, std::vector<CallRef>> possible_call_sites_;
  mutable std::unordered_map<const Class*, std::vector<ClassRef>> lineages_;
  mutable std::unordered_map<const Class*, std::vector<ClassRef>> derived_;
  mutable bool derived_known_ = false;
  mutable std::optional<std::vector<ForwardCall>> forward_calls_;
  // By the name they are, which is that of a function or class.
  mutable std::unordered_map<std::string_view, std::vector<Ref>> values_;
  std::unordered_map<const Class*, std::vector<CallRef>> picks_;  // calls, by classes they may make
  std::set<std::string_view> accelerator_names_;  // acc for self.acc = Accelerator()
  bool another_engine_ = false;
  bool framework_distributes_ = false;
  bool has_ddp_ = false;
  bool has_data_parallel_ = false;
};

// self.work for `work` in it, where handed_on() names a method by its last part; else the place.
Ref whole_value(Ref place);

}  // namespace bench::diagnose
