// What the numbers of a program say about the nodes of its job.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// The number is a product with the nodes of the job: gpus * nodes.
bool counts_nodes(const Program& program, Ref number);

// A launch line says on how many nodes the job runs.
bool launches_tell_nodes(const Program& program);

// The commands that the script shows for itself, in its docstring or in comments, start one node.
bool shows_one_node(const Program& program);

}  // namespace bench::pitfalls::facts
