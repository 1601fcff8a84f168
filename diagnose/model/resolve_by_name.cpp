// Attributes that a program gives and reads by their names: setattr(self, name, value) for the
// names of a list, getattr(self, "net" + name), getattr(loop, "run"). And those that another class
// of the line gives anew from what they were: self.model = DDP(self.model) of a mixin.
#include "diagnose/model/resolver.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMostNames = 16;

bool holds(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const auto is_name = [](char each) {
      return each == '_' || std::isalnum(static_cast<unsigned char>(each)) != 0;
    };
    if ((at == 0 || !is_name(text[at - 1])) && (end == text.size() || !is_name(text[end])))
      return true;
  }
  return false;
}

void add_strings(Ref list, std::string_view before, std::vector<std::string>& out) {
  const SyntaxTree& tree = list.module->tree();
  if (list.kind() != Kind::list && list.kind() != Kind::tuple) return;
  for (NodeId at = tree[list.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (const auto text = tree.string_value(at); text && out.size() < kMostNames)
      if (const std::string name = std::string(before) + *text;
          std::find(out.begin(), out.end(), name) == out.end())
        out.push_back(name);
}

// self.names = ["G", "D"] of the classes derived from that of the place, which has no names itself.
void add_strings_of_derived(const Program& program, Ref list, std::string_view before,
                            std::vector<std::string>& out) {
  const ClassRef base = program.enclosing_class(list);
  if (!base || list.kind() != Kind::attribute || list.child(Field::object).text() != "self") return;
  const auto& derived = program.derived_of(base);
  for (const auto& [module, def, object_text] :
       program.attribute_defs(list.child(Field::attribute).text())) {
    const Ref target{module, def->target};
    if (object_text == "self" && def->value != kNoNode &&
        std::find(derived.begin(), derived.end(), program.enclosing_class(target)) != derived.end())
      add_strings(target.with(def->value), before, out);
  }
}

// What `name` and "net" + name may be: a string, or those of the list that a loop goes over.
std::vector<std::string> written_names(const Program& program, Ref name) {
  std::vector<std::string> out;
  if (!name) return out;
  const SyntaxTree& tree = name.module->tree();
  if (const auto text = tree.string_value(name.node)) return {*text};
  std::string before;
  if (name.kind() == Kind::binary && tree[name.node].op == Op::add) {
    const auto text = tree.string_value(name.child(Field::left).node);
    if (!text) return out;
    before = *text;
    name = name.child(Field::right);
  }
  if (name.kind() != Kind::identifier) return out;
  for (const Source& source : program.sources(name)) {
    if (source.how == Source::How::value) {
      if (const auto text = source.ref.module->tree().string_value(source.ref.node);
          text && out.size() < kMostNames)
        out.push_back(before + *text);
    } else if (source.how == Source::How::loop_item && stands_for_object(source.ref)) {
      const std::size_t known = out.size();
      for (const Source& list : program.sources(source.ref)) add_strings(list.ref, before, out);
      if (out.size() == known) add_strings_of_derived(program, source.ref, before, out);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

// setattr(self, name, DDP(getattr(self, name))) in a method of the class.
void Resolver::follow_set_by_name(ClassRef owner, std::string_view name, int element, int depth) {
  if (depth > kMaxDepth) return;
  for (const CallRef& call : program_.calls_named("setattr")) {
    if (call.module != owner.module ||
        !call.module->tree().contains(owner.cls->node, call.call->node) ||
        call.positional(0).text() != "self")
      continue;
    const Ref value = call.positional(2);
    const auto names = written_names(program_, call.positional(1));
    if (value && std::find(names.begin(), names.end(), name) != names.end())
      follow(value, element, depth + 1);
  }
}

// getattr(self, name): the attributes that the names stand for; getattr(module, "run") of a file.
bool Resolver::follow_read_by_name(const CallRef& call, int element, int depth) {
  if (call.call->name != "getattr" || depth > kMaxDepth) return false;
  if (call.positional(0).text() != "self")
    return call.positional(1).kind() == Kind::string &&
           follow_imported(*call.module, call.module->qualified(call.call->node), element, depth);
  const ClassRef owner = program_.enclosing_class(call.ref());
  if (!owner) return false;
  const std::size_t before = progress();
  for (const std::string& name : written_names(program_, call.positional(1)))
    follow_class_attribute(owner, name, call.ref(), element, depth + 1);
  return progress() > before;
}

// self.model = DDP(self.model) in a method of the class.
void Resolver::follow_updates(ClassRef cls, std::string_view name, Ref use, int element,
                              int depth) {
  const Module& module = *cls.module;
  const std::string attribute = "self." + std::string(name);
  for (const std::uint32_t index : module.defs_of(name, true)) {
    const Def& def = module.defs()[index];
    if (def.kind != DefKind::assign || def.element >= 0 || def.value == kNoNode ||
        !module.tree().contains(cls.cls->node, def.target) || module.text(def.target) != attribute)
      continue;
    const CallRef made = program_.made_by({&module, def.value});  // also behind a name
    if (!made || made.module != &module || !holds(made.ref().text(), attribute)) continue;
    const bool is_here =
        use.module == &module && module.function_of(use.node) == module.function_of(def.target);
    if (!is_here) follow_def(module, def, element, depth);
  }
}

}  // namespace bench::diagnose
