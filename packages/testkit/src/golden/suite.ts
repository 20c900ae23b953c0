/** The golden suite: optimizers on one device against PyTorch's numbers. A device or an optimizer package is one call of `goldenSuite`. */
import type { Device } from "@opt/core";
import { beforeAll, describe, expect, it } from "vitest";
import type { Tolerance } from "../numbers/compare";
import type { OptimizerClass } from "./optimizer";
import { runGroups } from "./run-groups";
import { runOptimizer, runTorchCase } from "./run-optimizer";
import { float64Runs, optionsFrom, semanticsGoldens } from "./semantics";
import { torchGoldens } from "./torch";
import "../numbers/matcher";

export interface GoldenRow {
  /** For the tests' names: the device. */
  readonly name: string;
  /** By name. Those without goldens are left out: PyTorch does not have them. */
  readonly optimizers: Readonly<Record<string, OptimizerClass>>;
  /** The default device unless given. */
  readonly device?: () => Promise<Device>;
  /** Exact devices must give the exact recipe's bits in float32, and float64 within 1e-12. By default true. */
  readonly exact?: boolean;
  /** One run of each optimizer, for kernels that another row tries whole. By default false. */
  readonly sampled?: boolean;
}

/** What a device that is not exact keeps after 25 steps. */
const BOUNDED: Tolerance = { absolute: 1e-6, relative: 1e-5 };

/** PyTorch's float64 runs: the order of a few operations is free. */
const FLOAT64: Tolerance = { absolute: 1e-12, relative: 1e-12 };

/** Registers the tests of one row. */
export function goldenSuite({ name, optimizers, device: open, exact = true, sampled = false }: GoldenRow): void {
  const known = new Set(torchGoldens().map(({ optimizer }) => optimizer));
  for (const [kind, Optimizer] of Object.entries(optimizers).filter(([kind]) => known.has(kind))) {
    describe(`${kind} on ${name}`, () => {
      let device: Device | undefined;
      beforeAll(async () => {
        device = await open?.();
      });

      it.each(torchGoldens(kind).slice(0, sampled ? 1 : undefined))("PyTorch's float32, case $name", async (golden) => {
        if (!exact) {
          const { param0: start, gradients, options } = golden;
          const { trace } = await runOptimizer(Optimizer, { start, gradients, options, device });
          expect(trace.at(-1)).toAgreeWith(golden.torch.arrays.get("param")!, BOUNDED);
          return;
        }
        const report = await runTorchCase(Optimizer, golden, device);
        expect(report.message).toBe("");
        expect(report.wordsFromExact).toBe(0);
        expect(report.distanceFromTorch).toBeLessThan(5e-7);
      });

      if (!exact) return;

      it.each(float64Runs(kind))("PyTorch's float64, $name", async (run) => {
        const { trace, state } = await runOptimizer(Optimizer, { ...run, dtype: "f64", device });
        run.trace.forEach((expected, step) => {
          expect(trace[step], `after step ${step + 1}`).toAgreeWith(expected, FLOAT64);
        });
        for (const [key, expected] of Object.entries(run.state)) {
          const value = state.get(key)!;
          expect(typeof value === "number" ? [value] : value, key).toAgreeWith(expected, FLOAT64);
        }
      });

      it("groups with options of their own and absent gradients", async () => {
        const { trace, steps, expected } = await runGroups(Optimizer, kind, device);
        expect(trace).toHaveLength(expected.trace.length);
        expected.trace.forEach(([a, b], step) => {
          expect(trace[step]!.a, `a after step ${step + 1}`).toAgreeWith(a, FLOAT64);
          expect(trace[step]!.b, `b after step ${step + 1}`).toAgreeWith(b, FLOAT64);
        });
        expect(steps).toEqual(expected.steps);
      });

      const stress = semanticsGoldens().filter(({ id }) => id.startsWith(`torch_${kind}_reddi_`));
      for (const { id, config, inputs, expected } of stress) {
        it(`500 steps of rare large gradients, ${id}`, async () => {
          const gradients = Array.from({ length: 500 }, (_, i) => [(i + 1) % 101 === 1 ? 1010 : -10]);
          const options = optionsFrom(config);
          const { trace } = await runOptimizer(Optimizer, {
            start: [Number(inputs.x0)],
            gradients,
            options,
            dtype: "f64",
            device,
          });
          for (const [step, x] of Object.entries(expected.x_at_t as Record<string, number>)) {
            expect(trace[Number(step) - 1], `after step ${step}`).toAgreeWith([x], FLOAT64);
          }
        });
      }
    });
  }
}
