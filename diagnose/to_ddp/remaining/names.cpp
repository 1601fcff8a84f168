// How the places of a run are named: by the clock, by chance, or by what is there already.
#include "diagnose/to_ddp/output_paths.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/path_form.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::holds_any;
using pitfalls::facts::contains;

// parser.add_argument("--output_dir", default=datetime.now().strftime(...))
std::vector<Ref> clocks_of_options(const Left& left) {
  std::vector<Ref> out;
  for (const CallRef& option : left.program.calls_named("add_argument")) {
    const Ref value = option.keyword("default");
    const std::string name(option.positional(0).text());
    if (!value || (!contains(name, "dir") && !contains(name, "path") && !contains(name, "out") &&
                   !contains(name, "log") && !contains(name, "save")))
      continue;
    for (const CallRef& call : pitfalls::facts::calls_in(value))
      if (is_clock(call) && left.is_run(option.ref())) {
        out.push_back(call.ref());
        break;
      }
  }
  return out;
}

// opts.run_name within the expression, for ".run_name".
bool reads(Ref expression, std::string_view field) {
  const auto& tree = expression.module->tree();
  for (NodeId at = expression.node; at < tree[expression.node].last; ++at)
    if (tree[at].kind == Kind::attribute && tree.text(at).ends_with(field)) return true;
  return false;
}

// The attribute that the assignment sets, with the clock that its value takes.
struct ClockField {
  std::string name;  // ".run_name"
  Ref clock;
};

// opts.run_name = "{}_{}".format(opts.run_name, time.strftime(form)), and what is made of it by
// later lines: opts.save_dir = os.path.join(opts.output_dir, opts.run_name).
std::vector<ClockField> fields_of_clocks(const Left& left) {
  std::vector<ClockField> out;
  for (const Module* module : left.program.modules()) {
    if (!module->tree().holds("time")) continue;
    for (const NodeId node : module->nodes_of(Kind::assignment)) {
      const Ref target = Ref{module, node}.child(Field::left);
      const Ref value = Ref{module, node}.child(Field::right);
      if (target.kind() != Kind::attribute || target.text().starts_with("self.")) continue;
      const std::string name = "." + std::string(target.child(Field::attribute).text());
      for (const CallRef& call : pitfalls::facts::calls_in(value))
        if (is_clock(call) && call.call->name == "strftime" && left.runs_on_every_rank(call.ref()))
          out.push_back({name, call.ref()});
      for (std::size_t i = 0; i < out.size(); ++i)
        if (out[i].clock.module == module && out[i].name != name && reads(value, out[i].name)) {
          out.push_back({name, out[i].clock});
          break;
        }
    }
  }
  return out;
}

// Clocks in options that other files name the output by.
std::vector<Ref> clocks_of_fields(const Left& left, const std::vector<Ref>& paths) {
  std::vector<Ref> out;
  for (const ClockField& field : fields_of_clocks(left))
    if (std::any_of(paths.begin(), paths.end(), [&](Ref path) { return reads(path, field.name); }))
      out.push_back(field.clock);
  return out;
}

// Of a run as a whole: neither a file nor what each epoch has.
bool is_place_of_run(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  return (name == "makedirs" || name == "mkdir" || name == "SummaryWriter") &&
         !program.innermost_loop(call.ref());
}

// What each rank makes a directory, a log or a file by.
std::vector<Ref> places_made(const Left& left, bool of_run) {
  std::vector<Ref> out;
  for (const Module* module : left.program.modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref path = place_made(left.program, call);
      if (path && left.runs_on_every_rank(call.ref()) && !is_of_samples(left.program, call.ref()) &&
          (!of_run || is_place_of_run(left.program, call)))
        out.push_back(path);
    }
  return out;
}

// os.listdir(root), glob(pattern), root.iterdir()
bool lists_files(const CallRef& call) {
  const std::string_view name = call.call->name;
  return name == "listdir" || name == "glob" || name == "iglob" || name == "iterdir" ||
         name == "scandir" || name == "rglob";
}

