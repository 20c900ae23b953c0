import { compile, Generator, parameter, randn, type Tensor, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { APOLLO, GaLore } from "./index";

optimizerSuite(exported, {
  GaLore: {
    defaults: {
      ...{ lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0 },
      ...{ rank: 128, updateProjectionGap: 200, scale: 1, projectionType: "std", maximize: false },
    },
    wrong: {
      ...{ lr: [-1], betas: [[0.9, 1], [0.9]], eps: [-1], weightDecay: [-1], scale: [-1] },
      ...{ rank: [0, 1.5], updateProjectionGap: [0, "2"], projectionType: ["full"], seed: [1] },
    },
  },
  APOLLO: {
    defaults: {
      ...{ lr: 1e-3, betas: [0.9, 0.999], eps: 1e-6, weightDecay: 0, rank: 256, updateProjectionGap: 200, scale: 1 },
      ...{ scaleType: "channel", projectionType: "std", normGrowthLimit: 1.01, seed: 0, maximize: false },
    },
    wrong: {
      ...{ lr: [-1], betas: [[0.9, 1], [0.9]], eps: [-1], weightDecay: [-1], scale: [-1], rank: [0] },
      ...{ updateProjectionGap: [0], projectionType: [null], scaleType: ["row"], normGrowthLimit: [0.5, "1"] },
      ...{ seed: [-1, 0.5] },
    },
  },
});

const gradientAt = (t: number) => tensor([0, 1, 2, 3, 4, 5].map((i) => Math.sin(t * (i + 1)))).reshape([2, 3]);
const START = [
  [1, -2, 3],
  [0.5, 4, -1],
];

describe.each([
  ["GaLore", GaLore],
  ["APOLLO", APOLLO],
] as const)("%s", (_, Optimizer) => {
  const made = (options: object = {}, start: Tensor | number[][] = START) => {
    const w = parameter(start);
    const optimizer = new Optimizer([w], { lr: 0.1, rank: 1, updateProjectionGap: 3, ...options });
    return { w, optimizer };
  };
  const step = ({ w, optimizer }: ReturnType<typeof made>, t: number) => {
    w.grad = gradientAt(t);
    optimizer.step();
  };

  it("stores its state in float32", () => {
    expectCode("UNSUPPORTED", () => made({ stateDType: "bf16" }));
  });

  it("compiled has the words of eager, also two steps in one function, over refreshes of the projection", () => {
    const [eager, compiled] = [made(), made()];
    const both = compile(() => {
      compiled.optimizer.step();
      compiled.optimizer.step();
    });
    for (let t = 1; t <= 8; t++) {
      for (const { w } of [eager, compiled]) w.grad = gradientAt(t);
      eager.optimizer.step();
      eager.optimizer.step();
      both();
      expect(compiled.w.tolist()).toEqual(eager.w.tolist());
    }
  });

  it("goes on after a save, between two refreshes", () => {
    const one = made();
    for (let t = 1; t <= 5; t++) step(one, t);
    const other = made({}, one.w.clone());
    other.optimizer.loadStateDict(one.optimizer.stateDict());
    for (let t = 6; t <= 9; t++) {
      step(one, t);
      step(other, t);
    }
    expect(other.w.tolist()).toEqual(one.w.tolist());
  });

  it("projects the side that projectionType says", () => {
    const shapesOf = (options: object) => {
      const one = made(options);
      step(one, 1);
      const state = one.optimizer.stateDict().state["0"]!;
      return ["exp_avg", "exp_avg_sq", "projection"].map((key) => (state[key] as Tensor).shape);
    };
    const [ofTwo, ofThree] = [
      [
        [1, 3],
        [1, 3],
        [2, 1],
      ],
      [
        [2, 1],
        [2, 1],
        [3, 1],
      ],
    ];
    expect(shapesOf({})).toEqual(ofTwo);
    expect(shapesOf({ projectionType: "left" })).toEqual(ofTwo);
    expect(shapesOf({ projectionType: "reverseStd" })).toEqual(ofThree);
    expect(shapesOf({ projectionType: "right" })).toEqual(ofThree);
    expect(shapesOf({ rank: 5 })[2]).toEqual([2, 2]);
  });

  it("keeps the bytes of its low rank and no others", () => {
    const { w, optimizer } = made({ rank: 2 }, randn([64, 96], { generator: new Generator(1) }));
    w.grad = w.mul(2).detach();
    const { bytes } = w.device.memory();
    for (let t = 1; t <= 4; t++) optimizer.step();
    const lastNorm = Optimizer === APOLLO ? 256 : 0; // the least that a device allocates
    expect(w.device.memory().bytes - bytes).toBe(4 * 2 * (2 * 96 + 64) + lastNorm);
  });

  it("takes a gradient that is not finite without an error", () => {
    const { w, optimizer } = made();
    w.grad = tensor([Number.NaN, 1, 2, 3, Number.POSITIVE_INFINITY, 5]).reshape([2, 3]);
    optimizer.step();
    expect([...w.dataSync()].some(Number.isNaN)).toBe(true);
  });
});
