#include "diagnose/to_ddp/waits.hpp"

#include "diagnose/to_ddp/file_names.hpp"
#include "scenarios/pitfalls/files/unwaited_reads.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>

namespace bench::diagnose {
namespace {

constexpr int kCallers = 4;

// setattr(args, name, value), vars(args)[name] = value: an option may be anything by then.
bool may_set_options(const Program& program) {
  if (program.mentions("__dict__")) return true;
  const auto sets = [](const CallRef& call) {
    const auto& tree = call.module->tree();
    const Kind around = tree[tree[call.call->node].parent].kind;
    return call.call->name == "setattr" || around == Kind::subscript || around == Kind::attribute ||
           around == Kind::assignment;
  };
  for (const std::string_view name : {"setattr", "vars"})
    for (const CallRef& call : program.calls_named(name))
      if (!call.receiver() && sets(call)) return true;
  return false;
}

bool is_number(Kind kind) { return kind == Kind::integer || kind == Kind::floating; }

// 90, args.epochs + 1, EPOCHS: every rank counts as far.
bool is_count_for_all(const Program& program, Ref count) {
  if (is_number(count.kind())) return true;
  if (count.kind() == Kind::binary)
    return is_count_for_all(program, count.child(Field::left)) &&
           is_count_for_all(program, count.child(Field::right));
  if (count.kind() != Kind::identifier && count.kind() != Kind::attribute) return false;
  const auto& sources = program.sources(count);
  return !sources.empty() && !may_set_options(program) &&
         std::all_of(sources.begin(), sources.end(), [](const Source& source) {
           return source.how == Source::How::argument ||
                  (source.how == Source::How::value && is_number(source.ref.kind()));
         });
}

// for epoch in range(args.epochs), which nothing leaves and no round of which is cut short.
bool goes_round_alike(const Program& program, Ref loop) {
  const CallRef range = program.as_call(loop.child(Field::right));
  if (loop.kind() != Kind::for_statement || !range || range.call->name != "range") return false;
  for (std::size_t i = 0; const Ref count = range.positional(i); ++i)
    if (!is_count_for_all(program, count)) return false;
  for (const auto& nodes : {loop.module->nodes_of(Kind::continue_statement),
                            loop.module->nodes_of(Kind::break_statement)})
    for (const NodeId leave : nodes)
      if (program.innermost_loop(loop.with(leave)) == loop) return false;
  return true;
}

// What runs its parts by what it finds, late, or several times.
bool is_branch(const SyntaxTree& tree, NodeId at) {
  switch (tree[at].kind) {
    case Kind::lambda:
    case Kind::comprehension:
    case Kind::conditional:
    case Kind::boolean:
    case Kind::while_statement:
    case Kind::with_statement:
    case Kind::try_statement:
    case Kind::except_clause:
    case Kind::finally_clause:
    case Kind::yield_expression:
    case Kind::decorator:
    case Kind::parameters:
    case Kind::class_definition:
      return true;
    case Kind::block: {  // of a case: the tree has no match statement
      const Kind around = tree[tree[at].parent].kind;
      return around == Kind::block || around == Kind::module;
    }
    case Kind::else_clause:
      return tree[tree[at].parent].kind != Kind::if_statement;
    default:
      return false;
  }
}

bool are_same_for_all(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::all_of(guards.begin(), guards.end(),
                     [&](const Guard& guard) { return is_same_for_all(program, guard.condition); });
}

// return, sys.exit(): by what a rank finds, in a loop or under a test.
bool leaves_alone(const Program& program, Ref leave) {
  return program.innermost_loop(leave) || !are_same_for_all(program, leave);
}

// The call ends the process, or a function of the program that it runs may do so.
bool may_exit(const Program& program, const CallRef& call, int depth = 0) {
  const Ref exit = pitfalls::statement_of(call.ref());
  if (pitfalls::facts::ends_process(exit)) return depth > 0 || leaves_alone(program, exit);
  const FunctionRef callee = depth < kCallers ? program.callee(call) : FunctionRef{};
  if (!callee) return false;
  const auto calls = pitfalls::facts::calls_in({callee.module, callee.function->body});
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CallRef& each) { return may_exit(program, each, depth + 1); });
}

// The end of the outermost loop of the function around the node: what stands there below the node
// runs above it in the next round.
NodeId end_of_rounds(Ref node) {
  const SyntaxTree& tree = node.module->tree();
  NodeId end = node.node;
  for (NodeId at = tree[node.node].parent; at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::function) break;
    if (tree[at].kind == Kind::for_statement) end = tree[at].last;
  }
  return end;
}

