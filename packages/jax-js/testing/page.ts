/** What the browser's test runs in its page: a transformation on a device of jax-js beside the optimizer's class. */
import { type Device, defaultDevice, init, numpy as np, tree } from "@jax-js/jax";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { type BaseOptions, type OptimizerClass, parameter, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { applyUpdates, gradientTransformation } from "../src/transformation";

const OPTIMIZERS = {
  NAdam: [NAdam, { lr: 0.01, weightDecay: 0.1 }],
  AdamW: [AdamW, { lr: 0.01 }],
  AMSGrad: [Adam, { lr: 0.01, amsgrad: true }],
} as unknown as Readonly<Record<string, readonly [OptimizerClass<BaseOptions>, Partial<BaseOptions>]>>;

/** Long enough for divisions apart on wasm, shared by threads. */
const SHAPES = { w: [128, 128], b: [9] };
const wave = (seed: number, size: number) =>
  Float32Array.from({ length: size }, (_, i) => Math.sin(12.9898 * seed + 78.233 * i));
const values = (seed: number) => ({ w: wave(seed, 128 * 128), b: wave(seed + 1, 9) });
const treeOf = ({ w, b }: ReturnType<typeof values>) => ({
  w: np.array(w, { shape: SHAPES.w }),
  b: np.array(b, { shape: SHAPES.b }),
});

/** What `train` has seen. */
export interface Seen {
  readonly device: string;
  readonly difference: number;
}

/** 40 steps of both, the largest difference of a parameter, and where the arrays were. */
async function train(device: Device, name: string): Promise<Seen | string> {
  if (!(await init(device)).includes(device)) return `no ${device}`;
  defaultDevice(device);
  const [Class, options] = OPTIMIZERS[name]!;
  const own = Object.values(values(0)).map((data) => parameter(data.slice(), { device: "js" }));
  const optimizer = new Class(own, options);
  const tx = gradientTransformation(Class, options);
  let params = treeOf(values(0));
  let state = tx.init(tree.ref(params));
  for (let t = 1; t <= 40; t++) {
    const gradients = values(10 * t);
    Object.values(gradients).forEach((data, i) => {
      own[i]!.grad = tensor(data, { device: "js" });
    });
    optimizer.step();
    if (t % 2 === 0) [params, state] = tx.step(treeOf(gradients), state, params);
    else {
      let updates: typeof params;
      [updates, state] = tx.update(treeOf(gradients), state, tree.ref(params));
      params = applyUpdates(params, updates);
    }
  }
  const seen = params.w.device;
  const theirs = await Promise.all([params.w.data(), params.b.data()]);
  const differences = own.flatMap((param, i) => {
    const ours = param.dataSync();
    return [...theirs[i]!].map((value, k) => Math.abs(value - ours[k]!));
  });
  return { device: seen, difference: Math.max(...differences) };
}

Object.assign(globalThis, { train });
