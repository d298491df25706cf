// A gate that would pass, and must not be run, as its server never gets ready: this program with a port. Its
// main() is taken instead of the shared one.
#include <chrono>
#include <cstdio>
#include <thread>

int main(int argc, char** argv) {
    if (argc < 2) return 0;
    std::fprintf(stderr, "the model file is broken on port %s\n", argv[1]);
    std::this_thread::sleep_for(std::chrono::seconds(100));
}
