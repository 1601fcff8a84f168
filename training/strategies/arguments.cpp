#include "training/strategies/arguments.hpp"

#include "training/strategies/replicas.hpp"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <limits>

namespace bench::training {
namespace {

using Values = std::vector<at::IValue>;

std::vector<at::IValue> items_of(const at::IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  return value.toListRef().vec();
}

// A container of the kind of `like` around these items.
at::IValue container_like(const at::IValue& like, Values items) {
  if (like.isTuple()) return c10::ivalue::Tuple::create(std::move(items));
  c10::impl::GenericList list(c10::AnyType::get());
  for (at::IValue& item : items) list.push_back(std::move(item));
  return list;
}

// zip(*columns, strict=False): row i has the i-th value of every column, and the shortest column
// says how many rows there are.
std::vector<Values> zip(const std::vector<Values>& columns) {
  std::size_t rows = std::numeric_limits<std::size_t>::max();
  for (const Values& column : columns) rows = std::min(rows, column.size());
  std::vector<Values> zipped(columns.empty() ? 0 : rows);
  for (std::size_t row = 0; row < zipped.size(); ++row)
    for (const Values& column : columns) zipped[row].push_back(column[row]);
  return zipped;
}

std::vector<Values> scatter_all(const Values& values, const std::vector<at::Device>& devices) {
  std::vector<Values> columns;
  for (const at::IValue& value : values) columns.push_back(scatter_value(value, devices));
  return zip(columns);
}

std::vector<at::Tensor> tensors_of(const Values& outputs) {
  std::vector<at::Tensor> tensors;
  for (const at::IValue& output : outputs) tensors.push_back(output.toTensor());
  return tensors;
}

// Gathers the i-th items of all outputs for every i. Python's zip is strict here.
at::IValue gather_items(const Values& outputs, at::Device device) {
  std::vector<Values> rows;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    rows.push_back(items_of(outputs[i]));
    TORCH_CHECK_VALUE(rows[i].size() == rows[0].size(), "zip() argument ", i + 1, " is ",
                      rows[i].size() < rows[0].size() ? "shorter" : "longer", " than argument 1");
  }
  Values gathered;
  for (const Values& column : zip(rows)) gathered.push_back(gather_value(column, device));
  return container_like(outputs[0], std::move(gathered));
}

}  // namespace

std::vector<at::IValue> scatter_value(const at::IValue& value,
                                      const std::vector<at::Device>& devices) {
  if (value.isTensor()) {
    const auto chunks = scatter(value.toTensor(), devices);
    return Values(chunks.begin(), chunks.end());
  }
  TORCH_CHECK_NOT_IMPLEMENTED(!value.isGenericDict(), "scatter of a dictionary");
  const Values items = value.isTuple() || value.isList() ? items_of(value) : Values();
  // Numbers, texts, None and empty containers.
  if (items.empty()) return Values(devices.size(), value);
  Values shards;
  for (Values& shard : scatter_all(items, devices))
    shards.push_back(container_like(value, std::move(shard)));
  return shards;
}

std::vector<Arguments> scatter_arguments(const Arguments& arguments,
                                         const std::vector<at::Device>& devices) {
  std::vector<Values> inputs = scatter_all(arguments.positional, devices);
  Values values;
  for (const auto& [name, value] : arguments.keywords) values.push_back(value);
  std::vector<Values> keywords = scatter_all(values, devices);
  // The second comparison is with the number of arguments, not of their shards, as in
  // scatter_kwargs: keywords are filled up where there are none, and rarely otherwise.
  if (inputs.size() < keywords.size()) {
    inputs.resize(keywords.size());
  } else if (keywords.size() < arguments.positional.size()) {
    keywords.resize(inputs.size());
  }
  TORCH_CHECK(inputs.size() == keywords.size(), "The number of modules ", inputs.size(),
              " is not equal to the number of kwargs_tup ", keywords.size());
  // A call without arguments runs on the first device.
  std::vector<Arguments> calls(std::max<std::size_t>(inputs.size(), 1));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    calls[i].positional = std::move(inputs[i]);
    for (std::size_t k = 0; k < keywords[i].size(); ++k)
      calls[i].keywords.emplace_back(arguments.keywords[k].first, std::move(keywords[i][k]));
  }
  return calls;
}

at::IValue gather_value(const std::vector<at::IValue>& outputs, at::Device device) {
  const at::IValue& first = outputs.at(0);
  if (first.isTensor()) return gather(tensors_of(outputs), device);
  if (first.isNone()) return first;
  TORCH_CHECK_TYPE(first.isTuple() || first.isList(), "'", first.tagKind(),
                   "' object is not iterable");
  return gather_items(outputs, device);
}

}  // namespace bench::training
