#include "diagnose/model/kinds.hpp"

#include "diagnose/model/library_parameters.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <span>

namespace bench::diagnose {
namespace {

constexpr auto kKinds =
    std::to_array<Api>({Api::ddp, Api::apex_ddp, Api::data_parallel, Api::distributed_sampler,
                        Api::data_loader, Api::optimizer, Api::scheduler});
constexpr std::size_t kByNameOnly = std::numeric_limits<std::size_t>::max();
constexpr int kMaxLevels = 8;

bool is_wrapper(Api api) {
  return api == Api::ddp || api == Api::apex_ddp || api == Api::data_parallel;
}

// super().__init__(...), super(Loader, self).__init__(...), DataLoader.__init__(self, ...). Nothing
// where there are several, or where the object is given the base's attributes past it.
CallRef call_of_base(FunctionRef init) {
  const Module& module = *init.module;
  const SyntaxTree& tree = module.tree();
  CallRef only;
  for (const Call& call : module.calls()) {
    if (!tree.contains(init.function->body, call.node)) continue;
    if (call.name == "__setattr__") return {};
    const CallRef found{&module, &call};
    if (call.name != "__init__" || !found.receiver()) continue;
    if (only) return {};
    only = found;
  }
  return only;
}

std::shared_ptr<const HandedToBase> handed_to_base(const Program& program, ClassRef cls,
                                                   int depth = 0) {
  const auto& line = program.lineage(cls);
  const auto owner = std::find_if(line.begin(), line.end(), [](const ClassRef& each) {
    return each.module->method(*each.cls, "__init__") != nullptr;
  });
  if (owner == line.end() || depth > kMaxLevels) return nullptr;
  auto made = std::make_shared<HandedToBase>();
  made->module = owner->module;
  made->init = owner->module->method(*owner->cls, "__init__");
  if (const CallRef base = call_of_base({made->module, made->init})) {
    made->call = base.call->node;
    made->names_self = !base.receiver().text().starts_with("super(");
  }
  for (const ClassRef& base : program.bases_of(*owner))
    if (!(base == cls) && (made->next = handed_to_base(program, base, depth + 1))) break;
  return made;
}

// One call on the way from the program's call to the library's class, and what its arguments are
// the parameters of.
struct Level {
  const Module* module = nullptr;
  NodeId call = kNoNode;
  bool names_self = false;
  const Function* init = nullptr;  // that the call stands in; null for the program's call
};

std::vector<Level> levels_of(const CallRef& call) {
  std::vector<Level> out{{call.module, call.call->node, false, nullptr}};
  for (const HandedToBase* at = call.call->handed.get(); at != nullptr; at = at->next.get())
    out.push_back({at->module, at->call, at->names_self, at->init});
  return out;
}

// Where the parameter stands among those that a call gives; self is none of them.
std::size_t place_of(const Function& init, std::string_view name) {
  for (std::size_t i = 1; i < init.parameters.size(); ++i)
    if (init.parameters[i].name == name && init.parameters[i].splat == 0) return i - 1;
  return kByNameOnly;
}

// How many parameters of a call stand above *args.
std::size_t before_splat(const Function& init) {
  const auto at = std::find_if(init.parameters.begin(), init.parameters.end(),
                               [](const Parameter& each) { return each.splat == '*'; });
  const auto count = static_cast<std::size_t>(at - init.parameters.begin());
  return count == 0 ? 0 : count - 1;
}

bool is_given_anew(const Level& level, std::string_view name) {
  const auto& defs = level.module->defs_of(name, false);
  return std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const Def& def = level.module->defs()[index];
    return def.kind != DefKind::parameter && def.scope == level.init->node &&
           def.target < level.call;
  });
}

NodeId given_at(const Level& level, std::size_t index, std::string_view name) {
  const NodeId by_name = level.module->keyword(level.call, name);
  if (by_name != kNoNode || index == kByNameOnly) return by_name;
  return level.module->positional(level.call, index + (level.names_self ? 1 : 0));
}

// What *args and **kwargs of the call carry on from the call above it.
std::pair<std::size_t, bool> passed_on(const Level& level, std::size_t index) {
  const SyntaxTree& tree = level.module->tree();
  const NodeId list = tree.child(level.call, Field::arguments);
  std::size_t plain = 0;
  bool any = false;
  bool items = false;
  for (NodeId at = list == kNoNode ? kNoNode : tree[list].first_child; at != kNoNode;
       at = tree[at].next_sibling) {
    const Kind kind = tree[at].kind;
    items = items || kind == Kind::list_splat;
    any = any || kind == Kind::list_splat || kind == Kind::dictionary_splat;
    if (kind != Kind::list_splat && kind != Kind::dictionary_splat &&
        kind != Kind::keyword_argument && !items)
      ++plain;
  }
  if (level.names_self && plain > 0) --plain;
  if (!items || index == kByNameOnly || index < plain) return {kByNameOnly, any};
  return {index - plain + before_splat(*level.init), any};
}

