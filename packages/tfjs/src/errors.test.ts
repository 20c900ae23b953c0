// What is rejected, by its code, and that nothing has changed then.
import { AdamW } from "@opt/adam-amsgrad";
import { compile, init, type OptimizerState, tensor } from "@opt/core";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { SGD } from "@opt/sgd";
import { expectCode } from "@opt/testkit";
import { MathBackendCPU } from "@tensorflow/tfjs-backend-cpu";
import * as tf from "@tensorflow/tfjs-core";
import { afterEach, describe, expect, it } from "vitest";
import { useBackend } from "../testing/backends";
import { squares } from "../testing/single";
import { registerOptimizers } from "./registered";
import { TfOptimizer } from "./tf-optimizer";

await useBackend("cpu");
const js = await init("js");
afterEach(() => tf.disposeVariables());

const variable = (values: number[], name?: string) => tf.tidy(() => tf.variable(tf.tensor1d(values), true, name));
const of = <Value>(value: unknown) => value as Value;

describe("the constructor rejects", () => {
  it.each<[string, unknown, object, object]>([
    ["what is no class", "adam", {}, {}],
    ["nothing", undefined, {}, {}],
    ["a class of something else", Map, {}, {}],
    ["TF.js' own", tf.AdamOptimizer, {}, {}],
    ["an unknown option", AdamW, { learningRate: 0.1 }, {}],
    ["an option out of range", AdamW, { lr: -1 }, {}],
    ["invalid options", AdamW, of(0.001), {}],
    ["an unknown setting", AdamW, {}, { inplace: true }],
    ["a setting of another kind", AdamW, {}, { inPlace: 1 }],
  ])("%s", (_, optimizer, options, settings) => {
    expectCode("BAD_ARGUMENT", () => new TfOptimizer(of<typeof AdamW>(optimizer), options, settings));
  });

  it("a device that is not open", () => {
    expectCode("UNKNOWN_DEVICE", () => new TfOptimizer(AdamW, {}, { device: "cuda" }));
  });

  it("and leaves nothing on the device", () => {
    const before = js.memory();
    expectCode("BAD_ARGUMENT", () => new TfOptimizer(AdamW, { lr: -1 }, { device: js }));
    expect(js.memory()).toEqual(before);
  });
});

