// The IDX format of MNIST and its descendants, gzip-compressed: big-endian sizes, then bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench::training {

struct IdxArray {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> values;
};

// Reads an array of unsigned bytes with `dimensions` dimensions. Throws UsageError with the file
// and what was expected; a missing file is MachineError, which names the package that brings it.
IdxArray read_idx(const std::string& path, int dimensions);

}  // namespace bench::training
