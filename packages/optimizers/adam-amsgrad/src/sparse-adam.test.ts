import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { functional, parameter, rowSparse, type Tensor, tensor } from "@opt/core";
import { expectCode, torchPython, withoutTorch } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { SparseAdam, type SparseAdamOptions } from "./index";

const [ROWS, WIDTH] = [7, 3];
type End = Record<string, number[]>;
interface Goldens {
  readonly runs: readonly {
    readonly options: Partial<SparseAdamOptions>;
    readonly float64: End;
    readonly float32: End;
  }[];
}

const folder = new URL("../testing/", import.meta.url);
const goldens: Goldens = JSON.parse(readFileSync(new URL("sparse-adam.json", folder), "utf8"));

const value = (i: number) => ((i * i * 17 + i * 31) % 257) / 64 - 2;
const rowsAt = (t: number) => [(t * t) % ROWS, (t * 3 + 1) % 5, (t * t) % ROWS];
const list = (length: number, of: (i: number) => number) => Array.from({ length }, (_, i) => of(i));

/** The runs of sparse_adam.py. */
function run(options: Partial<SparseAdamOptions>, dtype: "f32" | "f64", steps: number): End {
  const table = parameter(list(ROWS * WIDTH, value), { shape: [ROWS, WIDTH], dtype });
  const optimizer = new SparseAdam([table], options);
  for (let t = 0; t < steps; t++) {
    const values = list(3 * WIDTH, (i) => value(t * 100 + Math.floor(i / WIDTH) * 10 + (i % WIDTH)));
    const rows = tensor(rowsAt(t), { dtype: "i32" });
    table.grad = rowSparse(rows, tensor(values, { shape: [3, WIDTH], dtype }), table.shape);
    optimizer.step();
  }
  const { step, ...state } = optimizer.stateDict().state["0"]!;
  expect(step).toBe(steps);
  const tensors = Object.entries({ param: table, ...state }) as [string, Tensor][];
  return Object.fromEntries(tensors.map(([key, x]) => [key, [...x.dataSync()] as number[]]));
}

describe.each(goldens.runs)("PyTorch's numbers, $options", ({ options, float64, float32 }) => {
  it("in float64 after 200 steps", () => {
    const ours = run(options, "f64", 200);
    for (const [key, expected] of Object.entries(float64)) {
      expect(ours[key], key).toAgreeWith(expected, { absolute: 1e-12, relative: 1e-12 });
    }
  });

  it("in float32, bit for bit", () => {
    expect(run(options, "f32", 25)).toEqual(float32);
  });
});

it.skipIf(torchPython === undefined)(`PyTorch still says what the goldens say${withoutTorch}`, () => {
  const script = fileURLToPath(new URL("sparse_adam.py", folder));
  const fresh: Goldens = JSON.parse(execFileSync(torchPython as string, [script], { encoding: "utf8" }));
  expect(fresh.runs).toEqual(goldens.runs);
});

it("rejects a dense gradient before anything has changed", () => {
  const [table, bias] = [parameter([[1], [2]], { name: "table" }), parameter([[1], [2]], { name: "bias" })];
  const optimizer = new SparseAdam([table, bias], { lr: 1 });
  table.grad = rowSparse(tensor([1], { dtype: "i32" }), tensor([[1]]), [2, 1]);
  bias.grad = tensor([[1], [1]]);
  const message = expect.stringContaining("bias");
  expect(() => optimizer.step()).toThrow(expect.objectContaining({ code: "UNSUPPORTED", message }));
  expect([table.tolist(), optimizer.stateDict().state]).toEqual([[[1], [2]], {}]);
});

it("counts a step whose gradient has no rows", () => {
  const table = parameter([[1], [2]]);
  const optimizer = new SparseAdam([table]);
  table.grad = rowSparse(tensor([], { dtype: "i32" }), tensor([], { shape: [0, 1] }), [2, 1]);
  optimizer.step();
  expect([table.tolist(), optimizer.stateDict().state["0"]!.step]).toEqual([[[1], [2]], 1]);
});

it("has no functional step", () => {
  expectCode("UNSUPPORTED", () => functional(SparseAdam));
});
