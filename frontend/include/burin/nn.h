// Modules, layers, initial values.
#pragma once
#include "burin/init.h"
#include "burin/layer.h"
#include "burin/layers.h"
#include "burin/module.h"
#include "burin/parametrizations.h"
#include "burin/recurrent.h"
#include "burin/transformer.h"
