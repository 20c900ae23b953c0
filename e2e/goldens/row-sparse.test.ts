/** Sparse embeddings in whole programs: every device steps what js steps, and exact ones have the same words. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { Adam, AdamW, SparseAdam } from "@opt/adam-amsgrad";
import { compile, type Device, type DType, ExponentialMovingAverage, Generator, GradScaler, parameter, RowSparse, rowSparse, type Tensor, tensor, tidy } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { Embedding } from "@opt/nn";
import { SGD } from "@opt/sgd";
import { eachDevice, expectCode, sample, semanticsGolden, useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";

useSoftwareVulkan();

/** Rows of each step, as many each time: 2 and 7 always, 2 often twice, 4 never. */
const BATCHES = [[2, 7, 2, 0], [7, 2, 2, 8], [2, 7, 6, 1], [3, 2, 7, 2], [2, 2, 2, 7]];
const [ROWS, WIDTH] = [9, 3];
type Where = Device | string;
type Steps = Adam | AdamW | NAdam | SGD | SparseAdam;

const lazy = { lazyMode: true };
const MAKERS = {
  SGD: (table: Tensor) => new SGD([table], { lr: 0.1, momentum: 0.9, ...lazy }),
  AdamW: (table: Tensor) => new AdamW([table], { lr: 0.1, weightDecay: 0.1, ...lazy }),
  "Adam, clipped by norm": (table: Tensor) => new Adam([table], { amsgrad: true, clip: { norm: 0.5 }, ...lazy }),
  "Adam, clipped by value": (table: Tensor) => new Adam([table], { weightDecay: 0.1, clip: { value: 0.05 }, ...lazy }),
  SparseAdam: (table: Tensor) => new SparseAdam([table], { lr: 0.1 }),
  "SparseAdam of short state, clipped by norm": (table: Tensor) => new SparseAdam([table], { lr: 0.1, stateDType: "bf16", clip: { norm: 0.5 } }),
  "NAdam of short state": (table: Tensor) => new NAdam([table], { stateDType: "bf16", ...lazy }),
  "NAdam, all rows": (table: Tensor) => new NAdam([table], { lr: 0.1 }),
};

function program(device: Where, dtype: DType, make: (table: Tensor) => Steps) {
  const embedding = new Embedding(ROWS, WIDTH, { sparse: true, device, dtype, generator: new Generator(4) });
  const optimizer = make(embedding.weight);
  const indices = tensor(BATCHES[0]!, { dtype: "i32", device });
  const step = () => {
    embedding.forward(indices).to("f32").add(0.5).pow(2).mean().backward();
    optimizer.step();
    optimizer.zeroGrad();
  };
  return { table: embedding.weight, optimizer, indices, step };
}

/** The table after the batches. */
function trained(device: Where, dtype: DType, make: (table: Tensor) => Steps, isCompiled = false): Tensor {
  const { table, indices, step } = program(device, dtype, make);
  const call = isCompiled ? compile(step) : () => tidy(step);
  for (const rows of BATCHES) {
    indices.set(rows);
    call();
  }
  return table;
}

await eachDevice((device) => {
  const runs = Object.entries(MAKERS).flatMap(([name, make]) => (["f32", "bf16"] as const).map((dtype) => [name, dtype, make] as const));

  it.each(device.portable ? runs : sample(runs, 3))("%s in %s: the rows of js, compiled too", async (_, dtype, make) => {
    const expected = trained("js", dtype, make);
    for (const isCompiled of [false, true]) {
      const table = trained(device, dtype, make, isCompiled);
      const tolerance = device.backend.exact ? "bits" : { absolute: dtype === "f32" ? 1e-5 : 1e-2, relative: 0 };
      expect(await table.data()).toAgreeWith(expected.dataSync(), tolerance);
    }
  });
});

