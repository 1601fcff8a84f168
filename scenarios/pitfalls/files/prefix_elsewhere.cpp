#include "scenarios/pitfalls/files/prefix_elsewhere.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

// A line of the text has one of the words, and no # above it.
bool has_code(std::string_view text, std::initializer_list<std::string_view> words) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string_view code = line.substr(0, line.find('#'));
    if (std::any_of(words.begin(), words.end(),
                    [&](std::string_view word) { return facts::contains(code, word); }))
      return true;
    begin = end + 1;
  }
  return false;
}

// predict.py of train.py, infer/network.py of train/main.py: a file takes 'module.' off the keys,
// and loads them into the bare model.
bool is_stripped_elsewhere(const Program& program) {
  return program.any_in_project("takes module. off the keys of a state", [](std::string_view text) {
    return has_code(text, {".load_state_dict("}) && !facts::contains(text, ".backward(") &&
           has_code(text, {"consume_prefix_in_state_dict_if_present(", ".replace('module.', '')",
                           ".replace(\"module.\", \"\")", ".replace('module.','')",
                           ".replace(\"module.\",\"\")", ".removeprefix('module.')",
                           ".removeprefix(\"module.\")", "[k[7:]", "{k[7:]", " k[7:]", "[key[7:]",
                           "{key[7:]", " key[7:]", " name[7:]", ".join(k.split('.')[1:])",
                           ".join(k.split(\".\")[1:])", ".join(key.split('.')[1:])",
                           ".join(key.split(\".\")[1:])"});
  });
}

// A script beside this one, which does not train itself, wraps its model and then loads a state
// into it: test.py of train.py.
bool is_loaded_beside(const Program& program) {
  return program.any_beside([](std::string_view text) {
    const std::size_t load = text.find(".load_state_dict(");
    const std::size_t wrap = std::min(text.find("DataParallel("), text.find("DDP("));
    return load != std::string_view::npos && wrap < load && !facts::contains(text, ".backward(");
  });
}

}  // namespace

void soften_if_stripped(const Program& program, Finding& finding) {
  if (is_stripped_elsewhere(program))
    tell_as_note(finding, "a file of the project takes it off the keys, and loads");
}

void soften_if_handled_elsewhere(const Program& program, Finding& finding) {
  if (is_loaded_beside(program))
    tell_as_note(finding, "a script beside this one wraps its model too, and loads");
  else
    soften_if_stripped(program, finding);
}

}  // namespace bench::pitfalls
