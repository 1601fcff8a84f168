// Checkpoints: who writes them, who uses them right behind, and how their places are named.
#include "diagnose/model/made_at.hpp"
#include "diagnose/to_ddp/output_paths.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/files/file_calls.hpp"
#include "scenarios/pitfalls/files/model_saves.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/path_form.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace bench::diagnose {
namespace {

// Functions that need a file to be there, by the last part of their names; those of os and shutil
// share theirs with lists and strings.
constexpr std::string_view kUsers[] = {"add_file", "upload", "upload_file",          "log_artifact",
                                       "load",     "save",   "load_from_checkpoint", "log_model",
                                       "copyfile"};

bool uses_file(const CallRef& call) {
  static constexpr std::string_view kOfSystem[] = {
      "os.rename", "os.replace",      "os.remove",   "os.unlink",    "os.symlink", "os.link",
      "os.stat",   "os.path.getsize", "shutil.copy", "shutil.copy2", "shutil.move"};
  return std::find(std::begin(kOfSystem), std::end(kOfSystem), call.call->path) !=
             std::end(kOfSystem) ||
         std::find(std::begin(kUsers), std::end(kUsers), call.call->name) != std::end(kUsers);
}

bool is_named(Ref path) {
  return path.kind() == Kind::identifier || path.kind() == Kind::attribute ||
         path.kind() == Kind::string || path.kind() == Kind::call || path.kind() == Kind::binary;
}

// A barrier stands between the two, which other ranks pass when rank 0 has come to it, too.
bool is_waited_between(const Program& program, Ref save, Ref read) {
  const auto waits = program.calls(Api::barrier);
  return std::any_of(waits.begin(), waits.end(), [&](const CallRef& wait) {
    return program.runs_before(save, wait.ref()) && program.runs_before(wait.ref(), read);
  });
}

// shutil.copyfile(path, best) below `if rank == 0: torch.save(state, path)`, in the same function.
bool is_use_of_saved(const Left& left, const CallRef& save, Ref path, const CallRef& use) {
  if (use.call->node <= save.call->node || !uses_file(use) ||
      use.module->tree().contains(save.call->node, use.call->node) ||
      use.module->function_of(use.call->node) != save.module->function_of(save.call->node) ||
      left.program.guarded_by_rank(use.ref()) != RankTest::none ||
      pitfalls::facts::exclusive(save.ref(), use.ref()))
    return false;
  const bool is_given = [&] {
    for (std::size_t i = 0; const Ref given = use.positional(i); ++i)
      if (given.text() == path.text()) return true;
    return false;
  }();
  return is_given && use.call->api != Api::torch_save &&
         !is_waited_between(left.program, save.ref(), use.ref());
}

// "*/models/audio_model.*.pth": what is written out of a path. Short ones say nothing.
std::string shape_of(const Program& program, Ref path) {
  constexpr int kFewest = 6;  // letters
  std::string out;
  int letters = 0;
  int depth = 0;
  for (const char each : pitfalls::path_form(program, path)) {
    if (each == '<' && depth++ == 0 && !out.ends_with('*')) out += '*';
    if (depth == 0) {
      out += each;
      letters += std::isalpha(static_cast<unsigned char>(each)) != 0 ? 1 : 0;
    }
    if (each == '>') --depth;
  }
  return letters < kFewest ? std::string() : out;
}

// name of root / name, root + "/" + name and root + "/best.pth"; empty for name + ".pth".
Ref last_part_of_sum(Ref path) {
  const Ref left = path.child(Field::left);
  const Ref right = path.child(Field::right);
  if (path.module->tree()[path.node].op == Op::divide) return right;
  const std::string_view before = left.text();
  const bool is_cut = before.ends_with("/'") || before.ends_with("/\"") ||
                      right.text().starts_with("'/") || right.text().starts_with("\"/");
  return is_cut ? right : Ref{};
}

// best.pth of os.path.join(root, "best.pth"), and of os.path.join(root, name) what the name is
// given. Words without an ending are directories or parts of a name.
void add_file_names(const Program& program, Ref path, std::set<std::string>& out, int depth = 0) {
  constexpr int kDepth = 4;
  if (!path || depth > kDepth) return;
  if (path.kind() == Kind::string) {
    const std::string text = program.string(path).value_or("");
    const std::string name = text.substr(text.rfind('/') + 1);
    const std::size_t dot = name.find('.');
    if (dot != std::string::npos && dot > 0 && name.find_first_of("{%") == std::string::npos)
      out.insert(name);
    return;
  }
  Ref last;
  if (path.kind() == Kind::binary) {
    last = last_part_of_sum(path);
    if (!last) return;
  }
  if (const CallRef call = program.as_call(path); call && call.call->name.starts_with("join"))
    for (std::size_t i = 0; const Ref part = call.positional(i); ++i) last = part;
  if (last) return add_file_names(program, last, out, depth + 1);
  for (const Source& source : program.sources(path))
    if (source.how == Source::How::value && source.ref != path)
      add_file_names(program, source.ref, out, depth + 1);
}

bool share_file_name(const Program& program, Ref a, Ref b) {
  std::set<std::string> ours, theirs;
  add_file_names(program, a, ours);
  add_file_names(program, b, theirs);
  return std::any_of(ours.begin(), ours.end(),
                     [&](const std::string& name) { return theirs.contains(name); });
}

bool is_of_rank_zero(const Program& program, Ref node) {
  return program.guarded_by_rank(node) == RankTest::main_only && program.rank_guard(node);
}

// A rule says so of the load, or of a call that leads to it.
bool is_found_on_the_way(const Left& left, Ref load) {
  const auto places = places_of(left.program, load);
  return left.is_found(load, "DDP026") || std::any_of(places.begin(), places.end(), [&](Ref place) {
           return left.is_found(place, "DDP026");
         });
}

// test() and evaluate() take what training has saved, also where the calls in between are not
// known.
bool is_loaded_behind(const Program& program, Ref save, Ref load) {
  if (pitfalls::only_runs_before(program, save, load)) return true;
  const FunctionRef function = program.enclosing_function(load);
  return function && !program.runs_before(load, save) &&
         pitfalls::says_any(function.function->name, {"test", "eval", "predict"});
}

// Loads of every rank, further on, from places that look like those which rank 0 saves to.
void add_later_loads(const Left& left, const CallRef& save, Ref path, std::vector<Ref>& places) {
  const std::string shape = shape_of(left.program, path);
  for (const CallRef& load : left.program.calls(Api::torch_load)) {
    const Ref read = load.argument(0, "f");
    const auto looks_like = [&] {
      return (!shape.empty() && shape == shape_of(left.program, read)) ||
             share_file_name(left.program, path, read);
    };
    if (read && left.runs_on_every_rank(load.ref()) && looks_like() &&
        is_loaded_behind(left.program, save.ref(), load.ref()) &&
        !pitfalls::never_both(left.program, save.ref(), load.ref()) &&
        !is_waited_between(left.program, save.ref(), load.ref()) &&
        !is_found_on_the_way(left, load.ref()))
      places.push_back(load.ref());
  }
}

// The functions that the call may run, those of each class that the object may be too.
std::vector<FunctionRef> run_by(const Program& program, const CallRef& call) {
  std::vector<FunctionRef> out = program.callees(call);
  if (!out.empty() || !call.receiver()) return out;
  for (const ClassRef& cls : program.classes_of(call.receiver()))
    if (const FunctionRef method = program.method(cls, call.call->name)) out.push_back(method);
  for (const Source& source : program.sources(call.receiver()))
    if (const ClassRef cls = program.class_of_call(program.as_call(source.ref)))
      if (const FunctionRef method = program.method(cls, call.call->name)) out.push_back(method);
  return out;
}

// if isinstance(model, DataParallel): return model.module, and `return model` below: the function
// asks for the wrapper itself.
bool is_unwrapped_there(const Program& program, Ref object) {
  const FunctionRef function = program.enclosing_function(object);
  return function && pitfalls::facts::contains(object.module->tree().text(function.function->body),
                                               std::string(object.text()) + ".module");
}

// The objects in what is saved that calls of the program's own have put there: self.model of
// `def state(self): return {"model": self.model}` for {"baseline": baseline.state()}.
void add_given_objects(const Program& program, Ref value, int depth, bool is_given,
                       std::vector<Ref>& out) {
  constexpr int kDeepest = 4;
  if (!value || depth > kDeepest) return;
  const auto& tree = value.module->tree();
  if (value.kind() == Kind::dictionary) {
    for (NodeId at = tree[value.node].first_child; at != kNoNode; at = tree[at].next_sibling)
      if (tree[at].kind == Kind::pair)
        add_given_objects(program, value.with(tree.child(at, Field::value)), depth, is_given, out);
  } else if (const CallRef call = program.as_call(value)) {
    for (const FunctionRef& each : run_by(program, call))
      if (!each.function->makes_object())
        for (const NodeId returned : each.function->returns)
          add_given_objects(program, {each.module, returned}, depth + 1, true, out);
  } else if (is_given && stands_for_object(value) && !is_unwrapped_there(program, value)) {
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
}

// The wrapper, or copy.deepcopy(model) of one.
bool is_wrapper_or_copy(const Program& program, Ref object) {
  if (program.wrap_of(object, Wrapper::ddp) != nullptr) return true;
  const auto& sources = program.sources(object);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef copy = program.as_call(source.ref);
    return copy && copy.call->name == "deepcopy" && copy.positional(0) &&
           program.wrap_of(copy.positional(0), Wrapper::ddp) != nullptr;
  });
}

