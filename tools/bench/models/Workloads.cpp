#include "tools/bench/models/Workloads.h"
#include <algorithm>
#include <fstream>

namespace burin::bench {
namespace {

template <class Build>
void addBatches(std::vector<Workload> &list, const char *name, Build build, std::initializer_list<int64_t> batches) {
  for (int64_t batch : batches)
    list.push_back({std::string(name) + (batch == 1 ? "" : "-b" + std::to_string(batch)),
                    name,
                    {{"batch", batch}},
                    "model",
                    "",
                    [=] { return build(batch); }});
}

void addBert(std::vector<Workload> &list, const char *name, const BertSizes &s) {
  constexpr int64_t kLength = 128;
  list.push_back({name,
                  "bert",
                  {{"batch", 1},
                   {"length", kLength},
                   {"layers", s.layers},
                   {"width", s.width},
                   {"heads", s.heads},
                   {"vocabulary", s.vocabulary},
                   {"positions", s.positions}},
                  "model",
                  "",
                  [=] { return bert(s, 1, kLength); }});
}

std::vector<Workload> makeWorkloads() {
  std::vector<Workload> list;
  addBatches(list, "mlp", mlp, {1, 64});
  addBatches(list, "lenet", lenet, {1, 16, 256});
  addBatches(list, "alexnet", alexnet, {1, 16});
  addBatches(list, "resnet18", resnet18, {1, 16});
  addBatches(list, "resnet50", [](int64_t batch) { return resnet50(batch); }, {1, 16});
  addBatches(list, "mobilenet_v2", mobilenetV2, {1, 16});
  addBert(list, "bert-base", {.layers = 12, .width = 768});
  addBert(list, "minilm-l6", {.layers = 6, .width = 384});
  list.push_back({"gpt2-decode", "gpt2", {{"past", 128}}, "model", "", [] { return gpt2Decode(128); }});
  addKernels(list);
  return list;
}

} // namespace

const std::vector<Workload> &workloads() {
  static const std::vector<Workload> list = makeWorkloads();
  return list;
}

const Workload *findWorkload(std::string_view name) {
  const std::vector<Workload> &list = workloads();
  auto at = std::find_if(list.begin(), list.end(), [&](const Workload &w) { return w.name == name; });
  return at == list.end() ? nullptr : &*at;
}

void writeWorkload(const Workload &workload, const std::string &folder) {
  Model model = workload.build();
  std::string path = folder + "/" + workload.name;
  model.graph.save(path + ".burin");
  compile(model.graph).save(path + ".plate");
  save_safetensors(path + ".safetensors", model.weights);
  if (workload.group == "kernel") // for peers that do not read safetensors
    for (const auto &[name, value] : model.weights)
      save_npy(path + "." + name + ".npy", value);
  std::ofstream names(path + ".inputs");
  for (const auto &[name, value] : model.inputs) {
    save_npy(path + "." + name + ".npy", value);
    names << name << "\n";
  }
}

} // namespace burin::bench
