// libFuzzer's entry: cmake -B fuzz -DBENCH_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++ -DBENCH_TORCH=OFF;
// ninja -C fuzz diagnose_fuzzer; fuzz/bin/diagnose_fuzzer CORPUS scenarios/pitfalls
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/diagnose_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bench::diagnose::run_on_every_kind({reinterpret_cast<const char*>(data), size});
  return 0;
}
