#include "diagnose/to_ddp/rank_devices.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

// "cuda:0", and no f"cuda:{gpu}".
bool is_numbered(std::string_view text) {
  constexpr std::string_view kCuda = "cuda:";
  if (text.size() < kCuda.size() + 1 || !text.starts_with(kCuda)) return false;
  return std::all_of(text.begin() + kCuda.size(), text.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

// --gpu of default 0: nobody who starts several ranks can give each its own.
bool is_option_of_one(const Program& program, Ref device) {
  const auto& sources = program.sources(device);
  if (sources.size() != 1) return false;
  const Ref given = default_of_option(program, sources.front());
  return given && given.kind() == Kind::integer;
}

// device_ids[0], args.gpu_ids[-1], config["gpu"][0]
bool is_one_of_gpus(const Program& program, Ref device) {
  if (device.kind() != Kind::subscript) return false;
  const auto& lists = program.sources(device.child(Field::value));
  if (std::any_of(lists.begin(), lists.end(), [](const Source& list) {
        return list.ref.kind() == Kind::list && contains(list.ref.text(), "cpu");
      }))
    return false;  // device_names = ["cpu", "cuda"]
  const Ref at = device.child(Field::subscript);
  const std::string text = lowered(device.text());
  return (at.kind() == Kind::integer || at.text() == "-1") &&
         (contains(text, "gpu") || contains(text, "device"));
}

// self.output_device after device[0] if isinstance(device, list) else device: in each case one that
// the script chooses.
bool is_chosen_once(const Program& program, Ref device) {
  const auto& sources = program.sources(device);
  return std::any_of(sources.begin(), sources.end(),
                     [&](const Source& source) { return is_one_of_gpus(program, source.ref); }) &&
         std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
           return is_one_of_gpus(program, source.ref) || source.how == Source::How::argument;
         });
}

// 0, also by a name, device_ids[0], args.gpu_ids[-1]: one of several GPUs that the script chooses.
bool is_one_for_all(const Program& program, Ref device) {
  if (device.kind() == Kind::integer) return true;
  if (device.kind() == Kind::identifier) {
    const auto& sources = program.sources(device);
    return (sources.size() == 1 && sources.front().how == Source::How::value &&
            sources.front().ref.kind() == Kind::integer) ||
           is_chosen_once(program, device);
  }
  if (device.kind() == Kind::attribute)
    return is_option_of_one(program, device) || is_chosen_once(program, device);
  return is_one_of_gpus(program, device);
}

// torch.device("cuda:0"), torch.device("cuda", 0), torch.device(f"cuda:{device_ids[0]}"), also with
// the CPU as the other choice.
bool is_fixed(const Program& program, const CallRef& device) {
  if (const auto index = pitfalls::facts::cuda_index(program, device.ref())) return *index >= 0;
  const Ref named = device.argument(0, "type");
  for (const Ref each : {named, device.positional(1)})
    if (each && each.kind() == Kind::attribute && is_option_of_one(program, each)) return true;
  if (const Ref number = device.argument(1, "index"); number && is_one_of_gpus(program, number))
    return true;
  const std::string text(device.ref().text());
  return contains(text, "cuda:") && !contains(text, "rank");
}

// In a format string, whose quotes it may not have, in a test, and among the values that are
// allowed: none of them uses the device.
bool is_in_text_or_test(Ref string) {
  const auto& tree = string.module->tree();
  if (pitfalls::statement_of(string).text().starts_with("case ")) return true;
  for (NodeId at = tree[string.node].parent; at != kNoNode; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::string) return true;
    if (kind == Kind::keyword_argument) return tree.text(tree.child(at, Field::name)) == "choices";
    if (kind == Kind::comparison) return true;
    if (kind == Kind::block || kind == Kind::module) return false;
  }
  return false;
}

// A key is no place that uses the device.
bool is_key_of_something(Ref string) {
  const auto& tree = string.module->tree();
  const Kind parent = tree[tree[string.node].parent].kind;
  const bool is_key = tree[tree[string.node].parent].first_child == string.node;
  return parent == Kind::subscript || (parent == Kind::pair && is_key);
}

// What stands behind the prefix and the quotes of a literal.
std::string_view content_of(Ref string) {
  std::string_view text = string.text();
  text.remove_prefix(std::min(text.find_first_of("\"'"), text.size()));
  text.remove_prefix(std::min(text.find_first_not_of("\"'"), text.size()));
  return text;
}

// print("cuda:%d" % gpu)
bool is_shown(Ref string) {
  const auto& tree = string.module->tree();
  const NodeId call = tree.ancestor(string.node, Kind::call);
  if (call == kNoNode) return false;
  const std::string name = lowered(tree.text(tree.child(call, Field::function)));
  return contains(name, "print") || contains(name, "log");
}

// What follows "cuda:" in a literal, up to its last quote; nullopt where it says something else.
std::optional<std::string_view> behind_cuda(Ref string) {
  constexpr std::string_view kCuda = "cuda:";
  std::string_view text = content_of(string);
  text = text.substr(0, text.find_last_not_of("\"'") + 1);
  if (!text.starts_with(kCuda)) return std::nullopt;
  return text.substr(kCuda.size());
}

// {gpu}, {}: one hole, with nothing behind it. "cuda:{gpu}/memory" is a name.
bool is_one_hole(std::string_view text) {
  return text.size() > 1 && text.front() == '{' && text.find('}') == text.size() - 1;
}

