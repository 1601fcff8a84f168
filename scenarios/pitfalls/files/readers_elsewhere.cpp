#include "scenarios/pitfalls/files/readers_elsewhere.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {
namespace {

bool is_of_name(char each) {
  return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_' || each == '.';
}

bool is_in_comment(std::string_view text, std::size_t at) {
  const std::size_t line = text.rfind('\n', at) + 1;  // 0 where there is none above
  return facts::contains(text.substr(line, at - line), "#");
}

// net of "net.load_state_dict(": the name that ends at the place.
std::string_view name_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && is_of_name(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// The line that gives the name its last value in the text; empty where none does.
std::string_view line_giving(std::string_view text, const std::string& name) {
  const std::size_t given = text.rfind("\n" + name + " = ");
  const std::size_t indented = text.rfind(" " + name + " = ");
  std::size_t at = given == std::string_view::npos ? indented : given;
  if (indented != std::string_view::npos) at = std::max(at, indented);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = text.rfind('\n', at) + 1;  // 0 where there is none above
  const std::size_t end = std::min(text.find('\n', at + 1), text.size());
  return text[at] == '\n' ? text.substr(at + 1, end - at - 1) : text.substr(begin, end - begin);
}

// net = nn.DataParallel(net) and its kin is the last value that the text gives the name.
bool is_given_wrapper(std::string_view text, const std::string& name) {
  const std::string_view line = line_giving(text, name);
  return facts::contains(line, "DataParallel(") || facts::contains(line, "DDP(");
}

std::size_t depth_of(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// net.load_state_dict(...) of a wrapper whose state the text saves nowhere: it reads what another
// script has saved. Where it stands; npos where there is none.
std::size_t place_of_read(std::string_view text) {
  constexpr std::string_view kLoad = ".load_state_dict(";
  for (std::size_t load = text.find(kLoad); load != std::string_view::npos;
       load = text.find(kLoad, load + 1)) {
    const std::string name(name_before(text, load));
    if (!name.empty() && is_given_wrapper(text.substr(0, load), name) &&
        !facts::contains(text, name + ".state_dict(") && !facts::contains(text, name + ".module"))
      return load;
  }
  return std::string_view::npos;
}

bool only_reads_wrapper(std::string_view text) {
  return place_of_read(text) != std::string_view::npos;
}

// net.load_state_dict(...) where no wrapper was put around net above, or only in some runs: under
// a test that the load does not stand under.
bool loads_into_bare_model(std::string_view text) {
  constexpr std::string_view kLoad = ".load_state_dict(";
  for (std::size_t load = text.find(kLoad); load != std::string_view::npos;
       load = text.find(kLoad, load + 1)) {
    if (is_in_comment(text, load)) continue;
    const std::string_view above = text.substr(0, load);
    const std::string name(name_before(text, load));
    const std::size_t depth = depth_of(above.substr(above.rfind('\n') + 1));
    if (!is_given_wrapper(above, name) || depth_of(line_giving(above, name)) > depth) return true;
  }
  return false;
}

// if several: teacher = DataParallel(teacher), teacher.load_state_dict(...) below in any case, of a
// model whose state the text saves nowhere.
bool reads_into_optional_wrapper(std::string_view text) {
  constexpr std::string_view kLoad = ".load_state_dict(";
  for (std::size_t load = text.find(kLoad); load != std::string_view::npos;
       load = text.find(kLoad, load + 1)) {
    const std::string_view above = text.substr(0, load);
    const std::string name(name_before(text, load));
    if (!name.empty() && !is_in_comment(text, load) && is_given_wrapper(above, name) &&
        depth_of(line_giving(above, name)) > depth_of(above.substr(above.rfind('\n') + 1)) &&
        !facts::contains(text, name + ".state_dict(") && !facts::contains(text, name + ".module"))
      return true;
  }
  return false;
}

// vgg16.pth of torch.load("weights/vgg16.pth"): written out; empty where a name stands there.
std::string_view file_loaded(std::string_view text, std::size_t open) {
  const std::string_view given = text.substr(open, text.find('\n', open) - open);
  if (given.empty() || (given.front() != '"' && given.front() != '\'')) return {};
  const std::string_view path = given.substr(1, given.find(given.front(), 1) - 1);
  return path.substr(path.rfind('/') + 1);
}

// torch.load(path) in a line of code, of a file whose name the program mentions, or of any.
bool may_load_file_of(const Program& program, std::string_view text) {
  constexpr std::string_view kLoad = "torch.load(";
  for (std::size_t load = text.find(kLoad); load != std::string_view::npos;
       load = text.find(kLoad, load + 1)) {
    if (is_in_comment(text, load)) continue;
    const std::string_view file = file_loaded(text, load + kLoad.size());
    const auto& modules = program.modules();
    if (file.empty() ||
        std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
          return facts::contains(module->tree().source(), file);
        }))
      return true;
  }
  return false;
}

// A line of the text that `counts` has one of the words, and no # above it.
template <typename Words, typename Counts>
bool has_line(std::string_view text, const Words& words, Counts counts) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string_view code = line.substr(0, line.find('#'));
    if (counts(code) && std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
          return facts::contains(code, word);
        }))
      return true;
    begin = end + 1;
  }
  return false;
}

