// Runs over several inputs (--data), and reads and writes states.
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
    ++finished;
    if (!o.json)
      printSingles(run, report.outputs);
  }
  return true;
}

/// Reports a failed access to a file of states.
bool Runner::fileOk(burin_status *status) {
  if (!status)
    return true;
  fail(kUsage, rt.status_message(status));
  rt.status_release(status);
  return false;
}

bool Runner::startStates() {
  return ok(rt.session_reset_states(session)) &&
         (o.state.empty() || fileOk(rt.session_load_states(session, o.state.c_str())));
}

bool Runner::saveStates() {
  if (o.saveState.empty())
    return true;
  if (!rt.artifact_state_count(artifact))
    return fail(kUsage, "--save-state: the artifact has no states");
  return fileOk(rt.session_save_states(session, o.saveState.c_str()));
}

void Runner::keepStates() {
  const int code = exitCode;
  if (finished == 0 || o.saveState.empty() || !saveStates())
    return;
  fail(code, "run " + std::to_string(finished + 1) + " of " + std::to_string(o.repeat * (data.empty() ? 1 : dataRuns)) +
                 " failed; " + o.saveState + " has the states after run " + std::to_string(finished));
}

} // namespace burin::run
