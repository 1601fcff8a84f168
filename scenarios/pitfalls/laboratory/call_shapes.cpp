#include "scenarios/pitfalls/laboratory/call_shapes.hpp"

namespace bench::pitfalls {
namespace {

std::vector<Json> array_items(const Json* array) {
  if (array == nullptr || !array->is_array()) return {};
  return std::vector<Json>(array->begin(), array->end());
}

// The tensors in what a call returned: itself, or those of a list, at any depth.
void add_tensors(const Json& shape, std::vector<Json>& out) {
  if (shape.is_array()) out.push_back(shape);
  if (const Json* items = list_items(shape))
    for (const Json& item : *items) add_tensors(item, out);
}

}  // namespace

CallShapes call_shapes(const RunEvidence& run) {
  CallShapes call;
  if (run.gpus() < 2) return call;
  call.inputs = array_items(run.first("inputs"));
  for (const Json& replica : array_items(run.first("replica_inputs")))
    call.replicas.push_back(array_items(&replica));
  if (const Json* outputs = run.first("outputs")) add_tensors(*outputs, call.outputs);
  return call;
}

std::int64_t leading_dim(const Json& shape) {
  const bool has_one = shape.is_array() && !shape.empty() && shape[0].is_number_integer();
  return has_one ? shape[0].get<std::int64_t>() : 0;
}

const Json* list_items(const Json& shape) {
  if (!shape.is_object()) return nullptr;
  const auto items = shape.find("list");
  return items != shape.end() && items->is_array() ? &*items : nullptr;
}

std::int64_t rows_computed(const CallShapes& call, std::size_t argument) {
  std::int64_t rows = 0;
  for (const std::vector<Json>& replica : call.replicas)
    if (argument < replica.size()) rows += leading_dim(replica[argument]);
  return rows;
}

}  // namespace bench::pitfalls
