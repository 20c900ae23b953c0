/** What browser.test.ts runs in Chromium: TF.js as bundlers take it, on a backend of the browser. */
import "@opt/kernels-wasm";
import "@tensorflow/tfjs-backend-cpu";
import "@tensorflow/tfjs-backend-webgl";
import "@tensorflow/tfjs-backend-webgpu";
import { type Device, init, OptError, parameter, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-core/dist/register_all_gradients";
import { initializers, layers, loadLayersModel, sequential } from "@tensorflow/tfjs-layers";
import { TfOptimizer } from "../src/tf-optimizer";
import { squares } from "./single";

setWasmPaths("/wasm/");

export interface Seen {
  readonly backend: string;
  /** The variable has the bits of our own optimizer after the same gradients. */
  readonly equal: boolean;
  /** A clone that was made before the last step has not changed. */
  readonly cloneKept: boolean;
  readonly leaked: number;
  /** A model saved in IndexedDB goes on as the one that was not. */
  readonly resumed: boolean;
  readonly losses: readonly number[];
}

const same = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  a.length === b.length && Array.from(a).every((value, i) => Object.is(value, b[i]));

async function minimized(device: Device): Promise<Pick<Seen, "equal" | "cloneKept" | "leaked">> {
  const first = Float32Array.from({ length: 300 }, (_, i) => Math.sin(i));
  const w = tf.tidy(() => tf.variable(tf.tensor2d(first, [20, 15])));
  const param = parameter(first.slice(), { shape: [20, 15], device });
  const [theirs, ours] = [new TfOptimizer(NAdam, { lr: 0.1 }), new NAdam([param], { lr: 0.1 })];
  const loss = () => tf.add(squares(w), tf.sum(tf.sin(w))) as tf.Scalar;
  let clone = w.clone();
  let before = await clone.data<"float32">();
  let [counted, equal] = [0, true];
  for (let step = 0; step < 6; step++) {
    const { value, grads } = tf.variableGrads(loss, [w]);
    param.grad = tensor(await grads[w.name]!.data<"float32">(), { shape: [20, 15], device });
    ours.step();
    theirs.applyGradients(grads);
    tf.dispose([value, grads]);
    equal &&= same(await w.data(), param.dataSync());
    if (step === 1) counted = tf.memory().numTensors;
    if (step === 4) {
      clone.dispose();
      clone = w.clone();
      before = (await clone.data<"float32">()).slice();
    }
  }
  const leaked = tf.memory().numTensors - counted;
  const cloneKept = same(await clone.data(), before);
  theirs.dispose();
  tf.dispose([clone, w]);
  return { equal, cloneKept, leaked };
}

async function fitted(): Promise<Pick<Seen, "resumed" | "losses">> {
  const [x, y] = [tf.randomNormal([16, 4], 0, 1, "float32", 1), tf.randomNormal([16, 1], 0, 1, "float32", 2)];
  const initial = (seed: number) => initializers.glorotUniform({ seed });
  const model = sequential({
    layers: [
      layers.dense({ units: 8, inputShape: [4], activation: "relu", kernelInitializer: initial(3) }),
      layers.dense({ units: 1, kernelInitializer: initial(4) }),
    ],
  });
  model.compile({ optimizer: new TfOptimizer(NAdam, { lr: 0.05 }), loss: "meanSquaredError" });
  const options = { epochs: 5, batchSize: 8, shuffle: false, verbose: 0 } as const;
  const { history } = await model.fit(x, y, options);
  await model.save("indexeddb://opt", { includeOptimizer: true });
  const loaded = await loadLayersModel("indexeddb://opt");
  const after = await Promise.all([model, loaded].map(async (each) => (await each.fit(x, y, options)).history.loss));
  const weights = await Promise.all([model, loaded].map((each) => Promise.all(each.getWeights().map((w) => w.data()))));
  const resumed = weights[0]!.every((values, i) => same(values, weights[1]![i]!));
  return { resumed, losses: [...history.loss!, ...after[0]!] as number[] };
}

async function train(name: string): Promise<Seen | string> {
  const device = await init("wasm");
  if (!(await tf.setBackend(name).catch(() => false))) return `${name} does not open`;
  await tf.ready();
  try {
    return { backend: tf.getBackend(), ...(await minimized(device)), ...(await fitted()) };
  } catch (error) {
    if (error instanceof OptError) return error.code;
    throw error;
  }
}

Object.assign(globalThis, { train });
