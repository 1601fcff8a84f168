#include "scenarios/pitfalls/files/model_saves.hpp"

#include "scenarios/pitfalls/files/path_of_call.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;

namespace {

// model.save_pretrained(path), told nothing about the process that writes. A tokenizer or a config
// is a small file that each process may well have, and the wrapper itself has no such method.
bool saves_pretrained_model(const Program& program, const CallRef& call) {
  if (!call.receiver() || !call.positional(0) || call.has_splat() ||
      facts::is_surely_wrapped(program, call.receiver()))
    return false;
  for (const char* told : {"is_main_process", "save_function"})
    if (call.keyword(told)) return false;
  // Weights that were gathered, as accelerator.get_state_dict(model) does; Hugging Face's Trainer
  // is asked for them to have them on the CPU.
  if (call.keyword("state_dict") && !program.uses(Api::hf_trainer)) return false;
  const std::string name = facts::lowered(diagnose::last_word(call.receiver()));
  // The trainer of a library knows its ranks: trainer = trlx.train(...).
  if (facts::contains(name, "trainer") && !program.callee(call)) return false;
  for (const char* small : {"token", "process", "config", "extractor", "scheduler", "tok"})
    if (facts::contains(name, small)) return false;
  return true;
}

// What writes a model to a file that it is given, beside torch.save.
constexpr PathOfCall kExporters[] = {
    {"torch.jit.save", 1, "f"},
    {"torch.onnx.export", 2, "f"},
    {"safetensors.torch.save_file", 1, "filename"},
    {"safetensors.torch.save_model", 1, "filename"},
};

const PathOfCall* exporter(const CallRef& call) {
  const std::string_view name = call.call->path;
  const auto* const found = std::find_if(std::begin(kExporters), std::end(kExporters),
                                         [&](const PathOfCall& each) { return each.name == name; });
  return found == std::end(kExporters) ? nullptr : found;
}

// pickle.dump(model.state_dict(), file)
bool pickles_a_state(const Program& program, const CallRef& call) {
  return call.call->name == "dump" && call.call->path == "pickle.dump" &&
         facts::contains(text_behind(program, call.positional(0)), "state_dict()");
}

}  // namespace

std::vector<CallRef> torch_saves_of(const Program& program) {
  return {program.calls(Api::torch_save).begin(), program.calls(Api::torch_save).end()};
}

Ref path_of(const CallRef& save) {
  if (save.call->api == Api::torch_save) return save.argument(1, "f");
  if (save.call->name == "dump") return save.positional(1);
  const PathOfCall* const known = exporter(save);
  return known != nullptr ? save.argument(known->index, known->keyword) : save.argument(0, "f");
}

std::vector<CallRef> saves_of(const Program& program) {
  std::vector<CallRef> out = torch_saves_of(program);
  for (const CallRef& call : program.calls_named("save_pretrained"))
    if (saves_pretrained_model(program, call)) out.push_back(call);
  for (const CallRef& call : program.calls_named("save")) {
    if (call.call->api != Api::none || !call.receiver()) continue;
    for (const Source& source : program.sources(call.receiver())) {
      const CallRef made = program.as_call(source.ref);
      const std::string_view name = made ? made.call->path : std::string_view();
      if (name == "torch.jit.script" || name == "torch.jit.trace") out.push_back(call);
    }
  }
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls())
      if (const CallRef call{module, &made};
          made.api == Api::none && (exporter(call) != nullptr || pickles_a_state(program, call)))
        out.push_back(call);
  return out;
}

}  // namespace bench::pitfalls
