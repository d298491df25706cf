// Would pass, and must not be run: its server never gets ready.
int main() { return 0; }
