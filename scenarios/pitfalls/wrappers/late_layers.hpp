// Layers that are put into a model below its wrap, and layers that have no parameters yet when it
// is wrapped.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

struct LateLayers {
  CallRef call;
  Ref model;  // what gets other layers: the wrapper, or a part of what it holds
};

// convert_syncbn_model(model), get_peft_model(model, config), model.resize_token_embeddings(n):
// calls that replace layers or parameters of what they are given. torch.nn.utils.prune keeps the
// parameter itself, as weight_orig.
std::vector<LateLayers> calls_that_replace_layers(const Program& program);

// A layer without parameters in what the wrapper holds: nn.LazyLinear(10), and torch_geometric's
// SAGEConv((-1, -1), 64). Empty where something runs the model, or loads it, above the wrap.
CallRef uninitialised_layer(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
