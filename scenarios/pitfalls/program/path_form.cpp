#include "scenarios/pitfalls/program/path_form.hpp"

#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::Source;

namespace {

// One path may be made of another, of others; and a broken script of all of them many times.
constexpr int kDepth = 10;
constexpr std::size_t kMostParts = 64;

class Spelling {
 public:
  explicit Spelling(const Program& program) : program_(program) {}

  std::string of(Ref at, int depth) {
    if (!at || depth > kDepth || ++parts_ > kMostParts) return mark(at);
    switch (at.kind()) {
      case Kind::string:
      case Kind::concatenated_string:
        return of_string(at, depth);
      case Kind::binary:
        return of_binary(at, depth);
      case Kind::call:
        return of_call(program_.as_call(at), at, depth);
      case Kind::identifier:
      case Kind::attribute:
        return of_name(at, depth);
      default:
        return mark(at);
    }
  }

 private:
  // The same for whatever has the value of that node.
  std::string mark(Ref at, int element = -1) {
    if (element == -1) return mark_in_path(at);
    const std::string of_module = std::to_string(reinterpret_cast<std::uintptr_t>(at.module));
    return "<" + of_module + ":" + std::to_string(at.node) + ":" + std::to_string(element) + ">";
  }

  // A parameter, which its caller gives, and an attribute have their names; a variable of several
  // values is another one in each function.
  std::string mark_of_name(Ref name) {
    const std::string text(name.text());
    const diagnose::FunctionRef function = program_.enclosing_function(name);
    if (name.kind() == Kind::attribute || !function) return "<" + text + ">";
    const auto& defs = name.module->defs_of(name.text(), false);
    const bool is_local = std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
      const diagnose::Def& def = name.module->defs()[index];
      return def.scope == function.function->node && def.kind != diagnose::DefKind::parameter;
    });
    return is_local ? mark({function.module, function.function->node}) + "<" + text + ">"
                    : "<" + text + ">";
  }

  std::string joined(const std::string& folder, const std::string& name) {
    if (folder.empty() || name.starts_with("/")) return name;
    return folder.ends_with("/") ? folder + name : folder + "/" + name;
  }

  // The text between the quotes, with the holes of an f-string filled in.
  std::string of_string(Ref at, int depth) {
    const auto& tree = at.module->tree();
    if (const auto text = tree.string_value(at.node)) return *text;
    if (at.kind() == Kind::concatenated_string) {
      std::string out;
      for (NodeId part = tree[at.node].first_child; part != kNoNode; part = tree[part].next_sibling)
        out += of(at.with(part), depth + 1);
      return out;
    }
    const std::string_view text = at.text();
    const std::size_t open = text.find_first_of("'\"");
    if (open == std::string_view::npos || text.size() < open + 2 ||
        text.substr(open).starts_with("\"\"\"") || text.substr(open).starts_with("'''"))
      return mark(at);
    std::string out;
    NodeId hole = tree[at.node].first_child;
    for (std::size_t i = open + 1; i + 1 < text.size(); ++i) {
      if (text[i] == '{' && text[i + 1] == '{') {
        out += text[i++];
      } else if (text[i] == '{' && hole != kNoNode) {
        const std::size_t end = tree[hole].end - tree[at.node].begin;
        const std::size_t close = text.find('}', end);
        if (close == std::string_view::npos) return mark(at);
        out += of(at.with(hole), depth + 1) + std::string(text.substr(end, close - end));
        while (hole != kNoNode && tree[hole].begin - tree[at.node].begin < close)
          hole = tree[hole].next_sibling;
        i = close;
      } else {
        out += text[i];
      }
    }
    return out;
  }

  std::string of_binary(Ref at, int depth) {
    const Ref left = at.child(Field::left);
    const Ref right = at.child(Field::right);
    switch (at.module->tree()[at.node].op) {
      case Op::add:
        return of(left, depth + 1) + of(right, depth + 1);
      case Op::divide:  // of pathlib
        return joined(of(left, depth + 1), of(right, depth + 1));
      case Op::modulo:
        return of_percent(left, right, at, depth);
      default:
        return mark(at);
    }
  }

  // "%s/epoch_%03d.pth" % (folder, epoch)
  std::string of_percent(Ref format, Ref given, Ref at, int depth) {
    const auto text = program_.string(format);
    if (!text) return mark(at);
    const auto& tree = given.module->tree();
    const bool several = given.kind() == Kind::tuple;
    NodeId next = several ? tree[given.node].first_child : given.node;
    std::string out;
    for (std::size_t i = 0; i < text->size(); ++i) {
      if ((*text)[i] != '%') {
        out += (*text)[i];
        continue;
      }
      const std::size_t begin = ++i;
      while (i < text->size() && std::isalpha(static_cast<unsigned char>((*text)[i])) == 0) ++i;
      if (next == kNoNode || i == text->size()) return mark(at);
      const std::string width = text->substr(begin, i - begin);
      out += of(given.with(next), depth + 1) + (width.empty() ? "" : ":" + width);
      next = several ? tree[next].next_sibling : kNoNode;
    }
    return out;
  }

  // "{}/{}.pth".format(folder, name)
  std::string of_format(const CallRef& call, Ref at, int depth) {
    const auto text = program_.string(call.receiver());
    if (!text || call.has_splat()) return mark(at);
    std::string out;
    std::size_t index = 0;
    for (std::size_t i = 0; i < text->size(); ++i) {
      if ((*text)[i] != '{') {
        out += (*text)[i];
        continue;
      }
      const std::size_t close = text->find('}', i);
      if (close == std::string::npos) return mark(at);
      const std::string hole = text->substr(i + 1, close - i - 1);
      const std::string name = hole.substr(0, hole.find(':'));
      const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
      if (is_number && name.size() > 2) return mark(at);
      const Ref given = name.empty() ? call.positional(index++)
                        : is_number  ? call.positional(static_cast<std::size_t>(std::stoi(name)))
                                     : call.keyword(name);
      if (!given) return mark(at);
      out += of(given, depth + 1) + hole.substr(name.size());
      i = close;
    }
    return out;
  }

  std::string of_call(const CallRef& call, Ref at, int depth) {
    if (!call || call.has_splat()) return mark(at);
    const std::string_view name = call.call->path;
    if (name == "os.path.join" || name == "pathlib.Path") {
      std::string out;
      for (std::size_t i = 0; const Ref part = call.positional(i); ++i)
        out = joined(out, of(part, depth + 1));
      return out;
    }
    for (const char* same : {"str", "os.path.abspath", "os.path.realpath", "os.path.expanduser",
                             "os.path.normpath", "os.fspath"})
      if (name == same || call.call->name == same)
        return call.positional(0) ? of(call.positional(0), depth + 1) : mark(at);
    if (call.call->name == "format" && call.receiver()) return of_format(call, at, depth);
    if ((call.call->name == "joinpath") && call.receiver() && call.positional(0))
      return joined(of(call.receiver(), depth + 1), of(call.positional(0), depth + 1));
    return mark(at);
  }

  // What the name was given, where that is one thing; an option of the command line is one too.
  std::string of_name(Ref at, int depth) {
    const auto sources = program_.sources(at);
    if (sources.size() != 1) return mark_of_name(at);
    const Source& source = sources.front();
    if (source.how == Source::How::unknown) return mark_of_name(at);
    if (source.how == Source::How::value && source.ref != at) return of(source.ref, depth + 1);
    return mark(source.ref, source.element);
  }

  const Program& program_;
  std::size_t parts_ = 0;
};

}  // namespace

std::string mark_in_path(Ref parameter) {
  const std::string of_module = std::to_string(reinterpret_cast<std::uintptr_t>(parameter.module));
  return "<" + of_module + ":" + std::to_string(parameter.node) + ":-1>";
}

std::string path_form(const Program& program, Ref path) {
  if (!path) return {};
  std::string form = Spelling(program).of(path, 0);
  for (std::size_t at = form.find("//"); at != std::string::npos; at = form.find("//", at))
    form.erase(at, 1);
  while (form.starts_with("./")) form.erase(0, 2);
  return form;
}

}  // namespace bench::pitfalls
