/** Ops of layers in one kernel or op by op: WASM gives the same words, and of recurrent layers and attention those of js. */
import { compile, conv2d, type Device, fusedLstm, init, relu, type Tensor, tensor } from "@opt/core";
import { registerBackend } from "@opt/core/backend";
import { scaledDotProductAttention } from "@opt/nn";
import { sample, seededArray } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { openWasmBackend } from "./index";
import { probeTarget } from "./target";

const { fused } = probeTarget(false);
const load = async () => Object.assign(await openWasmBackend({ threads: 1 }), { fuses: [], windows: false });
registerBackend({ name: "plain", rank: 0, load });
const seeded = (device: Device, shape: readonly number[], seed: number, scale = 1): Tensor => {
  const size = shape.reduce((a, b) => a * b, 1);
  const values = seededArray("f32", size, { seed }).map((x) => x * scale);
  return tensor(values, { device, shape, requiresGrad: true });
};

/** The words of some tensors on a device. */
type Run = (device: Device) => readonly Tensor[];

async function wordsOf(name: string, run: Run): Promise<Float32Array[]> {
  const device = await init(name);
  return Promise.all(run(device).map(async (x) => (await x.data()) as Float32Array));
}

function lstm(length: number, batch: number, width: number, reverse: boolean): Run {
  return (device) => {
    const state = [batch, width];
    const shapes = [[length, batch, 4 * width], [4 * width, width], [4 * width], state, state];
    const given = shapes.map((shape, i) => seeded(device, shape, i + 1, i === 1 ? width ** -0.5 : 1)) as [
      Tensor,
      Tensor,
      Tensor,
      Tensor,
      Tensor,
    ];
    const { results, cell } = fusedLstm(...given, { reverse })!;
    results
      .mul(seeded(device, [length, batch, width], 9))
      .sum()
      .backward();
    return [results, cell, ...given.map((x) => x.grad!)];
  };
}

function attention(queries: number, keys: number, hides: "nothing" | "causal" | "mask"): Run {
  return (device) => {
    const [width, columns] = [19, 21];
    const [query, key, value] = [
      seeded(device, [2, queries, width], 1, 3),
      seeded(device, [2, keys, width], 2, 3),
      seeded(device, [2, keys, columns], 3),
    ];
    const attnMask = hides === "mask" ? seeded(device, [queries, keys], 4).detach().gt(0) : undefined;
    const options = { isCausal: hides === "causal", ...(attnMask && { attnMask }) };
    const results = scaledDotProductAttention(query!, key!, value!, options);
    results
      .mul(seeded(device, [2, queries, columns], 9))
      .sum()
      .backward();
    return [results, ...[query, key, value].map((x) => x!.grad!)];
  };
}

describe.skipIf(!fused.f32)("words of js", () => {
  const lstms = [
    [1, 1, 1, false],
    [5, 3, 7, false],
    [4, 2, 130, true],
    [3, 2, 515, false],
  ] as const;
  it.each(sample(lstms))("lstm of %d x %d, %d wide, reverse %s", async (length, batch, width, reverse) => {
    const program = lstm(length, batch, width, reverse);
    const js = await wordsOf("js", program);
    for (const device of ["wasm", "plain"]) expect(await wordsOf(device, program), device).toEqual(js);
  });

  const sizes = [1, 17, 515, 1030].flatMap((keys) => [1, 600].map((queries) => [queries, keys] as const));
  const cases = sizes.flatMap((size) =>
    (["nothing", "causal", "mask"] as const).map((hides) => [...size, hides] as const),
  );
  it.each(sample(cases))("attention of %d x %d that hides %s", async (queries, keys, hides) => {
    const program = attention(queries, keys, hides);
    const [wasm, js] = [await wordsOf("wasm", program), await wordsOf("js", program)];
    expect(wasm).toEqual(js);
  });
});

it("convolutions read windows, before epilogues too, in the words of columns", async () => {
  const layer = compile((...[x, weight, bias]: Tensor[]) => relu(conv2d(x!, weight!, bias!, { padding: 1 })));
  const program: Run = (device) => {
    const given = [seeded(device, [2, 9, 7, 9], 1), seeded(device, [10, 9, 3, 3], 2), seeded(device, [10], 3)];
    const results = Array.from({ length: 4 }, () => layer(...given.map((x) => x.detach())));
    const [x, weight, bias] = given as [Tensor, Tensor, Tensor];
    conv2d(x, weight, bias, { padding: 1 }).square().sum().backward();
    return [...results, ...given.map((x) => x.grad!)];
  };
  const { backend } = await init("wasm");
  const kernel = vi.spyOn(backend, "kernel");
  const words = await wordsOf("wasm", program);
  const products = kernel.mock.calls.flatMap(([spec]) => (spec.kind === "matmul" ? [spec] : []));
  expect(products.map(({ windows, transposeB, epilogue }) => [windows, transposeB, epilogue !== undefined])).toEqual([
    [true, false, false],
    [true, false, true],
    [true, true, false],
  ]);
  expect(words).toEqual(await wordsOf("plain", program));
});
