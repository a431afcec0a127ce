// The C interface over Program and Session: argument checks, handles, and nothing else.
#include "burin/runtime.h"
#include "runtime/execute/AsyncRunner.h"
#include "runtime/format/Expr.h"
#include "runtime/format/Target.h"
#include "runtime/support/Format.h"
#include <cstring>

using namespace burin;
using namespace burin::rt;

struct burin_status {
  Status status;
};

struct burin_artifact {
  Program::Ptr program;
  std::atomic<int> references = 1; // the caller's, and one per session
  burin_logger logger{};
  // What the info functions point to.
  std::vector<burin_tensor_info> inputs, outputs;
  std::vector<burin_symbol_info> symbols;
  std::vector<std::string> texts;
  std::vector<std::vector<int64_t>> dims;
};

/// Carries the steps of a profile to the caller's callback.
struct ProfileForward {
  burin_step_callback callback;
  void *ctx;

  static void step(void *self, const StepProfile &p) {
    auto &forward = *static_cast<ProfileForward *>(self);
    burin_step_profile out{p.step,  p.parallel, p.kernel, p.location, p.startNs, p.endNs,
                           p.tasks, p.flops,    p.bytes,  p.turn,     p.turns};
    forward.callback(forward.ctx, &out);
  }
};

struct burin_session {
  burin_artifact *artifact = nullptr;
  std::unique_ptr<ProfileForward> profile; // what the session's hook points to
  std::unique_ptr<Session> session;
  std::unique_ptr<AsyncRunner> async; // after the session: it goes first
  std::mutex asyncMutex;              // guards the creation of `async`
};

// A burin_tensor is read and written as a TensorView, so that a run copies no descriptions.
static_assert(sizeof(burin_tensor) == sizeof(TensorView) &&
              offsetof(burin_tensor, data) == offsetof(TensorView, data) &&
              offsetof(burin_tensor, shape) == offsetof(TensorView, shape) &&
              offsetof(burin_tensor, rank) == offsetof(TensorView, rank) &&
              offsetof(burin_tensor, dtype) == offsetof(TensorView, dtype));
static_assert(BURIN_BOOL == int(DType::boolean) && BURIN_I64 == int(DType::i64));
static_assert(BURIN_INTERNAL == int(ErrorCode::Internal));

namespace {

std::span<const TensorView> views(const burin_tensor *tensors, uint32_t count) {
  return {reinterpret_cast<const TensorView *>(tensors), count};
}
std::span<TensorView> views(burin_tensor *tensors, uint32_t count) {
  return {reinterpret_cast<TensorView *>(tensors), count};
}

burin_status *give(Status status) { return status.ok() ? nullptr : new burin_status{std::move(status)}; }
burin_status *missing(const char *what) {
  return give({ErrorCode::InvalidArgument, text("a null pointer was given for ", what)});
}

/// The caller's options as far as its struct_size goes, defaults for the rest.
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

std::string describe(const Artifact &a, const TensorInfo &t) {
  std::string out(name(t.dtype));
  out += "[";
  for (size_t i = 0; i < t.dims.size(); ++i)
    out += (i ? ", " : "") + printed(a.exprs[t.dims[i]], a.symbols);
  return out + "]";
}

void fillInfos(burin_artifact &handle) {
  const Artifact &a = handle.program->artifact();
  size_t count = a.inputs.size() + a.outputs.size();
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
                   a.locations[t.location].c_str(),
                   dims.data(),
                   uint32_t(dims.size()),
                   uint8_t(t.dtype),
                   {}});
  };
  for (const TensorInfo &t : a.inputs)
    add(t, handle.inputs);
  for (const TensorInfo &t : a.outputs)
    add(t, handle.outputs);
  for (const Symbol &s : a.symbols)
    handle.symbols.push_back(
        {s.name.c_str(), s.min, s.max, s.kind == Symbol::Kind::Computed ? BURIN_COMPUTED : s.input, s.axis});
}

