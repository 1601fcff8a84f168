// Which conditions test the rank: comparisons of it, flags and helpers that hold its outcome.
#include "diagnose/launch/launch_line.hpp"
#include "diagnose/model/one_process.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/model/role_names.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 6;
constexpr int kPresenceNesting = 4;  // values that are there where another value is

bool is_nothing(Ref value) {
  return value.kind() == Kind::none_literal || value.kind() == Kind::false_literal;
}

// 0 for "0" too: os.environ["RANK"] == "0".
Value number_in(Value value) {
  if (!value.is_string()) return value;
  const auto number = to_integer(value.string);
  if (!number) return value;
  value.type = Value::Type::integer;
  value.integer = *number;
  return value;
}

RankTest flip(RankTest test) {
  if (test == RankTest::none) return test;
  return test == RankTest::main_only ? RankTest::not_main : RankTest::main_only;
}

// `if is_main_process:` without the call is true on every rank.
bool is_function(const Program& program, Ref name) {
  const auto& sources = program.sources(name);
  return std::any_of(sources.begin(), sources.end(),
                     [](const Source& source) { return source.ref.kind() == Kind::function; });
}

// An object keeps a value by this name: self.is_main = rank == 0, perhaps instead of a method.
bool is_kept_value(const Program& program, std::string_view name) {
  return !program.attribute_defs(name).empty();
}

// The same for `if self.is_main:` of a method that is no property, nor made one by a decorator of
// another name.
bool is_method(const Program& program, Ref member) {
  const Ref object = member.child(Field::object);
  if (!program.qualified(member).empty()) return is_function(program, member);  // of a file
  const ClassRef owner =
      object.text() == "self" ? program.enclosing_class(member) : program.class_of(object);
  const FunctionRef method = program.method(owner, member.child(Field::attribute).text());
  if (!method || is_kept_value(program, member.child(Field::attribute).text())) return false;
  const SyntaxTree& tree = method.module->tree();
  return tree[tree[method.function->node].parent].kind != Kind::decorated;
}

// Functions of a file that is not there: the program calls the same name elsewhere, or has it from
// the file beside helpers of torchvision's training scripts, where it is a function.
bool is_imported_function(const Program& program, Ref name) {
  const std::string path = name.module->qualified(name.node);
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  const auto& sources = program.sources(name);
  if (std::any_of(sources.begin(), sources.end(), [](const Source& source) {
        return source.how != Source::How::unknown && source.ref.kind() != Kind::identifier &&
               source.ref.kind() != Kind::attribute;
      }))
    return false;
  const auto calls = program.calls_named(last_word(name));
  if (std::any_of(calls.begin(), calls.end(),
                  [&](const CallRef& call) { return call.call->path == path; }))
    return true;
  if (path.substr(dot + 1) != "is_main_process") return false;
  for (const std::string_view helper : {"init_distributed_mode", "setup_for_distributed",
                                        "save_on_master", "is_dist_avail_and_initialized"})
    if (name.module->import_path(helper) == path.substr(0, dot + 1) + std::string(helper))
      return true;
  return false;
}

// rank = 0, once and under no condition: a number by that name, the same in every process. The
// default of a parameter is none: callers give it.
bool is_written_out(const Program& program, Ref name) {
  if (name.kind() != Kind::identifier) return false;
  const Module& module = *name.module;
  const auto& defs = module.defs_of(name.text(), false);
  if (defs.size() != 1 || module.defs()[defs.front()].kind != DefKind::assign) return false;
  const Ref value{&module, module.defs()[defs.front()].value};
  const FunctionRef function = program.enclosing_function(name);
  return function && value.kind() == Kind::integer &&
         program.enclosing_function(value) == function && program.guards(value).empty();
}

// A number in every run, and no None that says that the job is not distributed: what the process
// group says, or mp.spawn.
bool is_surely_a_rank(const Program& program, Ref name) {
  if (program.is_spawn_rank(name)) return true;
  const auto sources = program.sources(name);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    if (source.how != Source::How::value) return false;
    const CallRef asked = program.as_call(source.ref);
    if (!asked) return false;  // os.environ["RANK"] is "0", and true
    const Api api = asked.call->api;
    return (api == Api::get_rank && !asked.argument(0, "group")) || api == Api::hvd_rank ||
           api == Api::hvd_local_rank ||
           (asked.call->name == "int" && program.is_rank(source.ref) &&
            !program.environment_name(source.ref).empty());
  });
}

