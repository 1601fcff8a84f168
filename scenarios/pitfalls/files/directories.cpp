#include "scenarios/pitfalls/files/directories.hpp"

#include "scenarios/pitfalls/files/own_disks.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/paths.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Op;
using diagnose::RankTest;
using diagnose::Source;

namespace {

constexpr int kPathDepth = 6;

bool share_a_source(const Program& program, Ref a, Ref b) {
  const auto& ours = program.sources(a);
  const auto& theirs = program.sources(b);
  return std::any_of(ours.begin(), ours.end(), [&](const Source& source) {
    return std::any_of(theirs.begin(), theirs.end(), [&](const Source& other) {
      return other.ref == source.ref && other.element == source.element;
    });
  });
}

// What a path is joined of: root, "runs" for join(root, "runs") and root / "runs".
void add_parts(const Program& program, Ref path, int depth, std::vector<Ref>& out) {
  const auto& sources = program.sources(path);
  const bool named = sources.size() == 1 && sources.front().how == Source::How::value;
  const Ref made = named ? sources.front().ref : path;
  const CallRef call = program.as_call(made);
  if (depth < kPathDepth && call && !call.has_splat()) {
    const std::string_view name = call.call->path;
    if (name == "os.path.join" || name == "pathlib.Path") {
      for (std::size_t i = 0; const Ref part = call.positional(i); ++i)
        add_parts(program, part, depth + 1, out);
      return;
    }
  }
  if (depth < kPathDepth && made.kind() == Kind::binary &&
      made.module->tree()[made.node].op == Op::divide) {
    add_parts(program, made.child(Field::left), depth + 1, out);
    add_parts(program, made.child(Field::right), depth + 1, out);
    return;
  }
  out.push_back(path);
}

std::vector<Ref> parts_of(const Program& program, Ref path) {
  std::vector<Ref> out;
  add_parts(program, path, 0, out);
  return out;
}

// self.root in two methods of one class; args.root with one args.
bool is_same_part(const Program& program, Ref a, Ref b) {
  if (a.kind() == Kind::string || b.kind() == Kind::string) {
    const auto text = program.string(a);
    return text && text == program.string(b);
  }
  if (share_a_source(program, a, b)) return true;
  return a.kind() == Kind::attribute && a.child(Field::object).text() == "self" &&
         a.text() == b.text() && program.enclosing_class(a) &&
         program.enclosing_class(a) == program.enclosing_class(b);
}

bool makes_parents(const Program& program, const CallRef& make) {
  return make.call->name == "makedirs" || program.is_literal_true(make.keyword("parents"));
}

// `other` makes the directory of the parts, or one below it together with those above.
bool leads_through(const Program& program, const std::vector<Ref>& parts, const CallRef& other,
                   Ref directory) {
  const auto theirs = parts_of(program, directory);
  if (parts.size() > theirs.size()) return false;
  if (parts.size() < theirs.size() && !makes_parents(program, other)) return false;
  return std::equal(parts.begin(), parts.end(), theirs.begin(),
                    [&](Ref a, Ref b) { return is_same_part(program, a, b); });
}

bool asks_for_a_file(const diagnose::Guard& guard) {
  return holds_any(guard.condition.text(), {"exists(", "isdir(", "is_dir(", "isfile(", "is_file("});
}

// if save_dir: above if not os.path.exists(save_dir): the name alone, or that it is not None; the
// same of root above Path(root).mkdir().
bool asks_for_a_name(const Program& program, const diagnose::Guard& guard, Ref directory) {
  const std::string_view text = guard.condition.text();
  if (!guard.holds || !directory) return false;
  std::vector<Ref> names = parts_of(program, directory);
  names.push_back(directory);
  return std::any_of(names.begin(), names.end(), [&](Ref name) {
    return text == name.text() || text == std::string(name.text()) + " is not None";
  });
}

// Whoever has a name for the directory makes it, and the later one is made of that name, too.
bool is_made_where_named(const Program& program, const CallRef& make, Ref directory, Ref later) {
  const auto guards = program.guards(make.ref());
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return asks_for_a_name(program, guard, directory) && asks_for_a_name(program, guard, later);
  });
}

bool asks_whether_this_is_there(const Program& program, const CallRef& make, Ref directory) {
  if (asks_whether_it_is_there(program, make.ref())) return true;
  auto guards = program.guards(make.ref());
  const auto count = guards.size();
  std::erase_if(guards,
                [&](const auto& guard) { return asks_for_a_name(program, guard, directory); });
  return guards.size() < count && guards.size() == 1 &&
         facts::contains(guards.front().condition.text(), "exists(");
}

