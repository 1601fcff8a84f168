#include "scenarios/pitfalls/ranks/group_of_some_runs.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::SyntaxTree;

namespace {

constexpr int kCalls = 5;  // callers followed upwards

constexpr std::array<std::string_view, 6> kAgainstOne = {"== 1", "<= 1", "> 1",
                                                         "!= 1", "< 2",  ">= 2"};

bool has_any(std::string_view text, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return facts::contains(text, word); });
}

// rank == 0, where the rank of a run without a launcher is -1.
bool may_be_minus_one(const Program& program, Ref condition) {
  if (facts::contains(condition.text(), "-1") || facts::contains(condition.text(), "- 1"))
    return true;
  if (condition.kind() != Kind::comparison) {  // is_main = rank == 0, and is_main() that returns it
    const auto& tests = program.sources(condition);
    return std::any_of(tests.begin(), tests.end(), [&](const auto& test) {
      return test.ref.kind() == Kind::comparison && may_be_minus_one(program, test.ref);
    });
  }
  const auto& sources = program.sources(condition.child(Field::left));
  return std::any_of(sources.begin(), sources.end(),
                     [](const auto& source) { return facts::contains(source.ref.text(), "-1"); });
}

// if "RANK" in os.environ, if args.distributed, if num_gpus > 1: it may be the test of the group by
// another name. The epoch, an option of the model or the first rank are none.
bool may_be_about_ranks(const Program& program, const Guard& guard) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "dist",   "world", "rank",   "ddp",    "gpu",    "initialized", "multi",   "parallel",
      "launch", "slurm", "device", "worker", "nprocs", "environ",     "backend", "sampler"};
  const std::string text = facts::lowered(guard.condition.text());
  const Kind kind = guard.condition.kind();
  // The else of `if args.distributed`: runs without a group are the ones that come by.
  if (!guard.holds && (kind == Kind::identifier || kind == Kind::attribute) &&
      program.is_distributed_flag(guard.condition))
    return false;
  // if world_size > 1 and rank == 0: either part may be.
  if (guard.holds && kind == Kind::boolean &&
      guard.condition.module->tree()[guard.condition.node].op == diagnose::Op::logical_and)
    return may_be_about_ranks(program, {guard.condition.child(Field::left), true}) ||
           may_be_about_ranks(program, {guard.condition.child(Field::right), true});
  // if gpus > 1 and not args.distributed: return -- not all runs without a group leave there.
  if (!guard.holds && kind == Kind::boolean && facts::contains(text, " and ")) return false;
  if (program.rank_test(guard.condition) == diagnose::RankTest::main_only && guard.holds)
    return says_any(text_behind(program, guard.condition), {"local"}) ||
           may_be_minus_one(program, guard.condition);
  // if n == 1: return value -- the world size by a name of its own.
  if (has_any(text, kAgainstOne) || has_any(text, kWords)) return true;
  // reduce(value, world_size == 1) of def reduce(value, single)
  const auto& sources = program.sources(guard.condition);
  return std::any_of(sources.begin(), sources.end(), [](const auto& source) {
    const std::string given = facts::lowered(source.ref.text());
    return has_any(given, kAgainstOne) || has_any(given, kWords);
  });
}

// rank, world_size = 0, 1 and its kin: what a run of one process is given.
bool sets_up_one_process(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kLeaves = {"raise", "exit(", "assert 0"};
  static constexpr std::array<std::string_view, 11> kSettings = {
      "world_size = 1", "world_size=1", "rank = 0",          "rank=0",
      "rank = -1",      "return 0, 1",  "distributed=False", "distributed = False",
      "return 0, 0, 1", "return (0, 1", "return (0, 0, 1"};
  return !has_any(text, kLeaves) && has_any(text, kSettings);
}

// The else branch of the test, or what follows it in the function where the branch returns.
bool has_branch_for_one(Ref condition) {
  const auto& tree = condition.module->tree();
  NodeId test = condition.node;
  while (test != kNoNode && tree[test].kind != Kind::if_statement) test = tree[test].parent;
  if (test == kNoNode) return false;
  for (NodeId at = tree[test].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::else_clause) return sets_up_one_process(tree.text(at));
  const NodeId body = tree.child(test, Field::consequence);
  if (body == kNoNode || !facts::contains(tree.text(body), "return")) return false;
  std::string rest;
  for (NodeId at = tree[test].next_sibling; at != kNoNode; at = tree[at].next_sibling)
    rest += std::string(tree.text(at)) + "\n";
  return sets_up_one_process(rest);
}

