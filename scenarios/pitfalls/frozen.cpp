#include "scenarios/pitfalls/frozen.hpp"

#include "scenarios/pitfalls/facts.hpp"

#include <string_view>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::Module;

namespace {

// teacher for teacher.module
std::string_view bare(std::string_view name) {
  constexpr std::string_view kInner = ".module";
  return name.ends_with(kInner) ? name.substr(0, name.size() - kInner.size()) : name;
}

// The name whose parameters the loop variable goes over.
std::string_view owner_of(const Program& program, Ref parameter) {
  for (const diagnose::Source& source : program.sources(parameter)) {
    const CallRef call = program.as_call(source.ref);
    if (source.how == diagnose::Source::How::loop_item && call && call.call->name == "parameters" &&
        call.receiver())
      return bare(call.receiver().text());
  }
  return {};
}

}  // namespace

bool is_frozen(const Program& program, Ref object) {
  const std::string_view name = bare(object.text());
  bool frozen = false;
  for (const Module* module : program.modules()) {
    for (const std::uint32_t index : module->defs_of("requires_grad", true)) {
      const Def& def = module->defs()[index];
      const Ref target{module, def.target};
      if (owner_of(program, target.child(Field::object)) != name) continue;
      if (!program.is_literal_false({module, def.value})) return false;
      frozen = true;
    }
  }
  for (const CallRef& call : program.calls_named("requires_grad_")) {
    if (!call.receiver() || bare(call.receiver().text()) != name) continue;
    if (!program.is_literal_false(call.positional(0))) return false;
    frozen = true;
  }
  return frozen;
}

}  // namespace bench::pitfalls