// with FileLock("runs.lock"), or flock(file, LOCK_EX) above in the function.
bool is_locked(const Program& program, const CallRef& make) {
  if (program.enclosing_with(make.ref(), [](Ref item) {
        return facts::contains(facts::lowered(item.text()), "lock(");
      }))
    return true;
  for (const std::string_view name : {"flock", "lockf", "acquire"})
    for (const CallRef& lock : program.calls_named(name))
      if (lock.module == make.module && lock.call->node < make.call->node &&
          !facts::contains(lock.ref().text(), "LOCK_UN") &&
          !facts::contains(lock.ref().text(), "LOCK_SH") &&
          program.enclosing_function(lock.ref()) == program.enclosing_function(make.ref()))
        return true;
  return false;
}

// while path.exists(): path = next_one(), above what makes it: the name is a new one.
bool looks_for_a_new_name(const Program& program, const CallRef& make) {
  const std::string_view path = directory_made(program, make).text();
  const auto& tree = make.module->tree();
  const auto& loops = make.module->loops();
  return std::any_of(loops.begin(), loops.end(), [&](diagnose::NodeId loop) {
    const Ref condition = make.ref().with(loop).child(Field::condition);
    return tree[loop].kind == Kind::while_statement && loop < make.call->node && condition &&
           facts::contains(condition.text(), "exists(") &&
           facts::contains(condition.text(), path) &&
           program.enclosing_function(condition) == program.enclosing_function(make.ref());
  });
}

bool is_same_file(const Program& program, Ref a, Ref b) {
  return share_a_source(program, a, b) || program.same_variable(a, b);
}

// file for os.path.dirname(file), os.path.split(file)[0], file.rsplit("/", 1)[0], Path(file).parent
// and file.replace(name, "").
Ref file_of(const Program& program, Ref directory) {
  const auto& sources = program.sources(directory);
  if (sources.size() != 1) return {};
  Ref made = sources.front().ref;
  if (sources.front().how == Source::How::element && sources.front().element != 0) return {};
  if (made.kind() == Kind::attribute && made.child(Field::attribute).text() == "parent") {
    const CallRef path = program.as_call(made.child(Field::object));
    return path && path.call->name == "Path" ? path.positional(0) : Ref{};
  }
  const bool first = sources.front().how == Source::How::element;
  const bool item = made.kind() == Kind::subscript;
  if (item) made = made.child(Field::value);
  const CallRef call = program.as_call(made);
  if (!call) return {};
  const std::string_view name = call.call->path;
  if (name == "os.path.dirname") return call.positional(0);
  if (name == "os.path.split" && (item || first)) return call.positional(0);
  if (call.call->name == "rsplit" && (item || first)) return call.receiver();
  const bool cuts = call.call->name == "replace" && program.string(call.positional(1)) == "";
  return cuts ? call.receiver() : Ref{};
}

// The parameter of the callee that the call gives the file for.
std::string_view parameter_given(const Program& program, const CallRef& call, FunctionRef callee,
                                 Ref file) {
  const auto& parameters = callee.function->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Ref given = call.argument(i, parameters[i].name);
    if (given && is_same_file(program, given, file)) return parameters[i].name;
  }
  return {};
}

// if path: is all that stands around what loads the file.
bool is_loaded_where_given(const Program& program, const CallRef& load, std::string_view name) {
  const auto guards = program.guards(load.ref());
  return load.argument(0, "f").text() == name &&
         std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
           const std::string_view text = guard.condition.text();
           return guard.holds && (text == name || text == std::string(name) + " is not None");
         });
}

// torch.load(file), or a function of the program that does it with its parameter.
bool loads(const Program& program, const CallRef& call, Ref file) {
  if (call.call->api == Api::torch_load) {
    const Ref path = call.argument(0, "f");
    return path && is_same_file(program, path, file);
  }
  const FunctionRef callee = program.callee(call);
  if (!callee || callee.function->owner_class != diagnose::kNoNode) return false;
  const std::string_view name = parameter_given(program, call, callee, file);
  if (name.empty()) return false;
  const auto inside = facts::calls_in({callee.module, callee.function->body});
  return std::any_of(inside.begin(), inside.end(), [&](const CallRef& load) {
    return load.call->api == Api::torch_load && is_loaded_where_given(program, load, name);
  });
}

