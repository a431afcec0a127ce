// burin: a graph compiler with imperative tracing. This header is the whole C++ API.
#pragma once
#include "burin/creation.h"
#include "burin/data.h"
#include "burin/gradients.h"
#include "burin/graph.h"
#include "burin/indexing.h"
#include "burin/loops.h"
#include "burin/nn.h"
#include "burin/onnx.h"
#include "burin/ops.h"
#include "burin/reductions.h"
#include "burin/selection.h"
#include "burin/tensor.h"
