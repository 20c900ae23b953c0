// Each event of a run, in its order and with a state that is right, as a plain program counts it: of any data and options, where a run is stopped or fails.
import { ExponentialMovingAverage, init, type Tensor, tensor } from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { Linear } from "@opt/nn";
import { SGD } from "@opt/sgd";
import fc from "fast-check";
import { afterAll, expect, it, vi } from "vitest";
import { fit } from "../fit";
import { sumMetric } from "../metrics/metric";
import { type Callback, type FitState, fitEvents, hookOf } from "./events";

await init("js");
afterAll(() => void vi.restoreAllMocks());

const drawn = fc.record({
  /** Rows of each batch. */
  sizes: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 5 }),
  ...{ accumulate: fc.integer({ min: 1, max: 3 }), epochs: fc.integer({ min: 1, max: 3 }) },
  ...{ hasLength: fc.boolean(), compile: fc.constantFrom(false, false, true), ema: fc.boolean() },
  validates: fc.option(fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 2 })),
  every: fc.constantFrom("step", "epoch", undefined),
  /** The event of this number asks for an end, or throws. */
  ends: fc.record({ at: fc.nat(40), throws: fc.boolean() }),
  saves: fc.boolean(),
});

const seen = (type: string, state: FitState) => ({
  ...{ type, epoch: state.epoch, step: state.step, epochStep: state.epochStep, samples: state.samples, lr: state.lr },
  ...{ epochs: state.epochs, stepsPerEpoch: state.stepsPerEpoch, hasValidation: state.hasValidation },
  ...{ losses: [...state.history.losses], records: state.history.epochs.map(({ seconds: _, ...record }) => record) },
  ...{ loss: state.loss, logs: { ...state.logs }, checkpoint: state.checkpoint, error: state.error },
  averages: (state.ema?.stateDict().n_averaged ?? null) as number | null,
});
type Seen = ReturnType<typeof seen>;

it("of any run", async () => {
  vi.spyOn(console, "warn").mockReturnValue(); // that a callback has ended the run
  await fc.assert(
    fc.asyncProperty(drawn, async (c) => {
      // A batch of n rows has the loss n, and the metric counts its rows.
      const batchOf = (n: number): [Tensor, Tensor] => [tensor(new Float32Array(n), { shape: [n, 1] }), tensor([n])];
      const model = new Linear(1, 1, { bias: false });
      const optimizer = new SGD(model.namedParameters(), { lr: 1 });
      const ema = c.ema ? new ExponentialMovingAverage(model.namedParameters(), { decay: 0.5 }) : undefined;
      const schedule = c.every && new LinearLR(optimizer, { startFactor: 1, endFactor: 0, totalIters: 8 });
      const rows = sumMetric({
        ...{ name: "rows", size: 1, value: ([sum]) => sum! },
        sums: (output) => tensor([1]).mul(output.shape[0]!),
      });
      const broken = new RangeError("broken");
      const events: Seen[] = [];
      const handle =
        (type: string) => async (state: FitState, control: { stop: boolean; saved(f: string): unknown }) => {
          events.push(seen(type, state));
          if (type === "stepEnd" && c.saves && state.step === 2) await control.saved("a folder");
          if (events.length - 1 !== c.ends.at || type === "trainEnd") return;
          if (c.ends.throws) throw broken;
          control.stop = true;
        };
      const callback: Callback = Object.fromEntries(fitEvents.map((type) => [hookOf(type), handle(type)]));
      const batches = c.sizes.map(batchOf);
      const running = fit(model, {
        ...{ data: c.hasLength ? batches : () => batches, optimizer, epochs: c.epochs, accumulate: c.accumulate },
        ...{ compile: c.compile, metrics: [rows], callbacks: [callback] },
        forward: ([x, loss]: [Tensor, Tensor]) => {
          const output = model.forward(x);
          return { loss: loss.sum().add(output.sum().mul(0)), output, target: x };
        },
        ...(c.validates && { validation: c.validates.map(batchOf) }),
        ...(ema && { ema }),
        ...(schedule && { schedule, scheduleEvery: c.every }),
      });
      const error = await running.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      const { expected, failed } = planned(c, broken);
      expect(events).toEqual(expected);
      expect(error).toBe(failed);
    }),
    { seed: 3, numRuns: 40 },
  );
});

/** What a plain loop tells. */
function planned(c: typeof drawn extends fc.Arbitrary<infer T> ? T : never, broken: Error) {
  const steps: number[][] = [];
  for (let i = 0; i < c.sizes.length; i += c.accumulate) steps.push(c.sizes.slice(i, i + c.accumulate));
  const mean = (sizes: readonly number[]) => sizes.reduce((a, n) => a + n * n, 0) / sizes.reduce((a, n) => a + n, 0);
  const sum = (sizes: readonly number[]) => sizes.reduce((a, n) => a + n, 0);
  const state: Seen = {
    ...{ type: "", epoch: 0, step: 0, epochStep: 0, samples: 0, lr: 1, epochs: c.epochs },
    stepsPerEpoch: c.hasLength ? steps.length : undefined,
    ...{ hasValidation: c.validates !== null, losses: [], records: [], loss: Number.NaN },
    ...{ logs: { loss: Number.NaN, rows: 0 }, checkpoint: undefined, error: undefined, averages: c.ema ? 0 : null },
  };
  const expected: Seen[] = [];
  let stop = false;
  const tell = (type: string) => {
    const at = expected.push({ ...state, type, losses: [...state.losses], records: [...state.records] }) - 1;
    if (type === "stepEnd" && c.saves && state.step === 2) {
      state.checkpoint = "a folder";
      tell("save");
    }
    if (at !== c.ends.at || type === "trainEnd") return;
    if (c.ends.throws) throw broken;
    stop = true;
  };
  let scheduled = 0;
  const schedule = () => {
    state.lr = 1 - Math.min(++scheduled, 8) / 8;
  };
  try {
    tell("trainBegin");
    while (state.epoch < c.epochs && !stop) {
      let done: number[] = [];
      Object.assign(state, { samples: 0, logs: { loss: Number.NaN, rows: 0 } });
      tell("epochBegin");
      let isWhole = true;
      for (const [i, sizes] of steps.entries()) {
        if (stop && i > 0) {
          isWhole = false;
          break;
        }
        tell("stepBegin");
        done = [...done, ...sizes];
        Object.assign(state, { samples: sum(done), loss: sizes.at(-1)!, logs: { loss: mean(done), rows: sum(done) } });
        state.losses.push(Math.fround(mean(sizes)));
        if (c.every === "step") schedule();
        if (c.ema) state.averages = state.averages! + 1;
        state.step++;
        state.epochStep++;
        tell("stepEnd");
      }
      if (!isWhole) break;
      const own = { loss: mean(done), rows: sum(done) };
      const validated = c.validates ? { val_loss: mean(c.validates), val_rows: sum(c.validates) } : undefined;
      state.logs = { ...own, ...validated };
      if (c.validates) tell("evaluate");
      if (c.every === "epoch") schedule();
      state.records.push({ ...own, ...validated, lr: state.lr } as never);
      Object.assign(state, { epoch: state.epoch + 1, epochStep: 0 });
      tell("epochEnd");
    }
  } catch {
    state.error = broken;
  }
  tell("trainEnd");
  return { expected, failed: state.error };
}
