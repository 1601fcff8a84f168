#include "diagnose/model/role_names.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

struct NamedRole {
  std::string_view name;
  unsigned role;
};

constexpr NamedRole kNames[] = {
    {"rank", kRank},
    {"global_rank", kRank},
    {"world_rank", kRank},
    {"dist_rank", kRank},
    {"ddp_rank", kRank},
    {"my_rank", kRank},
    {"proc_rank", kRank},
    {"process_rank", kRank},
    {"data_parallel_rank", kRank},
    {"dp_rank", kRank},
    {"process_index", kRank},
    {"globalrank", kRank},
    {"local_rank", kLocalRank},
    {"localrank", kLocalRank},
    {"ddp_local_rank", kLocalRank},
    {"local_process_index", kLocalRank},
    {"gpu", kLocalRank},
    {"gpu_id", kLocalRank},
    {"gpu_rank", kLocalRank},
    {"slurm_localid", kLocalRank},
    {"slurm_procid", kRank},
    {"ompi_comm_world_rank", kRank},
    {"ompi_comm_world_local_rank", kLocalRank},
    {"world_size", kWorldSize},
    {"ddp_world_size", kWorldSize},
    {"worldsize", kWorldSize},
    {"num_processes", kWorldSize},
    {"num_replicas", kWorldSize},
    {"slurm_ntasks", kWorldSize},
    {"ompi_comm_world_size", kWorldSize},
    {"ngpus_per_node", kDeviceCount},
    {"local_world_size", kDeviceCount},
    {"n_gpu", kDeviceCount},
    {"n_gpus", kDeviceCount},
    {"num_gpus", kDeviceCount},
    {"ngpus", kDeviceCount},
};

}  // namespace

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

unsigned role_of_name(std::string_view name) {
  const std::string plain = lowered(name);
  const std::string_view bare =
      std::string_view(plain).substr(std::min(plain.find_first_not_of('_'), plain.size()));
  for (const auto& entry : kNames)
    if (entry.name == bare) return entry.role;
  return 0;
}

unsigned role_of_environment(std::string_view name) {
  if (name == "RANK" || name == "SLURM_PROCID" || name == "OMPI_COMM_WORLD_RANK" ||
      name == "PMI_RANK" || name == "GLOBAL_RANK")
    return kRank;
  if (name == "LOCAL_RANK" || name == "SLURM_LOCALID" || name == "OMPI_COMM_WORLD_LOCAL_RANK" ||
      name == "MPI_LOCALRANKID")
    return kLocalRank;
  if (name == "WORLD_SIZE" || name == "SLURM_NTASKS" || name == "OMPI_COMM_WORLD_SIZE" ||
      name == "PMI_SIZE")
    return kWorldSize;
  if (name == "LOCAL_WORLD_SIZE") return kDeviceCount;
  return 0;
}

bool is_main_name(std::string_view name) {
  const std::string plain = lowered(name);
  for (const std::string_view word : {"is_main",      "main_process",
                                      "is_master",    "master_process",
                                      "is_primary",   "rank_zero",
                                      "rank0",        "rank_0",
                                      "is_chief",     "is_global_zero",
                                      "is_root",      "is_world_process_zero",
                                      "main_proc",    "is_local_process_zero",
                                      "is_rank",      "is_leader",
                                      "should_log",   "is_first_worker",
                                      "is_host_0",    "is_coordinator",
                                      "main_rank",    "is_logger",
                                      "on_main",      "should_save",
                                      "local_master", "node_master",
                                      "first_rank",   "root_rank",
                                      "lead_rank",    "first_process"})
    if (plain.find(word) != std::string::npos) return true;
  return plain == "master" || plain == "is_log";
}

std::string_view last_word(Ref at) {
  const SyntaxTree& tree = at.module->tree();
  switch (at.kind()) {
    case Kind::identifier:
      return at.text();
    case Kind::attribute:
      return at.child(Field::attribute).text();
    case Kind::subscript: {
      const std::string_view key = tree.text(tree.child(at.node, Field::subscript));
      return key.size() > 2 && (key[0] == '"' || key[0] == '\'') ? key.substr(1, key.size() - 2)
                                                                 : std::string_view{};
    }
    default:
      return {};
  }
}

}  // namespace bench::diagnose
