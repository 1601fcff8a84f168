// Encoders of transformers end in a pooler, which a model that reads last_hidden_state leaves out:
// parameters that never get a gradient.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// self.encoder = BertModel.from_pretrained(name), and AutoModel's of a name that says BERT, in the
// class, where nothing reads what the pooler gives.
std::vector<CallRef> encoders_with_idle_pooler(const Program& program, diagnose::ClassRef cls);

}  // namespace bench::pitfalls
