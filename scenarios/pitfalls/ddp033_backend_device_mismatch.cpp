#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/cpu_tensors.hpp"
#include "scenarios/pitfalls/ranks/gpu_tests.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Value;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

constexpr std::string_view kSlow =
    "gloo moves GPU tensors through host memory: NCCL is several times faster";

// Where the backend is written: the argument itself, or in another file the value it is given.
Ref written_backend(const Program& program, Ref backend) {
  const auto& sources = program.sources(backend);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value) return backend;
  const Ref value = sources.front().ref;
  return value.module != backend.module && value.kind() == diagnose::Kind::string ? value : backend;
}

// A file or function that is named after the backend is there to try it.
bool is_about_gloo(const Program& program, const CallRef& init) {
  const std::string& path = init.module->path();
  if (facts::contains(facts::lowered(path.substr(path.rfind('/') + 1)), "gloo")) return true;
  const auto& functions = program.functions();
  return std::any_of(functions.begin(), functions.end(), [](const diagnose::FunctionRef& each) {
    return facts::contains(facts::lowered(each.function->name), "gloo");
  });
}

// Trainer(model, train_dataset=data), also of a class that derives from the library's.
bool hands_data_to_trainer(const Program& program) {
  const auto makes_trainer = [](std::string_view name) { return facts::contains(name, "Trainer"); };
  const auto calls = program.calls_that(makes_trainer);
  return std::any_of(calls.begin(), calls.end(),
                     [](const CallRef& call) { return call.keyword("train_dataset"); });
}

// A DataLoader, or for batch in get_train_loader(args): what a file that is not at hand makes. So
// is the loader that the training function is given.
bool trains_on_data(const Program& program) {
  if (program.uses(Api::data_loader) || hands_data_to_trainer(program)) return true;
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
    if (facts::is_parameter(program, loop.iterable) && says_any(loop.iterable.text(), {"loader"}))
      return true;
    const auto& sources = program.sources(loop.iterable);
    return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
      const CallRef made = program.as_call(source.ref);
      return made && !program.callee(made) &&
             facts::contains(facts::lowered(made.call->name), "loader");
    });
  });
}

// torch.device(f"cuda:{rank}") where there are GPUs: one for each rank.
bool is_gpu_of_rank(const Program& program, Ref device) {
  const auto& sources = program.sources(device);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef made = program.as_call(source.ref);
    const Ref name = made && made.call->api == Api::torch_device ? made.positional(0) : source.ref;
    return name.kind() == diagnose::Kind::string && facts::contains(name.text(), "cuda") &&
           program.mentions_rank(name);
  });
}

// Accelerator(kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")]): Accelerate takes the GPUs
// that are there all the same.
void check_accelerates_backend(const Program& program, Report& report) {
  if (program.calls_named("prepare").empty()) return;
  bool on_gpu = program.mentions("cuda") || program.mentions("gpu");
  for (const CallRef& made : program.calls(Api::accelerator))
    if (made.keyword("cpu")) on_gpu = false;
  for (const CallRef& handler : program.calls_named("InitProcessGroupKwargs")) {
    const Ref backend = handler.keyword("backend");
    if (!on_gpu || !backend || program.written(backend).kind() != diagnose::Kind::string ||
        program.string(backend).value_or("") != "gloo")
      continue;
    report.at(backend, Confidence::likely, std::string(kSlow)).help =
        "Leave the backend to Accelerate: it takes NCCL for GPUs and gloo for the CPU.";
  }
}

// NCCL moves what lies on GPUs alone.
void check_cpu_tensors(const Program& program, Report& report) {
  for (const CallRef& collective : nccl_collectives(program)) {
    const Ref tensor = sent_from_cpu(program, collective);
    if (!tensor || only_without_gpus(program, collective.ref())) continue;
    report
        .at(collective.ref(), Confidence::likely,
            "'" + std::string(tensor.text()) +
                "' is on the CPU, and NCCL has no backend for it: RuntimeError, no backend type "
                "associated with device type cpu")
        .help = "Make it on the GPU of the process: device=accelerator.device, or the rank's GPU.";
    return;
  }
}

// device_ids=None says that there is no GPU.
bool names_device_ids(const Program& program, const Wrap& wrap) {
  const Ref ids = wrap.call.argument(1, "device_ids");
  return (ids && program.written(ids).kind() != diagnose::Kind::none_literal) ||
         facts::contains(wrap.call.ref().text(), "output_device");
}

bool is_wrapped_on_gpu(const Program& program, const Wrap& wrap) {
  if (names_device_ids(program, wrap)) return true;
  const auto placements = facts::placements(program, wrap);
  return std::any_of(placements.begin(), placements.end(), [&](const CallRef& call) {
    const Ref device = call.argument(0, "device");
    return call.call->name == "cuda" || facts::cuda_index(program, device) ||
           program.comes_from(device, Api::current_device) || is_gpu_of_rank(program, device);
  });
}

