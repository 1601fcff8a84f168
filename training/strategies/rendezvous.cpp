#include "training/strategies/rendezvous.hpp"

#include "bench/core/error.hpp"

#include "training/devices/vgpu_process_group.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace bench::training {
namespace {

// torchrun's agent serves the store itself and sets this variable; every rank is then a client.
bool agent_serves_store() {
  const char* value = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return value != nullptr && std::strcmp(value, "True") == 0;
}

std::string endpoint(const RankContext& ranks) {
  return ranks.master_addr + ":" + std::to_string(ranks.master_port);
}

// All ranks on this machine: collectives need no interface but loopback.
bool single_node(const RankContext& ranks) { return ranks.local_world_size == ranks.world_size; }

// Names the missing ranks, which the store's own time-out message does not.
void wait_for_ranks(c10d::Store& store, const RankContext& ranks,
                    std::chrono::milliseconds timeout) {
  const auto key = [](int rank) { return "arrived/" + std::to_string(rank); };
  store.set(key(ranks.rank), std::string("1"));
  std::vector<std::string> keys;
  for (int rank = 0; rank < ranks.world_size; ++rank) keys.push_back(key(rank));
  try {
    store.wait(keys, timeout);
  } catch (const std::exception&) {
    std::string missing;
    for (int rank = 0; rank < ranks.world_size; ++rank) {
      if (!store.check({key(rank)}))
        missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
    throw MachineError("rank " + missing + " of " + std::to_string(ranks.world_size) +
                       " did not reach " + endpoint(ranks) + " within " +
                       std::to_string(timeout.count() / 1000) + " s");
  }
}

// `Group` as it is, with a timer around the collectives of a training step.
template <class Group>
class Timed final : public Group {
 public:
  template <class... Arguments>
  explicit Timed(std::shared_ptr<CommunicationTimer> timer, Arguments&&... arguments)
      : Group(std::forward<Arguments>(arguments)...), timer_(std::move(timer)) {}

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return timer_->issue(TimedCollective::all_reduce, bytes_of(tensors),
                         [&] { return Group::allreduce(tensors, options); });
  }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return timer_->issue(TimedCollective::broadcast, bytes_of(tensors),
                         [&] { return Group::broadcast(tensors, options); });
  }

 private:
  static std::uint64_t bytes_of(const std::vector<at::Tensor>& tensors) {
    std::uint64_t bytes = 0;
    for (const auto& tensor : tensors) bytes += tensor.nbytes();
    return bytes;
  }

  std::shared_ptr<CommunicationTimer> timer_;
};

template <class Group, class Options>
c10::intrusive_ptr<c10d::Backend> make_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                               const RankContext& ranks, const Options& options,
                                               const std::shared_ptr<CommunicationTimer>& timer) {
  if (timer == nullptr) {
    return c10::make_intrusive<Group>(store, ranks.rank, ranks.world_size, options);
  }
  return c10::make_intrusive<Timed<Group>>(timer, store, ranks.rank, ranks.world_size, options);
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                            const RankContext& ranks,
                                            const std::shared_ptr<CommunicationTimer>& timer) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->timeout = rendezvous_timeout();
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr) {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
  } else if (single_node(ranks)) {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  } else {
    options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  }
  return make_backend<c10d::ProcessGroupGloo>(store, ranks, options, timer);
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                            const RankContext& ranks,
                                            const std::shared_ptr<CommunicationTimer>& timer) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = rendezvous_timeout();
  return make_backend<c10d::ProcessGroupNCCL>(store, ranks, options, timer);
}

}  // namespace

std::chrono::milliseconds rendezvous_timeout() {
  const char* text = std::getenv("BENCH_RENDEZVOUS_TIMEOUT");
  if (text == nullptr || *text == '\0') return kRendezvousTimeout;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds > 0) || seconds > 86'400) {
    throw UsageError(std::string("BENCH_RENDEZVOUS_TIMEOUT=") + text +
                     ": expected seconds above 0 and up to 86400");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

c10::intrusive_ptr<c10d::Store> connect_store(const RankContext& ranks,
                                              std::chrono::milliseconds timeout) {
  if (ranks.master_port == 0) {
    throw UsageError("MASTER_PORT is not set: with WORLD_SIZE=" + std::to_string(ranks.world_size) +
                     " the ranks meet at MASTER_ADDR:MASTER_PORT, the same for all of them");
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(ranks.master_port);
  options.isServer = ranks.rank == 0 && !agent_serves_store();
  options.numWorkers = ranks.world_size;
  options.waitWorkers = false;
  options.timeout = timeout;
  c10::intrusive_ptr<c10d::Store> store;
  try {
    store = c10::make_intrusive<c10d::TCPStore>(ranks.master_addr, options);
  } catch (const std::exception& error) {
    const bool in_use = std::strstr(error.what(), "EADDRINUSE") != nullptr;
    throw MachineError(in_use
                           ? endpoint(ranks) + " is in use: set MASTER_PORT to a free port"
                           : "rank " + std::to_string(ranks.rank) + " cannot reach the store at " +
                                 endpoint(ranks) + ": " + error.what());
  }
  store = c10::make_intrusive<c10d::PrefixStore>("bench", store);
  wait_for_ranks(*store, ranks, timeout);
  return store;
}

c10::intrusive_ptr<c10d::ProcessGroup> connect_group(
    const c10::intrusive_ptr<c10d::Store>& store, const RankContext& ranks, c10::Device device,
    const std::string& key, const std::shared_ptr<CommunicationTimer>& timer) {
  using Group = c10d::ProcessGroup;
  auto keyed = c10::make_intrusive<c10d::PrefixStore>(key, store);
  if (device.is_privateuseone()) {
    VgpuGroupOptions options;
    options.timeout = rendezvous_timeout();
    return make_process_group(keyed, ranks.rank, ranks.world_size, options);
  }
  auto group = c10::make_intrusive<Group>(keyed, ranks.rank, ranks.world_size);
  // With more ranks than GPUs NCCL refuses to work; Gloo reduces CUDA tensors too, if slowly.
  const char* forced = std::getenv("BENCH_CUDA_TRANSPORT");
  const bool nccl = device.is_cuda() && (forced == nullptr || std::strcmp(forced, "gloo") != 0);
  const auto type = nccl ? Group::BackendType::NCCL : Group::BackendType::GLOO;
  group->setBackend(device.type(), type,
                    nccl ? make_nccl(keyed, ranks, timer) : make_gloo(keyed, ranks, timer));
  if (nccl) {
    auto host = c10::make_intrusive<c10d::PrefixStore>("host", keyed);
    group->setBackend(c10::DeviceType::CPU, Group::BackendType::GLOO,
                      make_gloo(host, ranks, nullptr));
  }
  group->setDefaultBackend(type);
  group->setGroupName(key);
  group->setGroupDesc("bench");
  return group;
}

}  // namespace bench::training
