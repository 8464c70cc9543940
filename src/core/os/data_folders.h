// Where data lie that come with the project and are no part of the program: models, say.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace gauntlet {

/// The folders of this name at or above the working directory and the program, the nearest first.
std::vector<std::filesystem::path> data_folders(const std::string& name);

}  // namespace gauntlet
