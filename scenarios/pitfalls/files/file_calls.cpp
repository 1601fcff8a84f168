#include "scenarios/pitfalls/files/file_calls.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;

namespace {

struct FileCall {
  std::string_view name;
  std::size_t index;  // of the path among the arguments
};

// By the name of the function or method, whatever it belongs to.
constexpr FileCall kWriters[] = {
    {"save_to_disk", 0}, {"to_csv", 0},           {"to_parquet", 0}, {"to_feather", 0},
    {"to_pickle", 0},    {"to_json", 0},          {"to_hdf", 0},     {"save_pretrained", 0},
    {"savez", 0},        {"savez_compressed", 0}, {"savetxt", 0},    {"save_file", 1},
};

constexpr FileCall kReaders[] = {
    {"load_from_disk", 0}, {"read_csv", 0},  {"read_parquet", 0}, {"read_feather", 0},
    {"read_pickle", 0},    {"read_hdf", 0},  {"read_json", 0},    {"from_pretrained", 0},
    {"loadtxt", 0},        {"load_file", 0},
};

// By the whole path: other things are called save, load and dump.
constexpr FileCall kWritingFunctions[] = {{"numpy.save", 0}, {"joblib.dump", 1}};
constexpr FileCall kReadingFunctions[] = {{"numpy.load", 0}, {"joblib.load", 0}};

template <std::size_t kNames, std::size_t kPaths>
Ref path_in(const CallRef& call, const FileCall (&names)[kNames],
            const FileCall (&functions)[kPaths]) {
  for (const FileCall& each : functions)
    if (call.call->path == each.name) return call.positional(each.index);
  for (const FileCall& each : names)
    if (call.call->name == each.name) return call.positional(each.index);
  return {};
}

bool is_open(const CallRef& call) { return call.call->name == "open" && !call.receiver(); }

bool opens_for_writing(const Program& program, const CallRef& call) {
  const std::string mode = program.string(call.argument(1, "mode")).value_or("r");
  return holds_any(mode, {"w", "a", "x"});
}

}  // namespace

Ref written_path(const Program& program, const CallRef& call) {
  if (call.call->api == Api::torch_save) return call.argument(1, "f");
  if (is_open(call)) return opens_for_writing(program, call) ? call.positional(0) : Ref{};
  return path_in(call, kWriters, kWritingFunctions);
}

Ref read_path(const Program& program, const CallRef& call) {
  if (call.call->api == Api::torch_load) return call.argument(0, "f");
  if (is_open(call)) return opens_for_writing(program, call) ? Ref{} : call.positional(0);
  return path_in(call, kReaders, kReadingFunctions);
}

Ref copied_path(const CallRef& call) {
  constexpr std::string_view kCopies[] = {"shutil.copy", "shutil.copy2", "shutil.copyfile",
                                          "shutil.move", "os.rename",    "os.replace"};
  return std::find(std::begin(kCopies), std::end(kCopies), call.call->path) == std::end(kCopies)
             ? Ref{}
             : call.argument(1, "dst");
}

}  // namespace bench::pitfalls