// kwargs["sampler"] = ..., kwargs.update(...): what goes on is not what came. `key` is the argument
// that is asked for, which kwargs.pop("shuffle") takes out; any where it is empty.
bool is_changed_above(const Level& level, std::string_view splat, std::string_view key) {
  const SyntaxTree& tree = level.module->tree();
  const std::size_t begin = tree[level.init->body].begin;
  const std::string_view above = tree.source().substr(begin, tree[level.call].begin - begin);
  const std::string name(splat);
  const auto is_name = [](char c) {
    return c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  };
  for (std::size_t at = above.find(name); at != std::string_view::npos;
       at = above.find(name, at + 1)) {
    if (at > 0 && is_name(above[at - 1])) continue;
    const std::string_view rest = above.substr(at + name.size());
    if (rest.starts_with(".setdefault(") || rest.starts_with(".update(") ||
        rest.starts_with(" = ") || rest.starts_with(" |= "))
      return true;
    // complete(kwargs) and options = kwargs may change it under another name.
    const char before = at == 0 ? ' ' : above[at - 1];
    const bool ends = rest.empty() || rest[0] == ',' || rest[0] == ')' || rest[0] == '\n';
    if (ends && (before == '(' || above.substr(0, at).ends_with("= ") ||
                 above.substr(0, at).ends_with(", ")))
      return true;
    if (!key.empty() && rest.starts_with(".pop(") &&
        rest.substr(0, rest.find(')')).find(key) != std::string_view::npos)
      return true;
    const std::size_t closed = rest.starts_with("[") ? rest.find(']') : std::string_view::npos;
    if (closed != std::string_view::npos && rest.substr(closed + 1).starts_with(" = ")) return true;
  }
  return false;
}

// The same of any *args or **kwargs that the call hands on.
bool hands_on_changed(const Level& level, std::string_view key) {
  const SyntaxTree& tree = level.module->tree();
  const NodeId list = tree.child(level.call, Field::arguments);
  for (NodeId at = list == kNoNode ? kNoNode : tree[list].first_child; at != kNoNode;
       at = tree[at].next_sibling)
    if ((tree[at].kind == Kind::list_splat || tree[at].kind == Kind::dictionary_splat) &&
        is_changed_above(level, level.module->text(tree[at].first_child), key))
      return true;
  return false;
}

}  // namespace

Ref argument_of_base(const CallRef& call, std::size_t index, std::string_view name) {
  const std::vector<Level> levels = levels_of(call);
  std::string wanted(name);
  for (std::size_t at = levels.size(); at-- > 0;) {
    const Level& level = levels[at];
    if (level.call == kNoNode) return {};
    const Ref value{level.module, given_at(level, index, wanted)};
    if (level.init == nullptr) return value ? value : Ref{};
    if (!value) {
      const auto [place, goes_on] = passed_on(level, index);
      if (!goes_on || hands_on_changed(level, wanted)) return {};
      index = place;
      continue;
    }
    const std::size_t place =
        value.kind() == Kind::identifier ? place_of(*level.init, value.text()) : kByNameOnly;
    if (place == kByNameOnly || is_given_anew(level, value.text())) return value;
    index = place;
    wanted = value.text();
    const Level& above = levels[at - 1];
    if (above.call == kNoNode || given_at(above, index, wanted) == kNoNode) {
      const auto& parameter = level.init->parameters[place + 1];
      if (parameter.default_value != kNoNode && above.init == nullptr)
        return {level.module, parameter.default_value};
    }
  }
  return {};
}

bool base_has_splat(const CallRef& call) {
  for (const Level& level : levels_of(call)) {
    if (level.call == kNoNode) return true;
    if (!level.module->has_splat(level.call)) continue;
    if (level.init == nullptr) return true;
    // **kwargs of __init__ itself hand on what the call above shows.
    const SyntaxTree& tree = level.module->tree();
    const NodeId list = tree.child(level.call, Field::arguments);
    for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling) {
      if (tree[at].kind != Kind::list_splat && tree[at].kind != Kind::dictionary_splat) continue;
      const std::string_view carried = level.module->text(tree[at].first_child);
      const auto& parameters = level.init->parameters;
      if (std::none_of(
              parameters.begin(), parameters.end(),
              [&](const Parameter& each) { return each.splat != 0 && each.name == carried; }) ||
          is_changed_above(level, carried, {}))
        return true;
    }
  }
  return false;
}

std::vector<Api> kinds_of_callable(const Program& program, Ref callable) {
  std::vector<Api> out;
  const auto add = [&](Api api) {
    if (is_wrapper(api) && std::find(out.begin(), out.end(), api) == out.end()) out.push_back(api);
  };
  for (const Source& source : program.sources(callable)) {
    if (source.how != Source::How::value && source.how != Source::How::unknown) continue;
    add(source.ref.module->api(source.ref.node));
    // partial(DDP, device_ids=[gpu])
    const CallRef made = program.as_call(source.ref);
    if (made && made.call->name == "partial" && made.positional(0))
      add(made.module->api(made.positional(0).node));
  }
  return out;
}

