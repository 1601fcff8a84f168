#include "training/models/script_model.hpp"

#include "bench/core/error.hpp"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <caffe2/serialize/inline_container.h>

#include <filesystem>
#include <fstream>
#include <unordered_map>
#include <unordered_set>

namespace bench::training {
namespace {

// Both samples of the probe may share statistics, but a batch of 1 would hide a model that fixes
// its batch size.
constexpr std::int64_t kProbeBatch = 2;
// Two ids are valid for every vocabulary, and the cost of an embedding does not depend on them.
constexpr std::int64_t kUnknownVocabulary = 2;

constexpr const char* kExpected =
    "expected a TorchScript file, as torch.jit.script(model).save(\"model.pt\") writes it";

std::string sizes_text(torch::IntArrayRef sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// The sentence of PyTorch's own that matters: TorchScript puts it behind a trace of Python lines.
std::string essence(const std::exception& error) {
  std::string text = error.what();
  if (const auto* own = dynamic_cast<const c10::Error*>(&error))
    text = own->what_without_backtrace();
  const std::string marker = "RuntimeError: ";
  if (const std::size_t at = text.rfind(marker); at != std::string::npos) {
    text = text.substr(at + marker.size());
  }
  if (const std::size_t at = text.find("\nException raised from"); at != std::string::npos) {
    text.resize(at);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void check_is_torchscript(const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) {
    throw UsageError("--model " + file + ": no such file; " + kExpected);
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw UsageError("--model " + file + ": cannot be read");
  char magic[2] = {};
  stream.read(magic, sizeof magic);
  if (magic[0] != 'P' || magic[1] != 'K') {
    throw UsageError("--model " + file + ": not a TorchScript file (not a zip archive); " +
                     kExpected);
  }
  try {
    caffe2::serialize::PyTorchStreamReader reader(file);
    if (reader.hasRecord("constants.pkl")) return;
    const bool pickle = reader.hasRecord("data.pkl");
    throw UsageError("--model " + file + ": " +
                     (pickle ? "holds what torch.save wrote (a state_dict or a pickled module), "
                               "without the code of a model; "
                             : "not a TorchScript file; ") +
                     kExpected);
  } catch (const c10::Error& error) {
    throw UsageError("--model " + file + ": damaged archive: " + essence(error) + "; " + kExpected);
  }
}

// Models may return more than one tensor: auxiliary classifiers in a tuple, heads in a dictionary.
// The first one is trained ("out" in a dictionary, the name torchvision's segmentation models use).
torch::Tensor main_output(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isTuple() && !value.toTupleRef().elements().empty()) {
    return main_output(value.toTupleRef().elements()[0]);
  }
  if (value.isTensorList() && value.toTensorVector().size() > 0) return value.toTensorVector()[0];
  if (value.isGenericDict() && !value.toGenericDict().empty()) {
    const auto outputs = value.toGenericDict();
    const auto named = outputs.find(c10::IValue("out"));
    return main_output((named != outputs.end() ? named : outputs.begin())->value());
  }
  throw UsageError("the model returns " + value.tagKind() +
                   "; expected a tensor, or a tuple or dictionary that starts with one");
}

// A copy of a module object with tensors of its own. What several submodules share stays shared.
class ObjectCopier {
 public:
  c10::IValue copy(const c10::IValue& value) {
    if (value.isTensor()) return copy_tensor(value.toTensor());
    if (!value.isModule()) return value;
    const auto object = value.toObject();
    const auto known = objects_.find(object.get());
    if (known != objects_.end()) return known->second;
    const auto made = object->copy();
    objects_.emplace(object.get(), made);
    for (std::size_t i = 0; i < object->slots().size(); ++i) {
      made->setSlot(i, copy(object->getSlot(i)));
    }
    return made;
  }

 private:
  torch::Tensor copy_tensor(const torch::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    const auto known = tensors_.find(tensor.unsafeGetTensorImpl());
    if (known != tensors_.end()) return known->second;
    torch::NoGradGuard no_grad;
    torch::Tensor made =
        torch::empty_strided(tensor.sizes(), tensor.strides(), torch::dtype(tensor.dtype()));
    if (tensor.is_cpu()) made.copy_(tensor);
    made.set_requires_grad(tensor.requires_grad());
    tensors_.emplace(tensor.unsafeGetTensorImpl(), made);
    return made;
  }

  std::unordered_map<const void*, c10::intrusive_ptr<c10::ivalue::Object>> objects_;
  std::unordered_map<const void*, torch::Tensor> tensors_;
};

class ScriptModel : public Model {
 public:
  explicit ScriptModel(torch::jit::Module module) : module_(std::move(module)) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    // Without the profiling executor every step runs the same operations; with it the first steps
    // differ from the later ones.
    torch::jit::setGraphExecutorOptimize(false);
    return main_output(module_.forward({input}));
  }

  std::vector<NamedTensor> parameters() const override {
    return unique(module_.named_parameters());
  }
  std::vector<NamedTensor> buffers() const override { return unique(module_.named_buffers()); }
  void train(bool on) override {
    training_ = on;
    module_.train(on);
    if (dropout_) return;
    for (const torch::jit::Module& module : module_.modules()) {
      // Dropout, Dropout2d, AlphaDropout, ...: the class a file was scripted from keeps its name.
      const bool random = module.type()->name()->name().find("Dropout") != std::string::npos;
      if (random) torch::jit::Module(module).train(false);
    }
  }
  void disable_dropout() override {
    dropout_ = false;
    train(training_);
  }
  std::int64_t module_count() const override {
    return static_cast<std::int64_t>(module_.modules().size()) - 1;
  }

  std::unique_ptr<Model> shell() const override {
    const c10::IValue object = ObjectCopier().copy(module_._ivalue());
    auto made = std::make_unique<ScriptModel>(torch::jit::Module(object.toObject()));
    made->copy_description(*this);
    made->dropout_ = dropout_;
    made->train(training_);
    return made;
  }

 private:
  // Tied weights have several names and count once, under the first, as in Python.
  template <class List>
  static std::vector<NamedTensor> unique(const List& list) {
    std::vector<NamedTensor> tensors;
    std::unordered_set<const void*> seen;
    for (const auto& item : list) {
      if (!seen.insert(item.value.unsafeGetTensorImpl()).second) continue;
      tensors.push_back({item.name, item.value});
    }
    return tensors;
  }

  torch::jit::Module module_;
  bool dropout_ = true;
  bool training_ = true;
};

std::unique_ptr<ScriptModel> read_module(const std::string& file) {
  check_is_torchscript(file);
  try {
    return std::make_unique<ScriptModel>(torch::jit::load(file, torch::kCPU));
  } catch (const std::exception& error) {
    throw UsageError("--model " + file + ": cannot be loaded: " + essence(error) + "; " +
                     kExpected);
  }
}

torch::Dtype parse_dtype(const std::string& name) {
  if (name == "float32") return torch::kFloat32;
  if (name == "int64") return torch::kInt64;
  throw UsageError("--input-dtype " + name + ": expected float32 or int64 (token ids)");
}

torch::Tensor probe_output(ScriptModel& model, const ModelSpec& spec) {
  std::vector<std::int64_t> sizes{kProbeBatch};
  sizes.insert(sizes.end(), spec.input_shape.begin(), spec.input_shape.end());
  torch::NoGradGuard no_grad;
  model.train(false);  // the probe must leave the statistics of BatchNorm alone
  try {
    const torch::Tensor output =
        model.forward(torch::zeros(sizes, torch::dtype(model.input_dtype)));
    model.train(true);
    return output;
  } catch (const UsageError& error) {
    throw UsageError("--model " + spec.file + ": " + error.what());
  } catch (const std::exception& error) {
    throw UsageError("--model " + spec.file + ": does not accept " + std::to_string(kProbeBatch) +
                     " samples of --input " + sizes_text(spec.input_shape) + " (" +
                     spec.input_dtype + "): " + essence(error));
  }
}

// [B, C] scores are classified; [B, T, V] scores of token ids are a language model's; everything
// else is regressed on targets of its own shape.
void describe_output(ScriptModel& model, const ModelSpec& spec, const torch::Tensor& output) {
  const std::string where = "--model " + spec.file + ": ";
  if (output.dim() < 1 || output.size(0) != kProbeBatch) {
    throw UsageError(where + "the output for " + std::to_string(kProbeBatch) +
                     " samples has the shape [" + sizes_text(output.sizes()) +
                     "]; expected the batch as its first dimension");
  }
  if (!output.is_floating_point()) {
    throw UsageError(where + "the output has type " + std::string(output.dtype().name()) +
                     "; expected floating point, which a loss can be computed from");
  }
  model.output_shape = output.sizes().slice(1).vec();
  const bool tokens = model.input_dtype == torch::kInt64;
  const bool classifier = output.dim() == 2 && output.size(1) > 1;
  const bool language_model = output.dim() == 3 && tokens;
  model.loss_kind = classifier || language_model ? LossKind::cross_entropy : LossKind::mse;
  if (tokens) model.token_count = language_model ? output.size(2) : kUnknownVocabulary;
  if (model.loss_kind == LossKind::mse) return;
  const std::int64_t scores = output.size(-1);
  if (spec.classes > scores) {
    throw UsageError("--classes " + std::to_string(spec.classes) + ": " + spec.file +
                     " has scores for " + std::to_string(scores));
  }
  model.target_classes = spec.classes > 0 ? spec.classes : scores;
}

}  // namespace

std::unique_ptr<Model> load_script_model(const ModelSpec& spec) {
  auto model = read_module(spec.file);
  bool trainable = false;
  for (const NamedTensor& parameter : model->parameters()) {
    trainable = trainable || parameter.tensor.requires_grad();
  }
  if (!trainable) {
    throw UsageError("--model " + spec.file +
                     ": has no parameters to train; expected a module that was neither frozen "
                     "(torch.jit.freeze) nor stripped of requires_grad");
  }
  if (spec.input_shape.empty()) {
    throw UsageError(
        "--model " + spec.file +
        ": --input is missing; expected the shape of one sample, as --input 3x224x224");
  }
  model->input_shape = spec.input_shape;
  model->input_dtype = parse_dtype(spec.input_dtype);
  describe_output(*model, spec, probe_output(*model, spec));
  return model;
}

}  // namespace bench::training