// A rank may have left the function, or the script, before it comes to the node.
bool may_be_left_above(const Program& program, Ref node, const FunctionRef& function) {
  const Module& file = *node.module;
  const NodeId end = end_of_rounds(node);
  for (NodeId leave = function ? function.function->body : 0; leave < end; ++leave) {
    const Kind kind = file[leave].kind;
    const bool ends = (kind == Kind::return_statement && function) ||
                      (kind == Kind::raise_statement &&
                       file.text(leave).find("SystemExit") != std::string_view::npos);
    if (ends && program.enclosing_function(node.with(leave)) == function &&
        leaves_alone(program, node.with(leave)))
      return true;
  }
  return std::any_of(file.calls().begin(), file.calls().end(), [&](const Call& call) {
    const CallRef each{&file, &call};
    return call.node < end && call.node != node.node &&
           program.enclosing_function(each.ref()) == function && may_exit(program, each);
  });
}

// @retry runs the function as often as it likes.
bool is_run_by_decorator(const FunctionRef& function) {
  const auto& tree = function.module->tree();
  const NodeId around = tree[function.function->node].parent;
  if (around == kNoNode || tree[around].kind != Kind::decorated) return false;
  for (NodeId at = tree[around].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::decorator && !tree.text(at).ends_with("method") &&
        tree.text(at).find("no_grad") == std::string_view::npos)
      return true;
  return false;
}

// It is only called, and a call of it runs it to the end.
bool is_only_called(const Program& program, const FunctionRef& function) {
  if (!program.handed_on(function).empty() || is_run_by_decorator(function)) return false;
  const auto& tree = function.module->tree();
  for (NodeId at = function.function->body; at < tree[function.function->body].last; ++at)
    if (tree[at].kind == Kind::yield_expression) return false;
  return true;
}

// Every rank comes by the node as often as the others: it stands in straight code, from the
// script's own level down through calls that are nothing but calls.
bool is_come_by_by_all(const Program& program, Ref node, int depth) {
  const auto& tree = node.module->tree();
  const FunctionRef function = program.enclosing_function(node);
  if (!are_same_for_all(program, node) || may_be_left_above(program, node, function)) return false;
  for (NodeId at = tree[node.node].parent; at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind == Kind::function) break;
    if (is_branch(tree, at) ||
        (tree[at].kind == Kind::for_statement && !goes_round_alike(program, node.with(at))))
      return false;
  }
  if (!function) return node.module == &program.root();
  if (depth == kCallers || !is_only_called(program, function)) return false;
  bool is_run = false;
  for (const CallRef& site : program.call_sites(function)) {
    if (!pitfalls::facts::is_reachable(program, site.ref())) continue;
    if (!is_come_by_by_all(program, site.ref(), depth + 1)) return false;
    is_run = true;
  }
  return is_run;
}

// torch.distributed, as the file calls it; empty where it imports neither.
std::string group_of(const Module& file) {
  const std::string dist = dist_name(file);
  if (file.import_path(dist) == "torch.distributed") return dist;
  return file.import_path("torch") == "torch" ? "torch.distributed" : "";
}

}  // namespace

bool is_same_for_all(const Program& program, Ref condition) {
  if (!pitfalls::facts::calls_in(condition).empty()) return false;
  const auto& tree = condition.module->tree();
  bool asks_options = false;
  for (NodeId at = condition.node; at < tree[condition.node].last; ++at) {
    const Ref name = condition.with(at);
    const NodeId up = tree[at].parent;
    if ((name.kind() != Kind::identifier && name.kind() != Kind::attribute) ||
        (at != condition.node && tree[up].kind == Kind::attribute) || name.text() == "__name__")
      continue;
    const auto& sources = program.sources(name);
    if (sources.empty() || std::any_of(sources.begin(), sources.end(), [](const Source& source) {
          return source.how != Source::How::argument;
        }))
      return false;
    asks_options = true;
  }
  return !asks_options || !may_set_options(program);
}

bool is_come_by_by_all(const Program& program, Ref node) {
  return is_come_by_by_all(program, node, 0);
}

std::vector<Finding> waits_for_saved(const ReachedCode& reached) {
  const Program& rewritten = reached.program();
  std::vector<Finding> out;
  for (const auto& [place, read] : pitfalls::unwaited_reads(rewritten)) {
    const Module& file = *place.module;
    const std::string group = group_of(file);
    if (group.empty() || !is_come_by_by_all(rewritten, place.ref())) continue;
    Finding made;
    made.rule = "DDP026";
    made.file = file.path();
    made.line = file.tree().line_of(place.call->node);
    made.message = "rank 0 alone saves this file, and all ranks load it here";
    const std::string wait = group + ".barrier()";
    pitfalls::insert_before(
        place.ref(),
        &file == &rewritten.root() ? wait : "if " + group + ".is_initialized():\n\t" + wait,
        "Wait for what rank 0 saves", made);
    if (made.fix) out.push_back(std::move(made));
  }
  return out;
}

}  // namespace bench::diagnose