bool is_torch_save(const Program& program, Ref function) {
  return function && program.qualified(function) == "torch.save";
}

// write(state, path) after write = partial(torch.save, pickle_protocol=4) or write = torch.save.
std::vector<CallRef> aliased_saves(const Program& program) {
  std::vector<CallRef> out;
  const auto named = program.calls_that(
      [](std::string_view name) { return name.find("save") != std::string_view::npos; });
  for (const CallRef& call : named) {
    if (call.receiver() || call.call->api != Api::none || !call.positional(1)) continue;
    const auto& sources = program.sources({call.module, call.call->function});
    if (std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
          const CallRef made = program.as_call(source.ref);
          return is_torch_save(
              program, made && made.call->name == "partial" ? made.positional(0) : source.ref);
        }))
      out.push_back(call);
  }
  return out;
}

// net.state_dict(), the wrapped net or net.module, also in a dictionary.
bool holds_model(const Program& program, Ref value) {
  const auto calls = pitfalls::facts::calls_in(value);
  if (std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
        return call.call->name == "state_dict" && call.receiver();
      }))
    return true;
  const bool is_inner =
      value.kind() == Kind::attribute && value.child(Field::attribute).text() == "module";
  return program.wrap_of(is_inner ? value.child(Field::object) : value, Wrapper::ddp) != nullptr;
}

