// Random programs that overwrite tensors between reads of them: passes may not move a read past a write. Compiled equals eager.
import { expectCode } from "@opt/testkit";
import { afterAll, describe, expect, it, vi } from "vitest";
import { checkOverlaps } from "../../testing/lawful";
import { inEachRun } from "../device/host-code";
import {
  type CompileOptions,
  compile,
  concat,
  fusedAttention,
  Generator,
  init,
  layerNorm,
  manualSeed,
  matmul,
  ones,
  pad,
  parameter,
  randn,
  relu,
  type Tensor,
  tensor,
  tidy,
  zeros,
} from "../index";

const device = await init("js"); // loads the passes
const launch = device.backend.launch.bind(device.backend);
const launches = vi.spyOn(device.backend, "launch").mockImplementation((one) => {
  checkOverlaps(one);
  launch(one);
});
afterAll(() => launches.mockRestore());

/** Large enough for products with epilogues. */
const EXTENT = 24;
const SHAPE = [EXTENT, EXTENT];

const OPS: ((a: Tensor, b: Tensor) => Tensor)[] = [
  (a) => a.mul(0.5).add(1),
  (a) => relu(a),
  (a, b) => a.add(b),
  (a, b) => a.mul(b).sub(a),
  (a) => a.clone(),
  (a) => a.reshape([EXTENT * EXTENT]).reshape(SHAPE),
  (a) => a.transpose().clone(), // a transpose alone can't be set
  (a, b) => matmul(a.mul(0.1), b.mul(0.1)),
  (a, b) => matmul(a, b).mul(0.01).add(b.slice(0, 1)),
  (a) => a.sub(a.mean(1, true)),
  (a) => a.softmax(-1),
  (a, b) => layerNorm(a, ones([EXTENT]), zeros([EXTENT])).add(b),
  (a, b) => matmul(a, b, { transposeA: true }).mul(0.01).add(a),
  (a, b) => matmul(a, b, { transposeA: true }).mul(0.01).add(a.sum(0)),
  (a, b) => concat([a.slice(0, 7), b.slice(7)]),
  // Gradients of slices: parts of zeros.
  (a) => pad(a, [0, 0, 5, -5]),
  (a, b) => concat([a.slice(0, 5), zeros([EXTENT - 5, EXTENT])]).add(concat([zeros([9, EXTENT]), b.slice(9)])),
  (a) => a.clone().mul(tensor([2])),
  (a, b) => {
    const border = { value: 1 };
    const [above, below] = [a.slice(0, 5).mul(2), b.slice(5).mul(3)];
    return pad(above, [0, 0, 0, EXTENT - 5], border).add(pad(below, [0, 0, 5, 0], border));
  },
  // A map of one element that is fused into a map of many.
  (a, b) => a.mul(b.mean().mul(0.5).add(1)),
  // Parts in another dtype.
  (a, b) =>
    concat([a.slice(0, 5).to("f16"), zeros([EXTENT - 5, EXTENT], { dtype: "f16" })])
      .to("f32")
      .add(b),
  // Heads in two axes, which products read and write in place.
  (a, b) => merged(matmul(heads(a).mul(0.1), heads(b).mul(0.1))),
  // Numbers that the host draws and writes before the launches.
  (a) => randn(SHAPE, { device }).mul(a),
  (a, b) => merged(fusedAttention(heads(a), heads(b), heads(a.add(b)), { scale: 0.5, isCausal: true })!),
];

const heads = (x: Tensor) => x.reshape([4, 6, 4, 6]).permute([0, 2, 1, 3]);
const merged = (x: Tensor) => x.permute([0, 2, 1, 3]).reshape(SHAPE).clone(); // a permuted tensor can't be set

/** Host code that looks at a tensor, and writes it by what it saw. */
const turned = (now: Tensor) => now.set(now.dataSync().slice().reverse());

type Instruction =
  | { readonly kind: "op"; readonly op: number; readonly a: number; readonly b: number }
  | { readonly kind: "set"; readonly target: number; readonly source: number }
  | { readonly kind: "number"; readonly target: number; readonly value: number }
  | { readonly kind: "host"; readonly target: number };

/** What is there before: arguments 0 and 1, captured tensors 2 and 3, and a view of 2. */
const GIVEN = 5;

function programOf(seed: number): { instructions: Instruction[]; results: number[] } {
  const generator = new Generator(seed);
  const below = (count: number) => Math.floor((generator.nextUint32() / 2 ** 32) * count);
  const instructions: Instruction[] = [];
  let count = GIVEN;
  // Lately made ones are read more often, so that chains come that can be fused.
  const one = () => (below(2) === 0 ? below(count) : count - 1 - below(Math.min(count, 3)));
  for (let i = 0; i < 14; i++) {
    const kind = below(20);
    if (kind === 0) instructions.push({ kind: "host", target: one() });
    else if (kind === 1) instructions.push({ kind: "number", target: one(), value: below(5) });
    else if (kind < 7) instructions.push({ kind: "set", target: one(), source: one() });
    else {
      instructions.push({ kind: "op", op: below(OPS.length), a: one(), b: one() });
      count++;
    }
  }
  return { instructions, results: [one(), count - 1] };
}