// out of "out/runs/*": empty where the path begins with what is not written out.
std::string root_of(const Program& program, Ref path) {
  const std::string form = pitfalls::path_form(program, path);
  const std::string root = form.substr(0, form.find('/'));
  return root.find_first_of("<*") == std::string::npos ? root : std::string();
}

// The directory listed may be the one that the path leads to: os.listdir("data") counts classes.
bool may_list_place_of(const Program& program, const CallRef& listing, Ref path) {
  const Ref given = listing.positional(0);
  const Ref listed = given ? given : listing.receiver();
  const std::string ours = root_of(program, path);
  const std::string theirs = listed ? root_of(program, listed) : std::string();
  return ours.empty() || theirs.empty() || ours == theirs;
}

// What a path's part begins with, up to what is not written out.
std::string_view written_head(std::string_view part) {
  return part.substr(0, part.find_first_of("<*?["));
}

// glob("run/experiment_*") lists nothing of "run/unet_<number>".
bool may_match(const Program& program, Ref pattern, Ref path) {
  const std::string listed = pitfalls::path_form(program, pattern);
  const std::string made = pitfalls::path_form(program, path);
  const auto depth = std::count(listed.begin(), listed.end(), '/');
  if (listed.empty() || depth != std::count(made.begin(), made.end(), '/')) return true;
  const std::string_view a = written_head(std::string_view(listed).substr(listed.rfind('/') + 1));
  const std::string_view b = written_head(std::string_view(made).substr(made.rfind('/') + 1));
  return a.starts_with(b) || b.starts_with(a);
}

// len(os.listdir(root)), max(numbers) + 1, int(runs[-1].split("_")[-1]) + 1
bool is_next_number(const Program& program, Ref node, Ref path) {
  const CallRef call = program.as_call(node);
  if (!call || call.receiver()) return false;
  const std::string_view name = call.call->name;
  if (name != "len" && name != "max" && name != "int") return false;
  const Ref of = call.positional(0);
  if (!of) return false;
  if (name != "len") {
    const auto& tree = node.module->tree();
    const NodeId up = tree[node.node].parent;
    if (tree[up].kind != Kind::binary || tree[up].op != Op::add) {
      const std::string_view around = node.module->text(pitfalls::statement_of(node).node);
      if (!contains(around, "+ 1") && !contains(around, "+1")) return false;
    }
  }
  auto behind = pitfalls::facts::calls_behind(program, of);
  behind.push_back(of);
  return std::any_of(behind.begin(), behind.end(), [&](Ref each) {
    const CallRef listing = program.as_call(each);
    if (!listing || !lists_files(listing) || !may_list_place_of(program, listing, path))
      return false;
    const bool is_pattern = listing.call->path == "glob.glob" || listing.call->path == "glob.iglob";
    return !is_pattern || !listing.positional(0) || may_match(program, listing.positional(0), path);
  });
}

// while os.path.exists(out): out = next_name(): something of the condition changes, and nobody
// waits for the file.
bool looks_for_a_free_name(const Module& module, NodeId loop) {
  const auto& tree = module.tree();
  if (tree[loop].kind != Kind::while_statement) return false;
  const Ref whole{&module, loop};
  const std::string_view condition = whole.child(Field::condition).text();
  if (!asks_whether_there(condition) || condition.starts_with("not ") ||
      contains(condition, " not ") || contains(whole.text(), "sleep("))
    return false;
  const Ref body = whole.child(Field::body);
  for (NodeId at = body.node; at < tree[body.node].last; ++at)
    if (tree[at].kind == Kind::assignment || tree[at].kind == Kind::augmented_assignment)
      if (const Ref name = Ref{&module, at}.child(Field::left); contains(condition, name.text()))
        return true;
  return false;
}

// A name in the condition, path or self.path, is given its value by the loop: another one in each
// round.
bool is_of_round(const Program& program, Ref condition, Ref loop) {
  if (program.innermost_loop(condition) != loop) return false;
  const Module& module = *condition.module;
  const auto& tree = module.tree();
  for (NodeId at = condition.node; at < tree[condition.node].last; ++at) {
    if (tree[at].kind != Kind::identifier) continue;
    for (const bool is_attribute : {false, true})
      for (const auto index : module.defs_of(tree.text(at), is_attribute))
        if (tree.contains(loop.node, module.defs()[index].target)) return true;
  }
  return false;
}

