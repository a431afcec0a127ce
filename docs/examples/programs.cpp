// Several functions over the same weights: two training steps, of all layers and of the last one, and the prediction
// that uses what they learn.
#include <burin/burin.h>
#include <burin/nn/losses.h>
#include <burin/training/optim.h>
#include <iostream>
using namespace burin;

int main() {
  manual_seed(1);
  auto body = nn::Sequential(nn::Linear(2, 32), nn::Tanh());
  nn::Linear head(32, 2);
  auto net = nn::Sequential(body, head);
  optim::Adam optimizer(net.parameters(), {.lr = 0.02});
  optim::SGD headOptimizer(head.parameters(), {.lr = 0.5});

  Program program(net);
  program.add("train_step",
              [&](const Tensor &input, const Tensor &target) {
                Tensor loss = cross_entropy(net(input), target);
                loss.backward();
                optimizer.step();
                optimizer.zero_grad();
                return loss.detach();
              },
              {{f32, {32, 2}}, {i64, {32}}}, {"input", "target"}, {"loss"});
  program.add("tune_head",
              [&](const Tensor &input, const Tensor &target) {
                Tensor loss = cross_entropy(head(body(input).detach()), target);
                loss.backward();
                headOptimizer.step();
                headOptimizer.zero_grad();
                return loss.detach();
              },
              {{f32, {32, 2}}, {i64, {32}}}, {"input", "target"}, {"loss"});
  program.add("predict", [&](const Tensor &input) { return argmax(net(input), 1); }, {{f32, {Dim("batch"), 2}}},
              {"input"}, {"class"});
  Artifact artifact = compile(program.graph());
  artifact.save("learner.plate");

  Tensor points = uniform({100, 32, 2}, -1, 1);
  Tensor inside = (pow(points, 2).sum(2) < 0.6).to(i64);
  Artifact predict = artifact.function("predict");
  for (int epoch = 0; epoch < 4; ++epoch)
    for (int i = 0; i < 100; ++i)
      artifact(points(i), inside(i));
  Tensor right = (predict(points(0)) == inside(0)).to(f32).mean();
  std::cout << (right.item() > 0.9 ? "learned" : "not learned") << ", weights "
            << str(artifact.state("1.weight").spec()) << "\n";
  artifact.save_states("learned.safetensors");

  save_npy("points.npy", points);
  save_npy("inside.npy", inside);
  save_npy("queries.npy", points(0));
}
