// What an evaluation adds up over its batches: loss_sum += loss.item(), scores.append(score),
// meter.update(loss). Variables are names, attributes of self and items of dictionaries.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <set>
#include <string>
#include <vector>

namespace bench::pitfalls {

// The variables of an expression: total, self.total, sums["loss"].
using VariableNames = std::set<std::string>;
VariableNames variables_in(Ref expression);

bool meet(const VariableNames& a, const VariableNames& b);

// One place where a variable gets a value, or something is added to it.
struct Assigned {
  std::string name;
  diagnose::NodeId target;
  Ref value;
};

// total += x and losses.append(x) of the subtree.
std::vector<Assigned> additions_in(Ref subtree);

// Whose assignments reach the node: the body of its function, or the script's own level.
Ref body_around(const Program& program, Ref node);

// Assignments and additions of the subtree, and what loops in it go over, in source order.
std::vector<Assigned> assignments_in(Ref subtree);

// The names and what their values are made of.
VariableNames behind(VariableNames names, const std::vector<Assigned>& assigned);

// The names and the dictionaries of those that are items: output beside output["loss"].
VariableNames with_wholes(VariableNames names);

// A loss, a score or what the model says; counts, sizes and times are no metric. `in_loop` are the
// assignments of the loop that the addition stands in.
bool is_metric(const Assigned& addition, const std::vector<Assigned>& in_loop);

// Something that the loop adds to.
struct MetricSum {
  Ref at;            // the statement or call that adds
  std::string name;  // of the variable

  explicit operator bool() const { return static_cast<bool>(at); }
};

// The first metric that the loop adds up, else the first number that is neither a count nor a time,
// else whatever it adds up; empty where it adds up nothing.
MetricSum first_sum(const Program& program, Ref loop);

// All metrics that the loop adds up, in source order.
std::vector<MetricSum> sums_of_metrics(const Program& program, Ref loop);

// The first metric that the loop adds up with `+=`, by itself and not for a meter, in a program
// whose other metrics are reduced out of sight.
MetricSum sum_by_hand(const Program& program, Ref loop);

}  // namespace bench::pitfalls