// Nothing takes what it gives: checkpointing.checkpoint(net, x) runs the model, should_save(net)
// asks.
bool is_statement(const CallRef& call) {
  const auto& tree = call.module->tree();
  return tree[tree[call.call->node].parent].kind == Kind::expression_statement;
}

// self.save_model(net, name) of a base class that is not there, and make_checkpoint(state) of an
// object of another package.
bool saves_out_of_sight(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  if (call.call->api != Api::none || name.empty() || call.call->path.starts_with("torch.") ||
      std::isupper(static_cast<unsigned char>(name.front())) != 0 ||
      !run_by(program, call).empty() || !is_statement(call))
    return false;
  const auto words = pitfalls::words_of_name(name);
  const auto given = pitfalls::facts::arguments_of(call);
  return std::any_of(words.begin(), words.end(),
                     [](std::string_view word) {
                       return word == "save" || word == "checkpoint" || word == "ckpt";
                     }) &&
         !pitfalls::says_any(name, {"load", "restore", "resume", "from_", "init", "register"}) &&
         std::any_of(given.begin(), given.end(),
                     [&](Ref each) { return holds_model(program, each); });
}

}  // namespace

void tell_saves_out_of_sight(Left& left) {
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (saves_out_of_sight(left.program, call) && left.runs_on_every_rank(call.ref()) &&
          !left.is_found(call.ref(), "DDP039") && !left.is_told(call.ref()))
        left.tell(Harm::figures, {call.ref()},
                  "`" + std::string(call.call->name) +
                      "` is not in sight, and is given the model on every rank: where it writes a "
                      "file, ranks overwrite each other's. Call it under "
                      "`if dist.get_rank() == 0:`.");
    }
}

