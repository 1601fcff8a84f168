#include "scenarios/pitfalls/files/used_below.hpp"

#include "scenarios/pitfalls/files/model_saves.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/importers.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::RankTest;
using diagnose::Source;

namespace {

// print(path), logger.info(f"saved {path}"), lines.append(path): nothing opens the file.
bool only_says(std::string_view name) {
  constexpr std::string_view kNames[] = {"print",  "info",   "debug",  "warning", "log",  "write",
                                         "append", "format", "printf", "success", "join", "update"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         says_any(name, {"print", "log_info"});
}

// os.path.dirname(path) and its kin look at the name alone.
bool only_looks_at_name(std::string_view name) {
  constexpr std::string_view kNames[] = {"basename", "dirname", "join",    "abspath", "splitext",
                                         "str",      "fspath",  "Path",    "split",   "relpath",
                                         "makedirs", "mkdir",   "fsdecode"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool writes(const CallRef& call) {
  return call.call->api == diagnose::Api::torch_save || call.call->name == "dump" ||
         call.call->name == "save_pretrained" || call.call->name == "save_file";
}

// The call is given the text: as an argument, or as a part of one that no other call is given.
bool receives(const CallRef& call, std::string_view text) {
  constexpr std::size_t kShortest = 4;  // a shorter name is a part of many others
  const auto arguments = facts::arguments_of(call);
  return std::any_of(arguments.begin(), arguments.end(), [&](Ref argument) {
    return argument.text() == text ||
           (text.size() >= kShortest && facts::contains(argument.text(), text) &&
            facts::calls_in(argument).empty());
  });
}

// dist.barrier() below the statement, in its own block: what stands further down finds the file.
NodeId first_wait_below(const Program& program, Ref statement) {
  const auto& tree = statement.module->tree();
  NodeId first = kNoNode;
  for (const CallRef& wait : program.calls(diagnose::Api::barrier)) {
    const NodeId at = statement_of(wait.ref()).node;
    if (wait.module == statement.module && at > statement.node &&
        tree[at].parent == tree[statement.node].parent)
      first = std::min(first, at);
  }
  return first;
}

// The calls of the function that come to the file after the save on every rank.
std::vector<CallRef> uses_below(const Program& program, Ref place, std::string_view path) {
  std::vector<CallRef> out;
  const FunctionRef here = program.enclosing_function(place);
  const auto& tree = place.module->tree();
  const Ref whole = here ? Ref{here.module, here.function->body} : place.with(0);
  const NodeId last = tree[statement_of(place).node].last;
  const NodeId wait = first_wait_below(program, statement_of(place));
  for (const CallRef& call : facts::calls_in(whole)) {
    if (call.call->node < last || call.call->node > wait ||
        program.enclosing_function(call.ref()) != here || !receives(call, path) || writes(call) ||
        only_looks_at_name(call.call->name) || only_says(call.call->name) ||
        facts::exclusive(place, call.ref()))
      continue;
    if (program.guarded_by_rank(call.ref()) != RankTest::main_only) out.push_back(call);
  }
  return out;
}

// str(path), os.path.join(dir, path): the call stands for the file in what is around it.
bool is_wrapped_in_use(const Program& program, Ref place, std::string_view path) {
  const FunctionRef here = program.enclosing_function(place);
  const auto& tree = place.module->tree();
  const Ref whole = here ? Ref{here.module, here.function->body} : place.with(0);
  const NodeId last = tree[statement_of(place).node].last;
  for (const CallRef& call : facts::calls_in(whole)) {
    if (call.call->node < last || !receives(call, path) ||
        (call.call->name != "str" && call.call->name != "fspath" && call.call->name != "Path"))
      continue;
    const NodeId around = tree.ancestor(tree[call.call->node].parent, Kind::call);
    const CallRef user = program.as_call(call.ref().with(around));
    if (user && !writes(user) && !only_says(user.call->name) &&
        !only_looks_at_name(user.call->name) &&
        program.guarded_by_rank(user.ref()) != RankTest::main_only)
      return true;
  }
  return false;
}

// os.replace(path + ".tmp", path), too.
bool is_copy(const CallRef& call) {
  return call.call->name == "copyfile" || call.call->name == "copy" || call.call->name == "copy2" ||
         call.call->path == "os.replace" || call.call->path == "os.rename" ||
         call.call->path == "shutil.move";
}

// The statement below, where it is the copy alone, or a test of a name and the copy under it.
Ref copy_right_below(const Program& program, Ref save, const CallRef& use) {
  const auto& tree = save.module->tree();
  const Ref next = save.with(tree[save.node].next_sibling);
  if (next.node == kNoNode || !is_copy(use)) return {};
  const Ref own = statement_of(use.ref());
  if (program.as_call(own.with(tree[own.node].first_child)).call != use.call) return {};
  if (own == next) return next;
  const Ref body = next.child(Field::consequence);
  const Ref test = next.child(Field::condition);
  const bool is_plain_test =
      test && (test.kind() == Kind::identifier || test.kind() == Kind::attribute);
  return next.kind() == Kind::if_statement && is_plain_test && !next.child(Field::alternative) &&
                 tree[body.node].first_child == own.node && tree[own.node].next_sibling == kNoNode
             ? next
             : Ref{};
}

// The parameters of the function that the path is made of.
std::set<std::string> parameters_in(const Program& program, Ref path) {
  std::set<std::string> out;
  const FunctionRef here = program.enclosing_function(path);
  if (!here) return out;
  const auto look_at = [&](Ref value) {
    const auto& tree = value.module->tree();
    for (NodeId at = value.node; at < tree[value.node].last; ++at) {
      const Ref name = value.with(at);
      if (name.kind() == Kind::identifier && name.text() != "self" &&
          facts::is_parameter(program, name) && program.enclosing_function(name) == here)
        out.insert(std::string(name.text()));
    }
  };
  look_at(path);
  if (path.kind() == Kind::identifier)
    for (const std::uint32_t index : path.module->defs_of(path.text(), false)) {
      const auto& def = path.module->defs()[index];
      if (def.value != kNoNode && def.target < path.node &&
          path.module->function_of(def.target) == path.module->function_of(path.node))
        look_at(path.with(def.value));
    }
  return out;
}

// trainer.load(path) below trainer.save(path) in a function that calls the one that saves.
bool is_used_by_a_caller(const Program& program, Ref path, const std::set<std::string>& names) {
  const FunctionRef here = program.enclosing_function(path);
  if (!here) return false;
  for (const CallRef& site : program.call_sites(here))
    for (const std::string& name : names) {
      const Ref given = facts::argument_for(site, here, name);
      if (!given || given.kind() == Kind::integer || given.kind() == Kind::none_literal ||
          given.kind() == Kind::true_literal || given.kind() == Kind::false_literal)
        continue;
      const auto uses = uses_below(program, site.ref(), given.text());
      if (std::any_of(uses.begin(), uses.end(), [&](const CallRef& use) {
            return use.call->name != site.call->name &&
                   says_any(use.call->name, {"load", "read", "open", "copy", "move", "rename",
                                             "file", "upload", "artifact", "restore", "resume"});
          }))
        return true;
    }
  return false;
}

// What stands between the brackets of a call in a text.
std::string_view arguments_at(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return text.substr(open + 1, at - open - 1);
  }
  return {};
}

// fit(net, path=f"best_rank{rank}.pt"), and load(path) in one of the lines below save(path).
bool gives_file_of_its_own(std::string_view text, const std::string& function) {
  constexpr std::size_t kLinesBelow = 400;  // characters
  const std::string call = function + "(";
  for (std::size_t at = text.find(call); at != std::string_view::npos;
       at = text.find(call, at + 1)) {
    if (at > 4 && text.substr(at - 4, 4) == "def ") continue;
    const std::string_view given = arguments_at(text, at + call.size() - 1);
    if (facts::contains(given, "rank}") || facts::contains(given, "rank)")) return true;
    const std::string_view below =
        text.substr(std::min(at + call.size() + given.size() + 1, text.size()), kLinesBelow);
    if (given.size() > 4 && (facts::contains(below, "load(" + std::string(given) + ")") ||
                             facts::contains(below, "load(" + std::string(given) + ",")))
      return true;
  }
  return false;
}

bool is_used_in_other_files(const Program& program, Ref path) {
  const FunctionRef here = program.enclosing_function(path);
  if (!here) return false;
  const std::string name(here.function->name);
  return facts::any_importer(
      program, *here.module, "and has a file of its own for " + name,
      [&](std::string_view text) { return gives_file_of_its_own(text, name); });
}

}  // namespace

Ref last_to_guard(const Program& program, const CallRef& save) {
  const Ref statement = statement_of(save.ref());
  const Ref path = path_of(save);
  if (!path) return statement;
  if (is_wrapped_in_use(program, save.ref(), path.text())) return {};
  const auto names = parameters_in(program, path);
  if (!names.empty() &&
      (is_used_by_a_caller(program, path, names) || is_used_in_other_files(program, path)))
    return {};
  const auto uses = uses_below(program, save.ref(), path.text());
  if (uses.empty()) return statement;
  return uses.size() == 1 ? copy_right_below(program, statement, uses.front()) : Ref{};
}

}  // namespace bench::pitfalls