describe("applyGradients rejects", () => {
  const g = (values: number[]) => tf.tensor1d(values);
  const disposed = (x: tf.Tensor) => {
    x.dispose();
    return x;
  };
  const cases: [string, string, (w: tf.Variable) => unknown][] = [
    ["no gradients at all", "BAD_ARGUMENT", () => undefined],
    ["a tensor", "BAD_ARGUMENT", () => 3],
    ["an array in place of a tensor", "BAD_ARGUMENT", (w) => ({ [w.name]: [1, 2] })],
    ["a name that no variable has", "DISPOSED", (w) => ({ [w.name]: g([1, 2]), other: g([1]) })],
    ["an entry without a name", "BAD_ARGUMENT", () => [{ tensor: g([1, 2]) }]],
    ["invalid entries", "BAD_ARGUMENT", () => [null]],
    ["numbers", "BAD_ARGUMENT", () => [1, 2]],
    ["a gradient that was disposed", "DISPOSED", (w) => ({ [w.name]: disposed(g([1, 2])) })],
    ["a gradient of another shape", "BAD_SHAPE", (w) => ({ [w.name]: g([1]) })],
    ["an integer gradient", "BAD_DTYPE", (w) => ({ [w.name]: tf.tensor1d([1, 2], "int32") })],
    ["two gradients of one variable", "DUPLICATE", (w) => [1, 2].map(() => ({ name: w.name, tensor: g([1, 2]) }))],
  ];
  it.each(cases)("%s", (_, code, gradients) => {
    const w = variable([1, 2]);
    const optimizer = new TfOptimizer(NAdam);
    expectCode(code as "DISPOSED", () => optimizer.applyGradients(of<tf.NamedTensorMap>(gradients(w))));
    expect([[...w.dataSync()], optimizer.iterations, optimizer.stateDict().state]).toEqual([[1, 2], 0, {}]);
  });

  it("every other shape than the variable's", () => {
    const shapes = [[], [1], [2], [1, 2], [2, 1], [2, 2], [2, 2, 1]];
    for (const [i, own] of shapes.entries())
      for (const [j, shape] of shapes.entries()) {
        const w = tf.variable(tf.ones(own));
        const step = () => new TfOptimizer(SGD).applyGradients({ [w.name]: tf.ones(shape) });
        if (i === j) step();
        else expectCode("BAD_SHAPE", step);
      }
  });

  it("integer variables", () => {
    const w = tf.variable(tf.tensor1d([1, 2], "int32"));
    expectCode("BAD_DTYPE", () => new TfOptimizer(SGD).applyGradients({ [w.name]: g([1, 2]) }));
  });

  it("a variable that was disposed between the gradients and the step", () => {
    const w = variable([1, 2]);
    const optimizer = new TfOptimizer(SGD);
    const { grads } = optimizer.computeGradients(() => squares(w));
    w.dispose();
    expectCode("DISPOSED", () => optimizer.applyGradients(grads));
  });

  it("parameters that the algorithm cannot train, and goes on with others", () => {
    const [w, b] = [tf.variable(tf.ones([2, 2])), variable([1, 2])];
    const optimizer = new TfOptimizer(Muon);
    expectCode("BAD_SHAPE", () => optimizer.minimize(() => tf.add(squares(w), squares(b))));
    expect([...w.dataSync()]).toEqual([1, 1, 1, 1]);
    optimizer.minimize(() => squares(w), false, [w]);
    expect(w.dataSync()[0]).not.toBe(1);
  });

  it("options that were set out of range; the next step is the first", () => {
    const w = variable([8]);
    const optimizer = new TfOptimizer(SGD, { lr: 0.25 });
    optimizer.learningRate = Number.NaN;
    expectCode("BAD_ARGUMENT", () => optimizer.minimize(() => squares(w)));
    optimizer.learningRate = 0.25;
    optimizer.minimize(() => squares(w));
    expect([w.dataSync()[0], optimizer.iterations]).toEqual([4, 1]);
  });

  it("options that the class has not; those that it has may be set at any time", () => {
    const w = variable([8]);
    const optimizer = new TfOptimizer(SGD, { lr: 0.25 });
    const options = optimizer.groups[0] as unknown as Record<string, unknown>;
    options.learningRate = 1;
    expectCode("BAD_ARGUMENT", () => optimizer.minimize(() => squares(w)));
    delete options.learningRate;
    options.clip = { value: 4 };
    optimizer.minimize(() => squares(w));
    expect([w.dataSync()[0], optimizer.iterations]).toEqual([7, 1]);
  });

  it.each([
    ["gives zeros", () => new Float32Array(4)],
    [
      "throws",
      () => {
        throw new Error("only data()");
      },
    ],
  ])("a backend that %s where it must answer at once", async (name, readSync) => {
    class Late extends MathBackendCPU {
      override readSync = readSync;
    }
    tf.registerBackend(name, () => new Late());
    tf.copyRegisteredKernels("cpu", name);
    await tf.setBackend(name);
    const w = variable([1, 2]);
    const optimizer = new TfOptimizer(SGD);
    expectCode("NOT_SYNC", () => optimizer.minimize(() => squares(w)));
    expect(optimizer.iterations).toBe(0);
    await useBackend("cpu");
    tf.removeBackend(name);
  });

  it("a compiled step", () => {
    const w = variable([8]);
    const optimizer = new TfOptimizer(SGD, { lr: 0.25 }, { device: js });
    optimizer.minimize(() => squares(w));
    const step = compile(() => {
      optimizer.minimize(() => squares(w));
    });
    expectCode("UNSUPPORTED", step);
    expect(w.dataSync()[0]).toBe(4);
  });
});

