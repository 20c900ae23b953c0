import { describe, expect, it } from "vitest";
import { type FieldKind, type FieldWriter, fieldsOf } from "./fields";
import { outputsOf } from "./launches";
import type { Launch } from "./spec";

const KINDS: Readonly<Record<FieldKind, true>> = {
  ...{ reduce: true, matmul: true, gather: true, scatterAdd: true, unfold: true, fold: true, maxPool2d: true },
  ...{ maxPool2dGrad: true, batchNorm: true, batchNormGrad: true, groupNorm: true, groupNormGrad: true },
  ...{ lstm: true, lstmGrad: true },
};
const WINDOW = {
  ...{ batch: 2, channels: 3, height: 5, width: 7, outHeight: 2, outWidth: 3 },
  ...{ kernel: [2, 3], stride: [1, 2], padding: [0, 1], dilation: [1, 1] },
} as const;

/** A launch whose slices are in memories of their own names. */
function launchOf<K extends FieldKind>(kind: K, sizes: object, dtype = "f32"): Launch<K> {
  const slices = fieldsOf(kind).fields.flatMap(({ name, type }) =>
    /reads|writes|bytes/i.test(String(type)) ? [[name, { memory: name, byteOffset: 0, length: 0 }]] : [],
  );
  return { kind, kernel: { spec: { kind, dtype } }, ...sizes, ...Object.fromEntries(slices) } as unknown as Launch<K>;
}

/** What a launch writes, as text. */
function written<K extends FieldKind>(launch: Launch<K>): string[] {
  const lines: string[] = [];
  const to: FieldWriter = {
    integer: (value) => lines.push(`integer ${value}`),
    number: (value) => lines.push(`number ${value}`),
    flag: (value) => lines.push(`flag ${value}`),
    slice: ({ memory }, dtype, needed) => lines.push(`${memory} ${dtype} ${needed}`),
  };
  fieldsOf(launch.kind as K).write(to, launch);
  return lines;
}

describe("fieldsOf", () => {
  it("writes sizes, then slices with the elements that a kernel touches", () => {
    const sizes = { batch: 2, m: 3, n: 4, k: 5, strideA: 15, strideB: 0 };
    expect(written(launchOf("matmul", sizes, "f64"))).toEqual([
      ...["integer 2", "integer 3", "integer 4", "integer 5", "integer 15", "integer 0"],
      ...["a f64 30", "b f64 20", "output f64 24"],
    ]);
  });

  it("writes shared sizes as a struct of their own, and indices as i32", () => {
    const { fields } = fieldsOf("maxPool2d");
    expect(fields.map(({ name }) => name)).toEqual(["window", "input", "output", "indices"]);
    expect(fields[0]!.type).toMatchObject({ struct: "Window", isTyped: false });
    const lines = written(launchOf("maxPool2d", { window: WINDOW }));
    expect(lines).toHaveLength(14 + 3);
    expect(lines.slice(6, 10)).toEqual(["integer 2", "integer 3", "integer 1", "integer 2"]);
    expect(lines.slice(14)).toEqual(["input f32 210", "output f32 36", "indices i32 36"]);
  });

  it("has the result of a reduction in the dtype that its op gives", () => {
    const launch = launchOf("reduce", { outer: 2, length: 3, inner: 4 });
    const places = { ...launch, kernel: { spec: { ...launch.kernel.spec, op: "argmax" } } } as Launch<"reduce">;
    expect([written(launch).at(-1), written(places).at(-1)]).toEqual(["output f32 8", "output i32 8"]);
  });

  it.each(Object.keys(KINDS) as FieldKind[])("names what a launch of %s writes, as `outputsOf` does", (kind) => {
    const outputs = fieldsOf(kind).fields.filter(({ type }) => /writes|bytes/.test(String(type)));
    const found = outputsOf(launchOf(kind, {}) as Launch);
    expect(outputs.map(({ name }) => name).sort()).toEqual(found.map(({ memory }) => String(memory)).sort());
  });
});
