// Whether a program trains, as far as it can be seen.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

namespace bench::diagnose {

// Nothing that the run comes by steps an optimizer or may do so out of sight, in a file that is not
// there or a method of an object that nobody knows.
bool surely_trains_nothing(const Program& program, const ReachedCode& reached);

// The run goes without gradients somewhere, or the script's name says that it evaluates.
bool evaluates(const Program& program, const ReachedCode& reached);

// Training goes on behind the node.
bool is_before_training(const Program& program, Ref node);

// test.py, by its name, of which no call that can be followed leads to a backward pass: names alone
// lead to the methods that train, in classes that the script shares with the one for training.
bool is_test_by_name(const Program& program, const ReachedCode& reached);

}  // namespace bench::diagnose
