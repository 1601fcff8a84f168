// The single-device run that data-parallel results are compared with: one device sees the batch in
// the chunks that the strategy under test cuts it into, because BatchNorm normalises a chunk.
#pragma once

#include "training/models/model.hpp"
#include "training/strategies/parallelism.hpp"

#include <cstdint>
#include <vector>

namespace bench::training {

class ChunkedReference final : public Parallelism {
 public:
  // `chunks` are the sizes that one optimizer step is cut into, in order; they must add up to whole
  // micro-batches. Empty: every micro-batch at once. With `buffers_from_first_chunk`, BatchNorm
  // statistics follow the first chunk of a micro-batch, as they do on the primary device.
  ChunkedReference(Model& model, std::vector<std::int64_t> chunks, bool buffers_from_first_chunk);

  torch::Tensor forward(const torch::Tensor& input, bool synchronise, PhaseSink& phases) override;

 private:
  // Sizes for a micro-batch of `samples`; the list is repeated when it covers one micro-batch.
  std::vector<std::int64_t> take_chunks(std::int64_t samples);
  std::vector<at::Tensor> copy_buffers() const;

  Model& model_;
  std::vector<std::int64_t> chunks_;
  bool buffers_from_first_chunk_;
  std::size_t next_ = 0;
};

}  // namespace bench::training