describe("a sparse embedding", () => {
  it("goes on from saved state as if it had not stopped", () => {
    for (const dtype of ["f32", "bf16"] as const) {
      const run = (stops: boolean) => {
        let { table, optimizer, indices, step } = program("js", dtype, MAKERS.AdamW);
        BATCHES.forEach((rows, i) => {
          if (stops && i === 2) {
            const [values, state] = [table.clone(), optimizer.stateDict()];
            ({ table, optimizer, indices, step } = program("js", dtype, (w) => new AdamW([w])));
            table.set(values.detach());
            optimizer.loadStateDict(state);
          }
          indices.set(rows);
          step();
        });
        return [...table.dataSync()];
      };
      expect(run(true)).toEqual(run(false));
    }
  });

  it("accumulates what two passes find, and what another with its weight finds", () => {
    const grads = (sparse: boolean) => {
      const first = new Embedding(ROWS, WIDTH, { sparse, generator: new Generator(4) });
      const second = new Embedding(ROWS, WIDTH, { sparse });
      (second as { weight: Tensor }).weight = first.weight;
      const look = (embedding: Embedding, rows: number[]) => embedding.forward(tensor(rows, { dtype: "i32" })).pow(2);
      look(first, [1, 2, 1]).sum().add(look(second, [2, 4]).sum()).backward();
      look(second, [2, 8]).sum().backward();
      const { grad } = first.weight;
      return [grad instanceof RowSparse ? grad.toDense() : grad!, grad instanceof RowSparse] as const;
    };
    const [[dense], [rows, isSparse]] = [grads(false), grads(true)];
    expect(isSparse).toBe(true);
    expect(rows.tolist()).toEqual(dense.tolist());
  });

  it("is averaged, scaled, and skipped where a row is not finite", () => {
    const run = (sparse: boolean) => {
      const { weight } = new Embedding(ROWS, WIDTH, { generator: new Generator(4) });
      const embedding = new Embedding(ROWS, WIDTH, { sparse });
      (embedding as { weight: Tensor }).weight = weight;
      const optimizer = new SGD([weight], { lr: 0.1, lazyMode: sparse });
      const average = new ExponentialMovingAverage([weight]);
      const scaler = new GradScaler({ initScale: 4 });
      for (const [i, rows] of BATCHES.entries()) {
        const factor = i === 1 ? Number.POSITIVE_INFINITY : 1;
        scaler.scale(embedding.forward(tensor(rows, { dtype: "i32" })).pow(2).mean().mul(factor)).backward();
        void scaler.step(optimizer);
        void scaler.update();
        average.update();
        optimizer.zeroGrad();
      }
      return [weight.tolist(), average.averaged(() => weight.tolist())];
    };
    expect(run(true)).toEqual(run(false));
  });

  it("rejects what is no row", () => {
    const embedding = new Embedding(ROWS, WIDTH, { sparse: true });
    for (const row of [-1, ROWS]) expectCode("BAD_ARGUMENT", () => embedding.forward(tensor([row], { dtype: "i32" })));
    expectCode("BAD_ARGUMENT", () => new Embedding(ROWS, WIDTH, { sparse: 1 as never }));
    expectCode("BAD_ARGUMENT", () => new Embedding(ROWS, WIDTH, { sparce: true } as never));
  });
});

describe("lazyMode computes as others do", () => {
  const close = { absolute: 0, relative: 1e-12 };
  const f64 = { dtype: "f64" } as const;

  it("PyTorch's SparseAdam, but for where eps stands", () => {
    const table = parameter([[0, 0.25], [0.5, 0.75], [1, 1.25], [1.5, 1.75]], f64);
    const optimizer = new Adam([table], { lr: 0.1, betas: [0.8, 0.9], eps: 1e-30, lazyMode: true });
    for (const rows of [[2, 0, 2], [1, 2], [3, 2, 3], [0, 1]]) {
      const values = rows.map((row, i) => [(row + 1) / 2, -(i + 1) / 4]);
      table.grad = rowSparse(tensor(rows, { dtype: "i32" }), tensor(values, f64), [4, 2]);
      optimizer.step();
    }
    // torch.optim.SparseAdam of PyTorch 2.13 on the same gradients.
    const expected = {
      step: 4,
      param: [-0.18203429296996168, 0.42615425377508054, 0.3413876584073149, 0.9060400915029172, 0.7155111327072999, 1.5344888672927002, 1.4325324687165806, 1.8174675312834194],
      exp_avg: [0.18, -0.13, 0.36, -0.14, 0.924, -0.308, 0.8, -0.2],
      exp_avg_sq: [0.0475, 0.02875, 0.19, 0.030625, 1.1565, 0.1285, 1.6, 0.1],
    };
    const { step, exp_avg, exp_avg_sq } = optimizer.stateDict().state["0"]!;
    expect(step).toBe(expected.step);
    expect(table.dataSync()).toAgreeWith(expected.param, close);
    expect((exp_avg as Tensor).dataSync()).toAgreeWith(expected.exp_avg, close);
    expect((exp_avg_sq as Tensor).dataSync()).toAgreeWith(expected.exp_avg_sq, close);
  });

  it("Paddle's lazy_mode", () => {
    const { config, inputs, expected } = semanticsGolden("paddle_sparse_adam");
    const { lr, beta1, beta2, epsilon: eps } = config as Record<string, number>;
    const { height, row_numel: width, rows } = inputs as { height: number; row_numel: number; rows: number[] };
    const fives = () => parameter(new Float64Array(height * width).fill(5), { shape: [height, width], ...f64 });
    const table = fives();
    const optimizer = new Adam([table], { lr: lr!, betas: [beta1!, beta2!], eps: eps!, lazyMode: true });
    const { groups } = optimizer.stateDict();
    optimizer.loadStateDict({ groups, state: { 0: { step: 9, exp_avg: fives(), exp_avg_sq: fives() } } });
    const values = new Float64Array(rows.length * width).fill(1);
    values[0] = 2;
    values[2 * width + 8] = 4;
    table.grad = rowSparse(tensor(rows, { dtype: "i32" }), tensor(values, { shape: [rows.length, width], ...f64 }), table.shape);
    optimizer.step();
    const after = { param: table, moment1: optimizer.stateDict().state["0"]!.exp_avg, moment2: optimizer.stateDict().state["0"]!.exp_avg_sq };
    for (const [name, x] of Object.entries(after) as [string, Tensor][]) {
      const numbers = x.dataSync();
      const at = (row: number, column: number) => numbers[row * width + column]!;
      const of = (gradient: number) => (expected[`g${gradient}_kernel`] as Record<string, number>)[name]!;
      // Paddle has the powers of the betas in float32.
      expect([at(0, 0), at(0, 1), at(7, 8), at(1, 0)]).toAgreeWith([of(2), of(1), of(4), 5], { absolute: 0, relative: 1e-6 });
    }
  });
});