// rank == world_size - 1
bool is_last_rank(const Program& program, Ref number) {
  return number.kind() == Kind::binary && number.module->tree()[number.node].op == Op::subtract &&
         program.is_world_size(number.child(Field::left)) &&
         program.integer(number.child(Field::right)) == 1;
}

// args.save_model, cfg.save: a setting, and none that is called as a test of the rank.
bool is_plain_setting(const Source& source) {
  const Ref setting = source.ref;
  if (is_main_name(last_word(setting))) return false;
  if (source.how == Source::How::argument) return true;
  if (source.how != Source::How::unknown || setting.kind() != Kind::attribute) return false;
  const std::string holder = lowered(setting.child(Field::object).text());
  for (const std::string_view word : {"arg", "opt", "cfg", "conf", "setting", "param"})
    if (holder.find(word) != std::string::npos) return true;
  return false;
}

bool is_truth(Ref value) {
  return value.kind() == Kind::true_literal || value.kind() == Kind::false_literal;
}

// force, or not force, of def should_save(step, force=False).
bool is_parameter(const Program& program, Ref condition) {
  if (condition.kind() == Kind::not_expression) condition = condition.child(Field::argument);
  const FunctionRef function = program.enclosing_function(condition);
  if (!function || condition.kind() != Kind::identifier) return false;
  const auto& parameters = function.function->parameters;
  return std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
    return parameter.name == condition.text();
  });
}

// A rank may be part of it: one is, a name says so, or it asks a function, or whether there is
// something that only one rank may have. A question of its words: what they hold may ask for the
// value around which the condition stands.
bool may_speak_of_rank(const Program& program, Ref condition) {
  const SyntaxTree& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id)
    if (tree[id].kind == Kind::call || tree[id].kind == Kind::none_literal ||
        (tree[id].kind == Kind::identifier && is_main_name(tree.text(id))))
      return true;
  return (condition.kind() != Kind::comparison && !is_parameter(program, condition)) ||
         program.comes_from_rank(condition);
}

// return False, and flag = False, in a function of this program, where no test of the rank stands
// around it. The default of a parameter is none: callers give it.
bool is_given_to_all(const Program& program, Ref value) {
  const Kind around = value.module->tree()[value.module->tree()[value.node].parent].kind;
  if (!is_truth(value) || !program.enclosing_function(value) ||
      (around != Kind::return_statement && around != Kind::assignment))
    return false;
  const auto guards = program.guards(value);
  return std::none_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return may_speak_of_rank(program, guard.condition);
  });
}

// should_log = step % interval == 0 or step == last: what it compares is in sight, to the last
// operand.
bool is_all_comparisons(const Program& program, Ref at, int depth = 0) {
  if (depth > kDepth) return false;
  switch (at.kind()) {
    case Kind::comparison:
      return true;
    case Kind::boolean:
      return is_all_comparisons(program, at.child(Field::left), depth + 1) &&
             is_all_comparisons(program, at.child(Field::right), depth + 1);
    case Kind::not_expression:
      return is_all_comparisons(program, at.child(Field::argument), depth + 1);
    case Kind::call:
    case Kind::identifier:
    case Kind::attribute: {
      const auto& sources = program.sources(at);
      return !sources.empty() &&
             std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
               if ((depth > 0 || source.ref != at) && is_plain_setting(source)) return true;
               return source.how == Source::How::value && source.ref != at &&
                      (is_given_to_all(program, source.ref) ||
                       is_all_comparisons(program, source.ref, depth + 1));
             });
    }
    default:
      return false;
  }
}

