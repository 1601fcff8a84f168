// Models that are trained beside the wrapped one.
#include "diagnose/to_ddp/remaining_topics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// The same object by another name: one of its sources is one of the other's.
bool shares_source(const Program& program, Ref a, Ref b) {
  const auto& first = program.module_sources(a);
  const auto& second = program.module_sources(b);
  return std::any_of(first.begin(), first.end(), [&](const Source& each) {
    return std::any_of(second.begin(), second.end(),
                       [&](const Source& other) { return each.ref == other.ref; });
  });
}

// The object is what a wrapper holds, a layer within it, or one that its class was given.
bool is_in_wrapper(const Program& program, Ref object) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    if (!wrap.module || wrap.module.text() == object.text() ||
        shares_source(program, object, wrap.module))
      return true;
    const auto classes = pitfalls::facts::wrapped_classes(program, wrap);
    for (const Source& source : program.module_sources(object)) {
      const ClassRef home = program.enclosing_class(source.ref);
      if (home && std::find(classes.begin(), classes.end(), home) != classes.end()) return true;
    }
    for (const Source& source : program.module_sources(wrap.module))
      for (const CallRef& inner : pitfalls::facts::calls_in(source.ref))
        for (const Argument& given : inner.module->arguments(inner.call->node))
          if (inner.module->text(given.value) == object.text() ||
              shares_source(program, object, {inner.module, given.value}))
            return true;
  }
  return false;
}

// A module that is made in sight, and nothing else that the name may be.
bool is_module(const Program& program, Ref object) {
  const auto& sources = program.module_sources(object);
  return !sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return source.how == Source::How::value && made &&
           (program.derives_from(program.class_of_call(made), Api::module_class) ||
            (made.call->path.starts_with("torch.nn.") && made.call->api != Api::ddp &&
             made.call->api != Api::data_parallel));
  });
}

// discriminator of Adam(discriminator.parameters()), which no wrapper holds.
std::vector<Ref> bare_models_of(const Program& program, const CallRef& optimizer) {
  std::vector<Ref> out;
  const Ref given = optimizer.argument(0, "params");
  if (!given) return out;
  auto calls = pitfalls::facts::calls_in(given);
  for (const Source& source : program.sources(given))
    for (const CallRef& each : pitfalls::facts::calls_in(source.ref)) calls.push_back(each);
  for (const CallRef& call : calls) {
    const Ref object = call.receiver();
    if ((call.call->name != "parameters" && call.call->name != "named_parameters") || !object ||
        program.wrap_of(object) != nullptr || contains(object.text(), ".module") ||
        !is_module(program, object) || is_in_wrapper(program, object) ||
        pitfalls::is_frozen(program, object))
      continue;
    out.push_back(object);
  }
  return out;
}

}  // namespace

void tell_bare_models(Left& left) {
  const auto& wraps = left.program.wraps();
  if (std::none_of(wraps.begin(), wraps.end(),
                   [](const Wrap& wrap) { return wrap.kind == Wrapper::ddp; }))
    return;
  for (const CallRef& optimizer : left.program.calls(Api::optimizer)) {
    if (!left.runs_on_every_rank(optimizer.ref())) continue;
    for (const Ref& model : bare_models_of(left.program, optimizer))
      left.tell(
          Harm::stops, {model},
          "`" + std::string(model.text()) +
              "` is trained without a wrapper: every rank steps it with the gradients of its "
              "own data, and the copies drift apart. Wrap it in DistributedDataParallel, too.");
  }
}

}  // namespace bench::diagnose
