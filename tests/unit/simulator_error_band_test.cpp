// Error bands: wider without an anchor, wider where collectives are worse known.
#include "bench/core/strategy.hpp"
#include "bench/micro/layered_graph.hpp"
#include "simulator/error_band.hpp"

#include <gtest/gtest.h>

namespace bench::simulator {
namespace {

TEST(ErrorBand, AnAnchorNarrowsEveryClass) {
  for (const Strategy strategy :
       {Strategy::single, Strategy::data_parallel, Strategy::distributed}) {
    EXPECT_LT(published_band({strategy, true}), published_band({strategy, false}));
    EXPECT_GT(published_band({strategy, true}), 0);
  }
}

TEST(ErrorBand, ResultsPrintTheBandOfTheirClass) {
  const Machine machine = load_machine("dgx-1-v100");
  const OperationGraph single = layered_graph(900, 1);
  EXPECT_DOUBLE_EQ(simulate(single, machine, {}).error.relative,
                   published_band({Strategy::single, false}));
  SimulationOptions anchored;
  anchored.kernel_scale = 1.1;
  EXPECT_DOUBLE_EQ(simulate(single, machine, anchored).error.relative,
                   published_band({Strategy::single, true}));
  const double job = simulate(layered_graph(900, 8), machine, anchored).error.relative;
  EXPECT_GE(job, published_band({Strategy::distributed, true}));
}

}  // namespace
}  // namespace bench::simulator