// A name of logging or saving may mean the rank that does it, or the steps at which all ranks do:
// where its comparisons are in sight they tell, and not the name. TrainerControl of Hugging Face
// speaks of steps, its arguments of ranks.
bool is_told_by_value(const Program& program, Ref at, std::string_view name) {
  const std::string plain = lowered(name);
  const bool of_steps = plain.find("should_log") != std::string::npos ||
                        plain.find("should_save") != std::string::npos || plain == "is_log";
  return of_steps &&
         (at.text().find("control.") != std::string_view::npos || is_all_comparisons(program, at));
}

}  // namespace

// root if rank == 0 else None
bool is_there_on_main_rank(const Program& program, Ref given) {
  if (given.kind() != Kind::conditional) return false;
  const SyntaxTree& tree = given.module->tree();
  return is_nothing(given.with(tree.child_at(given.node, 2))) &&
         !is_nothing(given.with(tree.child_at(given.node, 0))) &&
         program.rank_test(given.with(tree.child_at(given.node, 1))) == RankTest::main_only;
}

// The function gives its parameter another value somewhere: state = states[0] after a broadcast,
// root = root or "runs".
bool is_given_again(FunctionRef function, std::string_view parameter) {
  const Module& module = *function.module;
  const auto& defs = module.defs_of(parameter, false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Def& def = module.defs()[index];
    return def.kind != DefKind::parameter &&
           module.tree().contains(function.function->node, def.target);
  });
}

bool is_static(FunctionRef function) {
  const SyntaxTree& tree = function.module->tree();
  const NodeId around = tree[function.function->node].parent;
  if (around == kNoNode || tree[around].kind != Kind::decorated) return false;
  for (NodeId at = tree[around].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::decorator &&
        tree.text(at).find("staticmethod") != std::string_view::npos)
      return true;
  return false;
}

// Log(root if rank == 0 else None), in every call of what the parameter belongs to.
bool is_given_to_main_rank(const Program& program, Ref value) {
  const FunctionRef function = program.enclosing_function(value);
  if (!function || !is_parameter(program, value) || is_given_again(function, value.text()))
    return false;
  const auto& parameters = function.function->parameters;
  const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const auto& each) { return each.name == value.text(); });
  const auto index = static_cast<std::size_t>(parameter - parameters.begin());
  const std::size_t first =
      function.function->owner_class != kNoNode && !is_static(function) ? 1 : 0;
  const auto& sites = program.call_sites(function);
  return parameter != parameters.end() && index >= first && !sites.empty() &&
         std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
           return is_there_on_main_rank(program, site.argument(index - first, parameter->name));
         });
}

// writer = SummaryWriter() if rank == 0 else None: on other ranks there is nothing.
RankTest Program::presence_test(Ref value) const {
  const auto known = presence_.find(value);
  if (known != presence_.end()) return known->second;
  if (testing_presence_ >= kPresenceNesting) return RankTest::none;
  presence_[value] = RankTest::none;  // what asks again meanwhile learns nothing
  ++testing_presence_;
  bool somewhere = false;
  bool elsewhere_nothing = false;
  bool only_main = true;
  for (const Source& source : sources(value)) {
    if (source.how == Source::How::value && is_nothing(source.ref)) {
      // Where one rank alone runs all of it, its own None says nothing about the others.
      if (guarded_by_rank(source.ref) != RankTest::main_only) elsewhere_nothing = true;
      continue;
    }
    // first = rank == 0 in a run of several processes, and True in one of a single process.
    if (source.how == Source::How::value && source.ref.kind() == Kind::true_literal &&
        is_of_one_process(*this, source.ref))
      continue;
    only_main = source.how == Source::How::value && source.ref != value &&
                guarded_by_rank(source.ref) == RankTest::main_only;
    if (!only_main) break;
    somewhere = true;
    // A function that returns under the test alone gives None elsewhere; one that is called under
    // it gives whatever it likes.
    const Module& module = *source.ref.module;
    const bool returned = module[module[source.ref.node].parent].kind == Kind::return_statement;
    if (returned && enclosing_function(source.ref) != enclosing_function(value) &&
        rank_guard(source.ref))
      elsewhere_nothing = true;
  }
  const bool tells = (somewhere && only_main && elsewhere_nothing) ||
                     (value.kind() == Kind::identifier && is_given_to_main_rank(*this, value));
  --testing_presence_;
  return presence_[value] = tells ? RankTest::main_only : RankTest::none;
}

