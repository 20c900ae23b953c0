// The least that a step can cost: reads parameters, gradients and state, writes all but the gradients, does next to nothing with them.
// State is two arrays, with AMSGrad three.
// Speaks as process-session.ts expects: {"command":"open",...,"tensors":T,"size":N,...} and {"command":"run","steps":S}.
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
  float *p = nullptr, *g = nullptr, *m = nullptr, *v = nullptr, *largest = nullptr;
  long long n = 0;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.find("\"open\"") != std::string::npos) {
      n = number(line, "tensors") * number(line, "size");
      const bool amsgrad = line.find("\"AMSGrad\"") != std::string::npos;
      float** arrays[] = {&p, &g, &m, &v, &largest};
      for (float** array : arrays) {
        if (array == &largest && !amsgrad) continue;
        *array = static_cast<float*>(std::aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64));
#pragma omp parallel for
        for (long long i = 0; i < n; i++) (*array)[i] = 0.001f * static_cast<float>(i % 1000);
      }
      std::puts("{}");
    } else {
      const auto start = std::chrono::steady_clock::now();
      for (long long s = number(line, "steps"); s > 0; s--) {
        if (largest == nullptr) {
#pragma omp parallel for simd schedule(static)
          for (long long i = 0; i < n; i++) {
            const float x = g[i];
            p[i] += x;
            m[i] += x;
            v[i] += x;
          }
        } else {
#pragma omp parallel for simd schedule(static)
          for (long long i = 0; i < n; i++) {
            const float x = g[i];
            p[i] += x;
            m[i] += x;
            v[i] += x;
            largest[i] += x;
          }
        }
      }
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      std::printf("{\"milliseconds\":%.6f}\n", took.count());
    }
    std::fflush(stdout);
  }
}