// world_size > 1, torch.cuda.device_count() >= 2: the author thinks of the run with one.
bool compares_with_one(Ref condition) {
  static constexpr std::array<std::string_view, 7> kCounts = {
      "world_size", "num_gpu", "n_gpu", "ngpu", "device_count()", "nproc", "nworkers"};
  const std::string text = facts::lowered(condition.text());
  const bool against_one = facts::contains(text, "> 1") || facts::contains(text, ">1") ||
                           facts::contains(text, "!= 1") || facts::contains(text, ">= 2");
  return against_one && has_any(text, kCounts) && !facts::contains(text, " and ");
}

// args.distributed = int(os.environ["WORLD_SIZE"]) > 1
bool is_made_of_a_count(const Program& program, Ref flag) {
  if (flag.kind() != Kind::identifier && flag.kind() != Kind::attribute) return false;
  const auto& sources = program.sources(flag);
  if (std::any_of(sources.begin(), sources.end(),
                  [](const auto& source) { return compares_with_one(source.ref); }))
    return true;
  // FLAGS.distributed, of an object that cannot be followed
  const Ref name = flag.child(Field::attribute);
  const auto& defs = flag.module->defs_of(name.text(), true);
  return name && std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
           const diagnose::Def& def = flag.module->defs()[index];
           return flag.module->text(def.target) == flag.text() && def.value != kNoNode &&
                  compares_with_one(flag.with(def.value));
         });
}

// if flag: ... else: model.cuda() in the function: the program means to run without the flag too.
bool has_model_for_one(const Program& program, Ref flag) {
  if (!program.is_distributed_flag(flag) || program.is_literal_true(flag)) return false;
  const auto& module = *flag.module;
  const auto& tree = module.tree();
  const auto& tests = module.nodes_of(Kind::if_statement);
  return std::any_of(tests.begin(), tests.end(), [&](NodeId test) {
    const Ref statement = flag.with(test);
    if (statement.child(Field::condition).text() != flag.text()) return false;
    if (program.enclosing_function(statement) != program.enclosing_function(flag) &&
        !flag.text().starts_with("self."))
      return false;
    for (auto at = tree[test].first_child; at != kNoNode; at = tree[at].next_sibling)
      if (tree[at].kind == Kind::else_clause)
        for (const std::string_view use : {"DataParallel(", ".cuda(", ".to("})
          if (facts::contains(tree.text(at), use)) return true;
    return false;
  });
}

// if args.distributed: of an option that is off by default, or is there to turn it off.
bool is_flag_off_for_some(const Program& program, Ref condition) {
  if (condition.kind() == Kind::call || !program.is_distributed_flag(condition)) return false;
  const auto& sources = program.sources(condition);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::argument) return false;
  const CallRef option = program.as_call(sources.front().ref);
  return facts::contains(sources.front().ref.text(), "store_true") ||
         facts::contains(sources.front().ref.text(), "store_false") ||
         (option && program.is_literal_false(option.keyword("default")));
}

}  // namespace

bool asks_for_launcher(const Guard& guard) {
  const std::string text = facts::lowered(guard.condition.text());
  if (!facts::contains(text, "local_rank") || facts::contains(text, " and ")) return false;
  if (!guard.holds) return facts::contains(text, "== -1");
  return facts::contains(text, "!= -1") || facts::contains(text, "> -1") ||
         facts::contains(text, ">= 0");
}

namespace {

// if args.several: mp.spawn(train, ...) else: train(0, 1, args), where train() joins under the same
// test: it runs without a group as well.
bool runs_in_other_branch(const Program& program, const Guard& guard) {
  const FunctionRef function = program.enclosing_function(guard.condition);
  if (!function || guard.condition.kind() == Kind::call) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const auto guards = program.guards(site.ref());
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& other) {
      return !other.holds && other.condition.text() == guard.condition.text();
    });
  });
}

