// Runs over several inputs (--data), and reads and writes states.
#include "runtime/npy/Safetensors.h"
#include "tools/common/Runner.h"
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace burin::run {

bool Runner::readData() {
  for (const auto &[name, value] : o.data) {
    auto at = std::find_if(report.inputs.begin(), report.inputs.end(), [&](auto &input) { return input.name == name; });
    uint32_t i = uint32_t(at - report.inputs.begin());
    std::string path = value.substr(1);
    std::optional<rt::NpyArray> array = arrayFor(i, path, /*isData=*/true);
    if (!array)
      return false;
    int64_t runs = array->shape[0];
    if (std::ranges::any_of(o.inputs, [&](const auto &input) { return input.first == name; }))
      return fail(kUsage, "input " + name + " is given by --input and by --data");
    if (runs == 0 || (!data.empty() && runs != dataRuns))
      return fail(kUsage, path + " is for " + std::to_string(runs) + " runs" +
                              (runs == 0 ? "" : ", the data before it for " + std::to_string(dataRuns)));
    dataRuns = runs;
    inputs[i].array = {array->dtype, {array->shape.begin() + 1, array->shape.end()}, {}};
    inputs[i].array.data.resize(array->data.size() / size_t(runs));
    inputs[i].given = true;
    report.inputs[i].source = path;
    data.push_back({i, std::move(*array)});
  }
  return true;
}

/// Prints the outputs that have one element, such as losses.
static void printSingles(int64_t run, const std::vector<NamedTensor> &outputs) {
  std::string line;
  for (const NamedTensor &output : outputs)
    if (Values values = output.values(); values.count() == 1) {
      char text[64];
      std::snprintf(text, sizeof text, " %.9g", values[0]);
      line += " " + output.name + text;
    }
  if (!line.empty())
    std::printf("run %lld:%s\n", static_cast<long long>(run + 1), line.c_str());
}

bool Runner::runOverData() {
  if (o.profile && !startProfile())
    return false;
  for (int64_t run = 0; run < dataRuns * o.repeat; ++run) {
    for (const Data &each : data) {
      std::vector<std::byte> &input = inputs[each.input].array.data;
      std::copy_n(each.array.data.begin() + run % dataRuns * int64_t(input.size()), input.size(), input.begin());
    }
    if (!runOnce())
      return false;
    if (!o.json)
      printSingles(run, report.outputs);
  }
  return true;
}

static std::string textOf(const burin_tensor_info &state) {
  return typeText(DType(state.dtype), {state.dims, state.rank});
}

bool Runner::startStates() {
  if (!ok(rt.session_reset_states(session)))
    return false;
  if (o.state.empty())
    return true;
  std::string error;
  std::optional<std::vector<std::byte>> file = rt::readWholeFile(o.state, error);
  if (!file)
    return fail(kUsage, error);
  std::optional<rt::SafetensorsFile> content = rt::parseSafetensors(*file, error);
  if (!content)
    return fail(kUsage, "cannot read '" + o.state + "': " + error);
  uint32_t count = rt.artifact_state_count(artifact);
  for (const rt::Safetensor &tensor : content->tensors) {
    uint32_t i = 0;
    while (i < count && tensor.name != rt.artifact_state(artifact, i)->name)
      ++i;
    if (i == count)
      return fail(kUsage, o.state + " holds " + tensor.name + ", which is no state of the artifact");
    burin_tensor value{
        file->data() + tensor.begin, tensor.shape.data(), uint32_t(tensor.shape.size()), uint8_t(tensor.dtype), {}};
    if (!ok(rt.session_write_state(session, i, &value)))
      return false;
  }
  for (uint32_t i = 0; i < count; ++i)
    if (const burin_tensor_info &state = *rt.artifact_state(artifact, i);
        std::ranges::none_of(content->tensors, [&](const rt::Safetensor &tensor) { return tensor.name == state.name; }))
      return fail(kUsage, o.state + " lacks the state " + state.name + " " + textOf(state));
  return true;
}

bool Runner::saveStates() {
  if (o.saveState.empty())
    return true;
  rt::SafetensorsFile content;
  std::vector<burin_tensor> values(rt.artifact_state_count(artifact));
  if (values.empty())
    return fail(kUsage, "--save-state: the artifact has no states");
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (!ok(rt.session_read_state(session, i, &values[i])))
      return false;
    content.tensors.push_back({rt.artifact_state(artifact, i)->name,
                               DType(values[i].dtype),
                               {values[i].shape, values[i].shape + values[i].rank}});
  }
  std::string error;
  std::vector<std::byte> file;
  if (!rt::startSafetensors(content, file, error))
    return fail(kInternal, error);
  uint64_t end = file.size();
  for (const rt::Safetensor &tensor : content.tensors)
    end = std::max(end, tensor.end);
  file.resize(end);
  for (size_t i = 0; i < values.size(); ++i)
    if (const rt::Safetensor &tensor = content.tensors[i]; tensor.bytes())
      std::memcpy(file.data() + tensor.begin, values[i].data, tensor.bytes());
  return rt::writeWholeFile(o.saveState, file, error) || fail(kUsage, error);
}

} // namespace burin::run
