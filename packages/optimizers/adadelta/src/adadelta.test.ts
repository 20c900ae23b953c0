import { parameter } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Adadelta } from "./index";

optimizerSuite(exported, {
  Adadelta: {
    defaults: { lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, maximize: false },
    wrong: { lr: [-1], rho: [1.1, -0.1, Number.NaN], eps: [-1], weightDecay: [-1], alpha: [0.9] },
  },
});

it.each([0, 1])("takes rho = %d", (rho) => expect(new Adadelta([parameter([1])], { rho }).groups[0]!.rho).toBe(rho));
