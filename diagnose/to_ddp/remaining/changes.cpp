// What every rank does to files that are there: it removes, copies and moves them, or refuses to go
// on because of them.
#include "diagnose/to_ddp/output_paths.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/waits.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/paths.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::holds_any;
using pitfalls::facts::contains;

template <std::size_t kCount>
bool is_one_of(std::string_view name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr std::string_view kRemovals[] = {"os.remove", "os.unlink", "os.rmdir", "os.removedirs",
                                          "shutil.rmtree"};
constexpr std::string_view kCopies[] = {"shutil.copy",        "shutil.copy2", "shutil.copyfile",
                                        "shutil.copytree",    "os.symlink",   "os.link",
                                        "shutil.make_archive"};
constexpr std::string_view kMoves[] = {"shutil.move", "os.rename", "os.renames", "os.replace"};

// for old in sorted(root.glob("*.pt")): old.unlink(); not a block of shared memory.
bool is_file_object(const Program& program, Ref object) {
  if (pitfalls::is_path(program, object)) return true;
  const std::string_view text = object.text();
  return !program.class_of(object) &&
         (text.size() == 1 ||
          pitfalls::says_any(text, {"path", "file", "ckpt", "checkpoint", "folder", "dir", "old"}));
}

// try: os.remove(old), except OSError: pass, and old.unlink(missing_ok=True): a file that is gone
// is gone. A directory holds what others make.
bool minds_nothing(const CallRef& call) {
  return call.call->name != "rmtree" &&
         (call.keyword("missing_ok") ||
          call.module->tree().ancestor(call.call->node, Kind::try_statement) != kNoNode);
}

// The file that the call removes.
Ref removed(const Program& program, const CallRef& call) {
  if (minds_nothing(call)) return {};
  if (is_one_of(call.call->path, kRemovals)) return call.argument(0, "path");
  if (call.call->name != "unlink" && call.call->name != "rmdir") return {};
  const Ref object = call.receiver();
  return object && !call.positional(0) && is_file_object(program, object) ? object : Ref{};
}

// The file that a copy makes, or that a move takes away.
Ref moved(const Program& program, const CallRef& call) {
  if (is_one_of(call.call->path, kMoves)) return call.argument(0, "src");
  const bool is_of_path = call.call->name == "rename" || call.call->name == "replace";
  const Ref object = call.receiver();
  return is_of_path && object && pitfalls::is_path(program, object) ? object : Ref{};
}

Ref copied(const CallRef& call) {
  if (!is_one_of(call.call->path, kCopies)) return {};
  return call.call->name == "make_archive" ? call.argument(0, "base_name")
                                           : call.argument(1, "dst");
}

bool is_of_every_rank(const Left& left, const CallRef& call, Ref path) {
  const Program& program = left.program;
  return left.runs_on_every_rank(call.ref()) && !is_of_one_rank(program, path) &&
         !is_in_download(program, call.ref()) && !is_of_samples(program, call.ref()) &&
         !pitfalls::facts::rank_goes_first(program, call.ref()) &&
         !pitfalls::facts::under_lock(program, call.ref()) &&
         !left.is_found(call.ref(), "DDP026") && !left.is_told(call.ref());
}

template <typename PathOf>
std::vector<Ref> places_of_calls(const Left& left, const PathOf& path_of) {
  std::vector<Ref> out;
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref path = path_of(call);
      if (path && is_of_every_rank(left, call, path)) out.push_back(call.ref());
    }
  return out;
}

constexpr std::string_view kShells[] = {"os.system",
                                        "os.popen",
                                        "subprocess.run",
                                        "subprocess.call",
                                        "subprocess.Popen",
                                        "subprocess.check_call",
                                        "subprocess.check_output"};

// The text of a command, or of the name that it was given before.
std::string_view text_of_command(const Program& program, const CallRef& call) {
  const Ref given = call.argument(0, "args");
  Ref command = given ? given : call.positional(0);
  if (!command) return {};
  if (command.kind() == Kind::identifier) {
    const auto& sources = program.sources(command);
    if (sources.size() != 1 || sources.front().how != Source::How::value) return {};
    command = sources.front().ref;
  }
  return command.text();
}

// rm of "cd out && rm *.pt", "rm -rf " + out and ["rm", "-rf", out], and another script, which
// writes files of its own; mkdir -p does no harm.
bool changes_files(std::string_view text) {
  static constexpr std::string_view kWords[] = {"rm",  "cp",    "mv",    "ln",    "tar",
                                                "zip", "rsync", "unzip", "rmdir", "wget"};
  const auto quote = text.find_first_of("'\"");
  if (quote == std::string_view::npos || quote > 3) return false;  // [", f", (f"
  text.remove_prefix(quote + 1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(" '\""));
    if (is_one_of(word, kWords) || (word == "mkdir" && !contains(text, "-p")) ||
        (word.starts_with("python") && contains(text, ".py")))
      return true;
    const auto next = text.find_first_of("&;|");
    if (next == std::string_view::npos) return false;
    text.remove_prefix(std::min(text.find_first_not_of("&;|", next), text.size()));
  }
}