burin_status *makeArtifact(Status loaded, Program::Ptr program, const burin_load_options &options,
                           burin_artifact **out) {
  if (!loaded.ok())
    return give(std::move(loaded));
  auto handle = std::make_unique<burin_artifact>();
  handle->program = std::move(program);
  handle->logger = options.logger;
  fillInfos(*handle);
  if (targetRank(handle->program->target()) < targetRank(hostTarget()))
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
  if (!artifact || !shape || (count && !values))
    return missing("artifact, symbol_values or shape");
  const Artifact &a = artifact->program->artifact();
  if (index >= a.inputs.size() || count != a.symbols.size())
    return give({ErrorCode::InvalidArgument, text("there are ", a.inputs.size(), " inputs and ", a.symbols.size(),
                                                  " symbols; got input ", index, " and ", count, " values")});
  const std::vector<ExprId> &dims = a.inputs[index].dims;
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
  return out;
}

burin_status *sessionCreate(burin_artifact *artifact, const burin_session_options *given, burin_session **out) {
  if (!artifact || !out)
    return missing(artifact ? "session" : "artifact");
  burin_session_options options = optionsOr(given);
  if (!options.logger.log)
    options.logger = artifact->logger;
  auto handle = std::make_unique<burin_session>();
  if (Status s = Session::create(artifact->program, sessionOptions(options), handle->session); !s.ok())
    return give(std::move(s));
  artifact->references.fetch_add(1, std::memory_order_relaxed);
  handle->artifact = artifact;
  *out = handle.release();
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
  return give(session->session->bind(views(inputs, count)));
}

const int64_t *sessionOutputShape(const burin_session *session, uint32_t index, uint32_t *rank) {
  if (!session || !session->session->isBound() || index >= session->artifact->outputs.size())
    return nullptr;
  static constexpr int64_t noDims = 0; // a scalar's shape is empty, not missing
  std::span<const int64_t> shape = session->session->outputShape(index);
  if (rank)
    *rank = uint32_t(shape.size());
  return shape.empty() ? &noDims : shape.data();
}

uint64_t sessionArenaBytes(const burin_session *session) {
  return session && session->session->isBound() ? session->session->arenaBytes() : 0;
}

burin_status *sessionRun(burin_session *session, const burin_tensor *inputs, uint32_t inputCount, burin_tensor *outputs,
                         uint32_t outputCount) {
  if (!session || (inputCount && !inputs) || (outputCount && !outputs))
    return missing(!session ? "session" : inputCount && !inputs ? "inputs" : "outputs");
  return give(session->session->run(views(inputs, inputCount), views(outputs, outputCount)));
}

/// Carries the caller's callback through the runner.
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
  {
    std::lock_guard lock(session->asyncMutex);
    if (!session->async)
      session->async = std::make_unique<AsyncRunner>(*session->session);
  }
  auto call = std::make_unique<DoneCall>(DoneCall{done, ctx});
  Status s =
      session->async->enqueue(views(inputs, inputCount), views(outputs, outputCount), {call.get(), DoneCall::done});
  if (s.ok())
    call.release(); // the runner has it
  return give(std::move(s));
}

burin_status *sessionSetProfile(burin_session *session, burin_step_callback callback, void *ctx) {
  if (!session)
    return missing("session");
  std::unique_ptr<ProfileForward> forward;
  if (callback)
    forward = std::make_unique<ProfileForward>(ProfileForward{callback, ctx});
  Status s = session->session->setProfile({forward.get(), callback ? ProfileForward::step : nullptr});
  if (s.ok())
    session->profile = std::move(forward);
  return give(std::move(s));
}

const burin_runtime_api api = {
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
};

} // namespace

const burin_runtime_api *burin_runtime_get(uint32_t version) {
  return version == BURIN_RUNTIME_VERSION ? &api : nullptr;
}
