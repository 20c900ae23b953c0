/** Recorded launches are run in one call; that must show in nothing but time. */
import type { Backend, Launch, Scalar, Slice } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { openCpuBackend } from "./backend";
import { missingDevice } from "./testing/missing-device";
import { everyOp, unbuilt } from "./testing/rules";

const SIZE = 37;

function setUp() {
  const backend = openCpuBackend({ threads: 1 });
  const arrays = everyOp.buffers.map((_, b) => Float32Array.from({ length: SIZE }, (_, i) => Math.sin(i * (b + 1))));
  const slices = arrays.map((array) => sliceOf(backend, array));
  return { backend, arrays, slices };
}

function sliceOf(backend: Backend, array: Float32Array): Slice {
  return { memory: backend.wrap!(array), byteOffset: 0, length: array.length };
}

function ruleLaunch(backend: Backend, slices: readonly Slice[], scalars: readonly Scalar[], rule = everyOp) {
  const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
  return { kind: "rule", kernel, tensors: [slices], scalars } satisfies Launch;
}

describe.skipIf(missingDevice)(`recorded launches${missingDevice ?? ""}`, () => {
  it.each([everyOp, unbuilt])("of $name take the scalars of each replay", (rule) => {
    const [replayed, eager] = [setUp(), setUp()];
    const scalarsOf = (by: number) => rule.scalars.map((_, i) => by + i);
    const launchOn = ({ backend, slices }: typeof eager, by: number) =>
      ruleLaunch(backend, slices.slice(0, rule.buffers.length), scalarsOf(by), rule);
    const recording = replayed.backend.record!([launchOn(replayed, 0.1), launchOn(replayed, 0.2)]);
    for (const by of [0.2, 0.3, 0.7]) {
      recording.replay(new Map([[1, scalarsOf(by)]]));
      for (const one of [0.1, by]) eager.backend.launch(launchOn(eager, one));
    }
    expect(replayed.arrays).toEqual(eager.arrays);
    recording.dispose();
  });

  it.each(["f32", "f64"] as const)("read %s scalars that lie in memory when their turn comes", (dtype) => {
    const { backend } = setUp();
    const Numbers = dtype === "f32" ? Float32Array : Float64Array;
    const [input, factor] = [new Numbers([3]), new Numbers([0])];
    const all = everyOp.buffers.map(() => new Numbers(4).fill(0.5));
    const expected = all.map((array) => array.slice());
    const place = (array: Float32Array | Float64Array) =>
      ({ memory: backend.wrap!(array), byteOffset: 0, length: array.length }) satisfies Slice;
    const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype });
    const reduce = backend.kernel({ kind: "reduce", op: "sum", dtype });
    const by = place(factor);
    const recording = backend.record!([
      { kind: "reduce", kernel: reduce, input: place(input), output: by, outer: 1, length: 1, inner: 1 },
      { kind: "rule", kernel, tensors: [all.map(place)], scalars: [by, 2] },
    ]);
    for (const value of [3, 0.25]) {
      input[0] = value;
      recording.replay(new Map([[1, [by, 2]]]));
      backend.launch({ kind: "rule", kernel, tensors: [expected.map(place)], scalars: [value, 2] });
    }
    expect(all).toEqual(expected);
  });

  it("ask for tensors where they are to be asked for, in their turn", () => {
    const [replayed, eager] = [setUp(), setUp()];
    const firsts = [1, 4, 9];
    let replay = 0;
    const rows = ({ slices }: typeof eager, first: number) => [
      slices.map((slice) => ({ ...slice, byteOffset: 4 * first, length: 5 })),
    ];
    const whole = (one: typeof eager) => ruleLaunch(one.backend, one.slices, [0.1, 2]);
    const recording = replayed.backend.record!([
      whole(replayed),
      {
        ...whole(replayed),
        asked: true,
        get tensors() {
          return rows(replayed, firsts[replay]!);
        },
      },
      whole(replayed),
    ]);
    for (; replay < firsts.length; replay++) {
      recording.replay(new Map([[1, [0.3 + replay, 2]]]));
      eager.backend.launch(whole(eager));
      eager.backend.launch({ ...whole(eager), tensors: rows(eager, firsts[replay]!), scalars: [0.3 + replay, 2] });
      eager.backend.launch(whole(eager));
    }
    expect(replayed.arrays).toEqual(eager.arrays);
  });

  it("are refused once an array of the caller's was transferred, and nothing has changed", () => {
    const { backend, arrays, slices } = setUp();
    const other = new Float32Array(SIZE);
    const recording = backend.record!([
      ruleLaunch(backend, slices, [0.1, 2]),
      ruleLaunch(backend, [...slices.slice(0, -1), sliceOf(backend, other)], [0.1, 2]),
    ]);
    recording.replay(new Map());
    const before = arrays.map((array) => array.slice());
    structuredClone(other, { transfer: [other.buffer] });
    expect(() => recording.replay(new Map())).toThrow(expect.objectContaining({ code: "DISPOSED" }));
    expect(arrays).toEqual(before);
  });
});
