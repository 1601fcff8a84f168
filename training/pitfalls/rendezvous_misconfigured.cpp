// Rendezvous that cannot succeed: a port that another job has, a world size that nobody fills, a
// rank that never comes. Stores of PyTorch's own on loopback, with a short time-out.
#include "training/pitfalls/state_experiments.hpp"
#include "training/strategies/rendezvous.hpp"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <thread>

namespace bench::training {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};  // with ranks that never come

c10d::TCPStoreOptions options_of(int port, int world_size) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.numWorkers = world_size;
  options.timeout = kRendezvousTimeout;
  return options;
}

// Does not wait for workers.
c10::intrusive_ptr<c10d::TCPStore> serve(int port, int world_size) {
  c10d::TCPStoreOptions options = options_of(port, world_size);
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

int free_port() { return serve(0, 1)->getPort(); }

void shared_port(Lab& lab) {
  const auto first_job = serve(0, 1);
  const int port = lab.cured() ? 0 : first_job->getPort();
  Json& evidence = lab.evidence();
  evidence["port_shared"] = !lab.cured();
  evidence["joined"] = lab.attempt([&] { serve(port, 1); }) ? 1 : 0;
}

// Rank 0 serves and waits for `world_size` ranks while `started` processes come in all.
void incomplete_world(Lab& lab, int world_size, int started) {
  Json& evidence = lab.evidence();
  evidence["world_size_expected"] = world_size;
  evidence["processes_started"] = started;
  lab.attempt([&] {
    const auto store = serve(0, world_size);
    // They join at once and do not wait for each other; however long that takes here.
    for (int rank = 1; rank < started; ++rank)
      c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options_of(store->getPort(), world_size));
    store->setTimeout(kPatience);
    store->waitForWorkers();
  });
}

// As this program's own rendezvous reports it: which rank is missing, and by when.
void missing_rank(Lab& lab) {
  const RankContext rank0{.rank = 0,
                          .local_rank = 0,
                          .world_size = 2,
                          .local_world_size = 2,
                          .master_addr = "127.0.0.1",
                          .master_port = free_port()};
  RankContext rank1 = rank0;
  rank1.rank = rank1.local_rank = 1;
  std::thread other;
  const std::chrono::milliseconds patience = lab.cured() ? kRendezvousTimeout : kPatience;
  if (lab.cured()) other = std::thread([=] { connect_store(rank1, patience); });
  lab.evidence()["world_size_expected"] = rank0.world_size;
  lab.evidence()["processes_started"] = lab.cured() ? 2 : 1;
  lab.attempt([&] { connect_store(rank0, patience); });
  if (other.joinable()) other.join();
}

}  // namespace

void rendezvous_misconfigured(Lab& lab) {
  const auto begin = std::chrono::steady_clock::now();
  if (lab.form() == "port-in-use") shared_port(lab);
  if (lab.form() == "wrong-world-size") incomplete_world(lab, lab.cured() ? 2 : 3, 2);
  if (lab.form() == "rank-missing") missing_rank(lab);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  lab.evidence()["rendezvous_seconds"] = took.count();
}

}  // namespace bench::training
