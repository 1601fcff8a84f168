#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Wrap;

namespace {

std::string name_of(const Wrap& wrap) {
  return wrap.own ? std::string{} : std::string(wrap.call.call->path);
}

// BalancedDataParallel(4, model), DataParallel of torch_geometric: not the class of torch.
bool is_of_another_package(const Wrap& wrap) {
  const std::string name = name_of(wrap);
  return wrap.kind == diagnose::Wrapper::data_parallel && !name.empty() &&
         !name.starts_with("torch.");
}

// DataParallel of a file that is not there: it may hand attributes on. What projects copy by other
// names, and torch_geometric's, do not.
bool is_unknown_copy(const Wrap& wrap) {
  const std::string name = name_of(wrap);
  return is_of_another_package(wrap) && name.ends_with(".DataParallel") &&
         !name.starts_with("torch_geometric.");
}

bool is_given_in_class(const diagnose::ClassRef& cls, std::string_view attribute) {
  const auto& module = *cls.module;
  const auto is_inside = [&](std::uint32_t index) {
    return module.tree().contains(cls.cls->node, module.defs()[index].target);
  };
  const auto& own = module.defs_of(attribute, true);
  const auto& fields = module.defs_of(attribute, false);
  return std::any_of(own.begin(), own.end(), is_inside) ||
         std::any_of(fields.begin(), fields.end(), [&](std::uint32_t index) {
           return module.defs()[index].scope == cls.cls->node;
         });
}

}  // namespace

bool defines(const Program& program, const Wrap& wrap, std::string_view method) {
  return wrap.own && program.method(wrap.own, method);
}

bool hands_attributes_on(const Program& program, const Wrap& wrap) {
  return defines(program, wrap, "__getattr__") || defines(program, wrap, "__getattribute__");
}

Ref handed_on_by(const Program& program, const CallRef& call) {
  const Ref object = call.receiver();
  const Wrap* wrap = object ? program.wrap_of(object, diagnose::Wrapper::ddp) : nullptr;
  static constexpr std::string_view kOfWrapper[] = {
      "parameters", "named_parameters", "train",           "eval",    "to",  "cuda", "zero_grad",
      "no_sync",    "state_dict",       "load_state_dict", "forward", "join"};
  if (wrap == nullptr || !hands_attributes_on(program, *wrap) ||
      defines(program, *wrap, call.call->name) ||
      std::find(std::begin(kOfWrapper), std::end(kOfWrapper), call.call->name) !=
          std::end(kOfWrapper))
    return {};
  return object;
}

namespace {

bool may_have(const Program& program, const Wrap& wrap, std::string_view attribute) {
  if (!wrap.own) return is_unknown_copy(wrap);
  const auto& line = program.lineage(wrap.own);
  return defines(program, wrap, attribute) || hands_attributes_on(program, wrap) ||
         std::any_of(line.begin(), line.end(),
                     [&](const auto& cls) { return is_given_in_class(cls, attribute); });
}

}  // namespace

bool has_wrapper_with(const Program& program, std::string_view attribute) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(),
                     [&](const Wrap& wrap) { return may_have(program, wrap, attribute); });
}

bool has_wrapper_with(const Program& program, std::string_view attribute, Ref object) {
  bool known = false;
  for (const diagnose::Source& source : program.module_sources(object)) {
    const Wrap* wrap = program.wrap_made_by(source.ref);
    if (wrap == nullptr) continue;
    known = true;
    if (may_have(program, *wrap, attribute)) return true;
  }
  return !known && has_wrapper_with(program, attribute);
}

bool cuts_batches_itself(const Program& program, const Wrap& wrap) {
  return defines(program, wrap, "scatter") || defines(program, wrap, "forward") ||
         is_of_another_package(wrap);
}

bool gathers_itself(const Program& program, const Wrap& wrap) {
  return defines(program, wrap, "gather") || defines(program, wrap, "forward") ||
         is_of_another_package(wrap);
}

}  // namespace bench::pitfalls
