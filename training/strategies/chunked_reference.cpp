#include "training/strategies/chunked_reference.hpp"

#include "bench/core/error.hpp"

namespace bench::training {

ChunkedReference::ChunkedReference(Model& model, std::vector<std::int64_t> chunks,
                                   bool buffers_from_first_chunk)
    : model_(model),
      chunks_(std::move(chunks)),
      buffers_from_first_chunk_(buffers_from_first_chunk) {}

std::vector<std::int64_t> ChunkedReference::take_chunks(std::int64_t samples) {
  if (chunks_.empty()) return {samples};
  std::vector<std::int64_t> taken;
  std::int64_t covered = 0;
  while (covered < samples) {
    taken.push_back(chunks_[next_]);
    covered += chunks_[next_];
    next_ = (next_ + 1) % chunks_.size();
  }
  if (covered == samples) return taken;
  throw UsageError("reference job: chunks do not add up to a micro-batch of " +
                   std::to_string(samples) + " samples");
}

std::vector<at::Tensor> ChunkedReference::copy_buffers() const {
  std::vector<at::Tensor> copies;
  for (const auto& buffer : model_.buffers()) copies.push_back(buffer.tensor.clone());
  return copies;
}

torch::Tensor ChunkedReference::forward(const torch::Tensor& input, bool, PhaseSink& phases) {
  phases.enter(Phase::forward);
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> after_first;
  for (const auto& chunk : input.split_with_sizes(take_chunks(input.size(0)), 0)) {
    outputs.push_back(model_.forward(chunk));
    if (outputs.size() == 1 && buffers_from_first_chunk_) after_first = copy_buffers();
  }
  if (outputs.size() == 1) return outputs[0];
  const auto buffers = model_.buffers();
  for (std::size_t i = 0; i < after_first.size(); ++i) {
    // Through an alias with a version counter of its own: autograd has saved the buffers, and only
    // evaluation mode would read them in backward.
    buffers[i].tensor.variable_data().copy_(after_first[i]);
  }
  return torch::cat(outputs, 0);
}

}  // namespace bench::training