bool is_meant_to_run_without(const Program& program, const Guard& guard) {
  if (asks_for_launcher(guard)) return true;
  if (!guard.holds || facts::contains(guard.condition.text(), "is_initialized")) return false;
  return has_branch_for_one(guard.condition) || compares_with_one(guard.condition) ||
         has_model_for_one(program, guard.condition) ||
         is_made_of_a_count(program, guard.condition) || runs_in_other_branch(program, guard) ||
         is_flag_off_for_some(program, guard.condition);
}

// What else may join a group.
bool others_may_join(const Program& program) {
  for (const std::string_view package : {"deepspeed", "horovod", "smdistributed"})
    if (program.imports(package)) return true;
  return program.mentions("Fabric") || program.mentions("init_device_mesh");
}

// utils.ddp_setup(rank, world_size), setup_distributed(): helpers out of sight that join a group.
bool is_named_as_join(const Program& program, const CallRef& call) {
  if (call.call->api != diagnose::Api::none) return false;
  const std::string_view written = call.call->name;
  if (!facts::contains(written, "etup") && !facts::contains(written, "nit")) return false;
  if (written == "setup_for_distributed") return false;  // takes print() from ranks
  const std::string name = facts::lowered(written);
  if (facts::contains(name, "logg")) return false;  // setup_ddp_logging
  const bool joins = facts::contains(name, "ddp") || facts::contains(name, "dist") ||
                     facts::contains(name, "process_group");
  return joins && !program.callee(call);
}

// The only call that joins a group; empty where there is none or another one.
CallRef only_join(const Program& program) {
  const auto& joins = program.calls(diagnose::Api::init_process_group);
  CallRef out = joins.size() == 1 ? joins.front() : CallRef{};
  if (joins.size() > 1) return {};
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls())
      if (is_named_as_join(program, {module, &made})) {
        if (out) return {};
        out = {module, &made};
      }
  return out;
}

// assert world_size > 1, assert "RANK" in os.environ: there is no run without.
bool demands_ranks(const Program& program) {
  static constexpr std::array<std::string_view, 6> kRanks = {"world", "gpu",  "rank",
                                                             "nproc", "dist", "num_proc"};
  for (const diagnose::Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::assert_statement)) {
      const std::string text = facts::lowered(module->tree().text(node));
      if (has_any(text, kRanks) && (has_any(text, kAgainstOne) || facts::contains(text, "environ")))
        return true;
    }
  return false;
}

// The last statement of a block raises, returns or ends the process.
bool ends_by_leaving(const diagnose::Module& module, NodeId block) {
  const SyntaxTree& tree = module.tree();
  NodeId last = block == kNoNode ? kNoNode : tree[block].first_child;
  while (last != kNoNode && tree[last].next_sibling != kNoNode) last = tree[last].next_sibling;
  if (last == kNoNode) return false;
  const Kind kind = tree[last].kind;
  if (kind == Kind::with_statement || kind == Kind::try_statement)
    return ends_by_leaving(module, tree.child(last, Field::body));
  return kind == Kind::raise_statement || kind == Kind::return_statement ||
         facts::ends_process({&module, last});
}

// if distributed: ... elif gpu is not None: ...; raise else: raise -- every branch but the first
// leaves, and there is an else.
bool all_others_leave(const diagnose::Module& module, NodeId test) {
  const SyntaxTree& tree = module.tree();
  bool has_else = false;
  for (NodeId at = tree[test].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Kind kind = tree[at].kind;
    if (kind != Kind::elif_clause && kind != Kind::else_clause) continue;
    const Field part = kind == Kind::elif_clause ? Field::consequence : Field::body;
    if (!ends_by_leaving(module, tree.child(at, part))) return false;
    has_else = has_else || kind == Kind::else_clause;
  }
  return has_else;
}

// if world_size > 1: join() else: run_alone(); return -- what stands below is for the others.
bool leaves_in_other_branch(Ref condition, Ref node) {
  const auto& tree = condition.module->tree();
  const NodeId test = tree.ancestor(condition.node, Kind::if_statement);
  if (node.module != condition.module || test == kNoNode || node.node < test) return false;
  for (NodeId at = tree[test].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::else_clause)
      return ends_by_leaving(*node.module, tree.child(at, Field::body));
  return false;
}

