import { triesAll } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Box, elementsIn, intersect } from "../layout/box";
import type { Layout } from "../layout/layout";
import { boxesOf } from "../layout/placements";
import { BoxIndex } from "./box-index";
import { planTensor, SourcePlan } from "./plan";

const tensor = { name: "w", shape: [4, 6] };
const box = (offset: number[], size: number[]): Box => ({ offset, size });

const COUNT = triesAll ? 40 : 10;

describe("the planner", () => {
  it("takes from each source box what the target shares with it", () => {
    const sources = [box([0, 0], [2, 6]), box([2, 0], [2, 3]), box([2, 3], [2, 3])];
    expect(planTensor(tensor, sources, [box([1, 2], [2, 2]), box([0, 0], [1, 6])])).toEqual([[0, 1, 2], [0]]);
  });

  it("lists what is missing", () => {
    const plan = new SourcePlan(tensor, [box([0, 0], [2, 6]), box([3, 0], [1, 6])]);
    const rejection = { code: "MISSING", message: expect.stringMatching(/tensor "w".*\[2:3, 0:6\]/) };
    expect(() => plan.sourcesOf(box([0, 0], [4, 6]))).toThrow(expect.objectContaining(rejection));
  });

  it("rejects overlaps, naming both boxes", () => {
    const rejection = { code: "CORRUPT", message: expect.stringMatching(/\[0:3, 0:6\] and \[2:4, 0:6\]/) };
    expect(() => new SourcePlan(tensor, [box([0, 0], [3, 6]), box([2, 0], [2, 6])])).toThrow(
      expect.objectContaining(rejection),
    );
  });

  it("rejects a box that leaves the tensor", () => {
    expect(() => new SourcePlan(tensor, [box([0, 0], [5, 6])])).toThrow(expect.objectContaining({ code: "CORRUPT" }));
  });

  it(`plans 4096 ranks to 3072 for ${COUNT} tensors of different shapes`, () => {
    const from: Layout = { mesh: { shape: [64, 64], axes: ["a", "b"] }, tensors: { "*": ["a", "b"] } };
    const to: Layout = { mesh: { shape: [48, 64], axes: ["a", "b"] }, tensors: { "*": ["a", "b"] } };
    let copies = 0;
    for (let i = 0; i < COUNT; i++) {
      const one = { name: `layer.${i}`, shape: [1000 + i, 4096] };
      const [sources, targets] = [boxesOf(from, one), boxesOf(to, one)];
      planTensor(one, sources, targets).forEach((list, target) => {
        copies += list.length;
        const filled = list.reduce((sum, id) => sum + elementsIn(intersect(sources[id]!, targets[target]!)!), 0);
        expect(filled).toBe(elementsIn(targets[target]!));
      });
    }
    expect(copies).toBeGreaterThan(COUNT * 3072);
  });
});

describe("the index", () => {
  const boxes = fc.integer({ min: 1, max: 3 }).chain((rank) => {
    const interval = fc.tuple(fc.nat(12), fc.nat(5));
    const one = fc.array(interval, { minLength: rank, maxLength: rank });
    const list = fc.array(one, { maxLength: 40 });
    const asBox = (pairs: [number, number][]) => ({
      offset: pairs.map(([begin]) => begin),
      size: pairs.map(([, size]) => size),
    });
    return fc.tuple(list, one).map(([all, query]) => ({ all: all.map(asBox), query: asBox(query) }));
  });

  it("finds exactly the boxes that a search through all of them finds", () => {
    fc.assert(
      fc.property(boxes, ({ all, query }) => {
        const expected = [...all.keys()].filter((id) => intersect(all[id]!, query));
        expect(new BoxIndex(all).touching(query)).toEqual(expected);
      }),
      { seed: 1, numRuns: 500 },
    );
  });

  it("finds an overlap exactly where there is one", () => {
    fc.assert(
      fc.property(boxes, ({ all }) => {
        const overlapping = all.some((a, i) => all.slice(i + 1).some((b) => intersect(a, b)));
        const found = new BoxIndex(all).overlap();
        expect(found !== undefined).toBe(overlapping);
        if (found) expect(intersect(all[found[0]]!, all[found[1]]!)).toBeDefined();
      }),
      { seed: 2, numRuns: 500 },
    );
  });
});
