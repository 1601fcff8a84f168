#include "scenarios/pitfalls/program/paths.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Source;

namespace {

constexpr int kPathDepth = 6;

// Methods that give another path.
bool gives_path(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"resolve", "absolute", "expanduser", "joinpath", "with_suffix", "with_name", "relative_to"});
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// What an expression is made of, from its names to what they are given. Only so many are looked at:
// a script may give one name a value a thousand times.
class Paths {
 public:
  explicit Paths(const Program& program) : program_(program) {}

  bool is_path(Ref at, int depth) {
    constexpr std::size_t kMost = 128;
    if (!at || depth > kPathDepth || seen_.size() > kMost || !seen_.insert(at).second) return false;
    if (is_path_itself(at, depth)) return true;
    const auto& sources = program_.sources(at);
    return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      if (source.how == Source::How::argument) {  // add_argument("--out", type=Path)
        const Ref type = program_.as_call(source.ref).keyword("type");
        return type && type.module->qualified(type.node) == "pathlib.Path";
      }
      return source.how == Source::How::value && source.ref != at &&
             is_path_itself(source.ref, depth);
    });
  }

 private:
  bool is_path_itself(Ref at, int depth) {
    if (const CallRef call = program_.as_call(at)) {
      const std::string_view made = call.call->path;
      return made == "pathlib.Path" || made == "pathlib.PosixPath" || made == "pathlib.Path.cwd" ||
             made == "pathlib.Path.home" ||
             (call.receiver() && gives_path(call.call->name) &&
              is_path(call.receiver(), depth + 1));
    }
    if (at.kind() == Kind::binary && at.module->tree()[at.node].op == diagnose::Op::divide)
      return is_path(at.child(Field::left), depth + 1) ||
             is_path(at.child(Field::right), depth + 1);
    return at.kind() == Kind::attribute && at.child(Field::attribute).text() == "parent" &&
           is_path(at.child(Field::object), depth + 1);
  }

  const Program& program_;
  std::set<Ref> seen_;
};

}  // namespace

bool is_path(const Program& program, Ref expression) {
  return Paths(program).is_path(expression, 0);
}

Ref directory_made(const Program& program, const CallRef& make) {
  const std::string_view name = make.call->name;
  if (name == "copytree" && make.call->path == "shutil.copytree") return make.argument(1, "dst");
  if (name != "mkdir" && name != "makedirs") return {};
  if (make.call->path.starts_with("os."))
    return make.argument(0, name == "mkdir" ? "path" : "name");
  const Ref receiver = make.receiver();
  if (name != "mkdir" || !receiver) return {};
  // out.mkdir(parents=True): what makes a directory and is told no name is a path itself.
  const bool is_named_so = !make.positional(0) && !make.has_splat() && receiver.text() != "self" &&
                           !program.callee(make);
  return is_named_so || is_path(program, receiver) ? receiver : Ref{};
}

}  // namespace bench::pitfalls