// Above the node, in its block or one around it, the same test lets only runs with a group by:
// `if args.distributed: model = DDP(model) else: raise NotImplementedError(...)`.
bool others_have_left_above(const JoinTest& test, Ref node) {
  if (test.attempt || !test.holds) return false;
  const auto& tree = node.module->tree();
  for (NodeId at = node.node; at != 0 && at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::function || tree[at].kind == Kind::class_definition) return false;
    const NodeId block = tree[at].parent;
    if (block == kNoNode || (tree[block].kind != Kind::block && tree[block].kind != Kind::module))
      continue;
    for (NodeId before = tree[block].first_child; before != at; before = tree[before].next_sibling)
      if (tree[before].kind == Kind::if_statement &&
          tree.text(tree.child(before, Field::condition)) == test.condition.text() &&
          all_others_leave(*node.module, before))
        return true;
  }
  return false;
}

// A try whose handlers take what a missing group raises; `except KeyboardInterrupt` does not.
bool has_try(Ref node) {
  const auto& tree = node.module->tree();
  static constexpr std::array<std::string_view, 3> kTaken = {"Exception", "ValueError",
                                                             "RuntimeError"};
  for (NodeId at = tree.ancestor(node.node, Kind::try_statement); at != kNoNode;
       at = tree.ancestor(at, Kind::try_statement))
    for (NodeId each = tree[at].first_child; each != kNoNode; each = tree[each].next_sibling) {
      if (tree[each].kind != Kind::except_clause) continue;
      const std::string_view text = tree.text(each);
      const std::string_view header = text.substr(0, text.find(':'));
      if (header == "except" || has_any(header, kTaken)) return true;
    }
  return false;
}

// try: init_process_group(...) and except: world_size = 1
bool goes_on_as_one(Ref attempt) {
  const auto& tree = attempt.module->tree();
  for (NodeId at = tree[attempt.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::except_clause) return sets_up_one_process(tree.text(at));
  return false;
}

// if several and not distributed: below if distributed: join() -- there no group can be.
bool contradicts(const SyntaxTree& tree, NodeId condition, bool holds, const JoinTest& test,
                 int depth = 0) {
  constexpr int kDeepest = 64;
  if (condition == kNoNode || depth > kDeepest) return false;
  if (tree[condition].kind == Kind::not_expression)
    return contradicts(tree, tree.child(condition, Field::argument), !holds, test, depth + 1);
  if (tree[condition].kind == Kind::boolean) {
    if ((tree[condition].op == diagnose::Op::logical_and) != holds) return false;
    return contradicts(tree, tree.child(condition, Field::left), holds, test, depth + 1) ||
           contradicts(tree, tree.child(condition, Field::right), holds, test, depth + 1);
  }
  return holds != test.holds && tree.text(condition) == test.condition.text();
}

// The condition's own place is under the test that the join is under, and on its side of it.
bool agrees(const Guard& guard, const JoinTest& test) {
  return !test.attempt && guard.holds == test.holds &&
         guard.condition.text() == test.condition.text();
}

// utils.init_distributed_mode(args), which sets args.distributed for the runs that it joins, and
// the first test of that in a program that asks for it.
std::optional<JoinTest> test_of_what_it_sets(const Program& program, const CallRef& join) {
  if (join.call->name != "init_distributed_mode" || program.callee(join)) return std::nullopt;
  const Ref options = join.positional(0);
  if (!options || has_try(join.ref())) return std::nullopt;
  const std::string flag = std::string(options.text()) + ".distributed";
  for (const NodeId node : join.module->nodes_of(Kind::if_statement)) {
    const Ref condition = options.with(node).child(Field::condition);
    if (node > join.call->node && condition.text() == flag) return JoinTest{join, condition};
  }
  return std::nullopt;
}

// Follows callers; a function that was seen has had its answer, which was no.
class RunsWithout {
 public:
  RunsWithout(const Program& program, const JoinTest& test) : program_(program), test_(test) {}

  bool operator()(Ref node, int depth = 0) {
    if (depth > kCalls || has_try(node)) return false;
    const auto guards = program_.guards(node);
    if (!test_.attempt && std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
          return contradicts(guard.condition.module->tree(), guard.condition.node, guard.holds,
                             test_);
        }))
      return true;
    if (facts::exclusive(node, test_.join.ref()) || others_have_left_above(test_, node))
      return false;
    for (const Guard& guard : guards)
      if (agrees(guard, test_) || may_be_about_ranks(program_, guard)) return false;
    const FunctionRef function = program_.enclosing_function(node);
    if (!test_.attempt && function == program_.enclosing_function(test_.condition) &&
        leaves_in_other_branch(test_.condition, node))
      return false;
    if (!function) return true;
    if (!seen_.insert(function.function).second) return false;
    if (program_.is_spawned(function)) {
      const auto spawns = program_.calls(diagnose::Api::spawn);
      if (spawns.size() == 1 && (*this)(spawns.front().ref(), depth + 1)) return true;
    }
    const auto& sites = program_.call_sites(function);
    if (sites.empty() && may_be_called(function) && joins_in(function)) return true;
    return std::any_of(sites.begin(), sites.end(),
                       [&](const CallRef& site) { return (*this)(site.ref(), depth + 1); });
  }

 private:
  // What mp.spawn alone starts is called by nobody else; work = train_net is called by that name.
  bool may_be_called(const FunctionRef& function) const {
    if (!program_.is_spawned(function)) return true;
    const auto places = program_.handed_on(function);
    return std::any_of(places.begin(), places.end(), [](Ref place) {
      const auto& tree = place.module->tree();
      const NodeId around = tree[place.node].parent;
      return around != kNoNode && tree[around].kind == Kind::assignment;
    });
  }

  // The function that nothing here calls joins the group itself, by a helper perhaps: whoever calls
  // it does.
  bool joins_in(const FunctionRef& function) const {
    const FunctionRef helper = program_.enclosing_function(test_.join.ref());
    if (!helper || helper == function) return helper == function;
    const auto& sites = program_.call_sites(helper);
    return sites.size() == 1 && program_.enclosing_function(sites.front().ref()) == function;
  }

  const Program& program_;
  const JoinTest& test_;
  std::set<const diagnose::Function*> seen_;
};

}  // namespace

