// The program of simulated/seeds.hpp.
#pragma once

namespace virtual_world {
int seeds_main(int argc, char** argv);
}  // namespace virtual_world
