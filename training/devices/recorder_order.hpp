// Order that no recorded operation shows: an autograd node that hands one tensor on as it is and
// copies others has run before anything reads the one it handed on.
#pragma once

#include <ATen/core/Tensor.h>

namespace bench::training {

// What reads `tensor` from now on comes after what this host thread has issued last. Without effect
// while nothing is recorded.
void read_after_last(const at::Tensor& tensor);

}  // namespace bench::training
