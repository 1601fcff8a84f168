// The replicas of DataParallel: one module shell per device, whose parameters are given each step's
// copies and a gradient edge to the strategy's reduction, and give their memory back as soon as
// their gradient exists, as the replicas of Python's DataParallel do.
#pragma once

#include "training/models/model.hpp"
#include "training/strategies/coalesced.hpp"

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <vector>

namespace bench::training {

class Replicas {
 public:
  // Shells for `devices`; `master` is on devices[0].
  Replicas(const Model& master, std::vector<at::Device> devices);
  // A bound parameter and the edge of its gradient hold each other until a backward pass has run.
  ~Replicas() { release(); }
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  // Copies of the master's tensors for one step, [device][index in definition order].
  struct Copies {
    TensorGrid parameters;
    TensorGrid buffers;
  };
  // Binds the first copies.parameters.size() shells. edge(device, parameter) is where the gradient
  // of that copy of the master's trainable parameter goes.
  using EdgeOf = std::function<torch::autograd::Edge(std::size_t, std::size_t)>;
  void bind(const Copies& copies, const EdgeOf& edge);

  // Drops what the step before left bound, before new copies are made.
  void release();

  Model& operator[](std::size_t index) { return *shells_[index].model; }
  const std::vector<at::Device>& devices() const { return devices_; }
  // The master's own handles.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const std::vector<at::Tensor>& buffers() const { return buffers_; }
  std::int64_t module_count() const { return module_count_; }

 private:
  struct Shell {
    std::unique_ptr<Model> model;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> buffers;
  };

  std::vector<at::Device> devices_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  std::vector<Shell> shells_;
  std::int64_t module_count_ = 0;
};

// Aliases of `tensors` that do not share their autograd history.
std::vector<at::Tensor> aliases(const std::vector<at::Tensor>& tensors);

// `input` in chunks of ceil(B/N) along the batch, one per device and fewer when the batch is short:
// 9 on 8 devices gives 2,2,2,2,1. The first chunk stays a view when it is on its device already.
std::vector<at::Tensor> scatter(const at::Tensor& input, const std::vector<at::Device>& devices);

// One output on `device` from the replicas' outputs; backward scatters its gradient.
at::Tensor gather(const std::vector<at::Tensor>& outputs, at::Device device);

}  // namespace bench::training
