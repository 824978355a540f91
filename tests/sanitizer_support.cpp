// Linked into tests of sanitizer builds only: defaults of the sanitizers' run-time options (the environment still
// overrides them) and suppressions for libraries that are not ours.

// MPI_Finalize unloads MPI's plugins. What they leaked then has no module name left that a suppression could match, so
// plugins stay mapped.
extern "C" int dlclose(void* /*handle*/) {
  return 0;
}

extern "C" const char* __asan_default_options() {
  return "detect_leaks=1:"
#ifdef ROWMILL_MAY_START_MPI
         "fast_unwind_on_malloc=0:"  // its plugins are built without frame pointers
#endif
         "allocator_may_return_null=1:"  // tests ask for more memory than there is
         "detect_stack_use_after_return=1:"
         // Where a thread's block of dynamic TLS lies 16 bytes into a page, this guesses its bounds from the bytes
         // before it (the allocator's own header), and the leak check dies reading there. What such blocks point to is
         // found without it too: the thread's descriptor leads to them.
         "intercept_tls_get_addr=0";
}

extern "C" const char* __lsan_default_options() {
  return "print_suppressions=0";
}

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libmpi.so\n"
         "leak:libopen-rte.so\n"
         "leak:libopen-pal.so\n"
         "leak:mca_\n"
         "leak:libpmix.so\n"
         "leak:libhwloc.so\n"
         "leak:libevent\n"
         "leak:libhdf5\n"
         "leak:libcrypto\n"
         "leak:libcurl\n"
         "leak:ld-linux\n";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1:halt_on_error=1";
}

extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:"
         "detect_deadlocks=0:"  // MPI's own locks are taken in any order
         "allocator_may_return_null=1:"
         "intercept_tls_get_addr=0:"  // as above: it guesses
         "history_size=4";
}

extern "C" const char* __tsan_default_suppressions() {
  return "race:libmpi.so\n"
         "race:libopen-rte.so\n"
         "race:libopen-pal.so\n"
         "race:mca_\n"
         "race:libpmix.so\n"
         "race:libhwloc.so\n"
         "race:libevent\n"
         "race:libhdf5\n"
         "mutex:libopen-pal.so\n"
         "mutex:mca_\n"
         "mutex:libpmix.so\n"
         "mutex:libevent\n"
         "signal:libopen-pal.so\n"
         "thread:libopen-pal.so\n"
         "thread:libpmix.so\n";
}
