/** Products of square float32 matrices. */
import { init, type Tensor, tensor } from "@opt/core";
import type { Benchmark } from "./benchmark";
import { type Contender, timed } from "./contender";
import { openTorch } from "./python/process";

export interface MatmulWork {
  readonly size: number;
}

const SIZES = [256, 512, 1024];
/** The js device takes seconds on larger ones. */
const LARGEST_ON_JS = 256;
/** Orders of summation differ. With positive elements nothing cancels, so that a relative bound holds. */
const TOLERANCE = 1e-5;

/** `length` deterministic values in (0, 1], whose period is the prime `modulus`. */
function values(length: number, factor: number, modulus: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => (((i * factor) % modulus) + 1) / modulus);
}

function opt(deviceName: string): Contender<MatmulWork> {
  return {
    name: `opt ${deviceName}`,
    tolerance: TOLERANCE,
    async open({ size }) {
      if (deviceName === "js" && size > LARGEST_ON_JS) return "too slow to be of interest at this size";
      const device = await init(deviceName).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      const shape = [size, size];
      const a = tensor(values(size * size, 7919, 10_007), { shape, device });
      const b = tensor(values(size * size, 104_729, 9973), { shape, device });
      let product: Tensor | undefined;
      const step = () => {
        product?.dispose();
        product = a.matmul(b);
      };
      return {
        run: (steps) => timed(steps, step, () => device.sync()),
        async result(count) {
          const elements = await product!.data();
          return Array.from({ length: count }, (_, i) => elements[(i * 7919) % elements.length]!);
        },
        async close() {
          for (const made of [a, b, product]) made?.dispose();
        },
      };
    },
  };
}

const torch: Contender<MatmulWork> = {
  name: "PyTorch",
  tolerance: TOLERANCE,
  open: (work) => openTorch("torch_matmul.py", work),
};

export function matmuls(devices: readonly string[]): Benchmark<MatmulWork>[] {
  const contenders = [...devices.map(opt), torch];
  return SIZES.map((size) => ({
    title: `Matmul, ${size} x ${size} by ${size} x ${size}`,
    words: ["matmul", String(size)],
    work: { size },
    contenders,
    rate: { unit: "GFLOP/s", perStep: (2 * size ** 3) / 1e9 },
  }));
}