// DDPStrategy(process_group_backend="gloo"): Lightning, too, takes the GPUs that are there.
void check_lightnings_backend(const Program& program, Report& report) {
  for (const std::string_view word : {"\"cpu\"", "'cpu'", "platform", "win32"})
    if (program.mentions(word)) return;
  for (const std::string_view name : {"DDPStrategy", "DDPPlugin", "DDPSpawnStrategy"})
    for (const CallRef& strategy : program.calls_named(name)) {
      const Ref backend = strategy.keyword("process_group_backend");
      if (program.written(backend).kind() != diagnose::Kind::string ||
          program.string(backend).value_or("") != "gloo" || is_about_gloo(program, strategy))
        continue;
      report.at(backend, Confidence::likely, std::string(kSlow)).help =
          "Leave the backend to Lightning: it takes NCCL for GPUs and gloo for the CPU.";
    }
}

// Where a backend is named: init_process_group itself, or setup(rank, world_size, backend="gloo")
// of a file that is not at hand.
struct Named {
  CallRef call;
  Ref backend;
};

std::vector<Named> named_backends(const Program& program) {
  std::vector<Named> out;
  for (const CallRef& init : program.calls(Api::init_process_group))
    out.push_back({init, init.argument(0, "backend")});
  const auto may_join = [](std::string_view name) {
    return says_any(name, {"init", "setup", "dist", "ddp"});
  };
  for (const CallRef& call : program.calls_that(may_join)) {
    const Ref backend = call.keyword("backend");
    if (call.call->api == Api::none && program.written(backend).kind() == diagnose::Kind::string &&
        !program.callee(call))
      out.push_back({call, backend});
  }
  return out;
}

// What the wrappers of the program say of GPUs.
struct Wrapped {
  bool on_gpu = false;
  bool says_gpu = false;
  bool says_none = false;
};

Wrapped wrapped_on(const Program& program) {
  Wrapped out;
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp) continue;
    out.on_gpu = out.on_gpu || is_wrapped_on_gpu(program, wrap);
    const std::string_view text = wrap.call.ref().text();
    const bool says = facts::contains(text, "cuda") || names_device_ids(program, wrap);
    out.says_gpu = out.says_gpu || says;
    out.says_none = out.says_none || !says;
  }
  return out;
}

void check_gloo(const Program& program, Report& report, const Named& named, const Value& name,
                const Wrapped& wrapped) {
  Finding& finding =
      report.at(written_backend(program, named.backend), Confidence::likely, std::string(kSlow));
  // A toy without data to train on shows a mechanism, not speed.
  // A default that serves machines without GPUs as well may be meant for those.
  const bool serves_both = name.is_default && wrapped.says_gpu && wrapped.says_none;
  if (serves_both || !trains_on_data(program) || is_about_gloo(program, named.call))
    tell_as_note(finding);
  finding.help = "Use backend=\"nccl\", or \"cpu:gloo,cuda:nccl\" for both kinds of tensors.";
}

}  // namespace

void check_backend_device_mismatch(const Program& program, Report& report) {
  check_accelerates_backend(program, report);
  check_lightnings_backend(program, report);
  check_cpu_tensors(program, report);
  if (!program.has_ddp()) return;
  const auto backends = named_backends(program);
  // Another group of the same program has another backend: this one has its purpose.
  const bool chosen = std::any_of(backends.begin(), backends.end(), [&](const Named& other) {
    return program.string(other.backend).value_or("") != "gloo";
  });
  const Wrapped wrapped = wrapped_on(program);
  for (const Named& named : backends) {
    if (!named.backend || only_without_gpus(program, named.call.ref())) continue;
    const Value name = program.evaluate(named.backend);
    // An option whose default is gloo is what a run takes that says nothing of it.
    if (!name.is_string() || (name.is_default && name.string != "gloo")) continue;
    if (name.string == "gloo" && wrapped.on_gpu && !chosen)
      check_gloo(program, report, named, name, wrapped);
    if (name.string == "nccl" && !facts::uses_cuda(program) && !program.uses(Api::set_device) &&
        !wrapped.on_gpu && !program.mentions("cuda") && !program.mentions(".to("))
      report
          .at(written_backend(program, named.backend), Confidence::likely,
              "nccl needs GPUs, and nothing in this program uses one: \"ProcessGroupNCCL is only "
              "supported with GPUs\"")
          .help = "Use backend=\"gloo\" on the CPU.";
  }
}

}  // namespace bench::pitfalls
