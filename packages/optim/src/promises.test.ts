// What every optimizer promises, alone and in each wrapper: a step that throws changes nothing, dispose frees all, and parameters without elements are no trouble.
import { combine, Generator, init, Lookahead, parameter, randn, SAM, scheduleFree, Tensor, tidy } from "@opt/core";
import { optimizerRuns } from "@opt/testkit/optimizers";
import { expect, it } from "vitest";

await init("js");
const all = await optimizerRuns({ lr: 0.1 });
/** The last of each class: it has most options. */
const runs = all.filter(({ name }, i) => all[i + 1]?.name !== name);
type Run = (typeof runs)[0];
type Make = (run: Run, params: Tensor[]) => InstanceType<Run["Optimizer"]> | SAM<never>;

const alone: Make = ({ Optimizer, options }, params) =>
  new Optimizer([...params.map((w) => ({ params: [w] }))], options);
const WRAPPERS: Readonly<Record<string, Make>> = {
  alone,
  combine: ({ Optimizer, options }, params) =>
    combine(
      params.map((w) => [w.name!, w] as const),
      { matrices: Optimizer, rest: Optimizer },
      { matrices: options, rest: options },
      { isMatrix: (name) => name === "a" },
    ) as never,
  Lookahead: (run, params) => new Lookahead(alone(run, params), { k: 2 }) as never,
  SAM: (run, params) => new SAM(alone(run, params)) as never,
  scheduleFree: (run, params) => scheduleFree(alone(run, params)) as never,
};

const words = (value: unknown): string => {
  if (value instanceof Tensor) return [...value.dataSync()].join();
  if (Object(value) !== value) return String(value);
  return Object.entries(value as object)
    .map(([key, each]) => `${key}: ${words(each)}`)
    .join("\n");
};

function start(make: Make, run: Run, shapes: readonly (readonly number[])[]) {
  const params = shapes.map((shape, i) =>
    parameter(randn(shape, { generator: new Generator(i) }), { name: "abc"[i]! }),
  );
  const optimizer = make(run, params);
  const given: Tensor[] = [];
  const clear = () => {
    for (const grad of given.splice(0)) if (!grad.isDisposed) grad.dispose();
    optimizer.zeroGrad();
  };
  const step = (t: number, fault = () => {}) => {
    optimizer.step(() => {
      clear();
      params.forEach((w, i) => {
        w.grad = randn(w.shape, { generator: new Generator(10 * t + i) });
        given.push(w.grad);
      });
      fault();
    });
    clear();
  };
  const state = () => words([params, optimizer.stateDict().state]);
  return { params, optimizer, step, clear, state, memory: () => params[0]!.device.memory().tensors };
}

const SHAPES = [
  [4, 3],
  [2, 2],
];

/** Elementwise, of stages, and with state that begins as its parameter. */
const SOME = ["SGD", "Muon", "Prodigy"];

for (const [name, make] of Object.entries(WRAPPERS))
  it.each(runs.filter((run) => make === alone || SOME.includes(run.name)).map((run) => [run.title, run] as const))(
    `${name}: %s`,
    (_, run) => {
      const [one, other] = [start(make, run, SHAPES), start(make, run, SHAPES)];
      const made = one.memory();
      const group = one.optimizer.groups.at(-1)! as Record<string, unknown>;
      const faults: Readonly<Record<string, () => void>> = {
        option: () => Object.assign(group, { lr: Number.NaN }),
        gradient: () => one.params.at(-1)!.grad!.dispose(),
        closure: () => {
          throw new RangeError("a closure");
        },
      };
      const { lr } = group;
      for (let t = 0; t < 3; t++) {
        for (const [fault, body] of Object.entries(faults)) {
          const before = one.state();
          expect(() => one.step(t, body), fault).toThrow(/lr|learning rate|dispose|freed|a closure/);
          one.clear();
          Object.assign(group, { lr });
          expect(one.state(), `${fault} in step ${t}`).toBe(before);
        }
        for (const { params, step } of [one, other]) {
          if (t === 0 && name !== "combine") for (const w of params) tidy(() => w.set(w.detach().neg())); // what a step that threw has seen before
          step(t);
        }
        expect(one.state()).toBe(other.state());
      }
      one.optimizer.dispose();
      other.optimizer.dispose();
      expect(one.memory()).toBe(made);
      const fresh = start(make, run, SHAPES);
      for (const [i, w] of fresh.params.entries()) one.params[i]!.set(w.detach());
      for (const { step } of [one, fresh]) step(0);
      expect(one.state(), "disposed, it is a new one").toBe(fresh.state());
      const [small, whole] = [[...SHAPES, [0, 3]], SHAPES].map((shapes) => {
        const { params, step } = start(make, run, shapes);
        for (let t = 0; t < 2; t++) step(t);
        return words(params.slice(0, 2));
      });
      expect(small).toBe(whole);
    },
  );
