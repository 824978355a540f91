// What looks like NVIDIA's libcuda.so.1 to the loader: answers as the macros say.
extern "C" int cuInit(unsigned) {
  return FAKE_INIT;
}

extern "C" int cuDeviceGetCount(int* count) {
  *count = FAKE_DEVICES;
  return FAKE_COUNT;
}
