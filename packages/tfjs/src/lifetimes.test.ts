// Steps, saves, loads, and variables that go and come again, in any order: each variable has the numbers of an optimizer of its own.
import "@opt/kernels-wasm";
import { init, noGrad, type ParameterStateDict, parameter, Tensor, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import * as tf from "@tensorflow/tfjs-core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { useBackend } from "../testing/backends";
import { TfOptimizer } from "./tf-optimizer";

const NAMES = ["a/b", "c"];
const command = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("step" as const), names: fc.subarray(NAMES, { minLength: 1 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("dispose" as const), name: fc.constantFrom(...NAMES) }) },
  fc.record({ kind: fc.constant("save" as const) }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("load" as const), isFresh: fc.boolean() }) },
);

/** What the optimizer should have of a variable. */
const own = () => {
  const param = parameter([1, -2], { device: "wasm" });
  return { param, optimizer: new NAdam([param], { lr: 0.1 }) };
};
type Own = ReturnType<typeof own>;
const copied = (entry: ParameterStateDict) =>
  Object.fromEntries(
    Object.entries(entry).map(([key, x]) => [key, x instanceof Tensor ? noGrad(() => x.clone()) : x]),
  ) as ParameterStateDict;

it("and nothing is left behind", async () => {
  await useBackend("cpu");
  await init("wasm");
  const device = await init("js");
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 4, maxLength: 14 }), async (commands) => {
      tf.disposeVariables(); // of a run that failed
      const before = [tf.memory().numTensors, device.memory()];
      const made = () => new TfOptimizer(NAdam, { lr: 0.1 }, { device });
      let optimizer = made();
      const variables = new Map<string, tf.Variable>();
      const expected = new Map<string, Own>();
      /** Whose variables are members, and whose state waits. */
      let [stepped, waiting] = [new Set<string>(), new Set<string>()];
      let states = new Map<string, ParameterStateDict>();
      let weights: Awaited<ReturnType<typeof optimizer.getWeights>> = [];
      const forget = () => tf.dispose(weights.splice(0).map(({ tensor }) => tensor));
      const restored = (name: string, entry: ParameterStateDict | undefined) => {
        const other = own();
        other.param.set(expected.get(name)?.param ?? other.param);
        if (entry) other.optimizer.loadStateDict({ groups: [{ params: ["0"] }], state: { 0: entry } });
        expected.set(name, other);
      };
      let turn = 0;
      const step = (names: readonly string[]) => {
        const gradient = [++turn, -1 / turn];
        for (const name of names) {
          if (!variables.has(name))
            variables.set(
              name,
              tf.tidy(() => tf.variable(tf.tensor1d([1, -2]), true, name)),
            );
          if (!expected.has(name)) expected.set(name, own());
          const { param, optimizer } = expected.get(name)!;
          param.grad = tensor(gradient, { device: "wasm" });
          optimizer.step();
          stepped.add(name);
          waiting.delete(name);
        }
        tf.tidy(() => optimizer.applyGradients(Object.fromEntries(names.map((name) => [name, tf.tensor1d(gradient)]))));
      };
      for (const each of [{ kind: "step" as const, names: NAMES }, { kind: "save" as const }, ...commands]) {
        if (each.kind === "step") step(each.names);
        else if (each.kind === "dispose" && !waiting.has(each.name)) {
          variables.get(each.name)?.dispose();
          for (const names of [variables, expected, stepped]) names.delete(each.name);
        } else if (each.kind === "save") {
          step(["c"]); // lets go of what was disposed
          forget();
          const entries = [...expected].map(
            ([name, { optimizer }]) => [name, optimizer.stateDict().state["0"]] as const,
          );
          states = new Map(entries.flatMap(([name, entry]) => (entry ? [[name, copied(entry)]] : [])));
          weights = (await optimizer.getWeights()).map(({ name, tensor }) => ({ name, tensor: tensor.clone() }));
        } else if (each.kind === "load" && weights.length > 0) {
          const names = [...states.keys()];
          if (each.isFresh) {
            optimizer.dispose();
            optimizer = made();
            stepped = new Set();
          } else if (![...stepped].every((name) => states.has(name)) && !names.every((name) => stepped.has(name)))
            continue;
          await optimizer.setWeights(weights);
          for (const name of new Set([...names, ...expected.keys()])) restored(name, states.get(name));
          waiting = new Set(names.filter((name) => !stepped.has(name)));
          if (stepped.size === 0) step(names.slice(0, 1)); // by name: others wait
        }
        for (const [name, variable] of variables)
          expect([...variable.dataSync()]).toEqual([...expected.get(name)!.param.dataSync()]);
      }
      optimizer.dispose();
      forget();
      tf.dispose([...variables.values()]);
      expect([tf.memory().numTensors, device.memory()]).toEqual(before);
    }),
    { seed: 1, numRuns: 50 },
  );
});
