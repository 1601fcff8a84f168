#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;
using diagnose::Wrap;

namespace {

bool handles_prefix(const Program& program) {
  for (const std::string_view word :
       {"\"module.", "'module.", "consume_prefix", "unwrap_model", "de_parallel", ", 'module')",
        "[7:]", ".split('.')[1:]", ".split(\".\")[1:]", ", \"module\")"})
    if (program.mentions(word)) return true;
  return false;
}

// The checkpoint goes back into a wrapper of this program, so prefixes agree.
bool loads_into_wrapper(const Program& program) {
  for (const CallRef& load : program.calls_named("load_state_dict")) {
    const Ref object = load.receiver();
    if (!object) continue;
    if (program.wrap_of(object) != nullptr) return true;
    // A helper that restores what it is given: objects[key].load_state_dict(...).
    const auto sources = program.sources(object);
    if (object.kind() == diagnose::Kind::identifier && sources.size() == 1 &&
        (sources.front().how == Source::How::loop_item ||
         sources.front().how == Source::How::element))
      return true;
  }
  return false;
}

}  // namespace

void check_save_with_module_prefix(const Program& program, Report& report) {
  if (program.wraps().empty() || handles_prefix(program) || loads_into_wrapper(program)) return;
  for (const CallRef& save : program.calls(Api::torch_save)) {
    std::vector<CallRef> states = facts::calls_in(save.positional(0));
    for (const Source& source : program.sources(save.positional(0)))
      for (const CallRef& call : facts::calls_in(source.ref)) states.push_back(call);
    for (const CallRef& state : states) {
      if (state.call->name != "state_dict" || !state.receiver()) continue;
      const auto sources = program.module_sources(state.receiver());
      const bool wrapped =
          !sources.empty() &&
          std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
            return std::any_of(program.wraps().begin(), program.wraps().end(),
                               [&](const Wrap& wrap) { return wrap.call.ref() == source.ref; });
          });
      if (!wrapped) continue;
      Finding& finding = report.at(
          state.ref(), Confidence::likely,
          "the wrapper's state_dict has 'module.' before every key: a bare model finds missing and "
          "unexpected keys");
      finding.help = "Save model.module.state_dict().";
      const std::string receiver(state.receiver().text());
      replace(state.receiver(), receiver + ".module", "Save the wrapped model", finding);
      break;
    }
  }
}

}  // namespace bench::pitfalls
