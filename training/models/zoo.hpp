// The zoo's factories, one row per name of bench/core/model_catalog.cpp.
#pragma once

#include "bench/core/model_catalog.hpp"

#include "training/models/model.hpp"
#include "training/models/network.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bench::training {

struct ZooRequest {
  std::vector<std::int64_t> input_shape;  // one sample
  std::int64_t outputs = 0;               // classes, tokens, or the width of a regression target
  bool twin = false;                      // the reduced variant
};

// What a model reads and what it learns from.
enum class ZooTask { regression, classification, language };

struct ZooEntry {
  std::string_view name;
  ZooTask task;
  std::int64_t outputs;       // full size
  std::int64_t twin_outputs;  // of the reduced twin
  Network::Build (*build)(const ZooRequest&);
};

std::span<const ZooEntry> zoo();

// The zoo's part of make_model(): `spec` names no file.
std::unique_ptr<Model> make_zoo_model(const ModelSpec& spec, std::uint64_t seed, Scale scale,
                                      Init init);
// The same from a row of each table, whether or not the zoo holds them.
std::unique_ptr<Model> make_zoo_model(const ZooEntry& entry, const ModelEntry& described,
                                      const ModelSpec& spec, std::uint64_t seed, Scale scale,
                                      Init init);

}  // namespace bench::training
