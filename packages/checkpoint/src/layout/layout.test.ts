import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SourcePlan } from "../plan/plan";
import { elementsIn, wholeOf } from "./box";
import { defaultLayout, entryFor, type Layout, matchesPattern, partOf } from "./layout";
import { boxesOf, boxesOfRank, placementsOf, wholeShape } from "./placements";

const square: Layout = {
  mesh: { shape: [2, 2], axes: ["data", "model"] },
  tensors: { "fc.weight": ["data", "model"], "*.bias": [null], "fused.*": [["data", "model"]], "*": "replicate" },
};
const sizes = (length: number, parts: number, rule: "balanced" | "ceil") =>
  Array.from({ length: parts }, (_, part) => partOf(length, parts, part, rule)).map(([begin, end]) => end - begin);

describe("a layout", () => {
  it("places [[1,2,3,4],[5,6,7,8]] on a 2x2 mesh as rank r: row r div 2, columns from 2 (r mod 2)", () => {
    for (const rank of [0, 1, 2, 3]) {
      const expected = [{ offset: [Math.floor(rank / 2), 2 * (rank % 2)], size: [1, 2] }];
      expect(boxesOfRank(square, { name: "fc.weight", shape: [2, 4] }, rank)).toEqual(expected);
    }
  });

  it("splits a dimension by two axes, outermost first", () => {
    const offsets = [0, 1, 2, 3].map(
      (rank) => boxesOfRank(square, { name: "fused.w", shape: [8] }, rank)[0]!.offset[0],
    );
    expect(offsets).toEqual([0, 2, 4, 6]);
  });

  it("64 rows over 56 ranks: balanced 8 of 2 and 48 of 1, ceil 32 of 2 and 24 of none", () => {
    expect(sizes(64, 56, "balanced")).toEqual([...Array(8).fill(2), ...Array(48).fill(1)]);
    expect(sizes(64, 56, "ceil")).toEqual([...Array(32).fill(2), ...Array(24).fill(0)]);
  });

  it.each([
    ["*", "anything", true],
    ["*", "", true],
    ["fc.weight", "fc.weight", true],
    ["fc.weight", "fc.weights", false],
    ["fc.*", "fc.", true],
    ["fc.*", "afc.x", false],
    ["*.bias", "fc.bias", true],
    ["*.bias", "fc.bias.x", false],
    ["fc.*.bias", "fc.0.bias", true],
    ["fc.*.bias", "fc.bias", false],
    ["ab*ba", "aba", false],
    ["ab*ba", "abba", true],
    ["a*b*c", "a-b-c", true],
    ["a*b*c", "a--c", false],
    ["a*bc*c", "abc", false],
    ["a*b*b*c", "a-b-c", false],
    ["a*b*b*c", "abbc", true],
    ["*x*", "x", true],
    ["*x*", "y", false],
  ])("pattern %s matches %s: %s", (pattern, name, is) => expect(matchesPattern(pattern, name)).toBe(is));

  it("cuts by explicit sizes, parts of nothing left out, each rank at its own", () => {
    const layout: Layout = { ...square, tensors: { "*": { split: [["data", "model"]], sizes: [[1, 0, 4, 2]] } } };
    const tensor = { name: "w", shape: [7] };
    const boxes = [0, 1, 2, 3].map((rank) => boxesOfRank(layout, tensor, rank)[0]!);
    expect(boxes.map(({ offset, size }) => [...offset, ...size])).toEqual([
      [0, 1],
      [1, 0],
      [1, 4],
      [5, 2],
    ]);
    expect(boxesOf(layout, tensor)).toEqual([boxes[0], boxes[2], boxes[3]]);
  });

  it("takes a tensor's own rule before the layout's", () => {
    const layout: Layout = { ...defaultLayout(4), tensors: { a: { split: ["rank"], rule: "ceil" }, "*": ["rank"] } };
    const lengths = (name: string, rule?: "ceil") =>
      [0, 1, 2, 3].map(
        (rank) => boxesOfRank(rule ? { ...layout, rule } : layout, { name, shape: [5] }, rank)[0]!.size[0],
      );
    expect([lengths("a"), lengths("b"), lengths("b", "ceil")]).toEqual([
      [2, 2, 1, 0],
      [2, 1, 1, 1],
      [2, 2, 1, 0],
    ]);
  });

  it("takes boxes as they are given, those of two ranks once", () => {
    const [left, right] = [
      { offset: [0, 0], size: [2, 1] },
      { offset: [0, 1], size: [2, 3] },
    ];
    const layout: Layout = { ...square, tensors: { "*": { boxes: [[left], [right], [left, right], []] } } };
    const tensor = { name: "w", shape: [2, 4] };
    expect(boxesOf(layout, tensor)).toEqual([left, right]);
    expect(placementsOf(layout, tensor).map(({ ranks }) => ranks)).toEqual([
      [0, 2],
      [1, 2],
    ]);
    expect(boxesOfRank(layout, tensor, 3)).toEqual([]);
    expect(wholeShape(layout, { name: "w", rank: 2 }, () => undefined)).toEqual([2, 4]);
  });

  it("keeps a tensor of no elements as one box on every rank", () => {
    const tensor = { name: "w", shape: [2, 0] };
    expect(boxesOf(square, tensor)).toEqual([wholeOf([2, 0])]);
    expect(placementsOf(square, tensor)).toEqual([{ box: wholeOf([2, 0]), ranks: [0, 1, 2, 3] }]);
  });

  it("adds up the whole shape, and rejects slices that do not tell it", () => {
    const tensor = { name: "w", rank: 1 };
    const silent: Layout = { ...square, tensors: { "*": { split: ["data"], sizes: [[1, 4]] } } };
    const badShape = expect.objectContaining({ code: "BAD_SHAPE" });
    expect(wholeShape(silent, tensor, (rank) => [rank < 2 ? 1 : 4])).toEqual([5]);
    expect(() => wholeShape(silent, tensor, (rank) => [rank])).toThrow(badShape);
    expect(() => wholeShape(silent, tensor, (rank) => (rank < 2 ? [1] : undefined))).toThrow(badShape);
  });

  it("lists replicas once, with their ranks", () => {
    const layout: Layout = { ...square, tensors: { "*": [null, "model"] } };
    expect(placementsOf(layout, { name: "w", shape: [3, 4] })).toEqual([
      { box: { offset: [0, 0], size: [3, 2] }, ranks: [0, 2] },
      { box: { offset: [0, 2], size: [3, 2] }, ranks: [1, 3] },
    ]);
  });

  it("gives state its parameter's entry, unless a pattern is about the state", () => {
    const state = { name: "moments.fc.weight", follows: "fc.weight" };
    expect(entryFor(square, state)).toEqual(["data", "model"]);
    expect(entryFor({ ...square, tensors: { "moments.*": "replicate", ...square.tensors } }, state)).toBe("replicate");
    expect(entryFor({ ...square, tensors: { "moments.fc.weight": [null], ...square.tensors } }, state)).toEqual([null]);
  });

  it.each<[string, Layout, number[]]>([
    ["a mesh of no size", { ...square, mesh: { shape: [0, 2], axes: ["a", "b"] } }, [2, 2]],
    ["axes of one name", { ...square, mesh: { shape: [2, 2], axes: ["a", "a"] } }, [2, 2]],
    ["a rule that there is not", { ...square, rule: "even" as never, tensors: { "*": ["data"] } }, [4]],
    ["sizes for too few parts", { ...square, tensors: { "*": { split: ["data"], sizes: [[4]] } } }, [4]],
    ["sizes below nothing", { ...square, tensors: { "*": { split: ["data"], sizes: [[5, -1]] } } }, [4]],
    ["sizes that are no whole numbers", { ...square, tensors: { "*": { split: ["data"], sizes: [[2.5, 1.5]] } } }, [4]],
    ["axes without names", { ...square, mesh: { shape: [2, 2], axes: ["a"] } }, [2, 2]],
    ["an axis that the mesh has not", { ...square, tensors: { "*": ["pipeline"] } }, [2, 2]],
    ["an axis used twice", { ...square, tensors: { "*": ["data", "data"] } }, [2, 2]],
    ["more splits than dimensions", { ...square, tensors: { "*": ["data", "model"] } }, [2]],
    ["no pattern that matches", { ...square, tensors: { "other.*": "replicate" } }, [2]],
    ["sizes that do not add up", { ...square, tensors: { "*": { split: ["data"], sizes: [[1, 2]] } } }, [4]],
    ["boxes for too few ranks", { ...square, tensors: { "*": { boxes: [[]] } } }, [4]],
    ["a box outside", { ...square, tensors: { "*": { boxes: [[], [], [], [{ offset: [3], size: [2] }]] } } }, [4]],
  ])("rejects %s", (_, layout, shape) => {
    expect(() => placementsOf(layout, { name: "w", shape })).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
  });

  const cases = fc.record({
    shape: fc.array(fc.nat(9), { maxLength: 3 }),
    mesh: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
    axis: fc.array(fc.nat(3), { minLength: 3, maxLength: 3 }),
    rule: fc.constantFrom("balanced" as const, "ceil" as const),
  });
  type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never;
  const layoutOf = ({ shape, mesh, axis, rule }: Case): Layout => {
    const axes = mesh.map((_, i) => `axis${i}`);
    const used = new Set<string>();
    const split = shape.map((_, d) => {
      const name = axes[axis[d]!];
      if (!name || used.has(name)) return null;
      used.add(name);
      return name;
    });
    return { mesh: { shape: mesh, axes }, tensors: { "*": split }, rule };
  };

  it("covers every tensor exactly once, whatever the shape, mesh and rule", () => {
    fc.assert(
      fc.property(cases, (one) => {
        const tensor = { name: "w", shape: one.shape };
        const placements = placementsOf(layoutOf(one), tensor);
        const boxes = boxesOf(layoutOf(one), tensor);
        expect(new Set(placements.map(({ box }) => JSON.stringify(box)))).toEqual(
          new Set(boxes.map((box) => JSON.stringify(box))),
        );
        new SourcePlan(tensor, boxes).sourcesOf(wholeOf(one.shape));
        if (one.shape.includes(0)) return;
        for (const { box, ranks } of placements) {
          for (const rank of ranks) expect(boxesOfRank(layoutOf(one), tensor, rank)).toContainEqual(box);
        }
      }),
      { seed: 3, numRuns: 300 },
    );
  });

  it("finds the whole shape from the slices of all ranks", () => {
    fc.assert(
      fc.property(cases, (one) => {
        const layout = layoutOf(one);
        const local = (rank: number) => boxesOfRank(layout, { name: "w", shape: one.shape }, rank)[0]!.size;
        expect(wholeShape(layout, { name: "w", rank: one.shape.length }, local)).toEqual(one.shape);
      }),
      { seed: 4, numRuns: 300 },
    );
  });

  it("replicates scalars and splits the first dimension by default", () => {
    expect(placementsOf(defaultLayout(3), { name: "s", shape: [] })).toEqual([{ box: wholeOf([]), ranks: [0, 1, 2] }]);
    expect(boxesOf(defaultLayout(3), { name: "w", shape: [4, 2] }).map(elementsIn)).toEqual([4, 2, 2]);
  });
});
