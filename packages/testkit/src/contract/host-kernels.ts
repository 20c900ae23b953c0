/** Kernels of the host's algorithms have the words of core's own, whatever the vectors and threads. */
import { type HostArguments, type HostKernels, ownHostKernels, spectrumOf, transformOf } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { seededArray } from "../numbers/seeded";
import type { ContractContext } from "./context";

/** Below, at and above four lanes, eight rows and sixteen columns. */
const EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 70];

const floats = (size: number, seed: number) => seededArray("f64", size, { seed }) as Float64Array;

const arraysOf = (given: object): Float64Array[] =>
  Object.values(given).flatMap((value) =>
    ArrayBuffer.isView(value) ? [value as Float64Array] : typeof value === "object" ? arraysOf(value) : [],
  );

/** Runs a kernel of the device and core's own on copies of the same arrays, and compares all of them. */
function checkEqual<Name extends keyof HostArguments>(
  kernels: HostKernels,
  name: Name,
  given: () => HostArguments[Name],
): void {
  const [theirs, own] = [given(), given()];
  kernels[name](theirs);
  ownHostKernels[name](own);
  const expected = arraysOf(own);
  for (const [i, array] of arraysOf(theirs).entries())
    expect(array.findIndex((value, k) => !Object.is(value, expected[i]![k]))).toBe(-1);
}

export function hostKernelsContract(context: ContractContext): void {
  const run = <Name extends keyof HostArguments>(name: Name, given: () => HostArguments[Name]) =>
    checkEqual(context.backend.hostKernels!, name, given);

  describe("host kernels", () => {
    it.each([false, true])("reflections of rows, backwards: %s", (backwards) => {
      for (const width of EXTENTS) {
        for (const [from, to, begin, first] of [
          [0, width, 0, 0],
          [1, width, 0, 1],
          [3, 40, 1, 0],
        ] as const) {
          const end = Math.min(width - first, 20);
          if (from >= to || begin >= end) continue;
          run("reflectRows", () => {
            const taus = floats(width, 2).map((tau, k) => (k % 5 === 3 ? 0 : tau));
            const [rows, v] = [floats(Math.max(to, width) * width, 1), floats(width * width, 3)];
            rows[(to - 1) * width] = Number.NaN;
            return { rows, width, from, to, v, taus, first, begin, end, backwards };
          });
        }
      }
    });

    it("rotations of pairs of rows", () => {
      for (const width of EXTENTS) {
        for (const height of [2, 5, 33]) {
          const pairs = [...Array(height - 1).keys()].flatMap((k) => [[k, k + 1], [height - 1, 0], [k + 1, k]]); // biome-ignore format: short
          run("rotateRows", () => {
            const [firsts, seconds] = [0, 1].map((which) => Int32Array.from(pairs, (pair) => pair[which]!));
            const [cosines, sines] = [floats(pairs.length, 4), floats(pairs.length, 5)];
            const rows = floats(width * height, 6);
            return { rows, height, width, firsts: firsts!, seconds: seconds!, cosines, sines, count: pairs.length - 1 };
          });
        }
      }
    });

    it("steps to tridiagonal and bidiagonal matrices", () => {
      for (const length of EXTENTS) {
        const n = length + 3;
        const [v, w, u, sums] = [7, 8, 9, 10].map((seed) => floats(length, seed)) as Float64Array[];
        run("tridiagonalUpdate", () => ({
          a: floats(n * n, 11),
          n,
          length,
          v: v!,
          w: w!,
          u: u!,
          product: floats(length, 12),
        }));
        for (const count of [0, 1, 4, 6]) {
          const part = () => ({ a: floats(6 * n, 13), start: 2, width: n, count, length, factors: floats(count, 14) });
          run("sumOfRows", () => ({ ...part(), sums: sums!.slice() }));
          run("bidiagonalUpdate", () => ({ ...part(), sums: sums!, scale: -1.7, tau: 1.3, v: v! }));
        }
      }
    });

    it.each([2 ** 13, 2 ** 14])("Fourier transforms of %i numbers", (n) => {
      for (const inverse of [false, true]) {
        run("fourierTransform", () => {
          const { blocks } = transformOf(n);
          const from = seededArray("f32", 2 * n, { seed: 15 }) as Float32Array;
          return { ...blocks!, from, to: new Float32Array(2 * n), inverse, scale: 0.3 };
        });
        run("realFourierTransform", () => {
          const { blocks } = transformOf(n);
          const from = seededArray("f32", 2 * n, { seed: 16 }) as Float32Array;
          return { ...blocks!, ...spectrumOf(2 * n), from, to: new Float32Array(4 * n), inverse, scale: 0.3 };
        });
      }
    });
  });
}