describe("state of others is rejected", () => {
  const stepped = (values: number[], name: string) => {
    const w = variable(values, name);
    const optimizer = new TfOptimizer(NAdam);
    optimizer.minimize(() => squares(w), false, [w]);
    return { w, optimizer };
  };

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["no list of groups", { groups: {}, state: {} }],
    ["groups without parameters", { groups: [{ lr: 1 }], state: {} }],
    ["no state", { groups: [{ params: [] }] }],
    ["two groups", { groups: [{ params: [] }, { params: [] }], state: {} }],
    ["an option out of range", { groups: [{ lr: Number.NaN, params: [] }], state: {} }],
    ["state that is no object", { groups: [{ params: ["w"] }], state: { w: 3 } }],
    ["state without its tensors", { groups: [{ params: ["w"] }], state: { w: { step: 1 } } }],
    [
      "another shape",
      {
        groups: [{ params: ["w"] }],
        state: { w: { step: 1, mu_product: 1, exp_avg: tensor([1]), exp_avg_sq: tensor([1]) } },
      },
    ],
    ["other names", { groups: [{ params: ["a", "b"] }], state: {} }],
  ])("by loadStateDict: %s", (_, state) => {
    const { optimizer } = stepped([1, 2], "w");
    const before = { ...optimizer.groups[0] };
    expectCode("BAD_STATE", () => optimizer.loadStateDict(of<OptimizerState>(state)));
    expect([optimizer.stateDict().state.w!.step, optimizer.groups[0]]).toEqual([1, before]);
  });

  it("by the first step, where it could not be told before", () => {
    const { optimizer } = stepped([1, 2], "w");
    const saved = optimizer.stateDict();
    const w = variable([1, 2, 3], "w2");
    const longer = new TfOptimizer(NAdam);
    longer.loadStateDict(saved);
    expectCode("BAD_STATE", () => longer.minimize(() => squares(w), false, [w]));
    expect([...w.dataSync()]).toEqual([1, 2, 3]);
    const [a, b] = [variable([1, 2], "a"), variable([1, 2], "b")];
    const next = new TfOptimizer(NAdam);
    next.loadStateDict(saved);
    expectCode("BAD_STATE", () => next.minimize(() => tf.add(squares(a), squares(b)), false, [a, b]));
  });

  const trained = (optimizer: tf.Optimizer) => {
    const w = variable([1, 2], "w");
    optimizer.minimize(() => squares(w));
    return optimizer.getWeights();
  };
  it.each<[string, () => Promise<unknown>]>([
    ["nothing", async () => undefined],
    ["an empty list", async () => []],
    ["TF.js' Adam's", () => trained(tf.train.adam())],
    ["another algorithm's", () => trained(new TfOptimizer(SGD, { momentum: 0.9 }))],
  ])("by setWeights: %s", async (_, weights) => {
    const given = ((await weights()) as tf.NamedTensorMap[] | undefined)?.map?.((each) => ({
      ...each,
      tensor: tf.clone(each.tensor!),
    }));
    tf.disposeVariables();
    const { optimizer } = stepped([1, 2], "w");
    const failure = await optimizer.setWeights(of(given)).catch((error: { code: string }) => error);
    expect(failure).toMatchObject({ code: "BAD_STATE" });
    expect([optimizer.iterations, optimizer.stateDict().state.w!.step]).toEqual([1, 1]);
  });

  it("by fromConfig: an optimizer that is not registered, until it is", async () => {
    const config = { optimizer: "NoSuch", options: { lr: 1 } };
    const restored = () =>
      TfOptimizer.fromConfig(of<tf.serialization.SerializableConstructor<TfOptimizer<never>>>(TfOptimizer), config);
    expectCode("BAD_STATE", restored);
    expectCode("BAD_ARGUMENT", () => registerOptimizers(of<typeof AdamW>(Map)));
  });
});