// save(state, file), open(file, "w"), fetch(url, file): the call may be what makes the file.
bool may_write(const Program& program, const CallRef& call, Ref file) {
  const std::string name = facts::lowered(call.call->name);
  if (!holds_any(name, {"save", "dump", "write", "open", "fetch", "download", "copy", "train",
                        "fit", "to_"}))
    return false;
  for (std::size_t i = 0; const Ref given = call.positional(i); ++i)
    if (is_same_file(program, given, file)) return true;
  const Ref path = call.keyword("f");
  return path && is_same_file(program, path, file);
}

bool is_written_somewhere(const Program& program, Ref file) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& each : module->calls())
      if (may_write(program, {module, &each}, file)) return true;
  return false;
}

}  // namespace

bool may_be_makedirs(const Program& program, const CallRef& make) {
  const auto guards = program.guards(make.ref());  // innermost first
  return make.ref().with(make.call->function).text() == "os.mkdir" && make.positional(0) &&
         make.module->arguments(make.call->node).size() == 1 && !make.has_splat() &&
         !guards.empty() && asks_for_a_file(guards.front()) &&
         guards.front().condition.text().starts_with("not ") == guards.front().holds;
}

bool asks_whether_it_is_there(const Program& program, Ref make) {
  auto guards = program.guards(make);
  std::erase_if(guards, [&](const diagnose::Guard& guard) { return ends_the_run(guard, make); });
  return !guards.empty() && std::all_of(guards.begin(), guards.end(), asks_for_a_file);
}

namespace {

bool is_same_value(const Program& program, Ref a, Ref b) {
  if (const auto text = program.string(a)) return text == program.string(b);
  const auto& ours = program.sources(a);
  const auto& theirs = program.sources(b);
  return ours.size() == 1 && theirs.size() == 1 && ours.front().ref == theirs.front().ref &&
         ours.front().how == theirs.front().how && ours.front().how != Source::How::loop_item &&
         ours.front().element == theirs.front().element;
}

bool is_given_the_same(const Program& program, const CallRef& a, const CallRef& b) {
  const auto ours = a.module->arguments(a.call->node);
  const auto theirs = b.module->arguments(b.call->node);
  return !a.has_splat() && !b.has_splat() &&
         std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                    [&](const diagnose::Argument& mine, const diagnose::Argument& other) {
                      return mine.name == other.name &&
                             is_same_value(program, a.ref().with(mine.value),
                                           b.ref().with(other.value));
                    });
}

// paths.root = other: what self.root says in the method changes behind its constructor.
bool reads_what_changes(const Program& program, FunctionRef method) {
  const auto is_changed = [&](const diagnose::AttributeDef& given) {
    const FunctionRef setter = program.enclosing_function({given.module, given.def->target});
    return !setter || setter.function->name != "__init__" || given.object != "self";
  };
  const Ref whole{method.module, method.function->node};
  const auto& tree = method.module->tree();
  for (diagnose::NodeId id = whole.node; id < tree[whole.node].last; ++id) {
    const Ref part = whole.with(id);
    if (part.kind() != Kind::attribute || part.child(Field::object).text() != "self") continue;
    const auto& given = program.attribute_defs(part.child(Field::attribute).text());
    if (std::any_of(given.begin(), given.end(), is_changed)) return true;
  }
  return false;
}

// paths = Paths("runs") beside paths.make_all(), and each other Paths(...) is given the same: what
// the attributes of its objects say is one thing in the whole program.
bool is_of_the_only_object(const Program& program, const CallRef& site, FunctionRef method) {
  const auto& sources = program.sources(site.receiver());
  if (sources.size() != 1 || sources.front().how != Source::How::value) return false;
  const CallRef made = program.as_call(sources.front().ref);
  const diagnose::ClassRef cls = made ? program.class_of_call(made) : diagnose::ClassRef{};
  if (!cls || program.innermost_loop(made.ref()) ||
      program.enclosing_function(made.ref()) != program.enclosing_function(site.ref()))
    return false;
  const auto owns_it = [&](diagnose::ClassRef each) {
    return each && program.method(each, method.function->name) == method;
  };
  const auto is_another = [&](const CallRef& call) {
    return call.call != made.call && owns_it(program.class_of_call(call)) &&
           !is_given_the_same(program, made, call);
  };
  return owns_it(cls) && !reads_what_changes(program, method) &&
         std::none_of(program.modules().begin(), program.modules().end(),
                      [&](const diagnose::Module* module) {
                        const auto& calls = module->calls();
                        return std::any_of(calls.begin(), calls.end(), [&](const auto& call) {
                          return is_another({module, &call});
                        });
                      });
}

