#include "simulated/main.hpp"

int main(int argc, char** argv) { return virtual_world::seeds_main(argc, argv); }
