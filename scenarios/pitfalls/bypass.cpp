#include "scenarios/pitfalls/bypass.hpp"

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Wrap;

const Wrap* wrapper_gone_round(const Program& program, const CallRef& call) {
  Ref object{call.module, call.call->function};
  if (const Ref receiver = call.receiver()) object = receiver;
  if (object.kind() != Kind::identifier) return nullptr;
  for (const diagnose::Source& source : program.sources(object)) {
    if (source.ref.kind() != Kind::attribute ||
        source.ref.child(Field::attribute).text() != "module")
      continue;
    const Wrap* wrap = program.wrap_of(source.ref.child(Field::object));
    if (wrap != nullptr && wrap->kind == diagnose::Wrapper::ddp) return wrap;
  }
  return nullptr;
}

}  // namespace bench::pitfalls