// def run(loader, is_eval=False), which all ranks call, and one of them again with True: where it
// does not hold there is every rank, so that `not is_eval` says nothing.
bool Program::absence_tells(Ref value, int depth) const {
  const FunctionRef function = enclosing_function(value);
  if (value.kind() != Kind::identifier || !function || depth > kDepth) return true;
  const auto& parameters = function.function->parameters;
  const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const auto& each) { return each.name == value.text(); });
  if (parameter == parameters.end()) return true;
  const auto& sites = call_sites(function);
  const std::size_t first = function.function->owner_class != kNoNode ? 1 : 0;
  const auto index = static_cast<std::size_t>(parameter - parameters.begin());
  if (index < first) return true;
  return std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    Ref given = site.argument(index - first, parameter->name);
    if (!given && !site.has_splat()) given = {function.module, parameter->default_value};
    if (is_nothing(given)) return sites.size() < 2 || guarded_by_rank(site.ref()) != RankTest::none;
    return !given || absence_tells(given, depth + 1);
  });
}

RankTest Program::comparison_rank_test(Ref at) const {
  const SyntaxTree& tree = at.module->tree();
  if (tree.child_count(at.node) != 2) return RankTest::none;
  Ref left = at.with(tree.child_at(at.node, 0));
  Ref right = at.with(tree.child_at(at.node, 1));
  Op op = tree[at.node].op;
  if (right.kind() == Kind::none_literal) {
    const bool absent = op == Op::is || op == Op::equal;
    const RankTest present = presence_test(left);
    if (!absent || present == RankTest::none) return present;
    return absence_tells(left, 0) ? flip(present) : RankTest::none;
  }
  const auto ranked = [&](Ref expression) {
    if (is_written_out(*this, expression)) return false;
    if ((roles(expression, 0) & (kRank | kLocalRank)) != 0) return true;
    // Of a group: one rank of each, whatever the others are for.
    if (comes_from(expression, Api::get_rank)) return true;
    // With one device for each rank of a node, as good or bad as the local rank.
    if (comes_from(expression, Api::current_device)) return true;
    return expression.kind() == Kind::binary && tree[expression.node].op == Op::modulo &&
           (roles(expression.child(Field::left), 0) & (kRank | kLocalRank)) != 0;
  };
  if (!ranked(left)) {
    if (!ranked(right) || (op != Op::equal && op != Op::not_equal)) return RankTest::none;
    std::swap(left, right);
  }
  const Value value = number_in(evaluate(right));
  if (op == Op::in || op == Op::not_in) {
    if (value.type != Value::Type::list) return RankTest::none;
    const bool zero = std::any_of(value.items.begin(), value.items.end(), [](const Value& item) {
      return item.is_integer() && item.integer == 0;
    });
    if (!zero) return RankTest::none;
    return op == Op::in ? RankTest::main_only : RankTest::not_main;
  }
  if (!value.is_integer()) {
    if (is_last_rank(*this, right) && (op == Op::equal || op == Op::not_equal))
      return op == Op::equal ? RankTest::main_only : RankTest::not_main;
    // rank == args.master_rank and the like
    const std::string name = lowered(last_word(right));
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

// context.leader and context.leads() of an object that cannot be followed: a test where all members
// of the program that have this name are the same one.
RankTest Program::member_test(Ref at, int depth) const {
  const bool is_call = at.kind() == Kind::call;
  const Ref member = is_call ? at.child(Field::function) : at;
  if (member.kind() != Kind::attribute || !member.module->qualified(member.node).empty())
    return RankTest::none;
  const std::string_view name = member.child(Field::attribute).text();
  std::optional<RankTest> agreed;
  const auto hear = [&](RankTest test) {
    agreed = !agreed || *agreed == test ? test : RankTest::none;
  };
  if (const auto named = functions_by_name_.find(name); named != functions_by_name_.end())
    for (const FunctionRef& function : named->second) {
      if (function.function->owner_class == kNoNode || is_property(function) == is_call)
        return RankTest::none;
      RankTest said = RankTest::none;
      for (const NodeId value : function.function->returns)
        if (said == RankTest::none) said = rank_test({function.module, value}, depth + 1);
      hear(said);
      if (*agreed == RankTest::none) return RankTest::none;
    }
  constexpr int kMostAssignments = 8;
  int assignments = 0;
  for (const auto& [module, def, object] : attribute_defs(name)) {
    if (is_call || ++assignments > kMostAssignments) return RankTest::none;
    if (def->kind == DefKind::assign && !is_nothing({module, def->value}))
      hear(rank_test({module, def->value}, depth + 1));
    if (agreed == RankTest::none) return RankTest::none;
  }
  return agreed.value_or(RankTest::none);
}

// One condition stands around many lines, and all rules ask. What is found while a value is being
// looked for, or its presence tested, may know less.
RankTest Program::rank_test(Ref condition) const {
  if (resolving_ > 0 || testing_presence_ > 0) return rank_test(condition, 0);
  if (const auto known = tested_.find(condition); known != tested_.end()) return known->second;
  const RankTest test = rank_test(condition, 0);
  tested_.emplace(condition, test);
  return test;
}

RankTest Program::rank_test(Ref at, int depth) const {
  if (!at || depth > kDepth) return RankTest::none;
  switch (at.kind()) {
    case Kind::comparison:
      return comparison_rank_test(at);
    case Kind::not_expression: {
      const Ref inner = at.child(Field::argument);
      if ((roles(inner, 0) & (kRank | kLocalRank)) != 0) return RankTest::main_only;  // not rank
      const RankTest test = rank_test(inner, depth + 1);
      return test == RankTest::none || absence_tells(inner, 0) ? flip(test) : RankTest::none;
    }
    case Kind::conditional: {  // is_local_main if on_local_disk else is_main
      const RankTest one = rank_test(at.with(at.module->tree().child_at(at.node, 0)), depth + 1);
      const RankTest other = rank_test(at.with(at.module->tree().child_at(at.node, 2)), depth + 1);
      return one == other ? one : RankTest::none;
    }
    case Kind::binary:  // (loss < best) & (rank == 0)
      if (at.module->tree()[at.node].op != Op::bit_and) return RankTest::none;
      [[fallthrough]];
    case Kind::boolean: {
      const RankTest left = rank_test(at.child(Field::left), depth + 1);
      return left != RankTest::none ? left : rank_test(at.child(Field::right), depth + 1);
    }
    case Kind::call: {
      const CallRef call = as_call(at);
      if (call.call->name == "getattr") return RankTest::none;
      if (call.call->name == "bool") return rank_test(call.positional(0), depth + 1);
      if (is_main_name(call.call->name) && !is_told_by_value(*this, at, call.call->name))
        return RankTest::main_only;
      break;
    }
    case Kind::identifier:
    case Kind::attribute:
      if (at.kind() == Kind::identifier ? is_function(*this, at) : is_method(*this, at))
        return RankTest::none;
      if (is_surely_a_rank(*this, at)) return RankTest::not_main;  // if rank: return
      if (is_main_name(last_word(at)) && is_imported_function(*this, at)) return RankTest::none;
      if (is_main_name(last_word(at)) && !is_told_by_value(*this, at, last_word(at)))
        return RankTest::main_only;
      break;
    case Kind::subscript:
      // A key is a setting like another, but for these; what it holds may be a rank's test.
      for (const char* each : {"is_main", "is_master", "is_main_process", "is_rank_zero"})
        if (last_word(at) == each && !is_told_by_value(*this, at, each)) return RankTest::main_only;
      break;
    default:
      return RankTest::none;
  }
  bool is_followed = false;
  for (const Source& source : sources(at)) {
    if (source.how != Source::How::value || source.ref == at) continue;
    is_followed = true;
    if (const RankTest test = rank_test(source.ref, depth + 1); test != RankTest::none) return test;
  }
  if (!is_followed)
    if (const RankTest test = member_test(at, depth); test != RankTest::none) return test;
  return at.kind() == Kind::call ? RankTest::none : presence_test(at);
}

}  // namespace bench::diagnose
