#include "tools/bench/programs/Contestant.h"
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace burin::bench {
namespace {

int64_t nanosecondsOf(Contestant &contestant, int64_t count) {
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    contestant.runOnce();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}

void writeOutputs(Contestant &contestant, const std::string &base) {
  contestant.runOnce();
  int i = 0;
  for (const rt::NpyArray &array : contestant.outputs()) {
    std::string error;
    if (!rt::saveNpy(base + "." + std::to_string(i++) + ".npy", array, error))
      throw Failure{error};
  }
}

std::string oneLine(std::string text) {
  for (char &c : text)
    c = c == '\n' ? ' ' : c;
  return text;
}

} // namespace

int serve(Contestant &contestant, const std::string &folder, const std::string &name) {
  std::string loaded;
  auto answer = [&](const std::string &line) -> std::string {
    std::istringstream words(line);
    std::string command, workload;
    int64_t warm = 0, count = 0;
    words >> command;
    if (command == "load" && words >> workload) {
      loaded.clear();
      contestant.load(workload);
      loaded = workload;
      return "ok";
    }
    if (command == "settings")
      return contestant.settings();
    if (loaded.empty())
      throw Failure{"nothing is loaded"};
    if (command == "run" && words >> warm >> count) {
      nanosecondsOf(contestant, warm);
      return std::to_string(nanosecondsOf(contestant, count));
    }
    if (command == "output")
      return writeOutputs(contestant, folder + "/" + loaded + "." + name), "ok";
    throw Failure{"unknown: " + line};
  };
  for (std::string line; std::getline(std::cin, line);) {
    std::string text;
    try {
      text = answer(line);
    } catch (const Failure &failure) {
      text = "error: " + oneLine(failure.message);
    } catch (const std::exception &problem) {
      text = "error: " + oneLine(problem.what());
    }
    std::cout << text << std::endl;
  }
  return 0;
}

rt::NpyArray readArray(const std::string &folder, const std::string &name, const std::string &part) {
  std::string error;
  auto array = rt::loadNpy(folder + "/" + name + "." + part + ".npy", error);
  if (!array)
    throw Failure{error};
  return std::move(*array);
}

Description describe(const std::string &folder, const std::string &name) {
  std::ifstream file(folder + "/list.json");
  for (const auto &workload : nlohmann::json::parse(file))
    if (workload["name"] == name)
      return {workload["kind"], workload["sizes"]};
  throw Failure{"list.json has no " + name};
}

} // namespace burin::bench
