#include "scenarios/pitfalls/wrappers/named_buffers.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Wrap;

namespace {

// These architectures have BatchNorm, and so buffers, or keep the indices of positions in one.
bool says_buffers(std::string_view name) {
  return says_any(name,
                  {"resnet",    "resnext",   "densenet",  "mobilenet", "efficientnet", "shufflenet",
                   "cnn",       "inception", "googlenet", "deeplab",   "regnet",       "hrnet",
                   "yolo",      "tacotron",  "bert",      "qformer",   "gpt2",         "llama",
                   "unet",      "vgg_bn",    "segformer", "xception",  "tdnn",         "retinanet",
                   "centernet", "pspnet",    "darknet",   "hourglass", "convolutional"});
}

// The file in getattr(resnet, args.arch)(...).
Ref module_asked(const CallRef& made) {
  const CallRef chosen{made.module, made.module->call_at(made.call->function)};
  return chosen.call != nullptr && chosen.call->name == "getattr" ? chosen.positional(0) : Ref{};
}

// TinyBert.from_pretrained(path), whose class stands in the program, where nothing is a buffer.
bool is_seen_without_buffers(const Program& program, const CallRef& made) {
  if (program.uses(Api::batch_norm) || !program.calls_named("register_buffer").empty() ||
      !made.receiver())
    return false;
  const auto& sources = program.sources(made.receiver());
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [](const diagnose::Source& source) {
           return source.ref.kind() == diagnose::Kind::class_definition;
         });
}

}  // namespace

bool is_named_after_buffers(const Program& program, Ref model) {
  const auto& sources = program.module_sources(model);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef call = program.as_call(source.ref);
    if (!call || is_seen_without_buffers(program, call)) return false;
    const Ref file = module_asked(call);
    return says_buffers(call.call->name) || says_buffers(call.call->path) ||
           (file && says_buffers(file.module->qualified(file.node)));
  });
}

bool is_convolutional(const Program& program, const Wrap& wrap) {
  const auto& sources = program.module_sources(wrap.module);
  return wrap.classes.empty() &&
         std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef call = program.as_call(source.ref);
           return call && (call.keyword("in_channels") || call.keyword("input_channels") ||
                           call.keyword("n_channels") || call.keyword("img_channels"));
         });
}

bool is_named_after_buffers(const Program& program, const Wrap& wrap) {
  // isinstance(layer, nn.BatchNorm2d) in a script that does not define the layers.
  return wrap.classes.empty() &&
         (program.mentions("nn.BatchNorm") || is_named_after_buffers(program, wrap.module));
}

}  // namespace bench::pitfalls
