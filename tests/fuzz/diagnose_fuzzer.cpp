// libFuzzer's entries, for runs of minutes to days; scripts/fuzz builds and starts it.
//   diagnose_fuzzer --write-seeds DIR   writes a corpus to start from and ends
//   diagnose_fuzzer DIR [-flag=...]     fuzzes; libFuzzer's own flags
// Half of the inputs are changed as scripts are (lines moved, spliced from other cases, indented),
// the others byte by byte.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/diagnose_input.hpp"
#include "tests/fuzz/mutate.hpp"

namespace {

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> made = bench::diagnose::tagged_seeds();
  return made;
}

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < seeds().size(); ++i)
    std::ofstream(folder / ("seed-" + std::to_string(i)), std::ios::binary) << seeds()[i];
  std::printf("%zu seeds in %s\n", seeds().size(), folder.c_str());
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  if (*count == 3 && std::string((*arguments)[1]) == "--write-seeds") {
    write_seeds((*arguments)[2]);
    std::exit(0);
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (size < 2 || seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  bench::diagnose::Mutator mutator(seed);
  // The first byte, the kind of the file, stays.
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string changed = mutator.mutate(text, seeds()[seed / 2 % seeds().size()]);
  const std::size_t length = std::min(changed.size(), most - 1);
  std::memcpy(data + 1, changed.data(), length);
  return length + 1;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bench::diagnose::run_tagged({reinterpret_cast<const char*>(data), size});
  return 0;
}