/** What three calls return, and what they leave in the tensors that were there. */
function run(seed: number, options?: CompileOptions): number[][] {
  manualSeed(seed);
  const { instructions, results } = programOf(seed);
  const random = (i: number) => randn(SHAPE, { device, generator: new Generator(100 * seed + i) });
  const captured = [random(0), random(1)];
  const body = (x: Tensor, y: Tensor) => {
    const all = [x, y, ...captured, captured[0]!.reshape(SHAPE)];
    for (const one of instructions) {
      if (one.kind === "op") all.push(OPS[one.op]!(all[one.a]!, all[one.b]!));
      else if (one.kind === "set") all[one.target]!.set(all[one.source]!);
      else if (one.kind === "host") inEachRun([all[one.target]!], turned);
      else all[one.target]!.set(new Float32Array(EXTENT * EXTENT).fill(one.value));
    }
    return results.map((i) => all[i]!.detach());
  };
  const f = options ? compile(body, { check: "never", ...options }) : (x: Tensor, y: Tensor) => tidy(() => body(x, y));
  const seen: number[][] = [];
  const [x, y] = [random(2), random(3)];
  for (let call = 0; call < 3; call++) {
    tidy(() => {
      for (const result of f(x, y)) seen.push([...result.dataSync()]);
    });
    for (const one of [...captured, x, y]) seen.push([...one.dataSync()]);
  }
  return seen;
}

/** In the least memory: all that is cheap is computed again where it frees some. */
function runInLeast(seed: number): number[][] {
  try {
    return run(seed, { memory: 1 });
  } catch (error) {
    const [, least] = /memory must be at least (\d+) bytes/.exec((error as Error).message) ?? [];
    if (least === undefined) throw error;
    return run(seed, { memory: Number(least) });
  }
}

describe("compiled programs equal eager ones, word for word:", () => {
  it.each(Array.from({ length: 7 }, (_, i) => 12 * i))("seeds from %d on", (first) => {
    for (let seed = first; seed < first + 12; seed++) {
      const eager = run(seed);
      for (const [words, compiled] of Object.entries({ plain: run(seed, {}), "in least memory": runInLeast(seed) }))
        for (const [i, values] of eager.entries()) {
          const at = values.findIndex((value, k) => !Object.is(value, compiled[i]![k]) && !Number.isNaN(value));
          expect(at, `seed ${seed}, ${words}, value ${i}, ${JSON.stringify(programOf(seed))}`).toBe(-1);
        }
    }
  });
});

/** A function of a matrix `w`, which it overwrites by its argument before it ends. */
const overwriting: Record<string, (w: Tensor, x: Tensor) => Tensor> = {
  "a map that is fused into its reader": (w, x) => {
    const y = w.mul(2).add(1);
    w.set(x);
    return y.mul(3);
  },
  "a copy that falls out": (w, x) => {
    const y = w.clone();
    w.set(x);
    return y.mean(1);
  },
  "a product that becomes one with its epilogue": (w, x) => {
    const y = x.matmul(w);
    w.set(x);
    return y.add(1).relu();
  },
  "a sum that moves to a product": (w, x) => {
    const sums = w.sum(0);
    w.set(x);
    return concat([matmul(w, x, { transposeA: true }), sums.reshape([1, EXTENT])]);
  },
  "a sum that a product comes before": (w, x) => {
    const product = matmul(w, x, { transposeA: true });
    w.set(x);
    return concat([product, w.sum(0).reshape([1, EXTENT])]);
  },
  "a gradient that a product of itself is added to": (w, x) => {
    const leaf = parameter(x);
    leaf.grad = w;
    leaf
      .mul(matmul(w, x, { transposeA: true }))
      .sum()
      .backward();
    return leaf.grad!.mul(1);
  },
  "heads that attention reads in place": (w, x) => {
    const q = heads(w);
    const [k, v] = [q.mul(2), q.mul(0.5)];
    w.set(x);
    return fusedAttention(q, k, v, { scale: 0.5, isCausal: true })!.reshape(SHAPE);
  },
  "a part in zeros": (w, x) => {
    const y = pad(w, [0, 0, 5, -5]);
    w.set(x);
    return y.add(x);
  },
  "a gradient around a norm, which comes after that of the norm": (w, x) => {
    const hidden = parameter(w);
    const around = hidden.matmul(x);
    layerNorm(hidden.mul(1.5), ones([EXTENT]), zeros([EXTENT]))
      .mul(around)
      .sum()
      .backward();
    const gradient = hidden.grad!.mul(1);
    hidden.dispose();
    w.set(x);
    return gradient;
  },
};

it.each(Object.entries(overwriting))("%s reads the old numbers", (_, body) => {
  const [w, copy, x] = [1, 1, 2].map((seed) => randn(SHAPE, { device, generator: new Generator(seed) })) as Tensor[];
  const f = compile((x: Tensor) => body(w!, x), { check: "never" });
  for (let call = 0; call < 3; call++) {
    const eager = tidy(() => body(copy!, x!));
    expect(f(x!).dataSync()).toEqual(eager.dataSync());
    x!.set(x!.mul(0.9));
  }
});

describe("a budget of memory computes again what is cheap", () => {
  const side = 64;
  const unit = 4 * side * side;
  const matrix = (period: number) =>
    tensor(
      Float32Array.from({ length: side * side }, (_, i) => i % period),
      { shape: [side, side] },
    );
  /** While the products are made three matrices live, of which one is cheap. */
  const sums = (isWritten: boolean, memory?: number) => {
    const [w, x] = [matrix(7), matrix(5)];
    const step = compile(
      () => {
        const cheap = w.mul(2);
        const square = x.matmul(x);
        const sum = square.matmul(square).sum();
        if (isWritten) w.set(w.mul(0.5));
        return sum.add(cheap.sum());
      },
      { ...(memory !== undefined && { memory }) },
    );
    return Array.from({ length: 4 }, () => step().dataSync()[0]);
  };

  it("where its inputs are still the same", () => expect(sums(false, 2.5 * unit)).toEqual(sums(false)));

  it("but not where one was written meanwhile", () => {
    expect(sums(true, 4 * unit)).toEqual(sums(true));
    expectCode("BAD_ARGUMENT", () => sums(true, 2.5 * unit));
  });
});
