// An option that a program changes between steps counts from the next one on: in compiled steps, and as in an optimizer made anew.
import { compile, Generator, init, type OptError, parameter, randn } from "@opt/core";
import { optimizerRuns } from "@opt/testkit/optimizers";
import { expect, it } from "vitest";

await init("js");
const runs = await optimizerRuns();

/** The numbers after a change of one option, or the code of what it throws. */
function outcome({ Optimizer, options }: (typeof runs)[0], key: string, value: unknown, how: string): unknown {
  const w = parameter(randn([6, 4], { generator: new Generator(1) }), { name: "w" });
  let optimizer = new Optimizer([w], { ...options, lr: 0.1 });
  const train = () => void optimizer.step();
  const step = how === "compiled" ? compile(train) : train;
  const steps = (from: number, to: number) => {
    for (let t = from; t < to; t++) {
      w.grad = randn([6, 4], { generator: new Generator(10 + t) });
      step();
    }
  };
  steps(0, 2);
  if (how === "anew") {
    const { groups, ...saved } = optimizer.stateDict();
    optimizer = new Optimizer([w], { ...options, lr: 0.1 });
    optimizer.loadStateDict({ ...saved, groups });
  }
  Object.assign(optimizer.groups[0]!, { [key]: value });
  try {
    steps(2, 4);
  } catch (error) {
    return (error as OptError).code;
  }
  return [...w.dataSync()];
}

it.each(runs.map((run) => [run.title, run] as const))("%s", (_, run) => {
  const own = runs.filter(({ name }) => name === run.name);
  const next = own[(own.indexOf(run) + 1) % own.length]!.options;
  const all = { ...run.Optimizer.prototype.define.call(null).defaults, ...next };
  for (const key of new Set([...Object.keys(run.options), ...Object.keys(next)]))
    if (all[key] !== run.options[key]) {
      const value = all[key];
      const eager = outcome(run, key, value, "eager");
      for (const how of ["compiled", "anew"])
        expect(outcome(run, key, value, how), `${key} becomes ${JSON.stringify(value)}, ${how}`).toEqual(eager);
    }
});
