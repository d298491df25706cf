// A server that never gets ready, for a port.
#include <chrono>
#include <cstdio>
#include <thread>

int main(int, char** argv) {
    std::fprintf(stderr, "the model file is broken on port %s\n", argv[1]);
    std::this_thread::sleep_for(std::chrono::seconds(100));
}
