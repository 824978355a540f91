// The program whose headers are compiled once for all tests.
int main() {}
