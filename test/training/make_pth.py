#!/usr/bin/env python3
"""Writes inputs/*.pth, files that PyTorch saved, and pth.json, the tensors in them. Needs torch:  python3
make_pth.py"""
import collections
import os
import pathlib
import pickle
import warnings
import zipfile

import torch
from torch import nn
from torch_values import rand, write

FOLDER = pathlib.Path(__file__).parent
warnings.filterwarnings("ignore")
torch.manual_seed(1)
cases = {}


def short(tensors):
    return {name: t.detach().double() if t.is_floating_point() else t for name, t in tensors.items()}


model = nn.Sequential(collections.OrderedDict(fc=nn.Linear(3, 2), norm=nn.BatchNorm1d(2)))
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
for _ in range(2):
    model(rand(4, 3).float()).square().sum().backward()
    optimizer.step()
torch.save(model.state_dict(), FOLDER / "inputs/weights.pth")
cases["weights"] = short(model.state_dict())

base = torch.arange(12).float().reshape(3, 4)
odd = {"transposed": base.t(), "column": base[:, 1], "bf16": base[0].bfloat16(), "half": base.half(), "flags": base > 5,
       "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.5), "bytes": torch.arange(3, dtype=torch.uint8)}
checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "rate": 0.5, "name": "net",
              "odd": odd, "list": [torch.ones(2), None, -(2 ** 40)], "parameter": nn.Parameter(torch.ones(1))}
torch.save(checkpoint, FOLDER / "inputs/checkpoint.pth")
cases["checkpoint"] = short({f"model.{k}": v for k, v in model.state_dict().items()})
cases["checkpoint"] |= short({f"odd.{k}": v for k, v in odd.items() if k not in ("bytes",)})
cases["checkpoint"] |= short({"optimizer.state.1.exp_avg": optimizer.state[model.fc.bias]["exp_avg"],
                              "optimizer.param_groups.0.betas.1": torch.tensor(0.999, dtype=torch.float64),
                              "epoch": torch.tensor(3), "rate": torch.tensor(0.5), "list.0": torch.ones(2),
                              "list.2": torch.tensor(-(2 ** 40)), "parameter": torch.ones(1)})
views = {"rows": torch.tensor([[1.0, 2, 3]]).expand(4, 3), "all": torch.tensor(5).expand(2, 3),
         "columns": base[:, 1:2].expand(3, 4), "overlapping": torch.arange(5.0).unfold(0, 3, 1),
         "flag": torch.tensor([[True], [False]]).expand(2, 3), "e4m3": base[0].to(torch.float8_e4m3fn),
         "e5m2": base.t().to(torch.float8_e5m2), "steps": base[::2, ::3]}
torch.save(views, FOLDER / "inputs/views.pth")
cases["views"] = short(views)
torch.save(nn.Linear(1, 1), FOLDER / "inputs/module.pth")
torch.save(model.state_dict(), FOLDER / "inputs/legacy.pth", _use_new_zipfile_serialization=False)


class Evil:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


with zipfile.ZipFile(FOLDER / "inputs/evil.pth", "w") as archive:
    archive.writestr("evil/data.pkl", pickle.dumps({"w": Evil()}, protocol=2))
endless = {}
endless["again"] = endless
with zipfile.ZipFile(FOLDER / "inputs/endless.pth", "w") as archive:
    archive.writestr("endless/data.pkl", pickle.dumps(endless, protocol=2))
write(FOLDER / "pth.json", cases)
