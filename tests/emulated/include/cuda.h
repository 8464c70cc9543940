// In place of the toolkit's: a tensor map that an emulated copy can read.
#pragma once
#include "tests/emulated/cluster.h"

using CUtensorMap = gauntlet::emulated::TileMap;
