#include "training/devices/operator_facts.hpp"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace bench::training {
namespace {

ArgumentKind kind_of(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (type->kind() == c10::TypeKind::TensorType) return ArgumentKind::tensor;
  if (type->kind() == c10::TypeKind::DeviceObjType) return ArgumentKind::device;
  if (auto list = type->cast<c10::ListType>()) {
    const auto element = list->getElementType();
    if (element->kind() == c10::TypeKind::TensorType) return ArgumentKind::tensor_list;
    if (auto optional = element->cast<c10::OptionalType>();
        optional && optional->getElementType()->kind() == c10::TypeKind::TensorType) {
      return ArgumentKind::optional_tensor_list;
    }
  }
  return ArgumentKind::other;
}

// A kernel of its own or a composite one. Meta's backend fallback, which only raises an error,
// makes hasComputedKernelForDispatchKey() true for every operator.
bool has_meta_kernel(const c10::OperatorHandle& op) {
  for (const c10::DispatchKey key :
       {c10::DispatchKey::Meta, c10::DispatchKey::CompositeExplicitAutograd,
        c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
        c10::DispatchKey::CompositeImplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return true;
  }
  return false;
}

std::unique_ptr<OperatorFacts> read_facts(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  auto facts = std::make_unique<OperatorFacts>();
  facts->name = schema.name();
  facts->overload = schema.overload_name();
  for (const c10::Argument& argument : schema.arguments()) {
    facts->arguments.push_back(kind_of(argument));
    facts->written.push_back(argument.alias_info() && argument.alias_info()->isWrite());
    facts->writes_arguments |= facts->written.back();
  }
  facts->return_count = schema.returns().size();
  facts->takes_cpu_indices = facts->name.find("index") != std::string::npos;
  facts->cost = find_cost_rule(facts->name);
  facts->shape = find_shape_rule(facts->name);
  facts->has_meta_kernel = has_meta_kernel(op);
  return facts;
}

}  // namespace

const OperatorFacts& facts_of(const c10::OperatorHandle& op) {
  const c10::FunctionSchema* key = &op.schema();
  thread_local std::unordered_map<const c10::FunctionSchema*, const OperatorFacts*> cache;
  if (const auto found = cache.find(key); found != cache.end()) return *found->second;
  static std::mutex mutex;
  static auto* all =
      new std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OperatorFacts>>;
  std::scoped_lock lock(mutex);
  auto& facts = (*all)[key];
  if (!facts) facts = read_facts(op);
  cache[key] = facts.get();
  return *facts;
}

}  // namespace bench::training
