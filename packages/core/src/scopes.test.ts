// What functions around others change for them is as it was before, also inside of others and after an error.
import fc from "fast-check";
import { expect, it } from "vitest";
import { activeTracer } from "./device/tracer";
import { watching } from "./device/watcher";
import * as core from "./index";
import { autocastDType } from "./tensor/autocast";
import { batching } from "./tensor/batching";
import { isTaping, presentRecomputation } from "./tensor/tape";

await core.init("js");

const w = core.parameter([1, 2]);
w.checkSteps = () => {}; // as parts of divided parameters have
const [ema, swa] = [new core.ExponentialMovingAverage([w]), new core.StochasticWeightAverage([w])];
w.set([3, 4]);

/** All that such functions may change. */
function state(): readonly unknown[] {
  const { made } = core.zeros([1]);
  const modes = [isTaping(), autocastDType(), presentRecomputation(), batching.over, activeTracer(), watching.watcher];
  return [...modes, made, w.checkSteps, w.storage.isLent, String(w.dataSync())];
}

type Body = () => unknown;
const SCOPES: Readonly<Record<string, (body: Body) => unknown>> = {
  tidy: core.tidy,
  noGrad: core.noGrad,
  enableGrad: core.enableGrad,
  "autocast to bf16": (body) => core.autocast("bf16", body),
  "autocast to none": (body) => core.autocast(null, body),
  recompute: (body) => core.recompute(body),
  vmap: (body) =>
    core.vmap((x: core.Tensor) => {
      body();
      return x.add(1);
    })(core.zeros([2])),
  "averaged by ExponentialMovingAverage": (body) => ema.averaged(body),
  "averaged by StochasticWeightAverage": (body) => swa.averaged(body),
};
const ASYNC: Readonly<Record<string, (body: Body) => Promise<unknown>>> = {
  profile: core.profile,
  detectAnomaly: core.detectAnomaly,
  "averaged by ExponentialMovingAverage": async (body) => ema.averaged(async () => body()),
};

it("is put back", async () => {
  const names = (of: object) => fc.array(fc.constantFrom(...Object.keys(of)), { maxLength: 3 });
  const check = async (outer: string[], inner: string[], isFailing: boolean) => {
    const unlike: string[] = [];
    const compare = (name: string, before: readonly unknown[]) => {
      if (!state().every((value, i) => Object.is(value, before[i]))) unlike.push(name);
    };
    const run = ([name, ...others]: string[]): void => {
      if (name === undefined && isFailing) throw new RangeError("mine");
      if (name === undefined) return;
      const before = state();
      try {
        SCOPES[name]!(() => run(others));
      } finally {
        compare(name, before);
      }
    };
    const runLater = async ([name, ...others]: string[]): Promise<void> => {
      if (name === undefined) return run(inner);
      const before = state();
      try {
        await ASYNC[name]!(() => runLater(others));
      } finally {
        compare(name, before);
      }
    };
    await runLater(outer).catch(() => {});
    expect(unlike).toEqual([]);
  };
  await fc.assert(fc.asyncProperty(names(ASYNC), names(SCOPES), fc.boolean(), check), { numRuns: 150, seed: 48 });
});
