// One step under way.
#pragma once
#include "engine/cuda/step_inputs.h"
#include "engine/steps/layer_probe.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::engine::cuda {

struct Step {
  const StepShape& shape;
  const StepPointers& inputs;  // on the device
  kernels::cuda::RowChoice* choices;
  kernels::cuda::Launch how;
  LayerProbe* probe = nullptr;  // null: nobody watches, nothing waits
};

}  // namespace gauntlet::engine::cuda
