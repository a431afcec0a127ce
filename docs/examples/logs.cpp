// Curves and logs.
#include <burin/burin.h>
#include <fstream>
#include <iostream>
using namespace burin;

int main() {
  MetricLog log("runs/log.csv");
  SummaryWriter board("runs/tensorboard");
  for (int epoch = 1; epoch <= 3; ++epoch) {
    const double loss = 1.0 / epoch;
    log.add(epoch, {{"loss", loss}});
    board.add_scalar("loss", loss, epoch);
    plot("runs/loss.svg", {log.curve("loss")}, {.x_label = "epoch"});
  }
  std::cout << std::ifstream("runs/log.csv").rdbuf();
}
