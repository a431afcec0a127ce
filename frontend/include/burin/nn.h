// Modules, layers, initial values.
#pragma once
#include "burin/nn/activations.h"
#include "burin/nn/init.h"
#include "burin/nn/layer.h"
#include "burin/nn/layers.h"
#include "burin/nn/module.h"
#include "burin/nn/parametrizations.h"
#include "burin/nn/recurrent.h"
#include "burin/nn/summary.h"
#include "burin/nn/transformer.h"
