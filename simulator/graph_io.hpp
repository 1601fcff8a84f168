// Operation graphs on disk: a compact binary file that one worker writes and `bench` reads, also
// long after. Reading checks everything; a truncated or corrupt file is a UsageError that names the
// file and the offset, never a crash.
#pragma once

#include "simulator/operation_graph.hpp"

#include <string>
#include <string_view>

namespace bench::simulator {

// Atomic: written beside `path` and renamed. Throws MachineError when the file cannot be written.
void write_graph(const OperationGraph& graph, const std::string& path);
OperationGraph read_graph(const std::string& path);

// The same without files, for tests and fuzzing. `name` is what errors call the input.
std::string encode_graph(const OperationGraph& graph);
OperationGraph decode_graph(std::string_view bytes, const std::string& name);

// Throws UsageError when indices are out of range or a dependency does not point backwards.
void check_graph(const OperationGraph& graph, const std::string& name);

}  // namespace bench::simulator