// for n in range(2, 9999): if not os.path.exists(f"{root}{n}"): break, or return it; not where the
// round goes on with what is there.
bool takes_a_free_number(const Program& program, Ref leave) {
  const Ref loop = program.innermost_loop(leave);
  if (!loop || loop.kind() != Kind::for_statement) return false;
  const std::string_view over = loop.child(Field::right).text();
  if (!over.starts_with("range(") && !contains(over, "count(")) return false;
  const auto& tree = leave.module->tree();
  NodeId last = leave.node;  // the statement of the loop that it stands in
  while (tree[tree[last].parent].parent != loop.node && last != 0) last = tree[last].parent;
  if (tree[last].next_sibling != kNoNode) return false;
  // return n - 1: the last that is there.
  if (leave.kind() == Kind::return_statement && contains(leave.text(), "- 1")) return false;
  const auto guards = program.guards(leave);
  if (guards.empty()) return false;
  const Ref condition = guards.front().condition;
  return tree.contains(loop.node, condition.node) && asks_whether_there(condition.text()) &&
         condition.text().starts_with("not ") == guards.front().holds &&
         is_of_round(program, condition, loop);
}

// A name that is looked for is looked for to be used.
std::vector<Ref> free_names(const Left& left) {
  std::vector<Ref> out;
  for (const Module* module : left.program.modules()) {
    for (const NodeId loop : module->loops())
      if (looks_for_a_free_name(*module, loop) && left.runs_on_every_rank({module, loop}))
        out.push_back(Ref{module, loop}.child(Field::condition));
    for (const auto& nodes :
         {module->nodes_of(Kind::break_statement), module->nodes_of(Kind::return_statement)})
      for (const NodeId node : nodes)
        if (const Ref leave{module, node};
            takes_a_free_number(left.program, leave) && left.runs_on_every_rank(leave))
          out.push_back(leave);
  }
  return out;
}

}  // namespace

void tell_names_by_clock(Left& left) {
  std::vector<Ref> places = clocks_of_options(left);
  for (const Ref& clock : clocks_of_fields(left, places_made(left, false))) places.push_back(clock);
  for (const Module* module : left.program.modules()) {
    if (!module->tree().holds("time")) continue;
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      const Ref path = place_made(left.program, call);
      if (!path || !left.runs_on_every_rank(call.ref())) continue;
      for (const Ref& clock : clocks_behind(left.program, path)) places.push_back(clock);
    }
  }
  left.tell(
      Harm::figures, places,
      "each rank names its output by its own clock: ranks that read it a second apart write to "
      "different places. Take the name on rank 0 and send it with "
      "dist.broadcast_object_list, or name it before the launch.");
}

void tell_names_by_draw(Left& left) {
  std::vector<Ref> places;
  for (const Ref& path : places_made(left, false)) {
    if (pitfalls::says_any(path.text(), {"tmp", "temp"}) || left.program.innermost_loop(path))
      continue;
    for (const Ref& draw : draws_behind(left.program, path)) places.push_back(draw);
  }
  left.tell(Harm::figures, places,
            "each rank draws a name of its own here, and writes its output to a place of its own. "
            "Draw it on rank 0 and send it with dist.broadcast_object_list, or name it before the "
            "launch.");
}

void tell_names_by_number(Left& left) {
  std::vector<Ref> places = free_names(left);
  for (const Ref& path : places_made(left, true)) {
    auto behind = pitfalls::facts::calls_behind(left.program, path);
    behind.push_back(path);
    for (const Ref& each : behind)
      if (is_next_number(left.program, each, path)) places.push_back(each);
  }
  left.tell(Harm::figures, places,
            "each rank takes the next free name for its output: one that comes after another has "
            "made the directory or file takes another name, and ranks write to different places. "
            "Choose it on rank 0 and send it with dist.broadcast_object_list.");
}

}  // namespace bench::diagnose
