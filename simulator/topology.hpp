// The links between the GPUs that a job uses: which links a copy passes, and what NCCL makes of
// them. Local index i is device i of a process or rank i of a job; -1 is host memory.
#pragma once

#include "simulator/job_wiring.hpp"
#include "simulator/machine.hpp"
#include "simulator/nccl_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench::simulator {

struct Link {
  std::string name;
  double gb_per_s = 0;
  bool behind_switch = false;  // equal ranks behind the same switch use it at the same time
};

class Topology {
 public:
  // `gpus` are physical GPUs of the machine. Throws UsageError for a GPU that is not there or is
  // listed twice.
  Topology(const Machine& machine, std::vector<int> gpus);

  const std::vector<Link>& links() const { return links_; }
  // Links that bytes pass from one end to the other, in order; empty within one GPU.
  std::vector<std::uint32_t> path(std::int32_t from, std::int32_t to) const;
  // What NCCL sees of all GPUs of the job.
  const NcclTopology& job() const { return job_; }
  std::int32_t size() const { return static_cast<std::int32_t>(gpus_.size()); }
  // GPUs of the job that reach the host through the same switch as GPU `local`, itself included.
  std::int32_t sharing_switch(std::int32_t local) const;

 private:
  struct Place : GpuPlace {  // of a physical GPU
    std::int32_t node = 0;
  };
  std::uint32_t link(const std::string& name, double gb_per_s) const;
  Place place_of(std::int32_t physical) const;
  void describe_job();
  static std::string node_name(const Place& place);
  void host_path(const Place& gpu, bool up, std::vector<std::uint32_t>& out) const;
  // Nothing where no NVLink joins the two.
  void nvlink_path(const Place& a, const Place& b, std::vector<std::uint32_t>& out) const;
  void between_nodes(const Place& a, const Place& b, std::vector<std::uint32_t>& out) const;

  const Machine& machine_;
  std::vector<int> gpus_;
  std::vector<Place> places_;
  mutable std::vector<Link> links_;
  NcclTopology job_;
};

}  // namespace bench::simulator