void tell_pickled_wrappers(Left& left) {
  const Program& program = left.program;
  for (const CallRef& save : pitfalls::torch_saves_of(program)) {
    if (!left.is_run(save.ref())) continue;
    std::vector<Ref> objects;
    add_given_objects(program, save.argument(0, "obj"), 0, false, objects);
    for (const Ref object : objects)
      if (is_wrapper_or_copy(program, object))
        left.tell(Harm::stops, {save.ref()},
                  "`" + std::string(object.text()) + "` (" + place_of(object) +
                      ") is pickled into this file with its DDP wrapper: what loads the file "
                      "without a process group raises \"Default process group has not been "
                      "initialized\", where a DataParallel could be loaded anywhere. Give back "
                      "the model behind `.module`, or its state_dict(), and load that.");
  }
}

void tell_saves(Left& left) {
  std::vector<Ref> places;
  for (const CallRef& save : aliased_saves(left.program))
    if (left.runs_on_every_rank(save.ref()) && !is_of_one_rank(left.program, save.positional(1)))
      places.push_back(save.ref());
  for (const CallRef& save : pitfalls::saves_of(left.program)) {
    const Ref path = pitfalls::path_of(save);
    if (!left.runs_on_every_rank(save.ref()) || left.is_found(save.ref(), "DDP039") ||
        pitfalls::facts::in_dataset(left.program, save.ref()) ||
        (path && is_of_one_rank(left.program, path)))
      continue;
    places.push_back(save.ref());
  }
  left.tell(Harm::stops, places,
            "every rank saves to the same file, and a reader may find it torn. Save under "
            "`if dist.get_rank() == 0:`.");
}

void tell_reads_of_saved(Left& left) {
  std::vector<Ref> places;
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {  // shutil.copyfile(path, best)
      const CallRef copy{module, &made};
      if (const Ref best = pitfalls::copied_path(copy);
          best && is_of_rank_zero(left.program, copy.ref()))
        add_later_loads(left, copy, best, places);
    }
  for (const CallRef& save : pitfalls::torch_saves_of(left.program)) {
    const Ref path = pitfalls::path_of(save);
    if (!path || !is_of_rank_zero(left.program, save.ref())) continue;
    add_later_loads(left, save, path, places);
    if (!is_named(path)) continue;
    for (const Call& made : save.module->calls()) {
      const CallRef use{save.module, &made};
      if (is_use_of_saved(left, save, path, use) && !left.is_found(use.ref(), "DDP026"))
        places.push_back(use.ref());
    }
  }
  left.tell(Harm::stops, places,
            "rank 0 alone writes this file now, and every rank uses it here without waiting: the "
            "others find none, or half of it. Do this under dist.get_rank() == 0, too, or call "
            "dist.barrier() before it.");
}

}  // namespace bench::diagnose
