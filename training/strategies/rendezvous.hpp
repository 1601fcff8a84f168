// How the ranks of a `distributed` job find each other and what they talk over: a TCP store for the
// rendezvous, then NCCL for CUDA tensors, Gloo for CPU tensors, and the virtual GPUs' own backend.
#pragma once

#include "bench/launch/worker_protocol.hpp"

#include "training/devices/communication_timer.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace bench::training {

// Longest wait for the other ranks to arrive, and for one collective to end. A rank that has died
// is noticed by the launcher long before; this limit is for runs under another launcher.
inline constexpr std::chrono::seconds kRendezvousTimeout{60};

// That limit, or the seconds in BENCH_RENDEZVOUS_TIMEOUT; throws UsageError where they make no
// sense.
std::chrono::milliseconds rendezvous_timeout();

// The store of the job. Rank 0 serves it, unless a launcher's agent does (torchrun). Throws
// MachineError when the address is in use or ranks are missing when the time-out ends.
c10::intrusive_ptr<c10d::Store> connect_store(
    const RankContext& ranks, std::chrono::milliseconds timeout = rendezvous_timeout());

// A group of all ranks for tensors on `device`. `key` keeps the groups of one store apart; `timer`
// times what a real device's group does.
c10::intrusive_ptr<c10d::ProcessGroup> connect_group(
    const c10::intrusive_ptr<c10d::Store>& store, const RankContext& ranks, c10::Device device,
    const std::string& key, const std::shared_ptr<CommunicationTimer>& timer = nullptr);

}  // namespace bench::training