std::optional<JoinTest> test_of_joining(const Program& program) {
  const auto join = only_join(program);
  if (!join || others_may_join(program) || demands_ranks(program)) return std::nullopt;
  Ref at = join.ref();
  for (int depth = 0; depth <= kCalls; ++depth) {
    const auto guards = program.guards(at);
    if (has_try(at)) {
      const Ref attempt = at.with(at.module->tree().ancestor(at.node, Kind::try_statement));
      if (depth > 0 || !guards.empty() || !goes_on_as_one(attempt)) return std::nullopt;
      return JoinTest{join, attempt, true, true};
    }
    if (guards.size() > 1) return std::nullopt;
    if (guards.size() == 1 && !facts::contains(guards.front().condition.text(), "__name__")) {
      if (!is_meant_to_run_without(program, guards.front())) return std::nullopt;
      return JoinTest{join, guards.front().condition, guards.front().holds};
    }
    if (auto set = test_of_what_it_sets(program, join)) return set;
    const FunctionRef function = program.enclosing_function(at);
    if (!function || program.is_spawned(function)) return std::nullopt;
    const auto& sites = program.call_sites(function);
    if (sites.size() != 1) return std::nullopt;
    at = sites.front().ref();
  }
  return std::nullopt;
}

bool runs_without_group(const Program& program, const JoinTest& test, Ref call) {
  return facts::is_reachable(program, call) && RunsWithout(program, test)(call);
}

namespace {

// No option and no test stands between the script's start and the node. A function that was seen
// has had its answer, which was no.
bool runs_in_every_run(const Program& program, Ref node, std::set<const diagnose::Function*>& seen,
                       int depth) {
  const auto guards = program.guards(node);
  if (depth > kCalls || has_try(node) ||
      std::any_of(guards.begin(), guards.end(), [](const Guard& guard) {
        return !facts::contains(guard.condition.text(), "__name__");
      }))
    return false;
  const FunctionRef function = program.enclosing_function(node);
  if (!function || program.is_spawned(function)) return true;
  if (!seen.insert(function.function).second) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return runs_in_every_run(program, site.ref(), seen, depth + 1);
  });
}

}  // namespace

bool joins_in_every_run(const Program& program) {
  const auto joins = program.calls(diagnose::Api::init_process_group);
  return std::any_of(joins.begin(), joins.end(), [&](const CallRef& join) {
    std::set<const diagnose::Function*> seen;
    return runs_in_every_run(program, join.ref(), seen, 0);
  });
}

}  // namespace bench::pitfalls