bool has_code(std::string_view text, std::initializer_list<std::string_view> words) {
  return has_line(text, words, [](std::string_view) { return true; });
}

}  // namespace

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

bool is_loaded_into_wrapper_elsewhere(const Program& program) {
  return program.any_in_project("loads a state into a wrapper", only_reads_wrapper);
}

std::string load_into_wrapper_elsewhere(const Program& program) {
  const auto places =
      program.where_in_project([](std::string_view text) -> std::optional<std::uint32_t> {
        const std::size_t place = place_of_read(text);
        if (place == std::string_view::npos) return std::nullopt;
        return 1 + static_cast<std::uint32_t>(std::count(
                       text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
      });
  return places.empty() ? std::string()
                        : places.front().first + ":" + std::to_string(places.front().second);
}

bool is_loaded_elsewhere(const Program& program) {
  return program.any_in_project("loads a state of " + program.root().path() + " and trains nothing",
                                [&](std::string_view text) {
                                  return loads_into_bare_model(text) &&
                                         may_load_file_of(program, text) &&
                                         !has_code(text, {".backward(", "torch.save(", "optim."});
                                });
}

bool is_loaded_by_other_trainings(const Program& program) {
  const std::string& script = program.root().path();
  return program.any_in_project(
      "loads a state of " + script + " to train another", [&](std::string_view text) {
        return has_code(text, {".backward("}) && reads_into_optional_wrapper(text) &&
               may_load_file_of(program, text) && text != program.root().tree().source();
      });
}

bool is_loaded_beside(const Program& program) {
  return program.any_beside([](std::string_view text) {
    const std::size_t load = text.find(".load_state_dict(");
    const std::size_t wrap = std::min(text.find("DataParallel("), text.find("DDP("));
    if (load == std::string_view::npos || wrap >= load) return false;
    return !facts::contains(text, ".backward(") || only_reads_wrapper(text);
  });
}

namespace {

// The function that holds the place in the text: its name, empty at the file's own level.
std::string_view function_around(std::string_view text, std::size_t at) {
  const std::size_t def = text.rfind("def ", at);
  if (def == std::string_view::npos) return {};
  const std::size_t line = text.rfind('\n', at) + 1;
  if (depth_of(text.substr(line)) == 0) return {};
  const std::string_view name = text.substr(def + 4);
  return name.substr(0, name.find('('));
}

// net.load_state_dict(...) of a model in code, whose name the text gives no wrapper; the function
// that it stands in. Nothing where all loads are of wrappers, optimizers and their kin.
std::optional<std::string_view> bare_load(std::string_view text) {
  constexpr std::string_view kLoad = ".load_state_dict(";
  for (std::size_t load = text.find(kLoad); load != std::string_view::npos;
       load = text.find(kLoad, load + 1)) {
    const std::string name(name_before(text, load));
    const bool of_others = says_any(name, {"opt", "sched", "scaler"});
    if (is_in_comment(text, load) || of_others) continue;
    if (!is_given_wrapper(text.substr(0, load), name)) return function_around(text, load);
  }
  return std::nullopt;
}

// Other ways to read weights, which may know of the keys or not.
constexpr std::string_view kOtherWays[] = {
    "load_checkpoint", "load_from_checkpoint", "load_pretrained", "load_weights", "load_model",
    "_load_state",     ".load_state_dict,",    "load_param",      "jit.load(",    "load_file("};

bool reads_in_another_way(std::string_view text) {
  return has_line(text, kOtherWays, [](std::string_view) { return true; });
}

// Some other place than its definition has the name of the function.
bool is_called_somewhere(const Program& program, const std::string& function) {
  return program.any_in_project("calls or imports " + function, [&](std::string_view text) {
    for (std::size_t at = text.find(function); at != std::string_view::npos;
         at = text.find(function, at + 1))
      if (!is_in_comment(text, at) && !text.substr(0, at).ends_with("def ")) return true;
    return false;
  });
}

// Functions of the project that load a state into a bare model, such as what they are given.
std::vector<std::string> functions_that_load(const Program& program) {
  std::vector<std::string> out;
  program.where_in_project([&](std::string_view text) -> std::optional<std::uint32_t> {
    if (const auto load = bare_load(text); load && !load->empty()) out.emplace_back(*load);
    return std::nullopt;  // of every file
  });
  return out;
}

// The text is that of a file of the program.
bool is_of_program(const Program& program, std::string_view text) {
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
    return module->tree().source() == text;
  });
}

// torch.load(path)["weight"] in a file that the program does not import: what becomes of it is
// open.
bool is_read_beside(const Program& program) {
  return program.any_in_project(
      "reads files beside " + program.root().path(), [&](std::string_view text) {
        return may_load_file_of(program, text) && !is_of_program(program, text);
      });
}

// Some README shows the call, where the text is accepted.
template <typename Accepts>
bool is_in_readme(const Program& program, const std::string& call, Accepts accepts) {
  const auto readmes = program.shipped(call);
  return std::any_of(readmes.begin(), readmes.end(), [&](const diagnose::ShippedValue& readme) {
    return !readme.value.is_string() || accepts(readme.value.string);
  });
}

// pytorch_model.bin, which from_pretrained(folder) looks for by itself.
bool is_read_from_folder(const Program& program) {
  const auto& modules = program.modules();
  const bool has_name =
      std::any_of(modules.begin(), modules.end(), [](const diagnose::Module* module) {
        return has_code(module->tree().source(),
                        {"pytorch_model", "adapter_model", "WEIGHTS_NAME", "model.safetensors"});
      });
  return has_name && (program.any_in_project("has from_pretrained()", [](std::string_view text) {
           return has_code(text, {"from_pretrained("});
         }) || is_in_readme(program, "from_pretrained(", [](std::string_view) { return true; }));
}

bool may_be_read_bare(const Program& program, const std::vector<std::string>& loaders) {
  const bool in_sight =
      program.any_in_project("loads a state into a bare model", [](std::string_view text) {
        const auto load = bare_load(text);
        return reads_in_another_way(text) || (load && load->empty());
      });
  if (in_sight || is_read_beside(program) || is_read_from_folder(program)) return true;
  if (is_in_readme(program, ".load_state_dict(",
                   [](std::string_view text) { return bare_load(text).has_value(); }))
    return true;
  return std::any_of(loaders.begin(), loaders.end(),
                     [&](const std::string& each) { return is_called_somewhere(program, each); });
}

// best.pth of torch.save(state, os.path.join(folder, "best.pth")): what the program's files are
// called.
std::vector<std::string> names_of_saved_files(const Program& program) {
  std::vector<std::string> out;
  for (const CallRef& save : program.calls(diagnose::Api::torch_save)) {
    const Ref path = save.argument(1, "f");
    if (!path) continue;
    const auto& tree = path.module->tree();
    for (auto at = path.node; at < tree[path.node].last; ++at) {
      if (tree[at].kind != diagnose::Kind::string) continue;
      std::string name = tree.string_value(at).value_or("");
      const std::string_view text = tree.text(at);  // f"best.pth" holds nothing else
      if (name.empty() && text.starts_with("f") && !facts::contains(text, "{"))
        name = text.substr(2, text.size() - 3);
      const std::string file = name.substr(name.rfind('/') + 1);
      if (file.find('.') != std::string::npos && !file.starts_with(".")) out.push_back(file);
    }
  }
  return out;
}

// load, load_model, ckpt_load, loadModel: no loader, no download.
bool is_name_of_loader(std::string_view name) {
  constexpr std::string_view kLoad = "load";
  for (std::size_t at = name.find(kLoad); at != std::string_view::npos;
       at = name.find(kLoad, at + 1)) {
    const char below = at + kLoad.size() < name.size() ? name[at + kLoad.size()] : '_';
    const bool begins = at == 0 || name[at - 1] == '_' || name[at - 1] == '.';
    if (begins && std::islower(static_cast<unsigned char>(below)) == 0) return true;
  }
  return false;
}

// load_model(net, os.path.join(folder, "best.pth")) around the place, of a net that the text has
// wrapped.
bool is_in_load_of_wrapper(std::string_view text, std::size_t place) {
  constexpr std::size_t kNear = 200;
  const std::size_t end = place < kNear ? 0 : place - kNear;
  int closed = 0;
  for (std::size_t at = place; at-- > end;) {
    if (text[at] == ')') ++closed;
    if (text[at] != '(' || --closed >= 0) continue;
    closed = 0;
    if (!is_name_of_loader(name_before(text, at))) continue;
    const std::string_view given = text.substr(at + 1);
    const std::string name(given.substr(0, given.find_first_of(",)")));
    // Above the line: net = load_model(net, ...) gives the name anew.
    if (is_given_wrapper(text.substr(0, text.rfind('\n', at) + 1), name)) return true;
  }
  return false;
}

bool hands_wrapper_to_loader(std::string_view text, const std::vector<std::string>& files) {
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    for (std::size_t at = text.find(file); at != std::string_view::npos;
         at = text.find(file, at + 1))
      if (!is_in_comment(text, at) && is_in_load_of_wrapper(text, at)) return true;
    return false;
  });
}

