// What a run picks by a name that it makes: a class of a file that is imported by such a name, of a
// registry, of the names of this file. Each that may be picked is a source, in programs that want
// to see all of them (ProgramInput::follows_look_ups).
#include "diagnose/model/resolver.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMostPicked = 12;  // of more, a zoo, none is looked at
constexpr int kMostStars = 2;            // files that hand on what others offer

struct Offered {
  const Module* file;
  const Def* def;
};

bool is_at_top(const Def& def, DefKind kind) { return def.scope == 0 && def.kind == kind; }

void add_offered(const Module& file, DefKind kind, std::vector<Offered>& out) {
  for (const Def& def : file.defs())
    if (is_at_top(def, kind) &&
        std::none_of(out.begin(), out.end(), [&](const Offered& each) { return each.def == &def; }))
      out.push_back({&file, &def});
}

// register for "@register('gan')", MODELS.register for "@MODELS.register()".
std::string_view decorator_name(std::string_view text) {
  text.remove_prefix(std::min<std::size_t>(text.find_first_not_of("@ "), text.size()));
  return text.substr(0, text.find_first_of("( \n#"));
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string_view first_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : last_part(name.substr(0, dot));
}

// X[name] = cls stands in these: def register(name): def keep(cls): MODELS[name] = cls.
std::vector<std::string_view> fillers_of(const Program& program, std::string_view registry) {
  std::vector<std::string_view> out;
  for (const Module* module : program.modules())
    for (const std::uint32_t index : module->item_defs_of(registry)) {
      FunctionRef around = program.enclosing_function({module, module->defs()[index].target});
      while (around) {
        out.push_back(around.function->name);
        const NodeId scope = around.function->scope;
        const Function* const outer = scope == 0 ? nullptr : module->function_at(scope);
        around = outer == nullptr ? FunctionRef{} : FunctionRef{module, outer};
      }
    }
  return out;
}

// Classes under @MODELS.register(...), or under a decorator that stores them in MODELS.
std::vector<Offered> registered_in(const Program& program, Ref registry) {
  const std::string_view name = last_part(registry.text());
  const auto fillers = fillers_of(program, registry.text());
  std::vector<Offered> out;
  for (const Module* module : program.modules())
    for (const Def& def : module->defs()) {
      if (def.kind != DefKind::class_definition) continue;
      const SyntaxTree& tree = module->tree();
      const NodeId around = tree[def.target].parent;
      if (tree[around].kind != Kind::decorated) continue;
      for (NodeId at = tree[around].first_child; at != kNoNode; at = tree[at].next_sibling) {
        if (tree[at].kind != Kind::decorator) continue;
        const std::string_view by = decorator_name(tree.text(at));
        if (first_part(by) == name ||
            std::find(fillers.begin(), fillers.end(), last_part(by)) != fillers.end())
          out.push_back({module, &def});
      }
    }
  return out;
}

// eval(name)(options): what it gives is called on the spot. eval("models." + name) says more than a
// name of the file.
bool is_called_at_once(const CallRef& call) {
  const Kind said = call.positional(0).kind();
  if (said == Kind::binary || said == Kind::string || said == Kind::call) return false;
  const SyntaxTree& tree = call.module->tree();
  return tree[call.call->node].field == Field::function;
}

// The text where the name is written out; the default of an option is not what a run gives.
std::optional<std::string> literal(Ref name) { return name.module->tree().string_value(name.node); }

// models.__dict__, vars(models)
Ref whose_names(const Program& program, Ref container) {
  if (container.kind() == Kind::attribute)
    return container.child(Field::attribute).text() == "__dict__" ? container.child(Field::object)
                                                                  : Ref{};
  const CallRef call = program.as_call(container);
  return call && call.call->name == "vars" && !call.receiver() ? call.positional(0) : Ref{};
}

// The class of which `cls` has to be one: issubclass(cls, Base) in the loop.
ClassRef asked_base(const Program& program, Ref name, Ref loop) {
  for (const CallRef& test : program.calls_named("issubclass")) {
    if (test.module != name.module || test.positional(0).text() != name.text() ||
        !test.module->tree().contains(loop.node, test.call->node))
      continue;
    for (const Source& source : program.sources(test.positional(1)))
      if (source.ref.kind() == Kind::class_definition)
        return {source.ref.module, source.ref.module->class_at(source.ref.node)};
  }
  return {};
}

}  // namespace

// The files of the program that the object may be.
std::vector<const Module*> Resolver::modules_of(Ref object) const {
  std::vector<const Module*> out;
  const auto add = [&](Ref each) {
    if (const auto known = program_.input_.looked_up.find({each.module, each.node});
        known != program_.input_.looked_up.end())
      out.insert(out.end(), known->second.begin(), known->second.end());
    if (each.kind() != Kind::identifier && each.kind() != Kind::attribute) return;
    const std::string path = each.module->qualified(each.node);
    const Module* const file = path.empty() ? nullptr : program_.import_target(*each.module, path);
    if (file != nullptr && std::find(out.begin(), out.end(), file) == out.end())
      out.push_back(file);
  };
  add(object);
  if (out.empty())
    for (const Source& source : program_.sources(object)) {
      add(source.ref);
      if (source.how != Source::How::loop_item || source.ref.kind() == Kind::call) continue;
      for (const Source& list : program_.sources(source.ref))  // for module in modules
        if (list.ref.kind() == Kind::list || list.ref.kind() == Kind::tuple)
          for (NodeId at = list.ref.module->tree()[list.ref.node].first_child; at != kNoNode;
               at = list.ref.module->tree()[at].next_sibling)
            add(list.ref.with(at));
    }
  return out;
}

