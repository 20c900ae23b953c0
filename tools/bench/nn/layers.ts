/** Layers forward and backward, in sizes that models have; products and factors of matrices, and Fourier transforms. */
import {
  avgPool2d,
  eigh,
  fft,
  init,
  maxPool2d,
  noGrad,
  qr,
  svd,
  type Tensor,
  tensor,
  tidy,
  viewAsComplex,
  viewAsReal,
} from "@opt/core";
import { BatchNorm2d, crossEntropy, GRU, LayerNorm, LSTM, type Module, scaledDotProductAttention } from "@opt/nn";
import { type Benchmark, type Contender, type Rate, timed } from "../contender";
import { openTorch } from "../python/process";
import { values } from "./values";

export interface LayerWork {
  readonly layer: string;
  /** Of each input. */
  readonly shapes: readonly (readonly number[])[];
  readonly isForwardOnly: boolean;
}

interface Layer {
  readonly module?: Module;
  forward(...inputs: Tensor[]): Tensor;
}

const IMAGES = [[32, 64, 28, 28]];
const SEQUENCES = [[64, 32, 256]];
const heads = (places: number) => Array.from({ length: 3 }, () => [4, 8, places, 64]);
/** Orders of summation differ; what is compared are sums of magnitudes. */
const TOLERANCE = 1e-4;
/** The js device takes seconds. */
const SLOW = "js";

/** A module's layer; what is recurrent also returns its last state. */
function layerOf<M extends Module & { forward(x: Tensor): unknown }>(module: M): Layer {
  return {
    module,
    forward(x) {
      const result = module.forward(x!) as Tensor | [Tensor, unknown];
      return Array.isArray(result) ? result[0] : result;
    },
  };
}

const crossEntropyOfPlaces = (): Layer => {
  let targets: Tensor | undefined;
  return {
    forward(x) {
      const [rows, classes] = x!.shape as [number, number];
      const places = Int32Array.from({ length: rows }, (_, i) => (i * 7) % classes);
      targets ??= tensor(places, { dtype: "i32", device: x!.device });
      return crossEntropy(x!, targets);
    },
  };
};

const attention = (): Layer => ({
  forward: (q, k, v) => scaledDotProductAttention(q!, k!, v!, { isCausal: true }),
});

interface Row {
  readonly shapes: LayerWork["shapes"];
  readonly title: string;
  make(): Layer;
  /** Of the forward alone. */
  readonly rate?: Rate;
}

const product = (size: number): Row => ({
  shapes: [
    [size, size],
    [size, size],
  ],
  title: `matmul, ${size} x ${size} by ${size} x ${size}`,
  make: () => ({ forward: (a, b) => a!.matmul(b!) }),
  rate: { unit: "GFLOP/s", perStep: (2 * size ** 3) / 1e9 },
});

/** Of one tensor, forward alone. What it gives depends on no signs of vectors. */
const decomposition = (title: string, shape: readonly number[], forward: (x: Tensor) => Tensor): Row => ({
  shapes: [shape],
  title,
  make: () => ({ forward: (x) => tidy(() => forward(x!)) }),
  rate: { unit: "per second", perStep: 1 },
});

const LAYERS: Readonly<Record<string, Row>> = {
  "matmul,256": product(256),
  "matmul,512": product(512),
  "matmul,1024": product(1024),
  "linalg,qr": decomposition("qr, 256 x 256", [256, 256], (x) => qr(x).r),
  "linalg,eigh": decomposition("eigh, 256 x 256", [256, 256], (x) => eigh(x).eigenvalues),
  "linalg,svd": decomposition("svd, 256 x 256", [256, 256], (x) => svd(x).s),
  fft: decomposition("fft of 2^20", [2 ** 20, 2], (x) => viewAsReal(fft(viewAsComplex(x)))),
  attention: { shapes: heads(256), title: "causal attention, 4 x 8 heads x 256 x 64", make: attention },
  "attention-short": { shapes: heads(64), title: "causal attention, 4 x 8 heads x 64 x 64", make: attention },
  lstm: { shapes: SEQUENCES, title: "LSTM 256 to 256, 64 places x 32", make: () => layerOf(new LSTM(256, 256)) },
  gru: { shapes: SEQUENCES, title: "GRU 256 to 256, 64 places x 32", make: () => layerOf(new GRU(256, 256)) },
  softmax: { shapes: [[4096, 512]], title: "softmax, 4096 x 512", make: () => ({ forward: (x) => x!.softmax(-1) }) },
  "layer-norm": { shapes: [[4096, 512]], title: "LayerNorm, 4096 x 512", make: () => layerOf(new LayerNorm(512)) },
  "cross-entropy": { shapes: [[4096, 512]], title: "cross-entropy, 4096 x 512", make: crossEntropyOfPlaces },
  "batch-norm": {
    shapes: IMAGES,
    title: "BatchNorm2d in training, 32 x 64 x 28 x 28",
    make: () => layerOf(new BatchNorm2d(64)),
  },
  "max-pool": {
    shapes: IMAGES,
    title: "2 x 2 largest, 32 x 64 x 28 x 28",
    make: () => ({ forward: (x) => maxPool2d(x!, 2) }),
  },
  "average-pool": {
    shapes: IMAGES,
    title: "2 x 2 average, 32 x 64 x 28 x 28",
    make: () => ({ forward: (x) => avgPool2d(x!, 2) }),
  },
};

function opt(name: string): Contender<LayerWork> {
  return {
    name: `opt ${name}`,
    tolerance: TOLERANCE,
    async open({ layer: kind, shapes, isForwardOnly }) {
      if (name === SLOW) return "too slow to be of interest";
      const device = await init(name).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      const { module, forward } = LAYERS[kind]!.make();
      const parameters = module === undefined ? [] : [...module.parameters()];
      noGrad(() => {
        for (const [i, p] of parameters.entries()) p.set(values(p.size, 7919 + 2 * i).map((x) => x / 8));
      });
      const inputs = shapes.map((shape, i) => {
        const size = shape.reduce((a, b) => a * b);
        return tensor(values(size, 104_729 + 2 * i), { shape, device, requiresGrad: !isForwardOnly });
      });
      const all = [...inputs, ...parameters];
      let output: Tensor | undefined;
      let gradient: Tensor | undefined;
      const step = () => {
        output?.dispose();
        for (const x of all) x.grad = null;
        output = forward(...inputs);
        if (isForwardOnly) return;
        gradient ??= tensor(values(output.size, 1299), { shape: output.shape, device });
        output.backward(gradient);
      };
      return {
        run: (steps) => timed(steps, step, () => device.sync()),
        async result() {
          const seen = [output!, ...all.flatMap(({ grad }) => grad ?? [])];
          return Promise.all(seen.map(async (x) => magnitude(await x.data())));
        },
        async close() {
          for (const made of [...all, output, gradient]) made?.dispose();
        },
      };
    },
  };
}

/** Weighted by place, so that nothing may be elsewhere. */
function magnitude(data: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum += Math.abs(data[i]!) * ((i % 7) + 1);
  return sum;
}

const torch: Contender<LayerWork> = {
  name: "PyTorch",
  tolerance: TOLERANCE,
  open: (work) => openTorch("torch_layers.py", work),
};

export function layers(devices: readonly string[]): Benchmark<LayerWork>[] {
  return Object.entries(LAYERS).map(([layer, { shapes, title, rate }]) => ({
    title: rate === undefined ? `Forward and backward: ${title}` : title,
    words: ["layers", ...layer.split(",")],
    work: { layer, shapes, isForwardOnly: rate !== undefined },
    contenders: [...devices.map(opt), torch],
    rate,
  }));
}
