#include "scenarios/pitfalls/data/parts_of_model.hpp"

#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

// weight_list, self.layers, list(model.parameters()): what the name, or the expression, calls it.
bool is_named_after_parts(std::string_view text) {
  auto words = words_of_name(text);
  if (!words.empty() && words.back() == "list") words.pop_back();
  if (words.empty()) return false;
  // expert_files are files.
  for (const char* part : {"weight", "weights", "param", "params", "parameter", "parameters",
                           "layer", "layers", "expert", "experts", "bias", "biases"})
    if (words.back() == part) return true;
  return false;
}

// rank = get_tensor_model_parallel_rank(): the ranks of a group that shares one model, each of
// which is given the same data.
bool is_rank_of_parts(const Program& program, Ref bound) {
  std::string text = text_behind(program, bound);
  // What the call is named, too, where the program has its body.
  if (const diagnose::Def* given = last_value_above(bound); given && given->value)
    text += bound.module->text(given->value);
  return says_any(
      text, {"model_parallel", "tensor_parallel", "pipeline_parallel", "expert_parallel", "mp_rank",
             "tp_rank", "pp_rank", "ep_rank", "mp_size", "tp_size", "pp_size", "ep_size",
             "mp_world", "tp_world", "model-parallel", "tensor-parallel"});
}

}  // namespace

bool shares_out_model(const Program& program, Ref slice) {
  const Ref bounds = slice.child(Field::subscript);
  const auto& tree = slice.module->tree();
  for (auto at = tree[bounds.node].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling)
    if (is_rank_of_parts(program, bounds.with(at))) return true;
  return is_named_after_parts(slice.child(Field::value).text()) ||
         is_named_after_parts(program.assigned_name(slice));
}

}  // namespace bench::pitfalls