// The classes of the files and those that they hand on; functions where there is no class. True
// where some are.
bool Resolver::follow_offered(const std::vector<const Module*>& files, ClassRef base, int depth,
                              Functions which) {
  std::vector<Offered> classes;
  std::vector<Offered> functions;
  const auto hand_on = [&](const Module& file, std::string_view name) {
    const std::string_view path = file.import_path(name);
    const std::size_t dot = path.rfind('.');
    const Module* const from =
        dot == std::string_view::npos ? nullptr : program_.import_target(file, path.substr(0, dot));
    if (from == nullptr) return;
    for (const std::uint32_t index : from->defs_of(path.substr(dot + 1), false))
      if (const Def& def = from->defs()[index]; is_at_top(def, DefKind::class_definition))
        classes.push_back({from, &def});
  };
  std::vector<std::pair<const Module*, int>> pending;
  for (const Module* file : files) pending.emplace_back(file, 0);
  for (std::size_t i = 0; i < pending.size() && classes.size() <= kMostPicked; ++i) {
    const auto [file, stars] = pending[i];
    add_offered(*file, DefKind::class_definition, classes);
    if (stars == 0) add_offered(*file, DefKind::function, functions);
    if (!base)
      for (const Def& def : file->defs())
        if (is_at_top(def, DefKind::import) && stars == 0) hand_on(*file, def.name);
    if (stars == kMostStars || base) continue;
    for (const NodeId star : file->nodes_of(Kind::wildcard_import)) {
      const auto& tree = file->tree();
      const Module* const target = program_.import_target(
          *file, tree.text(tree.child(tree[star].parent, Field::module_name)));
      if (target != nullptr) pending.emplace_back(target, stars + 1);
    }
  }
  if (base)
    std::erase_if(classes, [&](const Offered& each) {
      const auto& line = program_.lineage({each.file, each.file->class_at(each.def->target)});
      return std::find(line.begin(), line.end(), base) == line.end();
    });
  const bool is_function = classes.empty() && which == Functions::too;
  const auto& picked = is_function ? functions : classes;
  if (picked.empty() || picked.size() > kMostPicked) return false;
  for (const Offered& each : picked) follow_def(*each.file, *each.def, -1, depth + 1);
  return true;
}

// getattr(models, name), eval(name)(options), MODELS.get(name)
bool Resolver::follow_looked_up_call(const CallRef& call, int depth) {
  if (!program_.input_.follows_look_ups || depth > kMaxDepth) return false;
  const std::string_view name = call.call->name;
  if (name == "getattr" && call.positional(1) && call.positional(0).text() != "self") {
    const auto files = modules_of(call.positional(0));
    const auto written = literal(call.positional(1));
    return written ? follow_class_of(files, *written, depth) : follow_offered(files, {}, depth);
  }
  if (name == "eval" && !call.receiver() && call.positional(0) && is_called_at_once(call) &&
      !literal(call.positional(0)))
    return follow_offered({call.module}, {}, depth, Functions::left_out);
  if (name == "get" && call.receiver() && call.positional(0) && !literal(call.positional(0)))
    return follow_looked_up_item(call.receiver(), depth);
  return false;
}

// The class of this name in each of the files.
bool Resolver::follow_class_of(const std::vector<const Module*>& files, std::string_view name,
                               int depth) {
  bool found = false;
  for (const Module* file : files)
    for (const std::uint32_t index : file->defs_of(name, false))
      if (const Def& def = file->defs()[index]; is_at_top(def, DefKind::class_definition)) {
        follow_def(*file, def, -1, depth + 1);
        found = true;
      }
  return found;
}

// lib.Trainer after lib = importlib.import_module("trainers." + name)
bool Resolver::follow_looked_up_attribute(Ref object, std::string_view name, int depth) {
  if (!program_.input_.follows_look_ups || program_.input_.looked_up.empty() || depth > kMaxDepth ||
      !program_.functions_by_name_.contains(name) ||
      (object.kind() != Kind::call && object.kind() != Kind::identifier))
    return false;
  return follow_class_of(modules_of(object), name, depth);
}

// models.__dict__[name], globals()[name], MODELS[name]
bool Resolver::follow_looked_up_item(Ref container, int depth) {
  if (!program_.input_.follows_look_ups || depth > kMaxDepth) return false;
  if (const Ref object = whose_names(program_, container))
    return follow_offered(modules_of(object), {}, depth);
  if (const CallRef call = program_.as_call(container))
    return call.call->name == "globals" &&
           follow_offered({container.module}, {}, depth, Functions::left_out);
  if (!stands_for_object(container)) return false;
  const auto found = registered_in(program_, container);
  if (found.size() > kMostPicked) return false;
  for (const Offered& each : found) follow_def(*each.file, *each.def, -1, depth + 1);
  return !found.empty();
}

// for name, cls in lib.__dict__.items(): if ... and issubclass(cls, Base)
void Resolver::follow_looked_up_round(Ref iterable, Ref target, int depth) {
  if (!program_.input_.follows_look_ups || depth > kMaxDepth) return;
  const CallRef call = program_.as_call(iterable);
  if (!call) return;
  const bool is_members = call.call->name == "getmembers";
  const Ref object =
      is_members ? call.positional(0)
                 : (call.call->name == "items" ? whose_names(program_, call.receiver()) : Ref{});
  if (!object) return;
  const Ref loop = iterable.with((*iterable.module)[iterable.node].parent);
  follow_offered(modules_of(object), asked_base(program_, target, loop), depth);
}

}  // namespace bench::diagnose
