// Branches and loops in CUDA graphs: conditional nodes, and the kernel that decides on them.
#include "runtime/gpu/Gpu.h"
#include <utility>

namespace burin::rt::gpu {

// Sets two conditions from a byte, unless one of `count` error slots is not empty. The driver itself defines the
// function that sets a condition, when it loads PTX; no library of the toolkit is linked.
const char *const kConditionPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);
.visible .entry set_conditions(.param .u64 met, .param .u64 unmet, .param .u64 flag, .param .u64 errors,
                               .param .u64 count)
.reqntid 1
{
  .reg .pred %p<6>;
  .reg .b16 %rs<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [met];
  ld.param.u64 %rd2, [unmet];
  ld.param.u64 %rd3, [flag];
  ld.param.u64 %rd4, [errors];
  ld.param.u64 %rd5, [count];
  cvta.to.global.u64 %rd6, %rd3;
  cvta.to.global.u64 %rd7, %rd4;
  ld.global.u8 %rs1, [%rd6];
  setp.ne.s16 %p1, %rs1, 0;
  selp.b32 %r1, 1, 0, %p1;
  selp.b32 %r2, 0, 1, %p1;
$next:
  setp.eq.s64 %p2, %rd5, 0;
  @%p2 bra $set;
  ld.global.u64 %rd8, [%rd7];
  add.s64 %rd7, %rd7, 8;
  add.s64 %rd5, %rd5, -1;
  setp.eq.s64 %p3, %rd8, 9223372036854775807;
  @%p3 bra $next;
  mov.b32 %r1, 0;
  mov.b32 %r2, 0;
$set:
  setp.eq.s64 %p4, %rd1, 0;
  @%p4 bra $other;
  {
  .param .b64 condition1;
  .param .b32 value1;
  st.param.b64 [condition1], %rd1;
  st.param.b32 [value1], %r1;
  call.uni cudaGraphSetConditional, (condition1, value1);
  }
$other:
  setp.eq.s64 %p5, %rd2, 0;
  @%p5 bra $end;
  {
  .param .b64 condition2;
  .param .b32 value2;
  st.param.b64 [condition2], %rd2;
  st.param.b32 [value2], %r2;
  call.uni cudaGraphSetConditional, (condition2, value2);
  }
$end:
  ret;
}
)";

Function Device::conditionKernel() {
  std::lock_guard lock(lanesMutex);
  if (std::exchange(hasAskedForConditions, true) || !driver->hasConditionalNodes())
    return conditionFunction;
  if (driver->moduleLoadData(&conditionModule, kConditionPtx) != kSuccess)
    conditionModule = nullptr; // branches and loops then wait for the GPU, as with older drivers
  else if (driver->moduleGetFunction(&conditionFunction, conditionModule, "set_conditions") != kSuccess)
    conditionFunction = nullptr;
  return conditionFunction;
}

/// The graph that a stream records, and what the next work of the stream comes after.
static Result captureOf(const Device &driver, Stream stream, Graph &graph, const GraphNode *&after, size_t &count) {
  int status = 0;
  uint64_t id = 0;
  return driver->streamCaptureInfo(stream, &status, &id, &graph, &after, nullptr, &count);
}

Condition Gpu::makeCondition() {
  if (!failure.ok())
    return 0;
  Graph graph = nullptr;
  const GraphNode *after = nullptr;
  size_t count = 0;
  Condition made = 0;
  if (works(captureOf(driver(), stream(), graph, after, count), "recording a condition"))
    works(driver()->conditionCreate(&made, graph, target->context(), 0, 0), "recording a condition");
  return made;
}

void Gpu::setConditions(Condition met, Condition unmet, const void *flag) {
  if (!failure.ok())
    return;
  uint64_t errors = reinterpret_cast<uint64_t>(mailbox), count = slots;
  void *values[] = {&met, &unmet, &flag, &errors, &count};
  enqueues(driver()->launchKernel(conditionKernel, 1, 1, 1, 1, 1, 1, 0, stream(), values, nullptr),
           "recording a condition");
}

/// Adds a conditional node behind the work recorded so far; returns the graph of its body.
Graph Gpu::addConditional(Condition condition, bool repeats) {
  Graph graph = nullptr;
  const GraphNode *after = nullptr;
  size_t count = 0;
  NodeParameters parameters{.condition = condition, .kind = repeats, .context = target->context()};
  GraphNode node = nullptr;
  Result result = captureOf(driver(), stream(), graph, after, count);
  if (result == kSuccess)
    result = driver()->graphAddNode(&node, graph, after, nullptr, count, &parameters);
  if (result == kSuccess)
    result = driver()->streamSetDependencies(stream(), &node, nullptr, 1, /*CU_STREAM_SET_CAPTURE_DEPENDENCIES*/ 1);
  return works(result, "recording a branch") ? parameters.graphs[0] : nullptr;
}

void Gpu::beginBody(Condition condition, bool repeats) {
  if (failure.ok() && !recordingLock.owns_lock()) // in a graph of the caller
    recordingLock = std::unique_lock(target->recording);
  Lanes *inner = nullptr;
  Graph graph = nullptr;
  if (failure.ok() && keep(target->recordingLanes(bodies.size() + 1, inner)))
    graph = addConditional(condition, repeats);
  ++enqueued;
  lastKernels = nullptr;
  bodies.push_back({recorder, false, enqueued});
  if (!graph)
    return;
  recorder = inner;
  current = stream();
  hasBodies = true;
  bodies.back().began = works(driver()->streamBeginCaptureTo(stream(), graph, nullptr, nullptr, 0,
                                                             /*CU_STREAM_CAPTURE_MODE_THREAD_LOCAL*/ 1),
                              "recording a branch");
}

void Gpu::endBody() {
  const Body body = bodies.back();
  if (enqueued == body.before)
    zero(flag(), 1); // drivers before CUDA 12.8 reject empty bodies; the flag is not in use here
  lastKernels = nullptr;
  bodies.pop_back();
  Graph graph = nullptr; // belongs to the node
  if (body.began)
    works(driver()->streamEndCapture(stream(), &graph), "recording a branch");
  recorder = body.outer;
  current = stream();
  if (!recorder && recordingLock.owns_lock())
    recordingLock.unlock();
}

} // namespace burin::rt::gpu
