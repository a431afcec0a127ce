// The C API on top of Program and Session: argument checks and handles only.
#include "runtime/CApiDevices.h"
#include "runtime/execute/session/AsyncRunner.h"
#include "runtime/format/Expr.h"
#include "runtime/format/Target.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstring>

using namespace burin;
using namespace burin::rt;
using burin::rt::api::give;

struct burin_artifact {
  Program::Ptr program;
  uint32_t function = 0;           // the function that the handle stands for
  std::atomic<int> references = 1; // of the caller, and one per session
  burin_logger logger{};
  // Storage that the info functions return pointers to.
  std::vector<burin_tensor_info> inputs, outputs, states;
  std::vector<burin_symbol_info> symbols;
  std::vector<std::string> texts;
  std::vector<std::vector<int64_t>> dims;

  const Plan &plan() const { return program->artifact().plans[function]; }
};

/// Passes the steps of a profile to the caller's callback.
struct ProfileForward {
  burin_step_callback callback;
  void *ctx;

  static void step(void *self, const StepProfile &p) {
    auto &forward = *static_cast<ProfileForward *>(self);
    burin_step_profile out{p.step,  p.parallel, p.kernel,    p.location,   p.startNs,  p.endNs,   p.tasks,
                           p.flops, p.bytes,    p.iteration, p.iterations, p.function, p.provider};
    forward.callback(forward.ctx, &out);
  }
};

/// Shared by all handles for functions of one session.
struct SessionCore {
  std::unique_ptr<ProfileForward> profile; // target of the session's hook
  std::unique_ptr<Session> session;
  std::unique_ptr<AsyncRunner> async; // declared after the session, so that it is destroyed first
  std::mutex asyncMutex;              // guards the creation of `async`
};

struct burin_session {
  burin_artifact *artifact = nullptr; // the function that runs
  std::shared_ptr<SessionCore> core;

  Session &session() const { return *core->session; }
  uint32_t function() const { return artifact->function; }
};

// A burin_tensor is accessed as a TensorView, so that runs copy no descriptions.
static_assert(sizeof(burin_tensor) == sizeof(TensorView) &&
              offsetof(burin_tensor, data) == offsetof(TensorView, data) &&
              offsetof(burin_tensor, shape) == offsetof(TensorView, shape) &&
              offsetof(burin_tensor, rank) == offsetof(TensorView, rank) &&
              offsetof(burin_tensor, dtype) == offsetof(TensorView, dtype) &&
              offsetof(burin_tensor, device) == offsetof(TensorView, device) &&
              sizeof(burin_device) == sizeof(DeviceTag));
static_assert(BURIN_BOOL == int(DType::boolean) && BURIN_I64 == int(DType::i64));
static_assert(BURIN_DATA_ERROR == int(ErrorCode::Data));