namespace {

// make(...) for a variable, table["ddp"](...), choose()(...): what is called is no plain name of a
// function, class or import.
bool may_hold_class(const Module& module, const Call& call) {
  const Kind kind = module[call.function].kind;
  const bool is_attribute = kind == Kind::attribute;
  if (is_attribute || kind == Kind::identifier) {
    if (is_attribute && !module.text(call.function).starts_with("self.")) return false;
    const auto& defs = module.defs_of(call.name, is_attribute);
    if (std::none_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
          const DefKind def = module.defs()[index].kind;
          return def == DefKind::assign || def == DefKind::parameter;
        }))
      return false;
  } else if (kind != Kind::subscript && kind != Kind::call) {
    return false;
  }
  return module.positional_count(call.node) > 0 || module.keyword(call.node, "module") != kNoNode ||
         module.has_splat(call.node);
}

constexpr std::string_view kCopyOfWrapper = ".DataParallel";

// DataParallel(model, device_ids=gpus) of a file that is not there: a copy of torch's, by its name
// and what it is given.
bool is_unseen_copy(const Program& program, const CallRef& call) {
  return call.call->path.ends_with(kCopyOfWrapper) && call.keyword("device_ids") &&
         !program.class_of_call(call) && !program.callee(call);
}

}  // namespace

const std::vector<std::uint32_t>& Module::unclear_calls() const {
  return unclear_calls_.get([&] {
    std::vector<std::uint32_t> out;
    for (std::uint32_t index = 0; index < calls_.size(); ++index) {
      const Call& call = calls_[index];
      if (call.api == Api::none && call.function != kNoNode &&
          (call.path.ends_with(kCopyOfWrapper) || may_hold_class(*this, call)))
        out.push_back(index);
    }
    return out;
  });
}

void Program::add_kind(const CallRef& made, const std::vector<Api>& kinds,
                       std::shared_ptr<const HandedToBase> handed) {
  Call& known = made_by_other_names_.emplace_back(*made.call);
  known.api = kinds.front();
  known.handed = std::move(handed);
  kinds_[made.call] = &known;
  for (const Api api : kinds)
    by_api_[static_cast<std::size_t>(api)].push_back({made.module, &known});
}

void Program::index_kinds() {
  std::unordered_map<const Class*, Api> classes;
  std::set<std::string_view> names;
  for (const Module* module : modules())
    for (const Class& cls : module->classes())
      for (const Api api : kKinds)
        if (!cls.bases.empty() && derives_from({module, &cls}, api)) {
          classes.emplace(&cls, api);
          names.insert(cls.name);
        }
  const bool wraps = std::any_of(modules().begin(), modules().end(), [](const Module* module) {
    return module->tree().holds("DataParallel") || module->tree().holds("DDP");
  });
  if (classes.empty() && !wraps) return;
  const bool known_before = !kinds_.empty();
  const auto is_named = [&](const Module& module, const Call& call) {
    if (names.contains(call.name)) return true;
    const std::string_view path = module.import_path(call.name);
    return names.contains(path.substr(path.rfind('.') + 1));
  };
  for (const Module* module : modules()) {
    const std::span<const std::uint32_t> unclear =
        wraps ? std::span(module->unclear_calls()) : std::span<const std::uint32_t>{};
    auto next = unclear.begin();
    for (std::uint32_t index = 0; index < module->calls().size(); ++index) {
      const bool is_unclear = next != unclear.end() && *next == index;
      if (is_unclear) ++next;
      if (!is_unclear && names.empty()) continue;
      const Call& call = module->calls()[index];
      if (call.api != Api::none || call.function == kNoNode || !may_run(*module, call)) continue;
      const CallRef made{module, &call};
      if (is_named(*module, call)) {
        const ClassRef cls = class_of_call(made);
        const auto kind = cls ? classes.find(cls.cls) : classes.end();
        if (kind != classes.end()) add_kind(made, {kind->second}, handed_to_base(*this, cls));
      } else if (is_unclear && is_unseen_copy(*this, made)) {
        add_kind(made, {Api::data_parallel}, nullptr);
      } else if (is_unclear && may_hold_class(*module, call)) {
        const auto kinds = kinds_of_callable(*this, {module, call.function});
        if (!kinds.empty()) add_kind(made, kinds, nullptr);
      }
    }
  }
  if (kinds_.empty() == !known_before) return;
  // What has been found of values and calls does not know of them yet.
  resolved_.clear();
  call_sites_.clear();
  callees_.clear();
  fields_.clear();
  tested_.clear();
}

}  // namespace bench::diagnose
