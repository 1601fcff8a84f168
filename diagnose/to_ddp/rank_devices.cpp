#include "diagnose/to_ddp/rank_devices.hpp"

#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <cctype>

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
  if (sources.size() != 1 || sources.front().how != Source::How::argument) return false;
  const CallRef option = program.as_call(sources.front().ref);
  const Ref given = option ? option.keyword("default") : Ref{};
  return given && given.kind() == Kind::integer;
}

// 0, also by a name, device_ids[0], args.gpu_ids[0]: the first of several GPUs.
bool is_first_gpu(const Program& program, Ref device) {
  if (device.kind() == Kind::integer) return true;
  if (device.kind() == Kind::identifier) {
    const auto& sources = program.sources(device);
    return sources.size() == 1 && sources.front().how == Source::How::value &&
           sources.front().ref.kind() == Kind::integer;
  }
  if (device.kind() == Kind::attribute) return is_option_of_one(program, device);
  const std::string text = lowered(device.text());
  return device.kind() == Kind::subscript && text.ends_with("[0]") &&
         (contains(text, "gpu") || contains(text, "device"));
}

// torch.device("cuda:0"), torch.device("cuda", 0), torch.device(f"cuda:{device_ids[0]}"), also with
// the CPU as the other choice.
bool is_fixed(const Program& program, const CallRef& device) {
  if (const auto index = pitfalls::facts::cuda_index(program, device.ref())) return *index >= 0;
  const Ref named = device.argument(0, "type");
  for (const Ref each : {named, device.positional(1)})
    if (each && each.kind() == Kind::attribute && is_option_of_one(program, each)) return true;
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

}  // namespace

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

std::vector<FixedDevice> fixed_devices(const Program& program, const Module& module) {
  std::vector<FixedDevice> out;
  for (const CallRef& call : program.calls(Api::torch_device))
    if (call.module == &module && is_fixed(program, call))
      out.push_back({call.ref(), FixedDevice::Form::device, false});
  for (const Call& made : module.calls()) {
    const CallRef call{&module, &made};
    const bool places = ((made.name == "to" || made.name == "cuda") && call.receiver()) ||
                        made.api == Api::set_device;
    const Ref device = call.argument(0, "device");
    if (places && device && is_first_gpu(program, device))
      out.push_back({device, FixedDevice::Form::index, true});
  }
  const auto& tree = module.tree();
  for (NodeId node = 0; node < tree.size(); ++node) {
    const Ref string{&module, node};
    if (string.kind() != Kind::string || !is_numbered(program.string(string).value_or("")) ||
        is_key_of_something(string) || is_in_text_or_test(string))
      continue;
    if (std::none_of(out.begin(), out.end(), [&](const FixedDevice& other) {
          return tree.contains(other.where.node, node);
        }))
      out.push_back({string, FixedDevice::Form::text, false});
  }
  std::sort(out.begin(), out.end(),
            [](const FixedDevice& a, const FixedDevice& b) { return a.where.node < b.where.node; });
  return out;
}

}  // namespace bench::diagnose