namespace {

std::span<const TensorView> views(const burin_tensor *tensors, uint32_t count) {
  return {reinterpret_cast<const TensorView *>(tensors), count};
}
std::span<TensorView> views(burin_tensor *tensors, uint32_t count) {
  return {reinterpret_cast<TensorView *>(tensors), count};
}

burin_status *missing(const char *what) {
  return give({ErrorCode::InvalidArgument, text("a null pointer was given for ", what)});
}

/// The caller's options up to its struct_size, and defaults for the rest.
template <class Options> Options optionsOr(const Options *given) {
  Options out{};
  if (given)
    std::memcpy(&out, given, std::min(given->struct_size, sizeof out));
  return out;
}

void log(const burin_logger &logger, int level, const std::string &message) {
  if (logger.log)
    logger.log(logger.ctx, level, message.c_str());
}

// Artifacts

std::string describe(const Plan &a, const TensorInfo &t) {
  std::string out(name(t.dtype));
  out += "[";
  for (size_t i = 0; i < t.dims.size(); ++i)
    out += (i ? ", " : "") + printed(a.exprs[t.dims[i]], a.symbols);
  return out + "]";
}

void fillInfos(burin_artifact &handle) {
  const Artifact &artifact = handle.program->artifact();
  const Plan &a = handle.plan();
  size_t count = a.inputs.size() + a.outputs.size() + artifact.states.size();
  handle.texts.reserve(count); // the infos point into both
  handle.dims.reserve(count);
  auto add = [&](const TensorInfo &t, std::vector<burin_tensor_info> &out) {
    handle.texts.push_back(describe(a, t));
    std::vector<int64_t> &dims = handle.dims.emplace_back();
    for (ExprId id : t.dims) {
      const Expr &e = a.exprs[id];
      dims.push_back(e.program.size() == 1 && e.program[0].op == Expr::Op::Const ? e.program[0].value : -1);
    }
    out.push_back({t.name.c_str(),
                   handle.texts.back().c_str(),
                   artifact.locations[t.location].c_str(),
                   dims.data(),
                   uint32_t(dims.size()),
                   uint8_t(t.dtype),
                   {}});
  };
  for (size_t i = 0; i < a.callerInputs(); ++i)
    add(a.inputs[i], handle.inputs);
  for (size_t i = 0; i < a.callerOutputs(); ++i)
    add(a.outputs[i], handle.outputs);
  for (const State &state : artifact.states) {
    const std::string &type = handle.texts.emplace_back(tensorText(state.dtype, state.shape));
    handle.states.push_back({state.name.c_str(),
                             type.c_str(),
                             "",
                             state.shape.data(),
                             uint32_t(state.shape.size()),
                             uint8_t(state.dtype),
                             {}});
  }
  for (const Symbol &s : a.symbols)
    handle.symbols.push_back({s.name.c_str(), s.min, s.max, s.kind == Symbol::Kind::Computed ? BURIN_COMPUTED : s.input,
                              s.axis, s.scale, s.offset});
}

burin_status *makeArtifact(Status loaded, Program::Ptr program, const burin_load_options &options,
                           burin_artifact **out) {
  if (!loaded.ok())
    return give(std::move(loaded));
  auto handle = std::make_unique<burin_artifact>();
  handle->program = std::move(program);
  handle->logger = options.logger;
  fillInfos(*handle);
  if (handle->program->runsOnCpu() && targetRank(handle->program->target()) < targetRank(hostTarget()))
    log(options.logger, BURIN_LOG_INFO,
        text("running code for ", handle->program->target(), " on a processor that is ", hostTarget()));
  *out = handle.release();
  return nullptr;
}

LoadOptions loadOptions(const burin_load_options &options) {
  return {options.flags & BURIN_LOAD_TRUST_WEIGHTS ? WeightCheck::Trust : WeightCheck::Verify};
}

burin_status *artifactLoadFile(const char *path, const burin_load_options *given, burin_artifact **out) {
  if (!path || !out)
    return missing(path ? "artifact" : "path");
  burin_load_options options = optionsOr(given);
  Program::Ptr program;
  Status s = Program::loadFile(path, loadOptions(options), program);
  return makeArtifact(std::move(s), std::move(program), options, out);
}

burin_status *artifactLoadMemory(const void *data, size_t bytes, const burin_load_options *given,
                                 burin_artifact **out) {
  if (!data || !out)
    return missing(data ? "artifact" : "data");
  burin_load_options options = optionsOr(given);
  std::shared_ptr<const void> owner;
  if (options.flags & BURIN_LOAD_BORROW)
    owner = std::shared_ptr<const void>(data, [](const void *) {});
  Program::Ptr program;
  Status s = Program::loadMemory({static_cast<const std::byte *>(data), bytes}, std::move(owner), loadOptions(options),
                                 program);
  return makeArtifact(std::move(s), std::move(program), options, out);
}

void artifactRelease(burin_artifact *artifact) {
  if (artifact && artifact->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete artifact;
}

template <class Info> const Info *at(const std::vector<Info> &infos, uint32_t index) {
  return index < infos.size() ? &infos[index] : nullptr;
}

burin_status *artifactInputShape(const burin_artifact *artifact, uint32_t index, const int64_t *values, uint32_t count,
                                 int64_t *shape) {
  if (!artifact || (count && !values))
    return missing("artifact or symbol_values");
  const Plan &a = artifact->plan();
  if (index >= a.callerInputs() || count != a.symbols.size())
    return give({ErrorCode::InvalidArgument, text("there are ", a.callerInputs(), " inputs and ", a.symbols.size(),
                                                  " symbols; got input ", index, " and ", count, " values")});
  const std::vector<ExprId> &dims = a.inputs[index].dims;
  if (!shape && !dims.empty())
    return missing("shape");
  std::vector<int64_t> result;
  for (ExprId id : dims) {
    std::optional<int64_t> value = evaluate(a.exprs[id], {values, count});
    if (!value || *value < 0)
      return give(
          {ErrorCode::InvalidArgument, text("input ", index, " (", a.inputs[index].name,
                                            ") has no shape for these sizes: ", printed(a.exprs[id], a.symbols))});
    result.push_back(*value);
  }
  std::copy(result.begin(), result.end(), shape);
  return nullptr;
}

const char *artifactMetadata(const burin_artifact *artifact, const char *key) {
  for (const auto &[k, value] : artifact->program->artifact().metadata)
    if (k == key)
      return value.c_str();
  return nullptr;
}

// Sessions

SessionOptions sessionOptions(const burin_session_options &o) {
  SessionOptions out;
  out.threads = o.threads;
  out.allocator = {o.allocator.ctx, o.allocator.allocate, o.allocator.release};
  out.parallelFor = {o.thread_pool.ctx, o.thread_pool.parallel_for, o.thread_pool.threads};
  out.logger = {o.logger.ctx, o.logger.log};
  out.device = o.device ? o.device : "";
  if (o.stream)
    out.stream = {gpu::StreamChoice::Kind::Given, static_cast<gpu::Stream>(o.stream)};
  return out;
}

void giveSession(burin_artifact *artifact, std::shared_ptr<SessionCore> core, burin_session **out) {
  artifact->references.fetch_add(1, std::memory_order_relaxed);
  *out = new burin_session{artifact, std::move(core)};
}

burin_status *sessionCreate(burin_artifact *artifact, const burin_session_options *given, burin_session **out) {
  if (!artifact || !out)
    return missing(artifact ? "session" : "artifact");
  burin_session_options options = optionsOr(given);
  if (!options.logger.log)
    options.logger = artifact->logger;
  auto core = std::make_shared<SessionCore>();
  if (Status s = Session::create(artifact->program, sessionOptions(options), core->session); !s.ok())
    return give(std::move(s));
  giveSession(artifact, std::move(core), out);
  return nullptr;
}

void sessionRelease(burin_session *session) {
  if (!session)
    return;
  burin_artifact *artifact = session->artifact;
  delete session;
  artifactRelease(artifact);
}

burin_status *sessionBind(burin_session *session, const burin_tensor *inputs, uint32_t count) {
  if (!session || (count && !inputs))
    return missing(session ? "inputs" : "session");
  return give(session->session().bind(views(inputs, count), session->function()));
}

const int64_t *sessionOutputShape(const burin_session *session, uint32_t index, uint32_t *rank) {
  if (!session || !session->session().isBound(session->function()) || index >= session->artifact->outputs.size())
    return nullptr;
  static constexpr int64_t noDims = 0; // a scalar's shape is empty, not missing
  std::span<const int64_t> shape = session->session().outputShape(index, session->function());
  if (rank)
    *rank = uint32_t(shape.size());
  return shape.empty() ? &noDims : shape.data();
}

uint64_t sessionArenaBytes(const burin_session *session) {
  bool isBound = session && session->session().isBound(session->function());
  return isBound ? session->session().arenaBytes(session->function()) : 0;
}

burin_status *sessionRun(burin_session *session, const burin_tensor *inputs, uint32_t inputCount, burin_tensor *outputs,
                         uint32_t outputCount) {
  if (!session || (inputCount && !inputs) || (outputCount && !outputs))
    return missing(!session ? "session" : inputCount && !inputs ? "inputs" : "outputs");
  return give(session->session().run(views(inputs, inputCount), views(outputs, outputCount), session->function()));
}

/// Passes the caller's callback through the runner.
struct DoneCall {
  burin_done_callback callback;
  void *ctx;

  static void done(void *self, const Status &status, std::span<const TensorView> outputs) {
    std::unique_ptr<DoneCall> call(static_cast<DoneCall *>(self));
    burin_status failure;
    if (!status.ok())
      failure.status = Status(status.code(), status.message());
    call->callback(call->ctx, status.ok() ? nullptr : &failure, reinterpret_cast<const burin_tensor *>(outputs.data()),
                   uint32_t(outputs.size()));
  }
};

burin_status *sessionRunAsync(burin_session *session, const burin_tensor *inputs, uint32_t inputCount,
                              const burin_tensor *outputs, uint32_t outputCount, burin_done_callback done, void *ctx) {
  if (!session || (inputCount && !inputs) || (outputCount && !outputs) || !done)
    return missing("session, inputs, outputs or done");
  SessionCore &core = *session->core;
  {
    std::lock_guard lock(core.asyncMutex);
    if (!core.async)
      core.async = std::make_unique<AsyncRunner>(*core.session);
  }
  auto call = std::make_unique<DoneCall>(DoneCall{done, ctx});
  Status s = core.async->enqueue(session->function(), views(inputs, inputCount), views(outputs, outputCount),
                                 {call.get(), DoneCall::done});
  if (s.ok())
    static_cast<void>(call.release()); // owned by the runner now
  return give(std::move(s));
}

burin_status *sessionSetProfile(burin_session *session, burin_step_callback callback, void *ctx) {
  if (!session)
    return missing("session");
  std::unique_ptr<ProfileForward> forward;
  if (callback)
    forward = std::make_unique<ProfileForward>(ProfileForward{callback, ctx});
  Status s = session->session().setProfile({forward.get(), callback ? ProfileForward::step : nullptr});
  if (s.ok())
    session->core->profile = std::move(forward);
  return give(std::move(s));
}

// Functions

burin_status *artifactFunction(burin_artifact *artifact, const char *name, burin_artifact **out) {
  if (!artifact || !name || !out)
    return missing("artifact, name or function");
  uint32_t index = artifact->program->function(name);
  if (index == UINT32_MAX) {
    std::string known;
    for (const Plan &plan : artifact->program->artifact().plans)
      known += plan.isPrivate ? "" : " " + plan.name;
    return give({ErrorCode::InvalidArgument, text("the artifact has no function ", name, "; it has:", known)});
  }
  auto handle = std::make_unique<burin_artifact>();
  handle->program = artifact->program;
  handle->function = index;
  handle->logger = artifact->logger;
  fillInfos(*handle);
  *out = handle.release();
  return nullptr;
}

uint32_t artifactFunctionCount(const burin_artifact *artifact) {
  const std::vector<Plan> &plans = artifact->program->artifact().plans;
  return uint32_t(std::ranges::count(plans, 0, &Plan::isPrivate));
}

const char *artifactFunctionName(const burin_artifact *artifact, uint32_t index) {
  return index < artifactFunctionCount(artifact) ? artifact->program->artifact().plans[index].name.c_str() : nullptr;
}

burin_status *sessionFunction(burin_session *session, const char *name, burin_session **out) {
  if (!session || !out)
    return missing(session ? "function" : "session");
  burin_artifact *function = nullptr;
  if (burin_status *s = artifactFunction(session->artifact, name, &function))
    return s;
  giveSession(function, session->core, out);
  artifactRelease(function); // owned by the session now
  return nullptr;
}

// States

burin_status *noState(const burin_session *session, uint32_t index) {
  if (!session)
    return missing("session");
  size_t count = session->artifact->states.size();
  return index < count ? nullptr
                       : give({ErrorCode::InvalidArgument, text("there are ", count, " states, got index ", index)});
}

burin_status *sessionReadState(const burin_session *session, uint32_t index, burin_tensor *out) {
  if (burin_status *s = noState(session, index))
    return s;
  if (!out)
    return missing("tensor");
  return give(session->session().readState(index, *views(out, 1).data()));
}

burin_status *sessionStateOnDevice(const burin_session *session, uint32_t index, burin_tensor *out) {
  if (burin_status *s = noState(session, index))
    return s;
  if (!out)
    return missing("tensor");
  *views(out, 1).data() = session->session().state(index);
  return nullptr;
}

burin_status *sessionWriteState(burin_session *session, uint32_t index, const burin_tensor *value) {
  if (burin_status *s = noState(session, index))
    return s;
  if (!value || !value->data)
    return missing("value");
  const burin_tensor_info &info = session->artifact->states[index];
  if (value->dtype != info.dtype || value->rank != info.rank ||
      !std::equal(info.dims, info.dims + info.rank, value->shape))
    return give({ErrorCode::InvalidArgument,
                 text("the state ", info.name, " is ", info.text, ", got ",
                      tensorText(DType(value->dtype), {value->shape, value->shape ? value->rank : 0}))});
  uint64_t bytes = byteWidth(DType(info.dtype));
  for (uint32_t i = 0; i < info.rank; ++i)
    bytes *= uint64_t(info.dims[i]);
  const TensorView &view = *views(value, 1).data();
  if (view.device.isGpu && !(view.device == session->session().state(index).device))
    return give({ErrorCode::InvalidArgument, text("the value of the state ", info.name, " is on another GPU")});
  return give(
      session->session().writeState(index, {static_cast<const std::byte *>(value->data), bytes}, view.device.isGpu));
}

burin_status *sessionReorderState(burin_session *session, uint32_t index, uint32_t axis, const int64_t *order,
                                  uint32_t count) {
  if (burin_status *s = noState(session, index))
    return s;
  if (count && !order)
    return missing("order");
  return give(session->session().reorderState(index, axis, {order, count}));
}

const burin_runtime_api table = {
    BURIN_RUNTIME_VERSION,
    sizeof(burin_runtime_api),
    [] { return "burin " BURIN_VERSION; },
    [] { return hostTarget().data(); },
    [](const burin_status *s) { return s ? uint32_t(s->status.code()) : uint32_t(BURIN_OK); },
    [](const burin_status *s) { return s ? s->status.message().c_str() : "ok"; },
    [](burin_status *s) { delete s; },
    artifactLoadFile,
    artifactLoadMemory,
    artifactRelease,
    [](const burin_artifact *a) { return uint32_t(a->inputs.size()); },
    [](const burin_artifact *a) { return uint32_t(a->outputs.size()); },
    [](const burin_artifact *a) { return uint32_t(a->symbols.size()); },
    [](const burin_artifact *a, uint32_t i) { return at(a->inputs, i); },
    [](const burin_artifact *a, uint32_t i) { return at(a->outputs, i); },
    [](const burin_artifact *a, uint32_t i) { return at(a->symbols, i); },
    artifactInputShape,
    [](const burin_artifact *a) { return a->program->artifact().producer.c_str(); },
    [](const burin_artifact *a) { return a->program->target().c_str(); },
    artifactMetadata,
    sessionCreate,
    sessionRelease,
    sessionBind,
    sessionOutputShape,
    sessionArenaBytes,
    sessionRun,
    sessionRunAsync,
    sessionSetProfile,
    artifactFunctionCount,
    artifactFunctionName,
    artifactFunction,
    sessionFunction,
    [](const burin_artifact *a) { return uint32_t(a->states.size()); },
    [](const burin_artifact *a, uint32_t i) { return at(a->states, i); },
    sessionReadState,
    sessionWriteState,
    [](burin_session *s) { return s ? give(s->session().resetStates()) : missing("session"); },
    [](burin_session *s, const burin_session *from) {
      return s && from ? give(s->session().copyStates(from->session())) : missing("session");
    },
    sessionReorderState,
    api::deviceCount,
    api::deviceAlloc,
    api::deviceFree,
    api::deviceCopy,
    api::deviceSynchronize,
    api::deviceMemory,
    api::deviceSetMemoryLimit,
    [](burin_session *s) { return s ? give(s->session().synchronize()) : missing("session"); },
    sessionStateOnDevice,
    [](burin_session *s, const char *path) {
      return s && path ? give(s->session().saveStates(path)) : missing("session or path");
    },
    [](burin_session *s, const char *path) {
      return s && path ? give(s->session().loadStates(path)) : missing("session or path");
    },
};

} // namespace

const burin_runtime_api *burin_runtime_get(uint32_t version) {
  return version == BURIN_RUNTIME_VERSION ? &table : nullptr;
}
