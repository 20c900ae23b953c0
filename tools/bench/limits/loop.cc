// One rule over all elements, by as many threads as the argument says, each on a processor of its own.
// Built with -include of a header that defines RULE, SCALARS and BUFFERS. Speaks as process-session.ts expects:
// {"command":"open",...,"tensors":T,"size":N,...} and {"command":"run","steps":S}.
#ifdef __linux__
#include <sched.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

static long long number(const std::string& line, const char* key) {
  const size_t at = line.find(std::string("\"") + key + "\":");
  return at == std::string::npos ? 0 : std::atoll(line.c_str() + at + std::strlen(key) + 3);
}

static float* arrays[BUFFERS];
static long long n;
static int threads = 1;
static std::atomic<long long> begun{0};
static std::atomic<int> left{0};

static void part(long long thread) { RULE(arrays, SCALARS, n * thread / threads, n * (thread + 1) / threads); }

static void stay_on([[maybe_unused]] int processor) {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
#endif
}

static void serve(int thread) {
  stay_on(thread);
  for (long long seen = 0;; seen++) {
    for (int polls = 0; polls < 1 << 18 && begun == seen; polls++);
    begun.wait(seen);
    part(thread);
    left--;
  }
}

int main(int, char** argv) {
  threads = std::atoi(argv[1]);
  if (threads > 1) stay_on(0);
  for (int thread = 1; thread < threads; thread++) std::thread(serve, thread).detach();
  for (std::string line; std::getline(std::cin, line);) {
    if (line.find("\"open\"") != std::string::npos) {
      n = number(line, "tensors") * number(line, "size");
      for (int b = 0; b < BUFFERS; b++) {
        arrays[b] = static_cast<float*>(std::aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64));
        for (long long i = 0; i < n; i++) arrays[b][i] = b < 2 ? 0.001f * static_cast<float>(i % 1000 + 1) : 0.0f;
      }
      std::puts("{}");
    } else {
      const auto start = std::chrono::steady_clock::now();
      for (long long s = number(line, "steps"); s > 0; s--) {
        left = threads - 1;
        begun++;
        begun.notify_all();
        part(0);
        while (left > 0);
      }
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      std::printf("{\"milliseconds\":%.6f}\n", took.count());
    }
    std::fflush(stdout);
  }
  std::_Exit(0);  // threads that serve never end
}
