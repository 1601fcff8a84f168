// What kind of file begins a program: one that runs, a test of the project, or one that only has
// definitions for others.
#pragma once

#include "diagnose/model/module.hpp"

#include <string_view>

namespace bench::diagnose {

// The script is run by pytest or unittest: it starts the ranks that it needs on the machine that it
// runs on, and may do wrong on purpose.
bool is_test(const Module& script);

// The file lies in a folder `tests`: a test, or what tests share.
bool is_below_tests(std::string_view path);

// Something is done when the file runs, if only a path that is added.
bool runs_itself(const Module& script);

// A program begins with the file, by a main guard, as a notebook or by statements at its own level
// that train, and it wraps the model or joins the ranks itself: no other file has to.
bool shares_out_itself(const Module& script);

// Nothing is done when the file runs, and nothing that trains is set up in it: functions, classes
// and values alone, as in a model that a library finds by its place (fairseq's tasks and
// criterions, packages of plug-ins).
bool only_defines(const Module& script);

}  // namespace bench::diagnose
