// What an experiment of the pitfall laboratory works with: its place among the ranks, tiny models,
// and the evidence that it leaves. One experiment is one function; `cured()` says whether to make
// the mistake or to apply the fix, everything else being equal.
#pragma once

#include "bench/core/job.hpp"
#include "bench/launch/worker_protocol.hpp"

#include "training/models/network.hpp"
#include "training/models/zoo_model.hpp"
#include "training/strategies/distributed.hpp"
#include "training/strategies/trainer.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace bench::training {

using Json = nlohmann::json;

class Lab {
 public:
  Lab(const Job& job, Placement placement, WorkerChannel& channel);
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  ~Lab();

  bool cured() const { return job_.cured; }
  std::string form() const { return job_.form; }
  std::uint64_t seed() const { return job_.work.seed; }
  int rank() const { return placement_.rank; }
  int world_size() const { return placement_.world_size; }
  const std::vector<at::Device>& devices() const { return placement_.devices; }
  at::Device device() const { return placement_.devices.at(0); }
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const { return placement_.group; }

  // What this rank shows; keys are those of scenarios/pitfalls/laboratory/run_evidence.hpp. Every
  // collective is logged under "collectives" by itself.
  Json& evidence() { return evidence_; }
  // Writes the evidence so far: what is known of a rank that hangs or dies afterwards. From here on
  // every collective is written as it is issued.
  void publish_eagerly();
  void publish();

  // Tells the parent where this rank is; a hang is reported with it.
  void phase(const std::string& name) { channel_.phase(name); }
  void heartbeat() { channel_.heartbeat(); }
  // The process stays, busy with something else, until the parent ends it: what a rank does that
  // has left the training loop while others wait for it.
  void stay();

  // Runs `work`; an exception becomes evidence "error", in its own words. True when none came.
  bool attempt(const std::function<void()>& work);

  // A tiny model on this rank's device, equal on all ranks for equal seeds.
  std::unique_ptr<ZooModel> model(const Network::Build& build, std::uint64_t seed) const;
  std::unique_ptr<Distributed> wrap(Model& model, const DdpOptions& options = {}) const;
  // The sum over all ranks of one number, by an all-reduce.
  double all_reduce_sum(double value) const;

 private:
  // PyTorch's warnings on the driving thread, each time they are raised, as evidence "warnings".
  class Warnings final : public c10::WarningHandler {
   public:
    explicit Warnings(Json& evidence) : evidence_(evidence) {}
    void process(const c10::Warning& warning) override {
      evidence_["warnings"].push_back(warning.msg());
    }

   private:
    Json& evidence_;
  };

  const Job& job_;
  Placement placement_;
  WorkerChannel& channel_;
  Json evidence_;
  Warnings warnings_{evidence_};
  c10::WarningUtils::WarningHandlerGuard warnings_guard_{&warnings_};
  c10::WarningUtils::WarnAlways warn_always_;
  std::mutex writing_;
  bool eager_ = false;
};

// forward() of a wrapped module, as in Python `ddp(x)`.
at::Tensor call(Distributed& ddp, const at::Tensor& input, bool synchronise = true);

// Ones of this shape, times rank + 1: with them, 64 and 128 are the sums of the weight gradients of
// linear(4, 4) for a batch of 4 on two ranks, and 96 is their mean.
at::Tensor rank_input(const Lab& lab, std::vector<std::int64_t> sizes = {4, 4});
// The sum of the first parameter's gradient, and of its values.
double gradient_sum(const Model& model);
double weight_sum(const Model& model);
// All-reduces that the rank has issued so far.
int all_reduces(Lab& lab);

// Plain gradient descent: parameters -= rate * gradient, for those that have one.
void descend(const Model& model, double rate);
void clear_gradients(const Model& model);

}  // namespace bench::training
