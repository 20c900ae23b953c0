/** Runs the native kernels' suite under AddressSanitizer and UndefinedBehaviorSanitizer: `node tools/native/sanitize.mjs [vitest arguments]`. */

import { run } from "../workspace/run.mjs";
import { nativeBinary } from "./build-cpu.mjs";
import { testBinary } from "./native.mjs";

const binary = await nativeBinary("sanitize");
if (binary === undefined) {
  console.log("sanitize: skipped, see above");
} else {
  const compiler = process.env.CXX ?? "c++";
  const library = (/** @type {string} */ name) =>
    run(compiler, [`-print-file-name=${name}`], { quiet: true }).stdout.trim();
  const env = {
    // Node itself is not instrumented: the runtimes must come first, and what Node leaves at its exit is not ours.
    LD_PRELOAD: `${library("libasan.so")} ${library("libubsan.so")}`,
    ASAN_OPTIONS: "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
    UBSAN_OPTIONS: "print_stacktrace=1:halt_on_error=1",
  };
  process.exitCode = testBinary(binary, ["packages/kernels-cpu/"], env) ? 0 : 1;
}
