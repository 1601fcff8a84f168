// What one call of DataParallel shows: the shapes that it was given, those that each replica saw,
// and those that came back.
#pragma once

#include "training/pitfalls/lab.hpp"
#include "training/strategies/data_parallel.hpp"

namespace bench::training {

// A tensor's sizes; {"list": [...]} of a list or tuple; null for what is neither.
Json shapes_of(const at::IValue& value);

// Evidence "inputs", "replica_inputs" and "outputs". An exception of the call becomes evidence
// "error", and the result None.
at::IValue shown_call(Lab& lab, DataParallel& parallel, const Arguments& arguments,
                      const DataParallel::ReplicaForward& forward);

// Evidence "rows_compared" and "rows_apart": how many rows of features there are, and how many of
// them are not those of `reference`, which one device computed.
void compare_rows(Lab& lab, const at::Tensor& output, const at::Tensor& reference);

}  // namespace bench::training
