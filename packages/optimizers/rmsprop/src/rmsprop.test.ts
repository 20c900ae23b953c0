import { enableQ8, parameter } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { RMSprop } from "./index";

optimizerSuite(exported, {
  RMSprop: {
    defaults: { lr: 1e-2, alpha: 0.99, eps: 1e-8, weightDecay: 0, momentum: 0, centered: false, maximize: false },
    wrong: {
      lr: [-1],
      alpha: [-0.1],
      eps: [-1],
      momentum: [Number.NaN],
      weightDecay: [-1],
      centered: ["yes"],
      rho: [0.9],
    },
  },
});

it("rejects averages in 8 bits where it subtracts one's square from the other", () => {
  enableQ8();
  const w = parameter([1, 2]);
  expectCode("UNSUPPORTED", () => new RMSprop([w], { centered: true, stateDType: "q8" }));
  expect(new RMSprop([w], { stateDType: "q8" }).groups[0]!.stateDType).toBe("q8");
});
