#include "training/pitfalls/lab.hpp"

#include "bench/core/error.hpp"

#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"
#include "training/devices/vgpu_process_group.hpp"

#include <c10/util/Exception.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

namespace bench::training {
namespace {

std::string own_words_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

}  // namespace

Lab::Lab(const Job& job, Placement placement, WorkerChannel& channel)
    : job_(job), placement_(std::move(placement)), channel_(channel) {
  evidence_ = Json::object();
  evidence_["collectives"] = Json::array();
  // A rank that has its connections could finish and close them while another still makes its own.
  if (placement_.group) placement_.group->barrier()->wait();
  observe_collectives([this](const CollectiveCall& call) {
    {
      const std::lock_guard lock(writing_);
      evidence_["collectives"].push_back(std::string(call.name) + " " +
                                         std::to_string(call.payload_bytes));
    }
    channel_.heartbeat();
    if (eager_) publish();
  });
}

Lab::~Lab() { observe_collectives({}); }

void Lab::publish_eagerly() {
  eager_ = true;
  publish();
}

void Lab::publish() {
  if (job_.evidence_file.empty()) return;
  const std::lock_guard lock(writing_);
  const std::string path = job_.evidence_file + ".rank" + std::to_string(rank()) + ".json";
  const std::string fresh = path + ".new";
  {
    std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
    out << evidence_.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (!out.flush()) throw MachineError(fresh + ": cannot write the evidence");
  }
  // A rank that is ended while it writes leaves the evidence before.
  if (std::rename(fresh.c_str(), path.c_str()) != 0)
    throw MachineError(path + ": cannot write the evidence");
}

void Lab::stay() {
  // The parent ends the run long before; the bound is for a worker that is run by hand.
  constexpr std::chrono::seconds kLongest{60};
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (std::chrono::steady_clock::now() < end) {
    channel_.heartbeat();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

bool Lab::attempt(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    evidence_["error"] = own_words_of(error);
    return false;
  }
}

std::unique_ptr<ZooModel> Lab::model(const Network::Build& build, std::uint64_t seed) const {
  auto model = std::make_unique<ZooModel>(build, seed);
  model->train(true);
  move_model(*model, device());
  return model;
}

std::unique_ptr<Distributed> Lab::wrap(Model& model, const DdpOptions& options) const {
  return std::make_unique<Distributed>(model, group(), options);
}

double Lab::all_reduce_sum(double value) const {
  std::vector<at::Tensor> tensors{torch::tensor({value}, torch::kFloat64)};
  tensors[0] = to_vgpu(tensors[0], device().index());
  group()->allreduce(tensors)->wait();
  return tensors[0].cpu().item<double>();
}

at::Tensor call(Distributed& ddp, const at::Tensor& input, bool synchronise) {
  IgnorePhases ignore;
  return ddp.forward(input, synchronise, ignore);
}

at::Tensor rank_input(const Lab& lab, std::vector<std::int64_t> sizes) {
  const at::Tensor values = torch::full(sizes, static_cast<float>(lab.rank() + 1));
  return to_vgpu(values, lab.device().index());
}

double gradient_sum(const Model& model) {
  const at::Tensor gradient = model.parameters().at(0).tensor.grad();
  return gradient.defined() ? gradient.sum().cpu().item<double>() : 0;
}

double weight_sum(const Model& model) {
  return model.parameters().at(0).tensor.detach().sum().cpu().item<double>();
}

int all_reduces(Lab& lab) {
  int count = 0;
  for (const Json& call : lab.evidence()["collectives"])
    if (call.get<std::string>().starts_with("all_reduce")) ++count;
  return count;
}

void descend(const Model& model, double rate) {
  const torch::NoGradGuard no_grad;
  for (const NamedTensor& parameter : model.parameters()) {
    const at::Tensor& gradient = parameter.tensor.grad();
    if (gradient.defined()) parameter.tensor.sub_(gradient, rate);
  }
}

void clear_gradients(const Model& model) {
  for (const NamedTensor& parameter : model.parameters())
    parameter.tensor.mutable_grad() = at::Tensor();
}

}  // namespace bench::training