// paths.make_all() above mp.spawn as well: a method that is given nothing makes what it made there.
bool is_made_in_parent(const Program& program, const CallRef& make) {
  const FunctionRef function = program.enclosing_function(make.ref());
  if (!function || !asks_whether_it_is_there(program, make.ref())) return false;
  const bool is_method = function.function->owner_class != diagnose::kNoNode;
  const auto& sites = program.call_sites(function);
  return function.function->parameters.size() == (is_method ? 1 : 0) &&
         std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
           return facts::only_before_ranks(program, site.ref()) &&
                  is_unconditional(program, site.ref()) &&
                  (!is_method || is_of_the_only_object(program, site, function));
         });
}

}  // namespace

bool is_made_above(const Program& program, const CallRef& make) {
  if (is_made_in_parent(program, make)) return true;
  const Ref mine = directory_made(program, make);
  if (!asks_whether_this_is_there(program, make, mine)) return false;
  const auto parts = parts_of(program, mine);
  const auto makes_it = [&](const CallRef& other) {
    const Ref directory = directory_made(program, other);
    if (other.call == make.call || !directory) return false;
    const bool always = is_made_where_named(program, other, directory, mine) ||
                        asks_whether_it_is_there(program, other.ref());
    return always && program.guarded_by_rank(other.ref()) == RankTest::none &&
           (share_a_source(program, mine, directory) ||
            leads_through(program, parts, other, directory)) &&
           only_runs_before(program, other.ref(), make.ref());
  };
  for (const std::string_view name : {"makedirs", "mkdir"}) {
    const auto others = program.calls_named(name);
    if (std::any_of(others.begin(), others.end(), makes_it)) return true;
  }
  return false;
}

bool is_made_under_a_lock(const Program& program, const CallRef& make) {
  // if baton.try_acquire(): one process gets it, and the others go on without.
  const auto gets_it = [&](Ref condition, bool holds) {
    const CallRef asked = program.as_call(condition);
    return holds && asked && asked.call->name == "try_acquire";
  };
  if (program.under(make.ref(), gets_it)) return true;
  return (asks_whether_it_is_there(program, make.ref()) || looks_for_a_new_name(program, make)) &&
         is_locked(program, make);
}

bool is_behind_a_race(const Program& program, const CallRef& make) {
  const auto& tree = make.module->tree();
  const diagnose::NodeId mine = statement_of(make.ref()).node;
  const auto stops_others = [&](const CallRef& other) {
    const diagnose::NodeId statement = statement_of(other.ref()).node;
    const Ref exist_ok = other.argument(2, "exist_ok");
    return other.module == make.module && statement < mine &&
           tree[statement].parent == tree[mine].parent && directory_made(program, other) &&
           !program.comes_from_rank(directory_made(program, other)) &&
           !is_drawn_by_each(program, directory_made(program, other)) &&
           (!exist_ok || program.is_literal_false(exist_ok)) &&
           tree.ancestor(statement, Kind::try_statement) == diagnose::kNoNode;
  };
  for (const std::string_view name : {"makedirs", "mkdir"}) {
    const auto others = program.calls_named(name);
    if (std::any_of(others.begin(), others.end(), stops_others)) return true;
  }
  return false;
}

bool is_attempted(const Program& program, const CallRef& make) {
  const auto& tree = make.module->tree();
  for (auto at = tree.ancestor(make.call->node, Kind::try_statement); at != diagnose::kNoNode;
       at = tree.ancestor(at, Kind::try_statement))
    if (tree.contains(tree.child(at, Field::body), make.call->node)) return true;
  return static_cast<bool>(program.enclosing_with(make.ref(), [](Ref item) {
    return facts::contains(item.text(), "suppress(");  // contextlib.suppress(OSError)
  }));
}

bool holds_a_file_loaded_below(const Program& program, const CallRef& make) {
  if (!asks_whether_it_is_there(program, make.ref())) return false;
  const Ref file = file_of(program, directory_made(program, make));
  const FunctionRef function = program.enclosing_function(make.ref());
  if (!file || !function) return false;
  const auto beside = facts::calls_in({function.module, function.function->body});
  return std::any_of(beside.begin(), beside.end(),
                     [&](const CallRef& call) {
                       return call.call->node > make.call->node &&
                              runs_wherever(program, call.ref(), make.ref()) &&
                              loads(program, call, file);
                     }) &&
         !is_written_somewhere(program, file);
}

}  // namespace bench::pitfalls
