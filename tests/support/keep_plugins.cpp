// Linked into every program under AddressSanitizer: no library is unloaded. Open MPI unloads its
// plug-ins before the process ends, and a leak of theirs could then not be told by its place from
// one of the project's.
extern "C" int dlclose(void* /*library*/) {
  return 0;
}