// The whole of f"cuda:{gpu}", "cuda:{}".format(gpu), "cuda:%d" % gpu and "cuda:" + str(gpu) for the
// literal in it; empty where nothing is put in.
Ref filled_in(Ref string) {
  const auto& tree = string.module->tree();
  const auto number = behind_cuda(string);
  if (!number || is_shown(string)) return {};
  const NodeId up = tree[string.node].parent;
  if (tree[up].kind == Kind::attribute && tree.text(up).ends_with(".format") &&
      tree[tree[up].parent].kind == Kind::call)
    return is_one_hole(*number) ? string.with(tree[up].parent) : Ref{};
  if (tree[up].kind == Kind::binary && tree[up].first_child == string.node) {
    const bool is_whole = tree[tree[up].parent].kind != Kind::binary;
    const bool is_open = number->empty() || (number->size() == 2 && number->front() == '%');
    return is_whole && is_open ? string.with(up) : Ref{};
  }
  const bool is_format = string.text().find_first_of("fF") < string.text().find_first_of("\"'");
  return is_format && is_one_hole(*number) ? string : Ref{};
}

// One GPU that the script chooses: no rank, no item of a loop over several, and no parameter that
// callers fill in different ways.
bool is_one_choice(const Program& program, Ref text) {
  const auto& tree = text.module->tree();
  if (contains(lowered(text.text()), "rank") ||
      tree.ancestor(text.node, Kind::comprehension) != kNoNode)
    return false;
  for (NodeId node = text.node; node < tree[text.node].last; ++node) {
    const Ref part = text.with(node);
    if (part.kind() != Kind::identifier) continue;
    const auto& sources = program.sources(part);
    if (sources.size() > 1 || std::any_of(sources.begin(), sources.end(), [](const Source& source) {
          return source.how == Source::How::loop_item || source.how == Source::How::parameter;
        }))
      return false;
  }
  return true;
}

// The script's own choice for the process, whatever it is.
bool chooses_gpu(const Program& program, const CallRef& call, Ref device) {
  return call.call->api == Api::set_device &&
         !contains(lowered(pitfalls::text_behind(program, device)), "rank") &&
         !contains(device.text(), "current_device") && !program.is_spawn_rank(device) &&
         !program.innermost_loop(call.ref());
}

}  // namespace

Ref default_of_option(const Program& program, const Source& source) {
  const CallRef option =
      source.how == Source::How::argument ? program.as_call(source.ref) : CallRef{};
  return option ? option.keyword("default") : Ref{};
}

bool is_one_gpu(const Program& program, Ref value) {
  return value.kind() == Kind::integer || is_numbered(program.string(value).value_or(""));
}

bool hides_all_gpus(const Program& program, Ref setting) {
  const auto chosen = program.string(setting.child(Field::right));
  return chosen && (chosen->empty() || *chosen == "-1");
}

std::string FixedDevice::for_rank(const std::string& local_rank) const {
  switch (form) {
    case Form::device:
      return "torch.device(\"cuda\", " + local_rank + ")";
    case Form::text:
      return "f\"cuda:{" + local_rank + "}\"";
    case Form::index:
      break;
  }
  return local_rank;
}

std::string FixedDevice::for_current() const {
  switch (form) {
    case Form::device:
      return "torch.device(\"cuda\")";
    case Form::text:
      return "\"cuda\"";
    case Form::index:
      break;
  }
  return "torch.cuda.current_device()";
}

bool FixedDevice::is_first() const {
  const std::string_view text = where.text();
  return text == "0" || contains(text, "cuda:0") || contains(text, "\"cuda\", 0") ||
         contains(text, "'cuda', 0");
}

std::vector<FixedDevice> fixed_devices(const Program& program, const Module& module) {
  std::vector<FixedDevice> out;
  for (const CallRef& call : program.calls(Api::torch_device))
    if (call.module == &module && is_fixed(program, call))
      out.push_back({call.ref(), FixedDevice::Form::device, false});
  for (const Call& made : module.calls()) {
    const CallRef call{&module, &made};
    const bool places = ((made.name == "to" || made.name == "cuda") && call.receiver()) ||
                        made.api == Api::set_device || made.path == "torch.cuda.device";
    const Ref device = call.argument(0, "device");
    if (places && device && (is_one_for_all(program, device) || chooses_gpu(program, call, device)))
      out.push_back({device, FixedDevice::Form::index, true});
  }
  const auto& tree = module.tree();
  for (NodeId node = 0; node < tree.size(); ++node) {
    Ref text{&module, node};
    if (text.kind() != Kind::string) continue;
    if (const Ref whole = filled_in(text); whole && is_one_choice(program, whole))
      text = whole;
    else if (!is_numbered(program.string(text).value_or("")))
      continue;
    if (is_key_of_something(text) || is_in_text_or_test(text)) continue;
    if (std::none_of(out.begin(), out.end(), [&](const FixedDevice& other) {
          return tree.contains(other.where.node, node);
        }))
      out.push_back({text, FixedDevice::Form::text, false});
  }
  std::sort(out.begin(), out.end(),
            [](const FixedDevice& a, const FixedDevice& b) { return a.where.node < b.where.node; });
  return out;
}

}  // namespace bench::diagnose