bool is_loaded_by_name_into_wrapper(const Program& program, const std::vector<std::string>& files) {
  return program.any_in_project(
      "loads what " + program.root().path() + " saves into a wrapper",
      [&](std::string_view text) { return hands_wrapper_to_loader(text, files); });
}

// test.py beside finetune.py, which hands its wrapper to the same load_checkpoint(): a file that
// calls what loads, or loads itself, and does not wrap for it.
bool is_read_by_others(const Program& program, const std::vector<std::string>& files,
                       const std::vector<std::string>& loaders) {
  const auto calls = [](std::string_view line) {
    return !facts::contains(line, "def ") && !facts::contains(line, "import ");
  };
  return program.any_in_project(
      "loads what " + program.root().path() + " saves, and not into a wrapper",
      [&](std::string_view text) {
        if (hands_wrapper_to_loader(text, files)) return false;
        const auto load = bare_load(text);
        return (load && load->empty()) || has_line(text, kOtherWays, calls) ||
               has_line(text, loaders, calls);
      });
}

// model.module.state_dict(): the program knows that its readers have bare models.
bool saves_inner_states(const Program& program) {
  const auto states = program.calls_named("state_dict");
  return std::any_of(states.begin(), states.end(), [](const CallRef& state) {
    return state.receiver() && state.receiver().text().ends_with(".module");
  });
}

std::string why_no_bare_reader(const Program& program) {
  // setup.py, draw.py: whoever reads the file is not part of the project.
  const bool stands_alone = !program.any_in_project(
      "loads, and is not " + program.root().path(), [&](std::string_view text) {
        return program.root().tree().source() != text &&
               (reads_in_another_way(text) || has_code(text, {"load_state_dict", "torch.load("}));
      });
  if (stands_alone || saves_inner_states(program)) return {};
  const auto files = names_of_saved_files(program);
  const auto loaders = functions_that_load(program);
  if (is_loaded_by_name_into_wrapper(program, files))
    return is_read_by_others(program, files, loaders)
               ? ""
               : "a file of the project loads it into a wrapper";
  return may_be_read_bare(program, loaders)
             ? ""
             : "nothing in the project loads a state into a bare model";
}

}  // namespace

void Readers::soften(Finding& finding) {
  if (!why_)
    why_ = is_stripped_elsewhere(program_)
               ? "a file of the project takes it off the keys, and loads"
               : why_no_bare_reader(program_);
  tell_as_note(finding, *why_);
}

}  // namespace bench::pitfalls
