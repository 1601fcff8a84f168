// What a call is given, as far as its own file shows it: what stands in the call, what
// functools.partial has bound, and the items of the dictionaries behind **.
#pragma once

#include "diagnose/model/module.hpp"

#include <string_view>

namespace bench::diagnose {

// An argument that stands in the call itself.
NodeId own_positional(const Module& module, NodeId call, std::size_t index);

// The call is functools.partial(f, ...).
bool is_partial(const Module& module, NodeId call);

// The value of the key in the mapping behind **: of {"lr": 0.1}, dict(lr=0.1), {**base, "lr": 0.1},
// and of names, items and functions of this file that give one of these.
NodeId value_in_mapping(const Module& module, NodeId mapping, std::string_view key, int depth);

// Adds what the mapping holds, each key once; false where it may hold more than can be seen.
bool add_items(const Module& module, NodeId mapping, std::vector<Argument>& out, int depth);

}  // namespace bench::diagnose
