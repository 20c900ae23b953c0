// One rule as a compiler writes it in vectors of some width, by one thread. Built with -include of what native-loop.ts writes:
// RULE, SCALARS and BUFFERS. Speaks as process-session.ts expects: {"command":"open",...,"size":N,...} and {"command":"run","steps":S}.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

static long long number(const std::string& line, const char* key) {
  const size_t at = line.find(std::string("\"") + key + "\":");
  return at == std::string::npos ? 0 : std::atoll(line.c_str() + at + std::strlen(key) + 3);
}

int main() {
  float* arrays[BUFFERS] = {};
  long long n = 0;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.find("\"open\"") != std::string::npos) {
      n = number(line, "size");
      for (int b = 0; b < BUFFERS; b++) {
        arrays[b] = static_cast<float*>(std::aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64));
        for (long long i = 0; i < n; i++) arrays[b][i] = b < 2 ? 0.001f * static_cast<float>(i % 1000 + 1) : 0.0f;
      }
      std::puts("{}");
    } else {
      const auto start = std::chrono::steady_clock::now();
      for (long long s = number(line, "steps"); s > 0; s--) RULE(arrays, SCALARS, 0, n);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      std::printf("{\"milliseconds\":%.6f}\n", took.count());
    }
    std::fflush(stdout);
  }
}
