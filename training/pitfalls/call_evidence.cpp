#include "training/pitfalls/call_evidence.hpp"

#include <map>

namespace bench::training {
namespace {

// Two sums of the same few float32 products in another order differ by far less, and outputs of two
// random samples by far more.
constexpr double kSameRow = 1e-4;

Json shapes_of_call(const Arguments& arguments) {
  Json shapes = Json::array();
  for (const at::IValue& value : arguments.positional) shapes.push_back(shapes_of(value));
  for (const auto& [name, value] : arguments.keywords) shapes.push_back(shapes_of(value));
  return shapes;
}

}  // namespace

Json shapes_of(const at::IValue& value) {
  if (value.isTensor()) return value.toTensor().sizes().vec();
  if (!value.isTuple() && !value.isList()) return nullptr;
  Json items = Json::array();
  if (value.isTuple()) {
    for (const at::IValue& item : value.toTupleRef().elements()) items.push_back(shapes_of(item));
  } else {
    for (const at::IValue& item : value.toListRef()) items.push_back(shapes_of(item));
  }
  return Json::object({{"list", items}});
}

at::IValue shown_call(Lab& lab, DataParallel& parallel, const Arguments& arguments,
                      const DataParallel::ReplicaForward& forward) {
  std::mutex mutex;
  std::map<int, Json> seen;  // by device
  const auto watched = [&](Model& replica, const Arguments& share) {
    {
      const std::lock_guard lock(mutex);
      seen[replica.parameters().at(0).tensor.device().index()] = shapes_of_call(share);
    }
    return forward(replica, share);
  };
  static IgnorePhases ignore;  // the backward pass, after this function, still refers to it
  at::IValue output;
  lab.evidence()["inputs"] = shapes_of_call(arguments);
  lab.attempt([&] { output = parallel.call(arguments, watched, ignore); });
  Json& replica_inputs = lab.evidence()["replica_inputs"];
  replica_inputs = Json::array();
  for (const auto& [device, shapes] : seen) replica_inputs.push_back(shapes);
  lab.evidence()["outputs"] = shapes_of(output);
  return output;
}

void compare_rows(Lab& lab, const at::Tensor& output, const at::Tensor& reference) {
  const at::Tensor own = output.detach().cpu().flatten(0, -2);
  const at::Tensor expected = reference.detach().cpu().flatten(0, -2);
  const at::Tensor apart = (own - expected).abs().amax(1).gt(kSameRow);
  lab.evidence()["rows_compared"] = own.size(0);
  lab.evidence()["rows_apart"] = apart.sum().item<std::int64_t>();
}

}  // namespace bench::training
