#!/usr/bin/env python3
"""Trains the ResNet-18 of `tools/dev demo resnet` with PyTorch, with the same data, batches, optimiser and schedule, and
prints the demo's lines:
  train_resnet.py FOLDER-OF-DATA EPOCHS [eager|compile [IMAGES]]
OMP_NUM_THREADS is the number of threads. Seconds are those of the epoch's steps; the first epoch's include compiling."""
import gzip
import os
import sys
import time

import numpy
import torch
import torch_networks


def readSet(folder, name, most):
    """Returns images as f32 [n, 1, 28, 28] from 0 to 1, and labels as i64 [n], of a set in IDX files."""
    with gzip.open(f"{folder}/{name}-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)[:most]
    with gzip.open(f"{folder}/{name}-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read(), numpy.uint8, offset=8)[:most]
    return torch.from_numpy(images.astype(numpy.float32) / 255), torch.from_numpy(labels.astype(numpy.int64))


def accuracy(net, images, labels):
    net.eval()
    with torch.inference_mode():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in zip(images.split(500), labels.split(500)))
    net.train()
    return right / len(labels)


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2])
    isCompiled = len(sys.argv) > 3 and sys.argv[3] == "compile"
    most = int(sys.argv[4]) if len(sys.argv) > 4 else None
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))))
    torch.manual_seed(1)
    images, labels = readSet(folder, "train", most)
    testImages, testLabels = readSet(folder, "t10k", most)
    net, _, _ = torch_networks.resNet()
    # A learning rate that is a number would compile the update again in each step.
    optimizer = torch.optim.Adam(net.parameters(), lr=torch.tensor(2e-3) if isCompiled else 2e-3)
    steps = len(images) // 128
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
    forward = lambda x, y: torch.nn.functional.cross_entropy(net(x), y)
    update = optimizer.step
    if isCompiled:
        forward, update = torch.compile(forward), torch.compile(optimizer.step)
    for epoch in range(epochs):
        begin, total = time.perf_counter(), 0.0
        for batch in torch.randperm(len(images))[:steps * 128].split(128):
            loss = forward(images[batch], labels[batch])
            loss.backward()
            update()
            optimizer.zero_grad()
            schedule.step()
            total += loss.item()
        seconds = time.perf_counter() - begin
        print(f"epoch {epoch + 1:2d}  loss {total / steps:.4f}  test accuracy {accuracy(net, testImages, testLabels):.4f}"
              f"  {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
