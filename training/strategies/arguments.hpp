// What a module is called with and what it returns, under DataParallel: containers are walked as
// torch.nn.parallel's scatter, scatter_kwargs and gather walk them. Shards of several tensors are
// paired until the shortest runs out; tensors in a list are cut one by one; what is no tensor is
// copied whole to every replica.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

namespace bench::training {

struct Arguments {
  std::vector<at::IValue> positional;
  std::vector<std::pair<std::string, at::IValue>> keywords;
};

// One value for each replica, in the order of `devices`; fewer where tensors have fewer chunks.
std::vector<at::IValue> scatter_value(const at::IValue& value,
                                      const std::vector<at::Device>& devices);

// One call for each replica. Throws parallel_apply's AssertionError, in its words, where the
// keywords have fewer shards than the positional arguments.
std::vector<Arguments> scatter_arguments(const Arguments& arguments,
                                         const std::vector<at::Device>& devices);

// The replicas' outputs as one on `device`: tensors along dimension 0, whatever that is, containers
// element by element.
at::IValue gather_value(const std::vector<at::IValue>& outputs, at::Device device);

}  // namespace bench::training