// raise ..., sys.exit(), and what only says so before; also under options of the run.
bool ends_here(const Program& program, Ref block) {
  const auto& tree = block.module->tree();
  for (NodeId at = tree[block.node].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Ref statement = block.with(at);
    if (tree[at].kind == Kind::raise_statement || pitfalls::facts::ends_process(statement))
      return true;
    if (tree[at].kind == Kind::if_statement &&
        is_same_for_all(program, statement.child(Field::condition)) &&
        ends_here(program, statement.child(Field::consequence)))
      return true;
  }
  return false;
}

// The call alone, or beside other parts of an `and`: not a part of `not`, nor of a comparison.
bool is_asked_plainly(const CallRef& call, Ref condition) {
  const auto& tree = condition.module->tree();
  for (NodeId at = call.call->node; at != condition.node; at = tree[at].parent)
    if (tree[tree[at].parent].kind != Kind::boolean) return false;
  return true;
}

// out for os.path.exists(out) and out.is_dir(), alone in the condition or beside options. A file
// that is no directory is none that the run makes.
Ref asked_for(const Program& program, Ref condition) {
  Ref out;
  for (const CallRef& call : pitfalls::facts::calls_in(condition)) {
    if (!asks_whether_there(call)) continue;
    if (!is_asked_plainly(call, condition) || call.call->name == "isfile" ||
        call.call->name == "is_file")
      return {};
    if (out) continue;
    if (call.call->path.starts_with("os.path."))
      out = call.positional(0);
    else if (call.receiver() && !program.callee(call))
      out = call.receiver();
  }
  return out;
}

// The run makes the directory that it refuses to find.
bool is_made_by_the_run(const Left& left, Ref path) {
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref directory = pitfalls::directory_made(left.program, call);
      if (directory && left.is_run(call.ref()) && is_same_path(left.program, directory, path))
        return true;
    }
  return false;
}

// assert not os.path.exists(out)
Ref denied_path(const Program& program, Ref statement) {
  const auto& tree = statement.module->tree();
  const Ref condition = statement.with(tree[statement.node].first_child);
  if (!condition || condition.kind() != Kind::not_expression) return {};
  return asked_for(program, condition.with(tree[condition.node].first_child));
}

// if os.path.exists(out): raise
Ref refused_path(const Program& program, Ref statement) {
  const Ref condition = statement.child(Field::condition);
  if (!condition || holds_any(condition.text(), {"listdir", "scandir"}) ||
      (contains(condition.text(), "resume") && !contains(condition.text(), "not ")))
    return {};
  const bool is_refusal = ends_here(program, statement.child(Field::consequence));
  return is_refusal ? asked_for(program, condition) : Ref{};
}

}  // namespace

void tell_removals(Left& left) {
  left.tell(Harm::stops,
            places_of_calls(left, [&](const CallRef& call) { return removed(left.program, call); }),
            "every rank removes this: the next one finds nothing there (FileNotFoundError), or "
            "takes away what the others still use. Remove it under `if dist.get_rank() == 0:`, "
            "with dist.barrier() behind it where all ranks go on with the place.");
}

void tell_copies(Left& left) {
  left.tell(Harm::stops,
            places_of_calls(left, [&](const CallRef& call) { return moved(left.program, call); }),
            "every rank moves this: the next one finds nothing there. Move it under "
            "`if dist.get_rank() == 0:`.");
  left.tell(Harm::figures, places_of_calls(left, [](const CallRef& call) { return copied(call); }),
            "every rank copies this to the same place: copies are written over each other, or "
            "fail where one is there. Copy it under `if dist.get_rank() == 0:`.");
}

void tell_commands(Left& left) {
  left.tell(Harm::stops,
            places_of_calls(left,
                            [&](const CallRef& call) {
                              return is_one_of(call.call->path, kShells) &&
                                             changes_files(text_of_command(left.program, call))
                                         ? call.argument(0, "args")
                                         : Ref{};
                            }),
            "every rank runs this command on the same files. Run it under "
            "`if dist.get_rank() == 0:`, with dist.barrier() behind it where all ranks use them.");
}

void tell_refusals_of_existing(Left& left) {
  std::vector<Ref> places;
  for (const Module* module : left.program.modules()) {
    for (const NodeId node : module->nodes_of(Kind::if_statement)) {
      const Ref statement{module, node};
      const Ref path = refused_path(left.program, statement);
      if (path && left.runs_on_every_rank(statement) && !is_of_one_rank(left.program, path) &&
          is_made_by_the_run(left, path))
        places.push_back(statement.child(Field::condition));
    }
    for (const NodeId node : module->nodes_of(Kind::assert_statement)) {
      const Ref statement{module, node};
      const Ref path = denied_path(left.program, statement);
      if (path && left.runs_on_every_rank(statement) && !is_of_one_rank(left.program, path) &&
          is_made_by_the_run(left, path))
        places.push_back(statement);
    }
  }
  left.tell(Harm::stops, places,
            "a rank that comes here after another has made the place finds it there, and stops. "
            "Ask on rank 0 alone, before it is made.");
}

}  // namespace bench::diagnose
